"""Branches that some threads take, or all together, or each for itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from optiml_magic.kernels.combining import selection
from optiml_magic.kernels.expressions import (
    Binary,
    Choice,
    Expr,
    Name,
    Unary,
    conjuncts,
)
from optiml_magic.kernels.primitives.along import Along, tied
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.halving import flat
from optiml_magic.kernels.primitives.roles import key_of
from optiml_magic.kernels.primitives.shares import (
    Each,
    Kept,
    Known,
    Made,
    Mask,
    Same,
    Share,
    Shared,
    State,
    Value,
    joined,
    number,
)
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    If,
    Leave,
    Statement,
    Variable,
    walk,
)

NORMAL = {"<": "min", ">": "max"}


def _only_begins(statement: Statement) -> bool:
    """Whether all that a statement does is to begin locals with constants."""
    return isinstance(statement, Declare) and all(
        v.value is None or bool(key_of(v.value)) for v in statement.variables
    )


class Ways(Along):
    """Branches, and what is certain behind them."""

    def _if(self, statement: If) -> Made:
        then, other = statement.then, statement.other
        tests = [*conjuncts(statement.test)] if other is None else [statement.test]
        before, had, asked = self.mask, len(self.tests), len(self.conditions)
        chosen_ = self._selected(statement)
        if chosen_ is not None:
            return chosen_
        if self.pair_selected(statement):
            return ()
        parted = _parted(statement)
        if parted is not None:
            return self._if(parted)
        rest: list[tuple[Expr, Value]] = []
        holds = before
        never = False
        for test in tests:
            value = self.plain(test)
            if isinstance(value, Known):
                only = value.only(self.mask)
                if only == 0:
                    never = True
                    break
                if only is None:
                    holds = holds & (value.numbers != 0)
                    if not bool(holds.any()):
                        never = True
                        break
                    self.mask = holds
                    self.tests.append(value.form)
                continue
            if isinstance(value, Share | Shared):
                raise NotLegal("it computes with a part of what its threads combine")
            rest.append((test, value))
        made: Made = ()
        if never:
            self.mask = before
            del self.tests[had:]
            return self._inner(other) if other is not None else ()
        if holds is not before and len(flat(then)) == 1 and isinstance(flat(then)[0], Leave):
            self.mask = before
            del self.tests[had:]
            return self._leaves(statement, holds, rest)
        made = self._asked(rest, then, other) if rest else self._inner(then)
        if (
            holds is not before
            and self.apart
            and not all(s in self.added or _only_begins(s) for s in made)
        ):
            if any(s in self.added for one in made for s in walk(one)):
                raise NotLegal("a thread does more than to add up for all of them")
            made = (If(None, statement.line, self._test_of(had), Block(None, 0, made)),)
        del self.tests[had:]
        if holds is not before and other is not None:
            self.mask = before & ~holds
            test = tests[0]
            self.tests.append(Unary(None, "!", self.value(test).form))
            if bool(self.mask.any()):
                more = self._inner(other)
                if self.apart and more:
                    raise NotLegal("what its threads do together is not followed")
                made = (*made, *more)
            del self.tests[had:]
        assert len(self.conditions) == asked
        self.mask = before
        return made

    def _test_of(self, had: int) -> Expr:
        saved, self.tests = self.tests, self.tests[had:]
        found = self._test()
        self.tests = saved
        return found

    def _inner(self, statement: Statement) -> Made:
        body = statement.body if isinstance(statement, Block) else (statement,)
        return self._scope(self._list(body), body)

    def _leaves(self, statement: If, holds: Mask, rest: Sequence[object]) -> Made:
        """Some threads leave; the others go on."""
        top = self.kernel.function.body.body
        if rest or statement not in top or statement.other is not None or self.apart:
            raise NotLegal("some threads leave, and others go on", statement.line)
        self.mask = self.mask & ~holds
        self.left = holds
        return ()

    def _selected(self, statement: If) -> Made | None:
        """``if (a < b) a = b;`` of parts."""
        found = selection(statement)
        if found is None or found.carried or found.op not in NORMAL or len(found.values) != 1:
            return None
        place = self.place(found.target)
        if place is None and not isinstance(found.target, Name):
            return None
        try:
            one, other = self.value(found.target), self.value(found.values[0])
        except NotLegal:
            return None
        if not isinstance(one, Share) and not isinstance(other, Share):
            return None
        if found.test.startswith("!"):
            raise NotLegal("it computes with a part of what its threads combine")
        value = self.combined(one, other, NORMAL[found.op], "")
        if place is not None:
            return self._into(place, value)
        assert isinstance(found.target, Name)
        assert found.target.variable is not None
        return self._local(statement, found.target.variable, "=", found.target, value)

    def _asked(
        self, rest: Sequence[tuple[Expr, Value]], then: Statement, other: Statement | None
    ) -> Made:
        """Branches of which nothing is known, or that each thread takes for itself."""
        values = [v for _, v in rest]
        start = self._state()
        each = any(not isinstance(v, Same) for v in values)
        test = values[0].form
        for value in values[1:]:
            test = Binary(None, "&&", test, value.form)
        whole = Each(test, self.all, joined(values), frozenset(a for v in values for a in v.loads))
        if each and any(isinstance(s, Leave) for w in (then, other) if w for s in walk(w)):
            raise NotLegal("some threads leave, and others go on")
        if each and not self.apart:
            self.conditions.append(whole)
        first = self._inner(then)
        if each and not self.apart:
            self.conditions.pop()
        ends = self._state()
        self._restore(start)
        second: Made = ()
        if other is not None:
            if each and not self.apart:
                self.conditions.append(replace(whole, form=Unary(None, "!", test)))
            second = self._inner(other)
            if each and not self.apart:
                self.conditions.pop()
        leaves = [_leaves(w) for w in (then, other or Blank(None, 0))]
        if each:
            self._mixed(whole, ends)
            if not self.apart:
                return (*first, *second)
        if not leaves[0] and not each:
            if leaves[1]:
                self._restore(ends)
            else:
                self._meet(ends)
        if not first and not second:
            return ()
        line = then.line
        if not first:
            return (If(None, line, Unary(None, "!", test), Block(None, line, second)),)
        return (If(None, line, test, Block(None, line, first),
                   Block(None, line, second) if second else None),)  # fmt: skip

    def _state(self) -> State:
        return State({**self.env}, {**self.cells}, {**self.single})

    def _restore(self, state: State) -> None:
        self.env, self.cells = {**state.env}, {**state.cells}
        self.single = {**state.single}

    def _mixed(self, test: Each, ends: State) -> None:
        """What threads hold that went one way each: a choice by what they asked."""
        for held, other in ((self.env, ends.env), (self.cells, ends.cells)):
            for key in {*held, *other}:
                one, two = other.get(key), held.get(key)
                if one is two:
                    continue
                if one is None or two is None:
                    held.pop(key, None)
                    continue
                held[key] = self._choice_of(test, one, two)
        if ends.single != self.single:
            raise NotLegal("each thread takes its own way")

    def _choice_of(self, test: Each, one: Value, two: Value) -> Value:
        places = (
            one.parts if isinstance(one, Share) else two.parts if isinstance(two, Share) else None
        )
        forms: list[Value] = []
        for value in (one, two):
            source = value.source if isinstance(value, Share) else None
            if isinstance(value, Shared):
                raise NotLegal("where a pointer leads differs from thread to thread")
            if isinstance(value, Share) and value.parts != places:
                raise NotLegal("each thread combines for itself")
            if source is not None and (source.each is None or source.op):
                raise NotLegal("each thread combines for itself")
            forms.append(value if source is None or source.each is None else source.each)
        if self.apart and all(isinstance(v.form, Name) for v in forms):
            name = forms[0].form
            kind = self.kind(name.variable) if isinstance(name, Name) and name.variable else None
            return Each(name, self.all, kind=kind)
        where = one.where & two.where if len(one.where) == len(two.where) else np.zeros(1, bool)
        choice = Choice(None, test.form, forms[0].form, forms[1].form)
        kinds = [v.kind for v in forms if isinstance(v, Each)]
        loads = test.loads | forms[0].loads | forms[1].loads
        made = Each(
            choice,
            where if places is None else self.all,
            joined([test, *forms]),
            loads,
            kind=kinds[0] if kinds else None,
        )
        if places is None:
            return made
        shared = self.shared_of(made)
        return replace(shared, where=where, parts=places)

    def _meet(self, ends: State) -> None:
        """What is certain after two ways that all threads take together."""
        for held, other in ((self.env, ends.env), (self.cells, ends.cells)):
            for key in [*held]:
                if key not in other:
                    del held[key]
                elif held[key] is not other[key]:
                    held[key] = self._both(key, held[key], other[key])
        for place in self.single.keys() - ends.single.keys():
            del self.single[place]

    def _both(self, variable: Variable, one: Value, two: Value) -> Value:
        if len(one.where) != len(two.where):
            return replace(one, where=np.zeros_like(one.where))
        where = one.where & two.where
        if isinstance(one, Known) and isinstance(two, Known):
            equal = one.numbers == two.numbers
            known = bool(equal[where].all())
            if not known and variable.storage == "local" and variable not in self.kept:
                raise Kept(variable)
            return replace(one, where=where & equal)
        if isinstance(one, Same) and isinstance(two, Same):
            return Same(one.form, where, key=one.key if one.key == two.key else "")
        for share, plain in ((one, two), (two, one)):
            if isinstance(share, Share) and share.source.variable is variable:
                begins = isinstance(plain, Same) and plain.key == share.source.begun
                if begins or (
                    isinstance(plain, Share)
                    and plain.source is share.source
                    and plain.parts == share.parts
                ):
                    return replace(share, where=where)
        if (
            isinstance(one, Share)
            and isinstance(two, Share)
            and one.source is two.source
            and one.parts == two.parts
        ):
            return replace(one, where=where)
        if (
            isinstance(one, Known) != isinstance(two, Known)
            and variable.storage == "local"
            and variable not in self.kept
        ):
            raise Kept(variable)
        return replace(one, where=np.zeros_like(one.where))

    def _test(self) -> Expr:
        found: Expr | None = None
        for test in self.tests:
            found = test if found is None else Binary(None, "&&", found, test)
        return found or number(1)


def alike(one: Value, other: Value) -> bool:
    if type(one) is not type(other) or len(one.where) != len(other.where):
        return False
    same = bool((one.where == other.where).all())
    if isinstance(one, Known) and isinstance(other, Known):
        return same and bool((one.numbers == other.numbers)[one.where].all())
    if isinstance(one, Share) and isinstance(other, Share):
        return same and one.parts == other.parts
    if isinstance(one, Same) and isinstance(other, Same):
        return same and one.key == other.key
    return same


def _parted(statement: If) -> If | None:
    """``if (t < d) if (b > a) ...`` for ``if (t < d && b > a) ...``, which takes an extreme."""
    match statement:
        case If(test=Binary(op="&&", left=left, right=right), other=None):
            inner = replace(statement, span=None, test=right)
            if selection(inner) is not None or tied(right):
                return replace(statement, span=None, test=left, then=inner)
    return None


def _leaves(statement: Statement) -> bool:
    own = flat(statement)
    return bool(own) and isinstance(own[-1], Leave)
