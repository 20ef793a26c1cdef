"""What steps from round to round of a loop, and by how much."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from optiml_magic.kernels import groups
from optiml_magic.kernels.calls import CallEvaluator
from optiml_magic.kernels.changes import Change, changes, skips
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
    Index,
    Literal,
    Name,
    Step,
    Unary,
    Unread,
)
from optiml_magic.kernels.expressions import every as parts_of
from optiml_magic.kernels.functions import bare, pure
from optiml_magic.kernels.merging import State
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.symbols import (
    UNKNOWN,
)
from optiml_magic.kernels.tree import (
    Declare,
    Evaluate,
    Function,
    Loop,
    Statement,
    Variable,
    Verbatim,
    expressions,
    walk,
)
from optiml_magic.kernels.types import INT, CType
from optiml_magic.kernels.values import Alias, Local, Pointer, Value

_ONE = Polynomial.constant(1)
_POWERS = {"*": "*", "<<": "*", "/": "/", ">>": "/"}


@dataclass(frozen=True)
class Induction:
    """A local whose value in round ``k`` is known: what it begins with, and what a round adds."""

    variable: Variable
    start: Value
    step: Polynomial | None  # in bytes for a pointer; None where it is multiplied or divided


@dataclass
class InductionReader(CallEvaluator):
    """Finds the locals of a loop whose values follow from the round."""

    def _changed(self, statement: Loop) -> dict[Variable, list[Change]]:
        """The locals that the rounds change, references to locals followed."""
        before = (statement.test,) if statement.test is not None else ()
        after = (statement.update,) if statement.update is not None else ()
        found: dict[Variable, list[Change]] = {}
        bodies = (statement.body, *self._called_lambdas(statement))
        own = changes(bodies, self.may_change, before, after)
        for variable, its_changes in own.items():
            target: Variable | None = variable
            value = self.state.env.get(variable)
            for _ in range(8):
                if not isinstance(value, Alias):
                    break
                target = value.place.variable if isinstance(value.place, Local) else None
                value = self.state.env.get(target) if target is not None else None
            if target is not None and target in self.state.env:
                found.setdefault(target, []).extend(its_changes)
        for variable in self.recorder.escaped & self.state.env.keys():  # through a pointer
            unseen = Change(variable, "?", None, always=False, early=True)
            found.setdefault(variable, []).append(unseen)
        return found

    def _called_lambdas(self, statement: Statement) -> tuple[Statement, ...]:
        """The bodies of the lambdas that a loop mentions, each once, as it may not call them."""
        found: dict[Function, Statement] = {}
        fresh = [statement]
        while fresh:
            for part in expressions(fresh.pop()):
                value = self.state.env.get(part.variable) if (
                    isinstance(part, Name) and part.variable is not None) else None  # fmt: skip
                made = value.closure.made if isinstance(value, Value) and value.closure else None
                if made is not None and made.function not in found:
                    body = made.function.body
                    unsure = Verbatim(body.span, body.line, "a lambda", inner=(body,))
                    found[made.function] = unsure
                    fresh.append(body)
        return tuple(found.values())

    def _inductions(
        self, statement: Loop, changed: dict[Variable, list[Change]], entry: State,
        tested: AbstractSet[Variable],
    ) -> dict[Variable, Induction]:  # fmt: skip
        """Those of a loop; one that its test asks for ends it, so that it keeps its type."""
        found: dict[Variable, Induction] = {}
        skipping = skips(statement.body)
        own = {v for s in walk(statement) if isinstance(s, Declare) for v in s.variables}
        moving = changed.keys() | own
        for variable, its_changes in changed.items():
            start = entry.env.get(variable)
            if not isinstance(start, Value) or not (start.type.integral or start.type.depth):
                continue
            if variable not in tested and _comes_round(start.type):
                continue
            regular = all(c.always and not (skipping and c.early) for c in its_changes)
            if not regular or any(not self._steady(c.value, moving) for c in its_changes):
                continue
            if all(c.op in ("+", "-") for c in its_changes):
                step = self._step(start, its_changes, moving, statement)
                if step is not None:
                    found[variable] = Induction(variable, start, step)
            elif (
                len(its_changes) == 1 and its_changes[0].op in _POWERS and start.type.integral
                and not its_changes[0].within
            ):  # fmt: skip
                found[variable] = Induction(variable, start, None)
        return found

    def _steady(self, value: Expr | None, moving: AbstractSet[Variable]) -> bool:
        """Whether an expression has one value in all rounds, and does nothing.

        What is declared in the loop may have another one in each, as what is changed there.
        """
        if value is None:
            return True
        for part in parts_of(value):
            if isinstance(part, Name) and part.variable in moving:
                return False
            if isinstance(part, Index | Assign | Step | Unread) or (
                isinstance(part, Unary) and part.op in "*&"
            ):
                return False
            asks = isinstance(part, Call) and part.receiver and part.function in groups.ASKING
            if isinstance(part, Call) and not asks and not pure(bare(part.function)):
                return False
        return True

    def _step(
        self, start: Value, its_changes: list[Change], moving: AbstractSet[Variable], around: Loop
    ) -> Polynomial | None:  # fmt: skip
        """What a round adds: of a pointer in bytes."""
        total = Polynomial()
        for change in its_changes:
            by = _ONE if change.value is None else self._quietly(change.value)
            for loop in change.within:
                trips = self._trips(loop, moving, around)
                if by is None or trips is None:
                    return None
                by = by * trips
            if by is None:
                return None
            total = total + by if change.op == "+" else total - by
        if start.type.depth:
            stride = self.stride(start.type)
            return total * stride if stride is not None else None
        return total

    def _trips(self, loop: Loop, moving: AbstractSet[Variable], around: Loop) -> Polynomial | None:
        """How many rounds a loop within makes in each of those around it, where sizes say it.

        No fewer than none: so it is where the loops around make no more rounds than it does.
        """
        length = self._length(loop, moving)
        path = self.state.path
        if length is None or self.operations.nonnegative(length, path):
            return length
        if length.value is not None:
            return Polynomial()
        outer = self._length(around, moving) if around.kind == "for" else None
        if outer is None or not self.operations.nonnegative(length - outer, path):
            return None
        return length

    def _length(self, loop: Loop, moving: AbstractSet[Variable]) -> Polynomial | None:
        """The rounds from where a loop begins to where it ends, below 0 where it has none."""
        match loop.before:
            case Declare(variables=(Variable(value=Expr() as first) as counter,)):
                pass
            case Evaluate(expression=Assign(op="=", target=Name(variable=Variable() as counter),
                                            value=first)):  # fmt: skip
                pass
            case _:
                return None
        step = _stepped(loop.update, counter)
        match loop.test:
            case Binary(op="<" | "<=" | ">" | ">=" as op, left=Name(variable=own), right=last):
                pass
            case _:
                return None
        if own is not counter or not step or (step > 0) != (op[0] == "<"):
            return None
        if counter in changes((loop.body,), self.may_change):
            return None
        if not self._steady(first, moving) or not self._steady(last, moving):
            return None
        begin, end = self._quietly(first), self._quietly(last)
        if begin is None or end is None:
            return None
        far = (end - begin) * Polynomial.constant(1 if step > 0 else -1)
        far = far + Polynomial.constant(len(op) - 1)
        if abs(step) == 1:
            return far
        return Polynomial.constant(-(-far.value // abs(step))) if far.value is not None else None

    def _quietly(self, expression: Expr) -> Polynomial | None:
        """The form of an expression that does nothing, without a note of it."""
        uses = len(self.recorder.uses)
        value = self.value(expression)
        del self.recorder.uses[uses:]
        if value.form is None or not value.type.integral:
            return None
        return self.operations.settled(value.form, value.type, self.state.path)

    def _round(
        self, entry: State, changed: dict[Variable, list[Change]],
        inductions: dict[Variable, Induction], rounds: Polynomial,
    ) -> State:  # fmt: skip
        """The state at the beginning of a round."""
        state = entry.fork()
        for variable in changed:
            before = entry.env[variable]
            if isinstance(before, Alias) or variable.array:
                continue
            induction = inductions.get(variable)
            if induction is None:
                state.env[variable] = self._unfollowed(variable, before)
            elif induction.step is None:
                state.env[variable] = self._power(induction, changed[variable][0], rounds)
            else:
                state.env[variable] = moved(induction, rounds)
        return state

    def _unfollowed(self, variable: Variable, before: Value) -> Value:
        kind = before.type if before.type.kind != "unknown" else self.declared(variable)
        return self.opaque(kind, frozenset(), before.holds | self.recorder.ever(variable))

    def _power(self, induction: Induction, change: Change, rounds: Polynomial) -> Value:
        """A local that each round multiplies or divides by one number."""
        start = self.integer(induction.start)
        factor = self._quietly(change.value) if change.value is not None else None
        if factor is None or factor.value is None or factor.value < (change.op in "/*"):
            return self._unfollowed(induction.variable, induction.start)
        if change.op in ("<<", ">>"):
            factor = Polynomial.constant(1 << min(factor.value or 0, 62))
        op = f"power{_POWERS[change.op]}"
        low = 0 if self.operations.nonnegative(start, self.state.path) else None
        if change.op == ">>" and low is None:
            return self._unfollowed(induction.variable, induction.start)
        high = start.value if op == "power/" and start.value is not None else None
        form = self.operations.operation(op, (start, factor, rounds), low, high)
        return self.number(form, induction.start.type)

    def _start(self, induction: Induction) -> Polynomial | None:
        if induction.start.pointer is not None:
            return induction.start.pointer.offset
        return induction.start.form


def _comes_round(kind: CType) -> bool:
    """Whether a number of this type may have begun anew after a few hundred rounds."""
    return kind.integral and (kind.size or 0) < (INT.size or 0)


def _stepped(update: Expr | None, counter: Variable) -> int:
    """How far an update of its head moves a counter, 0 where that is not a number."""
    match update:
        case Step(op=op, target=Name(variable=own)) if own is counter:
            return 1 if op == "++" else -1
        case Assign(op="+=" | "-=" as op, target=Name(variable=own), value=Literal(value=int(by))):
            return (by if op == "+=" else -by) if own is counter else 0
    return 0


def moved(induction: Induction, rounds: Polynomial) -> Value:
    """A stepping local at the beginning of a round."""
    start, step = induction.start, induction.step
    assert step is not None
    by = step * rounds
    moves = frozenset(name for name in by.symbols)
    if start.pointer is not None and start.pointer.offset is not None:
        pointer = Pointer(start.pointer.array, start.pointer.offset + by)
        return replace(start, pointer=pointer, depends=start.depends | moves)
    if start.form is not None and not start.type.depth:
        return replace(start, form=start.form + by, depends=start.depends | moves, truth=None)
    return replace(start, form=None, truth=None, depends=start.depends | {UNKNOWN})
