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
    Literal,
    Name,
    builtin,
    every,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import every_place_read, without_warps
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive, where_legal
from optiml_magic.kernels.primitives.counted import all_counted
from optiml_magic.kernels.primitives.cutting import cut, uses
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in
from optiml_magic.kernels.primitives.grids import most_threads
from optiml_magic.kernels.primitives.naming import numeral
from optiml_magic.kernels.primitives.places import bare, tops
from optiml_magic.kernels.primitives.rolled import rolled
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.reading import Access, Axis
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
from optiml_magic.kernels.types import CType, named
from optiml_magic.source.expressions import parse_expression

_EXTENT = named("unsigned int", {})
_DEEP = 4  # how many times products and sums without a part are looked for; ours


@primitive
def uncoarsened(kernel: Kernel) -> Kernel:
    """The kernel whose one loop over rows of a block is done by as many threads."""
    return _uncoarsened(kernel, "yxz")


@primitive
def thread_an_item(kernel: Kernel) -> Kernel:
    """The kernel whose threads take several items each, a block's width apart, as one for each."""
    kernel = where_legal(rolled, kernel.settled())
    if len(loops_in(kernel.function.body)) == 1:
        kernel = where_legal(all_counted, kernel, (0,))
    made = _uncoarsened(kernel, "xy")
    if any(uses(made, axis).parts for axis in "xy"[: len(made.launch.block)]):
        raise NotLegal("a thread would ask for more than the index of its item")
    return made


