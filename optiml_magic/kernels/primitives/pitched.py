"""Normal form: rows that lie so many bytes apart are so many elements apart.

``(float*)((char*)p + y * pitch)`` of a ``float* p`` is ``p + y * (pitch / 4)`` where 4 divides the
pitch, as it does of what ``cudaMallocPitch`` gives. A place in a row is then one in its array.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import Binary, Cast, Expr, Literal, Name, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.grids import said_alike
from optiml_magic.kernels.primitives.places import bare, chain, tops
from optiml_magic.kernels.primitives.sizes import measured
from optiml_magic.kernels.tree import Variable
from optiml_magic.kernels.types import CType
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import parse_expression

_LONG, _WORD = 8, 4  # bytes of a number that addresses, and of one that may not wrap


@primitive
def pitched(kernel: Kernel) -> Kernel:
    """The kernel with such rows by their elements, which its launch asks for; it has one."""
    found = _Pitched(kernel)
    swaps: dict[Node, Node] = dict(found.rows())
    if not swaps:
        raise NotLegal("no row of its arrays begins so many bytes behind another")
    requires = map(RequireDirective, map(parse_expression, found.asked))
    return kernel.rewritten(
        edited(kernel.function.body, swaps),
        directives=[one for one in requires if one not in kernel.program.requires],
    )


class _Pitched:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.asked = dict[str, None]()
        moved = Effects(kernel).moved
        self.steady = [p for p in kernel.function.parameters if p.name not in moved]

    def rows(self) -> Iterator[tuple[Node, Node]]:
        """Each row that is found in bytes, and what finds it in elements."""
        for expr in (e for top in tops(self.kernel.function.body) for e in every(top)):
            if not isinstance(expr, Cast):
                continue
            first, *terms = chain(expr.operand, "+")
            array = self._in_bytes(first)
            if array is None or not terms or self._pointee(expr) != self._pointee_of(array):
                continue
            size = self._pointee_of(array).size or 0
            parts = [self._in_elements(term, size) for term in terms]
            if size > 1 and all(part is not None for part in parts):
                begin: Expr = Name(None, array.name, array)
                whole = (part for part in parts if part is not None)
                yield expr, reduce(lambda left, right: Binary(None, "+", left, right), whole, begin)

    def _in_bytes(self, expr: Expr) -> Variable | None:
        """The array of which an expression is the first byte."""
        if not isinstance(expr, Cast) or self._pointee(expr).size != 1:
            return None
        array = expr.operand.variable if isinstance(expr.operand, Name) else None
        plain = array in self.steady and array is not None and array.type.depth == 1
        return array if plain else None

    def _in_elements(self, term: Expr, size: int) -> Expr | None:
        """So many bytes as elements of a size; None where they may be part of one."""
        for factor in chain(term, "*"):
            match bare(factor):
                case Literal(value=int() as value) if value % size == 0:
                    return edited(term, {factor: text(f"{value // size}")})
                case Name(variable=Variable() as pitch) if self._divides(pitch, size):
                    return edited(term, {bare(factor): text(f"({pitch.name} / {size})")})
        return None

    def _divides(self, pitch: Variable, size: int) -> bool:
        """Whether a parameter is a multiple of a size, as is asked then."""
        kind = self._type(pitch.type.base)
        wide = kind.size == _LONG or (kind.signed and kind.size == _WORD)
        plain = pitch in self.steady and not pitch.type.depth and not pitch.type.reference
        if not plain or kind.kind != "int" or not wide or not said_alike(self.kernel, [pitch.name]):
            return False
        words = f"{pitch.name} % {size} == 0"
        if self.kernel.facts is not None and not measured(self.kernel, parse_expression(words)):
            return False
        self.asked[words] = None
        return True

    def _pointee(self, cast: Cast) -> CType:
        """What a conversion to a pointer points to."""
        words = " ".join(w for w in cast.type.replace("*", " * ").split() if w != "const")
        base, star, rest = words.partition("*")
        return self._type(base.strip() if star and not rest.strip() else "")

    def _pointee_of(self, array: Variable) -> CType:
        return self._type(array.type.base)

    def _type(self, words: str) -> CType:
        return self.kernel.unit.structs.type(words, self.kernel.unit.aliases)
