"""An index that is taken apart by products of sizes: ``i % w``, ``i / w % h``, ``i / (w * h)``.

The products are a chain, each a multiple of the one before, so that the index is a number whose
digits lie between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.expressions import Binary, Cast, Expr, Literal, Name
from optiml_magic.kernels.formulas import expression
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.grids import form_of, said_alike
from optiml_magic.kernels.primitives.places import bare, tops
from optiml_magic.source.expressions import parse_expression

_WORD = 4  # bytes that hold an index
_BITS = 31  # of an index
Factors = tuple[str, ...]  # sizes that are multiplied, in the order of their names


@dataclass(frozen=True)
class Cut:
    """``i / by``, or ``i / by % below``."""

    by: Factors
    below: Factors | None = None


class Factored:
    """Where a kernel takes an index apart, and by what.

    ``whole`` is all that stands for it, such as the index of a thread along x. ``across`` are sizes
    of the lowest digits that are wanted as well. Raises NotLegal where the index is not taken apart
    in one way.
    """

    def __init__(
        self, kernel: Kernel, effects: Effects, whole: Collection[Expr], across: Factors = ()
    ) -> None:
        self.old, self.effects, self.whole = kernel, effects, frozenset(whole)
        self.atoms: dict[str, str] = {}  # how a size is spelled in the launch
        self.cuts: dict[Expr, Cut] = {}
        for top in tops(kernel.function.body):
            self._find(top)
        weights = {cut.by for cut in self.cuts.values()}
        weights |= {product(c.by, c.below) for c in self.cuts.values() if c.below is not None}
        weights |= {tuple(sorted(across[: n + 1])) for n in range(len(across))}
        self.atoms |= {name: name for name in across}
        self.chain: list[Factors] = sorted(weights | {()}, key=len)
        if len(self.chain) < 2 or not all(
            _divides(a, b) for a, b in zip(self.chain, self.chain[1:], strict=False)
        ):
            raise NotLegal("its threads do not take their index apart in one way")

    def _find(self, expr: Expr) -> None:
        cut = self.cut(expr)
        if cut is not None and not isinstance(bare(expr), Name):
            self.cuts[expr] = cut
            return
        for part in expr.parts:
            self._find(part)

    def cut(self, expr: Expr) -> Cut | None:
        """What an expression is of the index; None for anything else."""
        kind = self.old.reading.types.get(expr)
        if kind is not None and not (kind.integral and (kind.size or 0) >= _WORD):
            return None
        if expr in self.whole:
            return Cut(())
        if isinstance(expr, Cast):
            return self.cut(expr.operand)
        if isinstance(expr, Name):
            value = self._value_of(expr)
            return self.cut(value) if value is not None else None
        if not isinstance(expr, Binary):
            return None
        op, divisor = _division(expr)
        left, by = self.cut(expr.left), self.factors(divisor) if divisor is not None else None
        if left is None or by is None or not (left.below is None or _divides(by, left.below)):
            return None
        if op == "%":
            return Cut(left.by, by)
        rest = Counter(left.below or ()) - Counter(by)
        return Cut(product(left.by, by), left.below and tuple(sorted(rest.elements())))

    def _value_of(self, name: Name) -> Expr | None:
        """What a local holds as long as it lasts."""
        variable = name.variable
        if variable is None or variable not in self.effects.lasting:
            return None
        return variable.value

    def factors(self, expr: Expr) -> Factors | None:
        """The sizes whose product an expression is, if it is one that the launch can say."""
        plain = bare(expr)
        if isinstance(plain, Binary) and plain.op == "*":
            left, right = self.factors(plain.left), self.factors(plain.right)
            return product(left, right) if left is not None and right is not None else None
        inner = bare(self._value_of(plain) or plain) if isinstance(plain, Name) else plain
        if isinstance(inner, Binary) and inner.op == "*" and inner is not plain:
            return self.factors(inner)
        spelled = self._spelled(plain)
        if spelled is None:
            return None
        form = form_of(parse_expression(spelled).tree, self.old.reading.symbols)
        if form is None or (form.value is not None and form.value < 1):
            return None
        self.atoms[str(form)] = spelled
        return (str(form),)

    def _spelled(self, expr: Expr) -> str | None:
        """A size in the words of the launch, over the parameters alone."""
        plain = bare(expr)
        if isinstance(plain, Literal) and isinstance(plain.value, int):
            return str(plain.value)
        if isinstance(plain, Binary) and plain.op in ("+", "-", "*", "/", ">>"):
            left, right = self._spelled(plain.left), self._spelled(plain.right)
            return f"{operand(left)} {plain.op} {operand(right)}" if left and right else None
        if not isinstance(plain, Name) or plain.name in self.effects.moved:
            return None
        value = self._value_of(plain)
        if value is not None:
            return self._spelled(value)
        parameters = {p.name for p in self.old.function.parameters if not p.type.depth}
        alike = plain.name in parameters and said_alike(self.old, [plain.name])
        return plain.name if alike else None

    def form(self, factors: Factors) -> Polynomial | None:
        """A product of sizes as a form."""
        return form_of(parse_expression(self.words(factors)).tree, self.old.reading.symbols)

    def close(self, whole: Polynomial) -> None:
        """Let the highest digit have an end: there are ``whole`` values of the index."""
        above = self.form(self.chain[-1])
        left = whole.over(above) if above is not None else None
        if left is None:
            raise NotLegal("the index has more values, or fewer, than its digits")
        top = self.old.fresh("top")
        self.atoms[top] = self.spelled(left)
        self.chain.append(product(self.chain[-1], (top,)))

    def spelled(self, form: Polynomial) -> str:
        """A form in the words of the launch, as one operand."""
        moved = self.effects.moved
        names = [p.name for p in self.old.function.parameters if p.name not in moved]
        words = expression(form, self.old.reading.symbols, names)
        if words is None or not said_alike(self.old, form.symbols):
            raise NotLegal("how many outputs there are is not said by sizes alone")
        return operand(str(words))

    def at(self, weight: Factors) -> int:
        """Where in the chain a product is."""
        return self.chain.index(weight)

    def ends(self, cut: Cut) -> tuple[int, int | None]:
        """The digits of a part: from which weight, and to below which, or to the end: None."""
        return self.at(cut.by), None if cut.below is None else self.at(product(cut.by, cut.below))

    def size(self, low: int, high: int) -> str:
        """How many values the digits from ``low`` to below ``high`` have together."""
        left = Counter(self.chain[high]) - Counter(self.chain[low])
        return operand(self.words(tuple(sorted(left.elements()))))

    def words(self, factors: Factors) -> str:
        """A product of sizes in the words of the launch."""
        return " * ".join(operand(self.atoms[name]) for name in factors) or "1"

    def value(self, held: Sequence[tuple[str, int, int]], low: int, high: int | None) -> str:
        """The digits from ``low`` to below ``high``, or to the end, as one number.

        ``held`` are names with the digits that they hold, the lowest first; the last one holds all
        that are left.
        """
        found, beyond = "", len(self.chain)
        for name, start, end in reversed(held):
            last = end >= beyond
            first, stop = max(low, start), min(beyond if high is None else high, end)
            if first >= stop and not (last and high is None):
                continue
            part = f"{name} / {self.size(start, first)}" if first > start else name
            if stop < end:
                part = f"{operand(part)} % {self.size(first, stop)}"
            found = f"{operand(found)} * {self.size(first, stop)} + {part}" if found else part
        return operand(found)


def _division(expr: Binary) -> tuple[str, Expr | None]:
    """What an expression divides by, and how: ``i >> 6`` and ``i & 63`` of an index do by 64."""
    match expr:
        case Binary(op="/" | "%" as op, right=right):
            return op, right
        case Binary(op=">>", right=Literal(value=int() as bits)) if 0 < bits < _BITS:
            return "/", Literal(None, str(1 << bits), 1 << bits)
        case Binary(op="&", right=Literal(value=int() as mask)) if mask > 0 and not mask & mask + 1:
            return "%", Literal(None, str(mask + 1), mask + 1)
    return "", None


def product(one: Factors, other: Factors | None) -> Factors:
    """Both multiplied."""
    return tuple(sorted((*one, *(other or ()))))


def _divides(one: Factors, other: Factors) -> bool:
    return one != other and Counter(one) <= Counter(other)


def operand(words: str) -> str:
    """The words as one operand."""
    depth = [1 if c == "(" else -1 if c == ")" else 0 for c in words]
    wrapped = words.startswith("(") and all(sum(depth[:at]) > 0 for at in range(1, len(words)))
    return words if words.isidentifier() or words.isdigit() or wrapped else f"({words})"
