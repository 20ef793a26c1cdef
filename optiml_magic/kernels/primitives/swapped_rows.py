"""Normal form: rows that two pointers lead to, which each round exchanges, are those of one array.

``for (i) { ...; float* t = prev; prev = cur; cur = t; }`` with two local arrays becomes
``rows[i & 1]`` and ``rows[(i + 1) & 1]``: which row a round fills then is a matter of its number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Call, Index, Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, names, parted
from optiml_magic.kernels.primitives.taking_turns import Turns, exchanged, turning
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Statement,
    Variable,
    body_of,
    expressions,
    walk,
)


@dataclass(frozen=True, eq=False)
class _Swap:
    """Two ``pointers`` that each round of a loop exchanges by its last statements."""

    turns: Turns
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
    for turns in turning(kernel):
        body = body_of(turns.loop.body)
        for statements in (body[-3:], body[-1:]):
            pair = exchanged(statements)
            if pair is not None and pair[0].type.depth == 1:
                yield _Swap(turns, pair, statements)


class _Rows:
    def __init__(self, kernel: Kernel, swap: _Swap) -> None:
        self.old, self.swap, self.loop = kernel, swap, swap.turns.loop
        self.effects = Effects(kernel)
        self.body = kernel.function.body
        self.arrays = tuple(self._array(pointer) for pointer in swap.pointers)
        if not {*swap.pointers} <= swap.turns.held:
            raise NotLegal("the pointers outlast the loop around it", self.loop.line)
        called = [s.expression for s in swap.statements if isinstance(s, Evaluate)]
        if any(isinstance(e, Call) and kernel.unit.called(e.function, 2) for e in called):
            raise NotLegal("a function of the text may do more than exchange", self.loop.line)

    def kernel(self) -> Kernel:
        name = self.old.fresh("rows")
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
        before = True
        for inside, number in self.swap.turns.parts():
            for place in inside:
                if not isinstance(place, Name) or place.variable not in own or place in gone:
                    continue
                pair = self.swap.pointers if place.variable in self.swap.pointers else self.arrays
                if place not in based or (pair is self.arrays and not before):
                    raise NotLegal("a row is asked for by another name too", self.loop.line)
                changes[place] = text(f"{name}[{number(pair.index(place.variable))}]")
            before = False
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

    def _declarations(self, name: str) -> Mapping[Node, tuple[Statement, ...]]:
        one, other = self.arrays
        (extent,), (second,) = one.extents, other.extents
        if extent is None or second is None or one is other:
            raise NotLegal("how long a row is is not said", one.line)
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
