"""P5 and P9, unroll and jam: a thread takes several items, and what they share it loads once.

Items are what threads did that stood beside each other along an axis. A thread far from the borders
goes through the kernel once, each statement for all of its items in turn (``together``). Items of
threads at the borders are taken one by one, by the statements as they were (``edges``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Lambda
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import every_place_read, without_warps
from optiml_magic.kernels.primitives.base import (
    Kernel,
    NotLegal,
    Refused,
    in_turn,
    primitive,
)
from optiml_magic.kernels.primitives.cutting import Freedom, freedom, uses
from optiml_magic.kernels.primitives.decided import Decided
from optiml_magic.kernels.primitives.edges import Edges
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.grids import form_of
from optiml_magic.kernels.primitives.grids import most_threads as allowed
from optiml_magic.kernels.primitives.indices import Along, Undecided
from optiml_magic.kernels.primitives.interior import Interior
from optiml_magic.kernels.primitives.limits import at_least, limits
from optiml_magic.kernels.primitives.pairs import are_integers, in_pairs
from optiml_magic.kernels.primitives.places import as_wide, axis_of, is_wide, own_text_only
from optiml_magic.kernels.primitives.saved import Saved, saved_by
from optiml_magic.kernels.primitives.together import Together
from optiml_magic.kernels.primitives.updates import commuting
from optiml_magic.kernels.primitives.vectored import Vectored
from optiml_magic.kernels.tree import Declare, Leave, Variable, expressions, walk
from optiml_magic.source.directives import LaunchDirective, RequireDirective, TuneDirective
from optiml_magic.source.expressions import Expression, Number, parse_expression

THREADS, _WARP = 256, 32  # of a block that is worth its registers, and of a warp
_RESIDENT = 2048  # threads of a multiprocessor: CUDA C++ Programming Guide, "Compute Capabilities"
_BLOCKS = (1, 2, 3, 4, 5, 6, 8)


@dataclass(frozen=True)
class Several:
    """How many items a thread may take along each axis, the first of these to begin with.

    Scalars that are ``fixed`` have these values where a thread takes its items together; elsewhere
    they are taken one by one. ``blocks`` are extents that a block may have along each axis. Where
    items are ``padded`` tests of borders stay, and those near a border are taken together as well.
    """

    counts: Mapping[str, tuple[int, ...]]
    fixed: Mapping[str, int] = field(default_factory=dict)
    blocks: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    padded: bool = False
    stacks: bool = True


@primitive
def jam(kernel: Kernel, several: Several) -> Kernel:
    """The kernel whose threads take several items each along some axes."""
    return _Jam(kernel.settled(), several).kernel()


def jam_in_pairs(kernel: Kernel, several: Several) -> Kernel | Refused:
    """The same, where items of narrow numbers are computed two at a time if that is exact."""
    made = _in_pairs(kernel, several)
    return made if isinstance(made, Kernel) else jam(kernel, several)


def jam_apart(kernel: Kernel, several: Several) -> Kernel | Refused:
    """The same one at a time, where ``jam_in_pairs`` takes integers two at a time."""
    made = _in_pairs(kernel, several)
    if isinstance(made, Refused) or not are_integers(made):
        return Refused("no integers are taken two at a time")
    return jam(kernel, several)


def _in_pairs(kernel: Kernel, several: Several) -> Kernel | Refused:
    if "x" not in several.counts:
        return Refused("its items are not neighbours")
    return in_turn(kernel, (lambda k: jam(k, replace(several, stacks=False)), in_pairs))


def free_axes(kernel: Kernel) -> str:
    """The axes along which threads stand, and a thread may take several items."""
    return "".join(a for a in "xyz" if uses(kernel, a).whole and _freedom(kernel, a))


def least(kernel: Kernel, several: Several, axis: str) -> int:
    """The least extent of a block, so that its grid has no more blocks along an axis than before.

    Along x there may be as many as threads can be counted. Where items lie one after the other
    along z, blocks of one thread there are best, and the launch asks for no more than there may be.
    """
    old = kernel.block["xyz".index(axis)] or 1
    free = axis == "x" or (axis == "z" and axis in several.counts)
    return 1 if free else -(-old // min(several.counts.get(axis, (1,))))


def most_threads(kernel: Kernel, several: Several) -> int:
    """Threads of a block that fit with as many registers as one may have, or as few as possible."""
    rows = math.prod(least(kernel, several, axis) for axis in "yz")
    return min(max(THREADS, _WARP * rows), allowed(kernel))


def item_names(kernel: Kernel, axes: Iterable[str]) -> dict[str, str]:
    """What the numbers of items are called, by axis."""
    return {axis: kernel.fresh(f"ITEMS_{axis.upper()}") for axis in axes}


def extent_names(kernel: Kernel) -> dict[str, str]:
    """What the extents of a block are called, by axis; none where they stay as they are.

    One thread along an axis stays one where it is not certain how many there are.
    """
    found = {a: _freedom(kernel, a) for a in "xyz" if uses(kernel, a).whole}
    found = {a: free for a, free in found.items() if free or kernel.block["xyz".index(a)] != 1}
    numbers = all(isinstance(size.tree, Number) for size in kernel.launch.block)
    if kernel.function.launch_bounds or not all(found.values()) or not numbers:
        return {}
    axes = [axis for axis, free in found.items() if free is not None and not free.guard]
    single = len(axes) == 1
    return {a: kernel.fresh("BLOCK" if single else f"BLOCK_{a.upper()}") for a in axes}


def blocks_name(kernel: Kernel) -> str:
    """What says for how many blocks of a multiprocessor there shall be registers; empty if none."""
    return kernel.fresh("BLOCKS") if extent_names(kernel) else ""


def _freedom(kernel: Kernel, axis: str) -> Freedom | None:
    """How many threads there are along an axis, where it may have more or fewer."""
    try:
        found = freedom(kernel, axis)
    except NotLegal:
        return None
    return found if found.count is not None and _form(kernel, found.count) is not None else None


def _form(kernel: Kernel, count: Expression) -> Polynomial | None:
    return form_of(count.tree, kernel.reading.symbols)


@dataclass(frozen=True)
class Sharing:
    """What items along each axis alone would save of a thread's loads.

    ``rows`` are products of sizes, with numbers that must divide them where vectors are taken;
    ``deep`` where the loads stand in a loop around all items, so that they are most of the work;
    ``alone`` where memory says where a row is, which is another for items along other axes. So
    many tests of borders ``stay``.
    """

    saved: Mapping[str, Saved]
    rows: tuple[tuple[Polynomial, int], ...] = ()
    deep: bool = False
    alone: bool = False
    stay: int = 0


def shared(kernel: Kernel, several: Several) -> Sharing:
    """What is shared by as many items as come first in the counts of each axis."""
    kernel = kernel.settled()
    made = _Jam(kernel, several)
    saved = {
        along.axis: saved_by(made.decided, along, several.counts[along.axis][0])
        for along in made.along if along.several
    }  # fmt: skip
    rows = made.vectored.rows if made.vectored is not None else ()
    alone = any(window.begun for own in made.decided.windows.values() for window in own)
    accesses = [access for _, access in made.decided.elements]
    deep = any(made.decided.keeps(a.node) for one in accesses for a in kernel.reading.loops(one))
    sizes = tuple((Polynomial.of({s: 1}), width) for s, width in sorted(rows))
    sizes += tuple(made.vectored.apart) if made.vectored is not None else ()
    padded = made.decided.padded
    stay = len(made.decided.scopes.around) + len(padded.own) if padded is not None else 0
    return Sharing(saved, sizes, deep, alone, stay)


class _Jam:
    def __init__(self, kernel: Kernel, several: Several) -> None:
        self.old = kernel
        self.several = several
        self.effects = Effects(kernel)
        self._check()
        self.counts = item_names(kernel, several.counts)
        self.free = {a: _freedom(kernel, a) for a in "xyz"}
        for axis in several.counts:
            if self.free[axis] is None:
                freedom(kernel, axis)
                raise NotLegal(f"how many items there are along {axis} is not certain")
        self.swaps: dict[Node, Node | None] = {}
        self.along = [self._axis(a) for a in "zyx" if uses(kernel, a).whole]
        self.extents = extent_names(kernel)
        self.blocks = blocks_name(kernel)

        beyond = (0, 0)
        self._decide(beyond)
        while (more := self._reached(beyond)) != beyond:
            beyond = more
            self._decide(beyond)
        padded = self.decided.padded
        if padded is not None and not self.decided.scopes.around and not padded.own:
            raise NotLegal("no test of a border stays")
        self.decided.prepare()

    def _reached(self, beyond: tuple[int, int]) -> tuple[int, int]:
        """How far the loads of what was decided reach, or more."""
        own = self.vectored.beyond if self.vectored is not None else beyond
        return max(own[0], beyond[0]), max(own[1], beyond[1])

    def _decide(self, beyond: tuple[int, int]) -> None:
        """What holds for items, and for as many ``beyond`` them along x."""
        kernel, several = self.old, self.several
        self.interior = Interior(kernel, self.effects, self.along, several.fixed, beyond)
        most = math.prod(values[0] for values in several.counts.values())
        try:
            self.interior.exist()
        except Undecided as reason:
            raise NotLegal(f"how many items there are is not compared: {reason}") from reason
        self.decided = Decided(
            kernel, self.effects, self.interior, most, self.swaps, padded=several.padded
        )
        self.vectored: Vectored | None = None
        for along in self.along:
            if along.axis == "x" and along.several:
                self.vectored = Vectored(self.decided, along, math.gcd(*several.counts["x"]))
                self.vectored.fill()

    def kernel(self) -> Kernel:
        columns = self.vectored if self.several.stacks else None
        inside = Together(self.old, self.effects, self.decided, self.vectored, columns).lines()
        launch, tunes = self._launch(), self._tunes()
        edges = Edges(self.old, self.along, [str(size) for size in launch.block])
        made = [self._first(along, edges) for along in self.along]
        tests, counted = self.interior.tests(), self._counted()
        if tests:
            exists = [*counted, *self.interior.begun()]
            made += [*edges.before([*counted, *tests], exists), f"if ({edges.inside}) {{",
                     *inside, "}", *edges.behind(self._one_by_one(edges))]  # fmt: skip
        else:
            made += [*(f"if (!({test})) return;" for test in counted), *inside]
        body = replace(self.old.function.body, body=(lines("\n".join(made)),))
        asked = [*limits(self.old, launch, tunes), *self._required()]
        bounds = f"{edges.threads_of_block}, {self.blocks}" if self.blocks else ""
        return self.old.rewritten(body, launch=launch, directives=[*tunes, *asked], bounds=bounds)

    def _required(self) -> list[RequireDirective]:
        found = self.vectored.asked if self.vectored is not None else ()
        return [RequireDirective(parse_expression(one)) for one in found]

    def _check(self) -> None:
        kernel, effects = self.old, self.effects
        effects.straightforward()
        without_warps(kernel)
        own_text_only(kernel)
        every_place_read(kernel)
        for name in sorted(effects.moved):
            raise NotLegal(f"the parameter `{name}` changes")
        in_any_order = commuting(kernel)
        for access in kernel.reading.accesses:
            if access.mode == "atomic" and access not in in_any_order:
                raise NotLegal("threads may wait for what an atomic operation says", access.line)
        for loop in loops_in(kernel.function.body):
            if any(isinstance(s, Leave) and s.kind == "return" for s in walk(loop)):
                raise NotLegal("the kernel is left within a loop", loop.line)
        for statement in walk(kernel.function.body):
            for variable in statement.variables if isinstance(statement, Declare) else ():
                if variable.storage != "local":
                    raise NotLegal(f"`{variable.name}` is not the item's own", statement.line)
        if any(isinstance(e, Lambda) for e in expressions(kernel.function.body)):
            raise NotLegal("it has a function within itself")

    def _axis(self, axis: str) -> Along:
        kernel, width = self.old, self.old.block["xyz".index(axis)]
        if width is None:
            raise NotLegal(f"the extent of its block along {axis} is not a number")
        found = uses(kernel, axis)
        wide = next((e for e in found.whole if is_wide(kernel, e)), None)
        words, name = "int" if wide is None else kernel.reading.types[wide].name, ""
        for statement in kernel.function.body.body:
            if not isinstance(statement, Declare):
                continue
            for variable in statement.variables:
                if not name and self._holds(variable, axis):
                    kind = kernel.reading.types.get(variable.value) if variable.value else None
                    spelled = statement.words.replace("auto", kind.name if kind else "int")
                    words = " ".join(spelled.replace("const", " ").split())
                    name = variable.name
                    self._undeclare(statement, variable)
        several = axis in self.several.counts
        name = name or kernel.fresh(f"{axis}_index")
        self.swaps |= {place: text(as_wide(self.old, place, name)) for place in found.whole}
        free = self.free[axis]
        bound = _form(kernel, free.count) if free is not None and free.count is not None else None
        return Along(
            axis, width, name, words,
            kernel.fresh(f"{name}_first") if several else name,
            kernel.fresh(f"{name}_item"),
            self.counts.get(axis, "1"),
            bound,
            str(free.count) if several and free is not None and free.guard else "",
            self.several.counts.get(axis, ()),
        )  # fmt: skip

    def _holds(self, variable: Variable, axis: str) -> bool:
        """Whether a local holds the thread's index along an axis, and always does."""
        value = variable.value
        place = value is not None and value in uses(self.old, axis).whole
        return (
            (place or (value is not None and axis_of(self.old, value) == axis))
            and variable in self.effects.lasting
            and not variable.type.depth
        )

    def _undeclare(self, statement: Declare, variable: Variable) -> None:
        before = self.swaps.get(statement, statement)
        assert isinstance(before, Declare)
        rest = tuple(v for v in before.variables if v is not variable)
        alone = replace(before, variables=rest, span=None)
        self.swaps[statement] = alone if rest else None

    def _first(self, along: Along, edges: Edges) -> str:
        at = edges.first(along, f"threadIdx.{along.axis}")
        # The item's own name may have a reference, which must not be one to a constant.
        return f"{'const ' if along.several else ''}{along.words} {along.first} = {at};"

    def _counted(self) -> list[str]:
        """That a thread's first index is not beyond what an int counts."""
        return [f"{a.first} >= 0" for a in self.along
                if a.axis == "x" and a.several and a.words == "int"]  # fmt: skip

    def _one_by_one(self, edges: Edges) -> str:
        """An item by itself, as the kernel was; ways out of it lead to the next."""
        body = self.old.function.body
        leaves: dict[Node, Node | None] = {
            s: lines("continue;") for s in walk(body)
            if isinstance(s, Leave) and s.kind == "return"
        }  # fmt: skip
        swaps = {**self.swaps, **edges.swaps, **leaves}
        inner = {n: s for n, s in swaps.items() if not isinstance(s, Declare)}
        swaps = {n: edited(s, inner) if isinstance(s, Declare) else s for n, s in swaps.items()}
        shown = self.old.show(replace(body, span=None), swaps)
        return shown.removeprefix("{").removesuffix("}").strip("\n")

    def _launch(self) -> LaunchDirective:
        launch = self.old.launch
        rank = max(len(launch.grid), *("xyz".index(a.axis) + 1 for a in self.along))
        one = parse_expression("1")
        grid = [*launch.grid, *[one] * (rank - len(launch.grid))]
        block = [*launch.block, *[one] * (rank - len(launch.block))]
        for along in self.along:
            at, free = "xyz".index(along.axis), self.free[along.axis]
            if along.axis in self.extents:
                block[at] = parse_expression(self.extents[along.axis])
            if free is not None and (along.several or along.axis in self.extents):
                by = f"({block[at]})" if " " in str(block[at]) else str(block[at])
                if along.several:
                    by = along.count if by == "1" else f"{by} * {along.count}"
                grid[at] = parse_expression(f"cdiv({free.count}, {by})")
        while len(block) > len(launch.block) and block[-1] == one:
            block.pop()
        return replace(launch, grid=tuple(grid), block=tuple(block))

    def _tunes(self) -> list[TuneDirective]:
        found = [
            TuneDirective(self.counts[axis], tuple(sorted({*values})), values[0])
            for axis, values in self.several.counts.items()
        ]
        lowest = {a: least(self.old, self.several, a) for a in "yz"}
        most = most_threads(self.old, self.several)
        old = {a: size or 1 for a, size in zip("xyz", self.old.block, strict=True)}
        if math.prod(old.values()) > most:
            old = {a: lowest.get(a, _WARP) if a in self.extents else old[a] for a in old}
        others = [f"({size})" for axis, size in zip("xyz", self.old.launch.block, strict=False)
                  if axis not in self.extents]  # fmt: skip
        fits = parse_expression(f"{' * '.join([*self.extents.values(), *others]) or 1} <= {most}")
        for axis, name in self.extents.items():
            wanted = self.several.blocks.get(axis, ())
            values = {*at_least(wanted, lowest.get(axis, 1)), old[axis]}
            last = len(self.extents) > 1 and name == [*self.extents.values()][-1]
            condition = fits if last else None
            found.append(TuneDirective(name, tuple(sorted(values)), old[axis], condition))
        if self.blocks:
            whole = parse_expression(
                f"{' * '.join([*self.extents.values(), *others, self.blocks])} <= {_RESIDENT}"
            )
            found.append(TuneDirective(self.blocks, _BLOCKS, 1, whole))
        return found
