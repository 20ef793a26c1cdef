"""Counters from the middle of what they count: ``for (i = -r; i <= r; i++) x[at + i]``.

It was ``for (i = 0; i < 2 * r + 1; i++) x[at + i - r]``, where each round of a loop around asks for
other elements by the same counter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import Binary, Expr, Lambda, Name, Unary, Unread
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import is_counted, loops_in, names
from optiml_magic.kernels.primitives.growing import Nest, head_of
from optiml_magic.kernels.primitives.moving_ends import Ends, Range, range_of, spelled
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.primitives.scoped import quiet
from optiml_magic.kernels.tree import Loop, Variable, body_of, walk

_NONE = "no counter is moved by that of a loop around it"
_WORDS = (4, 8)  # bytes of numbers that are computed as they are kept
_WORD = re.compile(r"[A-Za-z_]\w*")


@primitive
def recentred(kernel: Kernel) -> Kernel:
    """The kernel with the counters of one nest of loops moved to the middle; there must be one."""
    why = NotLegal(_NONE)
    for outer in loops_in(kernel.function.body):
        for nest in (s for s in body_of(outer.body) if isinstance(s, Loop)):
            try:
                return _Shift(Nest(kernel, outer, nest)).written()
            except NotLegal as reason:
                if reason.reason != _NONE:
                    why = NotLegal(reason.reason, reason.line or nest.line)
    raise why


class _Shift:
    def __init__(self, nest: Nest) -> None:
        self.nest, self.kernel = nest, nest.kernel
        counter = nest.moving()
        if counter is None or type_of(self.kernel, counter).size not in _WORDS:
            raise NotLegal(_NONE)
        nest.step(counter)
        self.by, self.counter = Polynomial.symbol(counter.name), counter
        self.ends = Ends(self.kernel, counter, self._meaning)
        self.ranges = tuple(self._ranges())
        self.shifted = {one.counter for one in self.ranges}

    def _meaning(self, local: Variable) -> Expr | Variable | None:
        """What a local stands for; one of the nest is written anew where it is declared."""
        return local if local in self.nest.own else self.nest.meaning(local)

    def _ranges(self) -> Iterator[Range]:
        """The loops of the nest whose ends move with the counter of the loop around it."""
        for loop in loops_in(self.nest.nest):
            if self.counter not in {*self.nest.asked(head_of(loop))}:
                continue
            axis = self.kernel.axes().get(loop)
            own = axis.variable if axis is not None else None
            if axis is None or own is None or not is_counted(axis, self.nest.effects):
                raise NotLegal("a loop does not count in its head alone", loop.line)
            one = range_of(loop, own, (axis.step.value or 0) if axis.step is not None else 0)
            kind = type_of(self.kernel, own)
            if one is None or own in self.nest.effects.changed(loop.body):
                raise NotLegal("where a loop ends is not followed", loop.line)
            if kind != type_of(self.kernel, self.counter) or not kind.signed:
                raise NotLegal("two counters are of two types", loop.line)
            yield one

    def written(self) -> Kernel:
        """Raises NotLegal where the counter of the loop around does not go away so."""
        swaps, nest = dict[Node, Node](), self.nest.nest
        self.nest.effects.straightforward()
        ends_ = [end for one in self.ranges for end in (one.first, one.end)]
        heads = {e for one in self.ranges for e in head_of(one.loop)}
        tops = [e for s in walk(nest) for e in s.expressions if e not in heads]
        for local in self.nest.asked([*tops, *ends_]):
            if self.nest.hidden(local):
                raise NotLegal(f"`{local.name}` is the name of several locals", nest.line)
        for whole, node in ((top, part) for top in tops for part in self._sums(top)):
            form = self._moved(node)
            if self.counter.name in _words(form):
                raise NotLegal(f"what is summed depends on `{self.counter.name}`", nest.line)
            swaps[node] = Unread(None, spelled(form)) if node is whole else text(spelled(form))
        if not swaps or not self.ranges:
            raise NotLegal(_NONE)
        swaps |= {end: Unread(None, spelled(self._moved(end) - self.by)) for end in ends_}
        return self.kernel.rewritten(edited(self.kernel.function.body, swaps))

    def _moved(self, expr: Expr) -> Polynomial:
        """A sum where each counter of the nest is as much less as that around it counts."""
        if not self._is_sum(expr):
            raise NotLegal(f"what is summed depends on `{self.counter.name}`", self.nest.nest.line)
        form = self.ends.form(expr, self.by)
        for one in self.shifted & {*self.nest.asked([expr])}:  # no two of one name
            factor = form.coefficient(one.name)
            if factor is None:
                raise NotLegal(f"`{one.name}` is multiplied by itself", self.nest.nest.line)
            form = form + factor * self.by
        return form

    def _sums(self, expr: Expr) -> Iterator[Expr]:
        """The greatest sums in an expression that ask for a counter."""
        if not self._asks(expr):
            return
        if self._is_sum(expr):
            yield expr
            return
        if isinstance(expr, Name | Unread | Lambda):
            raise NotLegal(f"what is summed depends on `{self.counter.name}`", self.nest.nest.line)
        for part in expr.parts:
            yield from self._sums(part)

    def _asks(self, expr: Expr) -> bool:
        return any(self._moves(v) for v in names([expr]))

    def _moves(self, local: Variable) -> bool:
        """Whether a local is one of the counters, or stands for what has them in it."""
        if local in self.shifted or local is self.counter:
            return True
        meant = self._meaning(local)
        return isinstance(meant, Expr) and self._asks(meant)

    def _is_sum(self, expr: Expr) -> bool:
        """Whether an expression is a sum of products of whole numbers, as far as counters go."""
        kind = self.kernel.reading.types.get(expr)
        if kind is None or not (kind.integral and kind.signed and kind.size in _WORDS):
            return False
        match expr:
            case Name(variable=Variable() as own) if own is not self.counter:
                meant = self._meaning(own)
                return meant is not None and (not isinstance(meant, Expr) or self._is_sum(meant))
            case Binary(op="+" | "-" | "*", left=left, right=right):
                return self._is_sum(left) and self._is_sum(right)
            case Unary(op="-" | "+", operand=operand):
                return self._is_sum(operand)
        return isinstance(expr, Name) or (not self._asks(expr) and quiet(expr))


def _words(form: Polynomial) -> set[str]:
    return {word for name in form.symbols for word in _WORD.findall(name)}
