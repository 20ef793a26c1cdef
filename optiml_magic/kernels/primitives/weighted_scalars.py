"""Scalars that all keys of a tile may change at once: a running extreme, and sums.

Key after key, attention finds a greater score, scales what it has by ``exp(m - m')`` and adds its
own part by ``exp(s - m')``. Since ``exp(s - m) * exp(m - m')`` is ``exp(s - m')``, the extreme of a
whole tile may come first; what its keys add is then the same in any order.
Source: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.expressions import (
    Binary,
    Call,
    Expr,
    Literal,
    Name,
    Unary,
)
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.computing import only_computes
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.primitives.powers import of_library
from optiml_magic.kernels.primitives.weighted import Pass
from optiml_magic.kernels.primitives.weighted_sides import FUSED, ONE
from optiml_magic.kernels.primitives.weighted_ways import NOW, Way, Ways
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Statement,
    Variable,
    walk,
)

#: What stands for the extreme before a tile, and for what a key is compared by.
BEFORE, FOUND = Name(None, "before"), Name(None, "found")
_POWERS = frozenset(
    {"expf", "exp", "__expf", "exp2f", "exp2", "fast_exp2", "exp10f", "exp10", "__exp10f"}
)
_SHARED = ("float", "double", "int")  # types that lanes exchange


@dataclass(frozen=True, eq=False)
class Scale:
    """A power of the difference to the extreme, ``expf((s - m) * g)``: ``expf`` and ``* g``."""

    power: str
    steps: tuple[tuple[str, Expr], ...] = ()

    def of(self, value: Expr) -> Expr:
        made: Expr = Binary(None, "-", value, NOW)
        for op, by in self.steps:
            made = Binary(None, op, made, by)
        return Call(None, self.power, (made,))

    def shown(self, show: Callable[[Expr], str]) -> tuple[str, ...]:
        return (self.power, *(op + show(by) for op, by in self.steps))


@dataclass(frozen=True, eq=False)
class Growing:
    """A sum, or the array, and what each key adds; ``scaled`` where what was there before is."""

    variable: Variable | None
    value: Expr
    scaled: bool


@dataclass(frozen=True, eq=False)
class AtOnce:
    """What a round does by itself, ``head``, and what it does to scalars where ``tests`` hold.

    ``op`` is ``min`` or ``max``, of no meaning where there is no extreme; ``factor`` is None where
    nothing is scaled.
    """

    head: tuple[Statement, ...]
    tests: tuple[tuple[Expr, bool], ...]
    extreme: Variable | None
    op: str
    found: Expr | None
    factor: Expr | None
    weight: Expr | None
    scales: bool  # the array
    sums: tuple[Growing, ...]

    @property
    def states(self) -> tuple[Variable, ...]:
        found = (self.extreme, *(s.variable for s in self.sums))
        return tuple(v for v in found if v is not None)

    @property
    def parts(self) -> tuple[Expr, ...]:
        """What is computed for a key behind its head."""
        found = (self.found, self.weight, *(s.value for s in self.sums))
        return (*(test for test, _ in self.tests), *(e for e in found if e is not None))


def at_once(kernel: Kernel, effects: Effects, part: Pass) -> AtOnce:
    """The scalars of a pass. Raises NotLegal where the order of its keys says what they become."""
    return _Finder(kernel, effects, part).found()


@dataclass(frozen=True, eq=False)
class _Term:
    """A product: what a scalar ``of`` was, a power of the difference from ``value``, and others."""

    of: Variable | None = None
    value: Expr | None = None
    by: tuple[Expr, ...] = ()


class _Finder(Ways):
    scale: Scale | None = None

    def found(self) -> AtOnce:
        own = self.loop.body
        statements = [*own.body] if isinstance(own, Block) else [own]
        for state in self.states:
            if type_of(self.kernel, state).name not in _SHARED or state in self.effects.lent:
                raise self._no(f"`{state.name}` is not a plain number")
        at = next((n for n, s in enumerate(statements) if self._asks(s)), len(statements))
        head, tail = statements[:at], statements[at:]
        for statement in (s for one in statements for s in walk(one)):
            self._alone(statement)
        paths = self.run(tail, Way())
        acting = [p for p in paths if self._acts(p)]
        if not acting:
            raise self._no("nothing follows from its keys")
        tests = {tuple((self._shown(t), held) for t, held in p.tests) for p in acting}
        if len(tests) != 1:
            raise self._no("what a key adds depends on more than whether it counts")
        return self._joined(tuple(s for s in head if not isinstance(s, Blank)), acting)

    def _asks(self, statement: Statement) -> bool:
        """Whether a statement touches a scalar that goes from key to key, or the array."""
        inside = {*walk(statement)}
        return bool(inside & self.updates or names(self.effects.inside(statement)) & self.states)

    def _alone(self, statement: Statement) -> None:
        """Raise NotLegal where a round does more than to compute: each lane may, and twice."""
        calls = (e for e in self.effects.inside(statement) if isinstance(e, Call))
        loads = {a.node for a in self.kernel.reading.accesses if a.mode == "load"}
        if any(e not in loads and not only_computes(self.kernel, e) for e in calls):
            raise self._no("a function that it calls for a key does more than compute")
        if isinstance(statement, Declare) and any(
            v.storage != "local" or v.type.reference for v in statement.variables
        ):  # fmt: skip
            raise self._no("a local of a key is not a plain one")

    # -- what they become

    def _acts(self, path: Way) -> bool:
        kept = all(self._state(self._now(path, s)) is s for s in self.states)
        return path.updated or path.better is not None or not kept

    def _is_now(self, path: Way, expr: Expr) -> bool:
        """Whether this is the extreme behind the key."""
        if expr is NOW:
            return True
        if path.better is None or self.by is None:
            return False
        if path.better:
            return self._shown(expr) == self._shown(self.by)
        return self._state(expr) is self.extreme

    def _joined(self, head: tuple[Statement, ...], paths: Sequence[Way]) -> AtOnce:
        """What all ways through the round do to the scalars, which is the same."""
        for path in paths:
            if self.extreme and not self._is_now(path, self._now(path, self.extreme)):
                raise self._no(f"`{self.extreme.name}` is not always the extreme")
        weight = self._growing(paths, None) if self.part.updates else None
        others = sorted(self.states - {self.extreme}, key=lambda v: (v.line, v.name))
        grown = [g for v in others if (g := self._growing(paths, v)) is not None]
        scaled = self.scale is not None and any(
            g.scaled for g in (*grown, *([weight] if weight is not None else []))
        )
        return AtOnce(
            self._asked(head, paths[0], grown, weight), tuple(paths[0].tests), self.extreme,
            "max" if self.op == ">" else "min", self.by,
            self.scale.of(BEFORE) if scaled and self.scale is not None else None,
            weight.value if weight is not None else None,
            weight is not None and weight.scaled, tuple(grown),
        )  # fmt: skip

    def _asked(
        self, head: Sequence[Statement], path: Way, grown: list[Growing], weight: Growing | None
    ) -> tuple[Statement, ...]:
        """A head without the locals of which only the combining asks, that is done elsewhere."""
        inside = {e for dot in self.part.dots for e in self.effects.inside(dot.axis.node)}
        combined = {dot.variable for dot in self.part.dots}
        parts = [self.by, *(g.value for g in grown), weight.value if weight else None]
        named = names([*(t for t, _ in path.tests), *(p for p in parts if p is not None)])
        found = list[Statement]()
        for statement in reversed(head):
            own = set(statement.variables) if isinstance(statement, Declare) else set[Variable]()
            if own and not own & (named | combined):
                continue
            named |= names(e for e in self.effects.inside(statement) - inside if not e.parts)
            found.append(statement)
        return tuple(reversed(found))

    def _growing(self, paths: Sequence[Way], variable: Variable | None) -> Growing | None:
        """How a sum grows, or the array where there is no ``variable``; None where it stays."""
        found = [self._grows(path, variable) for path in paths]
        scaled = any(before for before, _ in found)
        shown = set[tuple[tuple[str, str], ...]]()
        for path, (before, terms) in zip(paths, found, strict=True):
            if before != scaled and path.better is not False:
                raise self._no("not all keys scale alike")
            if any((t.value is None) == scaled and not (path.better and scaled) for t in terms):
                raise self._no("what a key adds is not scaled as the sum is")
            whole = [t if t.value or not scaled else replace(t, value=self.by) for t in terms]
            shown.add(tuple((self._text(t.value), " * ".join(map(self._text, t.by)))
                            for t in whole))  # fmt: skip
        if len(shown) != 1:
            raise self._no("what a key adds is not the same on all ways through the round")
        terms = found[0][1]
        if not terms:
            return None
        value = self._product(terms[0], scaled)
        for term in terms[1:]:
            value = Binary(None, "+", value, self._product(term, scaled))
        return Growing(variable, value, scaled)

    def _product(self, term: _Term, scaled: bool) -> Expr:
        made = list(term.by)
        if scaled:
            assert self.scale is not None
            value = term.value or self.by
            assert value is not None
            same = self.by is not None and self._shown(value) == self._shown(self.by)
            made.append(self.scale.of(FOUND if same else value))
        if not made:
            return ONE
        value = made[0]
        for other in made[1:]:
            value = Binary(None, "*", value, other)
        return value

    def _grows(self, path: Way, variable: Variable | None) -> tuple[bool, list[_Term]]:
        """Whether what was there before is scaled, and what is added."""
        if variable is None:
            before = self._terms(path, path.scale)
            added = self._terms(path, path.weight) if path.weight is not None else []
        else:
            terms = self._terms(path, self._now(path, variable))
            before = [replace(t, of=None) for t in terms if t.of is variable]
            added = [t for t in terms if t.of is not variable]
        if len(before) != 1 or before[0].by or before[0].of or any(t.of for t in added):
            raise self._no("a scalar is not what it was and more")
        value = before[0].value
        if value is not None and (self.extreme is None or self._state(value) is not self.extreme):
            raise self._no("it is not scaled by the extreme")
        for term in added:
            if term.value is not None and self._of_states(term.value):
                raise self._no("what a key adds depends on other keys")
        return value is not None, added

    def _text(self, expr: Expr | None) -> str:
        return self._shown(expr) if expr is not None else ""

    def _terms(self, path: Way, expr: Expr) -> list[_Term]:
        """An expression as a sum of products."""
        if expr is ONE or (isinstance(expr, Literal) and expr.value == 1):
            return [_Term()]
        if not self._of_states(expr):
            return [_Term(by=(expr,))]
        match expr:
            case Name(variable=Variable() as own) if own in self.states:
                return [_Term(of=own)]
            case Binary(op="+", left=left, right=right):
                return self._terms(path, left) + self._terms(path, right)
            case Binary(op="-", left=left, right=right):
                return self._terms(path, left) + self._terms(path, Unary(None, "-", right))
            case Binary(op="*", left=left, right=right):
                return self._times(self._terms(path, left), self._terms(path, right))
            case Binary(op="/", left=left, right=right) if not self._of_states(right):
                by = _Term(by=(Binary(None, "/", ONE, right),))
                return self._times(self._terms(path, left), [by])
            case Unary(op="-", operand=operand):
                minus = _Term(by=(Literal(None, "-1.0f", -1.0),))
                return self._times(self._terms(path, operand), [minus])
            case Call(function=name, arguments=(a, b, c)) if bare(name) in FUSED:
                return self._times(self._terms(path, a), self._terms(path, b)) + (
                    self._terms(path, c)
                )
            case Call(function=name, arguments=(power,)) if bare(name) in _POWERS and of_library(
                self.kernel, name
            ):
                return [_Term(value=self._scaled(path, name, power))]
        raise self._no("what a scalar becomes is not followed")

    def _times(self, ones: list[_Term], others: list[_Term]) -> list[_Term]:
        found = []
        for one, other in ((a, b) for a in ones for b in others):
            if (one.of and other.of) or (one.value and other.value):
                raise self._no("what a scalar becomes is not followed")
            found.append(
                _Term(one.of or other.of, one.value or other.value, (*one.by, *other.by))
            )  # fmt: skip
        return found

    def _scaled(self, path: Way, power: str, expr: Expr) -> Expr:
        """What the extreme behind the key is taken from, in a power of the difference."""
        steps, inner = list[tuple[str, Expr]](), expr
        while True:
            match inner:
                case Binary(op="-", left=value, right=right) if self._is_now(path, right):
                    break
                case Binary(op="*" | "/" as op, left=left, right=by) if not self._of_states(by):
                    steps.append((op, by))
                    inner = left
                case Binary(op="*", left=by, right=right) if not self._of_states(by):
                    steps.append(("*", by))
                    inner = right
                case _:
                    raise self._no("it does not scale by a difference to the extreme")
        found = Scale(power, tuple(reversed(steps)))
        if self.scale is None:
            self.scale = found
        if found.shown(self._shown) != self.scale.shown(self._shown):
            raise self._no("not all keys scale alike")
        return value
