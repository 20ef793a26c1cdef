"""P25, fast forms: functions and divisions that are exact to the last bits become short ones.

What they are off by: CUDA C++ Programming Guide, "Mathematical Functions". ``__logf`` by 2^-21
near one, ``__powf`` by what ``__log2f`` is off times the power, of what is above zero alone. No
option of a compiler is set: each of them stands in the text.
Roots are right to 2^-22, powers of two to 2 ulp and reciprocals to 1 ulp, PTX ISA, "sqrt", "rsqrt",
"ex2" and "rcp"; what is less than 2^-126 is taken for zero, as by ``-ftz=true``, since to scale it
takes as long again as the instruction, which ``__expf`` and ``__fdividef`` do as well. An
exponential is a power of two, off by 2 ulp and more with its argument, as ``__expf`` is; the
logarithm of its base goes into a constant factor of the argument, or into its divisor, which may be
the same in all rounds of a loop. A sum of products begins with what it adds beside them, so that
the first of them takes no instruction of its own: ``a * b + c * d + e`` is two fused multiply-adds
as ``e + a * b + c * d``. ``sinpif`` and
``cospif`` are right to 2 ulp at any angle, and need no table of the digits of pi.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Literal as Word

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Expr,
    Index,
    Literal,
    Member,
    Name,
    Step,
    Unary,
    every,
)
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.deciding import REASON, line_decided
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.places import functions_of
from optiml_magic.kernels.tree import Block, Function, expressions, walk

Kind = Word["functions", "tanh", "roots", "divisions", "powers", "turns", "sums"]
KINDS: tuple[Kind, ...] = ("functions", "tanh", "roots", "divisions", "powers", "turns", "sums")
_ROOTS = {"sqrtf": "fast_sqrt", "sqrt": "fast_sqrt", "rsqrtf": "fast_rsqrt", "rsqrt": "fast_rsqrt"}
_HELPERS = {
    name: f"""\
__device__ __forceinline__ float {name}(float x) {{
    float {made};
    asm("{instruction}.approx.ftz.f32 %0, %1;" : "=f"({made}) : "f"(x));
    return {made};
}}
"""
    for name, instruction, made in (
        ("fast_sqrt", "sqrt", "root"),
        ("fast_rsqrt", "rsqrt", "root"),
        ("fast_exp2", "ex2", "power"),
        ("fast_inverse", "rcp", "inverse"),
    )
} | {
    "fast_pow": """\
__device__ __forceinline__ float fast_pow(float x, float y) {
    return x > 0.0f ? __powf(x, y) : powf(x, y);
}
""",
    "whole_power": """\
