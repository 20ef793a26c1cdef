"""A kernel as two launches: the items' own, and one behind that has an axis for their rounds too.

What an item found, or found in a round, and the launch behind asks for, waits in scratch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from optiml_magic.kernels.editing import Swaps, lines
from optiml_magic.kernels.expressions import Call, Index, Lambda, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.beforehand import works
from optiml_magic.kernels.primitives.effects import is_simple, names, parted
from optiml_magic.kernels.primitives.flow import ends
from optiml_magic.kernels.primitives.grids import said_alike
from optiml_magic.kernels.primitives.limits import limits
from optiml_magic.kernels.primitives.mapped import Mapped, mapped
from optiml_magic.kernels.primitives.naming import declared_type
from optiml_magic.kernels.primitives.parameters import kernel_beside, with_parameters
from optiml_magic.kernels.primitives.works import Finder
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.spelling import Speller
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import Block, Loop, Statement, Variable, expressions
from optiml_magic.kernels.types import named
from optiml_magic.source.directives import Directive, ScratchDirective, TuneDirective
from optiml_magic.source.expressions import Number, parse_expression

ACROSS, DOWN = 32, 8  # threads of a block along rounds, and along items
_SIZES = (4, 8)
_T = TypeVar("_T")


def items_of(kernel: Kernel) -> tuple[Mapped, Finder]:
    """The items that threads have along x alone. Raises NotLegal where they have others."""
    finder, _ = works(kernel)
    found = mapped(kernel, finder.effects)
    alone = all(extent.tree == Number(1) for extent in kernel.launch.grid[1:])
    if finder.launched != ["x"] or not alone or kernel.block[1:] != (1, 1):
        raise NotLegal("its items have more than one index")
    if any(isinstance(e, Lambda) for e in expressions(kernel.function.body)):
        raise NotLegal("a second launch cannot call its closures")
    if kernel.function.launch_bounds:
        raise NotLegal("its launch bounds say how many threads a block has")
    if found.tests or any(any(ends(s)) for s in found.outside):
        raise NotLegal("its items are under a test that says nothing of them")
    return found, finder


def is_even(finder: Finder, axis: Axis) -> bool:
    """Whether all items make as many rounds of a loop."""
    test = axis.test
    if not isinstance(test, Compare) or test.op != ">=":
        return False
    rounds = test.form + Polynomial.symbol(axis.name) + Polynomial.constant(1)
    return rounds == finder.extent(axis.node)


def first_loop(found: Mapped, taken: Callable[[Loop], _T], refused: NotLegal) -> _T:
    """What is made of the first loop of an item that it can be made of, or the last refusal."""
    for at, statement in enumerate(found.inside):
        if any(any(ends(s)) for s in found.inside[:at]):
            break
        if isinstance(statement, Loop):
            try:
                return taken(statement)
            except NotLegal as reason:
                refused = reason
    raise refused


class Asking:
    """What a launch behind asks for: locals that are found ``again`` or ``saved`` for it."""

    def __init__(self, kernel: Kernel, finder: Finder, found: Mapped, loop: Loop) -> None:
        self.kernel, self.finder, self.found, self.loop = kernel, finder, found, loop
        self.effects = finder.effects
        self.own = [*parted(loop.body)]
        self.again: list[Variable] = []
        self.saved: list[Variable] = []
        self.seen = set[Variable]()

    def counted(self) -> Axis:
        """The loop's axis. Raises NotLegal unless all items make the same rounds, to their ends."""
        loop = self.loop
        axis = self.kernel.axes().get(loop)
        if axis is None or not axis.exact or not is_simple(axis, self.effects):
            raise NotLegal("the loop does not count from 0 by 1", loop.line)
        if any(any(ends(s)) for s in self.own):
            raise NotLegal("a round may end early", loop.line)
        if not is_even(self.finder, axis):
            raise NotLegal("each item may have another number of rounds", loop.line)
        return axis

    def check_loads(self, accesses: Iterable[Access]) -> None:
        """Raise NotLegal where one loads what the kernel stores."""
        for access in accesses:
            if access.mode == "load" and any(
                self.effects.same(access.array, array) for array in self.finder.written
            ):
                raise NotLegal("it asks for what the kernel writes", access.line)

    def is_cheap(self, variable: Variable) -> bool:
        """Whether a local is an index, or made of these and sizes, without a load or a call."""
        value = variable.value
        if value is None or variable not in self.effects.lasting or variable.array:
            return False
        return not any(isinstance(e, Call | Index) for e in every(value)) and all(
            v.storage == "parameter" or v is self.found.holding or self.is_cheap(v)
            for v in names([value])
        )


