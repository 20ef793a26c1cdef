"""P14, rests: ``i - i / n * n`` becomes ``i % n``, also where a local holds the quotient.

Digits of an index are found by the remainders that they are, and this one is spelled without.
C defines a remainder by this very difference, whatever the signs, and division by zero was none.
"""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.kernels.combining import Meanings, same
from optiml_magic.kernels.editing import edited
from optiml_magic.kernels.expressions import Binary, Expr, Literal, Name, Unary, builtin
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.places import chain, outermost


@primitive
def taken_away(kernel: Kernel) -> Kernel:
    """The kernel whose rests are remainders; there must be one that is spelled as a difference."""
    swaps = outermost(kernel.function.body, _Finder(kernel).rest)
    if not swaps:
        raise NotLegal("no difference is a remainder")
    return kernel.rewritten(edited(kernel.function.body, swaps), tidy=False)


class _Finder:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.effects = kernel, Effects(kernel)
        self.meant: Meanings = {
            v: v.value for v in self.effects.lasting
            if v.value is not None and v.storage == "local" and not v.array
        }  # fmt: skip

    def rest(self, expr: Expr) -> Binary | None:
        """``i % n`` for ``i - i / n * n``, of whole numbers of one type that keep their values."""
        match expr:
            case Binary(op="-", left=whole, right=Binary(op="*") as product):
                factors = [*chain(product, "*")]
                for at, factor in enumerate(factors):
                    size = _product([*factors[:at], *factors[at + 1 :]])
                    division = self._division(factor)
                    if division is None or not self._alike(expr, whole, size, factor, division):
                        continue
                    divided, by = division.parts
                    both = same(divided, whole) and same(by, size, self.meant)
                    if both and self._alike(divided, by, whole) and self._keep(whole, size, by):
                        return Binary(None, "%", whole, size)
        return None

    def _division(self, expr: Expr) -> Binary | None:
        """The division that an expression is, or a local is declared with."""
        if isinstance(expr, Name) and expr.variable is not None:
            expr = self.meant.get(expr.variable, expr)
        return expr if isinstance(expr, Binary) and expr.op == "/" else None

    def _alike(self, *exprs: Expr) -> bool:
        """Whether all are whole numbers of one type, so that none but a literal is converted."""
        leaves = {leaf for e in exprs for leaf in chain(e, "*") if not isinstance(leaf, Literal)}
        first, *others = {self.kernel.reading.types.get(e) for e in leaves} or {None}
        return not others and first is not None and first.integral and first.lanes == 1

    def _keep(self, *exprs: Expr) -> bool:
        """Whether these are the same wherever they are asked for."""
        return all(map(self._keeps, exprs))

    def _keeps(self, expr: Expr) -> bool:
        match expr:
            case Literal():
                return True
            case Name(name=name, variable=variable):
                if variable is None:
                    return name in self.kernel.program.values
                given = variable.storage == "parameter" and not variable.type.reference
                lasts = given and name not in self.effects.moved
                return lasts or variable in self.effects.lasting
            case Binary(left=left, right=right):
                return self._keep(left, right)
            case Unary(op="-" | "+" | "~", operand=operand):
                return self._keeps(operand)
        return bool(builtin(expr))


def _product(factors: Sequence[Expr]) -> Expr:
    """Several factors multiplied; there is at least one."""
    found = factors[0]
    for factor in factors[1:]:
        found = Binary(None, "*", found, factor)
    return found
