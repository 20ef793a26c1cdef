"""Whole numbers that are certainly from 0 to below a size, such as the row of a pixel near an edge.

Threads that differ in all else may come to the same row. What depends on the row alone, and not on
how a thread came to it, is the same for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.expressions import (
    MIRRORED,
    Binary,
    Call,
    Expr,
    Literal,
    Name,
    Unary,
)
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.mapped import split_test
from optiml_magic.kernels.primitives.sizes import measured
from optiml_magic.kernels.primitives.tabled import passed
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.spelling import Speller
from optiml_magic.kernels.symbols import Compare, Symbols
from optiml_magic.kernels.tree import Declare, If, Loop, Variable, walk
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import parse_expression

_ONE = Polynomial.constant(1)
_TURNED = {"<": ">=", ">": "<=", "<=": ">", ">=": "<"}


@dataclass(frozen=True)
class Pin:
    """A local of a loop from 0 to below ``count``, within ``guard`` where that says so."""

    variable: Variable
    count: Polynomial
    guard: If | None = None


def pins(kernel: Kernel) -> list[Pin]:
    """What loops declare so, in the order of the text."""
    effects, found = Effects(kernel), list[Pin]()
    scalars = Scalars(effects.moved)
    for loop in loops_in(kernel.function.body):
        for variable in _own(effects, loop):
            assert variable.value is not None
            low, count = scalars.ends(variable.value)
            if low and count is not None:
                found.append(Pin(variable, count))
            found += (
                Pin(variable, count, guard)
                for guard in walk(loop.body)
                if isinstance(guard, If) and guard.before is None and not guard.constant
                if (count := scalars.within(variable, guard)) is not None
            )
    return list({pin.variable: pin for pin in reversed(found)}.values())


def _own(effects: Effects, loop: Loop) -> Iterator[Variable]:
    """The whole numbers that a loop itself declares, not one in it, and that stay what they are."""
    inner = {s for one in loops_in(loop.body) for s in walk(one)}
    for statement in walk(loop.body):
        if not isinstance(statement, Declare) or statement in inner:
            continue
        for variable in statement.variables:
            plain = not (variable.array or variable.type.depth or variable.value is None)
            if plain and variable in effects.lasting and variable.type.base in ("int", "const int"):
                yield variable


def asked_of(
    old: Kernel, made: Kernel, name: str, extents: Sequence[Polynomial], *, free: bool = False
) -> tuple[RequireDirective, ...]:
    """What makes certain that a launch of all rows, the first of ``extents``, loads what is there.

    The kernel named so loads for each row that there is; the ``old`` one did for those that its
    threads came to. Raises NotLegal where that is not certain, or not so at the measured sizes.
    Where threads may have come to no row, a ``free`` launch asks for nothing else than rows.
    """
    launch = next(d for d in made.program.launches if bare(d.kernel or "") == name)
    first = Kernel(made.program, launch, defines=made.defines)
    symbols = first.reading.symbols
    places = [_place(first, axis) for axis in range(len(extents))][::-1]
    own = places[0].symbols
    speller, asked = Speller(symbols, {}), dict[RequireDirective, None]()
    for access in first.reading.accesses:
        if access.space != "global" or access.mode != "load":
            continue
        if access.index is not None and not own & symbols.inside(access.index):
            if free:
                raise NotLegal(f"whether `{access.array}` is asked for is not certain", access.line)
            continue
        count = _counted(access, places, extents, symbols)
        if count is None:
            raise NotLegal(f"whether `{access.array}` has all rows is not certain", access.line)
        found = room(old, access, speller.form(count))
        if found is None:
            raise NotLegal(f"`{access.array}` does not have all rows", access.line)
        asked[found] = None
    return tuple(asked)


def room(kernel: Kernel, access: Access, count: str) -> RequireDirective | None:
    """What says that an array has so many elements, where those that are measured do."""
    known = kernel.facts.arrays.get(access.array) if kernel.facts is not None else None
    plain = (
        known is not None
        and known.role != "scratch"
        and known.nbytes == math.prod(known.shape) * (access.element.size or 0)
    )
    buffer = passed(kernel, access.array)
    condition = parse_expression(f"size({buffer}) >= {count}")
    if not plain or buffer is None or not measured(kernel, condition):
        return None
    return RequireDirective(condition)


def _place(kernel: Kernel, axis: int) -> Polynomial:
    """The index of a thread along an axis."""
    thread, block = (Polynomial.symbol(f"{of}.{'xyz'[axis]}") for of in ("threadIdx", "blockIdx"))
    return thread + Polynomial.constant(kernel.block[axis] or 1) * block


def _counted(
    access: Access, places: Sequence[Polynomial], extents: Sequence[Polynomial], symbols: Symbols
) -> Polynomial | None:
    """How many elements all rows have, of all planes where rows lie in these; else None."""
    index, row = access.index, places[0]
    apart = _times(index, row) if index is not None else None
    if index is None or apart is None:
        return None
    if _in_row(access, index - row * apart, row, apart, symbols):
        return extents[0] * apart
    for plane, planes in zip(places[1:], extents[1:], strict=True):
        rest = index - row * apart - plane * extents[0] * apart
        if _times(index, plane) == extents[0] * apart and _in_row(
            access, rest, row + plane, apart, symbols
        ):
            return planes * extents[0] * apart
    return None


def _times(index: Polynomial, place: Polynomial) -> Polynomial | None:
    """What a thread's index along an axis is multiplied by."""
    (thread,) = (name for name in place.symbols if name.startswith("threadIdx"))
    return index.coefficient(thread)


