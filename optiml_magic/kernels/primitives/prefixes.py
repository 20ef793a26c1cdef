"""What a block's threads combine in shared memory, as prefixes of the elements they began with.

The threads of a block, whose number is known, take each step together. Whole numbers that depend
on nothing else are computed for each thread; of what threads combine it is kept which elements are
in it, a bit each. So no spelling of a scan has to be known: one that doubles its distance, with one
array or two, or goes up a tree and down again, leaves each thread with all elements up to its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Index,
    Literal,
    Name,
    Step,
    Unary,
    builtin,
)
from optiml_magic.kernels.functions import BLOCK_BARRIERS, bare
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    If,
    Loop,
    Statement,
    Variable,
)
from optiml_magic.kernels.types import CType, named

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_ROUNDS = 4096  # of all loops together: ours
_NUMBERS: Mapping[str, Callable[[Numbers, Numbers], Numbers]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "<<": np.left_shift, ">>": np.right_shift,
    "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
}  # fmt: skip
_TESTS: Mapping[str, Callable[[Numbers, Numbers], Mask]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
_EXTREMES = {"fmaxf": "max", "fmax": "max", "max": "max", "fminf": "min", "fmin": "min",
             "min": "min"}  # fmt: skip
_WORD, _SIGN = 1 << 32, 1 << 31


@dataclass(frozen=True, eq=False)
class Parts:
    """Which elements are in a value, for each thread; one without any may be of any ``kind``."""

    bits: Mask
    kind: CType | None = None


Value = Numbers | Parts | None  # None of what is not followed


@dataclass(eq=False)
class Shelf:
    """A shared array: what is in its elements, where there is anything, and who came since."""

    type: CType
    extents: tuple[int, ...]
    bits: Mask
    filled: Mask
    stored: Numbers
    loaded: Numbers


def _numbers(found: Mask) -> Numbers:
    return np.where(found, np.int64(1), np.int64(0))


class Prefixes:
    """Goes through statements as all threads do. Raises NotLegal for what it cannot follow."""

    def __init__(self, kernel: Kernel, count: int, elements: int) -> None:
        self.kernel = kernel
        self.count = count
        self.elements = elements
        self.threads = np.arange(count, dtype=np.int64)
        self.all = np.ones(count, bool)
        self.env: dict[Variable, Value] = {}
        self.shelves: dict[Variable, Shelf] = {}
        self.ops: set[str] = set()
        self.empty = False  # whether a zero stands for no element
        self.rounds = 0
        self.kinds: dict[Expr, CType] = {}  # of what compound assignments compute

    # -- shared memory

    def shelf(self, variable: Variable) -> None:
        """A shared array is declared."""
        extents = []
        for extent in variable.extents:
            found = self.value(extent, self.all) if extent is not None else None
            if not isinstance(found, np.ndarray):
                raise NotLegal(f"how long `{variable.name}` is is not known", variable.line)
            extents.append(int(found[0]))
        size = int(np.prod(extents))
        if not extents or variable.type.depth or size > 4 * self.elements:
            raise NotLegal(f"`{variable.name}` is not followed", variable.line)
        kind = named(variable.type.base, self.kernel.unit.aliases)
        empty, nobody = np.zeros((size, self.elements), bool), np.full(size, -1, np.int64)
        self.shelves[variable] = Shelf(
            kind, tuple(extents), empty, np.zeros(size, bool), nobody, nobody.copy()
        )

    def place(self, expr: Expr, mask: Mask) -> tuple[Shelf, Numbers] | None:
        """Which element of a shared array each thread asks for."""
        indices = list[Expr]()
        while isinstance(expr, Index):
            indices.insert(0, expr.index)
            expr = expr.base
        if not isinstance(expr, Name) or expr.variable not in self.shelves or not indices:
            return None
        shelf = self.shelves[expr.variable]
        if len(indices) != len(shelf.extents):
            raise NotLegal(f"a part of `{expr.name}` is not followed")
        at = np.zeros(self.count, np.int64)
        for index, extent in zip(indices, shelf.extents, strict=True):
            found = self.value(index, mask)
            if not isinstance(found, np.ndarray):
                raise NotLegal(f"where it asks for `{expr.name}` is not known")
            if bool(np.any((found[mask] < 0) | (found[mask] >= extent))):
                raise NotLegal(f"it asks for what is not in `{expr.name}`")
            at = at * extent + found
        return shelf, at

    def load(self, shelf: Shelf, at: Numbers, mask: Mask) -> Parts:
        for thread in np.flatnonzero(mask):
            element = at[thread]
            if not shelf.filled[element] or shelf.stored[element] not in (-1, thread):
                raise NotLegal("a thread loads what another may not have stored yet")
            seen = shelf.loaded[element]
            shelf.loaded[element] = thread if seen in (-1, thread) else -2
        safe = np.where(mask, at, 0)
        return Parts(shelf.bits[safe] & mask[:, None], shelf.type)

    def store(self, shelf: Shelf, at: Numbers, value: Parts, mask: Mask) -> None:
        self._one_kind(value.kind, shelf.type)
        for thread in np.flatnonzero(mask):
            element = at[thread]
            if shelf.stored[element] not in (-1, thread) or shelf.loaded[element] not in (
                -1,
                thread,
            ):
                raise NotLegal("a thread stores what another may still load")
            shelf.stored[element] = thread
        own = at[mask]
        shelf.bits[own], shelf.filled[own] = value.bits[mask], True

    def wait(self, mask: Mask) -> None:
        if not bool(mask.all()):
            raise NotLegal("not all threads come to a barrier")
        for shelf in self.shelves.values():
            shelf.stored[:], shelf.loaded[:] = -1, -1

    # -- expressions

    def value(self, expr: Expr, mask: Mask) -> Value:
        """What an expression is for each thread that comes to it."""
        match expr:
            case Literal(value=number) if isinstance(number, int) or number == 0:
                return np.full(self.count, int(number or 0), np.int64)
            case Name(variable=own) if own is not None:
                return self.env.get(own)
            case Index():
                place = self.place(expr, mask)
                return self.load(*place, mask) if place is not None else self._plain(expr, mask)
            case Unary(op="-" | "+" as op, operand=operand):
                found = self.value(operand, mask)
                if isinstance(found, np.ndarray):
                    return self._wrapped(expr, found if op == "+" else -found)
            case Unary(op="!", operand=operand):
                found = self.value(operand, mask)
                if isinstance(found, np.ndarray):
                    return _numbers(found == 0)
            case Binary():
                return self._binary(expr, mask)
            case Choice(test=test, then=then, other=other):
                found = self.value(test, mask)
                if isinstance(found, np.ndarray):
                    true = mask & (found != 0)
                    return self._either(true, self.value(then, true),
                                        self.value(other, mask & ~true))  # fmt: skip
            case Cast(operand=operand):
                found = self.value(operand, mask)
                if isinstance(found, np.ndarray):
                    return self._wrapped(expr, found)
                if found is not None and self._kind(expr) == self._kind(operand):
                    return found
            case Call(function=name, arguments=(left, right)) if bare(
                name
            ) in _EXTREMES and not self.kernel.unit.called(name, 2):
                sides = self.value(left, mask), self.value(right, mask)
                if all(isinstance(side, Parts) for side in sides):
                    return self._combined(_EXTREMES[bare(name)], *sides, mask)
        if builtin(expr) == "threadIdx.x":
            return self.threads
        if builtin(expr) == "blockDim.x":
            return np.full(self.count, self.count, np.int64)
        return self._plain(expr, mask)

    def _plain(self, expr: Expr, mask: Mask) -> Value:
        """What is not followed, in which nothing may be that is."""
        if any(isinstance(self.value(part, mask), Parts) for part in expr.parts):
            raise NotLegal("what is combined goes into something else")
        return None

    def _kind(self, expr: Expr) -> CType | None:
        return self.kinds.get(expr) or self.kernel.reading.types.get(expr)

    def _unsigned(self, *exprs: Expr) -> bool:
        """Whether whole numbers meet as such without a sign."""
        kinds = [self._kind(e) for e in exprs]
        if any(k is None or not (k.integral or k.kind == "bool") for k in kinds):
            raise NotLegal("the type of a number is not known")
        if any((k.size or 0) > 4 for k in kinds if k is not None):
            raise NotLegal("numbers of 64 bits are not followed")
        return any(not k.signed and k.size == 4 for k in kinds if k is not None and k.integral)

    def _wrapped(self, expr: Expr, found: Numbers) -> Value:
        kind = self._kind(expr)
        if kind is None or kind.floating or not kind.integral:
            return found if not found.any() else None  # a zero is a zero of any type
        if self._unsigned(expr):
            return found % _WORD
        if bool(np.any((found < -_SIGN) | (found >= _SIGN))) or kind.size != 4:
            raise NotLegal("a number does not fit its type")
        return found

    def _binary(self, expr: Binary, mask: Mask) -> Value:
        left = self.value(expr.left, mask)
        if expr.op in ("&&", "||") and isinstance(left, np.ndarray):
            goes_on = mask & ((left != 0) == (expr.op == "&&"))
            right = self.value(expr.right, goes_on)
            if isinstance(right, np.ndarray):
                both = (left != 0) & (right != 0) if expr.op == "&&" else (left != 0) | (right != 0)
                return _numbers(both)
            return None
        right = self.value(expr.right, mask)
        if isinstance(left, Parts) or isinstance(right, Parts):
            return self._combined(expr.op, left, right, mask)
        if left is None or right is None:
            return None
        if expr.op in _TESTS:
            if self._unsigned(expr.left, expr.right):
                left, right = left % _WORD, right % _WORD
            return _numbers(_TESTS[expr.op](left, right))
        if expr.op in ("/", "%"):
            if bool(np.any((left[mask] < 0) | (right[mask] <= 0))):
                raise NotLegal("a number below zero is divided")
            divisor = np.where(mask, right, 1)
            return left // divisor if expr.op == "/" else left % divisor
        if expr.op not in _NUMBERS or (expr.op in ("<<", ">>") and bool(
            np.any((right[mask] < 0) | (right[mask] > 31) | (left[mask] < 0))
        )):  # fmt: skip
            raise NotLegal(f"`{expr.op}` of whole numbers is not followed")
        return self._wrapped(expr, _NUMBERS[expr.op](left, right))

    def _parts(self, found: Value) -> Parts:
        if isinstance(found, Parts):
            return found
        if found is None or bool(found.any()):
            raise NotLegal("what is combined goes into something else")
        self.empty = True
        return Parts(np.zeros((self.count, self.elements), bool))

    def _combined(self, op: str, left: Value, right: Value, mask: Mask) -> Parts:
        if op not in ("+", "max", "min"):
            raise NotLegal(f"`{op}` of what is combined is not followed")
        one, other = self._parts(left), self._parts(right)
        self.ops.add(op)
        if op == "+" and bool((one.bits & other.bits)[mask].any()):
            raise NotLegal("a scan takes an element twice")
        return Parts(one.bits | other.bits, self._one_kind(one.kind, other.kind))

    def _one_kind(self, one: CType | None, other: CType | None) -> CType | None:
        """The type of two values. Raises NotLegal where one of them would be converted."""
        if one is not None and other is not None and one != other:
            raise NotLegal("a scan goes through several types")
        return one or other

    def _either(self, true: Mask, then: Value, other: Value) -> Value:
        if isinstance(then, Parts) or isinstance(other, Parts):
            one, two = self._parts(then), self._parts(other)
            bits = np.where(true[:, None], one.bits, two.bits)
            return Parts(bits, self._one_kind(one.kind, two.kind))
        return None if then is None or other is None else np.where(true, then, other)

    # -- statements

    def step(self, statement: Statement, mask: Mask) -> None:
        """A statement of which nothing is left."""
        match statement:
            case Blank():
                pass
            case Block(body=body):
                for inner in body:
                    self.step(inner, mask)
            case Declare(variables=variables):
                for variable in variables:
                    if variable.array or variable.type.reference or variable.storage != "local":
                        raise NotLegal(f"`{variable.name}` is not followed", variable.line)
                    self.env[variable] = None
                    if variable.value is not None:  # those that it is declared for have it
                        self._give(variable, self.value(variable.value, mask), self.all)
            case Evaluate(expression=Assign(op=op, target=target, value=value)):
                self._assign(target, op, value, mask, statement.line)
            case Evaluate(expression=Step(op=op, target=target)):
                self._assign(target, f"{op[0]}=", Literal(None, "1", 1), mask, statement.line)
            case Evaluate(expression=Call(function=name)) if bare(name) in BLOCK_BARRIERS:
                self.wait(mask)
            case If(before=None, constant=False, test=test, then=then, other=other):
                found = self.value(test, mask)
                if not isinstance(found, np.ndarray):
                    raise NotLegal("which threads combine is not known", statement.line)
                self.step(then, mask & (found != 0))
                if other is not None:
                    self.step(other, mask & (found == 0))
            case Loop(kind="for" | "while"):
                self._loop(statement, mask)
            case _:
                raise NotLegal("what its threads do together is not followed", statement.line)

    def _loop(self, loop: Loop, mask: Mask) -> None:
        if loop.before is not None:
            self.step(loop.before, mask)
        while True:
            found = self.value(loop.test, mask) if loop.test is not None else None
            if not isinstance(found, np.ndarray):
                raise NotLegal("how many rounds a loop makes is not known", loop.line)
            own = mask & (found != 0)
            if not bool(own.any()):
                return
            self.rounds += 1
            if bool((own != mask).any()) or self.rounds > _ROUNDS:
                raise NotLegal("threads differ in the rounds that they make", loop.line)
            self.step(loop.body, mask)
            if loop.update is not None:
                self.step(Evaluate(None, loop.line, loop.update), mask)

    def _assign(self, target: Expr, op: str, value: Expr, mask: Mask, line: int) -> None:
        whole = value
        if op != "=":
            whole = Binary(None, op[:-1], target, value)
            own = self._kind(target)
            if own is not None:
                self.kinds[whole] = own
        found = self.value(whole, mask)
        place = self.place(target, mask)
        if place is not None:
            self.store(*place, self._parts(found), mask)
        elif isinstance(target, Name) and target.variable is not None and (
            target.variable in self.env
        ):  # fmt: skip
            self._give(target.variable, found, mask)
        else:
            raise NotLegal("it stores while its threads combine", line)

    def _give(self, variable: Variable, found: Value, mask: Mask) -> None:
        old = self.env.get(variable)
        if isinstance(found, Parts) and found.kind not in (None, type_of(self.kernel, variable)):
            found = None  # what it is converted to is not followed
        if isinstance(found, np.ndarray):
            kind = named(variable.type.base, self.kernel.unit.aliases)
            if kind.integral and not kind.signed and kind.size == 4:
                found = found % _WORD
        if bool(mask.all()):
            self.env[variable] = found
        elif isinstance(found, Parts) or isinstance(old, Parts):
            self.env[variable] = self._either(mask, found, old if old is not None else found)
            if old is None:
                raise NotLegal(f"`{variable.name}` is given to some threads alone", variable.line)
        else:
            self.env[variable] = None if old is None or found is None else self._either(
                mask, found, old)  # fmt: skip
