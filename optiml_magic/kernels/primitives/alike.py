"""What the items of a kernel have in common: loops with the same rounds, values, loads.

An item is what a thread along an axis does, as ``mapped`` says. The body falls into parts:
statements that each item does, and loops around parts, whose rounds are the same for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from optiml_magic.kernels.expressions import (
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Lambda,
    Literal,
    Member,
    Name,
    Unary,
    builtin,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.computing import only_computes
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in
from optiml_magic.kernels.primitives.mapped import Mapped, mapped
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Leave,
    Loop,
    Statement,
    Variable,
    expressions,
    walk,
)

_PURE_CALLS = ("min", "max", "abs")


@dataclass(eq=False)
class Part:
    """Statements that each item does in turn; or a loop around parts.

    ``hints`` are what a compiler is told of a loop whose number of rounds is a constant.
    """

    run: list[Statement] = field(default_factory=list)
    loop: Loop | None = None
    hints: tuple[Statement, ...] = ()
    inner: list[Part] = field(default_factory=list)

    @property
    def trees(self) -> Iterator[Statement]:
        yield from self.run
        if self.loop is not None:
            yield self.loop


class Rounds:
    """The items of a kernel, and the loops whose rounds are the same for all of them.

    Raises NotLegal where there are none.
    """

    def __init__(self, kernel: Kernel, axis: str = "x") -> None:
        self.old = kernel
        self.effects = Effects(kernel)
        self.items: Mapped = mapped(kernel, self.effects, axis)
        self.ours = (f"threadIdx.{axis}", f"blockIdx.{axis}")
        self.written = kernel.reading.written
        self.kept: set[Loop] = set()
        self._counters: set[Variable] = set()  # of these
        self.varying: set[Variable] = set()
        self.sure = self._surely()
        self._sort()
        self.parts = self._parts(self.items.inside)
        ends = [at for at, part in enumerate(self.parts) if part.loop is not None]
        if not ends:
            raise NotLegal("no loop makes the same rounds for all items", kernel.function.line)
        self.last = ends[-1] + 1  # of the parts, the first that stands behind all loops
        self._check()

    # What is the same for all items.

    def loops(self) -> Iterator[Loop]:
        """The loops that stand around the items."""
        todo = [*self.parts]
        while todo:
            part = todo.pop(0)
            todo = [*part.inner, *todo]
            if part.loop is not None:
                yield part.loop

    def common(self) -> float:
        """The share of the arithmetic of these loops that is the same for all items."""
        work = {e for loop in self.loops() for e in expressions(loop.body)
                if isinstance(e, Binary | Call)}  # fmt: skip
        return sum(map(self.same, work)) / len(work) if work else 0.0

    def alike(self, access: Access) -> bool:
        """Whether a load takes the same element for all items."""
        known = self.old.reading.symbols
        form = access.offset
        return form is not None and known.known(form) and not {*self.ours} & known.depends(form)

    def _sort(self) -> None:
        """Loops with the same rounds for all items, and locals that may differ between these."""
        for statement in self.items.inside:
            for inner in walk(statement):
                if isinstance(inner, Loop) and self._is_kept(inner):
                    self.kept.add(inner)
                for variable in inner.variables if isinstance(inner, Declare) else ():
                    if variable not in self._counters and not self._lasts(variable):
                        self.varying.add(variable)

    def _lasts(self, variable: Variable) -> bool:
        """Whether a local keeps what all items agree on."""
        if variable.array or variable.type.reference or variable in self.effects.changing:
            return False
        begun = variable.initial if variable.value is None else (variable.value,)
        return bool(begun) and all(map(self.same, begun))

    def same(self, expr: Expr) -> bool:
        """Whether all items have the same value of it, for which nothing is loaded in vain."""
        if expr in self.items.swaps or builtin(expr) in self.ours:
            return False
        if expr in self.sure:
            return all(map(self.same, expr.parts))
        match expr:
            case Name(variable=Variable() as variable):
                return variable not in self.varying and variable is not self.items.holding
            case Unary(op=op) if op not in "+-!~":
                return False
            case Call() if not self._computes(expr):
                return False
        if isinstance(expr, Member) and expr.arrow:
            return False
        plain = Literal | Name | Binary | Cast | Choice | Unary | Call | Member
        known = bool(builtin(expr)) or isinstance(expr, plain)
        return known and (bool(builtin(expr)) or all(map(self.same, expr.parts)))

    def _computes(self, call: Call) -> bool:
        """Whether a function only finds a value, and reads no memory for it."""
        reads = any(access.call is call for access in self.old.reading.accesses)
        return call.function in _PURE_CALLS or (not reads and only_computes(self.old, call))

    def _surely(self) -> dict[Expr, Access]:
        """Loads that every item makes in each round, of the same element, which nobody writes."""
        found = dict[Expr, Access]()
        reading = self.old.reading
        guards = {axis.name: axis.held for axis in reading.axes}
        for access in reading.accesses:
            held = guards[access.loops[-1]] if access.loops else self.items.held
            sure = {part for c in access.guard for part in c.conjuncts()} <= held
            steady = not any(self.effects.same(access.array, other) for other in self.written)
            load = access.mode == "load" and access.space == "global" and access.call is None
            if load and sure and steady and not access.verbatim and self.alike(access):
                found[access.node] = access
        return found

    def _is_kept(self, loop: Loop) -> bool:
        axis = self.old.axes().get(loop)
        if axis is None or not axis.exact or not is_counted(axis, self.effects):
            return False
        own = axis.variable
        assert own is not None
        self._counters.add(own)
        head = (loop.test, *(loop.before.expressions if loop.before else ()))
        if all(self.same(e) for e in head if e is not None):
            return True
        self._counters.discard(own)
        return False

    # Parts of the body.

    def _parts(self, body: Sequence[Statement]) -> list[Part]:
        found: list[Part] = []
        for statement in self._flat(body):
            if isinstance(statement, Loop) and statement in self.kept:
                inner = statement.body
                own = inner.body if isinstance(inner, Block) else (inner,)
                found.append(Part(loop=statement, hints=self._hints(found, statement)))
                found[-1].inner = self._parts(own)
            else:
                if not found or found[-1].loop is not None:
                    found.append(Part())
                found[-1].run.append(statement)
        for part in found:
            while part.run and isinstance(part.run[-1], Blank):
                part.run.pop()  # it is said of what comes behind
        return [part for part in found if part.run or part.loop]

    def _hints(self, before: Sequence[Part], loop: Loop) -> tuple[Statement, ...]:
        trips = self.old.axes()[loop].trips
        run = before[-1].run if before else []
        last = run[-1] if run else None
        said = isinstance(last, Blank) and last.span is not None and last.line == loop.line - 1
        return (last,) if last is not None and said and trips is not None else ()

    def _flat(self, body: Sequence[Statement]) -> Iterator[Statement]:
        """The statements of a body, without braces of their own around loops that are kept."""
        for statement in body:
            if isinstance(statement, Block) and self.kept & {*loops_in(statement)}:
                for variable in _own_locals(statement):
                    if self._names.count(variable.name) > 1:
                        reason = f"`{variable.name}` is the name of several locals"
                        raise NotLegal(reason, variable.line)
                yield from self._flat(statement.body)
            else:
                yield statement

    @cached_property
    def _names(self) -> list[str]:
        """The names of locals, each as often as it is declared but in the heads of loops."""
        body = self.old.function.body
        heads = {loop.before for loop in loops_in(body)}
        found = [s for s in walk(body) if isinstance(s, Declare) and s not in heads]
        return [v.name for s in found for v in s.variables]

    def _check(self) -> None:
        kernel = self.old
        self.effects.nobody_waits()
        if any(isinstance(e, Lambda) for e in expressions(kernel.function.body)):
            raise NotLegal("it has a function within itself")
        before = [tree for part in self.parts[: self.last] for tree in part.trees]
        for tree in before:
            for access in self.effects.accesses(tree):
                if access.mode != "load":
                    raise NotLegal("it stores before its last loop ends", access.line)
                if any(self.effects.same(access.array, other) for other in self.written):
                    raise NotLegal(f"`{access.array}` is written as well", access.line)
            for statement in walk(tree):
                if isinstance(statement, Leave) and statement.kind == "return":
                    raise NotLegal("the kernel is left before its last loop ends", statement.line)
        for loop in self.loops():
            own = loop.body.body if isinstance(loop.body, Block) else (loop.body,)
            left = [leave for statement in own for leave in _leaves(statement)]
            if left and (len(self._parts(own)) > 1 or any(s.kind == "break" for s in left)):
                raise NotLegal("an item may end a round before the others", left[0].line)


def _own_locals(block: Block) -> Iterator[Variable]:
    """The locals that are declared in a block itself."""
    for statement in block.body:
        yield from statement.variables if isinstance(statement, Declare) else ()


def _leaves(statement: Statement) -> Iterator[Leave]:
    """The ways out of a round that lie in a statement, not those of loops within it."""
    if isinstance(statement, Leave):
        yield statement
    elif not isinstance(statement, Loop):
        for inner in statement.statements:
            yield from _leaves(inner)
