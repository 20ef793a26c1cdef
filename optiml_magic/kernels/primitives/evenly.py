"""P4, evenly: a size that groups divide is a product of how many there are and how large each is.

``g = f / (F / groups)`` of ``f = i / w % F`` says in which group a filter is. Where ``groups``
divide ``F``, that is ``F / groups * groups``, and the place within a group is a digit of the index.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import Binary, Expr, Literal, Name, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.grids import said_alike
from optiml_magic.kernels.primitives.places import bare, tops
from optiml_magic.kernels.primitives.sizes import measured, with_grid
from optiml_magic.kernels.types import named
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import Expression, parse_expression

_WORD = 4  # bytes of the least type of which no other is made


@primitive
def evenly(kernel: Kernel) -> Kernel:
    """The kernel with such a size as a product, which its launch asks for."""
    pair = next(_Groups(kernel).pairs(), None)
    if pair is None:
        raise NotLegal("no digit of an index is taken apart by a part of its size")
    return in_multiples(kernel, *pair)


def in_multiples(kernel: Kernel, size: str, by: str) -> Kernel:
    """The kernel with a parameter as a product with ``by``, another one or a number.

    Raises NotLegal where it is none at the measured sizes.
    """
    found = _Groups(kernel)
    if size not in found.sizes:
        raise NotLegal(f"`{size}` is not a size that it is given", kernel.function.line)
    whole = f"{size} % {by} == 0"
    asked = parse_expression(whole if by.isdigit() else f"{by} >= 1 && {whole}")
    if kernel.facts is not None and not measured(kernel, asked):
        raise NotLegal(f"`{by}` does not divide `{size}` at the given sizes", kernel.function.line)
    product = f"({size} / {by} * {by})"
    swaps: dict[Node, Node] = {e: text(product) for e in found.asked(size, by)}
    launch = replace(
        kernel.launch, grid=tuple(_said(part, size, product) for part in kernel.launch.grid)
    )
    require = RequireDirective(asked)
    made = kernel.rewritten(
        edited(kernel.function.body, swaps), launch=launch,
        directives=[] if require in kernel.program.requires else [require],
    )  # fmt: skip
    return with_grid(made)


def _said(part: Expression, size: str, product: str) -> Expression:
    """A size of the launch, with the product in the place of a name."""
    return parse_expression(re.sub(rf"\b{size}\b", product, str(part)))


class _Groups:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.effects = kernel, Effects(kernel)
        moved = self.effects.moved
        parameters = [p for p in kernel.function.parameters if p not in self.effects.lent]
        self.sizes = {
            p.name: p.type.base for p in parameters
            if not p.type.depth and not p.type.reference and p.name not in moved
            and _counts(kernel, p.type.base) and said_alike(kernel, [p.name])
        }  # fmt: skip

    def pairs(self) -> Iterator[tuple[str, str]]:
        """A size and what divides it: ``F`` and ``groups`` of ``i % F / (F / groups)``."""
        for expr in self._all():
            if not isinstance(expr, Binary) or expr.op not in ("/", "%"):
                continue
            part, digit = self._value(expr.right), self._value(expr.left)
            if not isinstance(part, Binary) or part.op != "/":
                continue
            size, by = self._size(part.left), self._size(part.right)
            ends = isinstance(digit, Binary) and digit.op == "%" and self._size(digit.right) == size
            if ends and size in self.sizes and size != by and self._alike(size, by):
                yield size, by

    def _alike(self, size: str, by: str) -> bool:
        """Whether both have one type, so that the product has it too."""
        return by.isdigit() or self.sizes.get(by) == self.sizes[size]

    def asked(self, size: str, by: str) -> Iterator[Expr]:
        """Where a kernel asks for a size, but for the quotient."""
        quotients = {
            bare(e.left) for e in self._all()
            if isinstance(e, Binary) and e.op == "/" and self._size(e.right) == by
        }  # fmt: skip
        yield from (
            e for e in self._all()
            if isinstance(e, Name) and e.name == size and e not in quotients
            and e.variable is not None and e.variable.storage == "parameter"
        )  # fmt: skip

    def _all(self) -> Iterator[Expr]:
        for top in tops(self.kernel.function.body):
            yield from every(top)

    def _value(self, expr: Expr) -> Expr:
        """What an expression is, through locals that never change."""
        expr = bare(expr)
        while isinstance(expr, Name) and expr.variable in self.effects.lasting:
            assert expr.variable is not None
            assert expr.variable.value is not None
            expr = bare(expr.variable.value)
        return expr

    def _size(self, expr: Expr) -> str:
        """A size by its name, or a number; empty for anything else."""
        plain = self._value(expr)
        if isinstance(plain, Literal) and plain.text.isdigit() and (plain.value or 0) > 1:
            return plain.text
        own = isinstance(plain, Name) and plain.name in self.sizes
        return plain.name if isinstance(plain, Name) and own else ""


def _counts(kernel: Kernel, base: str) -> bool:
    """Whether a type is one of whole numbers that arithmetic leaves as it is."""
    kind = named(base, kernel.unit.aliases)
    return kind.integral and kind.lanes == 1 and (kind.size or 0) >= _WORD
