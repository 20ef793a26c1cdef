"""P3, join digits: two digits of an index that stand for one place are one digit.

``w = i % W, h = i / W % H`` of which all that is asked is ``h * W + w`` is ``i % (W * H)``: a pixel
of a plane. An axis less is left for planes and images, which others then have for themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Binary, Expr, Index, Literal, Name, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.places import axis_of, bare, own_text_only, tops
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.kernels.tree import Declare, Variable, walk

_ZERO = Literal(None, "0", 0)


@dataclass(frozen=True, eq=False)
class _Digits:
    """``low`` is ``whole % width``, and ``high`` ``whole / width % height``, as they stand."""

    low: Binary
    high: Binary
    height: Expr


@primitive
def one_place(kernel: Kernel) -> Kernel:
    """The kernel with its two lowest digits as one, of both sizes; there must be such."""
    own_text_only(kernel)
    finder = _Finder(kernel)
    for digits in finder.pairs():
        if finder.stand_for_one(digits):
            width = digits.low.right
            size = Binary(None, "*", width, digits.height)
            low = Binary(None, "%", digits.low.left, size)
            swaps: dict[Node, Node] = {digits.low: low, digits.high: _ZERO}
            return kernel.rewritten(edited(kernel.function.body, swaps))
    raise NotLegal("no two digits of its index stand for one place")


class _Finder:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.effects = kernel, Effects(kernel)
        self.every_one = [e for top in tops(kernel.function.body) for e in every(top)]
        self.declared = {
            v: v.value for s in walk(kernel.function.body) if isinstance(s, Declare)
            for v in s.variables if v in self.effects.lasting and v.value is not None
        }  # fmt: skip

    def pairs(self) -> Iterator[_Digits]:
        """The lowest digit of a thread's index, and the one above it, each computed once."""
        rests = [e for e in self.every_one if isinstance(e, Binary) and e.op == "%"]
        for low in rests:
            if not self._is_whole(low.left):
                continue
            for high in rests:
                match self._value(high.left):
                    case Binary(op="/", left=whole, right=width) if (
                        self._is_whole(whole) and same(width, low.right) and self._alike(low, high)
                    ):
                        yield _Digits(low, high, high.right)

    def stand_for_one(self, digits: _Digits) -> bool:
        """Whether all that is asked of both is where the item lies, a row behind the other."""
        symbols = self.kernel.reading.symbols
        names = {
            name: symbol for name, symbol in symbols.table.items() if symbol.op in ("%", "/")
        }  # fmt: skip
        lows = [n for n, s in names.items() if s.op == "%" and self._is_index(s.arguments[0])]
        for low in lows if len(lows) == 1 else ():
            index, width = names[low].arguments
            above = next((n for n, s in names.items()
                          if s.op == "/" and s.arguments == (index, width)), None)  # fmt: skip
            high = next((n for n, s in names.items() if s.op == "%" and above is not None
                         and s.arguments[0] == Polynomial.symbol(above)), None)  # fmt: skip
            if high is not None:
                return self._places_alone(digits) and self._place_of_both(low, high, width)
        return False

    def _place_of_both(self, low: str, high: str, width: Polynomial) -> bool:
        """Whether each index has both as ``high * width + low``, and no test asks for either."""
        reading, found = self.kernel.reading, {low, high}
        for access in reading.accesses:
            if any(found & self._asked(condition) for condition in access.guard):
                return False
            form = access.index
            if form is None:
                return False
            if not found & reading.symbols.inside(form):
                continue
            by, rows = form.coefficient(low), form.coefficient(high)
            nested = found & reading.symbols.inside(form.without(found))
            if by is None or rows is None or nested or rows != by * width:
                return False
        ends = (
            form for axis in reading.axes for form in (axis.start, axis.stop, axis.step) if form
        )
        return not any(found & reading.symbols.inside(form) for form in ends)

    def _asked(self, condition: Condition) -> frozenset[str]:
        inside = self.kernel.reading.symbols.inside
        parts = [*condition.conjuncts()]
        forms = (part.form for part in parts if isinstance(part, Compare))
        unread = frozenset().union(*(p.depends for p in parts if not isinstance(p, Compare)))
        return frozenset[str]().union(*(inside(form) for form in forms), unread)

    def _places_alone(self, digits: _Digits) -> bool:
        """Whether the text asks for both in the indices of arrays alone."""
        own = {v for v, value in self.declared.items() if bare(value) in (digits.low, digits.high)}
        inside = {e for a in self.kernel.reading.accesses for e in self._index(a)}
        kept = {bare(value) for v, value in self.declared.items() if v in own}
        uses = [e for e in self.every_one if isinstance(e, Name) and e.variable in own]
        direct = [d for d in (digits.low, digits.high) if d not in kept]
        return all(e in inside for e in (*uses, *direct))

    def _index(self, access: Access) -> Iterator[Expr]:
        node = getattr(access.node, "target", access.node)
        if access.call is None and isinstance(node, Index) and isinstance(bare(node.base), Name):
            yield from every(node.index)

    def _alike(self, low: Binary, high: Binary) -> bool:
        """Whether sizes and digits are numbers of one type, so that their product is, too."""
        types = self.kernel.reading.types
        kinds = {kind.name for e in (low, high, low.right, high.right) if (kind := types.get(e))}
        return len(kinds) == 1

    def _is_whole(self, expr: Expr) -> bool:
        return axis_of(self.kernel, self._value(expr)) == "x"

    def _is_index(self, form: Polynomial) -> bool:
        start = Polynomial.constant(self.kernel.block[0] or 1) * Polynomial.symbol("blockIdx.x")
        return form == Polynomial.symbol("threadIdx.x") + start

    def _value(self, expr: Expr) -> Expr:
        """What an expression is, through locals that never change."""
        expr = bare(expr)
        while isinstance(expr, Name) and isinstance(expr.variable, Variable):
            value = self.declared.get(expr.variable)
            if value is None:
                break
            expr = bare(value)
        return expr
