"""How values go along with items and rounds: sums that say one place, and what is made of it.

Of whole numbers that are added up, a value has a factor for the index of the item and one for the
counter of the loop. Where these are equal, or opposite, the value says where item and round stand
together; what is computed of that alone, by loads from arrays that nobody writes as well, has the
same value for all items and rounds that stand there. A sum that may wrap around before it gets a
wider type is none.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
from optiml_magic.kernels.functions import COMBINING, FUSED, READERS, bare, pure
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.computing import only_computes
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    walk,
)
from optiml_magic.kernels.types import LONG, CType, named


@dataclass(frozen=True)
class Moves:
    """How a value goes along: by so much an item, and so much a round.

    Nothing for what all items and rounds have alike. ``whole`` is set for sums of whole numbers
    alone; what is made of them otherwise, at one place, has the factors of that place.
    """

    item: int = 0
    turn: int = 0
    whole: bool = True

    @property
    def still(self) -> bool:
        return not self.item and not self.turn


@dataclass(frozen=True)
class Along:
    """The axis that items lie along, the places of their index, and the local that holds it."""

    letter: str
    places: Collection[object]
    holding: Variable | None = None


class Following:
    """Follows what a nest does by where its item and its round stand."""

    def __init__(
        self, kernel: Kernel, effects: Effects, along: Along, axis: Axis, nest: Loop,
        before: Sequence[Statement],
    ) -> None:  # fmt: skip
        self.kernel, self.effects, self.along = kernel, effects, along
        self.axis, self.nest = axis, nest
        self.types = kernel.reading.types
        self.signs: set[int] = set()
        self.moves: dict[Variable, Moves] = {}
        self.results = {*effects.changed(nest)}
        self.own = {v for s in (*before, nest) for d in walk(s) if isinstance(d, Declare)
                    for v in d.variables}  # fmt: skip
        self.fresh = {v for d in walk(axis.node.body) if isinstance(d, Declare)
                      for v in d.variables}  # fmt: skip

    def sign(self) -> int:
        """1 or -1, as all places of the nest go along. Raises NotLegal where it does more."""
        written = self.kernel.reading.written
        for access in self.effects.accesses(self.nest):
            if access.mode != "load" or access.call is not None:
                raise NotLegal("its rounds do more than to load", access.line)
            if any(self.effects.same(access.array, other) for other in written):
                raise NotLegal(f"`{access.array}` is written as well", access.line)
        self._statement(self.nest, around=True)
        if len(self.signs) != 1:
            raise NotLegal("its rounds do not go along with the items", self.axis.line)
        return self.signs.pop()

    def _statement(self, statement: Statement, *, around: bool) -> None:
        """All in a statement; one ``around`` the loop does the same for all items."""
        match statement:
            case Block():
                pass
            case Blank():
                return
            case Loop() if statement is self.axis.node:
                self._statement(statement.body, around=False)
                return
            case Loop(kind="for", before=Declare(variables=(own,)), update=update):
                axis = self.kernel.axes().get(statement)
                heads = [e for e in (own.value, statement.test, update) if e is not None]
                if axis is None or not axis.exact or own in self.effects.changed(statement.body):
                    raise NotLegal("a loop within is not read", statement.line)
                self.moves[own] = Moves()
                self._same(heads, statement)
                self._statement(statement.body, around=around)
                return
            case If(before=None):
                if around and any(isinstance(s, Loop | Leave) for s in walk(statement)):
                    self._same([statement.test], statement)
                else:
                    self._place(statement.test, statement)
            case Declare():
                for variable in statement.variables:
                    self._declared(variable)
            case Evaluate(expression=Assign() | Step() as changed):
                self._changed(changed, statement)
            case Leave(kind="continue"):
                pass
            case _:
                raise NotLegal("its rounds do more than to combine", statement.line)
        for inner in statement.statements:
            self._statement(inner, around=around)

    def _same(self, heads: Sequence[Expr], statement: Statement) -> None:
        for expr in heads:
            moves = None if isinstance(expr, Assign | Step) else self._of(expr)
            if isinstance(expr, Assign | Step):
                parts = [p for p in expr.parts if p is not expr.target]
                moves = next((m for m in map(self._of, parts) if m != Moves()), Moves())
            if moves is None or not moves.still:
                raise NotLegal("a loop or branch is not the same for all items", statement.line)

    def _place(self, expr: Expr, statement: Statement) -> Moves:
        """How an expression goes along. Raises NotLegal where it is not made of one place."""
        moves = self._of(expr)
        if moves is None or not self._is_place(moves):
            raise NotLegal("a round depends on more than where it stands", statement.line)
        return moves

    def _is_place(self, moves: Moves) -> bool:
        if moves.still:
            return True
        if abs(moves.item) != abs(moves.turn):
            return False
        self.signs.add(1 if moves.item == moves.turn else -1)
        return len(self.signs) == 1

    def _declared(self, variable: Variable) -> None:
        if variable.array or variable.type.reference:
            raise NotLegal(f"`{variable.name}` is not a plain local", variable.line)
        begun = variable.initial if variable.value is None else (variable.value,)
        if any(self._of(value) is None for value in begun):
            raise NotLegal(f"`{variable.name}` depends on more than its place", variable.line)

    def _changed(self, expr: Assign | Step, statement: Statement) -> None:
        """What is combined is made of a place, and so is what a local of the round becomes."""
        target = expr.target
        variable = target.variable if isinstance(target, Name) else None
        values = [expr.value] if isinstance(expr, Assign) else []
        for value in values:
            self._place(value, statement)
        if variable in self.results:
            return
        if variable is None or variable not in self.fresh or variable.value is None:
            raise NotLegal("its rounds change more than what they combine", statement.line)
        self._place(Name(None, variable.name, variable), statement)

    def _of(self, expr: Expr) -> Moves | None:
        """How a value goes along; None where that is not known."""
        if expr in self.along.places:
            return Moves(1)
        if builtin(expr):
            return None if builtin(expr).endswith(f".{self.along.letter}") else Moves()
        match expr:
            case Literal():
                return Moves()
            case Name():
                return self._named(expr)
            case Cast(operand=operand):
                kind, own = self.types.get(expr), self.types.get(operand)
                if kind is None or own is None or kind.depth or own.depth:
                    return self._made([operand])  # its elements may have another length
                return self._converted(operand, kind)
            case Index(base=base, index=index):
                return self._loaded(self._sum(expr, [(base, 1), (index, 1)]))
            case Unary(op="*", operand=operand):
                return self._loaded(self._of(operand))
            case Unary(op="&", operand=Index(base=base, index=index)):
                return self._sum(expr, [(base, 1), (index, 1)])
            case Unary(op="-", operand=operand) if self._integral(expr):
                return self._sum(expr, [(operand, -1)])
            case Unary(op="-" | "+" | "!" | "~", operand=operand):
                return self._made([operand])
            case Binary(op="+" | "-" as op, left=left, right=right) if self._adds(expr):
                return self._sum(expr, [(left, 1), (right, 1 if op == "+" else -1)])
            case Binary(op="*", left=left, right=right) if self._integral(expr):
                for number, other in ((left, right), (right, left)):
                    if isinstance(number, Literal) and isinstance(number.value, int):
                        return self._sum(expr, [(other, number.value)])
                return self._made([left, right])
            case Binary(op=op) if op != ",":
                return self._made(expr.parts)
            case Choice():
                return self._made(expr.parts)
            case Member(base=base, arrow=False):
                return self._made([base])
            case Call(function=function, receiver=None, callee=None, arguments=given):
                name = bare(function)
                if READERS.fullmatch(name):
                    return self._loaded(self._of(given[0])) if len(given) == 1 else None
                return self._made(given) if self._computes(expr, name) else None
        return None

    def _computes(self, call: Call, name: str) -> bool:
        """Whether a function only computes, one of CUDA's or of the program's."""
        unit = self.kernel.unit
        if any(f.name.rpartition("::")[2] == name for f in unit.functions):
            known = unit.called(call.function, len(call.arguments))
            return bool(known) and only_computes(self.kernel, call)
        return pure(name) or name in COMBINING or name in FUSED

    def _named(self, expr: Name) -> Moves | None:
        variable = expr.variable
        if variable is None or variable in self.results:
            return Moves()
        if variable is self.along.holding:
            return Moves(1)
        if variable is self.axis.variable:
            return Moves(0, 1)
        if variable not in self.own:
            return Moves()
        if variable in self.moves:
            return self.moves[variable]
        if variable.value is None or variable.array or variable.type.reference:
            return None
        kind = named(variable.type.base, self.kernel.unit.aliases)
        if variable.type.base == "auto":
            kind = self.types.get(variable.value, kind)
        if variable.type.depth:
            return self._of(variable.value) if variable in self.effects.lasting else None
        moves = self._converted(variable.value, kind)
        if variable in self.fresh and variable not in self.effects.lasting:
            # It is begun anew in each round, so it is made of what it is ever given.
            moves = None if moves is None or not self._is_place(moves) else moves
            moves = None if moves is None else self._one(moves)
        elif variable not in self.effects.lasting:
            moves = None
        if moves is not None:
            self.moves[variable] = moves
        return moves

    def _one(self, moves: Moves) -> Moves:
        """A place as what its sums no longer say anything of."""
        if not moves.still or not self.signs:
            return Moves(moves.item, moves.turn, whole=False)
        (sign,) = self.signs
        return Moves(1, sign, whole=False)

    def _sum(self, expr: Expr, parts: Sequence[tuple[Expr, int]]) -> Moves | None:
        item = turn = 0
        found = [(self._widened(part, expr), by) for part, by in parts]
        for moves, by in found:
            if moves is None:
                return None
            if not moves.whole:
                return self._made([part for part, _ in parts])
            item, turn = item + by * moves.item, turn + by * moves.turn
        return Moves(item, turn)

    def _made(self, parts: Sequence[Expr]) -> Moves | None:
        """What is computed in any way, of places and of what is the same for all of them."""
        found = [self._of(part) for part in parts]
        moving = [m for m in found if m is None or not m.still]
        if any(m is None or not self._is_place(m) for m in moving):
            return None
        return (
            Moves(moving[0].item, moving[0].turn, whole=False) if moving and moving[0] else Moves()
        )

    def _loaded(self, moves: Moves | None) -> Moves | None:
        if moves is None or not self._is_place(moves):
            return None
        return moves if moves.still else Moves(moves.item, moves.turn, whole=False)

    def _widened(self, part: Expr, whole: Expr) -> Moves | None:
        """An operand, as the type of what it is part of has it."""
        kind = self.types.get(whole)
        own = self.types.get(part)
        if own is not None and own.depth:
            return self._of(part)
        return self._converted(part, kind if kind is not None and kind.integral else LONG)

    def _converted(self, part: Expr, kind: CType) -> Moves | None:
        """A value in another type: a sum that wrapped around is no longer one in a wider type."""
        moves, own = self._of(part), self.types.get(part)
        if moves is None or moves.still or not moves.whole:
            return moves
        counts = own is not None and own.kind == kind.kind == "int" and not own.depth
        if own is None or not counts or not own.size or not kind.size or kind.size < own.size:
            return self._made([part])
        variable = part.variable if isinstance(part, Name) else None
        plain = variable is not None and variable in (self.along.holding, self.axis.variable)
        wraps = not own.signed and kind.size > own.size and not plain
        return self._made([part]) if wraps and part not in self.along.places else moves

    def _integral(self, expr: Expr) -> bool:
        kind = self.types.get(expr)
        return kind is not None and kind.integral

    def _adds(self, expr: Expr) -> bool:
        kind = self.types.get(expr)
        return kind is not None and (kind.integral or bool(kind.depth))
