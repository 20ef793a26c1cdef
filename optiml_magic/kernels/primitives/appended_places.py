"""Where rounds store what they append to a list: each where no other does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from optiml_magic.errors import SourceError
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Cast,
    Expr,
    Index,
    Literal,
    Member,
    Name,
    every,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.primitives.grids import said_alike
from optiml_magic.kernels.primitives.rounds import moves
from optiml_magic.kernels.primitives.sizes import measured
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.spelling import Speller, Unspelled
from optiml_magic.kernels.tree import Declare, Statement, Variable, walk
from optiml_magic.source.expressions import parse_expression

_MET = "two rounds may store to one element"
_ONE = Polynomial.constant(1)
_STAYS = ("builtin", "scalar")


def places_apart(
    kernel: Kernel, effects: Effects, axis: Axis, count: Variable, work: Sequence[Statement]
) -> Iterator[str]:
    """The sizes by which no two rounds store to one element; NotLegal where they may."""
    inside = frozenset[Expr]().union(*(effects.inside(s) for s in work))
    stores = [a for a in effects.accesses(axis.node) if a.own in inside and a.mode != "load"]
    while stores:
        one = stores[0]
        group = [a for a in stores if effects.same(a.array, one.array)]
        stores = [a for a in stores if a not in group]
        if len(group) == 1 and count not in names([_place(one)]):
            if not moves(kernel, axis, one, axis.node):
                raise NotLegal(_MET, one.line)
        else:
            yield from _Places(kernel, effects, axis, count, work).apart(group)


class _Places:
    """Stores of a round to one array, each at a number of places times how long the list is."""

    def __init__(
        self, kernel: Kernel, effects: Effects, axis: Axis, count: Variable,
        work: Sequence[Statement],
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.effects = effects
        self.axis = axis
        self.count = count
        self.symbols = kernel.reading.symbols
        inner = {loop for s in work for loop in loops_in(s)}
        self.inner = {a.name: a for a in kernel.reading.axes if a.node in inner}
        self.counters = {a.variable for a in self.inner.values()}
        loop = axis.node
        declared = {v for s in walk(loop) if isinstance(s, Declare) for v in s.variables}
        self.changing = {*effects.changed(loop)} | declared | effects.changing & effects.lent

    def apart(self, group: Sequence[Access]) -> Iterator[str]:
        """The sizes by which each round has elements of its own."""
        first = group[0]
        if any(access.array != first.array for access in group):
            raise NotLegal(_MET, first.line)
        for access in group:
            self._check_written(access)
        forms = [a.offset for a in group if a.offset is not None]
        if len(forms) < len(group):
            raise NotLegal("where it appends is not followed", first.line)
        for name in self._candidates(forms[0]):
            by = {form.coefficient(name) for form in forms}
            own = by.pop()
            if own is None or by or any(
                name in self.symbols.inside(form.without([name])) for form in forms
            ):  # fmt: skip
                raise NotLegal(_MET, first.line)
            yield from self._wide(own, group, forms)

    def _candidates(self, form: Polynomial) -> list[str]:
        """The parts of an index that may be how long the list is."""
        around = {a.name for a in self.kernel.reading.axes} - {self.axis.name}
        found = [
            name for name in form.symbols
            if self.symbols[name].kind not in _STAYS and name not in around
        ]  # fmt: skip
        if not found:
            raise NotLegal("where it appends is not followed", self.axis.line)
        return found

    def _check_written(self, access: Access) -> None:
        """Raise NotLegal for an index with more in it that changes than how long the list is."""
        if not isinstance(access.node, Assign) or access.node.op != "=":
            raise NotLegal("where it appends is not followed", access.line)
        parts = [*every(access.node.target)]
        places = [e for e in parts if isinstance(e, Index)]
        named = [e for e in parts if isinstance(e, Name)]
        counted = [e for e in named if e.variable is self.count]
        others = {e.variable for e in named if e.variable is not None} - {self.count}
        casts = [e for e in parts if isinstance(e, Cast)]
        plain = all(
            isinstance(e, Name | Literal | Member | Index | Cast)
            or (isinstance(e, Binary) and e.op in ("+", "-", "*"))
            or self._steps(e)
            for e in parts
        )
        narrow = any(self.count in names([e]) for e in casts)
        if len(places) != 1 or len(counted) != 1 or not plain or narrow:
            raise NotLegal("where it appends is not followed", access.line)
        if others & self.changing - self.counters:
            raise NotLegal(_MET, access.line)

    def _steps(self, e: Expr) -> bool:
        return getattr(e, "op", "") == "++" and names([e]) == {self.count}

    def _wide(
        self, by: Polynomial, group: Sequence[Access], forms: Sequence[Polynomial]
    ) -> Iterator[str]:
        """The sizes by which what a round stores is not wider than its elements are apart."""
        first = forms[0].without([*self.inner])
        low = high = 0
        for access, form in zip(group, forms, strict=True):
            far = (form.without([*self.inner]) - first).value
            if far is None or not access.element.size:
                raise NotLegal(_MET, access.line)
            wide = access.element.size
            for name in form.symbols & {*self.inner}:
                own = form.coefficient(name)
                trips = self.inner[name].trips
                alone = own is not None and by.value is None and len(group) == 1
                if own is not None and alone and self._fills(own, by, access, form):
                    return
                if own is None or own.value is None or own.value < 0 or trips is None:
                    raise NotLegal(_MET, access.line)
                wide += own.value * max(trips - 1, 0)
            low, high = min(low, far), max(high, far + wide)
        if by.value is not None:
            if abs(by.value) < high - low:
                raise NotLegal(_MET, group[0].line)
            return
        size = group[0].element.size or 1
        stride = by.divided(size)
        if stride is None or high - low > size:
            raise NotLegal(_MET, group[0].line)
        yield from self._some(stride, group[0])

    def _fills(self, own: Polynomial, by: Polynomial, access: Access, form: Polynomial) -> bool:
        """Whether an inner loop stores no more than from one element of the list to the next."""
        names_ = form.symbols & {*self.inner}
        axis = self.inner[min(names_)]
        whole = len(names_) == 1 and own.value == access.element.size
        counts = axis.start is not None and axis.start.value == 0 and axis.step == _ONE
        return whole and counts and axis.stop is not None and axis.stop * own == by

    def _some(self, stride: Polynomial, access: Access) -> Iterator[str]:
        kernel = self.kernel
        if not Ranges((), self.symbols, sizes=True).nonnegative(stride):
            raise NotLegal(_MET, access.line)
        try:
            words = f"{Speller(self.symbols, {}).form(stride)} >= 1"
            condition = parse_expression(words)
            told = not {*condition.names} & self.effects.moved
            met = kernel.facts is not None and told and said_alike(kernel, condition.names)
            met = met and bool(measured(kernel, condition))
        except (SourceError, Unspelled):
            met = False
        if not met:
            raise NotLegal(_MET, access.line)
        yield str(condition)


def _place(access: Access) -> Expr:
    return access.node.target if isinstance(access.node, Assign) else access.node