def _uncoarsened(kernel: Kernel, axes: str) -> Kernel:
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
    for name in axes:
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
        if self.axis.start is None or threads <= 0:
            return False
        if threads > most_threads(kernel) and (self.along != "x" or kernel.block[1:] != (1, 1)):
            return False
        if self.axis.start.value is None or self.effects.changed(self.loop.body):
            return False
        last = self.loop is kernel.function.body.body[-1]
        if not last and any(isinstance(s, Leave) for s in walk(self.loop.body)):
            return False
        if any(isinstance(s, Leave) and s.kind != "continue" for s in walk(self.loop.body)):
            return False
        inside = self.effects.inside(self.loop.body)
        stores = [a for a in reading.accesses if a.mode != "load"]
        for access in reading.accesses:
            if access.own not in inside or access.index is None or access.space != "global":
                return False
            moving = access.index.coefficient(self.axis.name)
            if access.mode != "load" and (moving is None or not moving.terms):
                return False
            if access.mode == "atomic" or access.call is not None:
                return False
            if access.mode == "load" and not all(self._apart(access, s) for s in stores):
                return False
            own = [p for c in access.guard for p in c.conjuncts()]
            tests = [p for p in own if p not in {*self.axis.test.conjuncts()}]
            if not self._rows(access.index) or not all(map(self._tested, tests)):
                return False
        return self._alone()

    def _apart(self, load: Access, store: Access) -> bool:
        """Whether a load does not ask for what another round stores."""
        own = load.array == store.array and load.index == store.index
        return own or not self.effects.same(load.array, store.array)

    def _tested(self, condition: Condition) -> bool:
        match condition:
            case Compare(form=form):
                return self._rows(form)
            case Every(parts=parts) | Some(parts=parts):
                return all(map(self._tested, parts))
        return False

    def _rows(self, form: Polynomial) -> bool:
        """Whether a form has the row alone: the thread's place and the round, as one sum."""
        symbols = self.kernel.reading.symbols
        by, turn = form.coefficient(self.thread), form.coefficient(self.axis.name)
        if by is None or turn is None or not symbols.known(form):
            return False
        names = {self.thread, self.axis.name}
        if names & (by.symbols | turn.symbols) or turn != by * Polynomial.constant(self.width):
            return False
        return all(
            symbols[name].kind == "operation" and all(map(self._rows, symbols[name].arguments))
            for name in form.symbols - names
            if names & symbols.inside(Polynomial.symbol(name))
        )

    def _alone(self) -> bool:
        """Whether nothing but indices and tests asks for the row, or for a part of it."""
        told: set[Variable] = {v for v in (self.axis.variable,) if v is not None}
        every_one = [*walk(self.kernel.function.body)]
        allowed = {e for top in self._forms(every_one) for e in every(top)}
        for _ in every_one:
            before = len(told)
            for statement in every_one:
                told |= {
                    v
                    for v, value in _given(statement)
                    if any(e not in allowed and self._mentions(e, told) for e in every(value))
                }
            if len(told) == before:
                break
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

    def made(self) -> Kernel:
        kernel, loop, at = self.kernel, self.loop, "xyz".index(self.along)
        width = self.width * (self.axis.trips or 1)
        swaps, hints = self._asked(width), hints_of(kernel, loop)
        for leave in walk(loop.body):
            if isinstance(leave, Leave):
                swaps[leave] = replace(leave, kind="return", span=None)
        body = edited(loop.body, swaps)
        inner = body.body if isinstance(body, Block) else (body,)
        plain = not any(isinstance(s, Declare) for s in inner)
        whole: Node | tuple[Statement, ...] = inner if plain else Block(None, loop.line, inner)
        sizes = [
            *kernel.launch.block,
            *[parse_expression("1")] * (at + 1 - len(kernel.launch.block)),
        ]
        sizes[at] = parse_expression(str(width))
        launch = replace(kernel.launch, block=tuple(sizes))
        made = kernel.rewritten(
            edited(kernel.function.body, {**swaps, loop: whole, **dict.fromkeys(hints)}),
            launch=launch,
        )
        return made if width <= most_threads(kernel) else _parted(made, self.along, self.width)

    def _asked(self, width: int) -> dict[Node, Node | tuple[Statement, ...] | None]:
        """What stands for the counter, and for the threads that a block had."""
        assert self.axis.start is not None
        start, types = str(self.axis.start.value), self.kernel.reading.types
        swaps = dict[Node, Node | tuple[Statement, ...] | None]()
        called = {
            v: s for s in walk(self.kernel.function.body)
            if isinstance(s, Declare) and len(s.variables) == 1 for v in s.variables
            if v.value is not None and builtin(bare(v.value)) == self.thread
            and v not in self.effects.changing
        }  # fmt: skip
        swaps |= dict.fromkeys(called.values())
        for statement in walk(self.kernel.function.body):
            for e in (e for top in statement.expressions for e in every(top)):
                if isinstance(e, Name) and e.variable is self.axis.variable:
                    swaps[e] = text(start)
                elif isinstance(e, Name) and e.variable in called:
                    swaps[e] = text(self.thread)
                elif builtin(e) == f"blockDim.{self.along}":
                    swaps[e] = numeral(self.width, _EXTENT)
        none: set[Node] = {
            e for e in swaps
            if start == "0" and isinstance(e, Name) and e.variable is self.axis.variable
        }  # fmt: skip
        for _ in range(_DEEP):
            for part in (e for top in tops(self.kernel.function.body) for e in every(top)):
                match part:
                    case Binary(op="*", left=left, right=right) if {left, right} & none:
                        none.add(part)
                        swaps[part] = text("0")
                    case Binary(op="+", left=left, right=right) if right in none:
                        if _wide(types.get(part)) == _wide(types.get(left)):
                            swaps[part] = edited(left, swaps)
                    case Binary(op="*") if (block := self._block(part, width)) is not None:
                        swaps[part] = Binary(None, "*", block, text(str(width)))
        return swaps

    def _block(self, expr: Expr, width: int) -> Expr | None:
        """The block's number, where a product of several numbers multiplies it by a width."""
        found, blocks, stack, parts = 1, list[Expr](), [expr], 0
        while stack:
            match part := stack.pop():
                case Binary(op="*", left=left, right=right):
                    stack += [left, right]
                    parts += 1
                case Literal(value=int(value)):
                    found *= value
                case _ if builtin(part) == f"blockDim.{self.along}":
                    found *= self.width
                case _ if builtin(bare(part)) == f"blockIdx.{self.along}":
                    blocks.append(part)
                case _:
                    return None
        return blocks[0] if found == width and len(blocks) == 1 and parts > 1 else None


def _wide(kind: CType | None) -> tuple[int | None, bool]:
    return (kind.size, kind.integral) if kind is not None else (None, False)


def _parted(kernel: Kernel, along: str, width: int) -> Kernel:
    """The kernel in blocks that a card takes."""
    made = cut(kernel, {along: width})
    if isinstance(made, Refused):
        raise NotLegal(made.reason, made.line)
    return made


def _given(statement: Statement) -> Iterator[tuple[Variable, Expr]]:
    """The locals that a statement gives a value, and that."""
    if isinstance(statement, Declare):
        yield from ((v, v.value) for v in statement.variables if v.value is not None)
    match statement:
        case Evaluate(
            expression=Assign(op="=", target=Name(variable=Variable() as v), value=value)
        ):
            yield v, value
