"""What a reading says, without the names and the order that a spelling is free to choose.

Two spellings of one kernel are read alike where their summaries are the same: the accesses, loops,
guards, reductions and barriers, each with the original's names, its counters named by their depth
and its own arrays by their order. A condition that others imply may be there or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from optiml_magic.kernels.read import read
from optiml_magic.kernels.reading import Access, Axis, Reading
from optiml_magic.kernels.signature import split_name
from optiml_magic.kernels.symbols import Condition, Some, Symbols
from optiml_magic.kernels.types import CType
from optiml_magic.kernels.unit import lift
from optiml_magic.source.expressions import Number
from optiml_magic.source.program import parse_program

from .canonical import Names, Place, same_places
from .twins import Twin

Block = tuple[int, ...]
ASPECTS = ("accesses", "loops", "guards", "reductions", "barriers")
Rows = Mapping[str, tuple[Place, ...]]


@dataclass(frozen=True)
class Summary:
    """What was read of one kernel: of every aspect its rows, and the places where each is."""

    rows: Mapping[str, Rows]
    symbols: Symbols = field(repr=False)


def summary(
    text: str, beside: Block = (), renamed: Mapping[str, str] | None = None
) -> tuple[Summary, ...]:
    """The summaries of the launched kernels of a text, in the order of its launches.

    Args:
        beside: the block of the spelling to compare with.
        renamed: from the original's names to those of the text.
    """
    unit = lift(text)
    names = {new: old for old, new in (renamed or {}).items()}
    found = []
    for launch in parse_program(text).launches:
        name, template = split_name(launch.kernel or unit.kernels[0].name)
        block = tuple(int(e.tree.value) for e in launch.block if isinstance(e.tree, Number))
        kernel = next(k for k in unit.kernels if k.name == name)
        dims = dict(zip(("blockDim.x", "blockDim.y", "blockDim.z"), (*block, 1, 1), strict=False))
        found.append(_summary(read(unit, kernel, template, fixed=dims), names, block, beside))
    return tuple(found)


def block_of(text: str) -> Block:
    """The block of the first launch."""
    launch = parse_program(text).launches[0]
    return tuple(int(e.tree.value) for e in launch.block if isinstance(e.tree, Number))


def differences(twin: Twin) -> dict[str, str]:
    """What is read otherwise in a twin than in its original: of each aspect the first row."""
    originals = _original(twin.original.text, block_of(twin.text))
    others = summary(twin.text, block_of(twin.original.text), twin.renamed)
    assert len(originals) == len(others), twin.name
    found: dict[str, str] = {}
    for ours, theirs in zip(originals, others, strict=True):
        for aspect, told in compared(ours, theirs).items():
            found.setdefault(aspect, told)
    return found


_original = cache(summary)


def compared(ours: Summary, theirs: Summary) -> dict[str, str]:
    """The aspects in which two summaries differ, and the first difference of each."""
    told = {aspect: _difference(ours, theirs, aspect) for aspect in ASPECTS}
    return {aspect: difference for aspect, difference in told.items() if difference}


def _difference(ours: Summary, theirs: Summary, aspect: str) -> str:
    left, right = ours.rows[aspect], theirs.rows[aspect]
    both = ours.symbols.table | theirs.symbols.table
    # A condition may be that of a branch in one spelling and that of a choice in the other.
    chosen = ("", "choices")[aspect == "guards"]
    gone = [row for row in left if row not in right and row not in theirs.rows.get(chosen, ())]
    new = [row for row in right if row not in left and row not in ours.rows.get(chosen, ())]
    if gone or new:
        return f"in the original {gone[:1]}, in the twin {new[:1]}"
    if aspect == "guards":
        return ""
    for row in left:
        if not same_places(left[row], right[row], both):
            return f"{row} where {_told(left[row])}, in the twin where {_told(right[row])}"
    return ""


def _told(places: Iterable[Place]) -> str:
    return " or ".join(sorted(" && ".join(sorted(map(str, p.holds))) or "true" for p in places))


def _summary(reading: Reading, renamed: Mapping[str, str], block: Block, beside: Block) -> Summary:
    names = Names(reading, renamed, block, beside)
    accesses = _grouped(_accesses(reading, names))
    decisive = {part for places in accesses.values() for p in places for part in p.holds}
    rows = {
        "accesses": accesses,
        "loops": _grouped(_loops(reading, names)),
        "guards": dict.fromkeys(_guards(reading, names, decisive), ()),
        "choices": {str(part): () for part in decisive},
        "reductions": _counted(_reductions(reading, names)),
        "barriers": _grouped(_barriers(reading, names)),
    }
    return Summary(rows, names.symbols)


def _grouped(found: Iterable[tuple[str, Place]]) -> Rows:
    rows: dict[str, tuple[Place, ...]] = {}
    for row, place in found:
        rows[row] = (*rows.get(row, ()), place)
    return rows


def _counted(found: Iterable[str]) -> Rows:
    return {f"{count} of {row}": () for row, count in Counter(found).items()}


def _accesses(reading: Reading, names: Names) -> Iterator[tuple[str, Place]]:
    """The accesses; one in both ways that a branch may take is one where the ways part."""
    rows: dict[tuple[str, tuple[str, ...]], list[frozenset[Condition]]] = {}
    for access in reading.accesses:
        row = f"{_element(reading, access, names)} in {names.nest(access.loops)}"
        guard = frozenset(part for g in access.guard for part in g.conjuncts())
        rows.setdefault((row, access.loops), []).append(guard)
    for (row, loops), guards in rows.items():
        yield from ((row, names.place(guard, loops)) for guard in _joined(guards))


def _joined(guards: list[frozenset[Condition]]) -> list[frozenset[Condition]]:
    for at, one in enumerate(guards):
        for other in guards[at + 1 :]:
            if _opposite(one - other, other - one) or _opposite(other - one, one - other):
                rest = [g for g in guards if g not in (one, other)]
                return _joined([*rest, one & other])
    return guards


def _opposite(parts: frozenset[Condition], other: frozenset[Condition]) -> bool:
    """Whether the other condition is that not all of the parts hold."""
    if len(other) != 1 or not parts:
        return False
    (single,) = other
    either = single.parts if isinstance(single, Some) else (single,)
    return {~part for part in parts} == set(either)


def _element(reading: Reading, access: Access, names: Names) -> str:
    found = reading.subscript(access)
    if found is None:
        digits = "[?]"
    else:
        forms = [names.form(digit, access.loops) for digit in found.digits]
        digits = "".join(f"[{form}]" for form in forms) + ("" if found.proved else " unproved")
    array = names.array(access.array)
    return f"{access.mode} {kind(access.element)} {array}{digits}{' verbatim' * access.verbatim}"


def kind(of: CType) -> str:
    """An element's type without the name that it goes by."""
    return f"{of.kind}{8 * (of.size or 0)}" + f"x{of.lanes}" * (of.lanes > 1) + "*" * of.depth


