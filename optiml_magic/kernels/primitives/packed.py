"""Symbols that lie several in a word, as a loop asks for them one by one.

``(text[at / 16] >> (2 * (at % 16))) & 3`` is a base of two bits, ``flags[i >> 5] >> (i & 31) & 1``
a bit of a map. What is looked at here is what a round's expressions come down to, functions of the
text and locals of the round written out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Index,
    Literal,
    Member,
    Name,
    Unary,
    builtin,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.packed_places import (
    Packed,
    Symbol,
    bare,
    leaves,
    mask_bits,
    mixed,
    number,
    plain_place,
    quotient,
    shifted_place,
)
from optiml_magic.kernels.tree import Declare, Function, Leave, Loop, Variable, expressions, walk
from optiml_magic.kernels.types import BOOL, INT, UNKNOWN, CType, arithmetic, named, promoted

_COMPUTING = ("+", "-", "*", "/", "%", ">>", "<<", "&", "|", "^")
_PLAIN = frozenset({*_COMPUTING, "<", ">", "<=", ">=", "==", "!=", "&&", "||"})
_PURE = frozenset({"min", "max", "abs", "__ldg"})
_WORD = 32  # bits from which on a word is not made wider before it is shifted
_FAR = 1 << 31
_DEEPEST = 8  # functions that call each other
Meant = Mapping[Variable, Expr]


@dataclass(frozen=True, eq=False)
class Round:
    """What the rounds of one loop ask for, by a ``counter`` that goes up by one.

    ``moving`` is what else may differ from round to round. ``places`` are what the counter
    holds, where that is numbers.
    """

    kernel: Kernel
    loop: Loop
    counter: Variable
    moving: frozenset[Variable]
    meant: Meant
    places: range | None = None

    def kind(self, expr: Expr) -> CType:
        """The type of an expression, also of one that no text has."""
        found = self.kernel.reading.types.get(expr)
        if found is not None:
            return found
        match expr:
            case Name(variable=Variable() as variable) if variable.type.base != "auto":
                own = named(variable.type.base, self.kernel.unit.aliases)
                depth = own.depth + variable.type.depth + len(variable.extents)
                return replace(own, depth=depth)
            case Cast(type=spelled):
                return named(spelled, self.kernel.unit.aliases)
            case Index(base=base):
                return self.kind(base).pointee
            case Unary(op="*", operand=operand):
                return self.kind(operand).pointee
            case Unary(op="!"):
                return BOOL
            case Literal(value=int() as value) if abs(value) < _FAR:
                return INT
            case Unary(operand=operand) if expr.op != "&":
                return promoted(self.kind(operand))
            case Binary(op="<" | ">" | "<=" | ">=" | "==" | "!=" | "&&" | "||"):
                return BOOL
            case Binary(op="<<" | ">>", left=left):
                return promoted(self.kind(left))
            case Binary(left=left, right=right):
                return arithmetic(self.kind(left), self.kind(right))
            case Choice(then=then, other=other):
                return arithmetic(self.kind(then), self.kind(other))
            case Call(function="min" | "max", arguments=(left, right)):
                return arithmetic(self.kind(left), self.kind(right))
            case Call(function="__ldg", arguments=(Unary(op="&", operand=operand),)):
                return self.kind(operand)
            case Call(function="__ldg", arguments=(address,)):
                return self.kind(address).pointee
        return UNKNOWN

    def whole(self, expr: Expr, depth: int = 0) -> Expr:
        """An expression with the round's locals and calls of functions of the text written out."""
        swaps: dict[Node, Node] = {}
        for part in _calls_and_names(expr):
            variable = part.variable if isinstance(part, Name) else None
            number_ = self._constant(part) if isinstance(part, Name) else None
            if number_ is not None:
                swaps[part] = number_
            elif variable is not None and variable in self.meant:
                swaps[part] = self.held_as(self.whole(self.meant[variable], depth), variable)
            elif isinstance(part, Call) and depth < _DEEPEST:
                made = self._called(part, depth)
                if made is not None:
                    swaps[part] = made
        if expr in swaps:
            return swaps[expr]  # type: ignore[return-value]
        return edited(expr, swaps) if swaps else expr

    def _constant(self, name: Name) -> Literal | None:
        """The number that a constant of the text, or of the kernel, is declared with."""
        own = name.variable
        if own is None:
            declared = (v for d in self.kernel.unit.declarations for v in d.variables)
            own = next((v for v in declared if v.name == name.name and v.type.const), None)
        elif own not in Effects(self.kernel).lasting:
            return None
        value = own.value if own is not None and not own.type.depth else None
        return value if isinstance(value, Literal) and isinstance(value.value, int) else None

    def _called(self, call: Call, depth: int) -> Expr | None:
        """What a call returns, in the words of whoever makes it; None where that is not one."""
        found = self.kernel.unit.called(call.function, len(call.arguments))
        if len(found) != 1 or call.template or call.receiver or call.callee:
            return None
        function = found[0]
        if function.template or not _only_returns(function):
            return None
        *lets, last = function.body.body
        if len(function.parameters) != len(call.arguments) or not isinstance(last, Leave):
            return None
        meant = dict[Variable, Expr]()
        for parameter, argument in zip(function.parameters, call.arguments, strict=True):
            if parameter.type.reference and not parameter.type.const:
                return None
            meant[parameter] = self.whole(argument, depth)
        for let in lets:
            assert isinstance(let, Declare)
            meant |= {v: v.value for v in let.variables if v.value is not None}
        inside = replace(self, meant=meant)
        named_ = [inside.whole(v, depth + 1) for v in meant.values() if depth < _DEEPEST]
        if last.value is None or not all(map(self.only_asks, named_)):
            return None
        result = Variable("", function.result, "local", 0)
        return self.held_as(inside.whole(last.value, depth + 1), result)

    def held_as(self, expr: Expr, variable: Variable) -> Expr:
        """An expression as the type of a local that holds it."""
        spelled = variable.type.base
        if variable.type.depth or spelled == "auto":
            return expr
        if named(spelled, self.kernel.unit.aliases) == self.kind(expr):
            return expr
        return Cast(None, spelled, expr)

    def slope(self, expr: Expr, still: Expr | None = None) -> int | None:
        """By how much an expression goes up from round to round; None where that is not steady.

        ``still`` is a part of it that is taken to stay. As for the reading, sums of counters and
        sizes stay within their type.
        """
        if expr is still:
            return 0
        match expr:
            case Name(variable=Variable() as variable):
                if variable is self.counter:
                    return 1
                lost = variable in self.moving or variable in self.meant or variable.type.volatile
                return None if lost else 0
            case Literal() | Name():
                return 0
            case Binary(op="+" | "-" as op, left=left, right=right):
                ours, theirs = self.slope(left, still), self.slope(right, still)
                if ours is None or theirs is None:
                    return None
                return ours + theirs if op == "+" else ours - theirs
            case Binary(op="*", left=left, right=right):
                ours, theirs = self.slope(left, still), self.slope(right, still)
                if ours == theirs == 0:
                    return 0
                for side, other in ((ours, right), (theirs, left)):
                    if isinstance(other, Literal) and isinstance(other.value, int) and side:
                        return side * other.value
                return None
            case Unary(op="+" | "-" as op, operand=operand):
                inner = self.slope(operand, still)
                return inner if op == "+" or inner is None else -inner
            case Cast(operand=operand):
                inner = self.slope(operand, still)
                return inner if not inner or self._keeps(expr) else None
            case _ if builtin(expr):
                return 0
        if not self._is_plain(expr):
            return None
        return 0 if all(self.slope(part, still) == 0 for part in expr.parts) else None

    def _keeps(self, cast: Cast) -> bool:
        """Whether what goes up by one does so behind a conversion, too."""
        old, new = self.kind(cast.operand), self.kind(cast)
        if not (old.integral and new.integral) or old.kind == "bool" or new.kind == "bool":
            return False
        return (old.size or 8) <= (new.size or 0)

    @staticmethod
    def _is_plain(expr: Expr) -> bool:
        """Whether an expression only computes from its parts, or loads what they lead to."""
        match expr:
            case Binary(op=op):
                return op in _PLAIN
            case Unary(op=op):
                return op in ("!", "~", "*", "&")
            case Call(function=name):
                return name in _PURE
        return isinstance(expr, Index | Member | Choice)

    def symbol(self, expr: Expr) -> Packed | None:
        """The symbol that an expression is, of which one follows the other in each round."""
        match expr:
            case Binary(op="&" | "|" | "^" as op, left=left, right=right):
                for value, mask in ((left, right), (right, left)) if op == "&" else ():
                    bits = mask_bits(bare(mask))
                    found = self._open(value, bits) if bits else None
                    if found is not None:
                        return found
                return mixed(op, self.held(left), self.held(right))
        return None

    def held(self, expr: Expr) -> Packed | None:
        """The symbol that an expression is, behind conversions to types that hold it."""
        kinds = list[CType]()
        while isinstance(expr, Cast):
            kinds.append(self.kind(expr))
            expr = expr.operand
        found = self.symbol(expr)
        if found is None:
            return None
        bits = next(leaves(found)).bits
        room = (1 if k.kind == "bool" else 8 * (k.size or 0) - k.signed for k in kinds)
        return found if all(k.integral for k in kinds) and min(room, default=bits) >= bits else None

    def only_asks(self, expr: Expr) -> bool:
        """Whether an expression changes nothing."""
        kinds = Binary | Unary | Cast | Choice | Index | Literal | Member | Name
        return all(isinstance(e, kinds) or self._is_plain(e) for e in every(expr))

    def tested(self, expr: Expr) -> Packed | None:
        """The bit that ``word & 1 << place`` is of, which is not 0 where the bit is set."""
        match expr:
            case Binary(op="&", left=left, right=right):
                for value, mask in ((left, bare(right)), (right, bare(left))):
                    match mask:
                        case Binary(op="<<", left=one, right=shift) if number(one) == 1:
                            if (self.kind(mask).size or 0) >= (self.kind(value).size or 8):
                                return self._of_words(value, shift, 1)
        return None

    def _open(self, expr: Expr, bits: int) -> Packed | None:
        """What is the symbol of so many bits once all others are masked."""
        expr = self._as_wide(expr)
        match expr:
            case Binary(op=">>", left=word, right=shift):
                return self._of_words(word, shift, bits)
            case Unary(op="~", operand=operand):
                return mixed("~", self._open(operand, bits))
            case Binary(op="&" | "|" | "^" as op, left=left, right=right):
                found = mixed(op, self._open(left, bits), self._open(right, bits))
                return found if found is not None else self._alike(expr, bits)
        return None

    def _alike(self, expr: Expr, bits: int) -> Packed | None:
        found = self.symbol(expr)
        return found if found is not None and next(leaves(found)).bits == bits else None

    def _of_words(self, word: Expr, shift: Expr, bits: int) -> Packed | None:
        """The symbols at one place of words, and of what is made of words bit by bit."""
        word = self._as_wide(word)
        match word:
            case Unary(op="~", operand=operand):
                return mixed("~", self._of_words(operand, shift, bits))
            case Binary(op="&" | "|" | "^" as op, left=left, right=right):
                sides = (self._of_words(side, shift, bits) for side in (left, right))
                return mixed(op, *sides)
        return self._symbol(word, shift, bits)

    def _as_wide(self, expr: Expr) -> Expr:
        """A word without conversions that keep all its bits."""
        while isinstance(expr, Cast) and self.kind(expr).integral:
            old, new = self.kind(expr.operand), self.kind(expr)
            wider = old.integral and not old.signed and (old.size or 8) < (new.size or 0)
            if old.size != new.size and not wider:
                break
            expr = expr.operand
        return expr

    def _symbol(self, word: Expr, shift: Expr, bits: int) -> Symbol | None:
        kind = self.kind(word)
        width = 8 * (kind.size or 0)
        if not kind.integral or kind.kind == "bool" or (width < _WORD and kind.signed):
            return None
        if not _is_load(word) or self.slope(word) == 0:
            return self._of_one(word, shift, bits, width)
        placed = shifted_place(shift, bits, width)
        if placed is None or self.slope(placed[0]) != 1:
            return None
        at, masked, top = placed
        for part in every(word):
            over = quotient(part, width // bits)
            if over is not None and _alike(over[0], at) and self.slope(word, part) == 0:
                floor = (masked and over[1]) or not self.kind(at).signed
                return Symbol(word, shift, at, bits, width, top, floor)
        return None

    def _of_one(self, word: Expr, shift: Expr, bits: int, width: int) -> Symbol | None:
        """The symbol of a word that stays, where the counter goes through its places alone."""
        placed, places = plain_place(shift, bits, width), self.places
        if placed is None or places is None or self.slope(word) != 0 or width < _WORD:
            return None
        at, top = placed
        inside = isinstance(at, Name) and at.variable is self.counter
        if not inside or not 0 <= places.start <= places.stop <= width // bits:
            return None
        return Symbol(word, shift, at, bits, width, top, floor=True, alone=True)


def _alike(one: Expr, other: Expr) -> bool:
    one, other = bare(one), bare(other)
    return one is other or same(one, other)


def _is_load(word: Expr) -> bool:
    match word:
        case Index() | Unary(op="*"):
            return True
        case Call(function="__ldg"):
            return True
    return False


def _calls_and_names(expr: Expr) -> list[Expr]:
    """The names and calls of an expression, none that stands in a call which is among them."""
    return [e for e in every(expr) if isinstance(e, Name | Call)]


def _only_returns(function: Function) -> bool:
    """Whether a function names values and returns one, and changes nothing."""
    *lets, last = function.body.body or (function.body,)
    if not isinstance(last, Leave) or last.kind != "return":
        return False
    if not all(isinstance(s, Declare) for s in lets) or loops_in(function.body):
        return False
    declared = [v for s in walk(function.body) if isinstance(s, Declare) for v in s.variables]
    if any(v.array or v.type.reference or v.value is None for v in declared):
        return False
    allowed = Binary | Unary | Call | Cast | Choice | Index | Literal | Member | Name
    return all(isinstance(e, allowed) for e in expressions(function.body))
