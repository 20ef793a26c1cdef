"""P15, parts: the rounds of a loop are shared by rows of threads, and by blocks.

Of two launches the first makes parts of the loop's reductions and leaves them in scratch. The
second is the kernel as it was, where what combines the parts stands in the place of the loop: what
comes before the loop both do, what comes behind it the second alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Call,
    Expr,
    Name,
    Step,
    builtin,
    every,
)
from optiml_magic.kernels.functions import LANES
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cutting import check_unfixed
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.primitives.endings import denied
from optiml_magic.kernels.primitives.grids import most_threads
from optiml_magic.kernels.primitives.heads import Heads
from optiml_magic.kernels.primitives.parameters import with_parameters
from optiml_magic.kernels.primitives.pieces import Piece, pieces
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.primitives.rounds import shareable
from optiml_magic.kernels.printing import Printer
from optiml_magic.kernels.reading import Reduction
from optiml_magic.kernels.tidying import tidied
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    If,
    Leave,
    Statement,
    Variable,
    expressions,
    walk,
)
from optiml_magic.source.directives import (
    Directive,
    LaunchDirective,
    ScratchDirective,
    TuneDirective,
)
from optiml_magic.source.expressions import Number, parse_expression

_MOST_DEEP = 64  # threads of a block along z; CUDA C++ Programming Guide, "Compute Capabilities"


@dataclass(frozen=True)
class Sharing:
    """``rows`` of threads in a block, in ``parts`` blocks each, do what one thread did.

    The values of both that a tuner may choose from, as far as a block has room for them.
    """

    rows: int
    parts: int
    row_counts: tuple[int, ...]
    part_counts: tuple[int, ...]


@primitive
def split(kernel: Kernel, at: int, sharing: Sharing) -> Kernel:
    """The loop with this number, counted through the kernel's body from 0, in parts."""
    return Splitting(kernel.settled(), at, sharing).kernel()


def spare_axis(kernel: Kernel) -> str:
    """The first axis along which neither the grid nor its blocks extend.

    Raises NotLegal where there is none, and where the launch or the whole kernel forbids parts.
    """
    launch, function = kernel.launch, kernel.function
    if None in kernel.block:
        raise NotLegal("how many threads its blocks have is not known")
    if launch.condition is not None or launch.otherwise or launch.repeat is not None:
        raise NotLegal("its launch is one of a dispatch or of several rounds")
    if not function.parameters or not kernel.unit.origin.whole(*(function.whole or function.span)):
        raise NotLegal("it has no parameters, or a macro makes it")
    check_unfixed(kernel, alone=True)
    for access in Effects(kernel).hidden():
        if access.mode != "load":
            raise NotLegal("a function stores for it", access.line)
    for at, axis in enumerate("xyz"):
        blocks = launch.grid[at].tree if at < len(launch.grid) else Number(1)
        if at and blocks == Number(1) and kernel.block[at] == 1:
            return axis
    raise NotLegal("its launch has three axes")