template <int POWER, class T> __device__ __forceinline__ T whole_power(T x) {
    T whole = POWER % 2 ? x : T(1);
    #pragma unroll
    for (int left = POWER / 2; left > 0; left /= 2) {
        x *= x;
        if (left % 2) whole *= x;
    }
    return whole;
}
""",
}
_BASES = {
    "expf": math.e, "exp": math.e, "__expf": math.e, "exp2f": 2.0, "exp2": 2.0,
    "exp10f": 10.0, "exp10": 10.0, "__exp10f": 10.0,
}  # fmt: skip
_FAST = {
    "logf": "__logf", "log": "__logf", "log2f": "__log2f", "log2": "__log2f",
    "log10f": "__log10f", "log10": "__log10f",
}  # fmt: skip
_ANGLES = frozenset({"sinf", "cosf", "tanf", "sin", "cos", "tan"})
_TURNS = {"sinf": "sinpif", "sin": "sinpif", "cosf": "cospif", "cos": "cospif"}
_NEAR = 1e-6  # of itself, by which a constant that stands for half turns may be off: ours
_MOST, _SHORT = 16, 3  # the greatest power that becomes products, and that is written out: ours
_LEAST = 1e-20  # of the size of a constant factor that takes in another, up to its inverse: ours
_ONE, _TWO = Literal(None, "1.0f", 1.0), Literal(None, "2.0f", 2.0)


@primitive
def fast(kernel: Kernel, kinds: Collection[Kind]) -> Kernel:
    """The kernel, and the functions that it calls, with all of these kinds in a fast form."""
    line = line_decided(kernel, [e for kind in kinds for e in of_kind(kernel, kind)])
    if line:
        raise NotLegal(REASON, line)
    bodies: dict[Function, Block] = {}
    made = set[str]()
    for function in _functions(kernel):
        forms = _Forms(kernel, kinds)
        swaps = forms.of(function)
        made |= forms.called
        if swaps:
            bodies[function] = edited(function.body, swaps)
    if not bodies:
        raise NotLegal("nothing has a fast form")
    for name in sorted(made):
        own = kernel.unit.called(name, 2 if name == "fast_pow" else 1)
        if own and _HELPERS[name].strip() not in kernel.program.text:
            raise NotLegal(f"`{name}` is another function here", own[0].line)
    return kernel.with_bodies(bodies, [_HELPERS[name] for name in sorted(made)])


def kinds_in(kernel: Kernel) -> tuple[Kind, ...]:
    """The kinds that something in a kernel is of."""
    every_expression = (e for f in _functions(kernel) for e in expressions(f.body))
    found = {_kind(kernel, e) for e in every_expression}
    return tuple(kind for kind in KINDS if kind in found)


def of_kind(kernel: Kernel, kind: Kind) -> list[Expr]:
    """What in a kernel is of a kind."""
    every_expression = (e for f in _functions(kernel) for e in expressions(f.body))
    return [e for e in every_expression if _kind(kernel, e) == kind]


def repeated(kernel: Kernel, kind: Kind) -> bool:
    """Whether something of a kind is done in each round of a loop, or by a kernel without loops."""
    body = kernel.function.body
    loops = loops_in(body)
    inside = [e for loop in loops for e in expressions(loop)] if loops else [*expressions(body)]
    named = {bare(e.function) for e in inside if isinstance(e, Call)}
    own = [e for f in _functions(kernel) if f.name.rpartition("::")[2] in named
           for e in expressions(f.body)]  # fmt: skip
    return any(_kind(kernel, e) == kind for e in (*inside, *own))


def angles(kernel: Kernel) -> int:
    """The first line that asks for the sine of what may be any angle; 0 where none does.

    ``__sinf`` is right to 2^-21 between -pi and pi alone, and no range of a float is followed.
    """
    lines = (
        statement.line
        for function in _functions(kernel)
        for statement in walk(function.body)
        for top in statement.expressions
        for e in every(top)
        if isinstance(e, Call)
        and bare(e.function) in _ANGLES
        and _single(kernel, e)
        and _kind(kernel, e) != "turns"
    )
    return min(lines, default=0)


def half_turns(angle: Expr) -> Expr | None:
    """What times pi is an angle, ``x + x`` of ``2.0f * 3.14159265f * x``; None where nothing is."""
    match angle:
        case Binary(op="/", left=left, right=right):
            above = half_turns(left)
            return Binary(None, "/", above, right) if above is not None else None
        case Unary(op="-", operand=operand):
            inner = half_turns(operand)
            return Unary(None, "-", inner) if inner is not None else None
    factors = [*_factors(angle)]
    told = [e.value for e in factors if isinstance(e, Literal)]
    constants = [value for value in told if isinstance(value, int | float)]
    others = [e for e in factors if not isinstance(e, Literal)]
    if not constants or len(constants) != len(told) or not others:
        return None
    turns = math.prod(constants) / math.pi
    near = round(2 * turns) / 2
    if not near or abs(turns - near) > _NEAR * abs(near):
        return None
    found: Expr = Literal(None, f"{near}f", near)
    for factor in others:
        found = Binary(None, "*", found, factor)
    return found


def _factors(e: Expr) -> Iterator[Expr]:
    match e:
        case Binary(op="*", left=left, right=right):
            yield from _factors(left)
            yield from _factors(right)
        case Unary(op="-", operand=Literal(value=value, text=text)) if value is not None:
            yield Literal(None, f"-{text}", -value)
        case _:
            yield e


def _functions(kernel: Kernel) -> Iterator[Function]:
    """The kernel and the functions whose calls may be exchanged, but for what stands for these."""
    yield from (f for f in functions_of(kernel) if f.name not in _HELPERS)


def _kind(kernel: Kernel, e: Expr) -> Kind | None:
    match e:
        case Call(function=name, arguments=(only,)):
            known = _library(kernel, e) and _single(kernel, only)
            if known and (bare(name) in _FAST or bare(name) in _BASES):
                return "functions"
            if known and bare(name) in _ROOTS:
                return "roots"
            if known and bare(name) in _TURNS and half_turns(only) is not None:
                return "turns"
            return "tanh" if known and bare(name) in ("tanhf", "tanh") else None
        case Call(function=name, arguments=(base, power)):
            if bare(name) not in ("powf", "pow") or not _library(kernel, e):
                return None
            value = power.value if isinstance(power, Literal) else None
            if value is not None and _power(value):
                moves = any(isinstance(part, Assign | Step) for part in every(base))
                plain = _plain(base) or (value > _SHORT and not moves)
                return "powers" if plain and _same_type(kernel, e, base) else None
            whole = bare(name) == "powf" and _float_sides(kernel, power)
            return (
                "functions" if _single(kernel, base) and (whole or _single(kernel, power)) else None
            )
        case Binary(op="+" | "-") if _single(kernel, e):
            return "sums" if _beside(kernel, e) else None
        case Binary(op="/", left=Literal(), right=Literal()):
            return None
        case Binary(op="/", left=left, right=right) if _single(kernel, e):
            return "divisions" if _worth(right) and _float_sides(kernel, left, right) else None
        case Assign(op="/=", target=Name() as left, value=right) if _single(kernel, left):
            return "divisions" if _worth(right) and _float_sides(kernel, left, right) else None
    return None


def _terms(kernel: Kernel, e: Expr) -> list[tuple[str, Expr]]:
    """What a sum of floats adds and subtracts, in this order."""
    match e:
        case Binary(op="+" | "-" as sign, left=left, right=right) if _single(kernel, e):
            return [*_terms(kernel, left), (sign, right)]
    return [("+", e)]


def _beside(kernel: Kernel, e: Expr) -> int:
    """Which term of a sum that begins with two products is none; 0 where all of them are."""
    terms = _terms(kernel, e)
    others = [
        at
        for at, (sign, term) in enumerate(terms)
        if not (isinstance(term, Binary) and term.op == "*" and _single(kernel, term))
        if sign == "+" or _single(kernel, term) or isinstance(term, Literal)
    ]
    return others[0] if others and others[0] > 1 else 0


def _single(kernel: Kernel, e: Expr) -> bool:
    kind = kernel.reading.types.get(e)
    return kind is not None and kind.floating and kind.size == 4


def _float_sides(kernel: Kernel, *sides: Expr) -> bool:
    """Whether nothing is computed in double: a whole number is converted to float."""
    kinds = [kernel.reading.types.get(side) for side in sides]
    return all(k is not None and (k.integral or (k.floating and k.size == 4)) for k in kinds)


def _same_type(kernel: Kernel, one: Expr, other: Expr) -> bool:
    kinds = [kernel.reading.types.get(e) for e in (one, other)]
    return kinds[0] is not None and kinds[0].floating and kinds[0] == kinds[1]


def _library(kernel: Kernel, call: Call) -> bool:
    """Whether a function is that of CUDA's headers, not one of the text."""
    return not kernel.unit.called(call.function, len(call.arguments))


