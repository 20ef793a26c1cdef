"""Expressions of a block's threads, side by side: whole numbers, and pointers into its arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Braces,
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
from optiml_magic.kernels.literals import number
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import names
from optiml_magic.kernels.primitives.lane_values import (
    By,
    Flags,
    Lanes,
    Whole,
    combined,
    compared,
    constant,
    converted,
    merged,
    unknown,
)
from optiml_magic.kernels.primitives.launch_blocks import LaunchBlocks
from optiml_magic.kernels.primitives.touched import Touched
from optiml_magic.kernels.tree import TypeName, Variable
from optiml_magic.kernels.types import BOOL, INT, UINT, CType, named, promoted

_MOST = 80_000  # expressions that are followed: ours
_COMPARED = frozenset({"<", "<=", ">", ">=", "==", "!="})


@dataclass(frozen=True, eq=False)
class Leads:
    """A pointer into an array of the launch; None where it leads to memory of the block's own."""

    array: str | None
    at: Whole | None = None


Value = Whole | Leads | None
OWN = Leads(None)


class LaneExpressions:
    """What expressions are worth for the threads that ``may`` come there, and do to arrays."""

    def __init__(self, kernel: Kernel, blocks: LaunchBlocks) -> None:
        extents = [n or 1 for n in kernel.block]
        self.unit, self.blocks, self.line = kernel.unit, blocks, kernel.function.line
        self.lanes = extents[0] * extents[1] * extents[2]
        self.steps, self.often = 0, 1
        #: Where pointers into an array lead for each thread, None where that changes.
        self.leads: dict[Expr | Variable, tuple[str, Lanes] | None] = {}
        self.changed: set[Variable] = set()
        self.types: dict[Expr, CType] = {}
        self.touched: dict[str, Touched] = {}
        self.env: dict[Variable, Value] = {}
        self.lent: set[Variable] = set()
        self.own = {*kernel.function.parameters}
        kinds = ((p.name, named(p.type.base, self.unit.aliases)) for p in self.own)
        self.elements = {n: k for n, k in kinds if k.integral and k.lanes == 1}
        self.may = self.must = self.flags(True)
        self.unsure = self.flags(False)  # threads that may have left a loop or a function
        rank = np.arange(self.lanes)
        self.builtins: dict[str, Whole | None] = {"warpSize": self.number(32, INT)}
        for axis, size in zip("xyz", extents, strict=True):
            where, zero = f"blockIdx.{axis}", self.number(0, UINT)
            count = blocks.numbers[where]
            self.builtins |= {
                f"threadIdx.{axis}": replace(zero, at=(rank % size).astype(np.int64)),
                f"blockDim.{axis}": self.number(size, UINT),
                where: zero if count == 1 else replace(zero, by=((where, 1),)),
            }
            if count is not None:
                self.builtins[f"gridDim.{axis}"] = self.number(count, UINT)
            rank = rank // size

    def flags(self, value: bool) -> Flags:
        return np.full(self.lanes, value, np.bool_)

    def number(self, value: int, kind: CType) -> Whole:
        return constant(kind, value, self.lanes)

    def truth(self, expr: Expr) -> Whole | None:
        """A test, whose answers are 0 and 1."""
        return self.asked(self.value(expr))

    def asked(self, found: Value) -> Whole | None:
        if not isinstance(found, Whole):
            return None
        return compared("!=", found, self.number(0, found.kind), self._decided)

    def _decided(self, op: str, by: By, apart: Lanes, known: Flags) -> bool | None:
        lanes = apart[known & self.may]
        if not len(lanes):
            return None
        return self.blocks.decided(op, by, int(lanes.min()), int(lanes.max()))

    def ways(self, test: Whole | None) -> list[tuple[Flags, Flags]]:
        """The threads that may and must go on where a test is true, and where it is not."""
        known = test.known if test is not None else self.flags(False)
        true = known & (test.at != 0) if test is not None else known
        false = known & ~true
        return [(self.may & ~false, self.must & true), (self.may & ~true, self.must & false)]

    def value(self, expr: Expr) -> Value:
        """What an expression is worth; what it does is done."""
        self.steps += 1
        if self.steps > _MOST:
            raise NotLegal("a block makes too many rounds to be followed", self.line)
        found = self._value(expr)
        if isinstance(found, Whole):
            self.types[expr] = found.kind
            self.blocks.multiplied(found.by)
        return found

    def _value(self, expr: Expr) -> Value:
        match expr:
            case Literal(text=text):
                return self._literal(text)
            case Name(variable=None, name=name):
                return self.builtins.get(name, OWN)
            case Name(variable=Variable() as variable):
                return self._named(variable)
            case Member() if builtin(expr):
                return self.builtins.get(builtin(expr))
            case Index() | Member() | Unary(op="*"):
                return self.loaded(expr)
            case Unary():
                return self._unary(expr)
            case Binary():
                return self._binary(expr)
            case Choice():
                return self._choice(expr)
            case Cast():
                return self._cast(expr)
            case Assign(target=target, op=op, value=given):
                found = self.value(given)
                if op != "=":
                    found = self._arithmetic(op[:-1], self.value(target), found)
                return self.assigned(target, found)
            case Step(target=target, op=op, prefix=prefix):
                old = self.value(target)
                new = self.assigned(target, self._arithmetic(op[0], old, self.number(1, INT)))
                return new if prefix else old
            case Call():
                return self.called(expr)
            case Braces(members=members):
                for member in members:
                    self._kept(self.value(member))
                return None
        raise NotLegal("an expression is not followed", self.line)

    def called(self, expr: Call) -> Value:
        raise NotImplementedError

    def _literal(self, text: str) -> Value:
        if text in ("true", "false"):
            return self.number(text == "true", BOOL)
        read = number(text)
        if read is None or not isinstance(read[0], int):
            return None
        return self.number(read[0], named(read[1], {}))

    def _named(self, variable: Variable) -> Value:
        if variable in self.lent:
            return None
        found = self.env.get(variable)
        if variable in self.own and isinstance(found, Leads) and found.array is not None:
            self.touched[found.array].form(found.at, self.may, self.line)
        return found

    def _unary(self, expr: Unary) -> Value:
        if expr.op == "&":
            return self._address(expr.operand)
        found = self.value(expr.operand)
        if expr.op == "!":
            test = self.asked(found)
            return replace(test, at=1 - test.at) if test is not None else None
        if not isinstance(found, Whole):
            return None
        if expr.op == "-":
            return combined("-", self.number(0, promoted(found.kind)), found)
        if expr.op == "~":
            return combined("-", self.number(-1, promoted(found.kind)), found)
        return found if expr.op == "+" else None

    def _address(self, place: Expr) -> Value:
        match place:
            case Name(variable=Variable() as variable):
                if isinstance(self.env.get(variable), Leads) and self.env[variable] is not OWN:
                    raise NotLegal(f"the address of `{variable.name}` is taken", self.line)
                self.lent.add(variable)
                return OWN
            case Index() | Unary(op="*"):
                return self.place(place)
            case Member():
                found = self.place(place)
                if found.array is not None:
                    raise NotLegal("the address of a member is taken", self.line)
                return OWN
        self.lend(place)
        return OWN

    def place(self, expr: Expr) -> Leads:
        """Where an expression in memory lies; a local structure is the block's own."""
        match expr:
            case Index(base=Name(variable=Variable() as variable), index=index):
                own = variable in self.own and variable not in self.lent
                base = self.env.get(variable) if own else self.value(expr.base)
                return self._moved(base, self.value(index))
            case Index(base=base, index=index):
                return self._moved(self.value(base), self.value(index))
            case Unary(op="*", operand=operand):
                return self._moved(self.value(operand), self.number(0, INT))
            case Member(base=base, arrow=True):
                return self._moved(self.value(base), self.number(0, INT))
            case Member(base=Name()):
                return OWN
            case Member(base=Index() | Member() | Unary(op="*") as base):
                return self.place(base)
            case Member(base=base):
                self.value(base)
                return OWN
        raise NotLegal("a place is not followed", self.line)

    def _moved(self, base: Value, by: Value, op: str = "+") -> Leads:
        if not isinstance(base, Leads):
            raise NotLegal("where a pointer leads is not followed", self.line)
        if base.array is None:
            return OWN
        apart = combined(op, base.at, by) if base.at and isinstance(by, Whole) else None
        return Leads(base.array, apart)

    def ask(self, found: Leads, *, load: bool, store: bool, certain: bool = True) -> None:
        if found.array is not None:
            lanes = self.may, self.must & certain
            known, often = self.touched[found.array], self.often
            known.ask(found.at, lanes, self.line, load=load, store=store, often=often)

    def loaded(self, expr: Expr) -> Value:
        found = self.place(expr)
        self.ask(found, load=True, store=False)
        if found is OWN or isinstance(expr, Member):
            return OWN if isinstance(expr, Index) else None
        kind = self.elements.get(found.array or "")
        return unknown(kind, self.lanes) if kind else None

    def stored(self, expr: Expr) -> None:
        """A store to a place in memory; to a part of an element alone it is not certain."""
        found = self.place(expr)
        part = isinstance(expr, Member)
        self.ask(found, load=part, store=True, certain=not part)

    def lend(self, expr: Expr) -> None:
        """A place to which something else leads from now on."""
        match expr:
            case Name(variable=Variable() as variable):
                self.lent.add(variable)
            case Index() | Member() | Unary(op="*"):
                self.ask(self.place(expr), load=True, store=True, certain=False)
            case _:
                self.lent |= names([expr])
                self.value(expr)

    def assigned(self, target: Expr, found: Value) -> Value:
        match target:
            case Name(variable=Variable() as variable):
                if variable in self.own and isinstance(self.env.get(variable), Leads):
                    raise NotLegal(f"the parameter `{variable.name}` changes", self.line)
                if variable in self.lent:
                    self._kept(found)
                    return None
                new = self.held(found, variable)
                self.changed.add(variable)
                sure = self.may & ~self.unsure
                self.env[variable] = self.joined(new, self.env.get(variable), self.may, sure)
                return new
        self._kept(found)
        if not isinstance(target, Name):
            self.stored(target)
        return None

    def _kept(self, found: Value) -> None:
        """A value that is kept where it is not followed."""
        if isinstance(found, Leads) and found.array is not None:
            raise NotLegal("a pointer is kept where it is not followed", self.line)

    def held(self, found: Value, variable: Variable) -> Value:
        """A value as a local of this type holds it."""
        return found if variable.type.base == "auto" else self.typed(found, variable.type)

    def typed(self, found: Value, kind: TypeName) -> Value:
        if not isinstance(found, Whole):
            return found if kind.depth else None
        return None if kind.depth else converted(found, named(kind.base, self.unit.aliases))

    def joined(self, new: Value, old: Value, may: Flags, must: Flags) -> Value:
        """What a local holds where threads that ``may`` have the new value, or ``must``."""
        if new is old or must.all():
            return new
        if isinstance(new, Leads) or isinstance(old, Leads):
            alike = isinstance(new, Leads) and isinstance(old, Leads) and new.array == old.array
            if not alike or not isinstance(new, Leads) or not isinstance(old, Leads):
                return None
            return Leads(new.array, merged(new.at, old.at, may, must))
        return merged(new, old, may, must)

    def _cast(self, expr: Cast) -> Value:
        found, kind = self.value(expr.operand), named(expr.type, self.unit.aliases)
        if isinstance(found, Leads) and found.array is not None:
            raise NotLegal("a pointer is cast", self.line)
        if isinstance(found, Whole) and not kind.depth:
            return converted(found, kind)
        return OWN if found is OWN else None

    def _choice(self, expr: Choice) -> Value:
        test, before = self.truth(expr.test), (self.may, self.must)
        found = list[Value]()
        ways = self.ways(test)
        for side, way in zip((expr.then, expr.other), ways, strict=True):
            self.may, self.must = way
            found.append(self.value(side) if way[0].any() else None)
        chosen = found[1]
        if ways[0][0].any():
            may, other = ways[0][0], ways[1][0]
            chosen = self.joined(found[0], found[1], may, may & ~other) if other.any() else found[0]
        self.may, self.must = before
        return chosen

    def _binary(self, expr: Binary) -> Value:
        if expr.op == ",":
            self.value(expr.left)
            return self.value(expr.right)
        if expr.op in ("&&", "||"):
            return self._either(expr)
        left, right = expr.left, expr.right
        for base, by in ((left, right), (right, left)):
            if isinstance(base, Name) and base.variable in self.own and expr.op == "+":
                found = self.env.get(base.variable) if base.variable is not None else None
                if isinstance(found, Leads) and base.variable not in self.lent:
                    made = self._moved(found, self.value(by), expr.op)
                    if made.array is not None:
                        self.touched[made.array].form(made.at, self.may, self.line)
                    self.led(expr, made)
                    return made
        return self._arithmetic(expr.op, self.value(left), self.value(right))

    def led(self, where: Expr | Variable, found: Value) -> None:
        """Note where a pointer leads, None where that changes."""
        if not self.may.any():
            return
        at, now = found.at if isinstance(found, Leads) else None, None
        if isinstance(found, Leads) and found.array and at is not None and at.known[self.may].all():
            now = found.array, np.where(self.may, at.at, at.at[self.may][:1])
        old = self.leads.get(where, now)
        same = old is not None and now is not None and old[0] == now[0]
        self.leads[where] = now if same and old and now and (old[1] == now[1]).all() else None

    def _arithmetic(self, op: str, left: Value, right: Value) -> Value:
        if op in ("+", "-") and isinstance(left, Leads) != isinstance(right, Leads):
            base, by = (left, right) if isinstance(left, Leads) else (right, left)
            if base is OWN:
                return OWN
            return self._moved(base, by, op)
        if not isinstance(left, Whole) or not isinstance(right, Whole):
            return None
        if op in _COMPARED:
            return compared(op, left, right, self._decided)
        return combined(op, left, right)

    def _either(self, expr: Binary) -> Value:
        """The right side is asked for by those whom the left one has not told."""
        left, before = self.truth(expr.left), (self.may, self.must)
        self.may, self.must = self.ways(left)[expr.op == "||"]
        right = self.truth(expr.right) if self.may.any() else None
        self.may, self.must = before
        sides = [s if s is not None else unknown(BOOL, self.lanes) for s in (left, right)]
        ends = 0 if expr.op == "&&" else 1  # what a side alone decides
        decided = [s.known & (s.at == ends) for s in sides]
        known = decided[0] | decided[1] | (sides[0].known & sides[1].known)
        at = np.where(decided[0] | decided[1], ends, 1 - ends)
        return Whole(BOOL, at, known)
