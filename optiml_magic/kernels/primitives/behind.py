"""P24 over launches: what items add to the elements of a row, a launch behind adds up by columns.

``for (j) atomicAdd(&gradient[j], error * x[i * d + j])``, an item a thread, meets every element as
often as there are items. Threads of a launch behind take several items of a column each, add up
what these have for it, and do one atomic operation. What an item found before waits in scratch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, Swaps, edited, lines
from optiml_magic.kernels.expressions import Call, Index, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.beforehand import works
from optiml_magic.kernels.primitives.collected import address
from optiml_magic.kernels.primitives.effects import is_simple, names, parted
from optiml_magic.kernels.primitives.flow import ends
from optiml_magic.kernels.primitives.grids import said_alike
from optiml_magic.kernels.primitives.limits import limits
from optiml_magic.kernels.primitives.mapped import Mapped, mapped
from optiml_magic.kernels.primitives.naming import declared_type
from optiml_magic.kernels.primitives.parameters import with_parameters
from optiml_magic.kernels.primitives.updates import Updated, converted, updated
from optiml_magic.kernels.primitives.works import Finder
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.spelling import Speller
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tidying import tidied
from optiml_magic.kernels.tree import Block, Declare, Evaluate, Loop, Statement, Variable, walk
from optiml_magic.kernels.types import named
from optiml_magic.source.directives import ScratchDirective, TuneDirective
from optiml_magic.source.expressions import Number, parse_expression

ITEMS = (8, 16, 32, 64, 128, 256)
_ACROSS, _DOWN = 32, 8  # threads of a block along columns, and along items
_SIZES = (4, 8)
_OWN = {"threadIdx.x", "blockIdx.x"}


@dataclass(frozen=True)
class Columns:
    """A loop of an item, the arrays that it alone updates, and what it asks for besides.

    ``inner`` are the locals of a round that an update asks for, ``again`` those of the item that
    are as soon found again, and ``saved`` those that wait in scratch.
    """

    loop: Loop
    arrays: tuple[Updated, ...]
    inner: tuple[Declare, ...]
    again: tuple[Variable, ...]
    saved: tuple[Variable, ...]


def columns(kernel: Kernel) -> tuple[Mapped, Finder, Columns]:
    """The first loop of which a launch behind may do the updates. Raises NotLegal without one."""
    finder, _ = works(kernel)
    effects = finder.effects
    found = mapped(kernel, effects)
    alone = all(extent.tree == Number(1) for extent in kernel.launch.grid[1:])
    if finder.launched != ["x"] or not alone or kernel.block[1:] != (1, 1):
        raise NotLegal("its items have more than one index")
    if kernel.function.launch_bounds:
        raise NotLegal("its launch bounds say how many threads a block has")
    if found.tests or any(any(ends(s)) for s in found.outside):
        raise NotLegal("its items are under a test that says nothing of them")
    refused = NotLegal("no loop of an item updates elements that all items update")
    for at, statement in enumerate(found.inside):
        if any(any(ends(s)) for s in found.inside[:at]):
            break
        if isinstance(statement, Loop):
            try:
                return found, finder, _Asking(kernel, finder, found, statement).columns()
            except NotLegal as reason:
                refused = reason
    raise refused


class _Asking:
    """What the updates of a loop ask for."""

    def __init__(self, kernel: Kernel, finder: Finder, found: Mapped, loop: Loop) -> None:
        self.kernel, self.finder, self.found, self.loop = kernel, finder, found, loop
        self.effects = finder.effects
        self.own = [*parted(loop.body)]
        self.inner: list[Declare] = []
        self.again: list[Variable] = []
        self.saved: list[Variable] = []
        self.seen = set[Variable]()

    def columns(self) -> Columns:
        loop = self.loop
        axis = self.kernel.axes().get(loop)
        if axis is None or not axis.exact or not is_simple(axis, self.effects):
            raise NotLegal("the loop does not count from 0 by 1", loop.line)
        if any(any(ends(s)) for s in self.own):
            raise NotLegal("a round may end early", loop.line)
        if not self._is_even(axis):
            raise NotLegal("each item may have another number of rounds", loop.line)
        every_one = (one for one in updated(self.kernel) if isinstance(one, Updated))
        arrays = tuple(one for one in every_one if self._is_own(one, axis.name))
        if not arrays:
            raise NotLegal("no loop of an item updates elements that all items update", loop.line)
        self.seen |= {axis.variable} if axis.variable is not None else set()
        for update in (u for one in arrays for u in one.updates):
            self._loads(update.statement)
            self._ask(names([update.statement.expression]))
        return Columns(loop, arrays, tuple(self.inner), tuple(self.again), tuple(self.saved))

    def _is_even(self, axis: Axis) -> bool:
        """Whether all items make as many rounds."""
        test = axis.test
        if not isinstance(test, Compare) or test.op != ">=":
            return False
        rounds = test.form + Polynomial.symbol(axis.name) + Polynomial.constant(1)
        return rounds == self.finder.extent(self.loop)

    def _is_own(self, one: Updated, counter: str) -> bool:
        """Whether rounds update all elements of an array, and no item has any of its own."""
        inside = self.kernel.reading.symbols.inside
        return all(
            any(u.statement is s for s in self.own) and u.access.index is not None
            and counter in inside(u.access.index) and not _OWN & {*inside(u.access.index)}
            for u in one.updates
        )  # fmt: skip

    def _loads(self, statement: Statement) -> None:
        for access in self.effects.accesses(statement):
            if access.mode == "load" and any(
                self.effects.same(access.array, array) for array in self.finder.written
            ):
                raise NotLegal("it asks for what the kernel writes", access.line)

    def _ask(self, asked: Iterable[Variable]) -> None:
        for variable in sorted(asked, key=lambda v: (v.line, v.name)):
            if variable in self.seen or variable is self.found.holding:
                continue
            self.seen.add(variable)
            if variable.storage == "parameter":
                continue
            declared = self._declared(variable)
            if declared is not None:
                if variable not in self.effects.lasting:
                    raise NotLegal(f"`{variable.name}` changes in a round", variable.line)
                self.finder.check_pure(declared)
                self._ask(names(declared.expressions))
                self.inner.append(declared)
            elif any(variable in s.variables for s in walk(self.loop) if isinstance(s, Declare)):
                raise NotLegal(f"`{variable.name}` is declared further inside", variable.line)
            elif self._is_cheap(variable):
                self._ask(names([variable.value] if variable.value is not None else []))
                self.again.append(variable)
            elif variable in self.effects.changed(self.loop) or variable in self.effects.lent:
                raise NotLegal(f"`{variable.name}` goes from round to round", variable.line)
            else:
                self.saved.append(variable)

    def _declared(self, variable: Variable) -> Declare | None:
        """Where a local of a round is declared, by itself."""
        own = (s for s in self.own if isinstance(s, Declare))
        return next((s for s in own if variable in s.variables), None)

    def _is_cheap(self, variable: Variable) -> bool:
        """Whether a local is an index, or made of these and sizes, without a load or a call."""
        value = variable.value
        if value is None or variable not in self.effects.lasting or variable.array:
            return False
        return not any(isinstance(e, Call | Index) for e in every(value)) and all(
            v.storage == "parameter" or v is self.found.holding or self._is_cheap(v)
            for v in names([value])
        )


@primitive
def behind(kernel: Kernel, items: int = 32) -> Kernel:
    """The launch that adds up by columns, behind one for all else that the kernel does."""
    kernel = kernel.settled()
    found, finder, asked = columns(kernel)
    return _Making(kernel, found, finder, asked).kernel(items)


class _Making:
    """Both kernels: the first has a name of its own, the one behind that of the kernel."""

    def __init__(self, kernel: Kernel, found: Mapped, finder: Finder, asked: Columns) -> None:
        self.old, self.found, self.asked = kernel, found, asked
        self.speller = Speller(kernel.reading.symbols, {}, moved=finder.effects.moved)
        self.columns = self.speller.form(finder.extent(asked.loop))
        self.items = self.speller.form(found.bound)
        self.taken: list[str] = []
        plain, _, _ = (kernel.launch.kernel or kernel.function.name).partition("<")
        self.name = self._fresh(f"{plain.rpartition('::')[2]}_items")
        self.scratch = {v: self._fresh(f"{v.name}_found") for v in asked.saved}
        self.types = {v: declared_type(kernel, v) for v in asked.saved}
        self.kinds = {v: self._kind(v) for v in asked.saved}

    def _fresh(self, name: str) -> str:
        self.taken.append(self.old.fresh(name, *self.taken))
        return self.taken[-1]

    def _kind(self, variable: Variable) -> str:
        kind = named(self.types[variable], self.old.unit.aliases)
        plain = kind.kind in ("int", "float") and kind.lanes == 1 and kind.size in _SIZES
        if not plain or kind.depth or variable.array:
            raise NotLegal(f"`{variable.name}` is not a plain number", variable.line)
        return f"<{'f' if kind.floating else 'i' if kind.signed else 'u'}{kind.size}"

    def kernel(self, items: int) -> Kernel:
        old, launch = self.old, self.old.launch
        sizes = [parse_expression(self.columns), parse_expression(self.items)]
        if not said_alike(old, frozenset[str]().union(*(size.names for size in sizes))):
            raise NotLegal("its launch calls the sizes otherwise")
        spelled = launch.kernel or old.function.name
        plain, opening, given = spelled.partition("<")
        scope, colons, _ = plain.rpartition("::")
        tune = TuneDirective(name := self._fresh("ITEMS"), ITEMS, items)
        scratch = tuple(parse_expression(one) for one in self.scratch.values())
        args = (*launch.args, *scratch) if launch.args is not None else None
        first = replace(launch, kernel=f"{scope}{colons}{self.name}{opening}{given}", args=args)
        grid = tuple(parse_expression(f"cdiv({size}, {width})") for size, width in
                     ((self.columns, str(_ACROSS)), (self.items, f"{_DOWN} * {name}")))  # fmt: skip
        block = tuple(parse_expression(str(width)) for width in (_ACROSS, _DOWN))
        new = replace(launch, kernel=spelled, grid=grid, block=block, args=args)
        made = old.rewritten(
            Block(None, 0, (lines(self._behind(name)),)),
            launch=new,
            directives=[
                *(ScratchDirective(self.scratch[v], self.kinds[v], sizes[1]) for v in self.scratch),
                tune,
                *limits(old, new, [tune]),
                first,
            ],
            helpers=[self._items()],
        )
        return self._told(made)

    def _told(self, made: Kernel) -> Kernel:
        """With the parameters for what waits in scratch."""
        return with_parameters(
            made, (f"const {self.types[v]}* {one}" for v, one in self.scratch.items())
        )

    def _items(self) -> str:
        """The text of the kernel without these updates; it leaves what the other one asks for."""
        old, loop = self.old, self.asked.loop
        gone: dict[Node, None] = {
            u.statement: None for one in self.asked.arrays for u in one.updates
        }
        rest = [s for s in parted(loop.body) if s not in gone and not isinstance(s, Declare)]
        place = self.found.name if self.found.holding else "blockIdx.x * blockDim.x + threadIdx.x"
        kept = [lines(f"{one}[{place}] = {v.name};") for v, one in self.scratch.items()]
        left: tuple[Statement, ...] = (edited(loop, gone),) if rest else ()
        body = edited(old.function.body, {loop: (*kept, *left)})
        raw = old.unit.syntax.text
        shown = [
            raw[slice(*p.span)].decode() for p in old.function.parameters if p.span is not None
        ]
        shown += [f"{self.types[v]}* {one}" for v, one in self.scratch.items()]
        function = old.function
        head = raw[slice((function.whole or function.span)[0], function.span[0])].decode()
        inside = old.show_inside(body)
        return head + tidied(f"__global__ void {self.name}({', '.join(shown)}) {{\n{inside}\n}}")

    def _declared(self, variable: Variable, swaps: Swaps) -> str:
        assert variable.value is not None
        value = self.old.show(Evaluate(None, 0, variable.value), swaps).strip()
        return f"{declared_type(self.old, variable)} {variable.name} = {value}"

    def _behind(self, items: str) -> str:
        old, found, asked = self.old, self.found, self.asked
        counter = old.axes()[asked.loop].variable
        assert counter is not None
        first, more = self._fresh("first"), self._fresh("more")
        swaps: dict[Node, Node] = dict(found.swaps)
        begun, behind_, inside = list[str](), list[str](), list[str]()
        for whole in asked.arrays:
            for update in whole.updates:
                place, run = self._fresh(f"{whole.array}_place"), self._fresh(f"{whole.array}_run")
                begun += [f"{whole.kind}* {place} = 0;", f"{whole.kind} {run} = {whole.identity};"]
                where = old.show(Evaluate(None, 0, address(update)), swaps).strip()[:-1]
                told = converted(old, whole, update, swaps)
                inside += [f"{place} = {where};", whole.combining(run, told)]
                behind_.append(f"if ({place}) {whole.function}({place}, {run});")
        known = [self._declared(v, swaps) for v in asked.again]
        known += [
            f"const {self.types[v]} {v.name} = {one}[{found.name}];"
            for v, one in self.scratch.items()
        ]
        known += [old.show(s, swaps) for s in asked.inner]
        down = f"(blockIdx.y * blockDim.y + threadIdx.y) * {items}"
        across = "blockIdx.x * blockDim.x + threadIdx.x"
        return "\n".join([
            f"{declared_type(old, counter)} {counter.name} = {across};",
            f"const {found.words} {first} = {down};",
            f"if ({counter.name} >= {self.columns} || {first} >= {self.items}) return;",
            *begun,
            "#pragma unroll 8",
            f"for (int {more} = 0; {more} < {items}; ++{more}) {{",
            f"if ({more} >= {self.items} - {first}) break;",
            f"const {found.words} {found.name} = {first} + {more};",
            *known, *inside,
            "}",
            *behind_,
        ])  # fmt: skip
