"""The kernels that are counted, with what their programs say of their launches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optiml_magic.errors import SourceError
from optiml_magic.kernels.signature import split_name
from optiml_magic.kernels.tree import Function
from optiml_magic.kernels.unit import Unit, lift
from optiml_magic.source.expressions import Number
from optiml_magic.source.program import parse_program
from optiml_magic.testing.findings import NAMES, pair

ROOT = Path(__file__).parents[2]
PLAIN = ("optiml_magic/testing/kernels", "tests/tutorials")
PAIRED = "optiml_magic/testing/findings"
_BLOCK = ("blockDim.x", "blockDim.y", "blockDim.z")


@dataclass(frozen=True)
class Subject:
    """A kernel, how to find it again, and what is known of its launch."""

    told: Mapping[str, Any]
    unit: Unit
    kernel: Function
    template: tuple[str, ...] = ()
    tuned: tuple[str, ...] = ()
    fixed: Mapping[str, int] = field(default_factory=dict)


def own() -> Iterator[Subject]:
    """Those of this repository; its faulty ones are these with a fault each, and are left out."""
    for folder in PLAIN:
        for path in sorted((ROOT / folder).rglob("*.cu")):
            yield from _launched(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))
    for name in NAMES:
        for text in (pair(name).faulty, pair(name).sound):
            yield from _launched(text, f"{PAIRED}/{name}.cu")


def _launched(text: str, path: str) -> Iterator[Subject]:
    unit = lift(text)
    try:
        program = parse_program(text)
    except SourceError:  # its launch is beside it
        program = None
    launches = program.launches if program else ()
    tuned = tuple(tune.name for tune in program.tunes) if program else ()
    for kernel in unit.kernels:
        told = {"path": path, "kernel": kernel.name}
        for launch in launches:
            name, template = split_name(launch.kernel or kernel.name)
            if name == kernel.name:
                fixed = dict.fromkeys(_BLOCK[len(launch.block) :], 1)
                for axis, size in zip(_BLOCK, launch.block, strict=False):
                    if isinstance(size.tree, Number):
                        fixed[axis] = int(size.tree.value)
                yield Subject(told, unit, kernel, template, tuned, fixed)
                break
        else:
            yield Subject(told, unit, kernel, tuned=tuned)


def rows(folder: Path) -> Iterator[tuple[Mapping[str, Any], str]]:
    """The index of a folder, and the text of each file."""
    for row in json.loads((folder / "index.json").read_text(encoding="utf-8")):
        yield row, (folder / row["file"]).read_text(encoding="utf-8", errors="replace")


def others(folder: Path) -> Iterator[Subject]:
    """Those of a folder, of whose launches no more than template arguments are known."""
    for row, text in rows(folder):
        unit = lift(text)
        name = split_name(row["kernel"])[0]
        told = {key: row[key] for key in ("repository", "path", "commit", "kernel")}
        template = split_name(row.get("template") or name)[1]
        yield Subject(told, unit, _named(unit, name), template)


def _named(unit: Unit, name: str) -> Function:
    bare = name.rpartition("::")[2]
    return next(k for k in unit.kernels if k.name.rpartition("::")[2] == bare)
