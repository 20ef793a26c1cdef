"""P6, rounds that take several items a block apart take one item each, as others look for.

``for (i = blockIdx.x * 512 + threadIdx.x; i < n; i += 512 * gridDim.x) { add(x[i]); if (i + 256 <
n) add(x[i + 256]); }`` of blocks of 256 comes to each item once, and so does the loop from
``blockIdx.x * 256 + threadIdx.x`` in steps of ``256 * gridDim.x`` that adds one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import edited, text
from optiml_magic.kernels.expressions import Assign, Binary, Call, Expr, Name, Step, builtin
from optiml_magic.kernels.functions import bare, pure
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.pruned import pruned
from optiml_magic.kernels.primitives.shaped import fixed_numbers, number_of
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    If,
    Loop,
    Statement,
    Variable,
)

_ADDED = "the order of additions"


@primitive
def item_a_round(kernel: Kernel) -> Kernel:
    """The kernel whose last statement is such a loop, with an item in each round."""
    effects = Effects(kernel)
    effects.straightforward()
    *_, loop = kernel.function.body.body or (None,)
    axis = kernel.axes().get(loop) if isinstance(loop, Loop) else None
    if not isinstance(loop, Loop) or axis is None or axis.variable is None:
        raise NotLegal("its last statement is not a loop over its items")
    width, times = _steps(kernel, axis)
    if not isinstance(loop.before, Declare) or len(loop.before.variables) != 1:
        raise NotLegal("its counter is declared elsewhere", loop.line)
    body = loop.body.body if isinstance(loop.body, Block) else (loop.body,)
    parts = [s for s in body if not isinstance(s, Blank)]
    if len(parts) != times or isinstance(parts[0], If):
        raise NotLegal("its rounds do not do the same for several items", loop.line)
    alike = _Alike(kernel, axis.variable, width)
    for at, part in enumerate(parts[1:], 1):
        if not alike.guarded(part, parts[0], at, loop):
            raise NotLegal("its rounds do not do the same for several items", part.line)
    _check_adds(effects, loop)
    kind = axis.variable.type.base
    begin = text(f"blockIdx.x * {width} + threadIdx.x")
    first = replace(axis.variable, value=begin, span=None)
    name = Name(None, axis.variable.name, axis.variable)
    new = replace(
        loop, span=None, head=None, before=Declare(None, loop.line, f"{kind} ", (first,)),
        update=Assign(None, "+=", name, text(f"gridDim.x * {width}")),
        body=Block(None, loop.line, (parts[0],)),
    )  # fmt: skip
    made = where_legal(pruned, kernel.rewritten(edited(kernel.function.body, {loop: new})))
    return replace(made, arithmetic=tuple(dict.fromkeys((*made.arithmetic, _ADDED))))


def _steps(kernel: Kernel, axis: Axis) -> tuple[int, int]:
    """The threads of a block, and how many items a round takes, this far apart."""
    width, by = kernel.block[0], axis.start.coefficient("blockIdx.x") if axis.start else None
    step = (by.value or 0) if by is not None else 0
    times = step // width if width else 0
    begin = Polynomial.constant(step) * Polynomial.symbol("blockIdx.x")
    begin += Polynomial.symbol("threadIdx.x")
    further = Polynomial.constant(step) * Polynomial.symbol("gridDim.x")
    whole = axis.exact and width and times > 1 and step == times * width
    if not whole or axis.start != begin or axis.step != further or kernel.block[1:] != (1, 1):
        raise NotLegal("its loop does not go on by several items of each thread", axis.line)
    if len(kernel.launch.grid) > 1:
        raise NotLegal("its grid has several axes", axis.line)
    return width or 1, times


def _check_adds(effects: Effects, loop: Loop) -> None:
    """Raise NotLegal where a round does more than to add to memory that it does not load."""
    if effects.changed(loop.body):
        raise NotLegal("something goes from round to round", loop.line)
    accesses = effects.accesses(loop)
    added = [a for a in accesses if a.mode != "load"]
    for access in added:
        loaded = any(a.mode == "load" and effects.same(a.array, access.array) for a in accesses)
        if access.mode != "atomic" or access.op != "+" or loaded:
            raise NotLegal("a round does more than to add", access.line)
    own = {a.own for a in accesses}
    for e in effects.inside(loop.body):
        if (
            isinstance(e, Call)
            and e not in own
            and not (e.callee is None and pure(bare(e.function)))
        ):
            raise NotLegal(f"`{e.function}` may do more than to compute", loop.line)
        if isinstance(e, Assign | Step) and e not in own:
            raise NotLegal("a round does more than to add", loop.line)


@dataclass(frozen=True)
class _Alike:
    """Whether a statement does for the item some blocks' width further what another does."""

    kernel: Kernel
    counter: Variable
    width: int

    def guarded(self, part: Statement, first: Statement, at: int, loop: Loop) -> bool:
        """Whether it does, where that item is there as the loop's test asks."""
        match part, loop.test:
            case (
                If(before=None, other=None, test=Binary(op="<", left=item, right=end), then=then),
                Binary(op="<", left=Name(variable=own), right=bound),
            ) if own is self.counter and self._is_further(item, at) and same(end, bound):
                inner: Sequence[Statement] = then.body if isinstance(then, Block) else (then,)
                return len(inner) == 1 and self._statements(first, inner[0], at)
        return False

    def _statements(self, one: Statement, other: Statement, at: int) -> bool:
        match one, other:
            case Evaluate(expression=ours), Evaluate(expression=theirs):
                return same(ours, theirs, also=lambda a, b: self._known(a, b, at))
        return False

    def _known(self, one: Expr, other: Expr, at: int) -> bool | None:
        if isinstance(one, Name) and one.variable is self.counter:
            return self._is_further(other, at)
        if isinstance(other, Name) and other.variable is self.counter:
            return False
        return None

    def _is_further(self, expr: Expr, at: int) -> bool:
        match expr:
            case Binary(op="+", left=Name(variable=own), right=more) if own is self.counter:
                return self._number(more) == at * self.width
            case Binary(op="+", left=more, right=Name(variable=own)) if own is self.counter:
                return self._number(more) == at * self.width
        return False

    def _number(self, expr: Expr) -> int | None:
        if builtin(expr) == "blockDim.x":
            return self.width
        match expr:
            case Binary(op="*", left=left, right=right):
                one, other = self._number(left), self._number(right)
                return one * other if one is not None and other is not None else None
        return number_of(expr, fixed_numbers(self.kernel))