def _in_row(
    access: Access, rest: Polynomial, row: Polynomial, apart: Polynomial, symbols: Symbols
) -> bool:
    """Whether a place is in a row of so many elements, of which there is one where any is asked."""
    some = Compare(">=", apart - _ONE, frozenset())
    within = Ranges((*access.guard, some), symbols).within(rest, apart)
    return within and not row.symbols & symbols.inside(rest)


class Scalars:
    """Forms of what a kernel is given, but for the ``moved``."""

    def __init__(self, moved: frozenset[str]) -> None:
        self._moved = moved

    def form(self, expr: Expr) -> Polynomial | None:
        """A sum or a product of sizes; None for anything else."""
        match expr:
            case Literal(value=int() as value):
                return Polynomial.constant(value)
            case Name(variable=Variable(storage="parameter") as variable):
                whole = variable.type.base == "int" and not variable.type.depth
                steady = whole and variable.name not in self._moved
                return Polynomial.symbol(variable.name) if steady else None
            case Binary(op="+" | "-" | "*" as op, left=left, right=right):
                one, other = self.form(left), self.form(right)
                if one is None or other is None:
                    return None
                return one + other if op == "+" else one - other if op == "-" else one * other
        return None

    def ends(self, expr: Expr) -> tuple[bool, Polynomial | None]:
        """Whether a number is not negative, and a size that it is below, where that is known."""
        match expr:
            case Call(function=name, arguments=(one, other)) if bare(name) in ("min", "max"):
                for own, bound in ((one, other), (other, one)):
                    size, (low, count) = self.form(bound), self.ends(own)
                    if size is None:
                        continue
                    if bare(name) == "max" and size.value == 0:
                        return True, count
                    if bare(name) == "min" and (size.value is None or size.value > 0):
                        return low, size + _ONE
        return False, None

    def below(self, test: Expr, variable: Variable) -> Polynomial | None:
        """A size that a number is below where a test of it holds; None where that says of none."""
        op, own, bound = self._compared(test, variable)
        if not own or bound is None or op not in ("<", "<="):
            return None
        size = self.form(bound)
        if size is not None:
            return size if op == "<" else size + _ONE
        _, count = self.ends(bound)
        return count - _ONE if op == "<" and count is not None else count

    def within(self, variable: Variable, guard: If) -> Polynomial | None:
        """The size below which a number is where a branch is taken, and not negative; else None."""
        low, count = False, None
        for part in split_test(guard.test, "&&"):
            op, own, bound = self._compared(part, variable)
            size = self.form(bound) if bound is not None else None
            if not own or size is None:
                continue
            low = low or (op, size.value) in ((">=", 0), (">", -1))
            if op in ("<", "<=") and (size.value is None or size.value > 0):
                count = size if op == "<" else size + _ONE
        return count if low else None

    def _compared(self, test: Expr, variable: Variable) -> tuple[str, bool, Expr | None]:
        denied = False
        while isinstance(test, Unary) and test.op == "!":
            test, denied = test.operand, not denied
        if not isinstance(test, Binary) or test.op not in _TURNED:
            return "", False, None
        op, bound = test.op, test.right
        if isinstance(test.right, Name) and test.right.variable is variable:
            op, bound = MIRRORED[op], test.left
        elif not isinstance(test.left, Name) or test.left.variable is not variable:
            return "", False, None
        return (_TURNED[op] if denied else op), True, bound
