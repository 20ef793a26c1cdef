"""Forms and conditions of a reading as numbers: one lane for each thread and round, all at once.

A value comes with a mask of where it is known: not where a divisor is zero, an element lies outside
of its array, or something in it is not followed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.symbols import (
    Always,
    Compare,
    Condition,
    Every,
    Some,
    Symbol,
    Symbols,
)
from optiml_magic.kernels.types import named

Numbers = NDArray[Any]
Mask = NDArray[np.bool_]
Answer = tuple[Numbers, Mask]
Breach = tuple[str, Literal["low", "high"], int]

#: Rounds after which a loop is taken for one whose end is not known.
MOST_ROUNDS = 5_000


@dataclass(eq=False)
class Lanes:
    """``thread`` numbers the threads of the launch; ``must`` is off where a lane may not run.

    ``names`` are the built-in variables and the counters of the loops around; ``lost`` are counters
    of loops whose rounds could not be decided.
    """

    names: Mapping[str, Numbers]
    thread: NDArray[np.int64]
    must: Mask
    lost: frozenset[str] = frozenset()
    answers: dict[str, Answer] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.thread)

    def where(self, chosen: Mask) -> Lanes:
        if chosen.all():
            return self
        names = {name: values[chosen] for name, values in self.names.items()}
        kept = {name: (v[chosen], known[chosen]) for name, (v, known) in self.answers.items()}
        return Lanes(names, self.thread[chosen], self.must[chosen], self.lost, kept)

    def in_round(self, counter: str, number: int) -> Lanes:
        """The same lanes in one round of a loop."""
        names = {**self.names, counter: np.full(len(self), number, np.int64)}
        return Lanes(names, self.thread, self.must, self.lost)

    def perhaps(self, certain: Mask) -> Lanes:
        """The same lanes, of which only these certainly run."""
        return Lanes(self.names, self.thread, self.must & certain, self.lost, self.answers)


@dataclass
class Numeric:
    """Evaluates forms; ``scalars`` and ``memory`` are what the launch was given, by name.

    ``breaches`` are bounds of symbols that some value did not keep.
    """

    symbols: Symbols
    scalars: Mapping[str, int]
    memory: Mapping[str, NDArray[np.uint8]]
    wide: bool = False  # numbers that 64 bits do not hold
    breaches: set[Breach] = field(default_factory=set)

    def form(self, form: Polynomial, lanes: Lanes) -> Answer:
        total, known = self._plain(lanes), np.ones(len(lanes), bool)
        for monomial, factor in form.terms:
            product: Numbers | int = factor
            for name in monomial:
                value, told = self.symbol(name, lanes)
                product, known = product * value, known & told
            total = total + product
        return total, known

    def symbol(self, name: str, lanes: Lanes) -> Answer:
        if name not in lanes.answers:
            symbol = self.symbols[name]
            value, known = self._symbol(symbol, lanes)
            lanes.answers[name] = value, known
            if symbol.kind != "counter":  # those of a test go one round beyond their bounds
                self.bounds(symbol, value[known & lanes.must])
        return lanes.answers[name]

    def bounds(self, symbol: Symbol, values: Numbers) -> None:
        """Note where a symbol does not keep its bounds."""
        if values.size and symbol.low is not None and values.min() < symbol.low:
            self.breaches.add((symbol.name, "low", int(values.min())))
        if values.size and symbol.high is not None and values.max() > symbol.high:
            self.breaches.add((symbol.name, "high", int(values.max())))

    def _plain(self, lanes: Lanes, value: int = 0) -> Numbers:
        return np.full(len(lanes), value, object if self.wide else np.int64)

    def _symbol(self, symbol: Symbol, lanes: Lanes) -> Answer:
        everywhere = np.ones(len(lanes), bool)
        if symbol.name in lanes.lost:
            return self._plain(lanes), ~everywhere
        if symbol.name in lanes.names:
            given = lanes.names[symbol.name]
            return (given.astype(object) if self.wide else given), everywhere
        if symbol.name in self.scalars:
            return self._plain(lanes, self.scalars[symbol.name]), everywhere
        match symbol.kind:
            case "operation":
                return self._operation(symbol, lanes)
            case "select":
                return self._select(symbol, lanes)
            case "load":
                return self._load(symbol, lanes)
            case "final":
                return self._final(symbol, lanes)
        return self._plain(lanes), ~everywhere

    def _operation(self, symbol: Symbol, lanes: Lanes) -> Answer:
        known = np.ones(len(lanes), bool)
        values = []
        for argument in symbol.arguments:
            value, told = self.form(argument, lanes)
            values.append(value)
            known &= told
        if symbol.op in ("/", "%", "power/"):
            usable = (values[1] != 0).astype(bool)
            values[1] = np.where(usable, values[1], 1)
            known &= usable
        if symbol.op in (">>", "power*", "power/"):
            usable = ((values[-1] >= 0) & (values[-1] < 64)).astype(bool)
            values[-1] = np.where(usable, values[-1], 0)
            known &= usable
        operation = _OPERATIONS.get(symbol.op)
        if operation is None:
            return self._plain(lanes), np.zeros(len(lanes), bool)
        return operation(*values), known

    def _select(self, symbol: Symbol, lanes: Lanes) -> Answer:
        assert symbol.condition is not None
        chosen, told = self.truth(symbol.condition, lanes)
        values, known = self._plain(lanes), told.copy()
        for side, taken in ((0, told & chosen), (1, told & ~chosen)):
            values[taken], known[taken] = self.form(symbol.arguments[side], lanes.where(taken))
        return values, known

    def _load(self, symbol: Symbol, lanes: Lanes) -> Answer:
        index, known = self.form(symbol.arguments[0], lanes)
        held, kind = self.memory.get(symbol.array), named(symbol.op, {})
        if held is None or kind.size != symbol.width or not kind.integral:
            return self._plain(lanes), np.zeros(len(lanes), bool)
        code = "u" if kind.kind == "bool" or not kind.signed else "i"
        whole = held.size // symbol.width * symbol.width
        elements = held[:whole].view(f"{code}{symbol.width}")
        inside = known & ((index >= 0) & (index < elements.size)).astype(bool)
        if not elements.size:
            return self._plain(lanes), inside
        found = elements[np.where(inside, index, 0).astype(np.int64)]
        return found.astype(object if self.wide else np.int64), inside

    def _final(self, symbol: Symbol, lanes: Lanes) -> Answer:
        """The value in the first round whose test does not hold."""
        assert symbol.condition is not None
        values, known = self._plain(lanes), np.zeros(len(lanes), bool)
        left = np.arange(len(lanes))
        for number in range(MOST_ROUNDS):
            if not left.size:
                break
            here = np.zeros(len(lanes), bool)
            here[left] = True
            now = lanes.where(here).in_round(symbol.op, number)
            goes_on, told = self.truth(symbol.condition, now)
            ends = ~goes_on & told
            if ends.any():
                last = now.where(ends)
                values[left[ends]], known[left[ends]] = self.form(symbol.arguments[0], last)
            left = left[goes_on & told]
        return values, known

    def truth(self, condition: Condition, lanes: Lanes) -> tuple[Mask, Mask]:
        """Where a condition holds, and where that is known."""
        match condition:
            case Always(value=always):
                return np.full(len(lanes), always), np.ones(len(lanes), bool)
            case Compare(op=op, form=form):
                value, known = self.form(form, lanes)
                return _COMPARED[op](value).astype(bool), known
            case Every(parts=parts) | Some(parts=parts):
                # A part that is false settles all of ``Every``, one that is true all of ``Some``.
                settles = isinstance(condition, Some)
                decided: Mask = np.zeros(len(lanes), bool)
                certain: Mask = np.ones(len(lanes), bool)
                for part in parts:
                    # C does not look at a part after one that settles it: neither is it here.
                    asked = ~decided
                    holds, told = self.truth(part, lanes.where(asked))
                    certain[asked] &= told
                    decided[asked] = told & (holds == settles)
                return (decided if settles else ~decided), certain | decided
        return np.zeros(len(lanes), bool), np.zeros(len(lanes), bool)


def _quotient(left: Numbers, right: Numbers) -> Numbers:
    found: Numbers = np.where((left < 0) == (right < 0), 1, -1) * (abs(left) // abs(right))
    return found


def _remainder(left: Numbers, right: Numbers) -> Numbers:
    found: Numbers = left - _quotient(left, right) * right
    return found


def _wrapped(value: Numbers, bits: Numbers) -> Numbers:
    """Negative ``bits`` are those of a signed type."""
    width = int(abs(bits[0])) if len(bits) else 0
    if width == 64 and value.dtype != object:
        return value
    rest = value % (1 << width)
    signed: Mask = np.asarray(bits < 0, bool) & np.asarray(rest >= (1 << width) // 2, bool)
    found: Numbers = np.where(signed, rest - (1 << width), rest)
    return found


_OPERATIONS: Mapping[str, Callable[..., Numbers]] = {
    "/": _quotient,
    "%": _remainder,
    "min": np.minimum,
    "max": np.maximum,
    "abs": abs,
    "wrap": _wrapped,
    ">>": lambda a, b: a >> b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "power*": lambda a, b, k: a * b**k,
    "power/": lambda a, b, k: _quotient(a, b**k),
}
_COMPARED: Mapping[str, Callable[[Numbers], Numbers]] = {
    ">=": lambda value: value >= 0,
    "==": lambda value: value == 0,
    "!=": lambda value: value != 0,
}
