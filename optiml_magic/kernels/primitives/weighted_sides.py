"""What the parts of a loop over elements tell of: a row, a key, or both; and linear updates.

A part that a row or a key alone decides is found once for it, and lies in a tile. What is not
certain to be so is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Expr,
    Index,
    Lambda,
    Literal,
    Name,
    Step,
    Unary,
    Unread,
    builtin,
    every,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.computing import only_computes
from optiml_magic.kernels.primitives.effects import Effects, names, parted
from optiml_magic.kernels.primitives.items import is_plain
from optiml_magic.kernels.primitives.mapped import Mapped
from optiml_magic.kernels.primitives.naming import LocalSpeller, counting
from optiml_magic.kernels.primitives.places import tops
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.symbols import Condition
from optiml_magic.kernels.tree import Declare, Evaluate, Statement, Variable, walk
from optiml_magic.kernels.types import CType

ROW, KEY = "row", "key"
_PAIR = "pair"
ONE = Literal(None, "1.0f", 1.0)
FUSED = ("fmaf", "fma", "__fmaf_rn", "__fma_rn")
_SIZES = (2, 4, 8)
_OURS = ("threadIdx.x", "blockIdx.x")


@dataclass(frozen=True, eq=False)
class Operand:
    """A part of a round that a row or a key alone decides, as its tile holds it."""

    expr: Expr
    type: CType
    swaps: Mapping[Node, Node]


@dataclass(frozen=True, eq=False)
class Given:
    """A kernel, what its threads do for an item, the locals of that, and the array that grows.

    Keys may be each row's ``own``: what is loaded for a key may then depend on the row as well.
    """

    kernel: Kernel
    effects: Effects
    items: Mapped
    own: frozenset[Variable]
    accesses: Mapping[Expr, Access]
    array: Variable | None
    own_keys: bool = False


class Sides:
    """Which parts of an inner loop say something of the row, of the key or of the pair."""

    def __init__(self, given: Given, outer: Axis, axis: Axis, total: Variable | None) -> None:
        self.given, self.outer, self.axis, self.total = given, outer, axis, total
        self.kernel, self.effects = given.kernel, given.effects
        self.symbols = self.kernel.reading.symbols
        self.inner = {v for s in walk(axis.node) if isinstance(s, Declare) for v in s.variables}
        self.inner -= {axis.variable} if axis.variable is not None else set()
        around = {v for s in walk(outer.node.body) if isinstance(s, Declare) for v in s.variables}
        self.passing = {*self.effects.changed(outer.node.body), *around} - self.inner
        self.passing -= {axis.variable} if axis.variable is not None else set()
        written = self.kernel.reading.written
        if axis.variable is None or outer.variable is None:
            raise NotLegal("how its loop over keys counts is not followed", outer.line)
        steady = frozenset(a for a in self.kernel.reading.arrays if a not in written)
        called = {axis.name: axis.variable.name, "@x": given.items.name}
        called |= {f"@{letter}": f"(int)blockIdx.{letter}" for letter in "yz"}  # of one thread each
        self.speller = LocalSpeller(self.symbols, called, steady=steady, moved=self.effects.moved)
        self.speller.kernel, self.speller.around = self.kernel, (outer,)

    def of(self, expr: Expr) -> frozenset[str]:
        """What an expression tells of."""
        access = self.given.accesses.get(expr)
        if access is not None and access.space == "global" and not isinstance(expr, Assign):
            return self._access(access)
        if expr in self.given.items.swaps:
            return frozenset({ROW})
        if isinstance(expr, Index):
            return self._element(expr)
        if isinstance(expr, Name) and expr.variable is not None:
            return self._name(expr.variable)
        if builtin(expr).endswith(".x"):
            raise NotLegal("it asks where its thread stands", self.axis.line)
        own = frozenset[str]()
        if isinstance(expr, Call) and not only_computes(self.kernel, expr):
            own = frozenset({_PAIR})
        if isinstance(expr, Assign | Step | Lambda | Unread) or (
            isinstance(expr, Unary) and expr.op in "&*"
        ):
            own = frozenset({_PAIR})
        return own.union(*(self.of(part) for part in expr.parts))

    def _name(self, variable: Variable) -> frozenset[str]:
        if variable is self.outer.variable:
            return frozenset({KEY})
        if variable is self.total or variable in self.inner:
            return frozenset({_PAIR})
        if variable in self.passing:
            return frozenset({ROW, _PAIR})
        if variable in self.given.own or variable is self.given.items.holding:
            return frozenset({ROW})
        return frozenset()

    def _element(self, expr: Index) -> frozenset[str]:
        """An element of a local array, which is a row's where its rounds leave it alone."""
        variable = expr.base.variable if isinstance(expr.base, Name) else None
        own = frozenset({ROW})
        if variable is None and not isinstance(expr.base, Name):
            own |= self.of(expr.base)
        if variable in self.passing or variable in self.inner:
            own |= {_PAIR}
        return own | self.of(expr.index)

    def _access(self, access: Access) -> frozenset[str]:
        form, symbols = access.index, self.symbols
        if form is None or not symbols.known(form) or not is_plain(self.kernel, access, _SIZES):
            raise NotLegal("an access of the loop is not followed", access.line)
        form = self.speller.local(form)
        known = [name for name in form.symbols if not name.startswith("@")]
        inside = frozenset({*form.symbols}).union(
            *(symbols.inside(Polynomial.symbol(name)) for name in known)
        )
        counter = counting(self.outer.variable) if self.outer.variable is not None else ""
        found = set[str]()
        if inside & {counter, self.outer.name}:
            if not self.given.own_keys:
                self._check_even(access, form, counter)
            found.add(KEY)
        if not found or (not self.given.own_keys and inside & {"@x", *_OURS}):
            found.add(ROW)
        return frozenset(found)

    def _check_even(self, access: Access, form: Polynomial, counter: str) -> None:
        """Raise NotLegal where keys between two that are loaded may lie elsewhere."""
        by, rest = form.coefficient(counter), form.without([counter])
        parts = [name for f in (by, rest) if f is not None for name in f.symbols]
        inside = self.symbols.inside
        told = (inside(Polynomial.symbol(n)) for n in parts if not n.startswith("@"))
        if by is None or {counter, self.outer.name} & frozenset[str]().union(*told):
            raise NotLegal("the rows of keys do not lie evenly apart", access.line)

    def operands(self, body: Statement) -> tuple[list[Operand], list[Operand]]:
        """The largest parts of a body that are of a row alone, and those of a key."""
        found: dict[str, list[Operand]] = {ROW: [], KEY: []}
        todo = [e for s in parted(body) for e in tops(s)]
        while todo:
            expr = todo.pop(0)
            sides = self.of(expr)
            if len(sides) == 1 and not sides & {_PAIR}:
                (side,) = sides
                found[side].append(self.operand(expr, side))
                continue
            if isinstance(expr, Step | Lambda | Unread):
                raise NotLegal("a loop over elements does more than combine", self.axis.line)
            if isinstance(expr, Assign):
                target = expr.target
                if not isinstance(target, Name) or target.variable not in {
                    self.total, *self.inner
                }:  # fmt: skip
                    raise NotLegal("a loop over elements stores", self.axis.line)
                todo.append(expr.value)
            elif sides and not expr.parts and not self._stays(expr):
                raise NotLegal(
                    "a part of it belongs to neither a row nor a key alone", self.axis.line
                )
            elif sides and (expr in self.given.accesses or isinstance(expr, Index)):
                raise NotLegal("a load belongs to neither a row nor a key alone", self.axis.line)
            else:
                todo += expr.parts
        return found[ROW], found[KEY]

    def _stays(self, expr: Expr) -> bool:
        own = {self.total, *self.inner}
        return isinstance(expr, Name) and expr.variable in own

    def operand(self, expr: Expr, side: str) -> Operand:
        kind = self.kernel.reading.types.get(expr)
        if kind is None or kind.kind not in ("int", "float") or kind.depth or (
            kind.size not in _SIZES or kind.lanes != 1
        ):  # fmt: skip
            raise NotLegal("a part of it is not a plain number", self.axis.line)
        swaps = dict[Node, Node](self.given.items.swaps) if side == ROW else {}
        held = self.axis.held | (self.outer.held if side == KEY else frozenset[Condition]())
        for part in every(expr):
            access = self.given.accesses.get(part)
            if access is None or access.space != "global":
                continue
            guard = {one for c in access.guard for one in c.conjuncts()}
            if not guard <= held | self.given.items.held:
                raise NotLegal("some elements are not loaded", access.line)
            assert access.index is not None
            place = self.speller.address(self.speller.local(access.index))
            swaps[part] = text(f"{access.array}[{place}]")
        return Operand(expr, kind, swaps)


