"""P5 undone: rounds in which a thread makes one item after the other, as threads of more blocks.

``for (c = 0; c < 4; ++c) out[...][blockIdx.x * 128 + c * 32 + threadIdx.x] = ...`` of blocks of 32
threads is done by four times as many blocks without the loop, and so is
``blockIdx.x * 128 + threadIdx.x * 4 + c``, where nothing tells block, thread and round apart. A
round may have loops of its own; ``uncoarsened`` is for those that have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Index,
    Name,
    Step,
    Unary,
    builtin,
    every,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import every_place_read, without_warps
from optiml_magic.kernels.primitives.base import (
    Kernel,
    NotLegal,
    Refused,
    in_turn,
    primitive,
    where_legal,
)
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in
from optiml_magic.kernels.primitives.enlisted import enlisted
from optiml_magic.kernels.primitives.guarded import guarded
from optiml_magic.kernels.primitives.in_rows import in_rows
from optiml_magic.kernels.primitives.limits import limits
from optiml_magic.kernels.primitives.places import own_text_only
from optiml_magic.kernels.primitives.recomputed import found_again
from optiml_magic.kernels.primitives.shaped import fixed_numbers, number_of, planar
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.primitives.stored_apart import stored_apart
from optiml_magic.kernels.primitives.unjammed import unjammed
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.symbols import Compare, Condition, Every, Some
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Loop,
    Statement,
    Variable,
    walk,
)
from optiml_magic.kernels.types import named
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import Call as SizeCall
from optiml_magic.source.expressions import Expression, parse_expression

_MOST = 65535  # blocks along y and z
_WORD = 4  # bytes that hold the number of an item
_LOSING = frozenset({"/", "%", ">>", "&", "|", "^", "~"})
_TOLD = frozenset({"printf", "assert", "__assert_fail", "__trap"})


@primitive
def dispersed(kernel: Kernel) -> Kernel:
    """The kernel whose one loop over items of a thread is done by as many blocks more."""
    effects = Effects(kernel)
    effects.straightforward()
    without_warps(kernel)
    every_place_read(kernel)
    own_text_only(kernel)
    if kernel.reading.calls & _TOLD:
        raise NotLegal("it prints, which tells which threads there are")
    every_loop = loops_in(kernel.function.body)
    inner = {deeper for loop in every_loop for deeper in loops_in(loop.body)}
    loops = [loop for loop in every_loop if loop not in inner]
    axis = kernel.axes().get(loops[0]) if len(loops) == 1 else None
    if axis is None or not axis.exact or not axis.trips or not is_simple(axis, effects):
        raise NotLegal("it is not one loop of a number of rounds")
    asked = stored_apart(kernel, effects, axis)
    for at, name in enumerate("xyz"[: len(kernel.launch.grid)]):
        width = kernel.block[at]
        for beside in () if width is None else (True,) if width == 1 else (False, True):
            items = _Items(kernel, axis, name, width or 1, beside=beside)
            if items.fit():
                return items.made(asked)
    raise NotLegal("its rounds are not items of more blocks", axis.line)


@primitive
def item_a_thread(kernel: Kernel) -> Kernel:
    """The kernel whose threads have several results in a local array, with a thread for each.

    Rows and columns that threads keep of what these are made of are loaded where they are used.
    """
    own = found_again(where_legal(in_rows, where_legal(enlisted, kernel)))
    made = unjammed(own)
    if isinstance(made, Kernel):
        rows = unjammed(made)  # of results along two axes
        steps = (dispersed, dispersed) if isinstance(rows, Kernel) else (dispersed,)
        made = in_turn(where_legal(planar, rows if isinstance(rows, Kernel) else made), steps)
    if isinstance(made, Refused):
        raise NotLegal(made.reason, made.line)
    return where_legal(guarded, made)


@dataclass(frozen=True, eq=False)
class _Items:
    """Rounds that are a block's ``width`` apart ``along`` an axis, or each ``beside`` the next."""

    kernel: Kernel
    axis: Axis
    along: str
    width: int
    beside: bool

    @property
    def _thread(self) -> str:
        return f"threadIdx.{self.along}"

    @property
    def _block(self) -> str:
        return f"blockIdx.{self.along}"

    @property
    def _rounds(self) -> int:
        return self.axis.trips or 1

    # -- what makes it legal

    def fit(self) -> bool:
        facts, at = self.kernel.facts, "xyz".index(self.along)
        if at and facts is not None and facts.grid[at] * self._rounds > _MOST:
            return False
        return all(map(self._followed, self.kernel.reading.accesses)) and self._alone()

    def _followed(self, access: Access) -> bool:
        tests = [p for c in access.guard for p in c.conjuncts()]
        for own in self.axis.test.conjuncts():  # once: what a round tests of its own is a test
            if own in tests:
                tests.remove(own)
        known = access.index is not None and self._whole(access.index)
        return known and all(map(self._tested, tests))

    def _tested(self, condition: Condition) -> bool:
        match condition:
            case Compare(form=form):
                return self._whole(form)
            case Every(parts=parts) | Some(parts=parts):
                return all(map(self._tested, parts))
        return False

    def _whole(self, form: Polynomial) -> bool:
        """Whether a form has block, thread and round as one sum: the number of the item."""
        symbols, names = self.kernel.reading.symbols, (self._block, self._thread, self.axis.name)
        parts = [form.coefficient(name) for name in names]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts) or not symbols.known(form):
            return False
        if any({*names} & part.symbols for part in known):
            return False
        block, thread, turn = known
        unit = turn if self.beside else thread
        factors = {
            self._block: self._rounds * self.width,
            self._thread: self._rounds if self.beside else 1,
            self.axis.name: 1 if self.beside else self.width,
        }
        for name, part in zip(names, (block, thread, turn), strict=True):
            if name == self._thread and self.width == 1 and not part.terms:
                continue
            if part != unit * Polynomial.constant(factors[name]):
                return False
        return all(
            symbols[name].kind == "operation" and all(map(self._whole, symbols[name].arguments))
            for name in form.symbols - {*names}
            if {*names} & symbols.inside(Polynomial.symbol(name))
        )

    def _alone(self) -> bool:
        """Whether nothing but indices and tests asks for a part of the item's number."""
        told: set[Variable] = {v for v in (self.axis.variable,) if v is not None}
        statements = [*walk(self.kernel.function.body)]
        allowed = {e for top in self._forms(statements) for e in every(top)}
        for _ in statements:
            before = len(told)
            for statement in statements:
                for variable, value in _given(statement):
                    if any(e not in allowed and self._asks(e, told) for e in every(value)):
                        told.add(variable)
            if len(told) == before:
                break
        if any(isinstance(e, Assign | Step) for e in allowed):
            return False
        if any(self._narrows(v) for v in told) or any(
            isinstance(e, Binary | Call | Cast | Unary) and self._loses(e, told)
            for s in statements for top in s.expressions for e in every(top)
        ):  # fmt: skip
            return False
        if len(self._widths(statements, told)) > 1:
            return False
        heads = {
            e for top in (*self.axis.node.expressions, *_begun(self.axis.node)) for e in every(top)
        }
        given = {e for s in statements for _, top in _given(s) for e in every(top)}
        return not any(
            self._asks(e, told) and e not in allowed | given | heads
            for s in statements for top in s.expressions for e in every(top)
        )  # fmt: skip

    def _narrows(self, variable: Variable) -> bool:
        """Whether a local that holds a part of an item's number may not hold all of it."""
        kind = named(variable.type.base, self.kernel.unit.aliases)
        whole = kind.integral and kind.lanes == 1 and (kind.size or 0) >= _WORD
        return variable.type.reference or not (whole or variable.type.depth)

    def _widths(self, statements: list[Statement], told: set[Variable]) -> set[int | None]:
        """The bytes in which parts of the number are multiplied by sizes.

        Where those of the block have more, as in ``(size_t)blockIdx.y * 64 * n``, those of thread
        and round may not hold what was the block's.
        """
        fixed, found = fixed_numbers(self.kernel), set[int | None]()
        for e in (e for s in statements for top in s.expressions for e in every(top)):
            if isinstance(e, Binary) and e.op == "*":
                sides = [any(self._asks(p, told) for p in every(side)) for side in e.parts]
                numbers = [number_of(side, fixed) is not None for side in e.parts]
                if any(sides) and not any(numbers):
                    kind = self.kernel.reading.types.get(e)
                    found.add(kind.size if kind is not None else None)
        return found

    def _loses(self, expr: Binary | Call | Cast | Unary, told: set[Variable]) -> bool:
        """Whether a conversion, or a function, is given a part of the number and may lose it.

        Of a quotient, or of bits, the reading may know that they are 0 as long as it is a part.
        """
        if isinstance(expr, Binary | Unary) and expr.op not in _LOSING:
            return False
        if not any(self._asks(e, told) for e in every(expr) if e is not expr):
            return False
        kind = self.kernel.reading.types.get(expr)
        whole = kind is not None and kind.integral and not kind.depth and (kind.size or 0) >= _WORD
        return not isinstance(expr, Cast) or not whole

    def _forms(self, statements: list[Statement]) -> Iterator[Expr]:
        """What the reading has as forms: elements of what it follows, and tests of branches."""
        for access in self.kernel.reading.accesses:
            place = access.node.target if isinstance(access.node, Assign) else access.node
            if isinstance(place, Index) and isinstance(place.base, Name):
                yield place
        reading = self.kernel.reading
        own = {access.own for access in reading.accesses}
        unlike = {g.test for g in reading.guards if not self._tested(g.condition)}
        yield from {g.test for g in reading.guards} - unlike
        for e in (e for s in statements for top in s.expressions for e in every(top)):
            if isinstance(e, Choice) and not own.isdisjoint({*every(e.then), *every(e.other)}):
                yield e.test

    def _asks(self, e: Expr, told: set[Variable]) -> bool:
        own = (self._thread, self._block, f"gridDim.{self.along}")
        return builtin(e) in own or (isinstance(e, Name) and e.variable in told)

    # -- what is made

    def made(self, asked: list[RequireDirective]) -> Kernel:
        kernel, loop, at = self.kernel, self.axis.node, "xyz".index(self.along)
        variable = self.axis.variable
        assert variable is not None
        index = f"({self._block} * {self.width} + {self._thread})"
        kind = variable.type.base
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
        for e in (e for s in walk(kernel.function.body) for t in s.expressions for e in every(t)):
            if builtin(e) == self._block:
                swaps[e] = text("0u")
            elif builtin(e) == self._thread:
                swaps[e] = text("0u" if self.beside else index)
            elif isinstance(e, Name) and e.variable is variable:
                own = index if self.beside else "0"
                swaps[e] = text(own if own == "0" and kind == "int" else f"({kind}){own}")
        swaps |= dict.fromkeys(hints_of(kernel, loop))
        body = edited(loop.body, swaps)
        inner = body.body if isinstance(body, Block) else (body,)
        swaps[loop] = inner if self._opens(inner) else Block(None, loop.line, inner)
        grid = list(kernel.launch.grid)
        items = f"({_quotient(grid[at])}) * {self._rounds * self.width}"
        grid[at] = parse_expression(f"{items} / {self.width}" if self.width > 1 else items)
        launch = replace(kernel.launch, grid=tuple(grid))
        return kernel.rewritten(
            edited(kernel.function.body, swaps), launch=launch,
            directives=[*asked, *limits(kernel, launch)],
        )  # fmt: skip

    def _opens(self, inner: tuple[Statement, ...]) -> bool:
        """Whether what a round declares may stand in the kernel itself."""
        function, loop = self.kernel.function, self.axis.node
        inside = {*walk(loop)}
        own = {v.name for s in inner if isinstance(s, Declare) for v in s.variables}
        around = {p.name for p in function.parameters} | {
            v.name for s in walk(function.body) if isinstance(s, Declare) and s not in inside
            for v in s.variables
        }  # fmt: skip
        ends = any(isinstance(s, Block) and s.body[-1:] == (loop,) for s in walk(function.body))
        return not own & around and (not own or ends)


def _quotient(size: Expression) -> str:
    """A number of blocks in words that a kernel can say as well."""
    match size.tree:
        case SizeCall("cdiv", (top, by)) if not Expression(by, "").names:
            width = Expression(by, "").evaluate({})
            return f"({Expression(top, '')} + {width - 1}) / {width}"
    return str(size)


def _begun(loop: Loop) -> tuple[Expr, ...]:
    return loop.before.expressions if loop.before is not None else ()


def _given(statement: Statement) -> Iterator[tuple[Variable, Expr]]:
    """The locals that a statement declares, and what they begin with."""
    if isinstance(statement, Declare):
        yield from ((v, v.value) for v in statement.variables if v.value is not None)
