"""P13, hoist: what the scalars of a launch alone decide is computed once, before all else.

A thread that takes several items behind guards of their own would find it for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Binary, Call, Cast, Expr, Literal, Name, Unary, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.computing import only_computes
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.places import tops
from optiml_magic.kernels.tree import Block, Declare


@primitive
def steadied(kernel: Kernel) -> Kernel:
    """Roots, quotients and functions of scalars, in float, are locals at the beginning."""
    body = kernel.function.body
    first = _Steady(kernel)
    begun = body.body[: len(first)]
    found = [e for s in body.body[len(first) :] for top in tops(s) for e in first.of(top)]
    if not found:
        raise NotLegal("no function or quotient is one of scalars alone")
    declared: dict[str, str] = {}
    swaps: dict[Node, Node] = {}
    for expr in found:
        words = kernel.spelled(expr)
        name = declared.setdefault(words, kernel.fresh("factor", *declared.values()))
        swaps[expr] = text(name)
    made = [lines(f"const float {name} = {words};") for words, name in declared.items()]
    inner = edited(Block(None, body.line, body.body[len(first) :]), swaps)
    whole = Block(None, body.line, (*begun, *made, *inner.body), body.tail)
    return kernel.rewritten(whole, tidy=False)


class _Steady:
    """What scalars alone decide: they, and the locals at the beginning that are made of them."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.effects = Effects(kernel)
        self.known = {p for p in kernel.function.parameters
                      if not p.type.depth and p not in self.effects.changing}  # fmt: skip
        self.count = 0
        for statement in kernel.function.body.body:
            if not isinstance(statement, Declare) or len(statement.variables) != 1:
                break
            (variable,) = statement.variables
            if not variable.type.const or variable.value is None or not self._is(variable.value):
                break
            self.known.add(variable)
            self.count += 1

    def __len__(self) -> int:
        """How many statements at the beginning declare such locals."""
        return self.count

    def of(self, expr: Expr) -> Iterator[Expr]:
        """The largest parts of an expression that scalars alone decide, and that take long."""
        kind = self.kernel.reading.types.get(expr)
        single = kind is not None and kind.floating and kind.size == 4 and kind.lanes == 1
        if single and self._is(expr):
            if any(isinstance(part, Call) or _divides(part) for part in every(expr)):
                yield expr
            return
        for part in expr.parts:
            yield from self.of(part)

    def _is(self, expr: Expr) -> bool:
        return all(self._plain(part) for part in every(expr))

    def _plain(self, part: Expr) -> bool:
        if isinstance(part, Name):
            return part.variable in self.known
        if isinstance(part, Call):
            return only_computes(self.kernel, part)
        if isinstance(part, Unary):
            return part.op in "+-"
        return isinstance(part, Literal | Binary | Cast)


def _divides(part: Expr) -> bool:
    return isinstance(part, Binary) and part.op == "/"
