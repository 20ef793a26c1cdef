"""P5 undone: what a thread does one after the other, a block's height apart, threads do.

``for (j = 0; j < 32; j += 8) out[(y + j) * w + x] = ...`` in blocks of 8 rows is done by blocks of
32 rows without the loop, where nothing tells ``threadIdx.y`` and ``j`` apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Choice,
    Expr,
    Index,
    Name,
    builtin,
    every,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import every_place_read, without_warps
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in
from optiml_magic.kernels.primitives.grids import most_threads
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.symbols import Compare, Condition, Every, Some
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    walk,
)
from optiml_magic.source.expressions import parse_expression


@primitive
def uncoarsened(kernel: Kernel) -> Kernel:
    """The kernel whose one loop over rows of a block is done by as many threads."""
    effects = Effects(kernel)
    effects.straightforward()
    without_warps(kernel)
    every_place_read(kernel)
    loops = [s for s in kernel.function.body.body if isinstance(s, Loop)]
    axis = kernel.axes().get(loops[0]) if len(loops) == 1 else None
    if axis is None or not axis.exact or not axis.trips or not is_counted(axis, effects):
        raise NotLegal("it is not one loop of a number of rounds")
    if kernel.launch.shared is not None or loops_in(axis.node.body):
        raise NotLegal("the loop is not all that it does", axis.line)
    for name in "yxz":
        width = kernel.block["xyz".index(name)]
        if width is not None and _Rows(kernel, effects, axis, name, width).fits():
            return _Rows(kernel, effects, axis, name, width).made()
    raise NotLegal("its rounds are not rows of its block", axis.line)


class _Rows:
    def __init__(
        self, kernel: Kernel, effects: Effects, axis: Axis, along: str, width: int
    ) -> None:
        self.kernel, self.effects, self.axis, self.width = kernel, effects, axis, width
        self.along, self.loop = along, axis.node
        self.thread = f"threadIdx.{along}"

    def fits(self) -> bool:
        kernel, reading = self.kernel, self.kernel.reading
        threads = self.axis.trips or 0
        for size in kernel.block:
            threads *= size or 0
        if not 0 < threads <= most_threads(kernel) or self.axis.start is None:
            return False
        if self.axis.start.value is None or self.effects.changed(self.loop.body):
            return False
        if any(isinstance(s, Leave) for s in walk(self.loop.body)):
            return False
        inside = self.effects.inside(self.loop.body)
        stores = {a.array for a in reading.accesses if a.mode != "load"}
        for access in reading.accesses:
            if access.own not in inside or access.index is None or access.space != "global":
                return False
            moving = access.index.coefficient(self.axis.name)
            if access.mode != "load" and (moving is None or not moving.terms):
                return False
            if access.mode == "atomic" or access.call is not None:
                return False
            if access.mode == "load" and any(self.effects.same(access.array, s) for s in stores):
                return False
            own = [p for c in access.guard for p in c.conjuncts()]
            tests = [p for p in own if p not in {*self.axis.test.conjuncts()}]
            if not self._rows(access.index) or not all(map(self._tested, tests)):
                return False
        return self._alone()

    def _tested(self, condition: Condition) -> bool:
        match condition:
            case Compare(form=form):
                return self._rows(form)
            case Every(parts=parts) | Some(parts=parts):
                return all(map(self._tested, parts))
        return False

    def _rows(self, form: Polynomial) -> bool:
        """Whether a form has the row alone: the thread's place and the round, as one sum."""
        inside = self.kernel.reading.symbols
        by, turn = form.coefficient(self.thread), form.coefficient(self.axis.name)
        rest = form.without([self.thread, self.axis.name])
        hidden = {self.thread, self.axis.name} & inside.inside(rest)
        if by is None or turn is None or hidden or not inside.known(form):
            return False
        names = {self.thread, self.axis.name} & (by.symbols | turn.symbols)
        return not names and turn == by * Polynomial.constant(self.width)

    def _alone(self) -> bool:
        """Whether nothing but indices and tests asks for the row, or for a part of it."""
        told: set[Variable] = {v for v in (self.axis.variable,) if v is not None}
        every_one = [*walk(self.kernel.function.body)]
        for _ in every_one:
            before = len(told)
            for statement in every_one:
                told |= {v for v, e in _given(statement) if self._tells(e, told)}
            if len(told) == before:
                break
        allowed = {e for top in self._forms(every_one) for e in every(top)}
        for statement in every_one:
            given = {e for _, top in _given(statement) for e in every(top)}
            heads = {e for top in statement.expressions for e in every(top)} if (
                statement is self.loop or statement is self.loop.before
            ) else set[Expr]()  # fmt: skip
            for top in statement.expressions:
                for e in every(top):
                    target = isinstance(top, Assign) and e is top.target
                    if self._mentions(e, told) and e not in allowed | given | heads and not target:
                        return False
        return True

    def _forms(self, statements: list[Statement]) -> Iterator[Expr]:
        """What the reading has as forms: indices of what it follows, and tests of branches."""
        for access in self.kernel.reading.accesses:
            place = access.node.target if isinstance(access.node, Assign) else access.node
            if isinstance(place, Index):
                yield place.index
        for statement in statements:
            if isinstance(statement, If):
                yield statement.test
            for top in statement.expressions:
                yield from (e.test for e in every(top) if isinstance(e, Choice))

    def _mentions(self, e: Expr, told: set[Variable]) -> bool:
        return builtin(e) == self.thread or (isinstance(e, Name) and e.variable in told)

    def _tells(self, expr: Expr, told: set[Variable]) -> bool:
        return any(self._mentions(e, told) for e in every(expr))

    def made(self) -> Kernel:
        kernel, loop, at = self.kernel, self.loop, "xyz".index(self.along)
        assert self.axis.start is not None
        start, types = str(self.axis.start.value), kernel.reading.types
        swaps: dict[Node, Node | tuple[Statement, ...]] = {
            e: text(start) for e in self.effects.inside(loop.body)
            if isinstance(e, Name) and e.variable is self.axis.variable
        }  # fmt: skip
        if start == "0":
            for part in self.effects.inside(loop.body):
                match part:
                    case Binary(op="+", left=left, right=right) if right in swaps and types.get(
                        part
                    ) == types.get(left):
                        swaps[part] = left
        body = edited(loop.body, swaps)
        inner = body.body if isinstance(body, Block) else (body,)
        plain = not any(isinstance(s, Declare) for s in inner)
        whole: Node | tuple[Statement, ...] = inner if plain else Block(None, loop.line, inner)
        places: dict[Node, Node | tuple[Statement, ...]] = {loop: whole}
        for statement in walk(kernel.function.body):
            for top in statement.expressions:
                places |= {
                    e: text(str(self.width)) for e in every(top)
                    if builtin(e) == f"blockDim.{self.along}"
                }  # fmt: skip
        sizes = [
            *kernel.launch.block,
            *[parse_expression("1")] * (at + 1 - len(kernel.launch.block)),
        ]
        sizes[at] = parse_expression(str(self.width * (self.axis.trips or 1)))
        launch = replace(kernel.launch, block=tuple(sizes))
        return kernel.rewritten(edited(kernel.function.body, places), launch=launch)


def _given(statement: Statement) -> Iterator[tuple[Variable, Expr]]:
    """The locals that a statement gives a value, and that."""
    if isinstance(statement, Declare):
        yield from ((v, v.value) for v in statement.variables if v.value is not None)
    match statement:
        case Evaluate(
            expression=Assign(op="=", target=Name(variable=Variable() as v), value=value)
        ):
            yield v, value