class Splitting:
    """The loop with one number, split as ``sharing`` says. Raises NotLegal where it cannot be."""

    in_order = False  # whether parts are neighbouring rounds

    def __init__(self, kernel: Kernel, at: int, sharing: Sharing) -> None:
        self.old = kernel
        self.effects = Effects(kernel)
        self.loop = loops_in(kernel.function.body)[at]
        self.axis = self._axis()
        self.before = "xyz"[: "xyz".index(self.axis)]  # the axes that there are
        self.reductions = self._combining()
        self._check_loop()
        self.used = set(self._asked())
        self.taken: list[str] = []
        self.rows, self.parts = self._fresh("ROWS"), self._fresh("PARTS")
        self.row, self.turn = self._fresh("row"), self._fresh("turn")
        self.thread, self.threads = self._fresh("thread"), self._fresh("threads")
        self.pieces = tuple(self._pieces())
        self.counts = self._rows(sharing)
        self.sharing = sharing

    def _pieces(self) -> Iterator[Piece]:
        """What a part leaves for the second launch."""
        return pieces(self.old, self.loop, self.reductions, self.effects, self._fresh)

    def _fresh(self, name: str) -> str:
        self.taken.append(self.old.fresh(name, *self.taken))
        return self.taken[-1]

    # -- what makes it legal

    def _axis(self) -> str:
        """The axis of the launch that parts have for themselves."""
        return spare_axis(self.old)

    def _combining(self) -> tuple[Reduction, ...]:
        """What the rounds of the loop combine, and parts of them."""
        return shareable(self.old, self.loop, self.effects)

    def _check_loop(self) -> None:
        kernel, loop = self.old, self.loop
        for expr in expressions(kernel.function.body):
            if builtin(expr).endswith(f".{self.axis}"):
                line = kernel.unit.line(*(expr.span or kernel.function.span))
                raise NotLegal(f"it asks where it stands along {self.axis}", line)
        self._check_stores()
        self._check_calls(self.effects.inside(loop))
        self._check_reductions()

    def _check_reductions(self) -> None:
        if not self.reductions:
            raise NotLegal("its rounds combine nothing", self.loop.line)
        for reduction in self.reductions:
            if reduction.carried and not self.in_order:
                raise NotLegal("what goes along with an extreme is not split", reduction.line)

    def _check_stores(self) -> None:
        for access in self.effects.accesses(self.loop):
            if access.mode != "load":
                raise NotLegal("it stores in the loop", access.line)

    def _rows(self, sharing: Sharing) -> tuple[int, ...]:
        """The numbers of rows for which a block has room."""
        width = self._width()
        most = min(most_threads(self.old) // width, _MOST_DEEP if self.axis == "z" else width * 32)
        each = sum(r.type.size or 0 for r in self.reductions) * width
        fit = tuple(n for n in sharing.row_counts if n <= most and n * each <= SHARED)
        if not fit:
            raise NotLegal("a block has no room for another row of threads", self.loop.line)
        return fit

    def _width(self) -> int:
        return math.prod(size or 1 for size in self.old.block)

    # -- the first launch: what leads to the loop

    def _asked(self) -> frozenset[Variable]:
        """The locals and parameters that the loop needs; what a part begins with is none."""
        own = {r.place for r in self.reductions if not combine.idempotent(r)}
        changed = self.effects.changed(self.loop.body)
        return frozenset(
            v for v in self.effects.mentions(self.loop) if v not in changed or v.name not in own
        )

    def _way(self, statement: Statement) -> tuple[Statement, ...]:
        """What of a statement that holds the loop runs up to the loop's end."""
        if statement is self.loop:
            return self._shared()
        match statement:
            case Block(body=body):
                return (self._block(body),)
            case If(before=None, constant=False, test=test, then=then, other=other):
                chosen = self.loop in set(walk(then))
                inner = self._way(then if chosen else other or then)
                match inner:
                    case (Block() as only,):
                        whole = only
                    case _:
                        whole = Block(None, statement.line, inner)
                self._need(test)
                return (
                    If(None, statement.line, test if chosen else denied(self.old, test), whole),
                )
        raise NotLegal("the loop is inside of another", self.loop.line)

    def _block(self, body: Sequence[Statement]) -> Block:
        at = next(n for n, s in enumerate(body) if self.loop in set(walk(s)))
        made = [*self._way(body[at])]
        for statement in reversed(body[:at]):
            left = any(isinstance(s, Leave) and s.kind == "return" for s in walk(statement))
            if left:
                test = denied(self.old, self._exit(statement))
                made = [If(None, statement.line, test, Block(None, statement.line, tuple(made)))]
            elif not self._spared(statement):
                self._need(*expressions(statement))
                made.insert(0, statement)
        return Block(None, self.loop.line, tuple(made))

    def _need(self, *found: Expr) -> None:
        self.used |= names(found)
        own = {part for expr in found for part in every(expr)}
        self._check_calls(own)
        for access in self.old.reading.accesses:
            if access.mode != "load" and access.space == "global" and access.own in own:
                raise NotLegal("it stores before the loop", access.line)

    def _check_calls(self, found: Iterable[Expr]) -> None:
        """What runs in parts exchanges nothing with other lanes; what comes behind it may."""
        exchange = any(LANES.fullmatch(name) for name in self.old.reading.calls)
        for call in found:
            if isinstance(call, Call) and exchange:
                own = self.old.unit.called(call.function, len(call.arguments))
                if own or LANES.fullmatch(call.function):
                    raise NotLegal("lanes exchange values before the loop or in it", self.loop.line)

    def _exit(self, statement: Statement) -> Expr:
        """The test of a branch that does nothing but leave the kernel."""
        match statement:
            case If(before=None, constant=False, test=test, other=None, then=then):
                inner = then.body if isinstance(then, Block) else (then,)
                if len(inner) == 1 and isinstance(inner[0], Leave):
                    self._need(test)
                    return test
        raise NotLegal("the kernel may be left before the loop", statement.line)

    def _spared(self, statement: Statement) -> bool:
        """Whether this only declares what nobody on the way asks for."""
        match statement:
            case Declare(variables=(only,)) if only not in self.used:
                return not any(isinstance(e, Call | Assign | Step) for e in expressions(statement))
        return False

    def _shared(self) -> tuple[Statement, ...]:
        """The loop over a row's own rounds, into the parts."""
        private: dict[Node, Node] = {}
        kept = []
        changed = {v.name: v for v in self.effects.changed(self.loop.body)}
        for piece in self.pieces:
            if piece.kept:
                kept.append(lines(f"{piece.local} = {piece.place};"))
                continue
            private |= {
                e: text(piece.local)
                for e in self.effects.inside(self.loop)
                if isinstance(e, Name) and e.variable is changed[piece.place]
            }
        return *self._own_rounds(private), *kept, *self._left()

    def _own_rounds(self, private: Mapping[Node, Node]) -> tuple[Statement, ...]:
        """The loop over every so many-th round."""
        count = f"{self.rows} * {self.parts}"
        heads = Heads(self.old, [self.loop], self.effects)
        return (heads.shared(self.loop, self.turn, count, private, {}),)

    def _left(self) -> tuple[Statement, ...]:
        """What is done with the parts behind the loop, where its guards are still around."""
        return ()

    def _first(self, name: str) -> str:
        """The text of the kernel that makes the parts."""
        way = self._block(self.old.function.body.body)
        self.given = [p for p in self.old.function.parameters if p in self.used]
        raw = self.old.unit.syntax.text
        words = [raw[slice(*p.span)].decode() for p in self.given if p.span is not None]
        words += [f"{p.type.name}* {p.scratch}" for p in self.pieces]
        opening = [
            f"const int {self.turn} = {self._turn()};",
            *self._begun(),
        ]
        body = replace(way, body=(*map(lines, opening), *way.body, lines(self._ending())))
        shown = Printer(self.old.unit).statement(body)
        function = self.old.function
        head = raw[slice((function.whole or function.span)[0], function.span[0])].decode()
        return head + tidied(f"__global__ void {name}({', '.join(words)}) {shown}")

    def _begun(self) -> list[str]:
        """The locals that a thread finds its parts in."""
        return [f"{p.type.name} {p.local} = {p.begin};" for p in self.pieces]

    def _turn(self) -> str:
        """Which part of the rounds a thread makes."""
        return f"blockIdx.{self.axis} * {self.rows} + threadIdx.{self.axis}"

    def _ending(self) -> str:
        """Rows of a block become one, which leaves its part."""
        column, shape = "threadIdx.x", f"[{self.rows}][{self._width()}]"
        if self.axis == "z":
            column = f"threadIdx.y * {self.old.block[0]} + threadIdx.x"
        arrays = {p: self._fresh(f"{p.place}_rows") for p in self.pieces}
        found = [f"__shared__ {p.type.name} {name}{shape};" for p, name in arrays.items()]
        row = f"[threadIdx.{self.axis}][{column}]"
        found += [f"{name}{row} = {p.local};" for p, name in arrays.items()]
        found += ["__syncthreads();", f"if (threadIdx.{self.axis} == 0) {{"]
        found.append(f"for (int {self.row} = 1; {self.row} < {self.rows}; ++{self.row}) {{")
        for p, name in arrays.items():
            assert p.reduction is not None  # nothing goes along where rounds are not in order
            other = f"{name}[{self.row}][{column}]"
            found.append(combine.joining(p.reduction, p.local, other))
        found += ["}", *self._places()]
        at = f"blockIdx.{self.axis} * {self.threads} + {self.thread}"
        found += [f"{p.scratch}[{at}] = {p.local};" for p in self.pieces]
        return "\n".join([*found, "}"])

    def _places(self) -> list[str]:
        """Which of the threads this is that the kernel had."""
        threads = [f"(size_t)gridDim.{a} * blockDim.{a}" for a in self.before]
        x, *y = (f"(size_t)blockIdx.{a} * blockDim.{a} + threadIdx.{a}" for a in self.before)
        thread = f"({y[0]}) * gridDim.x * blockDim.x + {x}" if y else x
        return [f"const size_t {self.threads} = {' * '.join(threads)};",
                f"const size_t {self.thread} = {thread};"]  # fmt: skip

    # -- the second launch, and both

    def _combined(self) -> tuple[Statement, ...]:
        """What stands in the place of the loop: the parts of this thread, in order."""
        part = self._fresh("part")
        loop = [f"for (int {part} = 0; {part} < {self.parts}; ++{part}) {{"]
        at = f"{part} * {self.threads} + {self.thread}"
        loop += [p.joining(at) for p in self.pieces if p.reduction is not None]
        return (*map(lines, self._places()), lines("\n".join([*loop, "}"])))

    def _replaced(self) -> dict[Node, Node | tuple[Statement, ...] | None]:
        """What the second launch does otherwise than the kernel did."""
        return {self.loop: self._combined()}

    def _relaunched(self, launch: LaunchDirective) -> LaunchDirective:
        return launch

    def _helpers(self) -> tuple[str, ...]:
        """The functions that the second launch needs."""
        return ()

    def kernel(self) -> Kernel:
        old, launch = self.old, self.old.launch
        spelled = launch.kernel or old.function.name
        plain, opening, given = spelled.partition("<")
        scope, colons, bare = plain.rpartition("::")
        first = self._fresh(f"{bare}_parts")
        made = self._first(first)
        body = edited(old.function.body, self._replaced())
        args = None
        if launch.args is not None:
            args = (*launch.args, *(parse_expression(p.scratch) for p in self.pieces))
        found = old.rewritten(
            body,
            launch=self._relaunched(replace(launch, kernel=spelled, args=args)),
            directives=[
                *self._directives(),
                self._launch(f"{scope}{colons}{first}{opening}{given}"),
            ],
            helpers=[*self._helpers(), made],
        )
        return with_parameters(found, (f"const {p.type.name}* {p.scratch}" for p in self.pieces))

    def _directives(self) -> list[Directive]:
        sharing, launch = self.sharing, self.old.launch
        rows = max((n for n in self.counts if n <= sharing.rows), default=self.counts[0])
        threads = [f"({extent})" for extent in (*launch.grid, *launch.block)]
        count = parse_expression(" * ".join([self.parts, *threads]))
        return [
            TuneDirective(self.rows, self.counts, rows),
            TuneDirective(self.parts, sharing.part_counts, sharing.parts),
            *(ScratchDirective(p.scratch, p.dtype, count) for p in self.pieces),
        ]

    def _launch(self, name: str) -> LaunchDirective:
        launch, at, one = self.old.launch, "xyz".index(self.axis), parse_expression("1")
        grid, block = ((*s, one, one)[:at] for s in (launch.grid, launch.block))
        args = None
        if launch.args is not None:
            passed = zip(self.old.function.parameters, launch.args, strict=True)
            args = (*(a for p, a in passed if p in self.given),
                    *(parse_expression(p.scratch) for p in self.pieces))  # fmt: skip
        parts, rows = parse_expression(self.parts), parse_expression(self.rows)
        return LaunchDirective(name, (*grid, parts), (*block, rows), args=args)
