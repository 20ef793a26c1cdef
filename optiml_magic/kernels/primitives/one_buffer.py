"""Two rows in shared memory of which each round of a loop reads one and fills the other, as one.

``s[1 - cur][t] = f(s[cur][t], s[cur][t + 1]); cur = 1 - cur;`` is ``next = f(s[t], s[t + 1])``,
a barrier and ``s[t] = next``, so that a thread owns an element. What a round does not store was two
rounds old in its row, and is one round old now, so nobody may ask for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Call, Expr, Index, Name, builtin, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.block_rounds import block_rounds
from optiml_magic.kernels.primitives.computing import only_computes
from optiml_magic.kernels.primitives.effects import Effects, declared_in, is_counted, names, parted
from optiml_magic.kernels.primitives.places import bare
from optiml_magic.kernels.primitives.tabulated import READ, is_value
from optiml_magic.kernels.primitives.two_buffers import TwoBuffers, two_buffers
from optiml_magic.kernels.primitives.waits import is_barrier
from optiml_magic.kernels.primitives.widened import widened
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.symbols import MEMORY, UNKNOWN, Compare, Condition
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    If,
    Statement,
    Variable,
    body_of,
    expressions,
    walk,
)

_T = "threadIdx.x"
_THREAD = Polynomial.symbol(_T)
_Changes = dict[Node, Node | tuple[Statement, ...] | None]


@primitive
def one_buffer(kernel: Kernel) -> Kernel:
    """The kernel with one row in the place of the first such two.

    Threads that take items a block apart become one an item before: phases have barriers between
    them, and within one of them the two rows are apart, as the steps that do so see them.
    """
    for found in two_buffers(kernel):
        try:
            steps = (widened, block_rounds) if found.waits_last else ()
            return _One(replace(found, kernel=found.kernel.shaped(steps))).kernel()
        except NotLegal:
            continue
    raise NotLegal("no round of a block fills one row from another")


@dataclass(frozen=True, eq=False)
class _Stored:
    """The stores of a round, all to one place, and the tests behind which there is one."""

    step: Statement
    stores: tuple[Assign, ...]
    tests: tuple[Expr, ...]


class _One:
    def __init__(self, found: TwoBuffers) -> None:
        self.rows, self.old, self.loop = found, found.kernel, found.loop
        self.effects = Effects(self.old)
        self.effects.straightforward(alone=False)
        self.reading = self.old.reading
        self.body = self.old.function.body
        self.order = {e: at for at, e in enumerate(expressions(self.body))}
        self.inside = {*expressions(self.loop)}
        self.first = min(self.order[e] for e in self.inside)
        arrays = [self.reading.arrays.get(name) for name in (found.read, found.filled)]
        one, other = arrays
        if one is None or other is None or one.extents != other.extents or len(one.extents) != 1:
            raise NotLegal("the two rows differ", self.loop.line)
        self.element = one.element.name

    def kernel(self) -> Kernel:
        stored, changes = self._stored, self._begun_alike()
        self._check_waits()
        self._check_loads()
        name = self.old.fresh("next")
        for store in stored.stores:
            changes[store.target] = text(name)
        target = self._spelled_one(stored.stores[0])
        back = f"{target} = {name};"
        if stored.tests:
            back = f"if ({self._all(stored.tests)}) {back}"
        declared = lines(f"{self.element} {name};")
        made = [declared if s is None else edited(s, changes) for s in (None, stored.step)]
        last = self._last
        ahead = (*made,) if last is not stored.step else (*made, lines(f"__syncthreads();\n{back}"))
        changes[stored.step] = ahead
        if last is not stored.step:
            changes[last] = (edited(last, changes), lines(f"__syncthreads();\n{back}"))
        for statement in walk(self.body):
            if isinstance(statement, Declare) and any(
                v.name == self.rows.filled for v in statement.variables
            ):
                parts = parted(Block(None, statement.line, (statement,)))
                changes[statement] = tuple(
                    p for p in parts
                    if not isinstance(p, Declare) or p.variables[0].name != self.rows.filled
                )  # fmt: skip
        return self.old.rewritten(edited(self.body, changes))

    # -- what a round stores

    @cached_property
    def _steps(self) -> list[Statement]:
        return [s for s in body_of(self.loop.body) if not isinstance(s, Blank)]

    @cached_property
    def _last(self) -> Statement:
        """The last statement of a round that is not a barrier."""
        return [s for s in self._steps if not is_barrier(s)][-1]

    @cached_property
    def _stored(self) -> _Stored:
        rows, stores = self.rows, list[Assign]()
        for access in self.reading.accesses:
            if access.array not in (rows.read, rows.filled):
                continue
            plain = access.call is None and not access.verbatim and access.mode != "atomic"
            if not plain or access.index is None or not isinstance(access.place, Index):
                raise NotLegal("what is done with the two rows is not followed", access.line)
            mine = access.array == rows.filled
            if mine and access.mode == "store" and access.own in self.inside:
                if not isinstance(access.node, Assign) or access.node.op != "=":
                    raise NotLegal("a round adds to what it fills", access.line)
                stores.append(access.node)
            elif mine and (access.own in self.inside or self.order[access.own] > self.first):
                raise NotLegal("the row that is filled is read", access.line)
            elif access.mode == "store" and access.own in self.inside:
                raise NotLegal("the row that is read is filled", access.line)
        if len({self.old.spelled(s.target) for s in stores}) != 1:
            raise NotLegal("a round fills several elements of a thread", self.loop.line)
        steps = [s for s in self._steps if {*stores} & {*expressions(s)}]
        if len(steps) != 1:
            raise NotLegal("a round fills an element again", self.loop.line)
        tests = tuple(self._tests(steps[0], {*stores}))
        self._check_again([stores[0].target, *tests], steps[0])
        return _Stored(steps[0], tuple(stores), tests)

    def _tests(self, step: Statement, stores: set[Assign]) -> Iterator[Expr]:
        """The tests that all hold where a statement stores; none where it does so anyway."""
        match step:
            case Evaluate(expression=Assign() as own) if own in stores:
                return
            case Block(body=body):
                inner = [s for s in body if stores & {*expressions(s)}]
                if len(inner) == 1:
                    yield from self._tests(inner[0], stores)
                    return
            case If(constant=False, before=None, test=test, then=then, other=other):
                ways = [w for w in (then, other) if w is not None and stores & {*expressions(w)}]
                if len(ways) == 2 and not any([*self._tests(w, stores)] for w in ways):
                    return
                if ways == [then]:
                    yield test
                    yield from self._tests(then, stores)
                    return
        raise NotLegal("where a round stores is not followed", step.line)

    def _check_again(self, given: list[Expr], step: Statement) -> None:
        """At the end of the round all of these say what they said."""
        touching = {a.own for a in self.reading.accesses if a.mode == "load"}
        behind = self._steps[self._steps.index(step) :]
        asked = names(part for e in given for part in every(e))
        moved = asked & self.effects.changed(*behind).keys()
        if moved or (asked & declared_in(step)) - self._numbers:
            raise NotLegal("which element a round fills changes within it", step.line)
        target, *tests = given
        assert isinstance(target, Index)
        if not all(is_value(self.old, e, touching) for e in (target.index, *tests)):
            raise NotLegal("the data say where a round stores", step.line)
        carried = self.effects.changed(self.loop).keys() - declared_in(self.loop.body)
        counter = self._axis.variable if self._axis is not None else None
        if asked & carried - {counter} or counter in names(every(target.index)):
            raise NotLegal("which element a round fills changes from round to round", step.line)

    @cached_property
    def _numbers(self) -> set[Variable]:
        """Locals that are the number of their thread."""
        whole = declared_in(self.body) - self.effects.changing
        return {v for v in whole if v.value is not None and builtin(bare(v.value)) == _T}

    @cached_property
    def _axis(self) -> Axis | None:
        """How the loop counts, where its head alone does."""
        axis = self.old.axes().get(self.loop)
        plain = axis is not None and axis.exact and is_counted(axis, self.effects)
        return axis if plain else None

    def _check_waits(self) -> None:
        """There is a barrier at one end of a round, and none within."""
        waits = [s for s in walk(self.loop.body) if is_barrier(s)]
        if len(waits) != 1 or waits[0] not in (self._steps[0], self._steps[-1]):
            raise NotLegal("threads do not wait for each other once a round", self.loop.line)

    # -- what was there before

    def _begun_alike(self) -> _Changes:
        """Without stores to the row that is filled, which the other one has had as well."""
        changes = _Changes()
        blocks = [s for s in walk(self.body) if isinstance(s, Block)]
        for access in self.reading.of(self.rows.filled):
            if access.own in self.inside:
                continue
            home = next(
                ((b.body, at) for b in blocks for at, s in enumerate(b.body)
                 if isinstance(s, Evaluate) and s.expression is access.node), None,
            )  # fmt: skip
            if access.mode != "store" or home is None or not self._is_alike(*home):
                raise NotLegal("the rows do not begin alike", access.line)
            changes[home[0][home[1]]] = None
        return changes

    def _is_alike(self, body: tuple[Statement, ...], at: int) -> bool:
        """Whether a statement right before or behind stores the same to the row that is read."""
        own = body[at]
        for other in (body[near] for near in (at - 1, at + 1) if 0 <= near < len(body)):
            match own, other:
                case (
                    Evaluate(expression=Assign(op="=", target=Index(), value=value) as one),
                    Evaluate(
                        expression=Assign(
                            op="=", target=Index(base=Name(name=name)) as target, value=same
                        )
                    ),
                ) if name == self.rows.read:
                    place = self._spelled_one(one)
                    copied = other is body[at - 1] and self.old.spelled(value) == place
                    alike = self.old.spelled(value) == self.old.spelled(same)
                    if self.old.spelled(target) == place and (
                        copied or (alike and self._is_steadily_computed(value))
                    ):
                        return True
        return False

    def _is_steadily_computed(self, value: Expr) -> bool:
        """Whether an expression only computes, from locals and from what nobody writes."""
        written = {a.array for a in self.reading.accesses if a.mode != "load"}
        loaded = {a.node: a.array for a in self.reading.accesses if a.mode == "load"}
        bases = {p.base for p in every(value) if isinstance(p, Index)}
        for part in every(value):
            if isinstance(part, Index):
                if loaded.get(part, next(iter(written))) in written:
                    return False
            elif isinstance(part, Call):
                if not only_computes(self.old, part):
                    return False
            elif part not in bases and not isinstance(part, READ):
                return False
        return True

    # -- what is asked for

    def _check_loads(self) -> None:
        """Nobody asks for an element that an earlier round stored, and the last did not."""
        bound = self._bound()
        if bound is None:
            return
        axis, part = bound
        index = next(a.index for a in self.reading.of(self.rows.filled) if a.own in self.inside)
        begins = (index - _THREAD).value if index is not None else None
        own, by = part.form.coefficient(_T), part.form.coefficient(axis.name)
        if begins is None or own is None or own.value is None or by is None or by.value is None:
            raise NotLegal("which element a round fills is not followed", self.loop.line)
        for access in self.reading.of(self.rows.read):
            assert access.index is not None
            if access.own not in self.inside and self.order[access.own] < self.first:
                continue
            apart = (access.index - _THREAD).value
            held = {c for g in access.guard for c in g.conjuncts()}
            if access.own in self.inside and part in held and apart is not None:
                if own.value * (apart - begins) - by.value < 0:
                    raise NotLegal("a round asks for what the one before did not make", access.line)
                continue
            self._check_alive(access, axis, part, own, begins)

    def _check_alive(
        self, access: Access, axis: Axis, part: Compare, own: Polynomial, begins: int
    ) -> None:
        """An element that is asked for elsewhere is stored in every round."""
        assert access.index is not None
        symbols = self.reading.symbols
        thread = access.index - Polynomial.constant(begins)
        form = part.form - own * _THREAD + own * thread
        held = [*access.guard, *axis.guard, axis.test]
        if not symbols.known(access.index) or not Ranges(held, symbols).nonnegative(form):
            raise NotLegal("an element that no round made may be asked for", access.line)

    def _bound(self) -> tuple[Axis, Compare] | None:
        """The test that fewer threads meet in each round; all others say the same in all."""
        said = {g.test: g.condition for g in self.reading.guards}
        axis, found = self._axis, list[Compare]()
        for part in (p for test in self._stored.tests for p in self._said(said, test).conjuncts()):
            if self._is_steady(part):
                continue
            if axis is None or not isinstance(part, Compare) or part.op != ">=":
                raise NotLegal("which threads store in a round is not followed", self.loop.line)
            by, own = (part.form.coefficient(n) for n in (axis.name, _T))
            rest = self.reading.symbols.inside(part.form.without([axis.name, _T]))
            if by is None or own is None or own.value not in (1, -1) or {axis.name, _T} & rest:
                raise NotLegal("which threads store in a round is not followed", self.loop.line)
            if by.value is None or by.value >= 0 or {MEMORY, UNKNOWN} & part.depends:
                raise NotLegal("more threads store in a later round", self.loop.line)
            found.append(part)
        if len(found) > 1:
            raise NotLegal("two bounds move from round to round", self.loop.line)
        return (axis, found[0]) if found and axis is not None else None

    def _said(self, said: dict[Expr, Condition], test: Expr) -> Condition:
        if test not in said:
            raise NotLegal("which threads store in a round is not followed", self.loop.line)
        return said[test]

    def _is_steady(self, part: Condition) -> bool:
        """Whether a condition says the same in all rounds."""
        if not isinstance(part, Compare):
            return False
        inside = self.reading.symbols.inside(part.form) | part.depends
        moving = {self._axis.name} if self._axis is not None else set[str]()
        return not (moving | {MEMORY, UNKNOWN}) & inside

    # -- words

    def _spelled_one(self, store: Assign) -> str:
        """The place of a store to the row that is filled, in the other one."""
        target = store.target
        assert isinstance(target, Index)
        return f"{self.rows.read}[{self._said_again(target.index)}]"

    def _said_again(self, expr: Expr) -> str:
        """An expression at the end of a round, where locals of a statement are gone."""
        inside = declared_in(self.loop.body) & self._numbers
        own: dict[Node, Node] = {part: text("(int)threadIdx.x") for part in every(expr)
               if isinstance(part, Name) and part.variable in inside}  # fmt: skip
        return self.old.spelled(expr, own)

    def _all(self, tests: tuple[Expr, ...]) -> str:
        words = [self._said_again(test) for test in tests]
        return words[0] if len(words) == 1 else " && ".join(f"({w})" for w in words)
