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

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
    Literal,
    Unary,
    every,
)
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.deciding import ANGLES, REASON, line_decided
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.fast_kinds import (
    BASES,
    FAST,
    KINDS,
    ROOTS,
    TURNS,
    Kind,
    beside,
    float_sides,
    half_turns,
    is_power,
    is_single,
    kind_of,
    of_headers,
    terms,
)
from optiml_magic.kernels.primitives.places import functions_of
from optiml_magic.kernels.tree import Block, Function, expressions, walk

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
_SHORT = 3  # the greatest power that is written out: ours
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
    found = {kind_of(kernel, e) for e in every_expression}
    return tuple(kind for kind in KINDS if kind in found)


def of_kind(kernel: Kernel, kind: Kind) -> list[Expr]:
    """What in a kernel is of a kind."""
    every_expression = (e for f in _functions(kernel) for e in expressions(f.body))
    return [e for e in every_expression if kind_of(kernel, e) == kind]


def repeated(kernel: Kernel, kind: Kind) -> bool:
    """Whether something of a kind is done in each round of a loop, or by a kernel without loops."""
    body = kernel.function.body
    loops = loops_in(body)
    inside = [e for loop in loops for e in expressions(loop)] if loops else [*expressions(body)]
    named = {bare(e.function) for e in inside if isinstance(e, Call)}
    own = [e for f in _functions(kernel) if f.name.rpartition("::")[2] in named
           for e in expressions(f.body)]  # fmt: skip
    return any(kind_of(kernel, e) == kind for e in (*inside, *own))


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
        and bare(e.function).removesuffix("f") in ANGLES
        and is_single(kernel, e)
        and kind_of(kernel, e) != "turns"
    )
    return min(lines, default=0)


def _functions(kernel: Kernel) -> Iterator[Function]:
    """The kernel and the functions whose calls may be exchanged, but for what stands for these."""
    yield from (f for f in functions_of(kernel) if f.name not in _HELPERS)


class _Forms:
    """The fast forms of one function's expressions, innermost first."""

    def __init__(self, kernel: Kernel, kinds: Collection[Kind]) -> None:
        self.kernel = kernel
        self.kinds = kinds
        self.made: dict[Node, Node] = {}
        self.called: set[str] = set()  # those of _HELPERS that the forms call
        self.inverted: list[Expr] = []  # divisions by roots

    def of(self, function: Function) -> dict[Node, Node]:
        chosen = [e for e in expressions(function.body) if kind_of(self.kernel, e) in self.kinds]
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
            case Call(arguments=(base, Literal(value=value))) if value is not None and is_power(
                value
            ):
                return self._raised(e, edited(base, self.made), value)
            case Call(arguments=(base, power)):
                return _called("fast_pow", edited(base, self.made), edited(power, self.made))
            case Call(function=name, arguments=(only,)):
                if bare(name) in BASES:
                    return _called("fast_exp2", self._times(only, math.log2(BASES[bare(name)])))
                inner = edited(only, self.made)
                if bare(name) in FAST:
                    return _called(FAST[bare(name)], inner)
                if bare(name) in ROOTS:
                    return _called(ROOTS[bare(name)], inner)
                turns = half_turns(only)
                if bare(name) in TURNS and turns is not None:
                    return _called(TURNS[bare(name)], edited(turns, self.made))
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
            case Unary(op="-", operand=operand) if is_single(self.kernel, operand):
                return self._times(operand, -by)
            case Binary(op="*", left=left, right=right) if self._takes_in(left) and is_single(
                self.kernel, e
            ):
                return Binary(None, "*", self._times(left, by), edited(right, self.made))
            case Binary(op="*", left=left, right=right) if self._takes_in(right) and is_single(
                self.kernel, e
            ):
                return Binary(None, "*", edited(left, self.made), self._times(right, by))
            case Binary(op="/", left=left, right=Literal(value=value)) if value and self._takes_in(
                e
            ):
                return self._times(left, by / value)
            case Binary(op="/", left=left, right=right) if self._takes_in(left) and is_single(
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
                return is_single(self.kernel, e) and inside
            case Binary(op="/", left=left, right=right):
                return is_single(self.kernel, e) and float_sides(self.kernel, left, right)
        return False

    def _over(self, above: Expr, right: Expr, whole: Expr) -> Expr:
        if "divisions" in self.kinds:
            return self._divided(above, right, whole)
        return Binary(None, "/", above, edited(right, self.made))

    def _summed(self, e: Binary) -> Expr:
        """A sum whose first term is one that is no product."""
        left = terms(self.kernel, e)
        sign, first = left.pop(beside(self.kernel, e))
        found = edited(first, self.made)
        if sign == "-":
            found = Unary(None, "-", found)
        for op, term in left:
            found = Binary(None, op, found, edited(term, self.made))
        return found

    def _divided(self, above: Expr, right: Expr, whole: Expr) -> Expr:
        """``above / right``; by a constant it is a product, by a root one with its reciprocal."""
        if isinstance(right, Literal):
            return Binary(None, "*", above, Binary(None, "/", _ONE, right))
        root = isinstance(right, Call) and bare(right.function) in ("sqrtf", "sqrt")
        if isinstance(right, Call) and root and of_headers(self.kernel, right):
            self.inverted.append(whole)
            inner = edited(right.arguments[0], self.made)
            own = "roots" in self.kinds and is_single(self.kernel, right.arguments[0])
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
            single = is_single(self.kernel, call)
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
