"""P19, loosened: a guard that lets fewer threads through each round lets as many through as first.

``if (t < left)`` in rounds that count down keeps threads from values that nobody asks for any more:
a round makes of an element and its neighbour what the next asks for below a lower bound, and what
is behind the loop asks for what the last round made alone. A thread beyond the bound may as well
compute on, as in the first round, and a lane that takes several has no test for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
    Index,
    Lambda,
    Literal,
    Name,
    Step,
    Unread,
    every,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.computing import only_computes
from optiml_magic.kernels.primitives.effects import Effects, is_counted
from optiml_magic.kernels.primitives.naming import speller_before
from optiml_magic.kernels.primitives.stored_back import stored_back
from optiml_magic.kernels.primitives.waits import is_barrier
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.symbols import MEMORY, THREADS, UNKNOWN, Compare, Condition, Symbols
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Statement,
    Variable,
    expressions,
    walk,
)

_T = "threadIdx.x"
_THREAD = Polynomial.symbol(_T)
_ONE = Polynomial.constant(1)


@primitive
def loosened(kernel: Kernel) -> Kernel:
    """The kernel whose guards that tighten from round to round stay as they are in the first."""
    if kernel.block[1:] != (1, 1):
        raise NotLegal("its blocks are not rows of threads")
    effects, refused = Effects(kernel), NotLegal("no guard tightens from round to round")
    effects.straightforward(alone=False)
    for loop, axis in kernel.axes().items():
        if loop not in kernel.function.body.body or not axis.exact or not is_counted(axis, effects):
            continue
        for bound in _bounds(kernel, axis):
            try:
                return _Loosened(kernel, axis, bound).kernel()
            except NotLegal as reason:
                refused = reason
    raise refused


def all_loosened(kernel: Kernel) -> Kernel:
    """The kernel after as many of these steps as are legal, with what is stored back left out."""
    plain = kernel
    while isinstance(made := stored_back(plain), Kernel):
        plain = made
    whole = plain
    while isinstance(made := loosened(whole), Kernel):
        whole = made
    return kernel if whole is plain else whole


def _bounds(kernel: Kernel, axis: Axis) -> Iterator[Compare]:
    """Conditions that fewer threads meet in each round, and all do that meet them in the next."""
    found = (part for guard in kernel.reading.guards if axis.name in guard.loops[-1:]
             for part in guard.condition.conjuncts())  # fmt: skip
    for part in dict.fromkeys(found):
        if not isinstance(part, Compare) or part.op != ">=":
            continue
        by, own = (part.form.coefficient(name) for name in (axis.name, _T))
        rest = part.form.without([axis.name, _T])
        inside = kernel.reading.symbols.inside(rest)
        if by is None or own is None or own.value not in (1, -1) or {axis.name, *THREADS} & inside:
            continue
        if (by.value or 0) < 0:
            yield part


@dataclass(frozen=True, eq=False)
class _Loosened:
    """The branches of a loop behind one such condition."""

    old: Kernel
    axis: Axis
    bound: Compare

    @cached_property
    def effects(self) -> Effects:
        return Effects(self.old)

    @cached_property
    def branches(self) -> dict[If, tuple[list[Expr], list[Condition]]]:
        """Those that ask for it, with the parts of their tests and what each says."""
        said = {g.test: g for g in self.old.reading.guards if g.loops[-1:] == (self.axis.name,)}
        found = {}
        for branch in walk(self.axis.node.body):
            guard = said.get(branch.test) if isinstance(branch, If) else None
            if guard is None or not isinstance(branch, If) or guard.exits:
                continue
            parts, says = [*_parts(branch.test)], [*guard.condition.conjuncts()]
            whole = branch.other is None and branch.before is None and not branch.constant
            if self.bound in says and whole and len(parts) == len(says):
                found[branch] = parts, says
        return found

    def kernel(self) -> Kernel:
        if not self.branches:
            raise NotLegal("the bound that moves is not the test of a branch", self.axis.line)
        self._check_done()
        self._check_locals()
        for array in self._stored:
            self._check(array)
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
        for branch, (parts, says) in self.branches.items():
            words = [self._words(e) for e, c in zip(parts, says, strict=True) if c != self.bound]
            words += self._first
            then = edited(branch.then, swaps)
            if not words:
                swaps[branch] = then
                continue
            test = " && ".join(f"({w})" if len(words) > 1 else w for w in words)
            swaps[branch] = If(None, branch.line, Unread(None, test), then, None, None)
        return self.old.rewritten(edited(self.old.function.body, swaps))

    def _words(self, expr: Expr) -> str:
        return self.old.spelled(expr)

    @cached_property
    def _first(self) -> list[str]:
        """The bound as it is in the first round; nothing where every thread is within."""
        form = self.bound.form.without([self.axis.name])
        if Ranges([], self.old.reading.symbols).nonnegative(form):
            return []
        speller = speller_before(self.old, self.effects, self.axis.node)
        return [speller.condition(Compare(">=", speller.local(form), self.bound.roots))]

    @cached_property
    def _freed(self) -> frozenset[Expr]:
        return frozenset(e for branch in self.branches for e in expressions(branch.then))

    @cached_property
    def _begun(self) -> frozenset[Expr]:
        """What locals begin with, in a round, that are asked for behind the bound alone."""
        body, elsewhere = self.axis.node.body, set[Variable]()
        for part in expressions(self.old.function.body):
            if isinstance(part, Name) and part.variable and part not in self._freed:
                elsewhere.add(part.variable)
        given = [
            v.value for s in walk(body) if isinstance(s, Declare) for v in s.variables
            if v.value is not None and v not in elsewhere and not v.type.reference
        ]  # fmt: skip
        return frozenset(e for value in given for e in every(value))

    @cached_property
    def _stored(self) -> frozenset[str]:
        """The arrays whose elements beyond the bound will be others."""
        return frozenset(
            a.array for a in self.old.reading.accesses
            if a.mode != "load" and a.space != "local" and a.own in self._freed
        )  # fmt: skip

    def _check_done(self) -> None:
        """What is behind the bound may be done in vain."""
        for statement in walk(self.axis.node.body):
            if isinstance(statement, Leave):
                raise NotLegal("a round may end early", statement.line)
        for statement in (s for branch in self.branches for s in walk(branch.then)):
            if not isinstance(statement, Block | Declare | Evaluate | If):
                raise NotLegal("what it does behind a bound may not end", statement.line)
        types = self.old.reading.types
        for part in self._freed:
            pure = only_computes(self.old, part) if isinstance(part, Call) else True
            whole = not getattr(types.get(part), "floating", False)
            divides = isinstance(part, Binary | Assign) and part.op[0] in "/%" and whole
            by = part.right if isinstance(part, Binary) else part
            if isinstance(part, Lambda | Unread) or not pure:
                raise NotLegal("what it does behind a bound is not followed", self.axis.line)
            if divides and not isinstance(by, Literal):
                raise NotLegal("it divides whole numbers behind a bound", self.axis.line)
        for access in self.old.reading.accesses:
            if access.own in self._freed and access.space != "local":
                self._check_access(access)

    def _check_access(self, access: Access) -> None:
        """It stores to shared memory, and takes nothing but what is there in the first round."""
        symbols, array = self.old.reading.symbols, self.old.reading.arrays.get(access.array)
        if access.call is not None or access.verbatim or access.index is None or array is None:
            raise NotLegal("what it does behind a bound is not followed", access.line)
        if access.mode != "load" and (access.space != "shared" or access.mode != "store"):
            raise NotLegal("what it stores behind a bound stays", access.line)
        extent = array.extents[0] if len(array.extents) == 1 else None
        first = Compare(">=", self.bound.form.without([self.axis.name]), self.bound.roots)
        others = {p for c in access.guard for p in c.conjuncts()} - {self.bound}
        if extent is not None and Ranges([first, *others], symbols).within(access.index, extent):
            return
        others -= self.axis.held
        moving = [symbols.inside(access.index), symbols.depends(access.index)]
        moving += [_inside(p, symbols) | p.depends for p in others]
        if frozenset[str]().union(*moving) & {self.axis.name, MEMORY, UNKNOWN}:
            raise NotLegal("which element it takes behind a bound moves", access.line)

    def _check_locals(self) -> None:
        """Locals that are changed behind the bound are asked for there alone."""
        changed = {v for b in self.branches for v in self.effects.changed(b.then)}
        for part in expressions(self.old.function.body):
            if isinstance(part, Name) and part.variable in changed and part not in self._freed:
                raise NotLegal(f"`{part.name}` is asked for elsewhere", self.axis.line)
        local = {a.array for a in self.old.reading.accesses
                 if a.space == "local" and a.mode != "load" and a.own in self._freed}  # fmt: skip
        lent = changed & self.effects.lent
        if local or lent or any(v.type.reference or v.type.depth for v in changed):
            raise NotLegal("where it stores behind a bound is not followed", self.axis.line)

    def _check(self, array: str) -> None:
        """Nobody asks for an element beyond the bound, and none is asked for as it is stored."""
        body = self.axis.node.body
        steps = body.body if isinstance(body, Block) else (body,)
        places = {e: at for at, step in enumerate(steps) for e in expressions(step)}
        waits = [at for at, step in enumerate(steps) if is_barrier(step)]
        order = {e: at for at, e in enumerate(expressions(self.old.function.body))}
        first = min(order[e] for e in expressions(self.axis.node))
        loads, stores = set[int](), set[int]()
        for access in self.old.reading.of(array):
            plain = isinstance(access.node, Index | Assign | Step) and access.call is None
            if not plain or access.index is None or access.verbatim or access.mode == "atomic":
                raise NotLegal(f"what is done with `{array}` is not followed", access.line)
            apart = (access.index - _THREAD).value
            within = access.own in places
            if not within and order[access.own] < first:
                continue
            if access.mode == "store" and access.own in self._freed and apart == 0:
                stores.add(places[access.own])
            elif access.mode == "store":
                raise NotLegal("elements behind a bound are stored elsewhere as well", access.line)
            elif self._is_within(access) and apart is not None:
                if apart:
                    loads.add(places[access.own])
                    self._check_near(access, apart)
            else:
                self._check_alive(access)
                if within:
                    loads.add(places[access.own])
        apart_from = loads and stores
        before = any(max(loads) < at < min(stores) for at in waits) if apart_from else True
        after = any(at > max(stores) or at < min(loads) for at in waits) if apart_from else True
        if not before or not after:
            raise NotLegal("it loads and stores elements between the same barriers", self.axis.line)

    def _is_within(self, access: Access) -> bool:
        """Whether what is loaded is asked for by threads within the bound alone."""
        held = {part for c in access.guard for part in c.conjuncts()}
        return self.bound in held or access.own in self._freed | self._begun

    def _check_near(self, access: Access, apart: int) -> None:
        """Of a thread within the bound, an element at such a distance was so the round before."""
        own, by = self.bound.form.coefficient(_T), self.bound.form.coefficient(self.axis.name)
        assert own is not None
        assert by is not None
        if (own.value or 0) * apart - (by.value or 0) < 0:
            raise NotLegal("a round asks for what the one before did not make", access.line)

    def _check_alive(self, access: Access) -> None:
        """An element that is asked for elsewhere is within the bound in every round."""
        assert access.index is not None
        own, symbols = self.bound.form.coefficient(_T), self.old.reading.symbols
        assert own is not None
        form = self.bound.form - own * _THREAD + own * access.index
        held = [*access.guard, *self.axis.guard, self.axis.test]
        if not symbols.known(access.index) or not Ranges(held, symbols).nonnegative(form):
            raise NotLegal("an element that no round made may be asked for", access.line)


def _parts(test: Expr) -> Iterator[Expr]:
    if isinstance(test, Binary) and test.op == "&&":
        yield from _parts(test.left)
        yield from _parts(test.right)
    else:
        yield test


def _inside(part: Condition, symbols: Symbols) -> frozenset[str]:
    """All that a condition is made of; of one that is no comparison nobody knows it."""
    return symbols.inside(part.form) if isinstance(part, Compare) else frozenset([UNKNOWN])
