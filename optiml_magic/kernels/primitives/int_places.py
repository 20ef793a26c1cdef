"""The expressions of a kernel some of whose sizes and places become ints.

What is an operand of an int is one as well, where that is known to hold it; all else a size is used
for stays what it was, or is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
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
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.between import Between
from optiml_magic.kernels.primitives.range_forms import plain
from optiml_magic.kernels.tree import Declare, Statement, Variable, walk
from optiml_magic.kernels.types import BOOL, FLOAT, INT, UINT, CType, arithmetic, named, promoted

_PURE = (Name, Literal, Member, Binary, Unary, Cast, Choice)
_EQUAL = ("==", "!=")
_BEFORE = ("unsigned int", "size_t")  # of 32 and of 64 bits


def is_wide(kind: CType) -> bool:
    """Whether a whole number has more bits than an int, or no sign."""
    size = kind.size or 0
    return kind.kind == "int" and kind.lanes == 1 and not kind.depth and (
        size > (INT.size or 0) or (size == INT.size and not kind.signed)
    )  # fmt: skip


class Ints:
    """The expressions of a kernel where some of its variables are ints, and the types of these."""

    def __init__(self, kernel: Kernel, between: Between, chosen: frozenset[Variable]) -> None:
        self.kernel, self.between, self.chosen = kernel, between, chosen
        self.line = 0

    def swaps(self) -> dict[Node, Node]:
        found = dict[Node, Node]()
        for statement in walk(self.kernel.function.body):
            self.line = statement.line
            if isinstance(statement, Declare):
                new = self._declaration(statement)
                if new is not statement:
                    found[statement] = new
                continue
            for expr in statement.expressions:
                made, _ = self.made(expr, frozenset())
                if made is not expr:
                    found[expr] = made
        return found

    def _declaration(self, statement: Declare) -> Statement:
        variables = list[Variable]()
        for old in statement.variables:
            variable = old
            for extent in variable.extents:
                if extent is not None:
                    self._same(extent)
            if variable.value is None:
                for part in variable.initial:
                    self._same(part)
                variables.append(variable)
                continue
            made, kind = self.made(variable.value, frozenset())
            if variable not in self.chosen:
                own = named(variable.type.base, self.kernel.unit.aliases)
                own = replace(own, depth=own.depth + variable.type.depth)
                auto = variable.type.base == "auto"
                own = self._old(variable.value) if auto else own
                made = self._given(variable.value, made, kind, own)
            if made is not variable.value:
                variable = replace(variable, value=made, initial=())
            variables.append(variable)
        words = statement.words
        if all(v in self.chosen for v in statement.variables):
            const = "const" in words.split() or "constexpr" in words.split()
            words = "const int " if const else "int "
        same = all(a is b for a, b in zip(variables, statement.variables, strict=True))
        if same and words == statement.words:
            return statement
        return replace(statement, words=words, variables=tuple(variables), span=None)

    def made(self, expr: Expr, natural: frozenset[Variable]) -> tuple[Expr, CType]:
        """An expression and its type; ``natural`` are those that are known not to be negative."""
        old = self._old(expr)
        match expr:
            case Name(variable=variable) if variable in self.chosen:
                return expr, INT
            case Binary(op="&&" | "||" as op, left=left, right=right):
                one, _ = self.made(left, natural)
                other, _ = self.made(right, natural | {*_naturals(left, op, self)})
                return _with(expr, (one, other)), old
            case Binary(op="<" | "<=" | ">" | ">=" | "==" | "!="):
                return self._compared(expr, natural), BOOL
            case Binary(op="+" | "-" | "*" | "/" | "%"):
                return self._combined(expr, natural)
            case Choice(test=test, then=then, other=other):
                asked, _ = self.made(test, natural)
                ways, kind = self._common((then, other), natural)
                return _with(expr, (asked, *ways)), self._known(
                    expr, kind if kind.integral else old
                )
            case Unary(op="-" | "+", operand=operand):
                inner, kind = self.made(operand, natural)
                new = promoted(kind) if self._changed(operand, kind) else old
                return _with(expr, (inner,)), self._known(expr, new)
            case Unary(op="!", operand=operand):
                return _with(expr, (self.made(operand, natural)[0],)), old
            case Cast(operand=operand):
                return self._cast(expr, natural)
            case Index(base=base, index=index):
                array, held = self.made(base, natural)
                if self._changed(base, held):
                    raise NotLegal("a size is used for more than to count", self.line)
                place, kind = self.made(index, natural)
                narrow = (self._old(index).size or 0) <= (INT.size or 0)
                narrow = narrow and self._changed(index, kind) and not self._natural(index, natural)
                if narrow and not self.between.small(base):
                    self._moves(index, kind)
                return _with(expr, (array, place)), old
            case Assign():
                return self._assigned(expr, natural), old
            case Step(target=target):
                self._counts(expr, target)
                return _with(expr, (self.made(target, natural)[0],)), old
            case Call():
                return self._called(expr, natural)
        parts = [self.made(part, natural) for part in expr.parts]
        for part, (_, kind) in zip(expr.parts, parts, strict=True):
            if self._changed(part, kind):
                raise NotLegal("a size is used for more than to count", self.line)
        return _with(expr, tuple(part for part, _ in parts)), old

    def _old(self, expr: Expr) -> CType:
        return self.between.types.get(expr) or self.between.kind(expr)

    def _changed(self, expr: Expr, kind: CType) -> bool:
        old = self._old(expr)
        return kind.integral and (kind.size, kind.signed) != (old.size, old.signed)

    def _same(self, expr: Expr) -> None:
        made, kind = self.made(expr, frozenset())
        if made is not expr or self._changed(expr, kind):
            raise NotLegal("a size is used for more than to count", self.line)

    def _known(self, expr: Expr, kind: CType) -> CType:
        """The new type of an expression, which has to hold all that it may be."""
        if not self._changed(expr, kind):
            return kind
        if not self._old(expr).integral or (kind.size, kind.signed) != (INT.size, True):
            raise NotLegal("what is made of its sizes is not known to be one", self.line)
        if not self.between.fits(self.between.of(expr)):
            raise NotLegal("an int is not known to hold all places", self.line)
        return kind

    def _common(
        self, operands: tuple[Expr, Expr], natural: frozenset[Variable]
    ) -> tuple[tuple[Expr, ...], CType]:
        """Operands as their operator has them, of which one that an int holds is one beside ints.

        The type is that of both.
        """
        sides = [self.made(operand, natural) for operand in operands]
        touched = [self._changed(o, k) for o, (_, k) in zip(operands, sides, strict=True)]
        if any(touched):
            for at, operand in enumerate(operands):
                made, kind = sides[at]
                if touched[at] or not is_wide(kind):
                    continue
                if isinstance(operand, Literal) and self.between.fits(self.between.of(operand)):
                    sides[at] = Literal(None, str(operand.value), operand.value), INT
                elif kind == UINT and self.between.fits(self.between.of(operand)):
                    sides[at] = Cast(None, "int", made), INT
        if any(touched):
            most = max((self._old(o).size or 0) * self._old(o).integral for o in operands)
            for at, operand in enumerate(operands):
                if touched[at]:
                    sides[at] = self._operand(operand, sides[at], sides[1 - at][1])
                self._gains(operand, most)
        (one, first), (other, second) = sides
        olds = self._old(operands[0]), self._old(operands[1])
        return (one, other), arithmetic(first, second) if any(touched) else arithmetic(*olds)

    def _gains(self, operand: Expr, size: int) -> None:
        """Raise NotLegal where an operand without a sign may wrap around, then gains bits."""
        kind = self._old(operand)
        gains = kind.integral and not promoted(kind).signed and (kind.size or 0) < size
        if gains and not self.between.exact(operand):
            raise NotLegal("a place may be negative that had no sign", self.line)

    def _operand(
        self, operand: Expr, side: tuple[Expr, CType], beside: CType
    ) -> tuple[Expr, CType]:
        """A converted operand beside the other one; raises NotLegal where it is another number."""
        made, kind = side
        if not beside.depth and (not beside.integral or beside.lanes != 1):
            return self._given(operand, made, kind, beside), kind
        if beside.depth:
            self._moves(operand, kind)
        return side

    def _moves(self, place: Expr, kind: CType) -> None:
        """Raise NotLegal where a place that wrapped around in 32 bits was another one."""
        narrow = (self._old(place).size or 0) <= (INT.size or 0)
        if narrow and self._changed(place, kind) and not self.between.exact(place):
            raise NotLegal("a place may be negative that had no sign", self.line)

    def _combined(self, expr: Binary, natural: frozenset[Variable]) -> tuple[Expr, CType]:
        sides, kind = self._common((expr.left, expr.right), natural)
        old = self._old(expr)
        made = _with(expr, sides)
        if old.depth or not old.integral:
            return made, old
        kind = kind if kind.integral else old
        return made, self._known(expr, kind)

    def _compared(self, expr: Binary, natural: frozenset[Variable]) -> Expr:
        operands, find = (expr.left, expr.right), self.between
        sides, kind = self._common(operands, natural)
        made = _with(expr, sides)
        olds = [self._old(one) for one in operands]
        if not all(one.integral for one in olds):
            return made
        old = arithmetic(*olds)
        if (kind.size, kind.signed) == (old.size, old.signed):
            return made
        if (kind.size, kind.signed) != (INT.size, True) or not all(
            find.fits(find.of(one)) for one in operands
        ):
            raise NotLegal("what a size is compared with is not known to be one", self.line)
        if old.signed or expr.op in _EQUAL:
            return made
        below = [not self._natural(one, natural) for one in operands]
        if all(below):
            below = [not find.natural(one) for one in operands]
        if not any(below):
            return made
        if all(below):
            raise NotLegal("numbers without a sign are compared that may wrap around", self.line)
        at = below.index(True)
        if not all(isinstance(e, _PURE) for e in every(operands[at])):
            raise NotLegal("what is compared may be another number the next time", self.line)
        # Whether the one below zero, which was far beyond, makes the comparison true.
        beyond = (expr.op in (">", ">=")) == (at == 0)
        asked = Binary(None, "<" if beyond else ">=", sides[at], Literal(None, "0", 0))
        return Binary(None, "||" if beyond else "&&", asked, made)

    def _natural(self, expr: Expr, natural: frozenset[Variable]) -> bool:
        """Whether a number is certainly not negative, or what its sizes say alone."""
        inner, find = expr, self.between
        while isinstance(inner, Cast) and self._keeps(inner):
            inner = inner.operand
        if isinstance(inner, Name) and inner.variable in natural:
            return True
        found = find.of(expr)
        if found is None or plain(found.low):
            return found is not None
        return found.low == found.high and find.positive(found.low)

    def _keeps(self, cast: Cast) -> bool:
        """Whether a conversion keeps whole numbers that are not negative."""
        old, new, bits = self._old(cast.operand), self._old(cast), INT.size or 0
        fits = (new.size or 0) >= max(old.size or 0, bits) or self.between.fits(
            self.between.of(cast.operand)
        )
        return old.integral and new.integral and (new.size or 0) >= bits and fits

    def _cast(self, expr: Cast, natural: frozenset[Variable]) -> tuple[Expr, CType]:
        inner, kind = self.made(expr.operand, natural)
        old, before = self._old(expr), self._old(expr.operand)
        touched = self._changed(expr.operand, kind)
        if is_wide(old) and before.integral and self.between.fits(self.between.of(expr)):
            return (inner if kind == INT else Cast(None, "int", inner)), INT
        if touched:
            inner = self._given(expr.operand, inner, kind, old)
            if old.integral and (old.size, old.signed) == (INT.size, True):
                return inner, old
        return _with(expr, (inner,)), old

    def _given(self, expr: Expr, made: Expr, kind: CType, into: CType) -> Expr:
        """A value that is converted to another type: what may be negative is as it was before.

        Raises NotLegal where it would be another value in that type.
        """
        if not self._changed(expr, kind):
            return made
        old = self._old(expr)
        if into.integral and into.lanes == 1:
            wider = (into.size or 0) > (old.size or 0)
            if wider and not self.between.exact(expr):
                raise NotLegal("a place may be negative that had no sign", self.line)
        elif not into.floating or (into.size or 0) < (FLOAT.size or 0):
            raise NotLegal("a size is used for more than to count", self.line)
        elif not old.signed and not self._natural(expr, frozenset()):
            return Cast(None, _BEFORE[(old.size or 0) > (INT.size or 0)], made)
        return made

    def _assigned(self, expr: Assign, natural: frozenset[Variable]) -> Expr:
        target, value = expr.target, expr.value
        place, _ = self.made(target, natural)
        made, kind = self.made(value, natural)
        if isinstance(target, Name) and target.variable in self.chosen:
            self._counts(expr, target)
        elif self._changed(value, kind):
            into = self._old(target)
            if expr.op != "=":
                sums = expr.op in ("+=", "-=", "*=")
                wide = into.depth or into.floating or is_wide(into)
                if not sums or not wide:
                    raise NotLegal("a size is used for more than to count", self.line)
            if into.depth:
                self._moves(value, kind)
            else:
                made = self._given(value, made, kind, into)
        return _with(expr, (place, made))

    def _counts(self, expr: Expr, target: Expr) -> None:
        """Raise NotLegal where something moves a size in another way than a loop its counter."""
        if isinstance(target, Name) and target.variable in self.chosen:
            counts = self.between.counts(target.variable) if target.variable else None
            if counts is None or counts[0].update is not expr:
                raise NotLegal(f"`{target.name}` moves in more than one way", self.line)

    def _called(self, expr: Call, natural: frozenset[Variable]) -> tuple[Expr, CType]:
        parts = [self.made(part, natural) for part in expr.parts]
        touched = [self._changed(p, k) for p, (_, k) in zip(expr.parts, parts, strict=True)]
        old, arguments = self._old(expr), expr.arguments
        called = self.kernel.unit.called(expr.function, len(arguments))
        if any(touched):
            extreme = expr.function in ("min", "max") and not called and len(expr.parts) == 2
            if extreme and old.integral and self.between.comparable(*arguments):
                sides, kind = self._common((arguments[0], arguments[1]), natural)
                if kind == INT and all(self.between.fits(self.between.of(a)) for a in arguments):
                    return _with(expr, sides), self._known(expr, INT)
            if len(called) != 1 or called[0].template or len(expr.parts) != len(arguments):
                raise NotLegal(f"what `{expr.function}` does may depend on a type", self.line)
            for at, (argument, parameter) in enumerate(
                zip(arguments, called[0].parameters, strict=False)
            ):
                made, kind = parts[at]
                own = named(parameter.type.base, self.kernel.unit.aliases)
                own = replace(own, depth=own.depth + parameter.type.depth)
                if self._changed(argument, kind) and parameter.type.reference:
                    raise NotLegal(f"`{expr.function}` takes a reference to a size", self.line)
                made = self._given(argument, made, kind, own)
                if self._changed(argument, kind) and is_wide(own):  # of the same name others may be
                    made = Cast(None, parameter.type.base, made)
                parts[at] = made, kind
        return _with(expr, tuple(part for part, _ in parts)), old


def _naturals(expr: Expr, op: str, ints: Ints) -> Iterator[Variable]:
    """What is not negative where the right side of ``&&`` or ``||`` is asked for."""
    if isinstance(expr, Binary) and expr.op == op:
        yield from _naturals(expr.left, op, ints)
        yield from _naturals(expr.right, op, ints)
    match expr:
        case Binary(op=asked, left=Name(variable=Variable() as variable), right=Literal(value=0)):
            wanted = ">=" if op == "&&" else "<"
            kinds = (ints.between.kind(expr.left), ints.between.kind(expr.right))
            find = ints.between
            stays = variable in find.effects.lasting or find.counts(variable) is not None
            if asked == wanted and stays and arithmetic(*kinds).signed:
                yield variable


def _with(expr: Expr, parts: tuple[Expr, ...]) -> Expr:
    """An expression with other parts, in the order of its own."""
    swaps: dict[Node, Node] = {
        old: new for old, new in zip(expr.parts, parts, strict=True) if old is not new
    }
    return edited(expr, swaps) if swaps else expr
