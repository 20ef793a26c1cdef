"""Ours and the peers on one card, in turn: each sample from memory, behind an overwritten L2.

The method is that of ``devices/functions.py``, and samples are taken in rounds A B B A.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optiml_magic.bench.entry import Entry
from optiml_magic.bench.peers import OurKernel, Party, copied, peers, running_on_cupy, wanted
from optiml_magic.bench.row import BEST, INPUT
from optiml_magic.devices.base import Sampling
from optiml_magic.devices.functions import Ready, line_of, readied, sampled
from optiml_magic.devices.turns import turn
from optiml_magic.result import Kernel

_LONGEST = 300.0  # seconds to wait for others on the card, who time as long as this does; ours
_ALONE = "a turn on the card"
_SAMPLING = Sampling(least=8, most=40, seconds=3.0)
_OFF = {"f2": 1e-2, "f4": 1e-3, "f8": 1e-6}  # of the largest wanted value; ours


@dataclass
class Beside:
    """What came of it: samples in seconds by name, and of those that failed the reasons.

    ``errors`` are the largest of each, relative to the largest wanted value of its output.
    """

    samples: dict[str, tuple[float, ...]] = field(default_factory=dict)
    how: dict[str, str] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    against: str = ""


#: The outputs that are right at these values, and whose they are; none where nobody says.
Wanted = Callable[[dict[str, Any]], tuple[tuple[Any, ...], str]]


def beside(
    entry: Entry,
    original: Kernel,
    best: Kernel,
    sizes: Mapping[str, int],
    index: int,
    *,
    with_peers: bool,
    with_reference: bool = False,
) -> Beside:
    """Time the input kernel, the best and the peers at these sizes on card ``index``.

    ``with_reference`` the reference itself is a peer, with CuPy where it says NumPy.
    """
    parties: list[Party] = [OurKernel(INPUT, original), OurKernel(BEST, best)]
    missing: dict[str, str] = {}
    if with_peers:
        others, missing = peers(entry)
        parties += others
        if with_reference:
            parties += running_on_cupy(entry)
    found = in_turn(entry, parties, sizes, index, lambda values: wanted(entry, values))
    found.failed = missing | found.failed
    if "torch" in sys.modules:
        sys.modules["torch"].cuda.empty_cache()
    return found


def in_turn(
    entry: Entry,
    parties: Sequence[Party],
    sizes: Mapping[str, int],
    index: int,
    right: Wanted,
) -> Beside:
    """Time whoever of these has the ``right`` outputs on card ``index``."""
    import cupy as cp

    found = Beside()
    drawn = entry.inputs(np.random.default_rng(0), **sizes)
    card = f"cuda:{index}"
    with cp.cuda.Device(index):
        with turn(card, _LONGEST, shared=True):
            values = {n: _on_card(cp, value) for n, value in drawn.items()}
            able = _checked(cp, parties, values, right, found)
            cp.get_default_memory_pool().free_all_blocks()
            made = {party.name: _readied(cp, party, values, found) for party in able}
            cp.cuda.Device().synchronize()
        ready = {name: one for name, one in made.items() if one}
        if ready:
            with turn(card, _LONGEST) as crowded:
                samples = sampled(cp, list(ready.values()), _SAMPLING)
            found.samples.update(zip(ready, samples, strict=True))
            if crowded:
                found.failed[_ALONE] = crowded
        cp.cuda.Device().synchronize()  # a fault of anybody's is told here at the latest
        cp.get_default_memory_pool().free_all_blocks()
    return found


def _on_card(cp: Any, value: Any) -> Any:
    return cp.asarray(value) if isinstance(value, np.ndarray) and value.ndim else value


def _checked(
    cp: Any, parties: Sequence[Party], values: Mapping[str, Any], right: Wanted, found: Beside
) -> list[Party]:
    """Those whose outputs are right, or the first one's where nobody says what is."""
    able: list[Party] = []
    expected: tuple[Any, ...] = ()
    try:
        expected, found.against = right(copied(values))
    except Exception as problem:  # noqa: BLE001  # whatever a library raises, ours is still timed
        found.failed["double precision"] = line_of(problem)
    for party in parties:
        try:
            outputs = party.arrays(party.ready(copied(values))())
            cp.cuda.Device().synchronize()
            if not expected:
                expected, found.against = outputs, "the input kernel"
            found.errors[party.name] = _error(cp, outputs, expected)
        except Exception as problem:  # noqa: BLE001
            found.failed[party.name] = line_of(problem)
            continue
        limit = max((_OFF.get(f"f{o.dtype.itemsize}", 0.0) if o.dtype.kind == "f" else 0.0)
                    for o in outputs)  # fmt: skip
        # Sums of very many floats by atomics are what they are; the verifier has judged it.
        if found.errors[party.name] <= limit or party.name == INPUT:
            able.append(party)
        else:
            found.failed[party.name] = f"off by {found.errors[party.name]:.2g} of the largest value"
    return able


def _error(cp: Any, outputs: Sequence[Any], expected: Sequence[Any]) -> float:
    if [o.size for o in outputs] != [e.size for e in expected]:
        shapes = [o.shape for o in outputs], [e.shape for e in expected]
        raise ValueError(f"outputs of shapes {shapes[0]}, wanted {shapes[1]}")
    worst = 0.0
    for one, other in zip(outputs, expected, strict=True):
        a, b = one.reshape(-1).astype(cp.float64), other.reshape(-1).astype(cp.float64)
        same = (a == b) | (cp.isnan(a) & cp.isnan(b))
        finite = cp.isfinite(b)
        scale = float(cp.max(cp.where(finite, cp.abs(b), 0.0))) or 1.0
        off = cp.where(same, 0.0, cp.abs(a - b))
        worst = max(worst, float(cp.max(cp.nan_to_num(off, nan=cp.inf))) / scale)
    return worst


def _readied(cp: Any, party: Party, values: Mapping[str, Any], found: Beside) -> Ready | None:
    """The party on sets of arrays of its own, as a graph where it can be captured."""
    footprint = 2 * sum(v.nbytes for v in values.values() if getattr(v, "ndim", 0))
    try:
        ready = readied(
            cp, lambda: party.ready(_fresh(cp, values)), party.on, party.capture, footprint
        )
    except Exception as problem:  # noqa: BLE001
        found.failed[party.name] = line_of(problem)
        return None
    found.how[party.name] = f"{ready.how}, {ready.sets} at a time"
    return ready


def _fresh(cp: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    made = copied(values)
    cp.cuda.Device().synchronize()
    return made
