"""Tests of a thread's place in its block that all threads of the block answer alike are decided.

``if (threadIdx.x < 16)`` in a block of 16 threads turns nobody away. Numbers are those of 32 bits,
signed or not, as the kernel's types say.
"""

from __future__ import annotations

from collections.abc import Callable

from optiml_magic.kernels.editing import Node, edited, spread
from optiml_magic.kernels.expressions import (
    Binary,
    Cast,
    Choice,
    Expr,
    Literal,
    Name,
    Unary,
    builtin,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.scoped import quiet
from optiml_magic.kernels.primitives.type_names import names_in
from optiml_magic.kernels.tree import If, Statement, walk
from optiml_magic.kernels.types import named

_WORD, _BITS = 4, 32
_LOGIC = ("&&", "||")
_Swaps = dict[Node, Node | tuple[Statement, ...] | None]
_SUMS: dict[str, Callable[[int, int], int]] = {
    "+": int.__add__, "-": int.__sub__, "*": int.__mul__,
}  # fmt: skip
_TESTS: dict[str, Callable[[int, int], bool]] = {
    "<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__, "==": int.__eq__,
    "!=": int.__ne__,
}  # fmt: skip


@primitive
def foregone(kernel: Kernel) -> Kernel:
    """The kernel without such tests, and without what they never let through; it has some."""
    kernel = kernel.settled()
    tests, swaps = Tests(kernel), _Swaps()
    for statement in reversed([*walk(kernel.function.body)]):  # the innermost first
        for top in statement.expressions:
            for expr in reversed([*every(top)]):
                found = tests.simpler(expr.test) if isinstance(expr, Choice) else None
                if found is None or not isinstance(expr, Choice):
                    continue
                if not isinstance(found, bool) or _keeps_type(kernel, expr, found):
                    swaps[expr] = _chosen(expr, found, swaps)
        if isinstance(statement, If) and statement.before is None and not statement.constant:
            found = tests.simpler(statement.test)
            if found is not None and names_in(kernel, statement):
                continue  # a macro lasts beyond the branch, a type has its place
            if isinstance(found, bool):
                way = statement.then if found else statement.other
                swaps[statement] = spread(edited(way, swaps) if way is not None else None)
            elif found is not None:
                swaps[statement.test] = edited(found, swaps)
    if not swaps:
        raise NotLegal("no test of a thread's place in its block says the same for all of them")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _keeps_type(kernel: Kernel, choice: Choice, found: bool) -> bool:
    """Whether a way of a choice has its type: both are converted to one."""
    types, way = kernel.reading.types, choice.then if found else choice.other
    return types.get(way) is not None and types.get(way) == types.get(choice)


def _chosen(choice: Choice, found: Expr | bool, swaps: _Swaps) -> Expr:
    if isinstance(found, bool):
        return edited(choice.then if found else choice.other, swaps)
    swaps[choice.test] = edited(found, swaps)
    made = edited(choice, swaps)
    del swaps[choice.test]
    return made


class Tests:
    """What numbers and tests come to, of a place in a block."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.lasting = Effects(kernel).lasting
        self.places = {
            f"threadIdx.{axis}": range(width)
            for axis, width in zip("xyz", kernel.block, strict=True) if width is not None
        }  # fmt: skip

    def simpler(self, test: Expr) -> Expr | bool | None:
        """What is left of a test; None where that is all of it."""
        known = self._same(test)
        if known is not None:
            return known
        match test:
            case Unary(op="!", operand=operand):
                found = self.simpler(operand)
                if isinstance(found, bool) or found is None:
                    return None if found is None else not found
                return Unary(None, "!", found)
            case Binary(op="&&" | "||" as op, left=left, right=right):
                ways = [self.simpler(left), self.simpler(right)]
                decides = op == "||"
                if ways[0] is decides or (ways[1] is decides and quiet(left)):
                    return decides
                if ways == [None, None] or ways[1] is decides:
                    return None
                kept = [old if way is None else way
                        for old, way in zip((left, right), ways, strict=True)]  # fmt: skip
                rest = [part for part in kept if not isinstance(part, bool)]
                if len(rest) < len(kept):
                    return rest[0] if rest else not decides
                return Binary(None, op, *rest)
        return None

    def _same(self, test: Expr) -> bool | None:
        """What a test says, where it says the same of all threads of a block."""
        asked = self._asked(test)
        if len(asked) != 1:
            return None
        (name,) = asked
        if name not in self.places:
            return None
        found = {self.value(test, {name: at}) for at in self.places[name]}
        said = {None if one is None else bool(one[0]) for one in found}
        return said.pop() if len(said) == 1 else None

    def _asked(self, expr: Expr) -> set[str]:
        """The built-in variables that an expression comes from."""
        found = set[str]()
        for part in every(expr):
            if builtin(part):
                found.add(builtin(part))
            elif isinstance(part, Name) and part.variable in self.lasting:
                assert part.variable is not None
                value = part.variable.value
                found |= self._asked(value) if value is not None else set()
        return found

    def value(self, expr: Expr, at: dict[str, int]) -> tuple[int, bool] | None:
        """A number and whether it is signed, None where that is not known."""
        name = builtin(expr)
        if name:
            return (at[name], False) if name in at else None
        match expr:
            case Literal(text=words, value=int(value)):
                signed = "u" not in words.lower()
                plain = words.lower().rstrip("u").isdigit()
                return (value, signed) if plain and value < 1 << (_BITS - signed) else None
            case Name(variable=v) if v in self.lasting and v is not None and v.value is not None:
                plain = not v.array and not v.type.depth
                return self._as(v.type.base, v.value, at) if plain else None
            case Cast(type=words, operand=operand):
                return self._as(words, operand, at)
            case Unary(op="-" | "+" | "!" as op, operand=operand):
                inner = self.value(operand, at)
                if inner is None or op == "+":
                    return inner
                return (int(not inner[0]), True) if op == "!" else _held(-inner[0], inner[1])
            case Binary(op=op, left=left, right=right):
                one, other = self.value(left, at), self.value(right, at)
                if one is None or other is None:
                    return None
                return _combined(op, one, other)
        return None

    def _as(self, words: str, expr: Expr, at: dict[str, int]) -> tuple[int, bool] | None:
        kind, inner = named(words, self.kernel.unit.aliases), self.value(expr, at)
        whole = kind.integral and kind.kind == "int" and kind.size == _WORD
        if inner is None or not whole:
            return None
        number = inner[0] % (1 << _BITS)
        if kind.signed and number >> (_BITS - 1):
            number -= 1 << _BITS
        return number, kind.signed


def _combined(op: str, one: tuple[int, bool], other: tuple[int, bool]) -> tuple[int, bool] | None:
    if op in _LOGIC:
        both = bool(one[0]) and bool(other[0])
        return int(both if op == "&&" else bool(one[0]) or bool(other[0])), True
    signed = one[1] and other[1]
    a, b = ((n[0] if signed else n[0] % (1 << _BITS)) for n in (one, other))
    if op in _TESTS:
        return int(_TESTS[op](a, b)), True
    if op in _SUMS:
        return _held(_SUMS[op](a, b), signed)
    if op in ("/", "%") and a >= 0 and b > 0:
        return (a // b if op == "/" else a % b), signed
    return None


def _held(number: int, signed: bool) -> tuple[int, bool] | None:
    """A number as 32 bits hold it; None where signed ones do not."""
    if not signed:
        return number % (1 << _BITS), False
    return (number, True) if -(1 << (_BITS - 1)) <= number < 1 << (_BITS - 1) else None
