"""Statements followed through a kernel: branches, exits, and loops with their counters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from optiml_magic.kernels import types
from optiml_magic.kernels.changes import changes
from optiml_magic.kernels.combining import selection
from optiml_magic.kernels.events import Key, key_of, unasked
from optiml_magic.kernels.expressions import (
    Assign,
    Braces,
    Call,
    Expr,
    Index,
    Literal,
    Name,
    Unread,
)
from optiml_magic.kernels.expressions import every as parts_of
from optiml_magic.kernels.functions import ASSEMBLY_READS, ASSEMBLY_WRITES
from optiml_magic.kernels.loops import LoopReader
from optiml_magic.kernels.merging import State
from optiml_magic.kernels.objects import refers
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.reading import Array, Guard, Mode
from optiml_magic.kernels.symbols import (
    UNKNOWN,
    Always,
    Condition,
    Some,
    every,
)
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    Verbatim,
)
from optiml_magic.kernels.values import Alias, Local, Pointer, Value

_ONE = Polynomial.constant(1)


@dataclass
class Executor(LoopReader):
    """Runs statements."""

    def run(self, statement: Statement) -> None:
        if self.state.alive:
            self._STATEMENTS[type(statement)](self, statement)

    def block(self, statement: Block) -> None:
        for inner in statement.body:
            if not self.state.alive:
                return
            self.run(inner)

    def blank(self, statement: Statement) -> None:
        pass

    def evaluate(self, statement: Evaluate) -> None:
        self.recorder.unasked.update(unasked(statement.expression))
        match statement.expression:
            case Assign(op="=", target=Name(variable=Variable() as variable), value=value):
                with self.naming(variable, value):
                    self.value(statement.expression)
            case expression:
                self.value(expression)

    def declare(self, statement: Declare) -> None:
        for variable in statement.variables:
            self._declare(variable)

    def _declare(self, variable: Variable) -> None:
        kind = self.declared(variable)
        if variable.type.base == "auto" and variable.value is not None:
            kind = types.UNKNOWN
        if variable.type.reference and variable.value is not None:
            self.state.env[variable] = Alias(self.place(variable.value))
            return
        if variable.array or variable.storage in ("shared", "dynamic", "static"):
            self._declare_memory(variable, kind)
            return
        if self._keeps(kind, constructed=variable.opening != "="):
            given = [e for e in (variable.value, *variable.initial) if e is not None]
            given += [part for e in given if isinstance(e, Call | Braces) for part in e.parts]
            for part in given:
                self.recorder.unclear |= self.holds(self.place(part))
        if variable.value is not None:
            with self.naming(variable, variable.value):
                value = self.value(variable.value)
            made = self.convert(value, kind) if kind.kind != "unknown" else value
            if variable.type.base == "auto":
                self.deduced[variable] = made.type
        elif variable.initial:
            made = self.gathered(kind, [self.value(part) for part in variable.initial])
        else:
            form = self.operations.unknown(frozenset(), kind) if kind.integral else None
            made = Value(kind, frozenset({UNKNOWN}), form)
        if kind.kind in ("record", "unknown"):
            parts = variable.initial if variable.value is None else (variable.value,)
            self.refer(variable.type.base, parts)
        self.state.env[variable] = made
        self.recorder.give(variable, made.holds)
        if variable.value is not None:
            self.recorder.write((variable,), variable.value, variable.value, self.state.path)

    def _keeps(self, kind: types.CType, *, constructed: bool) -> bool:
        """Whether an object may keep a reference to what makes it.

        Of a type that is not seen, that is taken to be so where it is ``constructed``.
        """
        parameters = {
            parameter.name for frame in self.frames for parameter in frame.function.template
        }
        known = kind.name in parameters | {p.name for p in self.template}
        return (
            kind.kind == "record"
            and not known
            and refers(self.unit, kind.name, otherwise=constructed)
        )

    def _declare_memory(self, variable: Variable, kind: types.CType) -> None:
        """An array of this function, or a variable that its block shares."""
        forms: list[Polynomial | None] = []
        for extent in variable.extents:
            value = self.value(extent) if extent is not None else None
            known = value is not None and value.form is not None and value.type.integral
            forms.append(self.integer(value) if known and value is not None else None)
        name = self._array_name(variable)
        for part in (*variable.initial, *((variable.value,) if variable.value else ())):
            self.recorder.give(name, self.leading(self.value(part)))
        space = "shared" if variable.storage in ("shared", "dynamic") else "local"
        self.recorder.arrays[name] = Array(
            name, space, kind, tuple(forms), variable.type.const,  # type: ignore[arg-type]
            dynamic=variable.storage == "dynamic",
        )  # fmt: skip
        pointer = Value(kind.pointer, frozenset(), pointer=Pointer(name, Polynomial()),
                        holds=frozenset({name}))  # fmt: skip
        if variable.array:
            self.state.env[variable] = replace(pointer, shape=tuple(forms[1:]))
        else:
            self.state.env[variable] = Alias(self.element(
                pointer, self.number(Polynomial(), types.INT)))  # fmt: skip

    def _array_name(self, variable: Variable) -> str:
        """Its name; with its line where another array has that name."""
        owner = self.owners.setdefault(variable.name, variable)
        foreign = variable.name in self.recorder.arrays and owner is not variable
        if owner is variable and not foreign:
            return variable.name
        return f"{variable.name}@{variable.line}"

    # -- branches

    def branch(self, statement: If) -> None:
        if statement.before is not None:
            self.run(statement.before)
        chosen = selection(statement, self.meanings())
        keys: dict[Expr, Key | None] = {}
        if chosen is not None:
            for target in (chosen.target, *chosen.carried):
                plain = all(isinstance(p, Name | Index | Literal) or not p.parts
                            for p in parts_of(target))  # fmt: skip
                keys[target] = key_of(self.place(target)) if plain else None
        with self.recorder.selecting(chosen, keys):
            test = self.condition(statement.test)
            if isinstance(test, Always):
                taken = statement.then if test.value else statement.other
                if taken is not None:
                    self.run(taken)
                return
            self._both(statement, test)

    def _both(self, statement: If, test: Condition) -> None:
        before = self.state
        self.state = before.fork(test)
        self.run(statement.then)
        then = self.state
        self.state = before.fork(~test)
        if statement.other is not None:
            self.run(statement.other)
        other = self.state
        line = statement.line
        exits = not then.alive
        self.recorder.guards.append(Guard(~test if exits else test, exits, line,
                                          self.recorder.loops, statement.test))  # fmt: skip
        self.state = self._joined(before, test, then, other)

    def _joined(self, before: State, test: Condition, then: State, other: State) -> State:
        """The state where two ways meet again."""
        if not then.alive or not other.alive:
            return other if not then.alive else then
        env = other.env
        self.merge_values(test, then.env, env)
        depth = len(before.path)
        ours, theirs = then.path[depth:], other.path[depth:]
        if len(ours) == 1 and len(theirs) == 1:
            return State(env, before.path)
        either = Some((every(ours), every(theirs)))
        return State(env, (*before.path, either))

    def leave(self, statement: Leave) -> None:
        value = self.value(statement.value) if statement.value is not None else None
        if statement.kind == "return":
            if self.frames:
                result = value if value is not None else Value(types.VOID)
                self.frames[-1].returns.append((self.state.fork(), result))
            begun = self.frames[-1].rounds if self.frames else 0
            for left in self.rounds[begun:]:
                left.returned = True
        elif self.rounds and not self.recorder.inside_verbatim:
            if statement.kind == "break":
                self.rounds[-1].breaks += 1
            else:
                self.rounds[-1].continues.append(self.state.fork())
        self.state = replace(self.state, alive=False)

    def verbatim(self, statement: Verbatim) -> None:
        """Kept as it is: what is inside may happen, and what it changes is not known after."""
        self.recorder.verbatim.append(statement)
        if self._assembly(statement):
            return
        before = self.state
        self.recorder.inside_verbatim += 1
        maybe = self.untold(statement.reason, frozenset({UNKNOWN}))
        for inner in statement.inner:
            self.state = before.fork(maybe)
            self.run(inner)
        self.recorder.inside_verbatim -= 1
        self.state = before
        for variable in changes(statement.inner, self.may_change):
            self._lose(variable)
        if not statement.inner:
            self.disturb(statement.mentions)
        for mention in statement.mentions:
            if isinstance(mention, Unread) and ("bar" in mention.text or "sync" in mention.text):
                self.barrier("other", mention)
        if statement.jumps:
            unsure = self.untold("a jump", frozenset({UNKNOWN}))
            self.state = State(self.state.env, (*self.state.path, unsure))

    def _assembly(self, statement: Verbatim) -> bool:
        """Instructions whose names say what they do with the addresses they are given."""
        code = [m for m in statement.mentions if isinstance(m, Unread)]
        reads = any(ASSEMBLY_READS.search(m.text) for m in code)
        writes = any(ASSEMBLY_WRITES.search(m.text) for m in code)
        if statement.inner or not (reads or writes):
            return False
        modes: list[Mode] = []
        modes += ["load"] if reads else []
        modes += ["store"] if writes else []
        names = (m for m in statement.mentions if isinstance(m, Name))
        for variable in dict.fromkeys(m.variable for m in names if m.variable is not None):
            held = self.value(Name(None, variable.name, variable)).holds
            for mode in modes:
                self.recorder.touch(held, mode, types.UNKNOWN, self.state.path, code[0])
            self._lose(variable)
        return True

    def _lose(self, variable: Variable) -> None:
        """After this the value of a local is not known."""
        found = self.state.env.get(variable)
        if isinstance(found, Alias):
            if isinstance(found.place, Local):
                self._lose(found.place.variable)
            return
        self.written[variable] += 1
        if found is None or variable.array:
            return
        held = found.holds | self.recorder.ever(variable)
        self.state.env[variable] = self.opaque(self.declared(variable), frozenset(), held)
        self.recorder.write((variable,), None)

    def run_loop(self, statement: Loop) -> None:
        self.loop(statement)

    _STATEMENTS: ClassVar[Mapping[type[Statement], Callable[..., None]]] = {}


Executor._STATEMENTS = {  # noqa: SLF001
    Block: Executor.block,
    Blank: Executor.blank,
    Declare: Executor.declare,
    Evaluate: Executor.evaluate,
    If: Executor.branch,
    Loop: Executor.run_loop,
    Leave: Executor.leave,
    Verbatim: Executor.verbatim,
}