def _loops(reading: Reading, names: Names) -> Iterator[tuple[str, Place]]:
    for axis in reading.axes:
        outer = names.outer(axis)
        told = "" if axis.exact else " at most"
        yield names.nest((*outer, axis.name)) + told, names.place(axis.guard, outer)


def _guards(reading: Reading, names: Names, decisive: Iterable[Condition]) -> Iterator[str]:
    """The conditions that decide whether something runs; those that only choose a value do not."""
    for guard in reading.guards:
        for part in names.parts(guard.condition, guard.loops):
            if part in decisive and names.told(part):
                yield str(part)


def _reductions(reading: Reading, names: Names) -> Iterator[str]:
    for reduction in reading.reductions:
        inner: Axis = reading.axis(reduction.axes[0])
        nest = names.nest((*names.outer(inner), inner.name))
        yield f"{reduction.op} {kind(reduction.type)} over {len(reduction.axes)} of {nest}"


def _barriers(reading: Reading, names: Names) -> Iterator[tuple[str, Place]]:
    for at, barrier in enumerate(reading.barriers):
        yield (
            f"{at} {barrier.scope} in {names.nest(barrier.loops)}",
            names.place(barrier.guard, barrier.loops),
        )


__all__ = ["ASPECTS", "Summary", "differences", "summary"]