@dataclass(frozen=True)
class Terms:
    """``of * element + by * key + rest``; the coefficients say nothing of the element."""

    of: Expr | None = None
    by: Expr | None = None
    key: Expr | None = None
    rest: Expr | None = None

    @property
    def plain(self) -> bool:
        return self.of is None and self.by is None


class Linear:
    """An update as a linear one. Raises NotLegal for any other."""

    def __init__(self, sides: Sides, line: int) -> None:
        self.sides, self.line = sides, line
        self.array, self.variable = sides.given.array, sides.axis.variable

    def assigned(self, expr: Assign) -> Terms:
        if not self._is_element(expr.target):
            raise NotLegal("a loop over elements changes another element", self.line)
        value, whole = self._terms(expr.value), Terms(of=ONE)
        match expr.op:
            case "=":
                return value
            case "+=":
                return self._sum(whole, value)
            case "-=":
                return self._sum(whole, self._negated(value))
            case "*=" if value.plain and value.rest is not None:
                return self._scaled(whole, value.rest)
            case "/=" if value.plain and value.rest is not None:
                return Terms(of=Binary(None, "/", ONE, value.rest))
        raise self._unfit()

    def _unfit(self) -> NotLegal:
        return NotLegal("an element is not updated by a factor and a sum", self.line)

    def _is_element(self, expr: Expr) -> bool:
        match expr:
            case Index(base=Name(variable=array), index=Name(variable=at)):
                return array is self.array and at is self.variable
        return False

    def _terms(self, expr: Expr) -> Terms:
        if self._is_element(expr):
            return Terms(of=ONE)
        if not self._mentions(expr):
            sides = self.sides.of(expr)
            along = self.variable in names([expr])
            if sides == {KEY} and (along or self._loads(expr)):
                return Terms(by=ONE, key=expr)
            if not along:
                return Terms(rest=expr)
        match expr:
            case Binary(op="+", left=left, right=right):
                return self._sum(self._terms(left), self._terms(right))
            case Binary(op="-", left=left, right=right):
                return self._sum(self._terms(left), self._negated(self._terms(right)))
            case Binary(op="*", left=left, right=right):
                return self._product(self._terms(left), self._terms(right))
            case Binary(op="/", left=left, right=right):
                by = self._terms(right)
                if by.plain and by.rest is not None:
                    return self._scaled(self._terms(left), Binary(None, "/", ONE, by.rest))
            case Unary(op="-", operand=operand):
                return self._negated(self._terms(operand))
            case Call(function=name, arguments=(a, b, c)) if name.removeprefix("::") in FUSED:
                return self._sum(self._product(self._terms(a), self._terms(b)), self._terms(c))
            case Cast(operand=operand):
                types = self.sides.kernel.reading.types
                if types.get(expr) == types.get(operand):
                    return self._terms(operand)
        raise self._unfit()

    def _mentions(self, expr: Expr) -> bool:
        return self.array in names([expr])

    def _loads(self, expr: Expr) -> bool:
        return any(e in self.sides.given.accesses for e in every(expr))

    def _product(self, one: Terms, other: Terms) -> Terms:
        if one.plain and one.rest is not None:
            return self._scaled(other, one.rest)
        if other.plain and other.rest is not None:
            return self._scaled(one, other.rest)
        raise self._unfit()

    def _scaled(self, terms: Terms, by: Expr) -> Terms:
        return replace(
            terms, of=_times(terms.of, by), by=_times(terms.by, by), rest=_times(terms.rest, by)
        )

    def _negated(self, terms: Terms) -> Terms:
        return self._scaled(terms, Literal(None, "-1.0f", -1.0))

    def _sum(self, one: Terms, other: Terms) -> Terms:
        if one.key is not None and other.key is not None:
            kernel = self.sides.kernel
            shown = {kernel.show(Evaluate(None, 0, key)) for key in (one.key, other.key)}
            if len(shown) > 1:
                raise NotLegal("more than one row of a key is added", self.line)
        return Terms(
            _plus(one.of, other.of), _plus(one.by, other.by), one.key or other.key,
            _plus(one.rest, other.rest),
        )  # fmt: skip


def _times(one: Expr | None, other: Expr) -> Expr | None:
    if one is None or one is ONE:
        return other if one is not None else None
    return Binary(None, "*", one, other)


def _plus(one: Expr | None, other: Expr | None) -> Expr | None:
    if one is None or other is None:
        return one or other
    return Binary(None, "+", one, other)
