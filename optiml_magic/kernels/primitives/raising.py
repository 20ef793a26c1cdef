"""What statements are for all threads of a block at once, and for one thread that does it all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

import numpy as np

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
    Literal,
    Name,
    Step,
    builtin,
    every,
)
from optiml_magic.kernels.functions import ATOMICS, BLOCK_BARRIERS, LANES, WARP_BARRIERS
from optiml_magic.kernels.functions import bare as bare_name
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.called_types import called_types
from optiml_magic.kernels.primitives.effects import declared_in
from optiml_magic.kernels.primitives.halving import flat
from optiml_magic.kernels.primitives.places import reached
from optiml_magic.kernels.primitives.roles import at_line
from optiml_magic.kernels.primitives.shares import (
    Each,
    Kept,
    Known,
    Local,
    Made,
    Same,
    Share,
    Shared,
    Value,
    declared,
    number,
    put,
)
from optiml_magic.kernels.primitives.unshared import Unshared
from optiml_magic.kernels.swapping import swapping
from optiml_magic.kernels.tree import (
    Blank,
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

#: Parts of an expression that is still followed; a choice in a loop may double it each round.
_LONGEST = 1 << 14


class Raising(Unshared):
    """Goes through the statements of a kernel, and says what is left of them for one thread."""

    def body(self) -> Block:
        made = self._list(self.kernel.function.body.body)
        swaps: dict[Node, Node | Made | None] = {
            home: tuple(lines(words) for words in self.scalars.get(home, ()))
            for home in self.homes.values()
        }
        return edited(Block(None, 0, made), swaps)

    def _list(self, statements: Iterable[Statement]) -> Made:
        made: list[Statement] = []
        for statement in statements:
            with at_line(statement.line):
                own = self._step(statement)
            if not self.quiet:
                made += self.pending
                self.pending.clear()
            made += own
        return tuple(made)

    def _step(self, statement: Statement) -> Made:
        match statement:
            case If() | Loop() if self._untouched(statement):
                return (statement,)
            case Blank():
                return () if self.quiet else (statement,)
            case Block(body=body):
                return self._scope(self._list(body), body)
            case Declare():
                return self._declare(statement)
            case Evaluate(expression=Assign(value=Assign() as inner) as assign):  # a = b = c
                first = replace(statement, span=None, expression=inner)
                again = replace(assign, span=None, value=inner.target)
                return (*self._step(first), *self._step(replace(first, expression=again)))
            case Evaluate(expression=Assign() as assign):
                return self._assign(statement, assign.target, assign.op, assign.value)
            case Evaluate(expression=Step(op=op, target=target)):
                return self._assign(statement, target, f"{op[0]}=", Literal(None, "1", 1))
            case Evaluate(expression=Call() as call):
                return self._called(statement, call)
            case If(before=None):
                return self._if(statement)
            case Loop():
                return self._loop(statement)
            case Leave(kind="return", value=None) if not self.quiet and self.mask is self.all:
                return (statement,)
        raise NotLegal("what its threads do together is not followed", statement.line)

    def _scope(self, made: Made, body: Iterable[Statement]) -> Made:
        self._left(body)
        everywhere = [v.name for s in walk(self.kernel.function.body) for v in declared(s)]
        own = {v.name for s in made for v in declared(s)}
        return (Block(None, 0, made),) if any(everywhere.count(n) > 1 for n in own) else made

    def _left(self, body: Iterable[Statement]) -> None:
        """The locals of a body are gone."""
        for statement in body:
            for variable in statement.variables if isinstance(statement, Declare) else ():
                self.changed(variable)
                self.env.pop(variable, None)

    def _declare(self, statement: Declare) -> Made:
        left: list[Variable] = []
        for variable in statement.variables:
            if variable in self.rows:
                return (self.row(variable),)
            if variable.storage in ("shared", "dynamic"):
                home = self.homes[variable] = Blank(None, statement.line)
                self.cells.pop(variable, None)
                if not self.quiet:
                    return (home,) if len(statement.variables) == 1 else self._homes(statement)
                return ()
            if variable.array or variable.type.reference or variable.initial:
                raise NotLegal(f"`{variable.name}` is not followed", statement.line)
            if variable.value is None:
                nothing = np.zeros(self.count, bool)
                self.env[variable] = Same(Name(None, variable.name, variable), nothing)
                left.append(variable)
                continue
            shown = self._given(variable, self.value(variable.value))
            if shown is not None or (variable in self.kept and not self.quiet):
                left.append(replace(variable, value=shown))
        if self.quiet or not left:
            return ()
        if len(left) == len(statement.variables) and all(
            a is b or a.value is b.value for a, b in zip(left, statement.variables, strict=True)
        ):
            return (statement,)
        words = f"{statement.words.rstrip()} "
        return (replace(statement, span=None, words=words, variables=tuple(left)),)

    def _homes(self, statement: Declare) -> Made:
        self.homes |= {v: Blank(None, statement.line) for v in statement.variables}
        return tuple(self.homes[v] for v in statement.variables)

    def _given(self, variable: Variable, value: Value) -> Expr | None:
        """A local gets a value as it is declared; what the program declares it with, if it does."""
        name = Name(None, variable.name, variable)
        value = value if self.quiet else self.entire(value)
        if isinstance(value, Share | Shared):
            self.env[variable] = self._typed(variable, value)
            return None
        if self.conditions and isinstance(value, Same) and not value.key:
            value = self._each(value)
        if self.apart:  # it stays what it is, whatever becomes of what it was loaded from
            self.env[variable] = replace(value, form=name, loads=frozenset())
            only = value.only(self.mask) if isinstance(value, Known) else None
            if variable in self.kept and only is not None:
                self.env[variable] = Same(name, value.where, key=str(only))
            return value.form
        if isinstance(value, Known) and variable not in self.kept:
            self.env[variable] = self._wide(variable, value)
            return None
        if isinstance(value, Known) and value.only(self.mask) is None:
            value = self._each(value)
        if isinstance(value, Each):
            if self.conditions or self.tests or self.quiet:  # what it loads, others may not load
                if not self._alike(variable, value):
                    value = replace(
                        value, form=self._cast(variable, value.form), kind=self.kind(variable)
                    )
                self.env[variable] = value
                return None
            const, stars = variable.type.const, "*" * variable.type.depth
            words = f"{'const ' if const else ''}{variable.type.base}{stars}"
            own = Local(words, self.own_name(variable, value.form), value.form)
            name = replace(name, name=own.name)
            if variable.type.base == "auto":
                raise NotLegal(f"`{variable.name}` is not followed", variable.line)
            self.env[variable] = replace(
                value, form=name, locals=(*value.locals, own), kind=self.kind(variable)
            )
            return None
        if self.quiet:
            self.env[variable] = self._silent(variable, value)
            return None
        key = value.key if isinstance(value, Same) else str(value.only(self.mask))  # type: ignore[attr-defined]
        self.env[variable] = Same(name, self.mask, key=key)
        return value.form

    def _silent(self, variable: Variable, value: Value) -> Value:
        """What a local has that the program does not keep."""
        if isinstance(value, Known) and value.only(self.mask) is not None:
            return Same(value.form, value.where, key=str(value.only(self.mask)))
        if not isinstance(value, Same):
            raise NotLegal(f"`{variable.name}` is not followed")
        return value

    def _wide(self, variable: Variable, value: Known) -> Known:
        kind = self.kind(variable)
        if kind.integral and not kind.signed and kind.size == 4:
            value = replace(value, numbers=value.numbers & 0xFFFFFFFF)
        elif kind.integral and bool((abs(value.numbers) >> 31).any()):
            raise NotLegal("a number is beyond what is followed", variable.line)
        fits = kind.integral and ((kind.size or 0) >= 4 or set(value.numbers) <= {*range(128)})
        if variable.type.base != "auto" and not fits:
            raise Kept(variable)
        return value

    def _typed(self, variable: Variable, value: Value) -> Value:
        """A value that a local of its own type is given."""
        named = variable.type.base not in {"auto", *self.generic}
        if named and isinstance(value, Share) and self.kind(variable) != value.source.kind:
            raise NotLegal("what it combines is rounded on the way", variable.line)
        return value

    def _assign(self, statement: Statement, target: Expr, op: str, given: Expr) -> Made:
        place = (
            self.place(target)
            if not isinstance(target, Name)
            or (target.variable is not None and target.variable.storage == "shared")
            else None
        )
        whole = given if op == "=" else Binary(None, op[:-1], target, given)
        if place is not None:
            return self._into(place, self.value(whole))
        if isinstance(target, Name):
            if target.variable is None or target.variable.storage not in ("local", "parameter"):
                raise NotLegal("what its threads do together is not followed", statement.line)
            return self._local(statement, target.variable, op, given, self.value(whole))
        return self._global(statement, target, op, given)

    def _local(
        self, statement: Statement, variable: Variable, op: str, given: Expr, value: Value
    ) -> Made:
        old = self.env.get(variable)
        if isinstance(value, Same | Each) and any(islice(every(value.form), _LONGEST, None)):
            raise NotLegal(f"what `{variable.name}` becomes is too long to follow", statement.line)
        own = isinstance(value, Share) and value.source.variable is variable
        value = value if self.quiet else self.entire(value)
        if own and isinstance(value, Same):
            self.env[variable] = replace(value, where=self.mask)
            return ()
        if isinstance(value, Share | Shared):
            value = self._typed(variable, value)
            self.env[variable] = self._over(old, value)
            return ()
        if isinstance(value, Same) and self.conditions:
            value = self._each(value)
        if self.apart and not self.quiet:
            name = Name(None, variable.name, variable)
            value = replace(value, kind=self.kind(variable)) if isinstance(value, Each) else value
            self.env[variable] = replace(value, form=name, loads=frozenset())
            self.changed(variable)
            return (put(name, value.form),) if op in ("=", "*=", "/=") else (statement,)
        if isinstance(value, Known) and variable not in self.kept:
            if isinstance(old, Same) and bool(old.where.any()) and not self.quiet:
                raise Kept(variable)
            self.env[variable] = self._over(old, self._wide(variable, value))
            return ()
        if isinstance(value, Each):
            if not self._alike(variable, value):
                value = replace(
                    value, form=self._cast(variable, value.form), kind=self.kind(variable)
                )
            self.env[variable] = self._over(old, value)
            return ()
        if isinstance(value, Known) and value.only(self.mask) is None:
            raise NotLegal(f"`{variable.name}` differs from thread to thread", statement.line)
        if self.quiet:
            self.env[variable] = self._over(old, self._silent(variable, value))
            return ()
        lent = isinstance(old, Share) and old.source.variable is not variable
        lent |= isinstance(old, Each)
        if isinstance(old, Known) or (lent and variable.value and variable not in self.kept):
            raise Kept(variable)
        saved = self._saved(variable)
        self.changed(variable)
        key = value.key if isinstance(value, Same) else str(value.only(self.mask))  # type: ignore[attr-defined]
        name = Name(None, variable.name, variable)
        self.env[variable] = Same(name, self.mask, key=key)
        form = value.form
        if op != "=" and isinstance(statement, Evaluate) and isinstance(old, Same):
            again = Assign(None, op, name, self.same(given))
            return (*saved, Evaluate(None, statement.line, again))
        return (*saved, put(name, form))

    def _saved(self, variable: Variable) -> Made:
        """What a local has combined, in another one, before it gets a value anew."""
        held = (v for k, v in [*self.env.items(), *self.cells.items()] if k is not variable)
        found = {v.source: None for v in held if isinstance(v, Share) and bool(v.where.any())}
        made: list[Statement] = []
        for source in found:
            if source.variable is variable:
                source.name = self.kernel.fresh(variable.name, *self.taken)
                self.taken.append(source.name)
                made.append(lines(f"{source.kind.name} {source.name} = {variable.name};"))
                source.variable = None
                self.sources = {k: s for k, s in self.sources.items() if s is not source}
        return tuple(made)

    def _over(self, old: Value | None, new: Value) -> Value:
        """A value for the threads that are there, what others had for these."""
        if bool(self.mask.all()):
            return new
        if old is None or not bool((old.where & ~self.mask).any()):
            return replace(new, where=new.where & self.mask)
        if isinstance(old, Shared) or isinstance(new, Shared):
            raise NotLegal("where a pointer leads differs from thread to thread")
        return self.either(self.mask, self._test(), new, old)

    def _called(self, statement: Evaluate, call: Call) -> Made:
        name = bare_name(call.function)
        if name in BLOCK_BARRIERS | WARP_BARRIERS and (not call.arguments or name in WARP_BARRIERS):
            if self.conditions or (
                name in BLOCK_BARRIERS and not bool(self.mask.all()) and self.left is None
            ):
                raise NotLegal("its threads wait where some are not", statement.line)
            return ()
        found = self.kernel.unit.called(call.function, len(call.arguments))
        repeated = swapping(found[0]) if len(found) == 1 else None
        op = repeated or (ATOMICS.get(name) if not found else None)
        if op is not None and len(call.arguments) == 2 and call.receiver is None:
            return self._atomic(statement, call, op)
        if len(found) == 1 and self.together(found[0], call):
            self.inside(found[0], call)
            return ()
        raise NotLegal("what its threads do together is not followed", statement.line)

    def together(self, function: Function, call: Call) -> bool:
        if any(self._address(a) is not None for a in call.arguments):
            return True
        for one in (function, *reached(self.kernel.unit, function)):
            for statement in walk(one.body):
                if isinstance(statement, Declare) and any(
                    v.storage in ("shared", "dynamic") for v in statement.variables
                ):
                    return True
            for e in expressions(one.body):
                if builtin(e) or (
                    isinstance(e, Call)
                    and (
                        LANES.fullmatch(bare_name(e.function))
                        or bare_name(e.function) in BLOCK_BARRIERS
                    )
                ):
                    return True
        return False

    def inside(self, function: Function, call: Call) -> Value:
        """What a function returns to all threads, which leaves nothing in the program."""
        given = [self._address(a) or self.value(a) for a in call.arguments]
        old = self.env
        self.env = {**old}
        hidden, types = {**self.constants}, {**self.types}
        for generic_, words in zip(function.template, call.template, strict=False):
            number_ = self.constants.get(words, int(words) if words.isdigit() else None)
            self.constants.pop(generic_.name, None)
            if number_ is not None and not generic_.is_type:
                self.constants[generic_.name] = number_
        told = called_types(function, call, given, self.types, self.of_kind)
        generic, self.generic = self.generic, {p.name for p in function.template if p.is_type}
        self.generic -= told.keys()
        self.types = {**self.types, **told}
        for parameter, argument in zip(function.parameters, given, strict=True):
            if parameter.type.reference:
                raise NotLegal(f"what `{function.name}` does is not looked into", function.line)
            value = self._typed(parameter, argument)
            self.env[parameter] = self.as_type(value, parameter.type)
        *body, last = flat(function.body) or [Blank(None, 0)]
        self.quiet += 1
        if not isinstance(last, Leave):
            body.append(last)
        if self._list(body):
            raise NotLegal(f"what `{function.name}` does is not looked into", function.line)
        result: Value = Same(number(0), self.all)
        if isinstance(last, Leave) and last.value is not None:
            result = self.as_type(self.value(last.value), function.result)
        self.quiet -= 1
        self.env, self.constants, self.generic, self.types = old, hidden, generic, types
        for variable in declared_in(function.body):  # another call may give it another type
            self.kinds.pop(variable, None)
        return result
