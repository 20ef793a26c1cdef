"""Loops of a thread that go through the same keys one after the other, followed round by round.

The first computes something of each key, and may keep it in a local array; one finds the greatest
of these scores; others add up what they make of it. Each local, and the array's element of a key,
is followed as what it was given, so that in the end each sum is one expression of the score, of
the greatest one, and of what the key itself has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
    Index,
    Lambda,
    Name,
    Step,
    Unread,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.computing import only_computes
from optiml_magic.kernels.primitives.effects import (
    Effects,
    declared_in,
    is_simple,
    loops_in,
    names,
    parted,
)
from optiml_magic.kernels.primitives.passes_values import (
    are_alike,
    converted,
    given_in,
    is_greatest,
)
from optiml_magic.kernels.primitives.roles import key_of
from optiml_magic.kernels.reading import Axis
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


@dataclass(eq=False)
class Sum:
    """What the pass with number ``at`` adds for each key to a local.

    Where it adds to elements of an array, or one sum after the other, ``elements`` is the loop over
    these, and ``within`` the pass that stands in it.
    """

    target: Variable
    value: Expr
    at: int
    elements: Loop | None = None
    within: Loop | None = None


@dataclass(eq=False)
class Passes:
    """The passes of ``own``, of which the first statement is one; ``before`` stands before it.

    ``prefix`` is what the first computes of a key, ``score`` that of which ``most`` is the
    greatest, behind the pass ``found``; ``kept`` are the arrays that hold something of each key.
    """

    kernel: Kernel
    effects: Effects
    before: Sequence[Statement]
    own: Sequence[Statement]
    prefix: list[Statement] = field(default_factory=list)
    sums: list[Sum] = field(default_factory=list)
    kept: dict[Variable, Expr] = field(default_factory=dict)
    most: Variable | None = None
    score: Expr | None = None
    found: int = 0
    last: int = 0
    passes: list[int] = field(default_factory=list)
    _known: dict[Variable, Expr] = field(default_factory=dict)
    _asked: list[tuple[Expr, int]] = field(default_factory=list)

    @property
    def first(self) -> Loop:
        loop = self.own[0]
        assert isinstance(loop, Loop)
        return loop

    @property
    def counter(self) -> Variable:
        variable = self.kernel.axes()[self.first].variable
        assert variable is not None
        return variable

    def follow(self) -> None:
        """Go through all passes. Raises NotLegal where one does anything else."""
        for at, statement in enumerate(self.own):
            if not isinstance(statement, Loop):
                continue
            if self.is_pass(statement):
                self._pass(at, statement, None)
            elif (inner := self.inner(statement)) is not None:
                self._pass(at, inner, statement)
            else:
                continue
            self.last = at
            self.passes.append(at)
        if len(self.passes) < 2 or not self.sums:
            raise NotLegal("no second loop goes through the same keys")
        self._check_arrays()
        self._check_steady()

    def is_pass(self, loop: Loop) -> bool:
        """Whether a loop goes through the same keys as the first, one by one."""
        axis, first = self.kernel.axes().get(loop), self.kernel.axes().get(self.first)
        if axis is None or first is None or not axis.exact or not is_simple(axis, self.effects):
            return False
        leaves = any(isinstance(s, Leave) for s in walk(loop.body))
        same = axis.stop is not None and axis.stop == first.stop
        return same and not leaves and _counter(self.kernel, loop).type == self.counter.type

    def inner(self, loop: Loop) -> Loop | None:
        """The pass that a loop over the elements of a row makes for each of them."""
        own = [s for s in parted(loop.body) if isinstance(s, Loop)]
        alone = len(own) == 1 and self.is_pass(own[0])
        return own[0] if alone and self.is_elements(loop) else None

    def is_elements(self, loop: Loop) -> bool:
        axis = self.kernel.axes().get(loop)
        leaves = any(isinstance(s, Leave) for s in walk(loop))
        known = axis is not None and axis.trips and is_simple(axis, self.effects)
        return bool(known) and not leaves

    # -- one pass

    def _pass(self, at: int, loop: Loop, elements: Loop | None) -> None:
        for access in self.effects.accesses(loop):
            outside = access.space != "local"
            if outside and access.mode != "load":
                raise NotLegal("it stores for each key", access.line)
            if outside and any(
                self.effects.same(access.array, w) for w in self.kernel.reading.written
            ):
                raise NotLegal("it reads what it writes", access.line)
        body = [*parted(loop.body)]
        begins = loop is self.first
        if not begins:
            self._known[_counter(self.kernel, loop)] = Name(None, self.counter.name, self.counter)
            body = self._again(loop, body)
        axis, many = self.kernel.axes()[loop], len(self.sums)
        most = self.most
        for statement in body:
            if not self._step(at, axis, statement, elements):
                if not begins:
                    raise NotLegal("its rounds do more than to sum up", statement.line)
                self._check_prefix(statement, loop)
                self.prefix.append(statement)
        if begins:
            for expr, place in self._asked:
                if names([expr]) & self.effects.changed(*self.prefix[place:]).keys():
                    raise NotLegal("what its first round keeps changes behind it", loop.line)
        carried = {*self.effects.changed(loop)} - {*self.kept}
        for one in self.sums[many:]:
            one.within = loop if elements is not None else None
            if names([one.value]) & (carried - {self.most if most is not None else None}):
                raise NotLegal(f"`{one.target.name}` asks for what goes on from key to key")
        if self.most is not most:
            self.found = at

    def _again(self, loop: Loop, body: list[Statement]) -> list[Statement]:
        """What is left of a pass that begins as the first one does, which is not computed again."""
        many = len(self.prefix)
        if not many or not are_alike(
            self.effects, body[:many], _counter(self.kernel, loop), self.prefix, self.counter
        ):
            return body
        for mine, theirs in zip(body[:many], self.prefix, strict=True):
            if isinstance(mine, Declare) and isinstance(theirs, Declare):
                for one, other in zip(mine.variables, theirs.variables, strict=True):
                    self._known[one] = Name(None, other.name, other)
        return body[many:]

    def _check_prefix(self, statement: Statement, loop: Loop) -> None:
        """Raise NotLegal where a step of the first pass leaves something behind its round."""
        own = declared_in(loop.body)
        if not {*self.effects.changed(statement)} <= own or self.effects.kept(statement):
            raise NotLegal("its rounds do more than to sum up", statement.line)
        if self.effects.mentions(statement) & {*self.effects.changed(loop)}:
            raise NotLegal("its rounds wait for each other", statement.line)

    # -- one statement of a round

    def _step(self, at: int, axis: Axis, statement: Statement, elements: Loop | None) -> bool:
        """Follow a statement; False where it is one of what the first pass computes."""
        begins = axis.node is self.first
        if self._is_extreme(axis, statement, elements):
            return True
        match statement:
            case Declare(variables=(variable,)) if not begins and variable.value is not None:
                self._know(variable, variable.value)
                return True
            case Evaluate(expression=Assign(target=Name(variable=Variable() as v)) as given):
                whole = _whole(given)
                if v in declared_in(axis.node.body):
                    if begins:
                        return False
                    self._know(v, whole, given.value)
                    return True
                self._add(at, v, whole, elements)
                return True
            case Evaluate(expression=Assign(target=Index() as place) as given) if (
                array := self._element(place, axis)
            ) is not None:
                if elements is not None:
                    raise NotLegal("a round asks for what another one keeps", statement.line)
                whole = _whole(given)
                self.kept[array] = converted(self.kernel, given.value, self.put(whole), array)
                self._asked.append((self.kept[array], len(self.prefix)))
                return True
            case Loop() if self.is_elements(statement) and not loops_in(statement.body):
                return self._row(at, statement)
        return False

    def _know(self, variable: Variable, value: Expr, own: Expr | None = None) -> None:
        """Note what a local is given; ``own`` is what decides its type, where that is another."""
        steady = not variable.type.depth or variable in self.effects.lasting
        if variable.array or variable.type.reference or not steady:
            raise NotLegal("what a round computes is not followed", variable.line)
        put = self.put(value)
        if not variable.type.depth:
            put = converted(self.kernel, own or value, put, variable)
        self._known[variable] = put

    def _row(self, at: int, loop: Loop) -> bool:
        """``for (d) acc[d] += p * v[k][d]``."""
        counter, steps = _counter(self.kernel, loop), [*parted(loop.body)]
        targets = [s.expression.target for s in steps
                   if isinstance(s, Evaluate) and isinstance(s.expression, Assign)]  # fmt: skip
        if not targets or not isinstance(targets[-1], Index):
            return False
        for step in steps:
            match step:
                case Declare(variables=(variable,)) if variable.value is not None:
                    self._know(variable, variable.value)
                case Evaluate(expression=Assign(target=Index(
                    base=Name(variable=Variable(storage="local", extents=(_,)) as array),
                    index=Name(variable=own),
                ) as place) as given) if own is counter:  # fmt: skip
                    self._add(at, array, _whole(given), loop, place)
                case _:
                    return False
        return True

    def _add(
        self, at: int, target: Variable, whole: Expr, elements: Loop | None,
        place: Expr | None = None,
    ) -> None:  # fmt: skip
        """``target = target + value``."""
        match whole:
            case Binary(op="+", left=own, right=value) if self._is(own, target, place):
                pass
            case Binary(op="+", left=value, right=own) if self._is(own, target, place):
                pass
            case _:
                raise NotLegal(f"`{target.name}` is not summed up", target.line)
        if any(one.target is target for one in self.sums) or target in self.kept:
            raise NotLegal(f"`{target.name}` is summed up twice", target.line)
        value = self.put(value)
        if target in names([value]):
            raise NotLegal(f"`{target.name}` is not summed up", target.line)
        self.sums.append(Sum(target, value, at, elements))
        self._asked.append((value, len(self.prefix)))

    def _is(self, own: Expr, target: Variable, place: Expr | None) -> bool:
        if place is not None:
            return self.kernel.spelled(own) == self.kernel.spelled(place)
        return isinstance(own, Name) and own.variable is target

    def _is_extreme(self, axis: Axis, statement: Statement, elements: Loop | None) -> bool:
        """Whether a statement is all that makes a local the greatest of the scores."""
        changed = self.effects.changed(statement)
        if len(changed) != 1 or isinstance(statement, Loop | Declare | Block):
            return False
        (variable,) = changed
        for one in self.kernel.reading.reductions:
            ours = one.place == variable.name and one.axes[:1] == (axis.name,)
            if not ours or one.op not in ("max", ">"):
                continue
            if len(one.values) != 1 or one.carried or self.most is not None or elements:
                raise NotLegal("more than one maximum is sought", statement.line)
            (value,) = one.values
            if not is_greatest(self.kernel, statement, variable, value):
                raise NotLegal("not all scores are compared with the greatest", statement.line)
            self.most = variable
            self.score = converted(self.kernel, value, self.put(value), variable)
            self._asked.append((self.score, len(self.prefix)))
            return True
        return False

    def _element(self, place: Index, axis: Axis) -> Variable | None:
        """The local array of whose element for the key this is."""
        match place:
            case Index(
                base=Name(variable=Variable(storage="local", extents=(_,)) as array),
                index=Name(variable=own),
            ) if own is axis.variable:  # fmt: skip
                return array
        return None

    def put(self, expr: Expr) -> Expr:
        """An expression with what locals and kept elements were given in their places."""
        swaps: dict[Node, Node] = {}
        for part in every(expr):
            if isinstance(part, Assign | Step | Lambda | Unread) or (
                isinstance(part, Call) and not self._computes(part)
            ):
                raise NotLegal("what a round computes is not followed")
            if isinstance(part, Name) and part.variable in self._known:
                swaps[part] = self._known[part.variable]
        put = edited(expr, swaps)
        kept: dict[Node, Node] = {
            part: self.kept[part.base.variable] for part in every(put)
            if isinstance(part, Index) and isinstance(part.base, Name)
            and part.base.variable in self.kept
            and isinstance(part.index, Name) and part.index.variable is self.counter
        }  # fmt: skip
        return edited(put, kept)

    def _computes(self, call: Call) -> bool:
        loads = any(a.node is call and a.mode == "load" for a in self.kernel.reading.accesses)
        return loads or only_computes(self.kernel, call)

    def _check_arrays(self) -> None:
        """Raise NotLegal where an array is asked for elsewhere than in the passes."""
        loops = [(self.inner(loop) or loop) for at in self.passes
                 if isinstance(loop := self.own[at], Loop)]  # fmt: skip
        inside = {e for loop in loops for e in self.effects.inside(loop)}
        held = {one.value for one in self.sums}
        for expr in expressions(self.kernel.function.body):
            if isinstance(expr, Name) and expr.variable in self.kept and expr not in inside:
                raise NotLegal(f"`{expr.name}` is asked for behind its loops")
        for value in (*held, *([self.score] if self.score is not None else [])):
            if names([value]) & {*self.kept}:
                raise NotLegal("a round asks for what another one keeps")
        for statement in self.prefix:
            if self.effects.mentions(statement) & {*self.kept}:
                raise NotLegal("a round asks for what another one keeps", statement.line)

    def _check_steady(self) -> None:
        """Raise NotLegal where a pass changes what another one goes by, or asks too early."""
        values = [one.value for one in self.sums]
        asked = names([*values, *([self.score] if self.score is not None else [])])
        asked |= {v for s in self.prefix for v in self.effects.mentions(s)}
        places = {one.target: one.at for one in self.sums}
        if self.most is not None:
            places[self.most] = self.found
        if any(v.storage == "local" for v in (asked | places.keys()) & self.effects.addressed):
            raise NotLegal("an address leads to what its passes go by", self.first.line)
        for at in self.passes:
            own, loop = declared_in(self.own[at]), self.own[at]
            mine = {v for v, place in places.items() if place == at}
            if (given_in(self.effects, loop) - own - mine) & (asked | places.keys()):
                raise NotLegal("a pass changes what another one asks for", loop.line)
            if any(place > at for v, place in places.items() if v in self.effects.mentions(loop)):
                raise NotLegal("a pass asks for what another one finds", loop.line)
            for one in self.sums:
                row = {_counter(self.kernel, one.elements)} if one.elements is not None else set()
                inner = own - row - declared_in(self.first)
                if one.at == at and names([one.value]) & inner:
                    raise NotLegal(f"`{one.target.name}` differs by more than its key", loop.line)


def _counter(kernel: Kernel, loop: Loop) -> Variable:
    variable = kernel.axes()[loop].variable
    assert variable is not None
    return variable


def _whole(given: Assign) -> Expr:
    """What something is given, ``s * c`` by ``s *= c``."""
    if given.op == "=":
        return given.value
    return Binary(None, given.op[:-1], given.target, given.value)


def is_zero(expr: Expr | None) -> bool:
    return expr is not None and key_of(expr) == "0"
