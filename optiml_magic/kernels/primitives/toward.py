"""What leads a thread to work that several do alike, where a launch of its own does it.

Work that loads nothing, and divides no whole numbers, may be done whether a thread comes to it or
not: what nobody asks for is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Choice,
    Expr,
    Literal,
    Name,
    Unary,
    every,
)
from optiml_magic.kernels.functions import pure
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import loops_in, parted
from optiml_magic.kernels.primitives.endings import denied
from optiml_magic.kernels.primitives.flow import ends
from optiml_magic.kernels.primitives.mapped import joined_test, split_test
from optiml_magic.kernels.primitives.places import as_wide
from optiml_magic.kernels.primitives.works import Common, Finder, One
from optiml_magic.kernels.printing import Printer
from optiml_magic.kernels.spelling import Speller
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Function,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    expressions,
    walk,
)
from optiml_magic.kernels.types import CType, named

_ONE = Polynomial.constant(1)
_WORD = 4  # bytes of a number that holds every index of a launch


class Way:
    """The statements that lead to a work, for a thread that does it alone."""

    def __init__(self, kernel: Kernel, finder: Finder, work: Common, speller: Speller) -> None:
        self.old, self.finder, self.work, self.speller = kernel, finder, work, speller
        self.extents = [finder.extent(one) for one in work.kept]
        self.dropped = {*work.dropped}
        self.swaps: dict[Node, Node] = {}
        self.names: list[str] = []  # of its locals, in order
        self.called: list[str] = []  # the indices of what the work depends on, in the kernel
        self.own: list[str] = []  # the same in the launch before
        self.opening: list[str] = []
        self.free = False  # whether it does the work of rows that no thread may come to
        self.bounds: list[str] = []  # where there is no such item, as tests
        self.holding: set[Variable] = set()
        for one, index in zip(reversed(work.kept), self._indices(), strict=True):
            self._named(one, index)
        self.called.reverse()
        self.own.reverse()
        self.names += self.own
        for axis in (one for one in work.dropped if isinstance(one, str)):
            self._stand(axis, "0")
        own = [e for s in self.work.statements for e in self.finder.effects.inside(s)]
        self.asked = self.finder.locals_of(own)
        self.harmless = self._is_harmless(own)
        if not self.harmless:
            self.asked = self.finder.locals_of([*own, *self._tests()])

    def index(self, names: Sequence[str]) -> str:
        """Where an item's results lie."""
        found = ""
        for name, size in zip(names, self.extents, strict=True):
            if not found:
                found = f"(size_t){name}" if len(names) > 1 else name
            else:
                found = f"({found})" if "+" in found else found
                found = f"{found} * {self.speller.factor(size)} + {name}"
        return found or "0"

    def _indices(self) -> Iterator[str]:
        """Where a thread of this launch finds its indices, the innermost first.

        A launch has three axes: blocks along z are of all that is left, the outermost slowest.
        """
        some = min(len(self.extents), 2 if len(self.extents) > 3 else 3)
        for place in "xyz"[:some]:
            yield f"blockIdx.{place} * blockDim.{place} + threadIdx.{place}"
        plane = "blockIdx.z"
        for size in reversed(self.extents[1:-some]):
            yield f"{plane} % {self.speller.factor(size)}"
            plane += f" / {self.speller.factor(size)}"
        if self.extents[:-some]:
            yield plane

    def _named(self, one: One, index: str) -> None:
        """The index that a thread has in this launch, by its name in the kernel if it has one."""
        if isinstance(one, Variable):
            self.opening.append(f"{one.type.base} {one.name} = {index};")
            self.called.append(one.name)
            self.own.append(one.name)
            self.holding.add(one)
            return
        if isinstance(one, Loop):
            assert isinstance(one.before, Declare)
            (variable,) = one.before.variables
            size = named(variable.type.base, self.old.unit.aliases).size or 0
            # A smaller one holds all rounds, but not all threads of the last block.
            kind = one.before.words if size >= _WORD else "int"
            self.opening.append(f"{kind} {variable.name} = {index};")
            self.called.append(variable.name)
            self.own.append(variable.name)
            return
        for statement in self._declared():
            (variable,) = statement.variables
            if variable.value in self.finder.whole and self.finder.whole[variable.value] == one:
                self.opening.append(f"{statement.words} {variable.name} = {index};")
                self.holding.add(variable)
                self.called.append(variable.name)
                self.own.append(variable.name)
                self._stand(one, variable.name)
                return
        name = self.old.fresh({"x": "column", "y": "row", "z": "plane"}[one])
        self.opening.append(f"const int {name} = {index};")
        self.called.append(self._whole(one))
        self.own.append(name)
        self._stand(one, name)

    def _whole(self, axis: str) -> str:
        """How the kernel itself spells a thread's index along an axis."""
        if self.old.block["xyz".index(axis)] == 1:
            return f"blockIdx.{axis}"
        return f"(blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis})"

    def _stand(self, axis: str, words: str) -> None:
        self.swaps |= {
            e: text(as_wide(self.old, e, words)) for e, a in self.finder.whole.items() if a == axis
        }

    def _declared(self) -> Iterator[Declare]:
        """The lasting locals that are declared on the way, each by itself."""
        for block, child in self._blocks():
            for statement in self._before(block, child):
                if isinstance(statement, Declare):
                    (variable,) = statement.variables
                    if variable in self.finder.effects.lasting and not variable.type.depth:
                        yield statement

    def _blocks(self) -> Iterator[tuple[Block, Statement | None]]:
        path = self.work.path
        for at, part in enumerate(path):
            if isinstance(part, Block):
                yield part, path[at + 1] if at + 1 < len(path) else None

    def _is_harmless(self, own: Sequence[Expr]) -> bool:
        """Whether anybody may do the work, as arithmetic alone."""
        unit, types = self.old.unit, self.old.reading.types
        given = [v.value for v in self.asked if v.value is not None]
        found = [*own, *(e for value in given for e in every(value))]
        loads = {a.own for a in self.old.reading.accesses}
        called = [f for e in found if isinstance(e, Call)
                  for f in unit.called(e.function, len(e.arguments))]  # fmt: skip
        return (
            not any(loops_in(statement) for statement in self.work.statements)
            and all(map(_is_of_floats, called))
            and not any(e in loads or (_divides(e) and _is_whole(types.get(e))) for e in found)
        )

    def _tests(self) -> Iterator[Expr]:
        """The tests on the way to the work."""
        for statement in self.work.path:
            if isinstance(statement, If | Loop) and statement.test is not None:
                yield statement.test
        for block, child in self._blocks():
            for statement in self._before(block, child):
                if any(ends(statement)):
                    yield from self.finder.effects.inside(statement)

    def _before(self, block: Block, child: Statement | None) -> Iterator[Statement]:
        """What stands in a body in front of what leads to the work, or of the work itself."""
        if block is self.work.body:
            yield from self.work.own[: self.work.chosen[0]]
            return
        for statement in parted(block):
            if statement is child:
                return
            yield statement

    def text(self, results: Sequence[str]) -> str:
        """All of the kernel's body, which leaves its results in scratch."""
        self.bounds = [
            f"{name} >= {self.speller.form(self.finder.extent(one))}"
            for name, one in zip(self.own, self.work.kept, strict=True)
        ]
        body = [s for block, child in self._blocks() for s in self._through(block, child)]
        for number in range(self.work.chosen[0], self.work.chosen[-1] + 1):
            statement = self.work.own[number]
            if number in self.work.chosen:
                self._tell(statement)
                body.append(statement)
            else:
                body += self._needed(statement)
        at = self.index(self.own)
        stored = [
            f"{array}[{at}] = {v.name};"
            for array, v in zip(results, self.work.results, strict=True)
        ]
        shown = [Printer(self.old.unit).statement(edited(s, self.swaps)) for s in body]
        guard = [f"if ({' || '.join(self.bounds)}) return;"] if self.bounds else []
        return "\n".join([*self.opening, *guard, *shown, *stored])

    def _tell(self, statement: Statement) -> None:
        for inner in walk(statement):
            for variable in inner.variables if isinstance(inner, Declare) else ():
                if variable.name not in self.names:
                    self.names.append(variable.name)

    def _through(self, block: Block, child: Statement | None) -> Iterator[Statement]:
        """What a thread does of a body on its way."""
        for statement in self._before(block, child):
            yield from self._needed(statement)
            if any(ends(statement)) and not self.harmless:
                yield from self._guard(self._exit(statement), leaves=True)
        match child:
            case If() if self.harmless:
                pass
            case If(test=test, then=then):
                inside = self.work.path[self.work.path.index(child) + 1] is then
                yield from self._guard(test, leaves=not inside)
            case Loop() if child in self.dropped and self.finder.axes[child].trips:
                pass  # it certainly has a round, and they are all alike
            case Loop(test=test) if test is not None:
                if {*self.finder.of(test)} - {child} & self.dropped:
                    if not self._is_free(child):
                        raise NotLegal("how many rounds there are is not alike", child.line)
                    self.free = True
                    return
                if child in self.dropped:
                    (variable,) = child.before.variables  # type: ignore[union-attr]
                    self.names.append(variable.name)
                    words = child.before.words  # type: ignore[union-attr]
                    yield lines(f"{words} {variable.name} = 0;")
                self._check_loads(test)
                if not self._is_bound(child):
                    yield from self._left(denied(self.old, test))

    def _is_free(self, loop: Loop) -> bool:
        """Whether a work is that of a row, whichever round of a loop comes to it."""
        return loop in self.dropped and any(isinstance(one, Variable) for one in self.work.kept)

    def _is_bound(self, loop: Loop) -> bool:
        """Whether the test of a loop says no more than the bound of its items, in other words."""
        axis = self.finder.axes[loop]
        test = axis.test
        if loop in self.dropped or not isinstance(test, Compare) or test.op != ">=":
            return False
        return test.form + Polynomial.symbol(axis.name) + _ONE == self.finder.extent(loop)

    def _needed(self, statement: Statement) -> Iterator[Statement]:
        """A statement that declares what the work or a test on the way to it asks for."""
        match statement:
            case Declare(variables=(only,)) if only in self.asked and only not in self.holding:
                self.finder.check_pure(statement)
                self.finder.depends(only)
                self._tell(statement)
                yield statement

    def _exit(self, statement: Statement) -> Expr:
        """The test of a branch that does nothing but leave the kernel, or a round."""
        match statement:
            case If(before=None, constant=False, test=test, other=None, then=then):
                inner = [*parted(then)]
                if len(inner) == 1 and isinstance(inner[0], Leave) and inner[0].kind != "break":
                    return test
        raise NotLegal("the kernel may be left before", statement.line)

    def _left(self, test: Expr) -> Iterator[Statement]:
        """The way out where a test holds, of which the bounds of the launch are no part."""
        parts = [part for part in split_test(test, "||") if self._shown(part) not in self.bounds]
        if parts:
            all_of_it = len(parts) == len([*split_test(test, "||")])
            whole = test if all_of_it else joined_test(parts, "||")
            yield If(None, 0, whole, Block(None, 0, (Leave(None, 0, "return"),)))

    def _shown(self, test: Expr) -> str:
        return self.old.spelled(test, self.swaps)

    def _guard(self, test: Expr, *, leaves: bool) -> Iterator[Statement]:
        """A test that lets through whoever has the work to do, where any of its threads has."""
        self._check_loads(test)
        if self.finder.of(test) & self.dropped:
            self._check_bound(test, leaves=leaves)
        yield from self._left(test if leaves else denied(self.old, test))

    def _check_loads(self, test: Expr) -> None:
        self.finder.check_pure(Evaluate(None, 0, test))

    def _check_bound(self, test: Expr, *, leaves: bool) -> None:
        """Raise NotLegal unless the first item passes a test wherever another one does."""
        found = [g for g in self.old.reading.guards if g.test is test]
        axes = [one for one in self.dropped if isinstance(one, str)]
        if len(found) != 1 or any(
            isinstance(one, Loop) for one in self.finder.of(test) & self.dropped
        ):
            raise NotLegal("not all threads that compute it alike come to it")
        condition = found[0].condition
        if leaves != found[0].exits:
            raise NotLegal("what a guard lets through is not certain")
        for part in condition.conjuncts():
            for axis in axes:
                own = {f"threadIdx.{axis}", f"blockIdx.{axis}"}
                if own & part.depends and not self._falls(part, own):
                    raise NotLegal("not all threads that compute it alike come to it")

    def _falls(self, part: Condition, own: set[str]) -> bool:
        """Whether a condition that holds for one place holds for those with less of its parts."""
        if not isinstance(part, Compare) or part.op != ">=":
            return False
        by = [part.form.coefficient(name) for name in own]
        inside = self.old.reading.symbols.inside(part.form.without(own))
        falling = all(b is not None and b.value is not None and b.value <= 0 for b in by)
        return falling and not own & {*inside}


def _is_whole(kind: CType | None) -> bool:
    return kind is None or kind.integral


def _divides(expr: Expr) -> bool:
    return isinstance(expr, Binary | Assign) and expr.op in ("/", "%", "/=", "%=")


def _is_of_floats(function: Function) -> bool:
    """Whether a function knows nothing but floating-point numbers, and does them in a row."""
    declared = [v for s in walk(function.body) if isinstance(s, Declare) for v in s.variables]
    plain = all(
        v.type.base in ("float", "double") and not v.type.depth and not v.type.reference
        and not v.array for v in (*function.parameters, *declared)
    )  # fmt: skip
    known = Literal | Name | Unary | Binary | Assign | Choice | Call
    return plain and not loops_in(function.body) and all(
        isinstance(e, known) and (not isinstance(e, Name) or e.variable is not None)
        and (not isinstance(e, Call) or pure(e.function))
        for e in expressions(function.body)
    )  # fmt: skip
