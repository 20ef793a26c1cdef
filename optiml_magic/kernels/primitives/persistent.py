"""P6, a stride of the grid: a launch of few blocks whose threads take one element after the other.

What a block does before its first element and after its last, it then does for many elements.
Threads take elements that lie a grid apart, or, with ``items``, several that lie together. The
counter is unsigned, or has 64 bits where the number of elements may: it never wraps around.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.block_counts import rounded_up
from optiml_magic.kernels.primitives.cutting import TOLD, uses
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.grids import (
    form_of,
    launched,
    most_threads,
    needed,
    room,
    said_alike,
)
from optiml_magic.kernels.primitives.places import Place, placed
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import Block, Declare, Evaluate, If, Leave, Statement, walk
from optiml_magic.kernels.types import named
from optiml_magic.source.directives import LaunchDirective, TuneDirective
from optiml_magic.source.expressions import Expression, Number, parse_expression

_Swap = Node | tuple[Statement, ...] | None
_ACROSS = 8  # elements of a row for a thread: ours
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Stride:
    """At most so many ``blocks`` of ``block`` threads, each thread ``items`` at a time.

    ``most`` are the values of the first that a tuner may choose from, ``widths`` of the second,
    ``several`` of the third; without these each thread takes one at a time.
    """

    blocks: int
    block: int
    most: Sequence[int]
    widths: Sequence[int]
    items: int = 1
    several: Sequence[int] = ()


@primitive
def persistent(kernel: Kernel, stride: Stride) -> Kernel:
    """A kernel with a guard on each axis of its blocks, which go on until all is done."""
    return _Persisting(kernel.settled(), stride).kernel()


def elements(kernel: Kernel) -> tuple[Expression, ...]:
    """How many threads do something, along x, and along y and z where blocks have several rows.

    Where that is not certain it is all that are launched: guards hold them back as before.
    Raises NotLegal where a thread may do no other's work.
    """
    rank = rank_of(kernel)
    if None in kernel.block or len(kernel.launch.grid) > rank + 1:
        raise NotLegal("its grid has more axes than its blocks")
    check_alone(kernel)
    counts = [needed(kernel, axis) or launched(kernel, axis) for axis in "xyz"[:rank]]
    found = tuple(count for count in counts if count is not None)
    if len(found) < rank:
        raise NotLegal("how many of its threads do something is not certain")
    return found


def rank_of(kernel: Kernel) -> int:
    """How many axes its blocks have, those of one thread at the end left out."""
    return max(k + 1 for k, extent in enumerate(kernel.block) if extent != 1 or not k)


def check_alone(kernel: Kernel) -> None:
    """Raise NotLegal where a thread may not do the work of others after its own."""
    Effects(kernel).straightforward()
    if kernel.launch.shared is not None:
        raise NotLegal("it has dynamic shared memory")
    for name in TOLD:
        if name in kernel.reading.calls:
            raise NotLegal(f"`{name}` tells how many threads there are")
    body = kernel.function.body
    for loop in loops_in(body):
        for inner in walk(loop.body):
            if isinstance(inner, Leave) and inner.kind == "return":
                raise NotLegal("the kernel is left within a loop", inner.line)
    _check_waiting(kernel)
    given = set(kernel.function.parameters)
    for variable in Effects(kernel).changed(body):
        if variable in given:
            raise NotLegal(f"`{variable.name}` changes", variable.line)
    if any(uses(kernel, axis).strides for axis in "xyz"):
        raise NotLegal("its threads take elements a grid apart as it is")


def _check_waiting(kernel: Kernel) -> None:
    """Raise NotLegal where a thread may wait for another, which may be it itself later on."""
    effects, axes, written = Effects(kernel), kernel.axes(), kernel.reading.written
    for loop in loops_in(kernel.function.body):
        axis = axes.get(loop)
        if axis is not None and axis.exact and axis.bounded:
            continue
        alone = {s.expression for s in walk(loop) if isinstance(s, Evaluate)}
        for access in effects.accesses(loop):
            if access.mode != "load" and access.own in alone:
                continue  # it asks for nothing, and no round waits for it
            if any(effects.same(access.array, array) for array in written):
                raise NotLegal("a loop may wait for what another thread does", loop.line)


class _Persisting:
    def __init__(self, kernel: Kernel, stride: Stride) -> None:
        self.old = kernel
        self.stride = stride
        self.counts = elements(kernel)
        self.count = self.counts[0]
        if len(self.counts) > 1 and stride.several:
            raise NotLegal("elements of several rows do not lie together")
        if stride.several and needed(kernel, "x") is None:
            raise NotLegal("which elements there are is not certain")
        fresh = kernel.fresh
        self.lines = (fresh("line"), fresh("plane"))[: len(self.counts) - 1]
        self.block, self.blocks = fresh("BLOCK"), fresh("BLOCKS")
        self.items = fresh("ITEMS") if stride.several else ""
        self.first, self.more = fresh("first"), fresh("more")
        self.item = fresh("own" if self.items else "item")
        self.wide = self._wide()
        self.kind = "unsigned long long" if self.wide else "unsigned"
        self.ends = [str(count) for count in self.counts]
        if self.wide:
            self.ends = [_NAME.sub(r"(long long)\g<0>", end) for end in self.ends]
        self.end = self.ends[0]

    def _wide(self) -> bool:
        """Whether there may be more elements than half of what 32 bits count."""
        kinds = self.old.reading.types
        whole = [e for axis in "xyz"[: len(self.counts)] for e in uses(self.old, axis).whole]
        if any((k := kinds.get(e)) and k.size == 8 for e in whole):
            return True
        names = {name for count in self.counts for name in count.names}
        for parameter in self.old.function.parameters:
            kind = named(parameter.type.base, self.old.unit.aliases)
            if parameter.name in names and not (
                kind.integral and (kind.size or 8) <= 4 and (kind.signed or kind.size != 4)
            ):
                return True
        return False

    def kernel(self) -> Kernel:
        body = self.old.function.body
        kind = "long long" if self.wide else "int"
        whole = f"(({kind}){self.first} + {self.more})" if self.items else f"({kind}){self.item}"
        wholes = [whole, *(f"({kind}){line}" for line in self.lines)]
        places = {
            axis: Place(f"({spelled})" if self.wide else spelled, width or 1)
            for axis, spelled, width in zip("xyz", wholes, self.old.block, strict=False)
        }
        swaps: dict[Node, _Swap] = dict(placed(self.old, places))
        for statement in walk(body):
            if isinstance(statement, Leave) and statement.kind == "return":
                swaps[statement] = replace(statement, kind="continue", span=None)
        self._drop_guards(swaps)
        shown = self.old.show(body, swaps)
        made = self._together(shown) if self.items else self._apart(shown)
        return self.old.rewritten(
            Block(None, 0, (lines(made),)), launch=self._launch(), directives=self._tunes()
        )

    def _drop_guards(self, swaps: dict[Node, _Swap]) -> None:
        """Put what they hold in the place of branches on the guards, which hold in every round."""
        left = []
        for axis, width, count in zip("xyz", self.old.block, self.counts, strict=False):
            form = form_of(count.tree, self.old.reading.symbols)
            if form is not None:  # else its guard stays
                left.append(room(axis, width or 1, form))
        left += self._launched()
        held = {
            g.test: g.exits
            for g in self.old.reading.guards
            if not g.loops and all(isinstance(part, Compare) and part.op == ">="
                                   and part.form in left for part in g.condition.conjuncts())
        }  # fmt: skip
        for branch in reversed([*walk(self.old.function.body)]):  # the innermost first
            if not isinstance(branch, If) or branch.test not in held:
                continue
            if branch.other is None and branch.before is None:
                inside: _Swap = edited(branch.then, swaps)
                swaps[branch] = None if held[branch.test] else _loose(inside)

    def _launched(self) -> Iterator[Polynomial]:
        """What is not negative along the other axes, where a launch has no thread too many."""
        old, launch = self.old, self.old.launch
        for at, axis in enumerate("xyz"[: len(launch.grid)]):
            tree = launch.grid[at].tree
            if at < len(self.counts) or tree is None or old.block[at] != 1:
                continue
            form = form_of(rounded_up(tree, Number(1), 1) or tree, old.reading.symbols)
            if form is not None and said_alike(old, launch.grid[at].names):
                left = room(axis, 1, form)
                yield from (left, left + Polynomial.symbol(f"threadIdx.{axis}"))  # that is 0

    @property
    def _first(self) -> str:
        block = "(unsigned long long)blockIdx.x" if self.wide else "blockIdx.x"
        return f"{block} * {self.block} + threadIdx.x"

    @property
    def _step(self) -> str:
        grid = "(unsigned long long)gridDim.x" if self.wide else "gridDim.x"
        return f"{grid} * {self.block}"

    def _apart(self, shown: str) -> str:
        item = self.item
        made = (
            f"for ({self.kind} {item} = {self._first}; {item} < {self.end}; "
            f"{item} += {self._step}) {shown}"
        )
        for axis, line, end in zip("yz", self.lines, self.ends[1:], strict=False):
            made = (
                f"for ({self.kind} {line} = blockIdx.{axis}; {line} < {end}; "
                f"{line} += gridDim.{axis}) {{\n{made}\n}}"
            )
        return made

    def _together(self, shown: str) -> str:
        first, more = self.first, self.more
        kind = "long long" if self.wide else "int"
        return (
            f"for ({self.kind} {first} = ({self._first}) * {self.items}; {first} < {self.end}; "
            f"{first} += {self._step} * {self.items}) {{\n"
            f"const {kind} {self.item} = "
            f"min(({kind}){self.items}, {self.end} - ({kind}){first});\n"
            f"for ({kind} {more} = 0; {more} < {self.item}; ++{more}) {shown}\n}}"
        )

    def _launch(self) -> LaunchDirective:
        launch, block = self.old.launch, parse_expression(self.block)
        if len(self.counts) > 1:  # few blocks along a row, so that each has several rows
            rows, *planes = self.counts[1:]
            extents = [
                f"cdiv({self.count}, {self.block} * {_ACROSS})",
                f"min({rows}, {self.blocks})",
            ]
            extents += [f"min({count}, cdiv({self.blocks}, {rows}))" for count in planes]
            others = launch.grid[len(self.counts) :]
            grid = (*map(parse_expression, extents), *others)
            return replace(launch, grid=grid, block=(block,))
        each = f"{self.block} * {self.items}" if self.items else self.block
        first = parse_expression(f"min(cdiv({self.count}, {each}), {self.blocks})")
        return replace(launch, grid=(first, *launch.grid[1:]), block=(block,))

    def _tunes(self) -> list[TuneDirective]:
        own, most = self.stride, most_threads(self.old)
        widths = tuple(w for w in own.widths if w <= most)
        if own.block not in widths:
            raise NotLegal(f"it is compiled for no more than {most} threads a block")
        found = [
            TuneDirective(self.block, widths, own.block),
            TuneDirective(self.blocks, tuple(own.most), own.blocks),
        ]
        if self.items:
            found.append(TuneDirective(self.items, tuple(own.several), own.items))
        return found


def _loose(branch: _Swap) -> _Swap:
    """The statements of a branch without its braces, where these hold no names apart."""
    apart = isinstance(branch, Block) and not any(isinstance(s, Declare) for s in branch.body)
    return branch.body if isinstance(branch, Block) and apart else branch
