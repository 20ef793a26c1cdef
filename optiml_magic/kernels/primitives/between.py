"""Between which sums of sizes a whole number of a kernel is, and what of the sizes that asks.

Numbers are meant as they are in mathematics: what wraps around in a kernel is below zero here. The
symbols of a form are words of the launch, none of which is negative.
"""

from __future__ import annotations

import re

from optiml_magic.errors import SourceError
from optiml_magic.kernels.expressions import (
    MIRRORED,
    Assign,
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Literal,
    Name,
    Step,
    Unary,
    builtin,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.grids import said_alike
from optiml_magic.kernels.primitives.range_forms import (
    NONE,
    ONE,
    Range,
    by_type,
    either,
    most,
    plain,
    product,
    quotient,
    same_as,
    symbol,
    upper,
    words_of,
)
from optiml_magic.kernels.primitives.sizes import measured
from optiml_magic.kernels.primitives.tabled import passed
from optiml_magic.kernels.tree import Declare, Evaluate, Loop, Variable, expressions, walk
from optiml_magic.kernels.types import INT, UINT, CType, arithmetic, named, promoted
from optiml_magic.source.expressions import parse_expression

MOST = 2**31 - 1
_BLOCKS = re.compile(r"\(cdiv\((\w+), (\d+)\)\)")


class Between:
    """The ranges of the whole numbers of one kernel; ``asked`` is what they require of the sizes.

    A range is that of the number that is meant. A kernel has it as well, but for the multiples of
    what its type has values: where these are to be told apart, nothing is known of a number that
    may have wrapped around.
    """

    def __init__(self, kernel: Kernel) -> None:
        if kernel.facts is None:
            raise NotLegal("its sizes are not known")
        self.kernel, self.effects, self.types = kernel, Effects(kernel), kernel.reading.types
        self._asked = dict[str, Polynomial | None]()
        self._counted = {
            v: loop for loop in walk(kernel.function.body)
            if isinstance(loop, Loop) and isinstance(loop.before, Declare)
            for v in loop.before.variables
        }  # fmt: skip
        self._rounds = dict[Variable, Range]()  # of counters, but in the heads of loops
        self._known = dict[Expr | Variable, Range | None]()
        heads = [Evaluate(None, 0, e) for loop in self._counted.values() for e in loop.expressions]
        self._in_heads = frozenset(e for head in heads for e in expressions(head))

    @property
    def asked(self) -> list[str]:
        """What all this requires of the sizes, each thing once."""
        kept = [words for words, form in self._asked.items() if form is None]
        forms = dict[Polynomial, str]()
        for words, form in self._asked.items():
            if form is not None and not any(plain(form - other) for other in forms):
                forms = {o: w for o, w in forms.items() if not plain(o - form)} | {form: words}
        return [*kept, *forms.values()]

    def of(self, expr: Expr) -> Range | None:
        """The range of an expression of a whole number; None where it is not known."""
        if expr not in self._known:
            self._known[expr] = None  # a counter that is asked for by its own bounds
            self._known[expr] = self._of(expr)
        return self._known[expr]

    def held(self, variable: Variable) -> Range | None:
        """The range of what a name stands for, all along."""
        if variable not in self._known:
            self._known[variable] = None
            self._known[variable] = self._held(variable)
        return self._known[variable]

    def fits(self, found: Range | None) -> bool:
        """Whether what has this range is a number of 31 bits and a sign, as is then asked."""
        return (
            found is not None
            and self._below(found.high, MOST)
            and self._below(-found.low, MOST + 1)
        )

    def positive(self, form: Polynomial) -> bool:
        """Whether a form is never negative, as is then asked of the sizes."""
        return self._asks(form, f"{words_of(form)} >= 0")

    def exact(self, expr: Expr) -> bool:
        """Whether an expression is the number that is meant, whatever its type."""
        kind, found = self.kind(expr), self.of(expr)
        return found is not None and (kind.signed or self.positive(found.low))

    def natural(self, expr: Expr) -> bool:
        """Whether an expression is never negative, as is then asked of the sizes."""
        found = self.of(expr)
        return found is not None and self.positive(found.low)

    def comparable(self, one: Expr, other: Expr) -> bool:
        """Whether a comparison of two whole numbers is that of the numbers that are meant."""
        common = arithmetic(self.kind(one), self.kind(other))
        asked = self.exact if common.signed else self.natural
        return common.integral and asked(one) and asked(other)

    def small(self, array: Expr) -> bool:
        """Whether an array has no elements beyond those that an int counts, as is then asked.

        What wrapped around in 32 bits then was outside of it.
        """
        if not isinstance(array, Name) or array.variable not in self.kernel.function.parameters:
            return False
        name = passed(self.kernel, array.name)
        if name is None or array.name in self.effects.moved:
            return False
        words = f"size({name}) <= {MOST}"
        try:
            held = bool(measured(self.kernel, parse_expression(words)))
        except SourceError:
            return False
        if held:
            self._asked[words] = None
        return held

    def kind(self, expr: Expr) -> CType:
        """The type of a whole number as an operand has it; that of anything else is refused."""
        kind = self.types.get(expr)
        if builtin(expr):
            return UINT
        return promoted(kind) if kind is not None else CType("", "unknown")

    def _below(self, form: Polynomial, number: int) -> bool:
        """Whether a form is no more than a number, as is then asked, in few words if possible."""
        limit = Polynomial.constant(number)
        rounder = self._rounder(upper(form))
        return any(
            self._asks(limit - one, f"{words_of(one)} <= {number}") for one in (rounder, form)
        )

    def _rounder(self, form: Polynomial) -> Polynomial:
        """A form that is no less: blocks of 16 made for `n` have `n + 15` threads."""
        for monomial, factor in form.terms:
            for at, name in enumerate(monomial):
                blocks = _BLOCKS.fullmatch(name)
                width = int(blocks[2]) if blocks is not None else 0
                if blocks is None or not width or factor % width or not self._is_size(blocks[1]):
                    continue
                rest = Polynomial.of({(*monomial[:at], *monomial[at + 1 :]): factor // width})
                threads = symbol(blocks[1]) + Polynomial.constant(width - 1)
                return self._rounder(form - Polynomial.of({monomial: factor}) + rest * threads)
        return form

    def _is_size(self, name: str) -> bool:
        own = [self.held(p) for p in self.kernel.function.parameters if p.name == name]
        return any(found is not None and found.low == symbol(name) for found in own)

    def _asks(self, form: Polynomial, words: str) -> bool:
        if plain(form):
            return True
        if form.value is not None:
            return False
        try:
            held = bool(measured(self.kernel, parse_expression(words)))
        except SourceError:
            return False
        if held:
            self._asked[words] = form
        return held

    def _of(self, expr: Expr) -> Range | None:
        kind = self.types.get(expr)
        if (at := builtin(expr)) != "":
            return self._builtin(at)
        if kind is None or not kind.integral or kind.size is None or kind.lanes != 1:
            return None
        found: Range | None = None
        match expr:
            case Literal(value=int() as number):
                return same_as(Polynomial.constant(int(number)))
            case Name(variable=Variable() as variable):
                found = self.held(variable)
                if found is None or variable not in self._rounds or expr in self._in_heads:
                    return found
                return self._rounds[variable]
            case Cast(operand=operand):
                found = self._converted(operand, kind)
            case Unary(op="-" | "+" as op, operand=operand):
                inner = self._widened(operand, promoted(kind))
                if inner is not None:
                    found = inner if op == "+" else Range(-inner.high, -inner.low)
            case Binary(op="+" | "-" | "*" | "/" | "%" as op, left=left, right=right):
                sides = self._widened(left, kind), self._widened(right, kind)
                if sides[0] is not None and sides[1] is not None:
                    found = self._combined(op, sides[0], sides[1], kind)
            case Choice(test=test, then=left, other=right):
                sides = self._way(test, left, kind, then=True), self._way(test, right, kind)
                if sides[0] is not None and sides[1] is not None:
                    found = either(sides[0], sides[1])
            case Call(function="min" | "max" as name, arguments=(left, right)):
                own = self.kernel.unit.called(name, 2)
                if not own and self.comparable(left, right):
                    sides = self.of(left), self.of(right)
                    if sides[0] is not None and sides[1] is not None:
                        found = either(sides[0], sides[1])
        return found if found is not None else by_type(kind)

    def _way(self, test: Expr, way: Expr, kind: CType, *, then: bool = False) -> Range | None:
        """The range of a way of a choice: of ``i < w ? 0 : i - w`` it is not negative."""
        found = self._widened(way, kind)
        if not isinstance(way, Binary) or way.op != "-" or not isinstance(test, Binary):
            return found
        greater = (test.op in (">", ">=")) == then and test.op in MIRRORED
        sides = (test.left, test.right) if greater else (test.right, test.left)
        alike = all(
            self.kernel.spelled(one) == self.kernel.spelled(other)
            for one, other in zip(sides, (way.left, way.right), strict=True)
        )
        if found is None or test.op not in MIRRORED or not alike:
            return found
        if not self.comparable(*sides):
            return found
        return Range(NONE, found.high)

    def _builtin(self, at: str) -> Range:
        name, axis = at.split(".")
        place, launch = "xyz".index(axis), self.kernel.launch
        extents = launch.grid if name in ("gridDim", "blockIdx") else launch.block
        extent = extents[place] if place < len(extents) else parse_expression("1")
        number = extent.evaluate({}) if not extent.names and not extent.arrays else None
        form = Polynomial.constant(number) if number is not None else symbol(str(extent))
        return same_as(form) if name.endswith("Dim") else Range(NONE, form - ONE)

    def _held(self, variable: Variable) -> Range | None:
        kind = named(variable.type.base, self.kernel.unit.aliases)
        if variable.type.base == "auto" and variable.value is not None:
            kind = self.types.get(variable.value) or kind
        if variable.type.depth or variable.array or not kind.integral or kind.lanes != 1:
            return None
        found: Range | None = None
        loose = variable in self.effects.lent or variable.type.reference or variable.type.volatile
        if variable.storage == "parameter" and not loose:
            found = self._size(variable, kind)
        elif variable.storage == "local" and not loose:
            if variable in self.effects.lasting and variable.value is not None:
                found = self._converted(variable.value, kind)
            elif variable in self._counted:
                found = self._counter(variable, kind)
        return found if found is not None else by_type(kind)

    def _size(self, variable: Variable, kind: CType) -> Range | None:
        name, facts = variable.name, self.kernel.facts
        assert facts is not None
        value = facts.scalars.get(name)
        if (kind.size or 0) < (INT.size or 4) or not isinstance(value, int) or value < 0:
            return None
        if name in self.effects.moved or not said_alike(self.kernel, [name]):
            return None
        form = symbol(name)
        if kind.signed:
            self._asked[f"{name} >= 0"] = None  # what is said of other forms rests on it
        return same_as(form)

    def counts(self, variable: Variable) -> tuple[Loop, Expr, str, Expr] | None:
        """The loop that has a variable for its counter, its step, and what its test compares.

        That is how, as if the counter were on the left, and to what.
        """
        loop = self._counted.get(variable)
        if loop is None or loop.test is None or loop.update is None or loop.kind != "for":
            return None
        head = Evaluate(None, loop.line, loop.update), Evaluate(None, loop.line, loop.test)
        if variable in self.effects.changed(loop.body, head[1]):
            return None
        match loop.update:
            case Step(op="++", target=Name(variable=moved)):
                step: Expr = Literal(None, "1", 1)
            case Assign(op="+=", target=Name(variable=moved), value=step):
                pass
            case _:
                return None
        test = loop.test
        while isinstance(test, Binary) and test.op == "&&":
            test = test.left
        if moved is not variable or not isinstance(test, Binary):
            return None
        for own, op, other in ((test.left, test.op, test.right),
                               (test.right, MIRRORED.get(test.op, ""), test.left)):  # fmt: skip
            if isinstance(own, Name) and own.variable is variable and op in ("<", "<="):
                return loop, step, op, other
        return None

    def _counter(self, variable: Variable, kind: CType) -> Range | None:
        found = self.counts(variable)
        if found is None or variable.value is None:
            return None
        _, step, op, bound = found
        common = arithmetic(kind, self.kind(bound))
        if not common.integral or not (self.exact if common.signed else self.natural)(bound):
            return None
        start, end = self._converted(variable.value, kind), self.of(bound)
        by = same_as(ONE) if step.span is None else self.of(step) if self.exact(step) else None
        if start is None or end is None or by is None or not self.positive(by.low):
            return None
        wider = (kind.size or 0) < (common.size or 0) and not kind.signed
        if wider and not self.positive(start.low):
            return None
        top = end.high if op == "<=" else end.high - ONE
        beyond = Range(start.low, top + by.high)
        if not self.fits(beyond) or not self.fits(start):  # it would come back
            return None
        self._rounds[variable] = Range(start.low, top)
        return Range(start.low, most(start.high, beyond.high))

    def _converted(self, expr: Expr, kind: CType) -> Range | None:
        """The range of a value of another type, where that one holds it."""
        old = self.kind(expr)
        if not old.integral or (kind.size or 0) < (INT.size or 4):
            return None
        found = self._widened(expr, kind)
        if found is None or ((kind == INT or kind.size == 4) and not self.fits(found)):
            return None
        return found

    def _widened(self, expr: Expr, kind: CType) -> Range | None:
        """The range of an operand: one without a sign that wrapped around gains no bits."""
        old = self.kind(expr)
        if not old.integral:
            return None
        wider = (kind.size or 0) > (old.size or 0) and not old.signed
        return None if wider and not self.exact(expr) else self.of(expr)

    def _combined(self, op: str, one: Range, other: Range, kind: CType) -> Range | None:
        if op == "+":
            return Range(one.low + other.low, one.high + other.high)
        if op == "-":
            return Range(one.low - other.high, one.high - other.low)
        if op == "*":
            return product(one, other)
        if not self.positive(one.low) or not self.positive(other.low - ONE):
            if not kind.signed:
                return None
            return Range(-upper(-one.low), upper(one.high))
        if op == "%":
            return Range(NONE, other.high - ONE)
        if one.low == one.high and other.low == other.high:
            return same_as(quotient(one.low, other.low, words_of(one.low)))
        above = words_of(one.high) if plain(one.high) else f"max({words_of(one.high)}, 0)"
        return Range(NONE, quotient(one.high, other.low, above))
