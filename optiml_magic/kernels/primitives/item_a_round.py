"""P6, rounds that take several items a block apart take one item each, as others look for.

``for (i = blockIdx.x * 512 + threadIdx.x; i < n; i += 512 * gridDim.x) { add(x[i]); if (i + 256 <
n) add(x[i + 256]); }`` of blocks of 256 comes to each item once, and so does the loop from
``blockIdx.x * 256 + threadIdx.x`` in steps of ``256 * gridDim.x`` that adds one. Without a loop,
``s = i < n ? x[i] : 0; if (i + 256 < n) s += x[i + 256]; add(s);`` is done by twice the blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Choice,
    Expr,
    Literal,
    Name,
    Step,
    builtin,
    every,
)
from optiml_magic.kernels.functions import bare, pure
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.primitives.pruned import pruned
from optiml_magic.kernels.primitives.shaped import fixed_numbers, number_of
from optiml_magic.kernels.primitives.sizes import with_grid
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.symbols import THREADS, Compare
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
from optiml_magic.source.expressions import parse_expression

_ADDED = "the order of additions"


@primitive
def item_a_round(kernel: Kernel) -> Kernel:
    """The kernel whose last statement is such a loop, with an item in each round."""
    effects = Effects(kernel)
    effects.straightforward()
    own = [s for s in kernel.function.body.body if not isinstance(s, Blank)]
    if not loops_in(kernel.function.body):
        return _item_a_thread(kernel, effects, own)
    loop = own[-1]
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
        if not alike.guarded(part, parts[0], at, loop.test):
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


def _item_a_thread(kernel: Kernel, effects: Effects, own: Sequence[Statement]) -> Kernel:
    """The kernel without a loop whose threads add up two items, in twice as many blocks."""
    refused = NotLegal("its threads do not add up two items a block apart")
    match own[-3:]:
        case [
            Declare(
                variables=(Variable(value=Choice(test=Binary() as test, then=value, other=zero)),)
            ) as declared,
            If() as second,
            Evaluate(expression=Call(arguments=(_, Name() as added)) as call) as last,
        ] if test.op == "<" and isinstance(zero, Literal) and zero.value == 0:
            (total,) = declared.variables
        case _:
            raise refused
    counter = test.left.variable if isinstance(test.left, Name) else None
    width = kernel.block[0]
    if counter is None or counter.value is None or counter not in effects.lasting or not width:
        raise refused
    begin = Polynomial.constant(2 * width) * Polynomial.symbol("blockIdx.x")
    begin += Polynomial.symbol("threadIdx.x")
    name = Name(None, total.name, total)
    first = Evaluate(None, last.line, Assign(None, "+=", name, value))
    asking = [s for s in own if {counter, total} & effects.mentions(s)]
    kinds = {kernel.reading.types.get(e) for e in (value, added)}
    adds = [a for a in kernel.reading.accesses if a.mode != "load"]
    loads = [a for a in kernel.reading.accesses if a.node in {*every(value)}]
    if (
        added.variable is not total
        or len(kinds) != 1
        or None in kinds
        or not _Alike(kernel, counter, width).guarded(second, first, 1, test)
        or len([s for s in asking if s is not declared and not _declares(s, counter)]) != 2
        or counter in names([call])
        or [(a.node, a.mode, a.op) for a in adds] != [(call, "atomic", "+")]
        or any(effects.same(a.array, adds[0].array) for a in loads)
        or not loads
        or not all(_begins(kernel, a, begin) for a in loads)
        or len(kernel.launch.grid) > 1
        or kernel.block[1:] != (1, 1)
    ):
        raise refused
    alone = edited(last, {added: value})
    swaps: dict[Node, Node | None] = {
        counter.value: text(f"blockIdx.x * {width} + threadIdx.x"),
        declared: None, second: None, last: If(None, last.line, test, alone),
    }  # fmt: skip
    grid = (parse_expression(f"({kernel.launch.grid[0]}) * 2"),)
    made = kernel.rewritten(
        edited(kernel.function.body, swaps), launch=replace(kernel.launch, grid=grid)
    )
    made = with_grid(where_legal(pruned, made))
    return replace(made, arithmetic=tuple(dict.fromkeys((*made.arithmetic, _ADDED))))


def _declares(statement: Statement, variable: Variable) -> bool:
    return isinstance(statement, Declare) and variable in statement.variables


def _begins(kernel: Kernel, access: Access, begin: Polynomial) -> bool:
    """Whether an element is asked for where a size is beyond this place, and under no test else."""
    match access.guard:
        case (Compare(op=">=", form=form),):
            return not kernel.reading.symbols.inside(form + begin) & {"blockIdx.x", *THREADS}
    return False


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

    def guarded(self, part: Statement, first: Statement, at: int, test: Expr | None) -> bool:
        """Whether it does, where that item is there as the ``test`` asks for the other."""
        match part, test:
            case (
                If(before=None, other=None, test=Binary(op="<", left=item, right=end), then=then),
                Binary(op="<", left=Name(variable=own), right=bound),
            ) if own is self.counter and self._is_further(item, at) and same(end, bound):
                inner: Sequence[Statement] = then.body if isinstance(then, Block) else (then,)
                return len(inner) == 1 and self._statements(first, inner[0], at)
        return False

    def _statements(self, one: Statement, other: Statement, at: int) -> bool:
        match one, other:
            case (
                Evaluate(expression=Assign(op=op, target=Name(variable=own), value=ours)),
                Evaluate(expression=Assign(op=way, target=Name(variable=beside), value=theirs)),
            ):
                if op != way or own is not beside:
                    return False
            case Evaluate(expression=ours), Evaluate(expression=theirs):
                pass
            case _:
                return False
        return same(ours, theirs, also=lambda a, b: self._known(a, b, at))

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
