"""P4, lines apart: a plane of threads whose rows, or columns, have nothing to do with each other.

A block of 32 x 8 threads that brings eight rows of a matrix to one sum each, or of 32 x 32 that
does so with as many columns, is a block for each of them: shared memory has a line for each, which
no other line of threads asks for, and all wait for each other for the sake of their own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import (
    Binary,
    Expr,
    Index,
    Literal,
    Member,
    Name,
    builtin,
    every,
)
from optiml_magic.kernels.functions import BLOCK_BARRIERS, LANES
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import every_place_read
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cutting import TOLD
from optiml_magic.kernels.primitives.effects import Effects, declared_in, is_counted
from optiml_magic.kernels.primitives.places import own_text_only, tops
from optiml_magic.kernels.primitives.sizes import whole_number, with_grid
from optiml_magic.kernels.primitives.whole_numbers import WholeNumbers, is_below, launched_for
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.tree import Declare, Variable, expressions, walk
from optiml_magic.source.expressions import Expression, Number, parse_expression

_WARP = 32
_AXES, _THREAD = "xy", "threadIdx.x"
_NO_LINES = "its lines are not those of its blocks along one axis"
_NONE = Literal(None, "0", 0)
_FLAT = 2  # of an array of one extent, in which lines have one part after the other


@primitive
def lines_apart(kernel: Kernel) -> Kernel:
    """The kernel with a block for each line of threads that shares nothing with another."""
    if not any(a.space == "shared" for a in kernel.reading.accesses):
        raise NotLegal("its threads share no memory")
    wide, high, deep = kernel.block
    if wide is None or high is None or deep != 1 or 1 in (wide, high):
        raise NotLegal("its blocks have no fixed extents along two axes")
    if not all(isinstance(size.tree, Number) for size in kernel.launch.block):
        raise NotLegal("its blocks have no fixed extents along two axes")
    if kernel.launch.shared is not None or kernel.reading.calls & set(TOLD):
        raise NotLegal("it has dynamic shared memory, or prints")
    if kernel.reading.calls & BLOCK_BARRIERS - {"__syncthreads"}:
        raise NotLegal("its block agrees on something as it waits")
    own_text_only(kernel)
    every_place_read(kernel)
    reasons = list[NotLegal]()
    for across in ("y", "x"):
        try:
            return _Lines(kernel, across).kernel()
        except NotLegal as reason:
            reasons.append(reason)
    raise next((r for r in reasons if r.reason != _NO_LINES), reasons[0])


class _Lines:
    """Lines of threads that differ in their place ``across`` the other axis."""

    def __init__(self, kernel: Kernel, across: str) -> None:
        self.old, self.across = kernel, across
        self.along = "y" if across == "x" else "x"
        self.numbers, self.effects = WholeNumbers(kernel), Effects(kernel)
        named = (*declared_in(kernel.function.body), *kernel.function.parameters)
        self.hidden = {n for n, count in Counter(v.name for v in named).items() if count > 1}
        self.counters = {
            axis.variable for axis in kernel.reading.axes
            if axis.variable is not None and (is_counted(axis, self.effects) or axis.scaled)
        }  # fmt: skip
        extents = dict(zip(_AXES, (kernel.block[0] or 0, kernel.block[1] or 0), strict=True))
        self.lines, self.width = extents[across], extents[self.along]
        lanes = any(map(LANES.fullmatch, kernel.reading.calls))
        if lanes and (self.width != _WARP or across == "x"):
            raise NotLegal("its lanes exchange values beyond their line")
        found = {axis for e in expressions(kernel.function.body) if (axis := self._item(e))}
        if len(found) != 1:
            raise NotLegal(_NO_LINES)
        (self.blocks,) = found
        asked = {builtin(e) for e in expressions(kernel.function.body)}
        alone = kernel.launch.grid[0].tree == Number(1) and not {"blockIdx.x", "gridDim.x"} & asked
        self.block = "blockIdx.x" if alone else f"blockIdx.{self.blocks}"
        self.flat = set[Index]()
        self.dims = self._shared_dims()
        self._check_global()

    def kernel(self) -> Kernel:
        old, launch = self.old, self.old.launch
        swaps: dict[Node, Node] = {}
        for top in tops(old.function.body):
            self._swap(top, swaps)
        for statement in walk(old.function.body):
            if isinstance(statement, Declare) and any(v in self.dims for v in statement.variables):
                own = tuple(self._line_of(v) for v in statement.variables)
                swaps[statement] = replace(statement, variables=own, span=None)
        given = launch.grid[_AXES.index(self.blocks)]
        block = (parse_expression(str(self.width)),)
        body = edited(old.function.body, swaps)
        grid = self._grid(f"({given}) * {self.lines}")
        made = old.rewritten(body, launch=replace(launch, grid=grid, block=block))
        widths = (Number(self.lines), launch.block[_AXES.index(self.across)].tree)
        for count in launched_for(old, given.tree, widths, self.lines):
            if is_below(made, count, self.block):
                grid = self._grid(str(Expression(count, "")))
                made = made.rewritten(made.function.body, launch=replace(made.launch, grid=grid))
                break
        return with_grid(made)

    def _grid(self, lines: str) -> tuple[Expression, ...]:
        """The grid with as many blocks where the blocks of lines were, along x if they may."""
        given, at = self.old.launch.grid, _AXES.index(self.blocks)
        grid = [*given[:at], parse_expression(lines), *given[at + 1 :]]
        if self.block != f"blockIdx.{self.blocks}":
            grid[:2] = [grid[1], grid[0]]
        return tuple(grid)

    def _item(self, expr: Expr) -> str:
        """The axis of whose blocks an expression is the number of a line: ``block * 8 + line``."""
        whole = self.numbers.bare(expr)
        if not isinstance(whole, Binary) or whole.op != "+":
            return ""
        for line, first in ((whole.left, whole.right), (whole.right, whole.left)):
            start = self.numbers.meant(first)
            if not self._is_line(line) or not isinstance(start, Binary) or start.op != "*":
                continue
            for block, by in ((start.left, start.right), (start.right, start.left)):
                name, _, axis = builtin(self.numbers.meant(block)).partition(".")
                if name == "blockIdx" and axis in _AXES and self._is_lines(by):
                    return axis
        return ""

    def _is_line(self, expr: Expr) -> bool:
        return builtin(self.numbers.meant(expr)) == f"threadIdx.{self.across}"

    def _is_lines(self, expr: Expr) -> bool:
        """Whether this is how many lines a block has."""
        plain = self.numbers.meant(expr)
        known = whole_number(self.old, plain) == self.lines
        return known or builtin(plain) == f"blockDim.{self.across}"

    def _shared_dims(self) -> dict[Variable, int]:
        """Which extent of each array in shared memory is that of the lines."""
        named = dict[Name, tuple[Index, ...]]()
        body = self.old.function.body
        for index in expressions(body):
            match index:
                case Index(base=Index(base=Name() as name) as inner) if self._shared(name):
                    named[name] = (inner, index)
                case Index(base=Name() as name) if self._shared(name):
                    named.setdefault(name, (index,))
        found = dict[Variable, int]()
        for name in (e for e in expressions(body) if isinstance(e, Name) and self._shared(e)):
            variable = name.variable
            if variable is None or name not in named or len(named[name]) != len(variable.extents):
                raise NotLegal("what its threads share is not a plane of elements")
            if len(named[name]) == 1:
                self._check(named[name][0], variable)
                self.flat.add(named[name][0])
                found[variable] = _FLAT
                continue
            places = [part.index for part in named[name]]
            own = [at for at, place in enumerate(places) if self._is_line(place)]
            if len(own) != 1 or found.setdefault(variable, own[0]) != own[0]:
                raise NotLegal(f"a line asks for more of `{name.name}` than is its own")
        return found

    def _check(self, index: Index, variable: Variable) -> None:
        """Raise NotLegal where an element of an array of one extent may be of another line."""
        reading = self.old.reading
        count = reading.arrays[variable.name].extents[0]
        size = count.value if count is not None else None
        own = [a for a in reading.accesses if index in (a.node, getattr(a.node, "target", None))]
        if size is None or size % self.lines or not own:
            raise NotLegal(f"how `{variable.name}` is shared is not read")
        each = Polynomial.constant(size // self.lines)
        last = each - Polynomial.constant(1)
        for access in own:
            if access.index is None:
                raise NotLegal(f"how `{variable.name}` is shared is not read", access.line)
            form = access.index
            line = f"threadIdx.{self.across}"
            rest = form.without([line])
            known = Ranges(access.guard, reading.symbols)
            inside = known.nonnegative(rest) and known.nonnegative(last - rest)
            if form.coefficient(line) != each or line in reading.symbols.inside(rest) or not inside:
                raise NotLegal(f"a line may ask for more of `{variable.name}` than is its own",
                               access.line)  # fmt: skip

    def _check_global(self) -> None:
        """Raise NotLegal where a line may ask for what another one stores."""
        reading, symbols = self.old.reading, self.old.reading.symbols
        beyond = [a for a in reading.accesses if a.space == "global"]
        stored = {a.array for a in beyond if a.mode != "load"}
        asked = {a.array for a in beyond if a.mode == "load" or a.own not in self.effects.unasked}
        loose = any(not a.array for a in beyond)
        twice = Counter(a.array for a in beyond if a.mode != "load")  # in turn, behind barriers
        shared = (stored & asked) | {name for name, count in twice.items() if count > 1}
        shared |= {n for n in stored for m in stored if n != m and self.effects.same(n, m)}
        both = [a for a in beyond if any(self.effects.same(a.array, n) for n in shared)]
        steps = set[Polynomial | None]()
        for access in beyond if loose else both:
            form = access.index
            line = f"threadIdx.{self.across}"
            by = form.coefficient(line) if form is not None else None
            steps.add(by)
            if form is None or by is None or not by.terms or len(steps) > 1:
                raise NotLegal(f"a line may ask for what another stores in `{access.array}`")
            block = Polynomial.symbol(f"blockIdx.{self.blocks}") * Polynomial.constant(self.lines)
            rest = form - by * (Polynomial.symbol(line) + block)
            known, last = Ranges(access.guard, symbols), by - rest - Polynomial.constant(1)
            own = not {line, f"blockIdx.{self.blocks}"} & symbols.inside(rest)
            if not own or not known.nonnegative(rest) or not known.nonnegative(last):
                raise NotLegal(f"a line may ask for what another stores in `{access.array}`")

    def _shared(self, name: Name) -> bool:
        return name.variable is not None and name.variable.storage in ("shared", "dynamic")

    def _line_of(self, variable: Variable) -> Variable:
        """An array that one line of threads shares."""
        if variable not in self.dims:
            return variable
        extents = [e for at, e in enumerate(variable.extents) if at != self.dims[variable]]
        if self.dims[variable] == _FLAT:
            count = self.old.reading.arrays[variable.name].extents[0]
            each = (count.value or 0) // self.lines if count is not None else 0
            extents = [Literal(None, str(each), each)]
        return replace(variable, extents=tuple(extents), span=None)

    def _swap(self, expr: Expr, swaps: dict[Node, Node]) -> None:
        match expr:
            case Index(base=Index(base=Name(variable=Variable() as own) as name) as inner) if (
                own in self.dims
            ):
                rest = (inner.index, expr.index)[1 - self.dims[own]]
                within: dict[Node, Node] = {}
                self._swap(rest, within)
                swaps[expr] = Index(None, name, edited(rest, within) if within else rest)
                return
            case Index() if expr in self.flat:
                swaps[expr.index] = self._within(expr.index)
                return
        words = self._words(expr)
        typed = self.numbers.typed(expr, words) if words else ""
        if typed in (_THREAD, self.block):
            whole, _, axis = typed.partition(".")
            swaps[expr] = Member(None, Name(None, whole), axis)
        elif typed:
            swaps[expr] = text(typed)
        elif words is None:
            for part in expr.parts:
                self._swap(part, swaps)

    def _within(self, expr: Expr) -> Expr:
        """An index as it is for the first line of a block, where threads stand along x."""
        if self._is_line(expr):
            return _NONE
        local = expr.variable if isinstance(expr, Name) else None
        if local is not None and local.storage == "local":
            if local in self.numbers.lasting and self._asks(expr) and local.value is not None:
                if self.hidden & {e.name for e in every(local.value) if isinstance(e, Name)}:
                    raise NotLegal(f"a name of what `{local.name}` holds is hidden")
                return self._within(local.value)
            counts = local in self.counters and not (local.value and self._asks(local.value))
            if local not in self.numbers.lasting and not counts:
                raise NotLegal(f"`{local.name}` may be of another line")
        parts: dict[Node, Node] = {part: self._within(part) for part in expr.parts}
        parts = {part: new for part, new in parts.items() if new is not part}
        if not parts:
            swaps: dict[Node, Node] = {}
            self._swap(expr, swaps)
            return edited(expr, swaps) if swaps else expr
        made = edited(expr, parts)
        match made:
            case Binary(op="*", left=left, right=right) if _NONE in (left, right):
                return _NONE
            case Binary(op="+", left=left, right=right) if _NONE in (left, right):
                return right if left is _NONE else left
        return made

    def _asks(self, expr: Expr) -> bool:
        """Whether what locals stand for asks for the line of its thread."""
        if isinstance(expr, Name) and expr.variable in self.numbers.lasting:
            value = expr.variable.value if expr.variable is not None else None
            return value is not None and self._asks(value)
        return self._is_line(expr) or any(map(self._asks, expr.parts))

    def _words(self, expr: Expr) -> str | None:
        """What stands for an expression; empty where it stays, None for one that is no place."""
        if (isinstance(expr, Name) and expr.variable is not None) or isinstance(expr, Literal):
            return ""
        block = self.block
        if self._item(expr):
            return block
        name = builtin(expr)
        if name == f"gridDim.{self.blocks}":
            raise NotLegal("it counts the blocks of its grid")
        return {
            f"blockIdx.{self.blocks}": f"{block} / {self.lines}u",
            f"threadIdx.{self.across}": f"{block} % {self.lines}u",
            f"threadIdx.{self.along}": _THREAD, "threadIdx.z": "0u",
            f"blockDim.{self.across}": f"{self.lines}u",
            f"blockDim.{self.along}": f"{self.width}u", "blockDim.z": "1u",
        }.get(name)  # fmt: skip
