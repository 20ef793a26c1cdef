"""Whether the rounds that threads share meet in memory, whichever thread makes which of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from optiml_magic.kernels.expressions import Expr, Index
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.symbols import Compare

_ONE = Polynomial.constant(1)


def check_meetings(kernel: Kernel, told: Collection[Expr], rounds: Mapping[Expr, str]) -> None:
    """Raise NotLegal unless an element that is written belongs to one round, or to one thread.

    ``told`` are the stores that are known of, ``rounds`` the accesses in shared rounds with the
    counter of these.
    """
    effects, uniform = Effects(kernel), kernel.reading.uniform
    accesses = [a for a in kernel.reading.accesses if a.space in ("global", "shared")]
    for store in (a for a in accesses if a.mode != "load"):
        if store.node not in told:
            raise NotLegal("a store is not followed", store.line)
        if store.space == "shared":
            continue
        group = [a for a in accesses if effects.same(a.array, store.array)]
        if store.mode == "atomic":
            if any(a.mode != "atomic" for a in group):
                raise NotLegal("what it adds to it reads as well", store.line)
        elif store.node in rounds:
            elements = {_element(kernel, a, rounds.get(a.node, "")) for a in group}
            if len(elements) != 1 or None in elements:
                raise NotLegal("its rounds meet in memory", store.line)
        elif any(a.index is None or a.node in rounds or not uniform(a.index) for a in group):
            raise NotLegal("what one thread writes shared rounds meet", store.line)


def never_meet(kernel: Kernel, one: Access, other: Access) -> bool:
    """Whether two accesses of a thread never meet in one element, where both are made."""
    known, symbols = kernel.reading.symbols.known, kernel.reading.symbols
    alike = one.array == other.array and one.element == other.element
    if not alike or one.index is None or other.index is None:
        return False
    apart, given = one.index - other.index, (*one.guard, *other.guard)
    ranges = Ranges(given, symbols)
    sizes = (Polynomial.symbol(n) - _ONE for n in apart.symbols if symbols[n].kind == "scalar")
    lows = [Compare(">=", size, frozenset()) for size in sizes if ranges.nonnegative(size)]
    ranges = Ranges((*given, *lows), symbols)
    return known(apart) and any(ranges.nonnegative(by - _ONE) for by in (apart, -apart))


def first_base(expr: Index) -> Expr:
    """What an element is one of, through all of its indices."""
    base: Expr = expr
    while isinstance(base, Index):
        base = base.base
    return base


def _element(kernel: Kernel, access: Access, name: str) -> Polynomial | None:
    """Which element each round has for itself, over its first round; None where it has none."""
    form = access.index
    if form is None or access.mode == "atomic" or access.loops != (name,):
        return None
    by, step = form.coefficient("threadIdx.x"), form.coefficient(name)
    rest = form.without(["threadIdx.x", name])
    hidden = {"threadIdx.x", name} & kernel.reading.symbols.inside(rest)
    if by is None or step is None or not by.value or hidden or not kernel.reading.uniform(rest):
        return None
    return form - step * Polynomial.symbol(name)
