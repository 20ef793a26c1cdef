"""One thread does what a block did with rows in shared memory, which become its own.

Of ``next = f(s[t], s[t + 1])``, a barrier and ``s[t] = next`` each thread of the block asks for
elements that are not behind its own. One that takes their places in order may store each at once,
and a round of the block is a sweep along an array of its own. Where there are very many blocks,
such as a tree of prices for each option, nobody waits, and nothing is done beyond a bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Binary, Expr, Name, builtin, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cutting import cut
from optiml_magic.kernels.primitives.effects import declared_in, names, parted
from optiml_magic.kernels.primitives.naming import bracketed
from optiml_magic.kernels.primitives.near_elements import (
    Among,
    Near,
    Place,
    first_element,
    place_of,
)
from optiml_magic.kernels.primitives.raised import with_facts
from optiml_magic.kernels.primitives.stored_back import stored_back
from optiml_magic.kernels.primitives.waits import Run, Waits
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    expressions,
    walk,
)
from optiml_magic.source.expressions import parse_expression

_T = "threadIdx.x"
_WIDTH = 128  # threads of the new blocks; ours
_MOST = 2048  # words of a thread's own; ours


@primitive
def thread_for_block(kernel: Kernel) -> Kernel:
    """The kernel with a thread for each block."""
    while isinstance(made := stored_back(kernel), Kernel):
        kernel = made
    alone = _Alone(_with_width(kernel.settled())).kernel()
    wide = cut(alone, {"x": _WIDTH})
    if not isinstance(wide, Kernel):
        raise NotLegal(wide.reason, wide.line)
    return with_facts(wide, alone.facts, _WIDTH)


def _with_width(kernel: Kernel) -> Kernel:
    """The kernel with the number of a block's threads in the place of its name."""
    body, width = kernel.function.body, kernel.block[0]
    named = [e for e in expressions(body) if builtin(e) == "blockDim.x"]
    said: dict[Node, Node] = dict.fromkeys(named, text(f"{width}u"))
    return kernel.rewritten(edited(body, said)) if named and width is not None else kernel


@dataclass(frozen=True, eq=False)
class _Bound:
    """The test that all of a run is behind: ``stop`` in words, and the statements without it."""

    stop: str
    statements: tuple[Statement, ...]


