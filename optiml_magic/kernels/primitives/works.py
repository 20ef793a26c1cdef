"""What several threads compute alike: runs of statements that say nothing of some of the axes.

Each channel of an attention computes all scores of its query anew, though none depends on the
channel. Here such work is found, with the axes and the loops that it does depend on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.expressions import Call, Expr, Name, builtin
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.costs import is_long
from optiml_magic.kernels.primitives.cutting import uses
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in, parted
from optiml_magic.kernels.primitives.flow import ends
from optiml_magic.kernels.primitives.grids import form_of, needed
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    If,
    Loop,
    Statement,
    Variable,
    walk,
)

_ONE = Polynomial.constant(1)
One = str | Loop | Variable  # what items of a work are counted by: an axis, a loop, or a local


@dataclass(frozen=True, eq=False)
class Common:
    """Statements of one body that some axes have no part in.

    Attributes:
        path: what they stand in, from the body of the kernel to ``body`` itself.
        own: all statements of that body, each local by itself.
        chosen: the places of the common ones among these.
        results: the locals that the others ask for.
        kept: the axes of the launch and the loops around that they depend on, from outside; a
            local that they depend on in the place of what it is made of comes first.
        dropped: those that they do not depend on.
    """

    path: tuple[Statement, ...]
    body: Block
    own: tuple[Statement, ...]
    chosen: tuple[int, ...]
    results: tuple[Variable, ...]
    kept: tuple[One, ...]
    dropped: tuple[One, ...]

    @property
    def statements(self) -> tuple[Statement, ...]:
        return tuple(self.own[at] for at in self.chosen)


class Finder:
    """Looks for such work in one kernel. Raises NotLegal where nothing may be moved.

    Locals that are ``pinned`` stand for themselves, whatever they are made of: whole numbers from 0
    to below a form of sizes, which tells how many items there are of them.

    Who looks ``apart`` takes what a round computes for its thread alone too, and one of its loops.
    """

    def __init__(
        self,
        kernel: Kernel,
        pinned: Mapping[Variable, Polynomial] | None = None,
        *,
        apart: bool = False,
    ) -> None:
        self.kernel = kernel
        self.apart = apart
        self.pinned = pinned or {}
        self.effects = Effects(kernel)
        self.axes = kernel.axes()
        self.whole: dict[Expr, str] = {}
        self.launched = [a for a in "zyx" if self._extends(a)]
        body = kernel.function.body
        stored = [a for a in self.effects.accesses(body) if a.mode != "load"]
        self.written = {a.array for a in stored}
        self._known: dict[Variable, frozenset[One]] = {}
        self._counters: dict[Variable, Loop] = {
            axis.variable: loop
            for loop, axis in self.axes.items()
            if axis.variable is not None and axis.exact and is_simple(axis, self.effects)
        }

    def _extends(self, axis: str) -> bool:
        found = uses(self.kernel, axis)
        self.whole |= dict.fromkeys(found.whole, axis)
        return bool(found.whole)

    # -- what there is

    def all(self) -> Iterator[Common]:
        """The largest of each body, the innermost bodies first."""
        found: list[tuple[int, Common]] = []
        for path, body in _bodies(self.kernel.function.body, ()):
            own, covered = tuple(parted(body)), set[int]()
            long = [at for at in reversed(range(len(own))) if self._takes_long(own[at])]
            for at in long:
                if at in covered:
                    continue
                try:
                    common = self._common(path, body, own, self._closed(own, at))
                except NotLegal:
                    continue
                for more in (n for n in long if n < at and n not in {*common.chosen, *covered}):
                    common = self._with(common, more)
                common = self._onward(common)
                covered |= {*common.chosen}
                found.append((len(path), common))
        yield from (common for _, common in sorted(found, key=lambda pair: -pair[0]))

    def _takes_long(self, statement: Statement) -> bool:
        called = loops_in(statement) or self.called_loops(statement)
        return bool(called) or self.is_long(statement)

    def _with(self, common: Common, more: int) -> Common:
        """With another statement of its body, where that depends on the same."""
        chosen = sorted({*common.chosen, *self._closed(common.own, more)})
        try:
            wider = self._common(common.path, common.body, common.own, chosen)
        except NotLegal:
            return common
        shared = common.dropped or any(isinstance(s, Loop) for s in common.path)
        return wider if shared and wider.kept == common.kept else common

    def _onward(self, common: Common) -> Common:
        """With the locals that its results alone are for, so that no more than these are kept.

        What loops find stays as it is, since another loop may find the same.
        """
        if any(loops_in(s) or self.called_loops(s) for s in common.statements):
            return common
        own, known, chosen = common.own, {*common.results}, {*common.chosen}
        for n in range(common.chosen[-1] + 1, len(own)):
            if isinstance(own[n], Declare) and self.effects.mentions(own[n]) & known:
                chosen |= {*self._closed(own, n)}
                known |= self.effects.given(own[n])
        try:
            wider = self._common(common.path, common.body, own, sorted(chosen))
        except NotLegal:
            return common
        same = wider.kept == common.kept and len(wider.results) <= len(common.results)
        return wider if same else common

    def called_loops(self, statement: Statement) -> list[Loop]:
        """The loops of the functions that a statement calls by itself."""
        unit = self.kernel.unit
        return [
            loop
            for expr in self.effects.inside(statement) if isinstance(expr, Call)
            for function in unit.called(expr.function, len(expr.arguments))
            for loop in loops_in(function.body)
        ]  # fmt: skip

    def is_long(self, statement: Statement) -> bool:
        """Whether a local is found by a function of a hundred instructions and more."""
        given = [v.value for v in statement.variables] if isinstance(statement, Declare) else []
        return any(is_long(self.kernel, value) for value in given if value is not None)

    def _common(
        self, path: tuple[Statement, ...], body: Block, own: tuple[Statement, ...],
        chosen: Sequence[int],
    ) -> Common:  # fmt: skip
        line = own[chosen[-1]].line
        statements = [own[n] for n in chosen]
        declared = {v for s in statements if isinstance(s, Declare) for v in s.variables}
        inner = {v for s in statements for i in walk(s) if isinstance(i, Declare)
                 for v in i.variables}  # fmt: skip
        for statement in statements:
            self.check_pure(statement)
            if not self.effects.given(statement) <= declared:
                raise NotLegal("what it changes is declared elsewhere", statement.line)
        for n in range(chosen[0], chosen[-1]):
            if n not in chosen and (self.effects.mentions(own[n]) & declared or any(ends(own[n]))):
                raise NotLegal("what stands between asks for it, or leaves", own[n].line)
        around = [s for s in path if isinstance(s, Loop)]
        if any(loop not in self._counters.values() for loop in around):
            raise NotLegal("a loop around it does not count from 0 by 1", line)
        asked = self.asked((e for s in statements for i in walk(s) for e in i.expressions), inner)
        if any(isinstance(one, Loop) and one not in around for one in asked):
            raise NotLegal("it asks for the counter of another loop", line)
        rest = [s for n, s in enumerate(own) if n not in chosen]
        results = [v for v in declared if any(v in self.effects.mentions(s) for s in rest)]
        every: list[One] = [*self.pinned, *self.launched, *around]
        every.sort(key=lambda one: one == "x")  # lanes find results side by side
        kept = tuple(one for one in every if one in asked)
        dropped = tuple(one for one in every if one not in asked)
        others = self.apart and any(loops_in(statement) for statement in rest)
        if not results or not (dropped or (self.apart and around) or others):
            raise NotLegal("all threads ask for one of their own", line)
        ordered = sorted(results, key=lambda v: (v.line, v.name))
        return Common(path, body, own, tuple(chosen), tuple(ordered), kept, dropped)

    def _closed(self, own: Sequence[Statement], at: int) -> list[int]:
        """With a statement, those before it that what it asks for comes from."""
        chosen = {at}
        while True:
            asked = {
                v for n in chosen
                for v in self.effects.mentions(own[n]) | self.effects.given(own[n])
                if not self._is_context(v)
            }  # fmt: skip
            more = {n for n in range(max(chosen)) if self.effects.given(own[n]) & asked} - chosen
            if not more:
                return sorted(chosen)
            chosen |= more

    def _is_context(self, variable: Variable) -> bool:
        """Whether a local stands for where a thread is, or for what it is given."""
        try:
            self.depends(variable)
        except NotLegal:
            return False
        return True

    def check_pure(self, statement: Statement) -> None:
        """Raise NotLegal where a statement does more than to find locals from what stays."""
        effects = self.effects
        if effects.kept(statement) or any(ends(statement)):
            raise NotLegal("it stores in a local array, or leaves", statement.line)
        for access in effects.accesses(statement):
            met = any(effects.same(access.array, array) for array in self.written)
            if access.mode != "load" or not access.array or met:
                raise NotLegal("it touches what the kernel writes", access.line)
        for inner in walk(statement):
            for variable in inner.variables if isinstance(inner, Declare) else ():
                if variable.storage != "local" or variable.type.reference:
                    raise NotLegal(f"`{variable.name}` is not a plain local", inner.line)

    # -- what it depends on

    def depends(self, variable: Variable) -> frozenset[One]:
        """The axes and loops that a lasting local depends on. Raises NotLegal for others."""
        if variable in self.pinned:
            return frozenset({variable})
        if variable in self._counters:
            return frozenset({self._counters[variable]})
        if variable.storage == "parameter":
            if variable.name in self.effects.moved:
                raise NotLegal(f"the parameter `{variable.name}` changes")
            return frozenset()
        if variable.value is None or variable not in self.effects.lasting or variable.array:
            raise NotLegal(f"`{variable.name}` changes")
        if variable not in self._known:
            self._known[variable] = self._of(variable.value, frozenset())
        return self._known[variable]

    def of(self, expr: Expr) -> frozenset[One]:
        """The axes and loops that an expression depends on."""
        return self._of(expr, frozenset())

    def asked(self, found: Iterable[Expr], own: Iterable[Variable]) -> frozenset[One]:
        """The axes and loops that expressions depend on, but for locals of ``own``."""
        return frozenset().union(*(self._of(expr, own) for expr in found))

    def _of(self, expr: Expr, own: Iterable[Variable]) -> frozenset[One]:
        if expr in self.whole:
            return frozenset({self.whole[expr]})
        if builtin(expr):
            raise NotLegal(f"`{builtin(expr)}` tells more than an index")
        if isinstance(expr, Name):
            variable = expr.variable
            return frozenset() if variable is None or variable in own else self.depends(variable)
        return frozenset().union(*(self._of(part, own) for part in expr.parts))

    def locals_of(self, found: Iterable[Expr]) -> set[Variable]:
        """The lasting locals that expressions come to, by way of others as well."""
        todo, seen = [*found], set[Variable]()
        while todo:
            expr = todo.pop()
            todo += expr.parts
            variable = expr.variable if isinstance(expr, Name) else None
            if variable is not None and variable not in seen and variable in self.effects.lasting:
                seen.add(variable)
                if variable.value is not None and variable not in self.pinned:
                    todo.append(variable.value)
        return seen

    # -- how many there are

    def extent(self, one: One) -> Polynomial:
        """How many items an axis has, or a bound of a loop's rounds, over parameters alone."""
        form = self.count(one)
        if isinstance(one, Variable):
            return form
        if any(by < 0 for _, by in form.terms):
            raise NotLegal("there may be less than none of them")
        if not all(map(self._is_size, form.symbols)):
            raise NotLegal("how many there are depends on more than sizes")
        return form

    def count(self, one: One) -> Polynomial:
        """The same, though it may be less than none and depend on more."""
        if isinstance(one, Variable):
            return self.pinned[one]
        return self._rounds(self.axes[one]) if isinstance(one, Loop) else self._items(one)

    def _is_size(self, name: str) -> bool:
        """Whether a symbol is a size, or the quotient or rest of sizes."""
        symbol = self.kernel.reading.symbols.table.get(name)
        if name in self._sizes or symbol is None or symbol.op not in ("/", "%"):
            return name in self._sizes
        return all(self._is_size(inner) for form in symbol.arguments for inner in form.symbols)

    @property
    def _sizes(self) -> set[str]:
        given = {p.name for p in self.kernel.function.parameters if not p.type.depth}
        return given - self.effects.moved | self.kernel.program.values.keys()

    def _items(self, axis: str) -> Polynomial:
        kernel, at = self.kernel, "xyz".index(axis)
        found, symbols = needed(kernel, axis, loads=True), kernel.reading.symbols
        tree = found.tree if found is not None else None
        width = 1
        if tree is None and at < len(kernel.launch.grid):
            tree, width = kernel.launch.grid[at].tree, kernel.block[at] or 0
        form = form_of(tree, symbols) if tree is not None else None
        if form is None or not width:
            raise NotLegal(f"how many items there are along {axis} is not known")
        return form * Polynomial.constant(width)

    def _rounds(self, axis: Axis) -> Polynomial:
        parts = [*axis.test.conjuncts()]
        test = parts[0] if len(parts) == 1 else None
        form = test.form if isinstance(test, Compare) and test.op == ">=" else None
        by = form.coefficient(axis.name) if form is not None else None
        if form is None or by is None or by.value != -1:
            raise NotLegal("the number of rounds is not known", axis.line)
        return self._greatest(form.without([axis.name]) + _ONE)

    def _greatest(self, form: Polynomial) -> Polynomial:
        """A form for the last item of each axis and the last round of each loop in it.

        The least of several is no greater than the one that sizes alone say.
        """
        form = self._without_least(form)
        for axis in "xyz":
            thread, block = (Polynomial.symbol(f"{kind}Idx.{axis}") for kind in ("thread", "block"))
            width = self.kernel.block["xyz".index(axis)]
            by = form.coefficient(f"blockIdx.{axis}")
            if by is None or width is None:
                raise NotLegal("the number of rounds is not known")
            each = (by.value or 0) // width
            if by.value is None or each < 0:
                raise NotLegal("the number of rounds is not known")
            if each:
                step = Polynomial.constant(each)
                whole = thread + block * Polynomial.constant(width) if width > 1 else block
                form = form - step * whole + step * (self._items(axis) - _ONE)
        for loop in self.axes.values():
            by = form.coefficient(loop.name)
            if by is None or (by.terms and (by.value is None or by.value < 0)):
                raise NotLegal("the number of rounds is not known", loop.line)
            if by.terms:
                form = form.without([loop.name]) + by * (self._rounds(loop) - _ONE)
        return form

    def _without_least(self, form: Polynomial) -> Polynomial:
        symbols, given = self.kernel.reading.symbols, self._sizes
        for name in form.symbols:
            symbol, by = symbols.table.get(name), form.coefficient(name)
            if symbol is None or symbol.op != "min" or by is None or (by.value or -1) < 0:
                continue
            sizes = [a for a in symbol.arguments if a.symbols <= given]
            if sizes:
                form = form.without([name]) + by * sizes[0]
        return form


def _bodies(
    block: Block, around: tuple[Statement, ...]
) -> Iterator[tuple[tuple[Statement, ...], Block]]:
    """Each body of braces, with what it stands in and itself."""
    path = (*around, block)
    yield path, block
    for statement in block.body:
        inner: tuple[Statement | None, ...] = ()
        match statement:
            case Block():
                inner, path_ = (statement,), path
            case If(before=None, constant=False):
                inner, path_ = (statement.then, statement.other), (*path, statement)
            case Loop():
                inner, path_ = (statement.body,), (*path, statement)
            case _:
                continue
        for part in inner:
            if isinstance(part, Block):
                yield from _bodies(part, path_)
