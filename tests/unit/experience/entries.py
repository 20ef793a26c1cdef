"""Entries as no run has to find them."""

from __future__ import annotations

from optiml_magic.model.experience import Entry, Evidence, Kind, Move, Nest, Origin


def kind(*sizes: int, family: str = "hopper", patterns: tuple[str, ...] = ("load",)) -> Kind:
    first, second, third = sizes or (10, 6, 5)
    return Kind((Nest(patterns, ("+ float32",), 1, (), (first, second, third)),), family)


def entry(
    *moves: str | Move, gain: float = 4.0, of: Kind | None = None, program: str = "p",
    vain: tuple[tuple[str, ...], ...] = (), source: str = "events", run: str = "run",
) -> Entry:  # fmt: skip
    path = tuple(one if isinstance(one, Move) else Move(one, {}) for one in moves)
    origin = Origin(run, "2026-11-22", "CUDA 13", "nvrtc 13.0", "0.1.0")
    evidence = Evidence(origin, "h200", source, program, gain, 1.0, 1.01)
    return Entry(of or kind(), "memory", path, vain, evidence)
