"""P3, fuse axes: a plane of threads that is walked as one contiguous index has one axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Binary, Expr, Index, Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import every_place_read, without_warps
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cutting import TOLD, uses
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.grids import form_of, needed, room
from optiml_magic.kernels.primitives.places import axis_of, bare, own_text_only, tops
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.kernels.tree import Block, Declare, If, Leave, Statement, Variable, walk
from optiml_magic.source.expressions import Expression, parse_expression

_Swaps = dict[Node, Node | tuple[Statement, ...] | None]
_ONE = Polynomial.constant(1)


@primitive
def flat(kernel: Kernel) -> Kernel:
    """Threads of two axes, each below its bound, as threads of one along the rows."""
    made = _Flattening(kernel.settled()).kernel()
    for access in made.reading.accesses:
        if access.index is not None and _apart(made, access.index):
            raise NotLegal("its rows and columns are asked for apart", access.line)
    return made


def _apart(made: Kernel, form: Polynomial) -> bool:
    """Whether an index tells a row or a column from the whole."""
    symbols = made.reading.symbols
    start = Polynomial.constant(made.block[0] or 1) * Polynomial.symbol("blockIdx.x")
    whole = Polynomial.symbol("threadIdx.x") + start
    for name in form.symbols:  # i % w is i - i / w * w
        symbol, by, quotient = symbols[name], form.coefficient(name), f"/{name[1:]}"
        if symbol.op == "%" and symbol.arguments[0] == whole and by is not None:
            if quotient not in form.symbols:
                return True
            row = symbol.arguments[1] * Polynomial.symbol(quotient)
            form = form - by * (Polynomial.symbol(name) - whole + row)
    inside = (symbols[name] for name in symbols.inside(form))
    return any(s.op in ("/", "%") and s.arguments[0] == whole for s in inside)


class _Flattening:
    def __init__(self, kernel: Kernel) -> None:
        self.old = kernel
        self.effects = effects = Effects(kernel)
        if len(kernel.launch.block) != 2 or len(kernel.launch.grid) != 2 or None in kernel.block:
            raise NotLegal("its launch does not have two axes")
        effects.straightforward()
        without_warps(kernel)
        own_text_only(kernel)
        every_place_read(kernel)
        if kernel.launch.shared is not None or kernel.reading.calls & set(TOLD):
            raise NotLegal("it has dynamic shared memory, or prints")
        self.places: dict[Expr, str] = {}
        counts: dict[str, Expression] = {}
        for axis in "xy":
            found = uses(kernel, axis)
            if found.parts or found.strides or not found.whole:
                raise NotLegal(f"a thread asks for more than its index along {axis}")
            self.places |= dict.fromkeys(found.whole, axis)
            count = needed(kernel, axis, loads=True)
            if count is None or form_of(count.tree, kernel.reading.symbols) is None:
                raise NotLegal("how many items there are its guards do not say")
            if count.names & effects.moved:
                raise NotLegal("how many items there are changes")
            counts[axis] = count
        self.columns, self.rows = counts["x"], counts["y"]
        self.holding: Mapping[Variable, str] = {
            v: axis for v in effects.lasting
            if v.value is not None and (axis := axis_of(kernel, v.value)) and not v.type.depth
        }  # fmt: skip
        self.index = kernel.fresh("at")

    def kernel(self) -> Kernel:
        old, at = self.old, self.index
        words = "int" if self._short() else "long long"
        block = "blockIdx.x" if words == "int" else f"({words})blockIdx.x"
        across = _bracketed(self.columns)
        swaps: _Swaps = {}
        for top in tops(old.function.body):
            self._swap(top, swaps)
        for place, axis in self.places.items():
            swaps.setdefault(place, text(f"({at} {'%' if axis == 'x' else '/'} {across})"))
        self._drop_guards(swaps)
        body = edited(old.function.body, swaps)
        count = f"{_bracketed(self.rows)} * {across}"
        first = lines(
            f"{words} {at} = {block} * blockDim.x + threadIdx.x;\n"
            f"if ({at} >= {count if words == 'int' else f'({words}){count}'}) return;"
        )
        kept = _asked(body.body, self.holding)
        threads = (old.block[0] or 1) * (old.block[1] or 1)
        launch = replace(
            old.launch,
            grid=(parse_expression(f"cdiv({count}, {threads})"),),
            block=(parse_expression(str(threads)),),
        )
        made = old.rewritten(replace(body, body=(first, *kept)), launch=launch)
        facts = made.facts
        if facts is None:
            return made
        blocks = facts.grid[0] * facts.grid[1]  # as many, or more than there will be
        return replace(made, facts=replace(facts, grid=(blocks, 1, 1), block=(threads, 1, 1)))

    def _short(self) -> bool:
        """Whether the kernel has the whole index in 32 bits: where that is right, so is ours."""
        width, height = self.old.block[0] or 1, self.old.block[1] or 1
        across = form_of(self.columns.tree, self.old.reading.symbols) or _ONE
        whole = {}
        for axis, extent in (("x", width), ("y", height)):
            start = Polynomial.symbol(f"blockIdx.{axis}") * Polynomial.constant(extent)
            whole[axis] = Polynomial.symbol(f"threadIdx.{axis}") + start
        index = whole["y"] * across + whole["x"]
        for access in self.old.reading.accesses:
            by = access.index.coefficient("threadIdx.x") if access.index is not None else None
            if access.index is None or by is None or not by.value or by.value < 0:
                continue
            if not isinstance(access.node, Index) and access.mode == "load":
                continue
            rest = access.index - by * index
            node = access.node if isinstance(access.node, Index) else None
            target = getattr(access.node, "target", None)
            node = target if isinstance(target, Index) else node
            kind = self.old.reading.types.get(node.index) if node is not None else None
            if rest.value is not None and rest.value >= 0 and kind is not None and kind.size == 4:
                return True
        return False

    def _is(self, expr: Expr, axis: str) -> bool:
        plain = bare(expr)
        if isinstance(plain, Name) and plain.variable is not None:
            return self.holding.get(plain.variable) == axis
        return axis_of(self.old, expr) == axis

    def _swap(self, expr: Expr, swaps: _Swaps) -> None:
        """Exchange each row times the columns, plus a column."""
        if isinstance(expr, Binary) and expr.op == "+":
            for column, start in ((expr.left, expr.right), (expr.right, expr.left)):
                if self._is(column, "x") and self._starts(bare(start)):
                    swaps[expr] = text(self.index)
                    return
        for part in expr.parts:
            self._swap(part, swaps)

    def _starts(self, expr: Expr) -> bool:
        if not isinstance(expr, Binary) or expr.op != "*":
            return False
        return any(
            self._is(row, "y") and isinstance(bare(by), Name) and bare(by).name == self.columns.name  # type: ignore[attr-defined]
            for row, by in ((expr.left, expr.right), (expr.right, expr.left))
        )  # fmt: skip

    def _drop_guards(self, swaps: _Swaps) -> None:
        """Put what the guards of both axes hold in their place."""
        bounds = []
        counts = (self.columns, self.rows)
        for axis, count, width in zip("xy", counts, self.old.block, strict=False):
            form = form_of(count.tree, self.old.reading.symbols)
            assert form is not None
            bounds.append(room(axis, width or 1, form))

        def bounding(condition: Condition) -> bool:
            parts = [*condition.conjuncts()]
            return all(isinstance(p, Compare) and p.op == ">=" and p.form in bounds for p in parts)

        guards = {g.test: g.condition for g in self.old.reading.guards if not g.loops}
        for branch in reversed([*walk(self.old.function.body)]):  # the innermost first
            if not isinstance(branch, If) or branch.test not in guards or branch.other is not None:
                continue
            held = guards[branch.test]
            if _leaves(branch) and (bounding(held) or bounding(~held)):
                swaps[branch] = None
            elif bounding(held):
                inside = edited(branch.then, swaps)
                swaps[branch] = inside.body if isinstance(inside, Block) else inside


def _leaves(branch: If) -> bool:
    inner = branch.then.body if isinstance(branch.then, Block) else (branch.then,)
    return len(inner) == 1 and isinstance(inner[0], Leave) and inner[0].kind == "return"


def _bracketed(size: Expression) -> str:
    words = str(size)
    return words if size.name is not None or words.isdigit() else f"({words})"


def _asked(body: tuple[Statement, ...], holding: Mapping[Variable, str]) -> list[Statement]:
    """The statements without the declarations of rows and columns that nobody asks for."""
    own = {v.name for v in holding}
    asked = names(e for s in body for w in walk(s) for e in w.expressions)
    found: list[Statement] = []
    for statement in body:
        kept: Statement = replace(statement, lead=None)
        if isinstance(statement, Declare):
            left = tuple(v for v in statement.variables
                         if v.name not in own or v.name in {a.name for a in asked})  # fmt: skip
            if not left:
                continue
            if left != statement.variables:
                kept = replace(statement, variables=left, span=None, lead=None)
        found.append(kept)
    return found
