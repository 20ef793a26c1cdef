"""Two rows in shared memory of which each round of a loop reads one and fills the other.

Which is which, ``cur`` and ``1 - cur`` of ``s[2][256]``, or two pointers, is exchanged at the end
of the round. Named apart, the one that is read and the one that is filled are two arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Expr,
    Index,
    Literal,
    Name,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects, declared_in, parted
from optiml_magic.kernels.primitives.taking_turns import exchanged, opposite, turned
from optiml_magic.kernels.primitives.waits import is_barrier
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    Leave,
    Loop,
    Statement,
    Variable,
    body_of,
    expressions,
    walk,
)

_Changes = dict[Node, Node | tuple[Statement, ...] | None]


@dataclass(frozen=True)
class TwoBuffers:
    """A kernel with ``read`` and ``filled`` as arrays that nobody exchanges.

    It does something else than before.
    """

    kernel: Kernel
    read: str
    filled: str

    @property
    def loop(self) -> Loop:
        """The last loop that names what is filled."""
        for loop in reversed(_loops(self.kernel)):
            if any(isinstance(e, Name) and e.name == self.filled for e in expressions(loop)):
                return loop
        raise NotLegal("no loop fills a row")

    @property
    def waits_last(self) -> bool:
        """Whether a round ends with a barrier, so that one lies between any two phases."""
        return is_barrier(body_of(self.loop.body)[-1])


@dataclass(frozen=True, eq=False)
class _Turn:
    """What a round's last statements exchange: ``read`` and, where it has a name, ``filled``."""

    loop: Loop
    read: Variable
    filled: Variable | None
    statements: tuple[Statement, ...]


def two_buffers(kernel: Kernel) -> Iterator[TwoBuffers]:
    """Those of loops that stand among the statements of the kernel itself."""
    for turn in _turns(kernel):
        try:
            yield _Apart(kernel, turn).found()
        except NotLegal:
            continue


def _loops(kernel: Kernel) -> list[Loop]:
    return [s for s in kernel.function.body.body if isinstance(s, Loop)]


def _turns(kernel: Kernel) -> Iterator[_Turn]:
    for loop in _loops(kernel):
        if any(isinstance(s, Leave) for s in walk(loop.body)):
            continue
        body = [s for s in body_of(loop.body) if not isinstance(s, Blank)]
        while body and is_barrier(body[-1]):
            body.pop()
        for tail in (body[-3:], body[-2:], body[-1:]):
            last = [s for s in tail if not is_barrier(s)]
            match exchanged(last) if last else None:
                case (Variable() as one, Variable() as other):
                    for pair in ((one, other), (other, one)):
                        yield _Turn(loop, *pair, tuple(last))
        if body:
            own, named = _turned(body)
            if own is not None:
                yield _Turn(loop, own, named, (body[-1],))


def _turned(body: Sequence[Statement]) -> tuple[Variable | None, Variable | None]:
    """The local that the last statement turns from 0 to 1 and back, and what is its opposite."""
    alone = turned(body[-1])
    if alone is not None:
        return alone, None
    match body[-1]:
        case Evaluate(expression=Assign(op="=", target=Name() as own, value=value)):
            declared = [v for s in body if isinstance(s, Declare) for v in s.variables]
            if isinstance(value, Name) and value.variable in declared:
                held = value.variable.value
                if held is not None and opposite(held) is own.variable:
                    return own.variable, value.variable
    return None, None


