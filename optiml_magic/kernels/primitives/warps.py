"""P4, warps that combine what their lanes found: places in a warp, and what each round leaves.

Each warp combines the parts of its lanes; its first lane puts that into shared memory, and one warp
or all of them combine these leads. Source: CUDA C++ Programming Guide, "Warp Shuffle Functions".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace

from optiml_magic.kernels.expressions import Binary, Call, Choice, Expr, Index, Name, Unary, builtin
from optiml_magic.kernels.functions import LANES
from optiml_magic.kernels.functions import bare as bare_name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.places import bare, reached
from optiml_magic.kernels.primitives.roles import Role, Roles, key_of
from optiml_magic.kernels.primitives.shuffles import (
    ROUNDS,
    Exchange,
    alike,
    exchange_of,
    helped,
    reduced,
    value_of,
)
from optiml_magic.kernels.tree import Function, Statement, Variable, expressions
from optiml_magic.kernels.types import CType, named
from optiml_magic.source.values import constants

IDENTITIES = {"+": "0", "*": "1", "|": "0", "^": "0", "&": "-1"}
EXTREMES = ("min", "max")
WARP = 32
_NUMBER = re.compile(r"-?(?:[\d.]+(?:e[-+]?\d+)?|INFINITY)")
_WHOLE_CONSTANTS = frozenset({"INT_MIN", "INT_MAX", "UINT_MAX", "LLONG_MIN", "LLONG_MAX"})
Test = Callable[[Expr], bool]


@dataclass
class Cooperation:
    """What is to be exchanged for another number of threads.

    ``widths`` stand for it, ``halves`` for its half, ``warps`` for how many warps it is;
    ``extents`` are the width as a constant, ``leads`` the warps. There may be no more than ``most``
    threads; ``rounds`` where the order changes in which floats are added.
    """

    widths: list[Expr] = field(default_factory=list)
    halves: list[Expr] = field(default_factory=list)
    warps: list[Expr] = field(default_factory=list)
    extents: list[Expr] = field(default_factory=list)
    leads: list[Expr] = field(default_factory=list)
    most: int = 1024
    rounds: bool = False


def followed(kernel: Kernel, functions: Container[str], exchanged: Container[Expr]) -> None:
    """Raise NotLegal unless these are all the exchanges that a kernel makes by some functions."""
    for expr in expressions(kernel.function.body):
        if isinstance(expr, Call) and bare_name(expr.function) in functions:
            if expr not in exchanged:
                raise NotLegal(f"its lanes exchange values by `{expr.function}`")
            if (kernel.block[0] or 0) < 2 * WARP:
                raise NotLegal("its block is one warp, which need not wait where several must")


class Warps(Roles):
    """Roles of a kernel's locals, and what shuffles make of them."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel.block[0] or 0, _exchanging(kernel))
        self.kernel = kernel
        self.found = Cooperation()
        self.first = False  # whether the first warp alone is looked at
        self.exchanged: set[Expr] = set()  # the exchanges that the proof has been through
        hidden = {p.name for p in kernel.function.template}
        known = constants(kernel.unit.syntax)
        self._constants = {name: known[name] for name in known.keys() - hidden}

    # -- places

    def number(self, expr: Expr) -> int | None:
        """The whole number that is certain of an expression."""
        return value_of(expr, self._named)

    def _named(self, expr: Expr) -> int | None:
        if not isinstance(expr, Name):
            return None
        if expr.variable is None:
            return WARP if expr.name == "warpSize" else self._constants.get(expr.name)
        role, kind = self.role(expr), self.declared(expr.variable)
        wide = role.kind == "number" and kind.integral and (kind.size or 0) >= 4
        return int(role.begun) if wide and role.begun.removeprefix("-").isdigit() else None

    def place(self, expr: Expr) -> Role | None:
        """The role of a local that is given this, where it is a place in the block or its size."""
        told = bare(expr)
        if self.is_thread(told):
            return Role("thread")
        if builtin(told) == "blockDim.x" or self.role(told).kind == "width":
            return Role("width")
        if self.is_lane(told):
            return Role("lane")
        if self.is_warp(told):
            return Role("warp")
        if self.role(told).kind == "warps" or self._warps_of_width(told):
            return Role("warps")
        return None

    def is_lane(self, expr: Expr) -> bool:
        return self._of_thread(bare(expr), "lane", {"%": WARP, "&": WARP - 1})

    def is_warp(self, expr: Expr) -> bool:
        return self._of_thread(bare(expr), "warp", {"/": WARP, ">>": 5})

    def _of_thread(self, expr: Expr, kind: str, ways: dict[str, int]) -> bool:
        match expr:
            case Binary(op=op, left=left, right=right) if op in ways:
                return self.is_thread(bare(left)) and self.number(right) == ways[op]
        return self.role(expr).kind == kind

    def is_warps(self, expr: Expr) -> bool:
        """Whether this is how many warps a block has; where it is a number, that is exchanged."""
        told = bare(expr)
        if self.role(told).kind == "warps" or self._warps_of_width(told):
            return True
        if self.number(told) != self.width // WARP:
            return False
        self.found.warps.append(told)
        return True

    def _warps_of_width(self, expr: Expr) -> bool:
        """Rounded up or down: the threads of a block are whole warps."""
        match expr:
            case Binary(op="/" | ">>" as op, left=left, right=right):
                more = self._beyond_width(bare(left))
                by = {"/": WARP, ">>": 5}[op]
                return more is not None and 0 <= more < WARP and self.number(right) == by
        return False

    def _beyond_width(self, expr: Expr) -> int | None:
        """What is added to the width of the block; None where this is not such a sum."""
        if builtin(expr) == "blockDim.x" or self.role(expr).kind == "width":
            return 0
        match expr:
            case Binary(op="+" | "-" as op, left=left, right=right):
                more, other = self._beyond_width(bare(left)), self.number(right)
                if more is not None and other is not None:
                    return more + other if op == "+" else more - other
                more, other = self._beyond_width(bare(right)), self.number(left)
                if more is not None and other is not None and op == "+":
                    return more + other
        return None

    def first_thread(self, test: Expr) -> bool:
        match test:
            case Binary(op="&&", left=left, right=right):
                return any(
                    self.first_lane(a) and self.first_warp(b)
                    for a, b in ((left, right), (right, left))
                )
        return _is_zero(test, lambda e: self.is_thread(bare(e)))

    def first_lane(self, test: Expr) -> bool:
        return _is_zero(test, self.is_lane)

    def first_warp(self, test: Expr) -> bool:
        match test:
            case Binary(op="<", left=left, right=right) | Binary(op=">", left=right, right=left):
                return self.is_thread(bare(left)) and self.number(right) == WARP
        return _is_zero(test, self.is_warp)

    def other_warps(self, test: Expr) -> bool:
        """Whether this holds for all warps but the first."""
        match test:
            case Binary(op=">=", left=left, right=right) | Binary(op="<=", left=right, right=left):
                return self.is_thread(bare(left)) and self.number(right) == WARP
            case Binary(op=">" | "!=", left=left, right=right):
                return self.is_warp(left) and self.number(right) == 0
        return self.is_warp(test)

    # -- what rounds make of a local

    def exchange(self, statement: Statement) -> bool:
        """Whether a statement is one or more rounds of a warp, which are noted then."""
        found = exchange_of(statement, self.number)
        if found is None:
            return False
        kind = self.kernel.reading.types.get(found.calls[0].arguments[1])
        self._does(found, found.variable, kind, self.roles.get(found.variable))
        return True

    def call(self, value: Expr, variable: Variable) -> bool:
        """Whether a local is given what a function makes of all the lanes of a warp."""
        if not isinstance(value, Call) or bare_name(value.function) not in self.exchanging:
            return False
        kind = self.kernel.reading.types.get(value.arguments[-1]) if value.arguments else None
        unit = self.kernel.unit
        found = reduced(value, self.number) or helped(unit, value, kind, self.number)
        if found is None:
            return False
        argument, exchange = found
        self.copies(variable, argument)
        self._does(exchange, variable, kind, self.role(argument))
        return True

    def copies(self, variable: Variable, value: Expr) -> None:
        """Raise NotLegal where a local does not have the type of another that it is given."""
        known = isinstance(value, Name) and value.variable is not None
        if not known or not self.alike(variable, value.variable):  # type: ignore[attr-defined]
            raise NotLegal("what it combines is rounded on the way")

    def _does(
        self, made: Exchange, variable: Variable, kind: CType | None, role: Role | None
    ) -> None:
        exchange = made.of(kind) if kind is not None else None
        if role is None or exchange is None or role.kind not in ("part", "second"):
            raise NotLegal("what a warp combines is not all of it")
        if role.op != exchange.op or role.apart & exchange.apart:
            raise NotLegal("what a warp combines is not all of it")
        if role.apart and role.lanes != exchange.lanes:
            raise NotLegal("what a warp combines is not all of it")
        self.exchanged.update(exchange.calls)
        self.roles[variable] = self._after(role, role.apart | exchange.apart, exchange.lanes)

    def _after(self, role: Role, apart: frozenset[int], lanes: bool) -> Role:
        if apart != ROUNDS:
            return replace(role, apart=apart, lanes=lanes)
        if role.kind == "part":
            return Role("lead", role.op, role.across, role.begun)
        if lanes and role.warps and not self.first and not role.across:
            return Role("number")
        return Role("first", role.op, role.across)

    def declared(self, variable: Variable) -> CType:
        """The type that a local is declared with, or the elements of an array."""
        kind = named(variable.type.base, self.kernel.unit.aliases)
        return replace(kind, depth=kind.depth + variable.type.depth)

    def alike(self, one: Variable, other: Variable) -> bool:
        """Whether two variables, or the elements of an array, are of one type."""
        first, second = self.declared(one), self.declared(other)
        numbers = first.kind in ("int", "float") and alike(first, second)
        return "auto" not in (one.type.base, first.name) and (numbers or first == second)

    # -- the leads of all warps

    def second(self, variable: Variable, value: Expr) -> Role | None:
        """What lanes have who take the lead of a warp each; None where it is not one."""
        match value:
            case Choice(test=test, then=Index() as taken, other=other):
                array = self.shared(taken)
            case _:
                return None
        role = self.roles.get(array) if array is not None else None
        if array is None or role is None or role.kind != "leads":
            return None
        if not self.alike(variable, array):
            raise NotLegal("what it combines is rounded on the way")
        floating = self._floating(array)
        kind = self.kernel.reading.types.get(other)
        whole = key_of(other) in _WHOLE_CONSTANTS or (kind is not None and kind.integral)
        if not (floating or whole) or not self.adds_nothing(role, key_of(other), array):
            raise NotLegal("what lanes have who take no part is not certain to add nothing")
        return self.taking(role, test, taken.index)

    def _floating(self, array: Variable) -> bool:
        held = self.kernel.reading.arrays.get(array.name)
        return held is not None and held.element.floating

    def taking(self, role: Role, test: Expr, index: Expr) -> Role | None:
        """The role of what lanes take where the test holds, of an array that has this role."""
        left, right = _less(test)
        if left is None or right is None:
            return None
        by_thread, index = self.is_thread(bare(left)), bare(index)
        if not by_thread and not self.is_lane(left):
            return None
        at_thread = self.is_thread(index)
        if not (self.is_lane(index) or (at_thread and (by_thread or self.first))):
            return None
        if not self.is_warps(right):
            return None
        return Role("second", role.op, role.across, warps=not by_thread and not self.first)

    def adds_nothing(self, role: Role, key: str, array: Variable) -> bool:
        """Whether combining this changes none of the leads, all of which began as the role says."""
        if role.op in IDENTITIES:
            return key == IDENTITIES[role.op]
        if role.op not in EXTREMES or not key or not role.begun:
            return False
        if key == role.begun:
            return True
        if not (self._floating(array) and _NUMBER.fullmatch(key) and _NUMBER.fullmatch(role.begun)):
            return False
        one, other = float(key), float(role.begun)
        return one < other if role.op == "max" else one > other


def _less(test: Expr) -> tuple[Expr | None, Expr | None]:
    match test:
        case Binary(op="<", left=left, right=right) | Binary(op=">", left=right, right=left):
            return left, right
    return None, None


def _is_zero(test: Expr, of: Test) -> bool:
    match test:
        case Binary(op="==", left=left, right=right):
            return any(of(a) and key_of(bare(b)) == "0" for a, b in ((left, right), (right, left)))
        case Unary(op="!", operand=operand):
            return of(operand)
    return False


def _exchanging(kernel: Kernel) -> frozenset[str]:
    """The functions by which lanes exchange values: those of CUDA, and those that call them."""
    own = {bare_name(name) for name in kernel.reading.calls if LANES.fullmatch(bare_name(name))}
    return frozenset(own | {
        bare_name(f.name) for f in reached(kernel.unit, kernel.function) if _calls_lanes(kernel, f)
    })  # fmt: skip


def _calls_lanes(kernel: Kernel, function: Function) -> bool:
    return any(
        isinstance(expr, Call) and LANES.fullmatch(bare_name(expr.function))
        for f in (function, *reached(kernel.unit, function))
        for expr in expressions(f.body)
    )