def _worth(divisor: Expr) -> bool:
    """A division by a power of two is a product already."""
    value = divisor.value if isinstance(divisor, Literal) else None
    return not isinstance(value, int | float) or not value or math.frexp(value)[0] != 0.5


def _plain(e: Expr) -> bool:
    """Whether to compute it twice does nothing twice."""
    kept = (Name, Literal, Index, Member, Binary, Unary, Cast)
    return all(isinstance(part, kept) for part in every(e))


def _power(value: float) -> bool:
    return value in (0.5, 1.5) or (value in range(2, _MOST + 1))


class _Forms:
    """The fast forms of one function's expressions, innermost first."""

    def __init__(self, kernel: Kernel, kinds: Collection[Kind]) -> None:
        self.kernel = kernel
        self.kinds = kinds
        self.made: dict[Node, Node] = {}
        self.called: set[str] = set()  # those of _HELPERS that the forms call
        self.inverted: list[Expr] = []  # divisions by roots

    def of(self, function: Function) -> dict[Node, Node]:
        chosen = [e for e in expressions(function.body) if _kind(self.kernel, e) in self.kinds]
        for e in sorted(chosen, key=lambda e: len([*every(e)])):
            self.made[e] = self._form(e)
        gone = {part for whole in self.inverted for part in whole.parts}
        forms = [form for e, form in self.made.items() if e not in gone and isinstance(form, Expr)]
        self.called = {e.function for form in forms for e in every(form)
                      if isinstance(e, Call)} & {*_HELPERS}  # fmt: skip
        return self.made

    def _form(self, e: Expr) -> Expr:
        match e:
            case Assign(target=target, value=value):
                return replace(e, span=None, op="=", value=self._divided(target, value, e))
            case Binary(op="+" | "-"):
                return self._summed(e)
            case Binary(left=left, right=right):
                return self._divided(edited(left, self.made), right, e)
            case Call(arguments=(base, Literal(value=value))) if value is not None and _power(
                value
            ):
                return self._raised(e, edited(base, self.made), value)
            case Call(arguments=(base, power)):
                return _called("fast_pow", edited(base, self.made), edited(power, self.made))
            case Call(function=name, arguments=(only,)):
                if bare(name) in _BASES:
                    return _called("fast_exp2", self._times(only, math.log2(_BASES[bare(name)])))
                inner = edited(only, self.made)
                if bare(name) in _FAST:
                    return _called(_FAST[bare(name)], inner)
                if bare(name) in _ROOTS:
                    return _called(_ROOTS[bare(name)], inner)
                turns = half_turns(only)
                if bare(name) in _TURNS and turns is not None:
                    return _called(_TURNS[bare(name)], edited(turns, self.made))
                # tanh x = 1 - 2 / (1 + e^2x): of one use of x, and right where e^2x is infinite
                power = _called("fast_exp2", self._times(only, 2 * math.log2(math.e)))
                part = _called("fast_inverse", Binary(None, "+", _ONE, power))
                return Binary(None, "-", _ONE, Binary(None, "*", _TWO, part))
        raise TypeError(type(e).__name__)

    def _times(self, e: Expr, by: float) -> Expr:
        """A number of an argument by a constant, which a constant factor or a divisor takes in."""
        match e:
            case _ if by == 1.0:
                return edited(e, self.made)
            case Literal(value=value) if value is not None:
                return _float(by * value)
            case Unary(op="-", operand=operand) if _single(self.kernel, operand):
                return self._times(operand, -by)
            case Binary(op="*", left=left, right=right) if self._takes_in(left) and _single(
                self.kernel, e
            ):
                return Binary(None, "*", self._times(left, by), edited(right, self.made))
            case Binary(op="*", left=left, right=right) if self._takes_in(right) and _single(
                self.kernel, e
            ):
                return Binary(None, "*", edited(left, self.made), self._times(right, by))
            case Binary(op="/", left=left, right=Literal(value=value)) if value and self._takes_in(
                e
            ):
                return self._times(left, by / value)
            case Binary(op="/", left=left, right=right) if self._takes_in(left) and _single(
                self.kernel, e
            ):
                return self._over(self._times(left, by), right, e)
            case Binary(op="/", left=left, right=right) if self._takes_in(e):
                return Binary(None, "*", edited(left, self.made), self._over(_float(by), right, e))
        return Binary(None, "*", edited(e, self.made), _float(by))

    def _takes_in(self, e: Expr) -> bool:
        """Whether a constant goes into a factor of a product, or into a divisor."""
        match e:
            case Literal(value=value):
                return value is not None and _LEAST < abs(value) < 1 / _LEAST
            case Unary(op="-", operand=operand):
                return self._takes_in(operand)
            case Binary(op="*", left=left, right=right):
                inside = self._takes_in(left) or self._takes_in(right)
                return _single(self.kernel, e) and inside
            case Binary(op="/", left=left, right=right):
                return _single(self.kernel, e) and _float_sides(self.kernel, left, right)
        return False

    def _over(self, above: Expr, right: Expr, whole: Expr) -> Expr:
        if "divisions" in self.kinds:
            return self._divided(above, right, whole)
        return Binary(None, "/", above, edited(right, self.made))

    def _summed(self, e: Binary) -> Expr:
        """A sum whose first term is one that is no product."""
        terms = _terms(self.kernel, e)
        sign, first = terms.pop(_beside(self.kernel, e))
        found = edited(first, self.made)
        if sign == "-":
            found = Unary(None, "-", found)
        for op, term in terms:
            found = Binary(None, op, found, edited(term, self.made))
        return found

    def _divided(self, above: Expr, right: Expr, whole: Expr) -> Expr:
        """``above / right``; by a constant it is a product, by a root one with its reciprocal."""
        if isinstance(right, Literal):
            return Binary(None, "*", above, Binary(None, "/", _ONE, right))
        root = isinstance(right, Call) and bare(right.function) in ("sqrtf", "sqrt")
        if isinstance(right, Call) and root and _library(self.kernel, right):
            self.inverted.append(whole)
            inner = edited(right.arguments[0], self.made)
            own = "roots" in self.kinds and _single(self.kernel, right.arguments[0])
            inverse = _called("fast_rsqrt", inner) if own else _called("rsqrtf", inner)
        else:
            inverse = _called("fast_inverse", edited(right, self.made))
        one = isinstance(above, Literal) and above.value == 1
        return inverse if one else Binary(None, "*", above, inverse)

    def _raised(self, call: Call, base: Expr, value: float) -> Expr:
        """A power as products of its base, and of its square root for a half."""
        if value > _SHORT:
            return replace(_called("whole_power", base), template=(str(int(value)),))
        parts = [base] * int(value)
        if value % 1:
            single = _single(self.kernel, call)
            parts.append(_called("sqrtf" if single else "sqrt", base))
        found = parts[0]
        for part in parts[1:]:
            found = Binary(None, "*", found, part)
        return found


def _called(name: str, *arguments: Expr) -> Call:
    return Call(None, name, arguments)


def _float(value: float) -> Literal:
    text = f"{value:.9g}"
    return Literal(None, (text if "." in text or "e" in text else f"{text}.0") + "f", value)
