"""The kind of a kernel: what it does to memory, by arithmetic at the sizes that are measured.

How far apart the addresses of two neighbouring lanes lie is a number whatever the index is spelled
like, so two spellings of one kernel are of one kind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from optiml_magic.errors import SourceError
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, kernels
from optiml_magic.kernels.primitives.sizes import threads, value
from optiml_magic.kernels.reading import Access, Reading, Reduction
from optiml_magic.kernels.types import CType
from optiml_magic.model.experience import Kind, Nest
from optiml_magic.model.facts import Facts, LaunchFacts
from optiml_magic.source.program import Program

_SECTOR = 32  # bytes
_EXTREMES = frozenset({"min", "max", "<", ">"})


def kind_of(program: Program, facts: Facts | None, family: str) -> Kind | None:
    """The kind of a program that is bound; None where one of its launches cannot be read."""
    if facts is None:
        return None
    try:
        found = kernels(program, facts)
        nests = tuple(_nest(kernel) for kernel in found)
    except (NotLegal, SourceError):
        return None
    if len(nests) != len(facts.launches):
        return None
    return Kind(nests, family)


def _nest(kernel: Kernel) -> Nest:
    reading, facts = kernel.reading, kernel.facts
    if facts is None:
        raise NotLegal("nothing is known of its sizes")
    outside = [access for access in reading.accesses if access.space == "global"]
    met = {
        "barrier": bool(reading.barriers),
        "shared": any(access.space == "shared" for access in reading.accesses),
        "atomic": any(access.mode == "atomic" for access in reading.accesses),
    }
    return Nest(
        patterns=_patterns(kernel, outside),
        reductions=tuple(sorted({*map(_reduction, reading.reductions)})),
        depth=max((len(access.loops) for access in outside), default=0),
        together=tuple(name for name, there in met.items() if there),
        sizes=(
            _class(_bytes(facts, "in", "inout")),
            _class(_bytes(facts, "out", "inout", "scratch")),
            _class(threads(kernel) or 0),
        ),
    )


def _patterns(kernel: Kernel, accesses: Sequence[Access]) -> tuple[str, ...]:
    """Each once; a window is made of several elements of one array that a thread meets likewise."""
    found: dict[str, dict[str, set[int | None]]] = {}
    here, _ = _lanes(kernel)
    for access in accesses:
        arrays = found.setdefault(_pattern(kernel, access), {})
        arrays.setdefault(access.array, set()).add(_address(kernel, access, here))
    return tuple(
        pattern + (", window" if any(len(met) > 1 for met in arrays.values()) else "")
        for pattern, arrays in sorted(found.items())
    )


def _pattern(kernel: Kernel, access: Access) -> str:
    lanes = _far(kernel, access, *_lanes(kernel))
    rounds = ""
    if access.loops:
        counter = access.loops[-1]
        here = {**_first(kernel.reading), **_place(kernel, 1)}
        rounds = _far(kernel, access, {**here, counter: 1}, {**here, counter: 2})
    words = (access.mode, _type(access.element), f"lanes {lanes}", f"rounds {rounds or 'none'}")
    return ", ".join(words)


def _lanes(kernel: Kernel) -> tuple[dict[str, int], dict[str, int]]:
    """Where two neighbouring lanes of a block within the grid are, in a round of each loop."""
    first = _first(kernel.reading)
    return {**first, **_place(kernel, 1)}, {**first, **_place(kernel, 2)}


def _first(reading: Reading) -> dict[str, int]:
    return dict.fromkeys((axis.name for axis in reading.axes), 1)


def _place(kernel: Kernel, lane: int) -> dict[str, int]:
    """The built-in variables of a thread by its number in the block."""
    assert kernel.facts is not None
    block, grid = kernel.facts.block, kernel.facts.grid
    found = {f"blockIdx.{axis}": int(n > 1) for axis, n in zip("xyz", grid, strict=True)}
    for axis, extent in zip("xyz", block, strict=True):
        lane, found[f"threadIdx.{axis}"] = divmod(lane, extent)
    return found


def _far(kernel: Kernel, access: Access, one: dict[str, int], other: dict[str, int]) -> str:
    """How far the element that an access means moves, in words that no spelling changes."""
    before, after = (_address(kernel, access, at) for at in (one, other))
    size = access.element.size
    if before is None or after is None or not size:
        return "anywhere"
    apart = abs(after - before)
    if apart <= size:
        return "next" if apart else "same"
    return "near" if apart <= _SECTOR else "apart"


def _address(kernel: Kernel, access: Access, at: dict[str, int]) -> int | None:
    """Bytes from the start of the array; None where it depends on more than sizes and place."""
    if access.offset is not None:
        return value(kernel, access.offset, at)
    index = value(kernel, access.index, at) if access.index is not None else None
    return index * access.element.size if index is not None and access.element.size else None


def _reduction(reduction: Reduction) -> str:
    op = "extreme" if reduction.op in _EXTREMES else reduction.op
    return f"{op} {_type(reduction.type)}"


def _type(of: CType) -> str:
    lane = of.lane
    return f"{lane.kind}{8 * lane.size}" if lane.size else lane.kind


def _bytes(facts: LaunchFacts, *roles: str) -> int:
    arrays = {array.buffer: array for array in facts.arrays.values() if array.role in roles}
    return sum(array.nbytes for array in arrays.values())


def _class(amount: int) -> int:
    """The power of four that is nearest."""
    return round(math.log2(amount) / 2) if amount > 0 else 0
