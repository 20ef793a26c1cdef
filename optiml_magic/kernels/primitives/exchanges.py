"""What threads combine of what others found: lanes, functions, and what they choose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optiml_magic.kernels.expressions import (
    Binary,
    Call,
    Choice,
    Expr,
)
from optiml_magic.kernels.functions import COMBINING, LANES
from optiml_magic.kernels.functions import bare as bare_name
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.lockstep import Lockstep
from optiml_magic.kernels.primitives.shares import (
    Each,
    Known,
    Mask,
    Same,
    Share,
    Source,
    Value,
    chosen,
    combined,
    joined,
    number,
)
from optiml_magic.kernels.tree import Function
from optiml_magic.kernels.types import CType

_WARP = 32
_SUMS = frozenset("+*&|^")
_ORDERS = {">": "max", ">=": "max", "<": "min", "<=": "min"}
_FROM = {"__shfl_down_sync": "+", "__shfl_up_sync": "-", "__shfl_xor_sync": "^", "__shfl_sync": "="}
_REDUCING = {"__reduce_add_sync": "+", "__reduce_min_sync": "min", "__reduce_max_sync": "max",
             "__reduce_and_sync": "&", "__reduce_or_sync": "|", "__reduce_xor_sync": "^"
}  # fmt: skip


class Exchanges(Lockstep):
    """Values that are parts of what all threads combine."""

    def _binary(self, expr: Binary) -> Value:
        left, right = self.value(expr.left), self.value(expr.right)
        if expr.op in _SUMS and self._parts(left, right):
            return self.combined(left, right, expr.op, "")
        return self._made(expr)

    def _parts(self, *values: Value) -> bool:
        """Whether two values are parts of one reduction, or one of them and a constant."""
        found = [v for v in values if isinstance(v, Share)]
        return (
            bool(found)
            and all(self.share(v, found[0].source) is not None for v in values)
            and (len(found) == 2 or not all(isinstance(self.entire(v), Same) for v in found))
        )

    def _choice(self, expr: Choice) -> Value:
        if isinstance(expr.test, Binary) and expr.test.op in _ORDERS:
            sides = [self.value(side) for side in (expr.test.left, expr.test.right)]
            if self._parts(*sides):
                return self._greater(expr, expr.test)
        test = self.value(expr.test)
        if not isinstance(test, Known):
            return self._made(expr)
        before, holds = self.mask, test.numbers != 0
        ways: list[Value | None] = []
        for mask, way in ((before & holds, expr.then), (before & ~holds, expr.other)):
            self.mask = mask
            ways.append(self.value(way) if bool(mask.any()) else None)
            self.mask = before
        one, other = ways
        if one is None or other is None:
            return one or other  # type: ignore[return-value]
        return self.either(holds, test.form, one, other)

    def _greater(self, expr: Choice, test: Binary) -> Value:
        """``a > b ? a : b`` of parts."""
        sides = [self.words(side) for side in (test.left, test.right)]
        ways = [self.words(side) for side in (expr.then, expr.other)]
        op = _ORDERS[test.op]
        if ways == sides[::-1]:
            op = {"max": "min", "min": "max"}[op]
        elif ways != sides:
            raise NotLegal("it computes with a part of what its threads combine")
        return self.combined(self.value(test.left), self.value(test.right), op, "")

    def either(self, holds: Mask, test: Expr, one: Value, other: Value) -> Value:
        """What threads have of two values, the first where this known test holds."""
        where = np.where(holds, one.where, other.where)
        if isinstance(one, Known) and isinstance(other, Known):
            numbers = np.where(holds, one.numbers, other.numbers)
            ways = [self._shortest(v, m) for v, m in ((one, holds), (other, ~holds))]
            return self._known(Choice(None, test, *ways), numbers, where)
        shares = [v for v in (one, other) if isinstance(v, Share)]
        if shares:
            first = self.share(one, shares[0].source)
            second = self.share(other, shares[0].source)
            if first is not None and second is not None:
                pairs = zip(holds, first.parts, second.parts, strict=True)
                parts = tuple(a if h else b for h, a, b in pairs)
                nothing = first.nothing | second.nothing
                return replace(first, where=where, parts=parts, nothing=nothing)
            return replace(one, where=one.where & holds)
        choice = Choice(None, test, one.form, other.form)
        kinds = [v.kind for v in (one, other) if isinstance(v, Each)]
        return Each(choice, where, joined([one, other]), one.loads | other.loads,
                    kind=kinds[0] if kinds else None)  # fmt: skip

    def _shortest(self, value: Known, mask: Mask) -> Expr:
        """A number of these threads, which is spelled again in each round of a tree."""
        only = None if self.apart else value.only(mask)
        return value.form if only is None else number(only)

    def share(self, value: Value, source: Source) -> Share | None:
        """A value as parts of this source; None where it is none of it."""
        match value:
            case Share():
                return value if value.source is source else None
            case Each():
                return self.shared_of(value) if self.sources.get(value) is source else None
            case Same(key=key) if key:
                pass
            case Known() if (only := value.only(self.mask & value.where)) is not None:
                key = str(only)
            case _:
                return None
        none = tuple(0 for _ in range(self.count))
        return Share(value.form, value.where, source=source, parts=none, nothing=frozenset({key}))

    def shared_of(self, value: Value, words: str = "", kind: CType | None = None) -> Share:
        """What each thread computes, as the parts of a source of its own."""
        if not isinstance(value, Each):
            raise NotLegal("what its threads combine is not what they found")
        source = self.sources.get(value)
        if source is None:
            kind = kind or value.kind
            if kind is None:
                raise NotLegal("what its threads combine is of no known type")
            source = Source("", kind, self.count, each=value, words=words)
            self.sources[value] = source
        if kind is not None and source.kind != kind:
            raise NotLegal("what it combines is rounded on the way")
        parts = tuple(1 << t if w else None for t, w in enumerate(value.where))
        return Share(value.form, value.where, source=source, parts=parts)

    def begin(self, source: Source, op: str, function: str) -> None:
        """Each thread's own value is combined in a loop from here on."""
        raise NotImplementedError

    def together(self, function: Function, call: Call) -> bool:
        """Whether threads do something together in a function, or tell where they stand."""
        raise NotImplementedError

    def inside(self, function: Function, call: Call) -> Value:
        """What a function returns to all threads, which leaves nothing in the program."""
        raise NotImplementedError

    def combined(self, one: Value, other: Value, op: str, function: str) -> Value:
        known = [v for v in (one, other) if isinstance(v, Share)]
        source = known[0].source
        if source.each is not None and not source.op:
            self.begin(source, op, function)
        pair = [self.share(v, source) for v in (one, other)]
        if pair[0] is None or pair[1] is None:
            raise NotLegal("what its threads combine are not parts of one reduction")
        self.combines = True
        self.reordered |= source.kind.floating and op in ("+", "*")
        if source.each is not None and source.kind.floating and not function:
            self.compared |= op in ("min", "max")
        return combined(pair[0], pair[1], op, self.mask)

    def _call(self, call: Call) -> Value:
        name = bare_name(call.function)
        if name in _FROM and len(call.arguments) in (3, 4):
            return self._shuffled(call, _FROM[name])
        if name in _REDUCING and len(call.arguments) == 2:
            return self._reduced(call, _REDUCING[name])
        if LANES.fullmatch(name):
            raise NotLegal(f"its lanes exchange values by `{call.function}`")
        found = self.kernel.unit.called(call.function, len(call.arguments))
        if len(found) == 1 and self.together(found[0], call):
            return self.inside(found[0], call)
        op = COMBINING.get(name)
        if op is not None and len(call.arguments) == 2:
            one, other = (self.value(a) for a in call.arguments)
            if self._parts(one, other):
                return self.combined(one, other, op, call.function)
        return self._made(call)

    def _shuffled(self, call: Call, way: str) -> Value:
        """What lanes get of others in their warp."""
        own = self.value(call.arguments[1])
        by, *width = (self.value(a) for a in call.arguments[2:])
        if not isinstance(by, Known) or any(
            not isinstance(w, Known) or w.only(self.mask) != _WARP for w in width
        ):
            raise NotLegal("which lanes exchange values is not followed")
        if self.extents[0] * self.extents[1] % _WARP:
            raise NotLegal("its block is not of whole warps")
        if isinstance(own, Each):
            own = self.shared_of(own)
        lanes = np.arange(self.count) % _WARP
        first = np.arange(self.count) - lanes
        match way:
            case "=":
                at = by.numbers % _WARP
            case "^":
                at = lanes ^ by.numbers
            case "+":
                at = lanes + by.numbers
            case _:
                at = lanes - by.numbers
        at = np.where((at < 0) | (at >= _WARP), lanes, at)
        there = first + at
        asked = self.mask & self.mask[there]  # of a lane that takes no part nothing comes
        return chosen(own, there, asked)

    def _reduced(self, call: Call, op: str) -> Value:
        whole_warps = self.mask.reshape(-1, _WARP)
        if not bool((whole_warps.all(axis=1) | ~whole_warps.any(axis=1)).all()):
            raise NotLegal("which lanes exchange values is not followed")
        own = self.value(call.arguments[1])
        if isinstance(own, Each):
            own = self.shared_of(own)
        for apart in (16, 8, 4, 2, 1):
            there = np.arange(self.count) ^ apart
            own = self.combined(own, chosen(own, there, self.mask), op, "")
        return own