class TwoLaunches(ABC):
    """Both kernels: the first has a name of its own, the one behind that of the kernel.

    ``kept`` waits for the launch behind: of each item, or of each of its rounds.
    """

    def __init__(
        self, kernel: Kernel, found: Mapped, finder: Finder, loop: Loop,
        kept: Mapping[Variable, bool],
    ) -> None:  # fmt: skip
        self.old, self.found, self.loop, self.kept = kernel, found, loop, kept
        self.speller = Speller(kernel.reading.symbols, {}, moved=finder.effects.moved)
        self.columns = self.speller.form(finder.extent(loop))
        self.items = self.speller.form(found.bound)
        self.taken: list[str] = []
        plain, _, _ = (kernel.launch.kernel or kernel.function.name).partition("<")
        self.name = self.fresh(f"{plain.rpartition('::')[2]}_items")
        self.scratch = {v: self.fresh(f"{v.name}_found") for v in kept}
        self.types = {v: declared_type(kernel, v) for v in kept}
        self.kinds = {v: self._kind(v) for v in kept}

    @abstractmethod
    def left(self) -> Statement:
        """What the items' own launch does."""

    @abstractmethod
    def behind(self) -> str:
        """The body of the launch behind."""

    def fresh(self, name: str) -> str:
        self.taken.append(self.old.fresh(name, *self.taken))
        return self.taken[-1]

    def _kind(self, variable: Variable) -> str:
        kind = named(self.types[variable], self.old.unit.aliases)
        plain = kind.kind in ("int", "float") and kind.lanes == 1 and kind.size in _SIZES
        if not plain or kind.depth or variable.array:
            raise NotLegal(f"`{variable.name}` is not a plain number", variable.line)
        return kind.dtype

    def at(self, variable: Variable, place: str) -> str:
        """Where in its scratch a local of an item at ``place`` lies."""
        if not self.kept[variable]:
            return f"{self.scratch[variable]}[{place}]"
        columns = f"({self.columns})" if " " in self.columns else self.columns
        return f"{self.scratch[variable]}[(size_t){place} * {columns} + {self.counter.name}]"

    @property
    def counter(self) -> Variable:
        counter = self.old.axes()[self.loop].variable
        assert counter is not None
        return counter

    @property
    def place(self) -> str:
        """How the items' own launch calls an item."""
        index = "blockIdx.x * blockDim.x + threadIdx.x"
        return self.found.name if self.found.holding else f"({index})"

    def two(self, down: str, tune: TuneDirective | None = None) -> Kernel:
        """Both launches; threads of the one behind take ``down`` items each."""
        old, launch = self.old, self.old.launch
        sizes = {False: parse_expression(self.items),
                 True: parse_expression(f"({self.items}) * ({self.columns})")}  # fmt: skip
        if not said_alike(old, sizes[True].names):
            raise NotLegal("its launch has other names for the sizes")
        spelled = launch.kernel or old.function.name
        plain, opening, given = spelled.partition("<")
        scope, colons, _ = plain.rpartition("::")
        scratch = tuple(parse_expression(one) for one in self.scratch.values())
        args = (*launch.args, *scratch) if launch.args is not None else None
        first = replace(launch, kernel=f"{scope}{colons}{self.name}{opening}{given}", args=args)
        each = f"{DOWN} * {down}" if down != "1" else str(DOWN)
        grid = tuple(parse_expression(f"cdiv({size}, {width})") for size, width in
                     ((self.columns, str(ACROSS)), (self.items, each)))  # fmt: skip
        block = tuple(parse_expression(str(width)) for width in (ACROSS, DOWN))
        new = replace(launch, kernel=spelled, grid=grid, block=block, args=args)
        tunes = [tune] if tune is not None else []
        directives: list[Directive] = [
            *(ScratchDirective(self.scratch[v], self.kinds[v], sizes[self.kept[v]])
              for v in self.scratch),
            *tunes, *limits(old, new, tunes), first,
        ]  # fmt: skip
        made = old.rewritten(
            Block(None, 0, (lines(self.behind()),)), launch=new, directives=directives,
            helpers=[self._items()],
        )  # fmt: skip
        return with_parameters(
            made, (f"const {self.types[v]}* {one}" for v, one in self.scratch.items())
        )

    def _items(self) -> str:
        further = (f"{self.types[v]}* {one}" for v, one in self.scratch.items())
        return kernel_beside(self.old, self.name, self.old.show_inside(self.left()), further)

    def declared(self, variable: Variable, swaps: Swaps) -> str:
        assert variable.value is not None
        value = self.old.spelled(variable.value, swaps)
        return f"{declared_type(self.old, variable)} {variable.name} = {value};"
