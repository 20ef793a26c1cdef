"""Reductions from the uses of places: what loops only combine into, from one start."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from optiml_magic.kernels.events import Key, Use
from optiml_magic.kernels.expressions import Expr, Name, every
from optiml_magic.kernels.reading import Access, Reduction
from optiml_magic.kernels.symbols import Symbols
from optiml_magic.kernels.tree import Variable
from optiml_magic.kernels.types import CType

_INT = 4  # bytes, to which narrower numbers are widened as they are compared


def reductions(
    uses: Sequence[Use],
    accesses: Sequence[Access],
    symbols: Symbols,
    types: Mapping[Expr, CType],
    stepping: Collection[tuple[str, Variable]] = (),
) -> tuple[Reduction, ...]:
    """Every reduction, in the order of the text; what only counts rounds is none."""
    by_key: dict[Key, list[Use]] = {}
    for use in uses:
        by_key.setdefault(use.key, []).append(use)
    by_array: dict[str, list[Access]] = {}
    for access in accesses:
        by_array.setdefault(access.array, []).append(access)
    found = [
        replace(reduction, fits=_fits(reduction, types))
        for key, own in by_key.items()
        if any(use.kind == "update" and use.loops and not use.type.depth for use in own)
        for reduction in _of_place(key, _compared(own, by_key), by_array, symbols)
        if (reduction.axes[0], key[0]) not in stepping and not _cuts(reduction, types)
    ]
    return tuple(sorted(found, key=lambda reduction: reduction.line))


def _cuts(found: Reduction, types: Mapping[Expr, CType]) -> bool:
    """Whether a whole number takes in fractions, and drops what is none of it each time."""
    kinds = (types.get(value) for value in found.values)
    return found.type.integral and any(k is not None and k.kind == "float" for k in kinds)


def _fits(found: Reduction, types: Mapping[Expr, CType]) -> bool:
    """Whether an extreme of whole numbers is that of its values, which nothing is cut off of."""
    if not found.type.integral or found.op not in ("min", "max"):
        return True
    return all(_holds(found.type, types.get(value)) for value in found.values)


def _holds(place: CType, value: CType | None) -> bool:
    """Whether a place holds a value as the two are compared: in an int where they are narrower."""
    narrow, whole = (place.size or 0) < _INT, place.size or 0
    if value is None or not value.integral:
        return not narrow
    size = value.size or 0
    if value.signed == place.signed or value.kind == "bool":
        return size <= whole
    return (size < whole and not (narrow and value.signed)) or (
        size == whole and not (narrow or place.signed)
    )


def _compared(uses: list[Use], others: Mapping[Key, list[Use]]) -> list[Use]:
    """The uses without the reads of comparisons by name that only decide on an update."""
    named = {
        variable: meaning
        for use in uses
        if use.combination is not None
        for variable, meaning in use.combination.named.items()
        if sum(other.kind == "read" for other in others.get((variable,), ())) == 1
    }
    parts = {part for meaning in named.values() for part in every(meaning)}
    return [use for use in uses if use.kind != "read" or use.value not in parts]


def _of_place(
    key: Key, uses: list[Use], accesses: dict[str, list[Access]], symbols: Symbols
) -> Iterator[Reduction]:
    seen: set[str] = set()
    for use in uses:
        if use.kind != "update" or not use.loops or use.loops[-1] in seen:
            continue
        seen.add(use.loops[-1])
        axes: list[str] = []
        for axis in reversed(use.loops):
            if not _only_combined(axis, uses) or not _alone(axis, key, accesses, symbols):
                break
            axes.append(axis)
        if axes:
            yield _reduction(key, use, uses, tuple(axes))


def _reduction(key: Key, use: Use, uses: list[Use], axes: tuple[str, ...]) -> Reduction:
    inside = [u for u in uses if u.kind == "update" and axes[-1] in u.loops]
    values = tuple(v for u in inside if u.combination for v in u.combination.values)
    along = [t for u in inside if u.combination for t in u.combination.carried]
    return Reduction(
        place=_spelled(key),
        op=_op(use),
        axes=axes,
        start=_start(uses, inside[0], axes),
        values=values,
        type=use.type,
        line=use.line,
        carried=tuple(target.name for target in along if isinstance(target, Name)),
        tests=tuple(dict.fromkeys(u.combination.test for u in inside if u.combination)),
        counts=any(u.combination is not None and not u.combination.values for u in inside),
    )


def _op(use: Use) -> str:
    """How it combines; whole numbers know no NaN, so selecting one is taking an extreme."""
    assert use.combination is not None
    op = use.combination.op
    if use.type.integral:
        return {"<": "min", ">": "max"}.get(op, op)
    return op


def _only_combined(axis: str, uses: list[Use]) -> bool:
    inside = [use for use in uses if axis in use.loops]
    updates = {_op(use) for use in inside if use.kind == "update"}
    return len(updates) == 1 and all(use.kind in ("update", "carried") for use in inside)


def _alone(axis: str, key: Key, accesses: dict[str, list[Access]], symbols: Symbols) -> bool:
    """Whether an element stays the same in a loop, and no other of its array is touched there."""
    if isinstance(key[0], Variable):
        return True
    _, array, offset = key
    if not array or axis in symbols.inside(offset) or not symbols.known(offset):
        return False
    others = [a for a in accesses.get(array, ()) if axis in a.loops]
    forms = {a.index for a in others}
    return len(forms) == 1 and None not in forms


def _start(uses: list[Use], first: Use, axes: tuple[str, ...]) -> Expr | None:
    """What the place holds before the loops: the last write before them, outside of them.

    A loop around them that does not write it anew begins them with what they left behind, and a
    branch that writes it may not be taken.
    """
    outer = axes[-1]
    before = uses[: uses.index(first)]
    writes = [use for use in before if use.kind in ("write", "update") and outer not in use.loops]
    if not writes or writes[-1].kind != "write":
        return None
    last, around = writes[-1], first.loops[: first.loops.index(outer)]
    certain = last.path == first.path[: len(last.path)]
    return last.value if certain and last.loops == around else None


def _spelled(key: Key) -> str:
    if isinstance(key[0], Variable):
        return ".".join([key[0].name, *key[1:]])
    return f"{key[1]}[{key[2]}]" if key[1] else "memory"
