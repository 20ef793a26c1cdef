"""P19, specialise: tests of borders are one test before a loop whose rounds the data decide.

A window that grows until it holds enough asks of each place whether it lies inside. How far its
counters go is known where a number ends them, so that a thread far enough from the borders needs
none of these tests: it takes the same loop without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from optiml_magic.kernels.changes import Change
from optiml_magic.kernels.editing import Node, edited, lines
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
    conjuncts,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, names, outermost
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.tree import Declare, If, Loop, Statement, Variable, expressions, walk

Interval = tuple[int, int]
_FAR = 1 << 20  # numbers beyond are no windows: ours


@primitive
def bordered(kernel: Kernel) -> Kernel:
    """The kernel with such a test before each loop that asks for borders; there must be one."""
    Effects(kernel).straightforward()  # threads of a block take the loop in two places
    swaps = dict[Node, Node | tuple[Statement, ...] | None]()
    for loop in outermost(kernel.function.body):
        tests = _Tests(kernel, loop)
        if not tests.needed:
            continue
        hints = hints_of(kernel, loop)
        lead = "\n".join(kernel.show(hint).strip() for hint in hints)
        inner = dict[Node, Node | tuple[Statement, ...] | None]()
        for branch in reversed(tests.met):
            inner[branch] = edited(branch.then, dict(inner))
        inside = " && ".join(f"{apart} >= {least}" for apart, least in tests.needed.items())
        made = (
            f"if ({inside}) {{\n{lead}\n{kernel.show(loop, inner).strip()}\n}} else {{\n"
            f"{lead}\n{kernel.show(loop).strip()}\n}}"
        )
        swaps |= dict.fromkeys(hints)
        swaps[loop] = lines(made)
    if not swaps:
        raise NotLegal("no loop asks for borders that its counters stay away from")
    return kernel.rewritten(edited(kernel.function.body, swaps))


@dataclass(eq=False)
class _Tests:
    """The branches of a loop whose tests hold away from the borders, and what says so.

    What is ``needed`` has to be that much at least.
    """

    kernel: Kernel
    loop: Loop
    known: dict[Variable, Interval] = field(default_factory=dict)
    met: list[If] = field(default_factory=list)
    needed: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        effects = Effects(self.kernel)
        self.moving = {*effects.changed(self.loop)} | {
            v for s in walk(self.loop) if isinstance(s, Declare) for v in s.variables
        }
        self.lent = effects.addressed
        self._counter(effects)
        for statement in walk(self.loop):
            self._note(statement, effects)
        for statement in walk(self.loop):
            match statement:
                case If(test=test, other=None, before=None, constant=False):
                    found = list(self._asked(test))
                    if None in found:
                        continue
                    self.met.append(statement)
                    for apart, least in (one for one in found if one is not None):
                        self.needed[apart] = max(least, self.needed.get(apart, least))

    # How far counters go.

    def _counter(self, effects: Effects) -> None:
        """What the loop itself counts by steps that nothing but a number ends."""
        if self.loop.test is None or self.loop.kind == "do":
            return
        for test in conjuncts(self.loop.test):
            match test:
                case Binary(op="<" | "<=" as op, left=Name(variable=Variable() as own),
                            right=Literal(value=int() as end)):  # fmt: skip
                    begun = self._begun(own)
                    steps = self._steps(own, effects)
                    if begun is not None and steps is not None:
                        self.known[own] = begun, end - (op == "<") + steps

    def _begun(self, own: Variable) -> int | None:
        value = own.value
        return value.value if isinstance(value, Literal) and isinstance(value.value, int) else None

    def _steps(self, own: Variable, effects: Effects) -> int | None:
        """By how much a round moves a counter at most; None where it may ever go down."""
        within = effects.inside(self.loop)
        if own in self.lent or any(
            _may_change(e, own) for e in expressions(self.kernel.function.body) if e not in within
        ):
            return None
        changes = effects.changed(self.loop).get(own, [])
        if not all(c.op == "+" and _by(c) is not None for c in changes):
            return None
        inside = effects.changed(self.loop.body).get(own, [])
        return None if any(c.within for c in inside) else sum(_by(c) or 0 for c in inside)

    def _note(self, statement: Statement, effects: Effects) -> None:
        """What a loop counts, or a local is declared as, in terms of what is known."""
        match statement:
            case Loop(
                kind="for", before=Declare(variables=(Variable(value=Expr() as first) as own,)),
                test=Binary(op="<" | "<=" as op, left=Name(variable=tested), right=end),
                update=Step(op="++", target=Name(variable=moved)), body=body,
            ) if own is tested and own is moved and own not in effects.changed(body):  # fmt: skip
                low, high = self._interval(first), self._interval(end)
                if low is not None and high is not None and own not in self.lent:
                    self.known[own] = low[0], high[1] - (op == "<")
            case Declare(variables=(Variable(value=Expr() as value) as own,)):
                found = self._interval(value)
                if found is not None and own in effects.lasting and own not in self.lent:
                    self.known[own] = found

    def _interval(self, expr: Expr) -> Interval | None:
        match expr:
            case Literal(value=int() as value) if abs(value) < _FAR:
                return value, value
            case Name(variable=Variable() as variable):
                return self.known.get(variable)
            case Unary(op="-", operand=operand):
                own = self._interval(operand)
                return None if own is None else (-own[1], -own[0])
            case Binary(op="+" | "-" as op, left=left, right=right):
                one, other = self._interval(left), self._interval(right)
                if one is None or other is None:
                    return None
                if op == "-":
                    other = -other[1], -other[0]
                return one[0] + other[0], one[1] + other[1]
        return None

    # What tests ask.

    def _asked(self, test: Expr) -> Iterator[tuple[str, int] | None]:
        """What has to be how much at least for each comparison; None for what is not followed."""
        for one in conjuncts(test):
            match one:
                case Binary(op="<" | "<=" as op, left=low, right=high):
                    yield self._apart(low, high, int(op == "<"))
                case Binary(op=">" | ">=" as op, left=high, right=low):
                    yield self._apart(low, high, int(op == ">"))
                case _:
                    yield None

    def _apart(self, low: Expr, high: Expr, least: int) -> tuple[str, int] | None:
        """What stays of ``high - low``, and what it has to be for that to be ``least``."""
        terms = [*self._terms(high, 1), *self._terms(low, -1)]
        steady = list[tuple[int, Expr]]()
        for sign, term in terms:
            own = self._interval(term)
            if own is not None:
                least -= min(sign * own[0], sign * own[1])
            elif self._stays(term):
                steady.append((sign, term))
            else:
                return None
        if not steady:
            return None
        more = " + ".join(self._shown(term) for sign, term in steady if sign > 0)
        less = "".join(f" - {self._shown(term)}" for sign, term in steady if sign < 0)
        return f"{more or '0'}{less}", least

    def _terms(self, expr: Expr, sign: int) -> Iterator[tuple[int, Expr]]:
        match expr:
            case Binary(op="+" | "-" as op, left=left, right=right):
                yield from self._terms(left, sign)
                yield from self._terms(right, sign if op == "+" else -sign)
            case Unary(op="-", operand=operand):
                yield from self._terms(operand, -sign)
            case _:
                yield sign, expr

    def _stays(self, term: Expr) -> bool:
        kind = self.kernel.reading.types.get(term)
        plain = not any(isinstance(e, Assign | Step | Call | Index) for e in every(term))
        signed = kind is not None and kind.integral and kind.signed
        return plain and signed and not names([term]) & (self.moving | self.lent)

    def _shown(self, term: Expr) -> str:
        shown = self.kernel.spelled(term)
        return shown if isinstance(term, Name | Literal) else f"({shown})"


def _may_change(expr: Expr, own: Variable) -> bool:
    match expr:
        case Assign(target=Name(variable=changed)) | Step(target=Name(variable=changed)):
            return changed is own
        case Call(arguments=arguments):
            return any(isinstance(a, Name) and a.variable is own for a in arguments)
    return False


def _by(change: Change) -> int | None:
    """By how much a change moves a counter up, where that is a number."""
    match change.value:
        case None:
            return 1
        case Literal(value=int() as value) if 0 <= value < _FAR:
            return value
    return None