class _Alone:
    def __init__(self, kernel: Kernel) -> None:
        self.old = kernel
        width, *beside = kernel.block
        if width is None or beside != [1, 1] or len(kernel.launch.grid) != 1:
            raise NotLegal("its blocks are not rows of threads")
        self.width = width
        self.waits = Waits(kernel, "x")
        self.effects = self.waits.effects
        self.reading = kernel.reading
        self.thread = kernel.fresh("thread")
        self.counter = self._named() or self.thread
        self.shared = {n: a for n, a in self.reading.arrays.items() if a.space == "shared"}
        self._check_room()
        self.merged = set[Variable]()

    def kernel(self) -> Kernel:
        body = self._block(self.waits.body)
        if self.waits.lasting - self.merged:
            raise NotLegal("its threads keep more than what they store next")
        facts = self.old.facts
        launch = replace(self.old.launch, block=(parse_expression("1"),), shared=None)
        bounds = str(_WIDTH) if self.old.function.launch_bounds else ""
        made = self.old.rewritten(body, launch=launch, bounds=bounds)
        return replace(made, facts=replace(facts, block=(1, 1, 1)) if facts else None)

    def _named(self) -> str:
        """The name that the kernel has for the number of a thread in its block."""
        for variable in self.waits.places:
            if variable.type.base == "int" and self._is_number(variable):
                return variable.name
        return ""

    def _is_number(self, variable: Variable | None) -> bool:
        """Whether a local is the number of a thread in its block."""
        value = variable.value if variable in self.waits.places and variable else None
        return value is not None and builtin(value) == _T

    def _check_room(self) -> None:
        words = 0
        for name, array in self.shared.items():
            extent = array.extents[0] if len(array.extents) == 1 else None
            if extent is None or extent.value is None or array.dynamic:
                raise NotLegal(f"`{name}` is not a plain row of elements")
            words += extent.value * max((array.element.size or 4) // 4, 1)
        if not words or words > _MOST:
            raise NotLegal("its rows are longer than a thread may have")

    # -- what is done once

    def _block(self, block: Block) -> Block:
        made, parts = list[Statement](), [*self.waits.parts(block)]
        at = 0
        while at < len(parts):
            part = parts[at]
            if isinstance(part, Run):
                behind = parts[at + 1 : at + 3]
                run = self._together(part, behind)
                made += self._run(run or part)
                at += 3 if run else 1
            else:
                made += self._once(part)
                at += 1
        return Block(None, block.line, tuple(made))

    def _once(self, statement: Statement) -> list[Statement]:
        if statement in self.waits.barriers:
            return []
        if not isinstance(statement, Declare):
            for expr in statement.expressions:
                if self.waits.varies(expr, self.waits.once):
                    raise NotLegal("what decides on a barrier is a thread's own", statement.line)
        match statement:
            case Declare():
                return [self._own_row(part) for part in parted(Block(None, 0, (statement,)))]
            case Block():
                return [self._block(statement)]
            case If(then=then, other=other):
                way = None if other is None else self._body(other)
                return [replace(statement, then=self._body(then), other=way, span=None)]
            case Loop(body=body):
                return [replace(statement, body=self._body(body), span=None)]
        return [statement]

    def _own_row(self, part: Statement) -> Statement:
        """What threads shared, as one's own."""
        assert isinstance(part, Declare)
        (variable,) = part.variables
        if variable.storage != "shared":
            return part
        if variable.type.volatile or variable.type.reference or len(variable.extents) != 1:
            raise NotLegal(f"`{variable.name}` is not a plain row of elements", variable.line)
        extent = variable.extents[0]
        assert extent is not None
        return lines(f"{variable.type.base} {variable.name}[{self.old.spelled(extent)}];")

    def _body(self, statement: Statement) -> Block:
        if isinstance(statement, Block):
            return self._block(statement)
        together = statement in self.waits.together or self.waits.is_once(statement)
        made = self._once(statement) if together else self._run(Run((statement,)))
        return Block(None, statement.line, tuple(made))

    # -- what each thread did

    def _together(self, first: Run, behind: Sequence[Run | Statement]) -> Run | None:
        """Two runs and the barrier between them as one, where a thread may take them at once."""
        match behind:
            case [barrier, Run() as second] if barrier in self.waits.barriers:
                kept = self._named_in(first) & self._named_in(second) & self.waits.lasting
                if not kept:
                    return None
            case _:
                return None
        stored = {a.array for a in self._accesses(second) if a.mode != "load"}
        for access in self._accesses(first):
            if access.space != "local" and access.mode != "load":
                raise NotLegal("a round stores before all have loaded", access.line)
            if access.space == "shared" and access.array in stored:
                place = self._place(access)
                near = isinstance(place, Near) and not place.ends and place.apart >= 0
                if not near and not (isinstance(place, Among) and place.low >= 0):
                    raise NotLegal("a thread asks for an element behind its own", access.line)
        for access in self._accesses(second):
            if access.space == "shared" and access.array in stored:
                if self._place(access) != Near(0):
                    raise NotLegal("which element a round stores is not its thread's", access.line)
            elif access.space != "local" and access.mode != "load":
                raise NotLegal("a round stores to global memory", access.line)
        self.merged |= {v for v in kept if self._declared_in(v, first)}
        return Run((*first.statements, *second.statements))

    def _place(self, access: Access) -> Place:
        first = first_element(self.old, access.array)
        return place_of(self.old, access, first, self.width)

    def _declared_in(self, variable: Variable, run: Run) -> bool:
        """Whether a local is one of a round, so that it ends with the two runs."""
        own = any(isinstance(s, Declare) and variable in s.variables for s in run.statements)
        return own and sum(variable in self._named_in(r) for r in self.waits.runs()) == 2

    def _named_in(self, run: Run) -> set[Variable]:
        own = {v for s in run.statements if isinstance(s, Declare) for v in s.variables}
        return own.union(*(self.effects.mentions(s) for s in run.statements))

    def _accesses(self, run: Run) -> list[Access]:
        inside = {e for s in run.statements for e in expressions(s)}
        return [a for a in self.reading.accesses if a.own in inside]

    def _run(self, run: Run) -> list[Statement]:
        only = self._only(run)
        bound = self._bound(run)
        statements = bound.statements if bound is not None else run.statements
        words = [self._shown(s) for s in statements if not self._is_place(s)]
        body = "\n".join([*self._located(statements), *words])
        if not "".join(words).strip():
            return []
        if only is not None:
            return [lines(f"{{\nconst int {self.counter} = {only};\n{body}\n}}")]
        stop = bound.stop if bound is not None else str(self.width)
        head = f"for (int {self.counter} = 0; {self.counter} < {stop}; ++{self.counter})"
        return [lines(f"{head} {{\n{body}\n}}")]

    def _only(self, run: Run) -> int | None:
        """The only thread that does something, by the test that all of it is behind."""
        match [s for s in run.statements if not isinstance(s, Blank) and not self._is_place(s)]:
            case [If(other=None, before=None, constant=False, test=test)]:
                said = next((g.condition for g in self.reading.guards if g.test is test), None)
                for part in said.conjuncts() if said is not None else ():
                    if isinstance(part, Compare) and part.op == "==":
                        own = part.form.coefficient(_T)
                        rest = part.form.without([_T]).value
                        if own is not None and own.value in (1, -1) and rest is not None:
                            number = -rest * own.value
                            return number if 0 <= number < self.width else None
        return None

    def _bound(self, run: Run) -> _Bound | None:
        """``t < left``, where nothing else is done but to begin locals that only it asks for."""
        tests = [s for s in run.statements if isinstance(s, If)]
        others = [s for s in run.statements if not isinstance(s, If | Blank)]
        words = {self.old.spelled(s.test) for s in tests}
        if len(words) != 1 or any(s.other or s.before or s.constant for s in tests):
            return None
        given = [e for s in others if isinstance(s, Declare) for v in s.variables
                 for e in (v.value, *v.initial) if e is not None]  # fmt: skip
        plain = all(isinstance(s, Declare) for s in others)
        changed = self.effects.changed(*run.statements)
        moved = names([tests[0].test]) & changed.keys()
        if not plain or moved or any(isinstance(p, Assign) for e in given for p in every(e)):
            return None
        match tests[0].test:
            case Binary(op="<" | "<=" as op, left=left, right=right) if self._is_thread(left):
                if any(self._is_thread(p) or self._is_own(p) for p in every(right)):
                    return None
                kind = self.reading.types.get(left)
                said = next(g.condition for g in self.reading.guards if g.test is tests[0].test)
                stop = bracketed(self.old, right) + (" + 1" if op == "<=" else "")
                signed = kind is not None and kind.name == "int"
                if not isinstance(said, Compare):
                    return None
                if not self._is_within(said, tests[0], signed=signed):
                    return None
            case _:
                return None
        made = list[Statement]()
        for statement in run.statements:
            then = statement.then if isinstance(statement, If) else statement
            flat = isinstance(then, Block) and self._are_single(declared_in(then))
            made += then.body if isinstance(then, Block) and flat else [then]
        return _Bound(stop, tuple(made))

    def _are_single(self, variables: Iterable[Variable]) -> bool:
        """Whether no other local, and no parameter, has the name of one of these."""
        whole = [*self.old.function.parameters, *declared_in(self.waits.body)]
        found = [v.name for v in whole]
        return all(found.count(v.name) == 1 for v in variables)

    def _is_within(self, said: Compare, branch: If, *, signed: bool) -> bool:
        """Whether a bound is no higher than the number of threads; nor negative, if not signed."""
        form = said.form.without([_T]) + Polynomial.constant(1)
        axes = [self.old.axes().get(s) for s in self.waits.around(branch) if isinstance(s, Loop)]
        held = [c for axis in axes if axis is not None for c in (*axis.guard, axis.test)]
        own = said.form.coefficient(_T)
        left, ranges = Polynomial.constant(self.width) - form, Ranges(held, self.reading.symbols)
        whole = ranges.nonnegative(left) and (signed or ranges.nonnegative(form))
        return own is not None and own.value == -1 and whole

    # -- words

    def _is_thread(self, expr: Expr) -> bool:
        named = isinstance(expr, Name) and self._is_number(expr.variable)
        return named or builtin(expr) == _T

    def _is_own(self, expr: Expr) -> bool:
        return isinstance(expr, Name) and expr.variable in {*self.waits.places}

    def _is_place(self, statement: Statement) -> bool:
        return isinstance(statement, Declare) and {*statement.variables} <= {*self.waits.places}

    def _located(self, statements: Iterable[Statement]) -> list[str]:
        """Where the thread stands that is taken: those of its locals that are asked for."""
        asked = {v for s in statements for v in self.effects.mentions(s)}
        for variable in reversed(self.waits.places):
            if variable in asked and variable.value is not None:
                asked |= names([variable.value])
        return [self._shown(self.waits.single(s, v)) for v, s in self.waits.places.items()
                if v in asked and v.name != self.counter]  # fmt: skip

    def _shown(self, statement: Statement) -> str:
        swaps: dict[Node, Node] = {}
        for part in expressions(statement):
            if builtin(part) == _T:
                swaps[part] = text(f"((unsigned){self.counter})")
            elif self.waits.is_index(part):
                raise NotLegal("a function says where a thread stands", statement.line)
        for leave in (s for s in walk(statement) if isinstance(s, Leave) and s.kind == "return"):
            if any(isinstance(s, Loop) for s in self.waits.around(leave)):
                raise NotLegal("the kernel is left within a loop", leave.line)
            swaps[leave] = lines("continue;")
        return self.old.show(statement, swaps).strip()
