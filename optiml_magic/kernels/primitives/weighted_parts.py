"""P28, keys in parts: blocks share a row's keys, and a launch behind puts their parts together.

Few rows leave most of the chip idle, however many keys each has. What a part of the keys makes of
the scalars and of the array is scaled by its own extreme, so that two parts are put together as a
key is taken in: by the greater of both extremes.
Source of the step: Dao et al., "Flash-Decoding for long-context inference" (2023).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Expr
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive
from optiml_magic.kernels.primitives.chunks import front
from optiml_magic.kernels.primitives.divided import divide
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.lanes import Lanes
from optiml_magic.kernels.primitives.naming import LocalSpeller, declared_type, type_of
from optiml_magic.kernels.primitives.parameters import with_parameters
from optiml_magic.kernels.primitives.weighted import Pass, Weighted, weighted
from optiml_magic.kernels.primitives.weighted_scalars import BEFORE, FOUND, at_once
from optiml_magic.kernels.primitives.weighted_tiles import by_tiles
from optiml_magic.kernels.primitives.weighted_ways import NOW
from optiml_magic.kernels.printing import Printer
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.tidying import tidied
from optiml_magic.kernels.tree import Block, Statement, Variable
from optiml_magic.source.directives import LaunchDirective, ScratchDirective, TuneDirective
from optiml_magic.source.expressions import parse_expression

COUNTS = (2, 4, 8, 16, 32)
MANY = (*COUNTS, 64)  # for rows that share no keys
_WHOLE = 64  # keys, of which parts have multiples: tiles of them are full
_DTYPES = {"float": "f4", "double": "f8", "int": "i4"}


@primitive
def keys_in_parts(kernel: Kernel, parts: int) -> Kernel:
    """The kernel whose blocks make ``parts`` of the keys by tiles; behind it they are put together.

    Key after key a part could begin with one that is masked by infinity, and have no extreme yet.
    """
    kernel = kernel.settled()
    made = by_tiles(front(_Parts(kernel, weighted(kernel), parts).kernel()))
    if isinstance(made, Refused):
        raise NotLegal(made.reason, made.line)
    return made


@primitive
def rows_in_parts(kernel: Kernel, parts: int, lanes: Lanes) -> Kernel:
    """The kernel whose rows have keys of their own: lanes hold a row for each part of its keys.

    Behind it they are put together, by lanes as well.
    """
    kernel = kernel.settled()
    whole = _Parts(kernel, weighted(kernel, own_keys=True), parts, own=True).kernel()
    first = divide(front(whole), lanes)
    if isinstance(first, Refused):
        raise NotLegal(first.reason, first.line)
    at = first.program.launches.index(first.launch) + 1
    last = divide(replace(first, launch=first.program.launches[at], behind=whole.behind), lanes)
    return last if isinstance(last, Kernel) else first


class _Parts:
    def __init__(self, kernel: Kernel, found: Weighted, parts: int, *, own: bool = False) -> None:
        self.old, self.found, self.most, self.own_keys = kernel, found, parts, own
        self.effects = Effects(kernel)
        if len(found.passes) != 1 or found.array is None or found.type is None:
            raise NotLegal("it goes through its keys more than once")
        if len(kernel.launch.grid) > 2 and str(kernel.launch.grid[2]) != "1":
            raise NotLegal("its launch has three axes")
        (self.part,) = found.passes
        self.known = at_once(kernel, self.effects, self.part)
        self.taken: list[str] = []
        fresh = self._fresh
        self.parts, self.row, self.rows, self.at = map(fresh, ("PARTS", "row", "rows", "part"))
        self.begin, self.end, self.share = map(fresh, ("keys_begin", "keys_end", "keys_each"))
        self.element, self.now = fresh("element"), fresh("extreme")
        self.before, self.own = fresh("scale"), fresh("scale_of_part")
        self.scratch = {v: fresh(f"{v.name}_parts") for v in (*self.known.states, found.array)}
        self.kinds = {v: type_of(kernel, v).name for v in self.scratch}
        if not set(self.kinds.values()) <= _DTYPES.keys():
            raise NotLegal("its scalars are of another type")

    def _fresh(self, name: str) -> str:
        self.taken.append(self.old.fresh(name, *self.taken))
        return self.taken[-1]

    def kernel(self) -> Kernel:
        old, launch = self.old, self.old.launch
        spelled = launch.kernel or old.function.name
        scope, colons, bare = spelled.rpartition("::")
        first = self._fresh(f"{bare}_of_keys")
        directives = [
            TuneDirective(self.parts, MANY if self.own_keys else COUNTS, self.most),
            *self._scratches(),
            self._launch(f"{scope}{colons}{first}"),
        ]  # fmt: skip
        body = self._edited({self.part.axis.node: tuple(self._joined())})
        args = None
        if launch.args is not None:
            args = (*launch.args, *map(parse_expression, self.scratch.values()))
        found = old.rewritten(
            body, launch=replace(launch, kernel=spelled, args=args), directives=directives,
            helpers=[self._first(first)],
        )  # fmt: skip
        return with_parameters(
            found, (f"const {self.kinds[v]}* {name}" for v, name in self.scratch.items())
        )

    def _edited(self, swaps: dict[Node, Node | tuple[Statement, ...] | None]) -> Block:
        made = edited(self.old.function.body, swaps)
        assert isinstance(made, Block)
        return made

    def _launch(self, name: str) -> LaunchDirective:
        launch, one = self.old.launch, parse_expression("1")
        grid = (*launch.grid, one, one)[:2]
        args = None
        if launch.args is not None:
            args = (*launch.args, *map(parse_expression, self.scratch.values()))
        return LaunchDirective(
            name, (*grid, parse_expression(self.parts)), launch.block, args=args
        )  # fmt: skip

    def _scratches(self) -> Iterator[ScratchDirective]:
        rows = [f"({self.found.items.count})", *(f"({extent})" for extent in self._apart())]
        for variable, name in self.scratch.items():
            own = [str(self.found.extent)] if variable is self.found.array else []
            count = parse_expression(" * ".join([self.parts, *own, *rows]))
            yield ScratchDirective(name, _DTYPES[self.kinds[variable]], count)

    def _apart(self) -> tuple[object, ...]:
        """The blocks along y, which have rows of their own."""
        return tuple(self.old.launch.grid[1:2])

    def _places(self) -> Iterator[str]:
        """Which row of all this is."""
        limit = LocalSpeller(self.old.reading.symbols, {}, moved=self.effects.moved)
        limit.kernel = self.old
        count, index = self.found.items.limit(limit), "blockIdx.x * blockDim.x + threadIdx.x"
        many = " * gridDim.y" if self._apart() else ""
        own = f"blockIdx.y * (size_t)({count}) + " if self._apart() else ""
        yield f"const size_t {self.rows} = (size_t)({count}){many};"
        yield f"const size_t {self.row} = {own}({index});"

    def _there(self, variable: Variable) -> str:
        """What a part left of a scalar, or of an element of the array."""
        at, whole = self.at, variable is self.found.array
        if self.own_keys:  # lanes ask for what lies side by side
            at = f"{self.row} * {self.parts} + {self.at}"
            more = f"({at}) * {self.found.extent} + {self.element}"
            return f"{self.scratch[variable]}[{more if whole else at}]"
        if whole:
            at = f"({self.at} * {self.found.extent} + {self.element})"
        return f"{self.scratch[variable]}[{at} * {self.rows} + {self.row}]"

    # -- the launch that makes the parts

    def _first(self, name: str) -> str:
        tail = self.found.parts[-1]
        assert not isinstance(tail, Pass)
        swaps = dict[Node, Node | tuple[Statement, ...] | None](dict.fromkeys(tail))
        swaps[self.part.axis.node] = (lines("\n".join(self._share())),)
        function, raw = self.old.function, self.old.unit.syntax.text
        words = [raw[slice(*p.span)].decode() for p in function.parameters if p.span is not None]
        words += [f"{self.kinds[v]}* {scratch}" for v, scratch in self.scratch.items()]
        shown = Printer(self.old.unit).statement(self._edited(swaps))
        return tidied(f"__global__ void {name}({', '.join(words)}) {shown}")

    def _share(self) -> Iterator[str]:
        array, loop = self.found.array, self.part.axis.node
        assert array is not None
        assert loop.test is not None
        yield f"const int {self.at} = blockIdx.z;"
        yield f"int {self.begin} = {self._shown(self.part.first)};"
        yield f"int {self.end} = {self._last()};"
        whole = f"({self.parts} * {_WHOLE})"
        yield (f"const int {self.share} = (max({self.end} - {self.begin}, 0) + {whole} - 1) / "
               f"{whole} * {_WHOLE};")  # fmt: skip
        yield f"{self.begin} += {self.at} * {self.share};"
        yield f"{self.end} = min({self.end}, {self.begin} + {self.share});"
        for variable in self.known.states:
            yield f"{variable.name} = {self._begun(variable)};"
        each = f"for (int {self.element} = 0; {self.element} < {self.found.extent}; "
        yield f"{each}++{self.element}) {array.name}[{self.element}] = 0;"
        axis = self.part.axis
        assert axis.variable is not None
        assert axis.start is not None
        key, kind = axis.variable.name, declared_type(self.old, axis.variable)
        never_below = Ranges(axis.guard, self.old.reading.symbols).nonnegative(axis.start)
        begin = f"max({self.begin}, 0)" if never_below else self.begin  # so that it is seen
        yield f"for ({kind} {key} = {begin}; {key} < {self.end}; ++{key}) {{"
        yield self.old.show_inside(loop.body)
        yield "}"
        yield from self._places()
        for variable in self.known.states:
            yield f"{self._there(variable)} = {variable.name};"
        yield f"{each}++{self.element}) {self._there(array)} = {array.name}[{self.element}];"

    def _last(self) -> str:
        """Where the keys of a row end."""
        found = [f"(int)({self._shown(e)})" + (" + 1" if w else "") for e, w in self.part.ends]
        last = found[0]
        for other in found[1:]:
            last = f"min({last}, {other})"
        return last

    def _begun(self, variable: Variable) -> str:
        if variable is not self.known.extreme:
            return "0"
        if self.own_keys:  # of keys that infinity masks no power is a number
            return combine.finite(type_of(self.old, variable), self.known.op)
        return combine.beyond(type_of(self.old, variable), self.known.op)

    # -- what puts them together

    def _joined(self) -> Iterator[Statement]:
        known, array, kind = self.known, self.found.array, self.found.type
        assert array is not None
        assert kind is not None
        made = [*self._places()]
        made.append(f"for (int {self.at} = 0; {self.at} < {self.parts}; ++{self.at}) {{")
        scaled = known.factor is not None
        if known.extreme is not None:
            extreme, own = known.extreme, f"{known.extreme.name}_of_part"
            own = self._fresh(own)
            kind_of = self.kinds[extreme]
            made.append(f"const {kind_of} {own} = {self._there(extreme)};")
            if not self.own_keys:
                made.append(f"if ({own} == {self._begun(extreme)}) continue;  // it had no keys")
            now = combine.extreme(type_of(self.old, extreme), known.op, extreme.name, own)
            made.append(f"const {kind_of} {self.now} = {now};")
            if known.factor is not None:
                before = self._scale(known.factor, extreme.name)
                made.append(f"const {kind_of} {self.before} = {self.now} == {extreme.name} ? 1 : "
                            f"{before};")  # fmt: skip
                made.append(f"const {kind_of} {self.own} = {self._scale(known.factor, own)};")
            made.append(f"{extreme.name} = {self.now};")
        for grown in known.sums:
            assert grown.variable is not None
            there, name = self._there(grown.variable), grown.variable.name
            if scaled and grown.scaled:
                made.append(f"{name} = {name} * {self.before} + {there} * {self.own};")
            else:
                made.append(f"{name} += {there};")
        made.append(f"for (int {self.element} = 0; {self.element} < {self.found.extent}; "
                    f"++{self.element})")  # fmt: skip
        place, there = f"{array.name}[{self.element}]", self._there(array)
        if scaled and known.scales:
            made.append(f"{place} = {place} * {self.before} + {there} * {self.own};")
        else:
            made.append(f"{place} += {there};")
        made.append("}")
        yield lines("\n".join(made))

    def _scale(self, factor: Expr, value: str) -> str:
        swaps: dict[Node, Node] = {BEFORE: text(value), NOW: text(self.now), FOUND: text(value)}
        return self._shown(factor, swaps)

    def _shown(self, expr: Expr, swaps: dict[Node, Node] | None = None) -> str:
        return self.old.spelled(expr, swaps or {})
