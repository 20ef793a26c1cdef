"""P17 undone: rounds behind the last element, which a loop of whole tiles makes, are not made.

``for (k = 0; k < (n + 15) / 16 * 16; ++k) if (k < n) ...`` ends at ``n``. So does a loop that sums
what is loaded, where each load is ``k < n ? a[k] : 0`` and what it adds then is zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Binary, Call, Choice, Expr, Member, Unary, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in, names
from optiml_magic.kernels.primitives.naming import speller_before
from optiml_magic.kernels.primitives.zeros import adds_nothing, is_zero
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.kernels.tree import Block, Declare, If, Leave, Loop, Statement, walk

_ONE = Polynomial.constant(1)
_OTHERWISE = frozenset({"!=", "==", "||"})  # may hold again after they did not


@primitive
def whole(kernel: Kernel) -> Kernel:
    """Loops of ``k < 16 && at + k < n`` count to the number, with a branch on the rest inside."""
    effects, known = Effects(kernel), kernel.axes()
    for loop in loops_in(kernel.function.body):
        axis, test = known.get(loop), loop.test
        if axis is None or not isinstance(test, Binary) or test.op != "&&":
            continue
        if any(isinstance(s, Leave) and s.kind != "continue" for s in walk(loop.body)):
            continue
        if loop.kind != "for" or axis.start != Polynomial() or axis.step != _ONE:
            continue
        if (names([test]) - {axis.variable}) & effects.changed(loop).keys():
            continue
        for number, rest in ((test.left, test.right), (test.right, test.left)):
            if _number(axis, number, rest):
                words = kernel.show(If(None, 0, rest, loop.body, None))
                made = Loop(None, loop.line, loop.kind, loop.before, number, loop.update,
                            lines(f"{{\n{words}\n}}"))  # fmt: skip
                return kernel.rewritten(edited(kernel.function.body, {loop: made}))
    raise NotLegal("no loop asks for more than its number of rounds")


def _number(axis: Axis, test: Expr, rest: Expr) -> bool:
    """Whether a part of a loop's test compares its counter with a number, and the rest ends it.

    Where the rest fails once it fails in all rounds that follow.
    """
    plain = isinstance(test, Binary) and test.op in ("<", "<=") and names([test]) == {axis.variable}
    parts = [*axis.test.conjuncts()]
    alone = [p for p in parts if isinstance(p, Compare) and p.form.symbols == {axis.name}]
    falling = [p.form.coefficient(axis.name) if isinstance(p, Compare) and p.op == ">=" else None
               for p in parts]  # fmt: skip
    steady = all(by is not None and by.value is not None and by.value < 0 for by in falling)
    ordered = not any(
        isinstance(e, Call | Unary) or (isinstance(e, Binary) and e.op in _OTHERWISE)
        for e in every(rest)
    )
    return plain and bool(alone) and steady and ordered


@primitive
def trimmed(kernel: Kernel) -> Kernel:
    """The kernel whose loops end where nothing more is done; there must be such a loop."""
    made = _once(kernel)
    if made is None:
        raise NotLegal("no loop makes rounds that do nothing")
    while (more := _once(made)) is not None:
        made = more
    return made


def _once(kernel: Kernel) -> Kernel | None:
    effects = Effects(kernel)
    for loop, axis in kernel.axes().items():
        if axis.exact and is_simple(axis, effects) and axis.stop is not None:
            found = _Trimming(kernel, effects, loop, axis).made()
            if found is not None:
                return found
    return None


class _Trimming:
    def __init__(self, kernel: Kernel, effects: Effects, loop: Loop, axis: Axis) -> None:
        self.kernel, self.effects, self.loop, self.axis = kernel, effects, loop, axis
        self.own = axis.held

    def made(self) -> Kernel | None:
        """With an earlier end, where a branch or zeros say so."""
        swaps: dict[Node, Node | tuple[Statement, ...]] = {}
        branch = self._branch()
        end = self._end_of_branch(branch) if branch is not None else None
        if end is not None and branch is not None:
            swaps[branch] = branch.then.body if isinstance(branch.then, Block) else branch.then
        else:
            choices = [*self._choices()]
            ends = {self._end_of_loads(choice) for choice in choices}
            end = ends.pop() if len(ends) == 1 else None
            if end is None or not self._adds_nothing(choices):
                return None
            swaps |= {choice: choice.then for choice in choices}
        assert self.axis.stop is not None
        if not self._below(end, self.axis.stop):
            return None
        assert self.axis.variable is not None
        speller = speller_before(self.kernel, self.effects, self.loop)
        kind, name = self.axis.variable.type.base, self.axis.variable.name
        body = self.kernel.show(self.loop.body, swaps).strip()
        if branch is self.loop.body:
            body = self.kernel.show(edited(branch, swaps) if branch not in swaps else branch.then)
        head = f"for ({kind} {name} = 0; {name} < {speller.form(end)}; ++{name})"
        made = lines(f"{head} {body}")
        return self.kernel.rewritten(edited(self.kernel.function.body, {self.loop: made}))

    def _below(self, end: Polynomial, stop: Polynomial) -> bool:
        """Whether the loop makes all rounds below ``end``: a quotient is at most one too small."""
        symbols = self.kernel.reading.symbols
        facts = list[Condition]()
        for name in stop.symbols:
            symbol = symbols.table[name]
            by = symbol.arguments[1].value if symbol.op == "/" else None
            if by is not None and by > 0:
                least = Polynomial.symbol(name) * Polynomial.constant(by) - symbol.arguments[0]
                facts.append(Compare(">=", least + Polynomial.constant(by - 1), frozenset()))
        return Ranges(facts, symbols).nonnegative(stop - end)

    def _end(self, conditions: set[Condition]) -> Polynomial | None:
        """``n`` of the one condition ``k < n`` on a round."""
        if len(conditions) != 1:
            return None
        (only,) = conditions
        if not isinstance(only, Compare) or only.op != ">=":
            return None
        end = only.form + Polynomial.symbol(self.axis.name) + _ONE
        inside = self.kernel.reading.symbols.inside(end)
        inner = {a.name for a in self.kernel.reading.axes if a.node in set(loops_in(self.loop))}
        return None if inner & inside or not self.kernel.reading.symbols.known(end) else end

    def _branch(self) -> If | None:
        """The branch that is all that a round does."""
        body: Statement = self.loop.body
        while isinstance(body, Block) and len(body.body) == 1:
            body = body.body[0]
        plain = isinstance(body, If) and body.other is None and body.before is None
        return body if plain and isinstance(body, If) else None

    def _end_of_branch(self, branch: If) -> Polynomial | None:
        found = [g for g in self.kernel.reading.guards if g.test is branch.test]
        if len(found) != 1 or found[0].exits:
            return None
        return self._end(set(found[0].condition.conjuncts()) - self.own)

    def _choices(self) -> Iterator[Choice]:
        """What is loaded in a round, or zero."""
        for e in self.effects.inside(self.loop.body):
            if isinstance(e, Choice) and any(self._loads(e.then)):
                yield e

    def _loads(self, expr: Expr) -> Iterator[Access]:
        own = {*every(expr)}
        return (a for a in self.kernel.reading.accesses if a.own in own and a.space == "global")

    def _end_of_loads(self, choice: Choice) -> Polynomial | None:
        if any(self._loads(choice.other)) or any(self._loads(choice.test)):
            return None
        ends = {
            self._end({p for c in a.guard for p in c.conjuncts()} - self.own)
            for a in self._loads(choice.then)
        }
        return ends.pop() if len(ends) == 1 else None

    def _adds_nothing(self, choices: list[Choice]) -> bool:
        """Whether a round that loads nothing leaves all sums as they are."""
        loop, reading = self.loop, self.kernel.reading
        if any(isinstance(s, Loop | If) for s in walk(loop.body) if s is not loop.body):
            return False
        if self.effects.kept(loop.body) or any(a.mode != "load" for a in self._inside()):
            return False
        known = {r.place: r for r in reading.reductions if self.axis.name in r.axes}
        sums = [known.get(v.name) for v in self.effects.changed(loop.body)]
        zeros: set[Expr] = {c for c in choices if is_zero(c.other, set(), {}) or _nothing(c.other)}
        zeros |= {e for e in self.effects.inside(loop.body)
                  if isinstance(e, Member) and e.base in zeros}  # fmt: skip
        lets = {v: v.value for s in walk(loop.body) if isinstance(s, Declare) for v in s.variables}
        return bool(sums) and all(
            r is not None and not r.carried and adds_nothing(r, zeros, lets) for r in sums
        )  # fmt: skip

    def _inside(self) -> list[Access]:
        own = self.effects.inside(self.loop.body)
        return [a for a in self.kernel.reading.accesses if a.own in own and a.space != "local"]


def _nothing(expr: Expr) -> bool:
    """A vector of zeros."""
    made = isinstance(expr, Call) and expr.function.startswith("make_") and expr.arguments
    return bool(made) and all(is_zero(a, set(), {}) for a in expr.parts)
