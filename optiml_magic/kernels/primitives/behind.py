"""P24 over launches: what items add to the elements of a row, a launch behind adds up by columns.

``for (j) atomicAdd(&gradient[j], error * x[i * d + j])``, an item a thread, meets every element as
often as there are items. Threads of a launch behind take several items of a column each, add up
what these have for it, and do one atomic operation. What an item found before waits in scratch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.collected import address
from optiml_magic.kernels.primitives.effects import names, parted
from optiml_magic.kernels.primitives.mapped import Mapped
from optiml_magic.kernels.primitives.naming import declared_type
from optiml_magic.kernels.primitives.two_launches import Asking, TwoLaunches, first_loop, items_of
from optiml_magic.kernels.primitives.updates import Updated, converted, updated
from optiml_magic.kernels.primitives.works import Finder
from optiml_magic.kernels.tree import Declare, Loop, Statement, Variable, walk
from optiml_magic.source.directives import TuneDirective

ITEMS = (8, 16, 32, 64, 128, 256)
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
    found, finder = items_of(kernel)
    refused = NotLegal("no loop of an item updates elements that all items update")
    return (
        found,
        finder,
        first_loop(found, lambda loop: _Columns(kernel, finder, found, loop).columns(), refused),
    )


class _Columns(Asking):
    """What the updates of a loop ask for."""

    def __init__(self, kernel: Kernel, finder: Finder, found: Mapped, loop: Loop) -> None:
        super().__init__(kernel, finder, found, loop)
        self.inner: list[Declare] = []

    def columns(self) -> Columns:
        loop, axis = self.loop, self.counted()
        every_one = (one for one in updated(self.kernel) if isinstance(one, Updated))
        arrays = tuple(one for one in every_one if self._is_own(one, axis.name))
        if not arrays:
            raise NotLegal("no loop of an item updates elements that all items update", loop.line)
        self.seen |= {axis.variable} if axis.variable is not None else set()
        for update in (u for one in arrays for u in one.updates):
            self.check_loads(self.effects.accesses(update.statement))
            self._ask(names([update.statement.expression]))
        return Columns(loop, arrays, tuple(self.inner), tuple(self.again), tuple(self.saved))

    def _is_own(self, one: Updated, counter: str) -> bool:
        """Whether rounds update all elements of an array, and no item has any of its own."""
        inside = self.kernel.reading.symbols.inside
        return all(
            any(u.statement is s for s in self.own) and u.access.index is not None
            and counter in inside(u.access.index) and not _OWN & {*inside(u.access.index)}
            for u in one.updates
        )  # fmt: skip

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
            elif self.is_cheap(variable):
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


@primitive
def behind(kernel: Kernel, items: int = 32) -> Kernel:
    """The launch that adds up by columns, behind one for all else that the kernel does."""
    kernel = kernel.settled()
    found, finder, asked = columns(kernel)
    return _Making(kernel, found, finder, asked).kernel(items)


class _Making(TwoLaunches):
    def __init__(self, kernel: Kernel, found: Mapped, finder: Finder, asked: Columns) -> None:
        super().__init__(kernel, found, finder, asked.loop, dict.fromkeys(asked.saved, False))
        self.asked = asked

    def kernel(self, items: int) -> Kernel:
        self.each = self.fresh("ITEMS")
        return self.two(self.each, TuneDirective(self.each, ITEMS, items))

    def left(self) -> Statement:
        """The kernel without these updates; it leaves what the other one asks for."""
        loop = self.loop
        gone: dict[Node, None] = {
            u.statement: None for one in self.asked.arrays for u in one.updates
        }
        rest = [s for s in parted(loop.body) if s not in gone and not isinstance(s, Declare)]
        kept = [lines(f"{self.at(v, self.place)} = {v.name};") for v in self.scratch]
        left: tuple[Statement, ...] = (edited(loop, gone),) if rest else ()
        return edited(self.old.function.body, {loop: (*kept, *left)})

    def behind(self) -> str:
        old, found, asked, counter = self.old, self.found, self.asked, self.counter
        first, more = self.fresh("first"), self.fresh("more")
        swaps: dict[Node, Node] = dict(found.swaps)
        begun, behind_, inside = list[str](), list[str](), list[str]()
        for whole in asked.arrays:
            for update in whole.updates:
                place, run = self.fresh(f"{whole.array}_place"), self.fresh(f"{whole.array}_run")
                begun += [f"{whole.kind}* {place} = 0;", f"{whole.kind} {run} = {whole.identity};"]
                where = old.spelled(address(update), swaps)
                told = converted(old, whole, update, swaps)
                inside += [f"{place} = {where};", whole.combining(run, told)]
                behind_.append(f"if ({place}) {whole.function}({place}, {run});")
        known = [self.declared(v, swaps) for v in asked.again]
        known += [
            f"const {self.types[v]} {v.name} = {self.at(v, found.name)};" for v in self.scratch
        ]
        known += [old.show(s, swaps) for s in asked.inner]
        down = f"(blockIdx.y * blockDim.y + threadIdx.y) * {self.each}"
        across = "blockIdx.x * blockDim.x + threadIdx.x"
        return "\n".join([
            f"{declared_type(old, counter)} {counter.name} = {across};",
            f"const {found.words} {first} = {down};",
            f"if ({counter.name} >= {self.columns} || {first} >= {self.items}) return;",
            *begun,
            "#pragma unroll 8",
            f"for (int {more} = 0; {more} < {self.each}; ++{more}) {{",
            f"if ({more} >= {self.items} - {first}) break;",
            f"const {found.words} {found.name} = {first} + {more};",
            *known, *inside,
            "}",
            *behind_,
        ])  # fmt: skip
