"""P4, blocks that wait: what one thread does alone all do together, and a warp what each did.

Between two barriers, ``if (threadIdx.x == 0) for (...) sum += x[j];`` leaves a block waiting for
one of its threads: the block shares the rounds. Where each thread walks along a row of its own,
``for (t = threadIdx.x; t < n; t += blockDim.x)``, the lanes of a warp share the row, and rounds are
as many apart as the block has such groups. Where a thread keeps something of all of its rows, such
as the smallest, its lanes go through the rows of each of them in turn. Where it walks down a
column, and there are fewer of these than threads, the threads that had none take a part of the
column. And what each thread went through by itself with the same result as all others, such as the
maximum of a row that they share, the block shares as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Binary, Call, Name, every
from optiml_magic.kernels.functions import LANES
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, once, primitive, where_legal
from optiml_magic.kernels.primitives.carried import carried
from optiml_magic.kernels.primitives.combine import Group
from optiml_magic.kernels.primitives.effects import (
    Effects,
    is_counted,
    loops_in,
    names,
    outermost,
)
from optiml_magic.kernels.primitives.lane_rounds import LaneRounds
from optiml_magic.kernels.primitives.lone import held_alone
from optiml_magic.kernels.primitives.rows import along
from optiml_magic.kernels.primitives.sizes import rounds, value
from optiml_magic.kernels.primitives.uniform import Uniform, returns, texts
from optiml_magic.kernels.primitives.waits import is_barrier
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    walk,
)
from optiml_magic.source.directives import TuneDirective

WARP = 32
FEW = 32  # rounds below which one thread is as good as all of them: ours
_THREAD = Polynomial.symbol("threadIdx.x")
_LANES = (8, 16, 32)
Kind = Literal["alike", "alone", "rows", "columns"]
_GROUPS: dict[Kind, Group] = {
    "alike": "block", "alone": "block", "rows": "warp", "columns": "stacked"
}  # fmt: skip
_SPACES = ("global", "shared")
_WORD = re.compile(r"[\w.]+")
_WAIT = "__syncthreads();"
_MEETS = re.compile(rf"sync|{LANES.pattern}")


@dataclass(frozen=True, eq=False)
class Section:
    """Statements of a block that waits beside them, for one of its threads or for rounds of each.

    ``whole`` is what becomes another statement, ``scope`` what is done once, or once a round;
    ``before`` and ``after`` say whether a barrier is missing there.
    """

    whole: If | Loop
    scope: Block
    before: bool
    after: bool
    kind: Kind = "alone"
    axis: Axis | None = None  # of the rounds that threads have, None where one is alone


@dataclass(frozen=True)
class Shared:
    """A kernel whose sections are shared, the counters of the loops in them, and what was not.

    ``exact`` where nothing is rounded otherwise.
    """

    kernel: Kernel
    counters: tuple[str, ...] = ()
    refused: tuple[NotLegal, ...] = ()
    exact: bool = True


@primitive
def sectioned(kernel: Kernel, kind: Kind) -> Kernel:
    """The kernel with all of its sections of a kind shared; there must be one."""
    found = shared_sections(kernel, kind)
    if not found.counters:
        raise next(iter(found.refused), NotLegal("no thread works while its block waits"))
    return found.kernel


@once
def shared_sections(kernel: Kernel, kind: Kind) -> Shared:
    """A kernel with each of its sections of a kind shared that may be."""
    made, found = kernel.settled(), Shared(kernel)
    made = _held(made) if kind == "alone" else made
    for _ in range(len(loops_in(kernel.function.body))):
        refused = list[NotLegal]()
        sections = _sections(made, kind)
        # What a loop leaves alike is told by its text as it was: the last of them first.
        for section in reversed([*sections]) if kind == "alike" else sections:
            try:
                sharing = _SectionRounds(made, section)
                made = sharing.kernel()
            except (NotLegal, Unspelled) as reason:
                refused += [reason] if isinstance(reason, NotLegal) else []
                continue
            names = found.counters + tuple(dict.fromkeys(a.name for a in sharing.counters()))
            found = Shared(made, names, exact=found.exact and sharing.exact())
            break
        else:
            return replace(found, refused=tuple(refused))
    return found


def _held(kernel: Kernel) -> Kernel:
    """The kernel where threads that work alone add to locals, and keep what they stored last."""
    kernel = where_legal(carried, kernel, space="shared")
    changes: dict[Node, Node] = {}
    for section in _sections(kernel, "alone"):
        made = held_alone(kernel, section.scope, [*outermost(section.scope)])
        if made is not section.scope:
            assert isinstance(section.whole, If)
            changes[section.whole] = replace(section.whole, span=None, then=made)
    return kernel.rewritten(edited(kernel.function.body, changes)) if changes else kernel


def _sections(kernel: Kernel, kind: Kind) -> Iterator[Section]:
    """What threads of a block do beside a barrier, in the order of the text."""
    width = kernel.block[0]
    if not kernel.reading.barriers or width is None or width % WARP or kernel.block[1:] != (1, 1):
        return
    axes, effects = kernel.axes(), _Meeting(kernel)
    first = {g.test for g in kernel.reading.guards if [*g.condition.conjuncts()] == [
        c for c in g.condition.conjuncts() if isinstance(c, Compare) and c.op == "=="
        and c.form in (_THREAD, -_THREAD)]}  # fmt: skip
    for block in (s for s in walk(kernel.function.body) if isinstance(s, Block)):
        body = [s for s in block.body if not isinstance(s, Blank)]
        top = block is kernel.function.body
        for at, statement in enumerate(body):
            if kind == "alike":
                if isinstance(statement, Loop) and statement.kind == "for":
                    yield Section(statement, _block(statement), False, False, kind)
                continue
            begins = top and _declares(effects, body[:at], statement)
            before = not (at and is_barrier(body[at - 1])) and not begins
            after = not (at + 1 < len(body) and is_barrier(body[at + 1]))
            after = after and not (top and at == len(body) - 1)
            if (before and after) or not loops_in(statement):
                continue
            match statement:
                case If(test=test, before=None, other=None) if kind == "alone" and test in first:
                    yield Section(statement, _block(statement.then), before, after)
                case Loop(kind="for", body=inner) if kind != "alone":
                    axis = axes.get(statement)
                    own = axis is not None and axis.start == _THREAD
                    if own and axis is not None and axis.step == Polynomial.constant(width):
                        yield Section(statement, _block(inner), before, after, kind, axis)


def _block(statement: Statement) -> Block:
    return statement if isinstance(statement, Block) else Block(None, statement.line, (statement,))


def _declares(effects: Effects, statements: Sequence[Statement], behind: Statement) -> bool:
    """Whether these only declare, and load nothing that is stored behind them."""
    loads = [a for s in statements for a in effects.accesses(s)]
    stores = [a for a in effects.accesses(behind) if a.mode != "load"]
    return all(isinstance(s, Declare) for s in statements) and not any(
        effects.same(a.array, b.array) for a in loads for b in stores
    )


class _Meeting(Effects):
    """Effects in which threads of a block meet in the memory that they share as well."""

    def accesses(self, statement: Statement) -> list[Access]:
        inside = self.inside(statement)
        return [a for a in self.reading.accesses if a.own in inside and a.space in _SPACES]


class _SectionRounds(LaneRounds):
    spaces = _SPACES

    def __init__(self, kernel: Kernel, section: Section) -> None:
        self.section = section
        effects = _Meeting(kernel)
        loops = [*outermost(section.scope)]
        chosen = [loop for loop in loops if _worth(kernel, loop, effects, section)]
        if not chosen:
            raise NotLegal("no loop in it is worth sharing", section.whole.line)
        self.own = _own(effects, section, chosen)
        super().__init__(kernel, chosen, _GROUPS[section.kind], effects, section.scope)
        self.row = self.fresh("row")
        width = str(kernel.block[0])
        self.count = width if section.axis is None else kernel.fresh("LANES")
        self.named = f"{self.count}, {width}" if section.kind == "columns" else self.count

    def counters(self) -> list[Variable]:
        return [v for loop in self.loops if (v := self.axes[loop].variable) is not None]

    def exact(self) -> bool:
        """Whether what lanes put together does not depend on its order."""
        added = [r for loop in self.loops for r in self.reductions[loop]]
        atomic = (a for loop in self.loops for a in self.effects.accesses(loop)
                  if a.mode == "atomic" and a.element.floating)  # fmt: skip
        scans = all(s.exact for s in self.scans.values())
        return scans and all(r.exact for r in added) and not any(atomic)

    def check(self) -> None:
        kernel, effects, scope = self.old, self.effects, self.section.scope
        effects.straightforward(lanes=True, alone=False)
        _exchanges_nothing(kernel, scope)
        line = self.section.whole.line
        for loop in (*self.loops, *([self.section.whole] * (self.section.axis is not None))):
            if loop in self.axes and not is_counted(self.axes[loop], effects):
                raise NotLegal("more than its counter moves with the loop", loop.line)
        if any(leave.kind == "break" for leave in _leaves(scope)):
            raise NotLegal("a round may end the loop", line)
        changed = [v for v in effects.changed(scope) if v.storage == "local"]
        if changed and self.section.kind != "alike" and not self.own:
            raise NotLegal(f"`{changed[0].name}` differs from thread to thread", line)
        uniform = Uniform(kernel, effects, self.section.whole, self.section.axis)
        uniform.check(scope, apart=self.own)
        if self.section.kind == "alike":
            uniform.reached(self.section.whole)
            if any(a.mode != "load" for a in effects.accesses(scope)):
                raise NotLegal("it stores in the loop", line)
        shared = {e for one in (*self.loops, *self.own) for e in effects.inside(one)}
        for loop in loops_in(scope):
            for access in effects.accesses(loop):
                if access.mode != "load" and access.own not in shared:
                    raise NotLegal("it stores in a loop that is not shared", access.line)
        if self.section.axis is not None:
            self._apart(effects.accesses(scope))
        direct = {*self.loops} <= {*scope.body} and not any(_leaves(scope))
        if self.section.kind == "columns" and not direct:
            raise NotLegal("not all threads of its block come to the loop", line)
        super().check()

    def _stores(self) -> None:
        """What a thread keeps of its rows changes where the row is its own."""
        super()._stores()
        own = f"{self.lane} == {self.row}"
        for statement in (*self.stores, *self.own) if self.own else ():
            shown = self.old.show(statement, self.swaps)
            self.changes[statement] = (lines(f"if ({own}) {shown}"),)

    def _apart(self, accesses: Sequence[Access]) -> None:
        """Raise NotLegal where a round may ask for what an earlier one has stored."""
        for store in (a for a in accesses if a.mode != "load"):
            if any(self.effects.same(a.array, store.array) for a in accesses if a is not store):
                raise NotLegal(f"rounds load and store `{store.array}`", store.line)

    def kernel(self) -> Kernel:
        self.share()
        section = self.section
        inside = self.old.show_inside(edited(section.scope, {**self.swaps, **self.changes}))
        made, counts = self._spelled(inside)
        begin = WARP if WARP in counts else min(counts, default=0)
        tunes = [TuneDirective(self.count, counts, begin)] if counts else []
        waits = [[lines(_WAIT)] * missing for missing in (section.before, section.after)]
        changes: dict[Node, tuple[Statement, ...]] = {
            section.whole: (*waits[0], lines(made), *waits[1]),
        }
        return self.old.rewritten(
            edited(self.old.function.body, changes), directives=tunes, helpers=self.helpers()
        )

    def _spelled(self, inside: str) -> tuple[str, tuple[int, ...]]:
        """A section around what it does, and how many lanes may share it."""
        lane, whole, axis = f"const int {self.lane}", self.section.whole, self.section.axis
        if axis is None:
            return f"{{\n{lane} = threadIdx.x;\n{inside}\n}}", ()
        assert isinstance(whole, Loop)
        assert axis.variable is not None
        words, name = self.heads.start(whole, {})[0], axis.variable.name
        width, count, end = self.old.block[0] or 1, self.count, self._end(whole)
        if self.own:
            first, row, kind = self.fresh("first"), self.row, axis.variable.type.base
            return (
                f"for ({kind} {first} = threadIdx.x / {count} * {count}; {first} < {end}; "
                f"{first} += {width}) {{\nfor (int {row} = 0; {row} < {count}; ++{row}) {{\n"
                f"{kind} {name} = {first} + {row};\nif ({name} >= {end}) break;\n"
                f"{lane} = threadIdx.x % {count};\n{inside}\n}}\n}}"
            ), _LANES
        if self.section.kind == "rows":
            return (
                f"for ({words}{name} = threadIdx.x / {count}; {name} < {end}; "
                f"{name} += {width} / {count}) {{\n"
                f"{lane} = threadIdx.x % {count};\n{inside}\n}}"
            ), _LANES
        if self.waits:
            raise NotLegal("its threads would wait in the loop", whole.line)
        first, beside = self.fresh("first"), f"({width} / {count})"
        place = f"{first} + (int)threadIdx.x % {beside}"
        return (
            f"for (int {first} = 0; {first} < {end}; {first} += {width} / {count}) {{\n"
            f"{lane} = {place} < {end} ? threadIdx.x / {beside} : {count};\n"
            f"{words}{name} = {place} < {end} ? {place} : {first};\n{inside}\n}}"
        ), tuple(n for n in (2, 4, 8) if width // n >= WARP)

    def _end(self, loop: Loop) -> str:
        """What the counter of a loop stays below, in the words of its test."""
        match loop.test:
            case Binary(op="<", left=Name(variable=own), right=right):
                if own is self.axes[loop].variable:
                    end = self.heads.written(right, {})
                    return end if _WORD.fullmatch(end) else f"({end})"
        raise NotLegal("where the loop ends is not in its test", loop.line)


def _own(effects: Effects, section: Section, loops: Sequence[Loop]) -> tuple[Statement, ...]:
    """The statements of a scope that touch what a thread keeps from one of its rows to the next.

    None where it keeps nothing, and where these are no statements by themselves.
    """
    scope = section.scope
    mine = {v for v in effects.changed(scope) if v.storage == "local"}
    whole = section.whole
    heads = [e for e in (getattr(whole, "test", None), getattr(whole, "update", None)) if e]
    moving = {section.axis.variable} if section.axis is not None else set()
    if section.kind != "rows" or mine & (names(e for top in heads for e in every(top)) | moving):
        return ()
    own = dict[Statement, None]()
    while more := [s for s in scope.body if s not in own and effects.mentions(s) & mine]:
        own |= dict.fromkeys(more)
        mine |= {v for s in more for v in effects.changed(s) if v.storage == "local"}
    for statement in own:
        stores = any(a.mode != "load" and a.space in _SPACES for a in effects.accesses(statement))
        if isinstance(statement, Declare) or {*walk(statement)} & {*loops}:
            return ()
        if any(_leaves(statement)) or (stores and not isinstance(statement, Evaluate)):
            return ()
    return tuple(own)


def _leaves(scope: Statement) -> Iterator[Leave]:
    """The ways by which some rounds leave out what stands behind."""
    inner = {s for loop in loops_in(scope) for s in walk(loop)}
    return (s for s in walk(scope) if s not in inner and isinstance(s, Leave))


def _worth(kernel: Kernel, loop: Loop, effects: Effects, section: Section) -> bool:
    axis = kernel.axes().get(loop)
    if axis is None:
        return False
    count = rounds(kernel, axis)
    loads = [a for a in effects.accesses(loop) if a.space == "global"]
    if section.kind == "rows":
        return any(along(kernel, axis, access) for access in loads)
    if section.kind == "columns":
        around, width = section.axis, kernel.block[0] or 1
        own = value(kernel, around.stop) if around is not None and around.stop is not None else None
        if width < 2 * WARP or (kernel.facts is not None and (own is None or 2 * own > width)):
            return False
        if any(along(kernel, axis, access) for access in loads):
            return False
    return count is None or count >= FEW


def _exchanges_nothing(kernel: Kernel, scope: Statement) -> None:
    """Raise NotLegal where a scope has a barrier, a way out of the kernel, or asks other lanes."""
    for statement in walk(scope):
        if returns(statement):
            raise NotLegal("its threads may leave", statement.line)
        for expr in (e for top in statement.expressions for e in every(top)):
            if isinstance(expr, Call) and any(map(_MEETS.search, texts(kernel, expr))):
                raise NotLegal(f"`{expr.function}` is not for one thread", statement.line)
