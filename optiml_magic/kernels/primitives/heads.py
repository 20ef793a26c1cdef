"""Loops whose rounds several share: each begins at one of its own, and steps over the others'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import Node, lines
from optiml_magic.kernels.expressions import Assign, Binary, Choice, Expr, Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.naming import LocalSpeller
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.spelling import Speller
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import Declare, Evaluate, Loop, Statement, Variable


def count_of(axis: Axis, speller: LocalSpeller, effects: Effects) -> str:
    """How many rounds a loop has that counts them from 0 by 1, by its name where it has one."""
    match axis.node.test:
        case Binary(op="<", left=Name(variable=own), right=Name(variable=bound)):
            if own is axis.variable and bound in effects.lasting:
                return bound.name
    parts = [*axis.test.conjuncts()]
    test = parts[0] if len(parts) == 1 else None
    form = test.form if isinstance(test, Compare) and test.op == ">=" else None
    by = form.coefficient(axis.name) if form is not None else None
    if form is None or by is None or by.value != -1:
        raise NotLegal("the number of rounds is not known", axis.line)
    return speller.count(form.without([axis.name]) + Polynomial.constant(1))


class Heads:
    """The heads of loops of one kernel that may be shared, as ``rounds.shareable`` says."""

    def __init__(self, kernel: Kernel, loops: Sequence[Loop], effects: Effects) -> None:
        self.kernel = kernel
        self.loops = loops
        self.effects = effects
        self.axes = kernel.axes()

    def shared(
        self,
        loop: Loop,
        own: str,
        count: str,
        swaps: Mapping[Node, Node],
        told: Mapping[Node, tuple[Statement, ...]],
    ) -> Statement:
        """The rounds of number ``own``, of ``count`` that share them, with parts exchanged.

        ``told`` are statements of the body that become several.
        """
        axis = self.axes[loop]
        assert axis.variable is not None
        name = axis.variable.name
        step = self.step(axis)
        by = own if step == "1" else f"{own} * {step}"
        stride = count if step == "1" else f"{count} * {step}"
        words, start = self.start(loop, swaps)
        start = by if start == "0" else f"{start} + {by}"
        test = self.test(loop, axis, swaps)
        body = self.kernel.show(loop.body, {**swaps, **told})
        return lines(f"for ({words}{name} = {start}; {test}; {name} += {stride}) {body}")

    def step(self, axis: Axis) -> str:
        """How far its counter goes in a round."""
        assert axis.step is not None
        return Speller(self.kernel.reading.symbols, {}, moved=self.effects.moved).factor(axis.step)

    def start(self, loop: Loop, swaps: Mapping[Node, Node]) -> tuple[str, str]:
        """The type that the head declares its counter with, if it does, and where this begins.

        Raises NotLegal where the head does not say so.
        """
        before, variable = loop.before, self.axes[loop].variable
        match before:
            case Declare(words=words, variables=(only,)) if only is variable:
                if only.value is not None:
                    return words, self._term(only.value, swaps)
            case Evaluate(expression=expression):
                target = getattr(expression, "target", None)
                value = getattr(expression, "value", None)
                whole = getattr(expression, "op", "") == "=" and isinstance(target, Name)
                if whole and value is not None and self._unused_after(loop, variable):
                    return "", self._term(value, swaps)
        raise NotLegal("where the loop begins is not in its head", loop.line)

    def _unused_after(self, loop: Loop, variable: Variable | None) -> bool:
        """Whether nobody asks for the last value of a counter: others only begin anew with it."""
        inside = self.effects.inside(loop)
        return all(
            e in inside or not isinstance(e, Name) or e.variable is not variable
            or any(e is getattr(getattr(other.before, "expression", None), "target", None)
                   or e in self.effects.inside(other)
                   for other in self.loops if other is not loop)
            for e in self.effects.inside(self.kernel.function.body)
        )  # fmt: skip

    def test(self, loop: Loop, axis: Axis, swaps: Mapping[Node, Node]) -> str:
        """Whether there is a round, also of those behind the last."""
        test = loop.test
        if test is None:
            raise NotLegal("the loop has no test", loop.line)
        if isinstance(test, Binary) and test.op == "!=" and axis.step is not None:
            step = axis.step.value
            if step not in (1, -1):
                raise NotLegal("steps may jump over its end", loop.line)
            names = isinstance(test.left, Name) and test.left.variable is axis.variable
            order = "<" if (step > 0) == names else ">"
            return self.written(replace(test, op=order, span=None), swaps)
        return self.written(test, swaps)

    def written(self, expr: Expr, swaps: Mapping[Node, Node]) -> str:
        """An expression as the kernel spells it."""
        return self.kernel.spelled(expr, swaps)

    def _term(self, expr: Expr, swaps: Mapping[Node, Node]) -> str:
        """An expression to which something may be added."""
        shown = self.written(expr, swaps)
        loose = isinstance(expr, Binary) and expr.op not in ("+", "-", "*", "/", "%")
        return f"({shown})" if loose or isinstance(expr, Assign | Choice) else shown
