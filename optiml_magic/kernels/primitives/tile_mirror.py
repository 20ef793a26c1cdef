"""Products that are the same on both sides of the diagonal: Gram matrices, all pairs of one set.

Where rows and columns are the same elements, and a round comes to the same with both exchanged, the
sums below the diagonal are those above it. An odd part, as a difference, is one whose sign changes:
a square of it is even. Nothing is multiplied in another order, so that all bits stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Index,
    Literal,
    Member,
    Name,
    Step,
    Unary,
    builtin,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.computing import only_computes
from optiml_magic.kernels.primitives.operands import COLUMN, ROW, Contraction, Operand
from optiml_magic.kernels.primitives.tile_guards import is_bound
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Statement,
    Variable,
)
from optiml_magic.kernels.types import CType, named

_UNKNOWN = "whether both sides of the diagonal are alike is not known"
_WORD = 4  # bytes, from which arithmetic is taken not to wrap
_COMMUTING = frozenset({"+", "*", "&", "|", "^", "==", "!=", "&&", "||"})
_EVEN = frozenset({"fabsf", "fabs", "abs", "cosf", "cos"})
_POWERS, _SQUARE = frozenset({"powf", "pow"}), frozenset({"2", "2.0", "2.0f", "2.f"})
_SYMMETRIC = frozenset({"fminf", "fmaxf", "min", "max", "fmin", "fmax", "hypotf"})
_FUSED = frozenset({"fmaf", "fma", "__fmaf_rn"})


def partners(parts: Contraction) -> dict[str, str]:
    """Which sum of an output each sum of the one beyond the diagonal is, by their places.

    Raises NotLegal where the two have other sums.
    """
    line, out = parts.loop.line, parts.outputs
    if out.rows != out.columns:
        raise NotLegal("its outputs are not a square", line)
    around = [c for g in parts.axis.guard for c in g.conjuncts() if not is_bound(parts, c)]
    if around:
        raise NotLegal("not all outputs have sums", line)
    one, other = (_Rounds(parts, exchanged=way).added() for way in (False, True))
    found = {place: next((o for o in other if other[o] == one[place]), "") for place in one}
    if not all(found.values()):
        raise NotLegal("its outputs differ on both sides of the diagonal", line)
    return found


_Line = tuple[str, str]  # the place of a sum, and what is added to it


@dataclass(frozen=True)
class _Form:
    """An expression by its normal form; it is ``odd`` where it is the negative of that."""

    text: str
    odd: bool = False

    def __str__(self) -> str:
        return f"-{self.text}" if self.odd else self.text


class _Rounds:
    """The normal form of what a round does, with rows and columns ``exchanged`` or as they are."""

    def __init__(self, parts: Contraction, *, exchanged: bool) -> None:
        self.parts = parts
        self.types = parts.kernel.reading.types
        self.sums = tuple(parts.variables().values())
        self.own: Variable | None = None  # the sum that a line adds to
        self.lets = dict[Variable, _Form]()
        every = (*parts.operands, *parts.others)
        self.loads = {
            access.own: _Form(_named(operand, exchanged=exchanged))
            for operand in every for access in operand.accesses
        }  # fmt: skip

    def added(self) -> dict[str, list[str]]:
        """What is added to each sum in turn, by its place."""
        found = {variable.name: [variable.type.base] for variable in self.sums}
        for place, text in self._lines(self.parts.loop.body):
            found[place].append(text)
        return found

    def _lines(self, statement: Statement) -> list[_Line]:
        match statement:
            case Block(body=body):
                return [line for inner in body for line in self._lines(inner)]
            case Declare(variables=variables):
                for variable in variables:
                    self.lets[variable] = self._let(variable, statement)
                return []
            case Evaluate(
                expression=Assign(op=op, target=Name(variable=Variable() as own), value=value)
            ) if own in self.sums:
                self.own = own
                return [(own.name, f"{op} {self._form(value)}")]
            case Evaluate(expression=Step(op=op, target=Name(variable=Variable() as own))) if (
                own in self.sums
            ):
                return [(own.name, op)]
            case If(test=test, then=then, other=other, before=None):
                asked = self._form(test)
                inside = [(place, f"{asked} then {text}") for place, text in self._lines(then)]
                rest = self._lines(other) if other is not None else []
                return inside + [(place, f"{asked} else {text}") for place, text in rest]
        raise NotLegal(_UNKNOWN, statement.line)

    def _let(self, variable: Variable, statement: Statement) -> _Form:
        if variable.value is None or variable.type.depth or variable.type.reference:
            raise NotLegal(_UNKNOWN, statement.line)
        form = self._form(variable.value)
        if not form.odd or variable.type.base == "auto":
            return form
        return self._signed(form, named(variable.type.base, self.parts.kernel.unit.aliases))

    def _form(self, expr: Expr) -> _Form:
        if expr in self.loads:
            return self.loads[expr]
        match expr:
            case Literal(text=text):
                return _Form(text)
            case Name(name=name, variable=variable):
                return self._name(name, variable)
            case Member(base=base, field=field, arrow=False):
                return _Form(f"{self._form(base)}.{field}")
            case Unary(op="+", operand=operand):
                return self._form(operand)
            case Unary(op="-", operand=operand):
                return self._negative(self._form(operand))
            case Unary(op="!" | "~" as op, operand=operand):
                return _Form(f"{op}({self._form(operand)})")
            case Cast(type=kind, operand=operand):
                form = self._signed(self._form(operand), self.types.get(expr))
                return _Form(f"({kind}){form.text}", form.odd)
            case Binary(op=op, left=left, right=right):
                form = self._binary(op, self._form(left), self._form(right))
                return self._signed(form, self.types.get(expr))
            case Call(function=name, arguments=arguments):
                if not only_computes(self.parts.kernel, expr):
                    raise NotLegal(_UNKNOWN)
                return self._call(name, [self._form(one) for one in arguments])
        raise NotLegal(_UNKNOWN)

    def _name(self, name: str, variable: Variable | None) -> _Form:
        if variable is not None:
            if variable in self.lets:
                return self.lets[variable]
            if variable is self.own:
                return _Form("sum")
            if variable is self.parts.axis.variable or self._steady(variable):
                return _Form(name)
        raise NotLegal(f"`{name}` may differ on both sides of the diagonal")

    def _steady(self, variable: Variable) -> bool:
        """Whether a local is the same for all outputs that a launch has beside each other."""
        if variable.storage == "parameter":
            return True
        value = variable.value if variable in self.parts.effects.lasting else None
        return value is not None and self._is_steady(value)

    def _is_steady(self, expr: Expr) -> bool:
        if builtin(expr):
            return builtin(expr) == "blockIdx.z"
        match expr:
            case Name(name=name, variable=None):
                return name in self.parts.kernel.program.values
            case Name(variable=Variable() as variable):
                return self._steady(variable)
            case Literal() | Unary(op="+" | "-") | Cast() | Binary() | Choice():
                return all(map(self._is_steady, expr.parts))
            case Call(function="min" | "max", arguments=arguments):
                return all(map(self._is_steady, arguments))
            case Index(base=Name(name=name, variable=Variable(storage="parameter")), index=index):
                same, written = self.parts.effects.same, self.parts.kernel.reading.written
                return self._is_steady(index) and not any(same(name, other) for other in written)
        return False

    def _binary(self, op: str, one: _Form, other: _Form) -> _Form:
        if op == "-":
            return self._sum(one, self._negative(other))
        if op == "+":
            return self._sum(one, other)
        if op == "*":
            first, second = sorted((one.text, other.text))
            return _Form(f"({first} * {second})", one.odd != other.odd)
        if op == "/":
            return _Form(f"({one.text} / {other.text})", one.odd != other.odd)
        if op in ("==", "!=") and "0" in (one.text, other.text):
            one, other = _Form(one.text), _Form(other.text)
        if op in (">", ">="):
            op, one, other = {">": "<", ">=": "<="}[op], other, one
        spelled: Sequence[str] = (str(one), str(other))
        first, second = sorted(spelled) if op in _COMMUTING else spelled
        return _Form(f"({first} {op} {second})")

    def _sum(self, one: _Form, other: _Form) -> _Form:
        """A sum of two, the first of them by name in front and without a sign."""
        first, second = sorted((one, other), key=lambda form: form.text)
        if first.odd:
            return _Form(f"({first.text} + {self._negative(second)})", odd=True)
        return _Form(f"({first.text} + {second})")

    def _call(self, name: str, given: list[_Form]) -> _Form:
        if self.parts.kernel.unit.called(name, len(given)):  # the text's own, whatever its name
            return _Form(f"{name}({', '.join(map(str, given))})")
        if (name in _EVEN and len(given) == 1) or (name in _POWERS and given[1].text in _SQUARE):
            given[0] = _Form(given[0].text)
        if name in _FUSED and len(given) == 3:
            product = self._binary("*", given[0], given[1])
            return _Form(f"{name}({product}, {given[2]})")
        spelled = [str(form) for form in given]
        if name in _SYMMETRIC:
            spelled.sort()
        return _Form(f"{name}({', '.join(spelled)})")

    @staticmethod
    def _negative(form: _Form) -> _Form:
        return _Form(form.text, not form.odd)

    @staticmethod
    def _signed(form: _Form, kind: CType | None) -> _Form:
        """A value of a type; where that wraps the negative of a value may be another's."""
        wide = kind is not None and kind.integral and kind.signed and (kind.size or 0) >= _WORD
        keeps = wide or (kind is not None and kind.floating)
        return form if keeps or not form.odd else _Form(str(form))


def _named(operand: Operand, *, exchanged: bool) -> str:
    """An operand as both sides call it: whose element it is, and which array and place it has."""
    sides = {ROW: COLUMN, COLUMN: ROW}
    side, form = operand.side, operand.form
    if side:
        by = form.coefficient(side)
        if by is None:
            raise NotLegal("an index is not a sum of its parts", operand.accesses[0].line)
        form = form.without([side]) + by * Polynomial.symbol("@it")
        side = sides[side] if exchanged else side
    return f"{operand.array}[{form}]{side}"
