"""Loops: counters, what steps with them, and the value of everything else after them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from optiml_magic.kernels.changes import Change
from optiml_magic.kernels.events import unasked
from optiml_magic.kernels.expressions import (
    Expr,
    Literal,
    Name,
    Unary,
)
from optiml_magic.kernels.expressions import every as parts_of
from optiml_magic.kernels.inductions import Induction, InductionReader, moved
from optiml_magic.kernels.merging import State
from optiml_magic.kernels.operations import tightened
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.symbols import (
    UNKNOWN,
    Always,
    Compare,
    Condition,
    Symbol,
    Untold,
    every,
)
from optiml_magic.kernels.tree import (
    Block,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
)
from optiml_magic.kernels.values import Alias, Pointer, Value

_ONE = Polynomial.constant(1)
_NOTHING = Literal(None, "", None)


@dataclass
class _Round:
    """One loop that is being read: the ways in which its rounds end early."""

    continues: list[State] = field(default_factory=list)
    breaks: int = 0
    returned: bool = False


@dataclass
class LoopReader(InductionReader):
    """Runs loops."""

    rounds: list[_Round] = field(default_factory=list)
    owners: dict[str, Variable] = field(default_factory=dict)

    def open_rounds(self) -> int:
        return len(self.rounds)

    def loop(self, statement: Loop) -> None:
        if statement.before is not None:
            self.run(statement.before)
        written, body = test_of(statement)
        if statement.kind == "do" and _never(written) and not _leaves(statement.body):
            self.run(statement.body)  # do { ... } while (0) of a macro is a block
            return
        entry = self.state
        counter = f"k{len(self.recorder.axes)}"
        self.recorder.axes.append(_UNREAD)
        rounds = self.operations.symbols.of(Symbol(counter, "counter", frozenset({counter}), low=0))
        changed = self._changed(statement)
        asked = parts_of(written) if written is not None else ()
        tested = {e.variable for e in asked if isinstance(e, Name) and e.variable is not None}
        inductions = self._inductions(statement, changed, entry, tested)
        self.recorder.stepping |= {(counter, variable) for variable in inductions}
        self.state = self._round(entry, changed, inductions, rounds)
        outer = self.recorder.loops
        self.recorder.loops = (*outer, counter)
        self.rounds.append(_Round())
        test: Condition = Always(True)
        if written is not None and statement.kind != "do":
            test = self._tested(written, counter, outer)
            self.state = self.state.fork(test)
        for inner in body:
            if self.state.alive:
                self.run(inner)
        ends = self.rounds.pop()
        self._meet(ends, entry)
        if statement.update is not None:
            self.recorder.unasked.update(unasked(statement.update))
            self.value(statement.update)
        if written is not None and statement.kind == "do":
            test = self._tested(written, counter, outer)
        self.recorder.loops = outer
        axis = self._axis(statement, counter, entry, inductions, test, ends)
        self.recorder.axes[int(counter[1:])] = axis
        self._count(axis)
        self._leave_loop(axis, entry, changed, inductions, rounds, ends)

    def _count(self, axis: Axis) -> None:
        """What is known of the counter of a loop whose rounds are a number."""
        if axis.trips is not None:
            self.operations.symbols.at_most(axis.name, max(axis.trips - 1, 0))

    def _tested(self, written: Expr, counter: str, outer: tuple[str, ...]) -> Condition:
        """The test of a round. What it loads whatever the round is, it loads before the first."""
        first = len(self.recorder.accesses)
        test = self.condition(written)
        for at in range(first, len(self.recorder.accesses)):
            access = self.recorder.accesses[at]
            if access.index is not None and counter not in self.operations.symbols.inside(
                access.index
            ):
                self.recorder.accesses[at] = replace(access, loops=outer)
        parts = [self._directed(part, counter) for part in test.conjuncts()]
        return every(tuple(parts)) if parts else test

    def _directed(self, part: Condition, counter: str) -> Condition:
        """``k != n`` of a counter that steps by one as ``k < n``: it does not step over n.

        So of a pointer that steps by an element, ``p != end``, where all is in bytes.
        """
        if not isinstance(part, Compare) or part.op != "!=":
            return part
        slope = part.form.coefficient(counter)
        if slope is None or not slope.value:
            return part
        whole = part.form.divided(slope.value)
        if whole is None:
            return part
        form = -whole
        return Compare(">=", tightened(form - _ONE), part.roots)

    def _meet(self, ends: _Round, entry: State) -> None:
        """The end of a round: where its body ends, and where it is continued from."""
        states = [*ends.continues, *([self.state] if self.state.alive else [])]
        if not states:
            self.state = entry.fork()
            return
        last = states[-1]
        env = dict(last.env)
        for other in states[:-1]:
            test = every(other.path[len(entry.path) :])
            self.merge_values(test, other.env, env)
        self.state = State(env, entry.path)

    def _axis(
        self, statement: Loop, counter: str, entry: State,
        inductions: dict[Variable, Induction], test: Condition, ends: _Round,
    ) -> Axis:  # fmt: skip
        parts = list(test.conjuncts())
        driving, start, step, stop = None, None, None, None
        scaled = False
        tested = {e.variable for e in parts_of(statement.test or _NOTHING) if isinstance(e, Name)}
        inductions = dict(sorted(inductions.items(), key=lambda found: found[0] not in tested))
        for part in parts:
            found = self._bound(part, counter, inductions, last=statement.kind == "do")
            if found is not None:
                driving, start, step, stop = found
                scaled = inductions[driving].step is None
                break
        reason = ""
        if ends.returned:
            reason = "the kernel may be left in it"
        elif any(isinstance(part, Untold) for part in parts) or len(parts) > 1:
            reason = "its test has more in it than a bound" if stop is not None else (
                "its test is not a comparison of whole numbers that are followed")  # fmt: skip
        elif stop is None:
            reason = "its bound is not followed" if parts else "it has no test"
        broken = bool(ends.breaks) and not reason
        if ends.breaks:
            reason = "it is left early"
        return Axis(
            name=counter, node=statement, line=statement.line, variable=driving, start=start,
            step=step, stop=stop, test=test, exact=not reason, reason=reason, guard=entry.path,
            scaled=scaled, broken=broken,
        )  # fmt: skip

    def _bound(
        self, part: Condition, counter: str, inductions: dict[Variable, Induction], *, last: bool
    ) -> tuple[Variable, Polynomial, Polynomial, Polynomial] | None:
        """The variable that a comparison bounds: its start, its step, and where it stops."""
        if not isinstance(part, Compare) or part.op == "==":
            return None
        slope = part.form.coefficient(counter)
        for variable, induction in inductions.items():
            step = induction.step
            if step is None:
                found = self._power_bound(part, counter, induction)
                if found is not None:
                    return found
                continue
            if slope is None or not step.terms:
                continue
            start_form = self._start(induction)
            if start_form is None:
                continue
            unit = step
            if induction.start.type.depth:
                stride = induction.start.type.stride
                unit = step.divided(stride) if stride else None  # type: ignore[assignment]
                start_form = start_form.divided(stride) if stride else None
                if unit is None or start_form is None:
                    continue
            at_start = part.form.without([counter])
            if last:  # tested at the end of a round, on the next value
                at_start = at_start - slope
            if slope == -unit:
                return variable, start_form, unit, at_start + start_form + _ONE
            if slope.value == -1 and part.op == ">=":
                return variable, start_form, unit, start_form + (at_start + _ONE) * unit
            if slope == unit:
                return variable, start_form, unit, start_form - at_start - _ONE
        return None

    def _power_bound(
        self, part: Compare, counter: str, induction: Induction
    ) -> tuple[Variable, Polynomial, Polynomial, Polynomial] | None:
        """The same of one that is multiplied or divided, whose step is the factor."""
        start, form = self.integer(induction.start), part.form
        for name in form.symbols:
            symbol = self.operations.symbols[name]
            sign = form.coefficient(name)
            if not symbol.op.startswith("power") or symbol.arguments[0] != start or sign is None:
                continue
            rest = form.without([name])
            if counter in symbol.arguments[2].symbols and sign.value in (1, -1):
                stop = rest + _ONE if sign.value < 0 else -rest - _ONE
                if part.op == "!=":  # of one that is divided until nothing is left
                    if rest.terms or symbol.op != "power/":
                        continue
                    stop = Polynomial()
                return induction.variable, start, symbol.arguments[1], stop
        return None

    def _leave_loop(
        self, axis: Axis, entry: State, changed: dict[Variable, list[Change]],
        inductions: dict[Variable, Induction], rounds: Polynomial, ends: _Round,
    ) -> None:  # fmt: skip
        """The state after a loop."""
        after = entry.fork()
        followed = not ends.breaks and not ends.returned and not _untold(axis.test)
        for variable in changed:
            before = entry.env[variable]
            if isinstance(before, Alias) or variable.array:
                continue
            induction = inductions.get(variable)
            if induction is None or induction.step is None or not followed:
                after.env[variable] = self._unfollowed(variable, before)
            else:
                after.env[variable] = self._final(axis, induction, rounds)
        if ends.returned:
            left = self.untold("the kernel was not left before", frozenset({UNKNOWN}))
            after.path = (*after.path, left)
        self.state = after

    def _final(self, axis: Axis, induction: Induction, rounds: Polynomial) -> Value:
        """What a stepping local holds after the last round."""
        if axis.first:
            rounds = rounds + _ONE
        value = moved(induction, rounds)
        assert induction.step is not None
        form = value.pointer.offset if value.pointer is not None else value.form
        if form is None:
            return value
        trips = self._rounds(axis)
        if trips is not None:
            begin = self._start(induction)
            assert begin is not None
            end = begin + induction.step * trips
        else:
            symbols = self.operations.symbols
            depends = (symbols.depends(form) | axis.test.depends) - {axis.name}
            up = self.operations.nonnegative(induction.step, axis.guard)
            start = self._start(induction)
            low = 0 if up and start is not None and self.operations.nonnegative(
                start, axis.guard) else None  # fmt: skip
            end = symbols.of(
                Symbol(f"final({form} while {axis.test})", "final", depends, axis.name, (form,),
                       axis.test, low=low)
            )  # fmt: skip
        if value.pointer is not None:
            return replace(value, pointer=Pointer(value.pointer.array, end))
        return self.number(end, value.type)

    def _rounds(self, axis: Axis) -> Polynomial | None:
        """How many rounds a loop makes, where sizes say it and it is certain to be none or more."""
        if axis.trips is not None:
            return Polynomial.constant(axis.trips)
        one = axis.step == _ONE and not axis.scaled and axis.exact and not axis.first
        if not one or axis.start is None or axis.stop is None:
            return None
        rounds = axis.stop - axis.start
        return rounds if self.operations.nonnegative(rounds, axis.guard) else None


def _never(test: Expr | None) -> bool:
    return isinstance(test, Literal) and test.value == 0


def _leaves(body: Statement) -> bool:
    """Whether a break or a continue in a body is meant for the loop around it."""
    stack = [body]
    while stack:
        statement = stack.pop()
        if isinstance(statement, Leave) and statement.kind != "return":
            return True
        if not isinstance(statement, Loop):
            stack.extend(statement.statements)
    return False


def _untold(test: Condition) -> bool:
    return any(not isinstance(part, Compare) for part in test.conjuncts())


def test_of(statement: Loop) -> tuple[Expr | None, tuple[Statement, ...]]:
    """The test of a loop and its body; ``while (true) { if (c) break; ... }`` tests ``!c``."""
    body = statement.body.body if isinstance(statement.body, Block) else (statement.body,)
    endless = statement.test is None or (
        isinstance(statement.test, Literal) and bool(statement.test.value)
    )
    if statement.kind != "do" and endless and body and isinstance(body[0], If):
        first = body[0]
        inside = first.then.statements if isinstance(first.then, Block) else (first.then,)
        leaves = len(inside) == 1 and isinstance(inside[0], Leave) and inside[0].kind == "break"
        if leaves and first.other is None and first.before is None:
            return Unary(None, "!", first.test), body[1:]
    return statement.test, body


_UNREAD = Axis("", Loop(None, 0, "for", None, None, None, Block(None, 0, ())), 0, None, None, None,
               None, Always(True), False, "not read yet", ())  # fmt: skip
