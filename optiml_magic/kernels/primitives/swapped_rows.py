"""Normal form: rows that two pointers lead to, which each round exchanges, are those of one array.

``for (i) { ...; float* t = prev; prev = cur; cur = t; }`` with two local arrays becomes
``rows[i & 1]`` and ``rows[(i + 1) & 1]``: which row a round fills then is a matter of its number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Call, Expr, Index, Name
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted, names, parted
from optiml_magic.kernels.primitives.naming import speller_before
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Leave,
    Statement,
    Variable,
    body_of,
    expressions,
    walk,
)


@dataclass(frozen=True, eq=False)
class _Swap:
    """Two ``pointers`` that each round of a loop exchanges by its last statements."""

    axis: Axis
    pointers: tuple[Variable, Variable]
    statements: tuple[Statement, ...]


@primitive
def swapped_rows(kernel: Kernel) -> Kernel:
    """The kernel with the rows of the first such pair of pointers as those of an array."""
    for swap in _swaps(kernel):
        try:
            return _Rows(kernel, swap).kernel()
        except NotLegal:
            continue
    raise NotLegal("no two pointers to local arrays change places in each round")


def _swaps(kernel: Kernel) -> Iterator[_Swap]:
    effects = Effects(kernel)
    for loop, axis in kernel.axes().items():
        body = body_of(loop.body)
        pair = _exchanged(body[-3:]) or _exchanged(body[-1:])
        if pair is None or not axis.exact or axis.scaled or not is_counted(axis, effects):
            continue
        one = axis.step == Polynomial.constant(1) and axis.start is not None
        counted = axis.variable not in effects.changed(loop.body)
        left = any(isinstance(s, Leave) for s in walk(loop.body))
        if one and counted and not left and axis.stop is not None:
            yield _Swap(axis, pair, body[-1:] if _exchanged(body[-1:]) else body[-3:])


def _exchanged(statements: Sequence[Statement]) -> tuple[Variable, Variable] | None:
    """The two pointers that these statements exchange, and no more."""
    match [_copied(s) for s in statements]:
        case [None]:
            match statements[0]:
                case Evaluate(expression=Call(function=name, arguments=(Name() as a, Name() as b))):
                    return _pointers(a.variable, b.variable) if bare(name) == "swap" else None
        case [(kept, begun), (one, other), (last, held)]:
            if (begun, other, held) == (one, last, kept):
                return _pointers(one, other)
    return None


def _copied(statement: Statement) -> tuple[Variable, Variable] | None:
    """What a statement gives the value of another local, and which."""
    match statement:
        case Declare(variables=(Variable(value=Name(variable=Variable() as other)) as one,)):
            return one, other
        case Evaluate(
            expression=Assign(
                op="=", target=Name(variable=Variable() as one),
                value=Name(variable=Variable() as other),
            )
        ):  # fmt: skip
            return one, other
    return None


def _pointers(one: Variable | None, other: Variable | None) -> tuple[Variable, Variable] | None:
    if one is None or other is None or one is other or one.type.depth != 1:
        return None
    return (one, other) if one.type == other.type and not one.type.volatile else None


class _Rows:
    def __init__(self, kernel: Kernel, swap: _Swap) -> None:
        self.old, self.swap, self.loop = kernel, swap, swap.axis.node
        self.effects = Effects(kernel)
        self.body = kernel.function.body
        self.arrays = tuple(self._array(pointer) for pointer in swap.pointers)
        blocks = (s for s in walk(self.body) if isinstance(s, Block))
        self.block = next(block.body for block in blocks if self.loop in block.body)
        held = [v for s in self.block if isinstance(s, Declare) for v in s.variables]
        if not {*swap.pointers} <= {*held}:
            raise NotLegal("the pointers outlast the loop around it", self.loop.line)
        called = [s.expression for s in swap.statements if isinstance(s, Evaluate)]
        if any(isinstance(e, Call) and kernel.unit.called(e.function, 2) for e in called):
            raise NotLegal("a function of the text may do more than exchange", self.loop.line)

    def kernel(self) -> Kernel:
        name = self.old.fresh("rows")
        at = self.block.index(self.loop)
        parts = [(self.block[:at], ("0", "1")), ((self.loop,), self._turns()),
                 (self.block[at + 1 :], self._after())]  # fmt: skip
        changes: dict[Node, Node | tuple[Statement, ...] | None] = {}
        changes |= self._declarations(name)
        changes |= dict.fromkeys(self.swap.statements)
        gone = frozenset().union(
            *(self.effects.inside(s) for s in changes if isinstance(s, Statement))
        )
        named = [e for e in expressions(self.body) if isinstance(e, Name) and e not in gone]
        based = {e.base for e in expressions(self.body) if isinstance(e, Index)}
        own = {*self.swap.pointers, *self.arrays}
        kept = names(gone) - own
        if any(e.variable in kept for e in named):
            raise NotLegal("what is kept meanwhile is asked for too", self.loop.line)
        for statements, rows in parts:
            inside = frozenset[Expr]().union(*(self.effects.inside(s) for s in statements))
            for place in (e for e in named if e in inside and e.variable in own):
                pair = self.swap.pointers if place.variable in self.swap.pointers else self.arrays
                if place not in based or (pair is self.arrays and rows != ("0", "1")):
                    raise NotLegal("a row is asked for by another name too", self.loop.line)
                row = rows[pair.index(place.variable)]
                changes[place] = text(f"{name}[{row}]")
        if sum(e.variable in own for e in named) != sum(e in changes for e in named):
            raise NotLegal("a row is asked for elsewhere too", self.loop.line)
        return self.old.rewritten(edited(self.body, changes))

    def _array(self, pointer: Variable) -> Variable:
        """The local array that a pointer leads to at first."""
        value = pointer.value
        array = value.variable if isinstance(value, Name) else None
        if array is None or array.storage != "local" or len(array.extents) != 1 or array.initial:
            raise NotLegal("a pointer does not begin at a local array", pointer.line)
        inside = self.effects.inside(self.loop)
        moved = [e for e in expressions(self.body) if isinstance(e, Assign)
                 and pointer in names([e.target]) and isinstance(e.target, Name)]  # fmt: skip
        if any(e not in inside for e in moved) or array.type.base != pointer.type.base:
            raise NotLegal("a pointer leads elsewhere too", pointer.line)
        return array

    def _turns(self) -> tuple[str, str]:
        """The rows that the pointers lead to in a round."""
        axis = self.swap.axis
        assert axis.variable is not None
        assert axis.start is not None
        start = axis.start.value
        if start is None:
            raise NotLegal("the first round has no number", self.loop.line)
        one, other = (f"{axis.variable.name}{' + 1' if (start + n) % 2 else ''}" for n in (0, 1))
        words = [f"({w}) & 1" if " " in w else f"{w} & 1" for w in (one, other)]
        return words[0], words[1]

    def _after(self) -> tuple[str, str]:
        """The rows that the pointers lead to behind the last round."""
        axis = self.swap.axis
        assert axis.start is not None
        assert axis.stop is not None
        count = axis.stop - axis.start
        if not Ranges(axis.guard, self.old.reading.symbols).nonnegative(count):
            zero = Polynomial.constant(0)
            count = self.old.reading_operations().extreme("max", count, zero, axis.guard)
        if count.value is not None:
            return str(count.value % 2), str((count.value + 1) % 2)
        speller = speller_before(self.old, self.effects, self.loop)
        words = speller.form(speller.local(count))
        return f"({words}) & 1", f"({words} + 1) & 1"

    def _declarations(self, name: str) -> Mapping[Node, tuple[Statement, ...]]:
        one, other = self.arrays
        (extent,), (second,) = one.extents, other.extents
        if extent is None or second is None or one is other:
            raise NotLegal("a row has no length", one.line)
        if self.old.spelled(extent) != self.old.spelled(second) or one.type != other.type:
            raise NotLegal("the two rows differ", one.line)
        own, made, told = (
            {*self.arrays, *self.swap.pointers},
            dict[Node, tuple[Statement, ...]](),
            "",
        )
        for statement in walk(self.body):
            if not isinstance(statement, Declare) or not {*statement.variables} & own:
                continue
            parts = list[Statement]()
            for part in parted(Block(None, statement.line, (statement,))):
                if not isinstance(part, Declare) or part.variables[0] not in own:
                    parts.append(part)
                elif not told and part.variables[0] in self.arrays:
                    told = f"{one.type.base} {name}[2][{self.old.spelled(extent)}];"
                    parts.append(lines(told))
            made[statement] = tuple(parts)
        return made
