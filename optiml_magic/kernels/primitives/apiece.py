"""What each thread does by itself, from where it stands: a loop over threads."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_

from optiml_magic.kernels.editing import edited, lines
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
    Index,
    Literal,
    Name,
    every,
)
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.cells import Cells
from optiml_magic.kernels.primitives.meetings import first_base
from optiml_magic.kernels.primitives.shares import (
    IDEMPOTENT,
    IDENTITIES,
    Each,
    Known,
    Made,
    Same,
    Share,
    Shared,
    Source,
    Value,
    joined,
    number,
)
from optiml_magic.kernels.primitives.stretches import stretches
from optiml_magic.kernels.reading import Reduction
from optiml_magic.kernels.tree import Evaluate, Leave, Statement, Variable, expressions, walk


class Apiece(Cells):
    """Stores, and values that are combined, as loops over the threads there were."""

    def _global(self, statement: Statement, target: Expr, op: str, given: Expr) -> Made:
        if self.quiet:
            raise NotLegal("where it stores is not followed", statement.line)
        if self.apart:
            return self._kept(statement, target, op, given)
        array = next(
            (
                a.array
                for a in self.kernel.reading.accesses
                if a.mode == "store" and a.own in {*every(target), *statement.expressions}
            ),
            "?",
        )
        parts = {part: self.plain(part) for part in target.parts}
        value = self.plain(given)
        found = [*parts.values(), value, *self.conditions]
        if any(isinstance(v, Share | Shared) for v in found):
            raise NotLegal("it stores part of what its threads combine", statement.line)
        self.stores = True
        place = edited(target, {p: v.form for p, v in parts.items() if v.form is not p})
        alike = all(isinstance(v, Same) or (isinstance(v, Known) and v.only(self.mask) is not None)
                    for v in found)  # fmt: skip
        if alike:
            if op != "=" and int(self.mask.sum()) > 1:
                raise NotLegal("several threads store to one element", statement.line)
            self.stored(array)
            return (Evaluate(None, statement.line, Assign(None, op, place, self._form(value))),)
        made = Evaluate(None, statement.line, Assign(None, op, place, self._form(value)))
        self._apart_from(array, place, found)
        self.stored(array)
        return (self._threads([made], found),)

    def _kept(self, statement: Statement, target: Expr, op: str, given: Expr) -> Made:
        """A store that each thread goes on to make for itself, where no barrier orders it."""
        own = {*every(target), *statement.expressions}
        stored = self._by_itself(own, statement.line)
        parts = {part: self.plain(part) for part in target.parts}
        value = self.plain(given)
        if any(isinstance(v, Share | Shared) for v in (*parts.values(), value)):
            raise NotLegal("it stores part of what its threads combine", statement.line)
        for array in stored:
            self.stored(array)
        place = edited(target, {p: v.form for p, v in parts.items() if v.form is not p})
        return (Evaluate(None, statement.line, Assign(None, op, place, value.form)),)

    def _by_itself(self, own: Container[Expr], line: int) -> list[str]:
        """The arrays that these expressions store to; NotLegal where barriers order it."""
        if self.left is not None or not bool(self.mask.all()):
            raise NotLegal("only some threads store an element", line)
        accesses = [a for a in self.kernel.reading.accesses if a.space == "global"]
        stored = [a.array for a in accesses if a.mode == "store" and a.own in own]
        for array in stored:
            beside = [a for a in accesses if self.same_array(array, a.array)]
            where = {stretches(self.kernel).get(a.own) for a in beside}
            if len(where) != 1 or None in where or any(a.mode == "atomic" for a in beside):
                raise NotLegal(f"its threads wait before `{array}` is asked for again", line)
        return stored

    def _untouched(self, statement: Statement) -> bool:
        """Whether a statement is a thread's own, whatever it does: nothing in it is shared."""
        own = {*expressions(statement)}
        if not self.whole or self.quiet or self.tests or not own <= stretches(self.kernel).keys():
            return False
        if any(isinstance(s, Leave) and s.kind == "return" for s in walk(statement)):
            return False
        accesses = self.effects.accesses(statement)
        if any(a.space == "shared" or a.mode == "atomic" for a in accesses):
            return False
        asked = self.effects.mentions(statement)
        elsewhere = any(v.storage not in ("local", "parameter") for v in asked)
        if elsewhere or any(isinstance(self.env.get(v), Share | Shared) for v in asked):
            return False
        stored = self._by_itself(own, statement.line)
        for variable in self.effects.changed(statement):
            self.changed(variable)
            name = Name(None, variable.name, variable)
            self.env[variable] = Each(name, self.all, kind=self.kind(variable))
        for array in stored:
            self.stored(array)
        return True

    def _alike(self, variable: Variable, value: Each) -> bool:
        """Whether a local is of the type of what it is given."""
        return variable.type.base in {"auto", *self.generic} or value.kind == self.kind(variable)

    def _form(self, value: Value) -> Expr:
        only = value.only(self.mask) if isinstance(value, Known) else None
        return (
            number(only) if only is not None and not isinstance(value.form, Literal) else value.form
        )

    def _apart_from(self, array: str, place: Expr, found: Sequence[Value]) -> None:
        """Raise NotLegal where one thread stores what another is still to load."""
        loads = {a for v in found for a in v.loads}
        if not any(self.same_array(array, a) for a in loads):
            return
        own = self.words(place)
        base = self.words(first_base(place)) if isinstance(place, Index) else "?"
        forms = [f for v in found for f in (v.form, *(one.form for one in v.locals))]
        for form in forms:
            for part in every(form):
                if isinstance(part, Index) and not isinstance(part.base, Index):
                    met = self.words(part.base) == base
                    if met and self.words(part) != own:
                        raise NotLegal("its threads load what others store", 0)
        if {a for a in loads if self.same_array(array, a)} != {array}:
            raise NotLegal("its threads load what others store")

    def _threads(self, made: Sequence[Statement], found: Sequence[Value]) -> Statement:
        """What each thread does, thread by thread."""
        if self.left is not None:
            raise NotLegal("some threads are gone, and others go on")
        test = self._guard()
        body = [self.kernel.show(s) for s in made]
        head = [f"{one.words} {one.name} = {self.words(one.form)};" for one in joined(found)]
        inner = [f"if ({test}) {{", *body, "}"] if test else body
        # a local may load what only some threads may load: it comes behind the test
        outer = joined(self.conditions)
        names = {one.name for one in outer}
        first = [f"{one.words} {one.name} = {self.words(one.form)};" for one in outer]
        rest = [h for h, one in zip(head, joined(found), strict=True) if one.name not in names]
        if test:
            inner = [f"if ({test}) {{", *rest, *body, "}"]
            rest = []
        thread = self.thread
        return lines("\n".join([
            f"for (int {thread} = 0; {thread} < {self.count}; ++{thread}) {{", *first, *rest,
            *inner, "}",
        ]))  # fmt: skip

    def _guard(self) -> str:
        tests = [
            *(self.words(t) for t in self.tests),
            *(self.words(c.form) for c in self.conditions),
        ]
        return " && ".join(f"({t})" if len(tests) > 1 else t for t in tests)

    def begin(self, source: Source, op: str, function: str) -> None:
        assert source.each is not None
        source.op, each = op, source.each
        if not bool(each.where.all()):
            raise NotLegal("some threads alone have what is combined")
        if self.apart and isinstance(each.form, Name) and each.form.variable is not None:
            source.name, source.variable = each.form.name, each.form.variable
            return
        key = ("sum", id(each.form), op)
        name = self.names.get(key)
        if name is None:
            name = self.kernel.fresh(
                {"+": "sum", "max": "greatest", "min": "least"}.get(op, "whole"), *self.taken
            )
            self.taken.append(name)
            self.names[key] = name
        source.name = name
        kind = source.kind.name
        reduction = Reduction(name, op, (), None, (), source.kind, 0)
        combine.supported(reduction)
        first = combine.nothing(reduction) if op in IDEMPOTENT else combine.identity(reduction)
        source.begun = IDENTITIES.get(op, "-INFINITY" if op == "max" else "INFINITY")
        value = self.words(each.form)
        if self.apart:
            self.pending.append(lines(f"{kind} {name} = {value};"))
            self.added += self.pending[-1:]
            return
        if op in IDENTITIES:
            update = f"{name} {op}= {value};"
        elif function:
            update = f"{name} = {function}({name}, {value});"
        else:
            sign = ">" if op == "max" else "<"
            next_ = f"{name}_next"
            update = (
                f"const {kind} {next_} = {value};\nif ({next_} {sign} {name}) {name} = {next_};"
            )
        conditions, self.conditions = self.conditions, []
        tests, self.tests = self.tests, []
        self.pending += [lines(f"{kind} {name} = {first};"), self._threads([lines(update)], [each])]
        self.conditions, self.tests = conditions, tests

    def _atomic(self, statement: Evaluate, call: Call, op: str) -> Made:
        place = self._address(call.arguments[0])
        if place is not None:
            return self._added(place, self.value(call.arguments[1]), op)
        if self.quiet or self.conditions or (self.apart and not self._parted(op, call)):
            raise NotLegal("what its threads do together is not followed", statement.line)
        there = self.same(call.arguments[0])
        self.adding = True
        several = int(self.mask.sum()) != 1
        given = self._of_several(call.arguments[1]) if several else self.same(call.arguments[1])
        self.adding = False
        made = replace(statement, span=None, expression=replace(
            call, span=None, arguments=(there, given)))  # fmt: skip
        self.added.append(made)
        self.stored(self.arrays.get(call, "?"))
        self.stores = True
        return (made,)

    def _of_several(self, expr: Expr) -> Expr:
        """What several threads add up that have all parts of a sum between them."""
        found = self.value(expr)
        if isinstance(found, Share) and found.source.op == "+":
            held = [p for p, m in zip(found.parts, self.mask, strict=True) if m]
            once = sum(p.bit_count() for p in held if p is not None) == found.source.count
            full = (1 << found.source.count) - 1
            if once and reduce(or_, (p or 0 for p in held)) == full and None not in held:
                return self.entire(replace(found, parts=(full,) * self.count)).form
        raise NotLegal("several threads update one element")

    def _parted(self, op: str, call: Call) -> bool:
        """Whether each thread may update by its own part what its block does by all of them."""
        if op not in ("min", "max"):
            return op == "+" and self._linear(call.arguments[1])
        found = self.value(call.arguments[1])
        return isinstance(found, Share) and found.source.op == op

    def _linear(self, expr: Expr) -> bool:
        """Whether the parts of a sum add up to what an expression makes of all of it."""
        kind = self.kernel.reading.types.get(expr)
        match expr:
            case Binary(op="*" | "/" as op, left=left, right=right) if kind and kind.floating:
                ways = ((left, right), (right, left))[: 1 if op == "/" else 2]
                return any(self._linear(a) and not self._linear(b) for a, b in ways)
            case Binary():
                return False
        found = self.value(expr)
        return isinstance(found, Share) and found.source.op == "+"
