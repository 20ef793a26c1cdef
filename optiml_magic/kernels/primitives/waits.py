"""What the threads of a block come to together, since they wait for each other, and what between.

CUDA demands of a barrier that all threads of its block come to it. So what decides on one is the
same for all of them, and between two barriers the threads of a race-free kernel may be taken in any
order. Source: CUDA C++ Programming Guide, "Synchronization Functions".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from optiml_magic.kernels.expressions import (
    Assign,
    Call,
    Expr,
    Lambda,
    Name,
    Step,
    builtin,
    every,
)
from optiml_magic.kernels.functions import BLOCK_BARRIERS, WARP_BARRIERS
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.computing import only_computes
from optiml_magic.kernels.primitives.cutting import check_unfixed
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.places import axis_of, reached
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Leave,
    Loop,
    Statement,
    Variable,
    expressions,
    walk,
)

_BARRIERS = BLOCK_BARRIERS | WARP_BARRIERS


@dataclass(frozen=True)
class Run:
    """Statements in a row that each thread does for itself."""

    statements: tuple[Statement, ...]


class Waits:
    """The statements of a kernel that all threads of a block come to, by its barriers.

    Threads differ in where they stand along ``axis``.
    """

    def __init__(self, kernel: Kernel, axis: str) -> None:
        """Raises NotLegal where threads wait or exchange values in ways that are not followed."""
        self.kernel = kernel
        self.axis = axis
        self.effects = Effects(kernel)
        self.body = kernel.function.body
        self._singles: dict[Variable, Declare] = {}
        self._check()
        self.barriers = self._found()
        self.together = self._come_together()

    def _check(self) -> None:
        self.effects.straightforward(alone=False)
        check_unfixed(self.kernel, alone=False, dynamic=True)
        for statement in walk(self.body):
            for variable in statement.variables if isinstance(statement, Declare) else ():
                if variable.type.volatile:
                    raise NotLegal(f"`{variable.name}` is volatile", variable.line)
            if any(isinstance(e, Lambda) for top in statement.expressions for e in every(top)):
                raise NotLegal("it has a lambda", statement.line)
        for function in reached(self.kernel.unit, self.kernel.function):
            calls = (e for e in expressions(function.body) if isinstance(e, Call))
            if any(call.function in _BARRIERS for call in calls):
                raise NotLegal(f"`{function.name}` waits for other threads", function.line)

    def _found(self) -> frozenset[Statement]:
        found = {s for s in walk(self.body) if is_barrier(s)}
        calls = [e for e in expressions(self.body) if isinstance(e, Call)]
        if len(found) < sum(call.function in _BARRIERS for call in calls):
            raise NotLegal("it waits for other threads in another way than by `__syncthreads()`")
        if not found:
            raise NotLegal("its threads do not wait for each other")
        return frozenset(found)

    def around(self, statement: Statement) -> tuple[Statement, ...]:
        """The statements that a statement is in, outermost first, and itself."""
        return self._paths[statement]

    @cached_property
    def _paths(self) -> dict[Statement, tuple[Statement, ...]]:
        paths: dict[Statement, tuple[Statement, ...]] = {self.body: (self.body,)}
        for statement in walk(self.body):
            for inner in statement.statements:
                paths[inner] = (*paths[statement], inner)
        return paths

    @cached_property
    def _order(self) -> dict[Statement, int]:
        return {s: at for at, s in enumerate(walk(self.body))}

    def _come_together(self) -> frozenset[Statement]:
        """The statements that hold barriers, or a way out that decides on one."""
        found = {s for barrier in self.barriers for s in self.around(barrier)}
        last = max(self._order[barrier] for barrier in self.barriers)
        leaves = [s for s in self._order if isinstance(s, Leave)]
        while True:
            deciding = [leave for leave in leaves if self._decides(leave, found, last)]
            more = {s for leave in deciding for s in self.around(leave)} - found
            if not more:
                return frozenset(found)
            found |= more

    def _decides(self, leave: Leave, together: Collection[Statement], last: int) -> bool:
        """Whether a way out keeps its threads from a barrier, in this round or a later one."""
        loops = [s for s in self.around(leave) if isinstance(s, Loop)]
        if leave.kind == "return":
            return self._order[leave] < last or any(loop in together for loop in loops)
        return loops[-1] in together

    # -- what is done once for all of them

    @cached_property
    def once(self) -> frozenset[Variable]:
        """The locals and parameters that all threads have alike, and change all at once."""
        found = set(self.kernel.function.parameters)
        for statement in self._order:
            if isinstance(statement, Declare) and self._beside(statement):
                found |= set(filter(_is_plain, statement.variables))
        while True:
            apart = {variable for variable in found if self._differs(variable, found)}
            if not apart:
                break
            found -= apart
        for parameter in self.kernel.function.parameters:
            if parameter not in found:
                raise NotLegal(f"`{parameter.name}` becomes a thread's own", parameter.line)
        return frozenset(found)

    def _beside(self, statement: Statement) -> bool:
        """Whether a statement stands beside barriers, or begins a loop around some."""
        path = self.around(statement)
        return len(path) > 1 and path[-2] in self.together

    def _differs(self, variable: Variable, once: Collection[Variable]) -> bool:
        """Whether threads may give it different values, or change it by themselves."""
        given = [e for e in (variable.value, *variable.initial) if e is not None]
        if any(self.varies(expr, once) for expr in given):
            return True
        return any(
            not together or expr is None or self.varies(expr, once)
            for expr, together, changed in self._changes
            if variable in changed
        )

    @cached_property
    def _changes(self) -> list[tuple[Expr | None, bool, frozenset[Variable]]]:
        """What changes locals, and whether all threads do so together."""
        found: list[tuple[Expr | None, bool, frozenset[Variable]]] = []
        for statement in self._order:
            if not statement.statements:
                expr = statement.expression if isinstance(statement, Evaluate) else None
                changed = frozenset(self.effects.changed(statement))
                found.append((expr, self._beside(statement), changed))
                continue
            for expr in statement.expressions:
                changed = frozenset(self.effects.changed(Evaluate(None, statement.line, expr)))
                found.append((expr, statement in self.together, changed))
        return found

    def is_index(self, expr: Expr) -> bool:
        """Whether a function without parameters says where a thread stands along the axis."""
        return isinstance(expr, Call) and axis_of(self.kernel, expr) == self.axis

    def varies(self, expr: Expr, once: Collection[Variable]) -> bool:
        """Whether threads may find different values, where they have those ``once`` in common."""
        for part in every(expr):
            if builtin(part) == f"threadIdx.{self.axis}" or self.is_index(part):
                return True
            if isinstance(part, Name) and part.variable is not None:
                kind = part.variable.storage
                if kind in ("local", "parameter") and part.variable not in once:
                    return True
            if isinstance(part, Call) and not only_computes(self.kernel, part):
                return True
        return False

    # -- what each does for itself

    def parts(self, block: Block) -> Iterator[Run | Statement]:
        """What is done once, and runs of what each thread does, in their order.

        Where some leave the kernel, what follows is each thread's own.
        """
        run: list[Statement] = []
        left = False
        for statement in block.body:
            for part in (statement,) if statement in self.together else self._parted(statement):
                if part in self.together or (self.is_once(part) and not left):
                    if run:
                        yield Run(tuple(run))
                    run = []
                    yield part
                else:
                    if left and self.is_once(part):
                        self._check_repeated(part)
                    run.append(part)
                    left = left or self._leaves(part, block)
        if run:
            yield Run(tuple(run))

    def _leaves(self, part: Statement, block: Block) -> bool:
        """Whether some threads leave the kernel there, behind the last barrier."""
        leaves = [s for s in walk(part) if isinstance(s, Leave) and s.kind == "return"]
        for leave in leaves:
            path = self.around(leave)
            for outer, inner in pairwise(path[: path.index(block) + 1]):
                if isinstance(outer, Block) and outer.body[-1] is not inner:
                    raise NotLegal("some threads leave the kernel, and others go on", leave.line)
        return bool(leaves)

    def _check_repeated(self, part: Statement) -> None:
        """What was to be done once is done by each thread that is still there."""
        own = part.variables if isinstance(part, Declare) else ()
        if not own or any(v.storage != "local" or v in self.effects.changing for v in own):
            raise NotLegal("some threads leave the kernel, and others go on", part.line)

    def _parted(self, statement: Statement) -> Iterator[Statement]:
        if isinstance(statement, Declare):
            yield from (self.single(statement, variable) for variable in statement.variables)
        else:
            yield statement

    def single(self, statement: Declare, variable: Variable) -> Declare:
        """The declaration of one of its variables alone."""
        if len(statement.variables) == 1:
            return statement
        only = replace(statement, variables=(variable,), span=None)
        return self._singles.setdefault(variable, only)

    def is_once(self, statement: Statement) -> bool:
        """Whether a statement beside barriers is done once: what it changes is all threads' own."""
        if isinstance(statement, Declare):
            return all(v.storage != "local" or v in self.once for v in statement.variables)
        changed = self.effects.changed(statement) if isinstance(statement, Evaluate) else {}
        return bool(changed) and changed.keys() <= self.once

    def runs(self) -> Iterator[Run]:
        """All of them, those that are the whole of a branch or a loop's body as well."""
        for statement in self._order:
            if statement not in self.together:
                continue
            if isinstance(statement, Block):
                yield from (part for part in self.parts(statement) if isinstance(part, Run))
                continue
            before = statement.before if isinstance(statement, Loop) else None
            yield from (Run((inner,)) for inner in statement.statements
                        if inner is not before and inner not in self.together
                        and not self.is_once(inner))  # fmt: skip

    @cached_property
    def places(self) -> dict[Variable, Declare]:
        """The locals that say where a thread stands and never change, in their order."""
        found: dict[Variable, Declare] = {}
        for statement in self._order:
            if isinstance(statement, Declare) and self._beside(statement):
                for variable in statement.variables:
                    if self._is_place(variable, found):
                        found[variable] = statement
        return found

    def _is_place(self, variable: Variable, known: Collection[Variable]) -> bool:
        if not _is_plain(variable) or variable.value is None or variable in self.once:
            return False
        if variable in self.effects.changing:
            return False
        loaded = {access.own for access in self.effects.reading.accesses}
        steady = self.once - self.effects.changing
        for part in every(variable.value):
            if part in loaded or isinstance(part, Assign | Step):
                return False
            known_call = isinstance(part, Call) and only_computes(self.kernel, part)
            if isinstance(part, Call) and not known_call and not self.is_index(part):
                return False
            if isinstance(part, Name) and part.variable not in {None, *steady, *known}:
                return False
        return True

    @cached_property
    def lasting(self) -> frozenset[Variable]:
        """The locals that each thread has of its own beyond the next barrier."""
        runs: dict[Variable, set[int]] = {}
        inner: set[Variable] = set()
        for number, run in enumerate(self.runs()):
            for statement in run.statements:
                own = statement.variables if isinstance(statement, Declare) else ()
                for variable in {*self.effects.mentions(statement), *own}:
                    runs.setdefault(variable, set()).add(number)
                inner |= {v for s in walk(statement) if s is not statement
                          and isinstance(s, Declare) for v in s.variables}  # fmt: skip
        several = {v for v, found in runs.items() if len(found) > 1 and v.storage == "local"}
        return frozenset(several - self.once - self.places.keys() - inner)


def _is_plain(variable: Variable) -> bool:
    return variable.storage == "local" and not variable.array and not variable.type.reference


def is_barrier(statement: Statement) -> bool:
    """Whether all threads of a block wait for each other there."""
    match statement:
        case Evaluate(expression=Call(function="__syncthreads", arguments=())):
            return True
    return False