class _Apart:
    def __init__(self, kernel: Kernel, turn: _Turn) -> None:
        self.old, self.turn = kernel, turn
        self.effects = Effects(kernel)
        self.body = kernel.function.body
        self.top = [v for s in self.body.body if isinstance(s, Declare) for v in s.variables]
        self.own = {turn.read} | ({turn.filled} if turn.filled is not None else set())
        inside = declared_in(turn.loop)
        outside = self.own - inside
        changes = {*self.effects.changed(turn.loop)} & self.own
        if not outside <= {*self.top} or outside & self.effects.lent or not changes <= outside:
            raise NotLegal("what is exchanged outlasts the loop around it", turn.loop.line)

    def found(self) -> TwoBuffers:
        names, changes = self._rows()
        changes |= dict.fromkeys(self.turn.statements)
        for statement in self.body.body:
            if isinstance(statement, Declare) and statement not in changes:
                changes |= self._without(statement)
        for statement in body_of(self.turn.loop.body):
            if isinstance(statement, Declare) and statement not in changes:
                changes |= self._without(statement)
        made = self.old.rewritten(edited(self.body, changes))
        return TwoBuffers(made, *names)

    def _without(self, statement: Declare) -> _Changes:
        """A declaration without what says which row is which."""
        if not {*statement.variables} & self.own:
            return {}
        parts = parted(Block(None, statement.line, (statement,)))
        kept = [p for p in parts if isinstance(p, Declare) and p.variables[0] not in self.own]
        return {statement: tuple(kept)}

    def _rows(self) -> tuple[tuple[str, str], _Changes]:
        turn = self.turn
        if turn.read.type.depth == 1 and turn.filled is not None:
            return self._pointed(turn.read, turn.filled)
        return self._numbered()

    # -- pointers

    def _pointed(self, read: Variable, filled: Variable) -> tuple[tuple[str, str], _Changes]:
        arrays = []
        for pointer in (read, filled):
            array = pointer.value.variable if isinstance(pointer.value, Name) else None
            if array not in self.top or array is None or array.storage != "shared":
                raise NotLegal("a pointer does not begin at a shared array", pointer.line)
            arrays.append(array)
        one, other = arrays
        volatile = one.type.volatile or len(one.extents) != 1
        if one is other or volatile or one.type != other.type or one.type.base != read.type.base:
            raise NotLegal("the two rows differ", one.line)
        changes = _Changes()
        based = {e.base for e in expressions(self.body) if isinstance(e, Index)}
        at = self.body.body.index(self.turn.loop)
        early = {e for s in self.body.body[:at] for e in expressions(s)}
        for place in self._asked():
            if place.variable in self.own:
                if place not in based:
                    raise NotLegal("a row is asked for by another name too", self.turn.loop.line)
                assert place.variable is not None
                changes[place] = text(arrays[place.variable is filled].name)
            elif place.variable in arrays and (place not in based or place not in early):
                raise NotLegal("a row is asked for by another name too", self.turn.loop.line)
        return (one.name, other.name), changes

    def _asked(self) -> list[Name]:
        """All names but those of what goes."""
        gone = set().union(*(self.effects.inside(s) for s in self.turn.statements))
        gone |= {e for v in self.own if v.value is not None for e in [v.value, *v.value.parts]}
        return [e for e in expressions(self.body) if isinstance(e, Name) and e not in gone]

    # -- numbers

    def _numbered(self) -> tuple[tuple[str, str], _Changes]:
        turn = self.turn
        begun = turn.read.value
        if not isinstance(begun, Literal) or begun.value not in (0, 1) or turn.read.type.depth:
            raise NotLegal("it does not begin as 0 or 1", turn.read.line)
        if turn.filled in self.top:
            other = turn.filled.value if turn.filled is not None else None
            if not isinstance(other, Literal) or other.value != 1 - begun.value:
                raise NotLegal("both begin as the same", turn.read.line)
        places = dict(self._places(int(begun.value)))
        arrays = {p.base.variable for p in places if isinstance(p.base, Name)}
        array = next(iter(arrays), None)
        home = next(
            (s for s in self.body.body if isinstance(s, Declare) and array in s.variables), None
        )
        if len(arrays) != 1 or array is None or home is None or array.storage != "shared":
            raise NotLegal("it does not say which of two shared rows is meant", turn.loop.line)
        if len(array.extents) != 2 or not isinstance(array.extents[0], Literal):
            raise NotLegal("it does not say which of two shared rows is meant", array.line)
        if array.extents[0].value != 2 or array.extents[1] is None or array.type.volatile:
            raise NotLegal("there are not two rows", array.line)
        based = {p.base for p in places}
        told = {e for p in places for e in [p.index, *p.index.parts]}
        for name in self._asked():
            if (name.variable is array and name not in based) or (
                name.variable in self.own and name not in told
            ):
                raise NotLegal("which row is meant is asked for elsewhere too", turn.loop.line)
        read, filled = self.old.fresh(f"{array.name}_row"), self.old.fresh(f"{array.name}_filled")
        extent = self.old.spelled(array.extents[1])
        kind = f"__shared__ {array.type.base}"
        parts = list[Statement]()
        for part in parted(Block(None, home.line, (home,))):
            mine = isinstance(part, Declare) and part.variables == (array,)
            rows = lines(f"{kind} {read}[{extent}];\n{kind} {filled}[{extent}];")
            gone = isinstance(part, Declare) and part.variables[0] in self.own
            parts += [rows] if mine else [] if gone else [part]
        changes: _Changes = {p: text(filled if which else read) for p, which in places.items()}
        return (read, filled), changes | {home: tuple(parts)}

    def _places(self, begun: int) -> Iterator[tuple[Index, bool]]:
        """The rows that are named, and whether each is the one that is filled."""
        at = self.body.body.index(self.turn.loop)
        early = {e for s in self.body.body[:at] for e in expressions(s)}
        rows = [e for e in expressions(self.body)
                if isinstance(e, Index) and isinstance(e.base, Name)]  # fmt: skip
        told = [(e, self._filled(e.index)) for e in rows]
        arrays = {e.base.variable for e, which in told
                  if which is not None and isinstance(e.base, Name)}  # fmt: skip
        for place, which in told:
            assert isinstance(place.base, Name)
            if which is not None:
                yield place, which
            elif place in early and place.base.variable in arrays:
                match place.index:
                    case Literal(value=0 | 1 as number):
                        yield place, number != begun

    def _filled(self, index: Expr) -> bool | None:
        """Whether an index is that of the row that is filled; None where it is none of both."""
        if isinstance(index, Name) and index.variable in self.own:
            return index.variable is not self.turn.read
        return True if opposite(index) is self.turn.read else None
