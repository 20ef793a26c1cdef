"""Quotients and rests of a thread's index, which a tile knows as digits and need not divide for."""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.expressions import Binary, Cast, Expr, Literal, Name, builtin
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.digits import Digits
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.places import axis_of, tops

_WHOLE = 4  # bytes of a number that holds any index: what is assumed of indices


class Decoded:
    """The divisions of one kernel that are sums of its digits."""

    def __init__(self, digits: Digits, effects: Effects) -> None:
        self.digits, self.effects, self.kernel = digits, effects, digits.kernel
        self.sizes = {
            p.name for p in self.kernel.function.parameters
            if not p.type.depth and p.name not in effects.moved
        } | self.kernel.program.values.keys()  # fmt: skip

    def found(self) -> Iterator[tuple[Expr, str, Polynomial]]:
        """Each with its type and its form, none of them inside of another one."""
        todo = list(tops(self.kernel.function.body))
        while todo:
            expr = todo.pop()
            kind = self.kernel.reading.types.get(expr)
            divides = isinstance(expr, Binary) and expr.op in ("/", "%")
            form = self._form(expr) if divides and kind is not None and kind.integral else None
            if form is None or kind is None:
                todo += expr.parts
            else:
                yield expr, kind.name, form

    def _form(self, expr: Expr) -> Polynomial | None:
        kind = self.kernel.reading.types.get(expr)
        if isinstance(expr, Literal):
            return Polynomial.constant(expr.value) if isinstance(expr.value, int) else None
        if kind is not None and not (kind.integral and (kind.size or 0) >= _WHOLE):
            return None
        axis = axis_of(self.kernel, expr)
        name, _, alone = builtin(expr).partition(".")
        if name == "blockIdx" and self.digits.widths.get(alone) == 1:
            axis = alone
        if axis:
            return self.digits.whole(axis) if axis in self.digits.axes else None
        match expr:
            case Cast(operand=operand):
                return self._form(operand)
            case Name(name=name, variable=variable):
                if variable is not None and variable in self.effects.lasting:
                    return self._form(variable.value) if variable.value is not None else None
                return Polynomial.symbol(name) if name in self.sizes else None
            case Binary(op=op, left=left, right=right) if op in ("+", "-", "*", "/", "%"):
                sides = self._form(left), self._form(right)
                if sides[0] is None or sides[1] is None:
                    return None
                return self._combined(sides[0], op, sides[1])
        return None

    def _combined(self, left: Polynomial, op: str, right: Polynomial) -> Polynomial | None:
        if op in ("/", "%"):
            return self.digits.divided(left, op, right)
        if op == "*":
            return left * right
        return left + right if op == "+" else left - right
