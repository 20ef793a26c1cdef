"""Rounds that store apart: whether those of a loop may be done in any order, and by others."""

from __future__ import annotations

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.grids import said_alike
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.tree import Leave, walk
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import Binary as SizeBinary
from optiml_magic.source.expressions import Call as SizeCall
from optiml_magic.source.expressions import Name as SizeName
from optiml_magic.source.expressions import Node as SizeNode
from optiml_magic.source.expressions import Number, parse_expression


def stored_apart(kernel: Kernel, effects: Effects, axis: Axis) -> list[RequireDirective]:
    """What rounds that store apart ask of sizes.

    Raises NotLegal where they do not, or are not all that is done.
    """
    asked = dict[str, None]()
    loop, reading = axis.node, kernel.reading
    if kernel.launch.shared is not None or effects.changed(loop.body) or effects.kept(loop):
        raise NotLegal("something goes from round to round", axis.line)
    if any(isinstance(s, Leave) for s in walk(loop)):
        raise NotLegal("a round is left", axis.line)
    inside = effects.inside(loop.body)
    stores = [a for a in reading.accesses if a.mode != "load"]
    for access in reading.accesses:
        if access.own not in inside or access.index is None or access.space != "global":
            raise NotLegal("the loop is not all that it does", access.line)
        if access.mode == "atomic" or access.call is not None:
            raise NotLegal("what its rounds do is not followed", access.line)
        if access.mode == "store":
            moving = access.index.coefficient(axis.name)
            apart = _apart(kernel, axis, access)
            if moving is None or apart is None or not _is_some(kernel, access, moving):
                raise NotLegal("rounds store to one element", access.line)
            asked |= dict.fromkeys(apart)
        for store in stores:
            own = access.array == store.array and access.index == store.index
            if not own and effects.same(access.array, store.array):
                raise NotLegal("a round may ask for what another stores", access.line)
    return [RequireDirective(parse_expression(words)) for words in asked]


def _apart(kernel: Kernel, axis: Axis, access: Access) -> tuple[str, ...] | None:
    """What sizes are asked so that rounds go to other elements each; None where they may not.

    What moves in a round by numbers, as a loop over the results of a row, must not come as far as
    the next round.
    """
    form, symbols = access.index, kernel.reading.symbols
    by = form.coefficient(axis.name) if form is not None else None
    if form is None or by is None or not symbols.known(form):
        return None
    moving, reach = {a.name: a for a in kernel.reading.axes}, 0
    for name in form.symbols - {axis.name}:
        if not {*moving} & symbols.inside(Polynomial.symbol(name)):
            continue
        inner, each = moving.get(name), form.coefficient(name)
        if inner is None or not inner.exact or not inner.trips or each is None:
            return None
        begin, step = (p.value if p is not None else None for p in (inner.start, inner.step))
        if each.value is None or begin is None or step is None:
            return None
        reach += abs(each.value * step) * (inner.trips - 1)
    if not reach or Ranges(access.guard, symbols).nonnegative(by - Polynomial.constant(reach + 1)):
        return ()
    size = next(iter(by.symbols)) if len(by.symbols) == 1 else ""
    if size not in {p.name for p in kernel.function.parameters} or not said_alike(kernel, [size]):
        return None
    return (f"{size} > {reach}",) if by == Polynomial.symbol(size) else None


def _is_some(kernel: Kernel, access: Access, factor: Polynomial) -> bool:
    """Whether a factor is not 0 where something is stored, or where there are blocks at all."""
    one, symbols = Polynomial.constant(1), kernel.reading.symbols
    ranges = Ranges(access.guard, symbols)
    if len(factor.terms) != 1:
        return bool(factor.terms) and ranges.nonnegative(factor - one)
    return all(
        ranges.nonnegative(Polynomial.symbol(name) - one)
        or (said_alike(kernel, [name]) and any(_empty(s.tree, name) for s in kernel.launch.grid))
        for name in factor.symbols
    )


def _empty(size: SizeNode, name: str) -> bool:
    """Whether a number of blocks is 0 where a size is."""
    match size:
        case SizeName(name=own):
            return own == name
        case SizeBinary("*", left, right):
            return _empty(left, name) or _empty(right, name)
        case SizeBinary("/", SizeBinary("+", left, Number(more)), Number(by)) if 0 <= more < by:
            return _empty(left, name)
        case SizeBinary("/", SizeBinary("-", SizeBinary("+", left, more), Number(1)), by):
            return more == by and _empty(left, name)
        case SizeBinary("/", left, _) | SizeCall("cdiv", (left, _)):
            return _empty(left, name)
    return False
