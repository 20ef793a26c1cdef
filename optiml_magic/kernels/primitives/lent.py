"""P25, lend: lanes that would wait for a longer loop of another lane make its rounds with it.

Where each thread makes as many rounds as memory says, or few threads make any, a warp takes as long
as the longest of its loops, and most of its lanes wait. Here all threads of a warp come to the
loop; one after the other, each that has many rounds hands what these need to all lanes, which
share them, and gets back what they combine. Short loops each lane makes by itself, as before.
Source: Hong et al., "Accelerating CUDA Graph Algorithms at Maximum Warp" (2011); Merrill, Garland
and Grimshaw, "Scalable GPU Graph Traversal" (2012).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Binary, Expr, Name, builtin, every
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in, names
from optiml_magic.kernels.primitives.flagged import flagged
from optiml_magic.kernels.primitives.heads import Heads
from optiml_magic.kernels.primitives.naming import declared_type, type_of
from optiml_magic.kernels.primitives.places import own_text_only
from optiml_magic.kernels.primitives.restricted import shared_by_threads
from optiml_magic.kernels.primitives.rounds import shareable
from optiml_magic.kernels.tree import Blank, Block, Declare, If, Loop, Statement, Variable, walk
from optiml_magic.kernels.types import CType
from optiml_magic.source.directives import TuneDirective

#: Rounds up to which a lane makes them by itself.
LONG = (0, 8, 16, 32, 64, 128)
_WARP = 32
_ALL = "~0u"


@dataclass(frozen=True)
class _Ends:
    """What the counter of a loop begins with and is compared with."""

    first: Expr
    last: Expr
    op: str  # with the counter on its left
    step: int


@primitive
def lent(kernel: Kernel, at: int, alone: int = LONG[3]) -> Kernel:
    """The kernel whose lanes share the long ones of the loops with this number."""
    kernel = kernel.settled()
    size = _width(kernel)
    if size is None or size % _WARP:
        raise NotLegal("its blocks are not of whole warps")
    _check(kernel, loops_in(kernel.function.body)[at])
    together = flagged(kernel, [at])
    if isinstance(together, Refused):
        raise NotLegal(together.reason, together.line)
    lending = _Lending(together, at, alone)
    return shared_by_threads(lending.kernel(), lending.met)


def _width(kernel: Kernel) -> int | None:
    across, down, deep = kernel.block
    return None if across is None or down is None or deep != 1 else across * down


def _check(kernel: Kernel, loop: Loop) -> None:
    """Raise NotLegal where the rounds of a loop are not for any lane of a warp."""
    effects = Effects(kernel)
    effects.straightforward()
    own_text_only(kernel)
    for access in effects.hidden():
        if access.mode != "load":
            raise NotLegal("a function stores for it", access.line)
    for reduction in shareable(kernel, loop, effects):
        if reduction.carried:
            raise NotLegal("what goes along with an extreme is not handed back", reduction.line)
    for expr in effects.inside(loop):
        if builtin(expr).startswith("threadIdx"):
            line = kernel.unit.line(*(expr.span or kernel.function.span))
            raise NotLegal("its rounds ask for the place of their thread", line)


class _Lending:
    """The text of one loop that lanes share where it is long; all threads come to it."""

    def __init__(self, kernel: Kernel, at: int, alone: int) -> None:
        self.old, self.alone = kernel, alone
        self.effects = Effects(kernel)
        self.loop = loops_in(kernel.function.body)[at]
        self.axis = kernel.axes()[self.loop]
        self.heads = Heads(kernel, [self.loop], self.effects)
        self.reductions = shareable(kernel, self.loop, self.effects)
        self.taken: list[str] = []
        self.ends = self._ends()
        self.place, self.flag = self._around()
        self.met = self._met()
        assert self.axis.variable is not None
        name = self.axis.variable.name
        self.limit = self._fresh("ALONE")
        self.first, self.last = self._fresh(f"{name}_first"), self._fresh(f"{name}_last")
        self.many, self.waiting = self._fresh(f"{name}_many"), self._fresh("waiting")
        self.lane, self.lender = self._fresh("lane"), self._fresh("lender")
        self.begin, self.end = self._fresh(f"{name}_begin"), self._fresh(f"{name}_end")

    def _fresh(self, name: str) -> str:
        self.taken.append(self.old.fresh(name, *self.taken))
        return self.taken[-1]

    def _ends(self) -> _Ends:
        loop, axis, line = self.loop, self.axis, self.loop.line
        if not is_counted(axis, self.effects) or not isinstance(loop.before, Declare):
            raise NotLegal("the loop does not count in its head", line)
        step = axis.step.value if axis.step is not None else None
        first, test = loop.before.variables[0].value, loop.test
        if first is None or step is None or step < 1:
            raise NotLegal("the loop does not count up by a number", line)
        mine = axis.variable
        match test:
            case Binary(op="<" | "<=" | "!=", left=Name(variable=own), right=last) if own is mine:
                op = str(test.op)
            case Binary(op=">" | ">=" | "!=", left=last, right=Name(variable=own)) if own is mine:
                op = test.op.replace(">", "<")
            case _:
                raise NotLegal("its end is not what its counter is compared with", line)
        if op == "!=" and step != 1:
            raise NotLegal("steps may jump over its end", line)
        inside = {*every(last)}
        moving = {*self.effects.changed(loop), axis.variable}
        stored = [a.array for a in self.effects.accesses(loop) if a.mode != "load"]
        for access in self.old.reading.accesses:
            if access.own in inside and (
                access.mode != "load" or any(self.effects.same(access.array, s) for s in stored)
            ):
                raise NotLegal("its end may change in its rounds", access.line)
        if names([last]) & moving:
            raise NotLegal("its end may change in its rounds", line)
        return _Ends(first, last, op, step)

    def _around(self) -> tuple[Statement, str]:
        """What is exchanged: the loop, or the branch on a flag that holds nothing else."""
        for statement in walk(self.old.function.body):
            match statement:
                case If(test=Name(name=flag), then=Block(body=body), other=None, before=None):
                    if [s for s in body if not isinstance(s, Blank)] == [self.loop]:
                        return statement, flag
        return self.loop, ""

    def _met(self) -> frozenset[str]:
        """The arrays that a thread touches in the loop and beside it, and stores to."""
        inside = {*self.effects.accesses(self.loop)}
        return frozenset(
            one.array
            for one in inside
            for other in self.old.reading.accesses
            if other not in inside and other.space == "global"
            and self.effects.same(one.array, other.array) and {one.mode, other.mode} != {"load"}
        )  # fmt: skip

    def kernel(self) -> Kernel:
        old = self.old
        swaps: dict[Node, tuple[Statement, ...]] = {self.place: (lines(self._text()),)}
        for block in (s for s in walk(old.function.body) if isinstance(s, Block)):
            for hint, behind in zip(block.body, block.body[1:], strict=False):
                if behind is self.place and isinstance(hint, Blank):
                    swaps[hint] = ()  # to the compiler, of how the loop is unrolled
        width, rows = old.block[0] or 1, old.block[1] or 1
        flat = rows == 1 or width % _WARP == 0
        whole = "threadIdx.x" if flat else f"(threadIdx.y * {width} + threadIdx.x)"
        body = edited(old.function.body, swaps)
        first = lines(f"const int {self.lane} = {whole} % {_WARP};")
        return old.rewritten(
            replace(body, body=(first, *body.body)),
            directives=[TuneDirective(self.limit, LONG, self.alone)],
            helpers=combine.helpers(self.reductions, "warp", mask=False),
        )

    def _text(self) -> str:
        ends, first, last = self.ends, self.first, self.last
        kinds = self.old.reading.types
        assert self.axis.variable is not None
        counter = declared_type(self.old, self.axis.variable)
        end = kinds[ends.last].name
        shown = {e: self.heads.written(e, {}) for e in (ends.first, ends.last)}
        far = self.limit if ends.step == 1 else f"{self.limit} * {ends.step}"
        many = f"{last} - {first} > {far}"
        if ends.op != "!=":
            many = f"{first} {ends.op} {last} && {many}"
        made = [f"{counter} {first} = {shown[ends.first]};", f"{end} {last} = {shown[ends.last]};"]
        if self.flag:
            made = [
                f"{counter} {first} = 0;", f"{end} {last} = 0;",
                f"if ({self.flag}) {{",
                f"{first} = {shown[ends.first]};", f"{last} = {shown[ends.last]};", "}",
            ]  # fmt: skip
            many = f"{self.flag} && {many}"
        alone = f"{self.flag} && !{self.many}" if self.flag else f"!{self.many}"
        waits = ["__syncwarp();"] if self.met else []
        own: dict[Node, Node] = {ends.first: text(first), ends.last: text(last)}
        return "\n".join([
            "{",
            *made,
            f"const bool {self.many} = {many};",
            *waits,
            "// The lanes of a warp share the rounds of those that have many, one after the other.",
            f"unsigned {self.waiting} = __ballot_sync({_ALL}, {self.many});",
            f"for (; {self.waiting} != 0; {self.waiting} &= {self.waiting} - 1) {{",
            *self._together(),
            "}",
            *waits,
            f"if ({alone}) {self.old.show(self.loop, own).strip()}",
            "}",
        ])  # fmt: skip

    def _together(self) -> list[str]:
        """The rounds of one lane, made by all of its warp."""
        counter = declared_type(self.old, self.axis.variable) if self.axis.variable else "int"
        end = self.old.reading.types[self.ends.last].name
        made = [
            f"const int {self.lender} = __ffs({self.waiting}) - 1;",
            f"const {counter} {self.begin} = {self._handed(self.first)};",
            f"const {end} {self.end} = {self._handed(self.last)};",
        ]
        swaps: dict[Node, Node] = {
            self.ends.first: text(self.begin),
            self.ends.last: text(self.end),
        }
        for variable, kind in self._asked().items():
            name = self._fresh(f"{variable.name}_lent")
            spelled, whole = declared_type(self.old, variable), self._whole(variable.name, kind)
            made.append(f"const {spelled} {name} = {whole};")
            swaps |= self._named(variable, name)
        back = []
        changed = {v.name: v for v in self.effects.changed(self.loop.body)}
        for reduction in self.reductions:
            place, part = reduction.place, self._fresh(f"{reduction.place}_part")
            kept = combine.idempotent(reduction)
            begin = self._handed(place) if kept else combine.identity(reduction)
            made.append(f"{reduction.type.name} {part} = {begin};")
            swaps |= self._named(changed[place], part)
            whole = combine.combined(reduction, "warp", str(_WARP), part)
            op = "" if kept else reduction.op
            own = f"if ({self.lane} == {self.lender})"
            back += [f"{part} = {whole};", f"{own} {place} {op}= {part};"]
        shared = self.heads.shared(self.loop, self.lane, str(_WARP), swaps, {})
        return [*made, self.old.show(shared).strip(), *back]

    def _handed(self, name: str) -> str:
        return f"__shfl_sync({_ALL}, {name}, {self.lender})"

    def _whole(self, name: str, kind: CType) -> str:
        """A value as the lender has it: of a vector a shuffle carries one number at a time."""
        if kind.lanes == 1:
            return self._handed(name)
        return f"{{{', '.join(self._handed(f'{name}.{one}') for one in 'xyzw'[: kind.lanes])}}}"

    def _asked(self) -> Mapping[Variable, CType]:
        """The locals that rounds ask for and do not change, with their types."""
        own = {v for s in walk(self.loop) if isinstance(s, Declare) for v in s.variables}
        changed = self.effects.changed(self.loop)
        ends = {*every(self.ends.first), *every(self.ends.last)}
        found: dict[Variable, CType] = {}
        for expr in sorted(
            (e for e in self.effects.inside(self.loop) if isinstance(e, Name) and e not in ends),
            key=lambda e: e.span or (0, 0),
        ):
            variable = expr.variable
            if variable is None or variable in own or variable in changed or variable in found:
                continue
            if variable.storage == "local" and variable.array:
                raise NotLegal(f"`{variable.name}` is an array of its own thread", self.loop.line)
            if variable.storage != "local" and variable.name not in self.effects.moved:
                continue
            if variable.type.reference:
                raise NotLegal(f"`{variable.name}` is a reference", self.loop.line)
            kind = type_of(self.old, variable)
            combine.carries(kind if kind.depth else kind.lane, self.loop.line)
            found[variable] = kind
        return found

    def _named(self, variable: Variable, name: str) -> dict[Node, Node]:
        return {
            e: text(name)
            for e in self.effects.inside(self.loop)
            if isinstance(e, Name) and e.variable is variable
        }
