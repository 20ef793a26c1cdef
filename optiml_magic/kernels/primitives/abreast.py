"""P7, abreast: a tuned number of rounds of a loop is under way at once, also of short ones.

A compiler that unrolls a loop asks before each few rounds whether all of them are left, and makes
those that remain one by one: a lane with three rounds waits for memory three times. Here a round
that is beyond the end loads what the first of its companions does, which is certainly there, and is
not counted: it has locals of its own as its companion has them, and leaves all others alone. So
nothing stands between the loads, and each sum has the order that it had.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Binary, Expr, Name, Step
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.tree import Declare, Evaluate, Loop, Statement, Variable, body_of
from optiml_magic.source.directives import TuneDirective

COUNTS = (1, 2, 4, 8)


@primitive
def abreast(kernel: Kernel, at: int, count: int) -> Kernel:
    """The kernel whose loop with this number takes ``count`` rounds at once, a tuned number."""
    loop = loops_in(kernel.function.body)[at]
    effects = Effects(kernel)
    check_abreast(kernel, loop, effects)
    made = _Abreast(kernel, loop, effects)
    tune = TuneDirective(made.rounds, COUNTS, count)
    body = edited(kernel.function.body, {loop: (lines(made.text()),)})
    return kernel.rewritten(body, directives=[tune])


def check_abreast(kernel: Kernel, loop: Loop, effects: Effects) -> None:
    """Raise NotLegal where rounds do more than to load, and to combine what they load."""
    axis = kernel.axes().get(loop)
    if axis is None or not axis.exact or axis.scaled:
        raise NotLegal("the loop has another way out", loop.line)
    test, update = loop.test, loop.update
    heads = isinstance(loop.before, Declare) and loop.before.variables == (axis.variable,)
    below = (
        isinstance(test, Binary)
        and (test.op in ("<", "<=") or (test.op == "!=" and _step(update) == "1"))
        and isinstance(test.left, Name)
        and test.left.variable is axis.variable
        and axis.variable not in names([test.right])
    )
    if loop.kind != "for" or not heads or not below or _step(update) is None:
        raise NotLegal("the loop does not count up to its end in its head", loop.line)
    if axis.variable in effects.changed(loop.body):
        raise NotLegal("its counter changes in the loop", loop.line)
    for access in kernel.reading.accesses:
        if axis.name in access.loops and (access.mode != "load" or access.space == "shared"):
            raise NotLegal("its rounds do more than to load", access.line)
    own = body_of(loop.body)
    inside = _declared(loop)
    combined = [s for s in own if _combines(s, effects)]
    for statement in own:
        plain = isinstance(statement, Declare) and not effects.changed(statement).keys() - inside
        if not plain and statement not in combined:
            raise NotLegal("its rounds do more than to load and to combine", statement.line)
        if any(v.type.reference or v.array for v in getattr(statement, "variables", ())):
            raise NotLegal("its rounds have references or arrays", statement.line)
    if not any(effects.changed(s).keys() - inside for s in combined):
        raise NotLegal("its rounds combine nothing", loop.line)
    _check_places(kernel, loop, effects)


def _check_places(kernel: Kernel, loop: Loop, effects: Effects) -> None:
    """Raise NotLegal where a round loads from where those before it say, which ends with them."""
    own, inside = body_of(loop.body), _declared(loop)
    carried = {v for s in own for v in effects.changed(s)} - inside
    for statement in (*own, *own):  # a local may be asked for in front of what gives it its value
        if effects.mentions(statement) & carried:
            carried |= effects.given(statement) | effects.changed(statement).keys()
    for statement in own:
        for access in kernel.reading.accesses:
            if access.own in effects.inside(statement) and names([access.own]) & carried:
                raise NotLegal("its rounds load from where others say", access.line)


def _declared(loop: Loop) -> set[Variable]:
    """The locals that each round has of its own."""
    return {v for s in body_of(loop.body) if isinstance(s, Declare) for v in s.variables}


def _step(update: Expr | None) -> str | Expr | None:
    """What a counter grows by."""
    match update:
        case Step(op="++"):
            return "1"
        case Assign(op="+=", value=value):
            return value
    return None


def _combines(statement: Statement, effects: Effects) -> bool:
    """Whether a statement gives one local a new value, and does nothing else."""
    match statement:
        case Evaluate(expression=Assign(target=Name(variable=variable))) if variable is not None:
            changed = effects.changed(statement)
            return changed.keys() == {variable} and len(changed[variable]) == 1
    return False


class _Abreast:
    def __init__(self, kernel: Kernel, loop: Loop, effects: Effects) -> None:
        self.kernel = kernel
        self.loop = loop
        self.effects = effects
        self.rounds = kernel.fresh("ROUNDS")
        self.first, self.ahead = kernel.fresh("first"), kernel.fresh("ahead")
        self.round, self.parts = kernel.fresh("round"), list[str]()

    def text(self) -> str:
        """The loop, in the words of the kernel."""
        loop = self.loop
        declared = loop.before
        assert isinstance(declared, Declare)
        (counter,) = declared.variables
        assert loop.test is not None
        assert counter.value is not None
        step = _step(loop.update)
        by = step if isinstance(step, str) else self._shown(step) if step is not None else "1"
        by = by if by.isalnum() else f"({by})"
        words, k = declared.words.strip(), counter.name
        inside = "\n".join(self._made(s, k) for s in body_of(loop.body))
        return (
            f"for ({words} {self.first} = {self._shown(counter.value)}; {self._test(self.first)}; "
            f"{self.first} += {self.rounds} * {by}) {{\n"
            "#pragma unroll\n"
            f"for (int {self.round} = 0; {self.round} < {self.rounds}; ++{self.round}) {{\n"
            f"const {words} {self.ahead} = {self.first} + {self.round} * {by};\n"
            f"const {words} {k} = {self._test(self.ahead)} ? {self.ahead} : {self.first};\n"
            f"{inside}\n}}\n}}"
        )

    def _made(self, statement: Statement, counter: str) -> str:
        if not isinstance(statement, Evaluate) or not isinstance(statement.expression, Assign):
            return self.kernel.show(statement)
        changed = statement.expression
        if isinstance(changed.target, Name) and changed.target.variable in _declared(self.loop):
            return self.kernel.show(statement)
        place, value = self._shown(changed.target), self._shown(changed.value)
        part = self.kernel.fresh("part", *self.parts)
        self.parts.append(part)
        counted = f"if ({counter} == {self.ahead}) {place} {changed.op} {part};"
        return f"const auto {part} = {value};\n{counted}"

    def _test(self, name: str) -> str:
        test = self.loop.test
        assert isinstance(test, Binary)
        swaps: dict[Node, Node] = {test.left: text(name)}
        order = "<" if test.op == "!=" else test.op  # what is ahead may lie beyond the end
        return self._shown(replace(edited(test, swaps), op=order, span=None))

    def _shown(self, expr: Expr) -> str:
        return self.kernel.spelled(expr)
