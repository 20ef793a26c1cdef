"""The expressions of random kernels: whole numbers and conditions, as nasty as C allows.

Every one carries the interval that its number lies in, before it wraps: what would leave an array,
divide by zero or overflow a signed number is not made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar

#: Elements of every array; indices begin in the middle, so that they may be negative.
ELEMENTS, MIDDLE = 1 << 14, 4096
SCALARS = {"n": 7, "m": 5, "u": 6, "z": 9, "base": MIDDLE}
SIGNATURE = (
    "const float* in, float* out, int* cnt, const int* tab, const unsigned char* bytes, "
    "int n, int m, unsigned u, size_t z, int base"
)
PRELUDE = """\
#define AT(i, j) ((i) * 7 + (j))
#define CLAMPED(x) ((x) < 0 ? 0 : (x) > 40 ? 40 : (x))
#define BUMPED(x) x + 3
template <class T> __device__ T larger(T a, T b) { return a > b ? a : b; }
__device__ int flat(int i, int j) { return i * 5 + j; }
__device__ __forceinline__ int clip(int x) {
    if (x < 0) return 0;
    if (x > 19) return 19;
    return x;
}
__device__ void bump(int& x, int by) { x += by; }
__device__ int steps(int x) {
    int count = 0;
    while (x > 0) { x -= 3; ++count; }
    return count;
}
__device__ int first(const int* t, int from) {
    for (int k = 0; k < 4; ++k) {
        if (t[from + k] > 30) return k;
    }
    return 4;
}
"""
_WORD = re.compile(r"\w+")
_WIDE, _FAR = 200, 3900
INT, UINT, SIZE, LONG = "int", "unsigned", "size_t", "long long"
NARROW = {"signed char": (-128, 127), "unsigned char": (0, 255), "short": (-32768, 32767)}
RANK = {INT: 0, UINT: 1, LONG: 2, SIZE: 3}
UNSIGNED = (UINT, SIZE)


@dataclass(frozen=True)
class Number:
    """An integer expression; ``low`` and ``high`` are of its value before it wraps."""

    text: str
    low: int
    high: int
    type: str = INT

    def within(self, low: int, high: int) -> bool:
        return low <= self.low and self.high <= high


@dataclass(eq=False)
class Local:
    """``spare`` is how far it may still be moved by steps; a ``fixed`` one is never assigned."""

    name: str
    type: str
    low: int = -_WIDE
    high: int = _WIDE
    fixed: bool = False
    spare: int = 100


@dataclass
class Walk:
    """A pointer into ``array`` around its middle."""

    name: str
    array: str
    spare: int = 500


@dataclass
class Writer:
    """Writes lines and expressions, and knows the locals that may stand in them."""

    rng: Random
    axes: int
    lines: list[str] = field(default_factory=list)
    locals: list[Local] = field(default_factory=list)
    walks: list[Walk] = field(default_factory=list)
    begun: list[int] = field(default_factory=lambda: [0])
    depth: int = 0
    rounds: int = 1
    loops: int = 0
    made: int = 0
    left: int = 18

    # -- text

    def line(self, text: str) -> None:
        self.lines.append("    " * (self.depth + 1) + text)

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        self.line(f"{head} {{" if head else "{")
        seen, walks = len(self.locals), len(self.walks)
        self.depth += 1
        self.begun.append(seen)
        yield
        self.begun.pop()
        self.depth -= 1
        del self.locals[seen:], self.walks[walks:]
        self.line(tail)

    def fresh(self, prefix: str, beside: str = "") -> str:
        """A new name, or now and then one that hides another that is not in the text beside it."""
        # The counters of a loop stand in the scope of its body: two are there at most.
        here = {v.name for v in self.locals[max(self.begun[-1] - 2, 0) :]}
        here |= set(_WORD.findall(beside))
        hidden = [v.name for v in self.visible if v.name not in here]
        if self.depth and hidden and self.rng.random() < 0.15:
            return self.rng.choice(hidden)
        self.made += 1
        return f"{prefix}{self.made}"

    @property
    def visible(self) -> list[Local]:
        """The locals that no other one of their name hides."""
        return list({v.name: v for v in self.locals}.values())

    # -- numbers

    def number(self, depth: int = 2) -> Number:
        made = self._atom() if depth <= 0 else self.rng.choice(self._COMPOUND)(self, depth - 1)
        return made if made.within(-_FAR, _FAR) else self._reduced(made)

    def small(self, limit: int = 60, depth: int = 1) -> Number:
        made = self.number(depth)
        return made if made.within(-limit, limit) else self._reduced(made, limit)

    def positive(self, most: int, depth: int = 1) -> Number:
        """A number from 0 to less than ``most``, not of an unsigned type that wraps."""
        made = self.number(depth)
        if made.within(0, most - 1):
            return made
        made = self._reduced(made, most)
        if made.low >= 0:
            return made
        return Number(f"({made.text} + {most - 1}) / 2", 0, most - 1, made.type)

    def _reduced(self, made: Number, limit: int = 60) -> Number:
        limit = min(limit, 60)
        by = self.rng.randrange(2, limit + 1) if limit > 2 else 2
        made = self.settled(made)
        if made.type in UNSIGNED:
            return Number(f"({made.text}) % {by}", 0, by - 1, made.type)
        low = 0 if made.low >= 0 else 1 - by
        return Number(f"({made.text}) % {by}", low, by - 1, made.type)

    def settled(self, made: Number, kind: str = "") -> Number:
        """What C sees of a number that may have wrapped, as one of an unsigned type.

        Sizes alone are not taken below zero: the reading trusts that they are not.
        """
        if (kind or made.type) not in UNSIGNED or made.low >= 0:
            return made
        return Number(f"{made.text} + threadIdx.x", 0, 2**32 - 1, made.type)

    def _atom(self) -> Number:
        roll = self.rng.random()
        usable = self.visible
        if usable and roll < 0.5:
            # Those declared last are the ones that loops step.
            found = self.rng.choice(usable[-5:] if self.rng.random() < 0.6 else usable)
            kind = found.type if found.type in RANK else INT
            return Number(found.name, found.low, found.high, kind)
        if roll < 0.7:
            axis = self.rng.choice("xyz"[: self.axes])
            kind = self.rng.choice(["threadIdx", "threadIdx", "blockIdx", "blockDim", "gridDim"])
            return Number(f"{kind}.{axis}", 0 if "Idx" in kind else 1, 7, UINT)
        if roll < 0.85:
            name = self.rng.choice(["n", "m", "u", "z"])
            kind = {"u": UINT, "z": SIZE}.get(name, INT)
            return Number(name, SCALARS[name], SCALARS[name], kind)
        value = self.rng.randrange(1, 12)
        suffix = self.rng.choice(["", "", "", "u"])
        return Number(f"{value}{suffix}", value, value, UINT if suffix else INT)

    def _joined(self, left: Number, right: Number) -> str | None:
        """The type of both together; None where one widens after it has wrapped."""
        kind = max(left.type, right.type, key=RANK.__getitem__)
        wrapped = any(
            s.type == UINT and s.low < 0 and kind not in (UINT, INT) for s in (left, right)
        )
        return None if wrapped else kind

    def _sum(self, depth: int) -> Number:
        left, right = self.number(depth), self.number(depth)
        kind = self._joined(left, right)
        if kind is None:
            return left
        if self.rng.random() < 0.5:
            return Number(f"({left.text} + {right.text})", left.low + right.low,
                          left.high + right.high, kind)  # fmt: skip
        return Number(f"({left.text} - ({right.text}))", left.low - right.high,
                      left.high - right.low, kind)  # fmt: skip

    def _product(self, depth: int) -> Number:
        left, right = self.small(60, depth), self.small(60, depth)
        kind = self._joined(left, right)
        if kind is None:
            return left
        ends = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
        return Number(f"(({left.text}) * ({right.text}))", min(ends), max(ends), kind)

    def _division(self, depth: int) -> Number:
        left, by = self.settled(self.number(depth)), self.rng.randrange(2, 9)
        text = f"(({left.text}) / {by})"
        ends = [int(left.low / by), int(left.high / by)]
        if self.rng.random() < 0.5:
            return Number(f"(({left.text}) % {by})", 0 if left.low >= 0 else 1 - by, by - 1,
                          left.type)  # fmt: skip
        made = Number(text, min(ends), max(ends), left.type)
        return made if made.within(-_FAR, _FAR) else self._reduced(made)

    def _by_a_size(self, depth: int) -> Number:
        """Divided by a size, as rows and columns are found."""
        left = self.positive(400, depth)
        if left.type == SIZE:
            return left
        name, value = self.rng.choice([("n", 7), ("m", 5)])
        if self.rng.random() < 0.5:
            return Number(f"(({left.text}) / {name})", 0, left.high // value, left.type)
        return Number(f"(({left.text}) % {name})", 0, value - 1, left.type)

    def _bits(self, depth: int) -> Number:
        left = self.settled(self.number(depth))
        roll = self.rng.randrange(5)
        if roll == 0:
            mask = self.rng.choice([1, 3, 6, 7, 15, 10])
            return Number(f"(({left.text}) & {mask})", 0, mask, left.type)
        if roll == 1 and left.within(-_FAR, _FAR):
            return Number(f"(({left.text}) >> 2)", left.low >> 2, left.high >> 2, left.type)
        if roll == 2 and left.within(0, 200):
            return Number(f"(({left.text}) << 2)", 0, left.high * 4, left.type)
        if roll == 3 and left.within(0, 255):
            return Number(f"(({left.text}) ^ 5)", 0, 255, left.type)
        if roll == 4 and left.within(0, 255):
            return Number(f"(({left.text}) | 8)", 0, 255, left.type)
        return left

    def _cast(self, depth: int) -> Number:
        made = self.number(depth)
        kind = self.rng.choice([*NARROW, INT, UINT, LONG, SIZE])
        text = f"({kind})({made.text})"
        if kind in NARROW:
            low, high = NARROW[kind]
            return Number(text, *((made.low, made.high) if made.within(low, high)
                                  else (low, high)))  # fmt: skip
        if made.type == UINT and made.low < 0 and kind in (LONG, SIZE):
            return made
        if made.type == SIZE and made.low < 0 and kind == UINT:
            return made
        return Number(text, made.low, made.high, kind)

    def _choice(self, depth: int) -> Number:
        left, right = self.small(60, depth), self.small(60, depth)
        kind = self._joined(left, right)
        if kind is None:
            return left
        low, high = min(left.low, right.low), max(left.high, right.high)
        test = self.condition(depth)
        return Number(f"({test} ? {left.text} : {right.text})", low, high, kind)

    def _truth(self, depth: int) -> Number:
        test = self.condition(depth)
        return Number(self.rng.choice([f"({test})", f"!({test})", f"!!({test})"]), 0, 1)

    def _called(self, depth: int) -> Number:
        made = self.small(60, depth)
        if made.type != INT:
            made = Number(f"(int)({made.text})", made.low, made.high)
        other = self._as_int(self.small(40, depth))
        match self.rng.randrange(8):
            case 0:
                return Number(f"AT({made.text}, {other.text})", made.low * 7 + other.low,
                              made.high * 7 + other.high)  # fmt: skip
            case 1:
                return Number(f"CLAMPED({made.text})", 0, 40)
            case 2:
                return Number(f"(BUMPED({made.text}))", made.low + 3, made.high + 3)
            case 3:
                return Number(f"flat({made.text}, {other.text})", made.low * 5 + other.low,
                              made.high * 5 + other.high)  # fmt: skip
            case 4:
                return Number(f"clip({made.text})", 0, 19)
            case 5:
                name = self.rng.choice(["min", "max"])
                pick = min if name == "min" else max
                return Number(f"{name}({made.text}, {other.text})", pick(made.low, other.low),
                              pick(made.high, other.high))  # fmt: skip
            case 6:
                return Number(f"larger<int>({made.text}, {other.text})", max(made.low, other.low),
                              max(made.high, other.high))  # fmt: skip
        return Number(f"abs({made.text})", 0, max(abs(made.low), abs(made.high)))

    def _as_int(self, made: Number) -> Number:
        if made.type == INT:
            return made
        return Number(f"(int)({made.text})", made.low, made.high)

    def _loaded(self, depth: int) -> Number:
        """From a table that nothing writes."""
        index = self.index(depth)
        if self.rng.random() < 0.5:
            return Number(f"bytes[{index}]", 0, 9)
        return Number(f"tab[{index}]", -20, 49)

    def _negated(self, depth: int) -> Number:
        made = self._as_int(self.number(depth))
        if self.rng.random() < 0.5:
            return Number(f"(~({made.text}))", -made.high - 1, -made.low - 1)
        return Number(f"(-({made.text}))", -made.high, -made.low)

    def _function_of_loop(self, depth: int) -> Number:
        made = self._as_int(self.small(20, depth))
        if self.rng.random() < 0.5:
            return Number(f"steps({made.text})", 0, 20)
        return Number(f"first(tab, {MIDDLE} + {made.text})", 0, 4)

    _COMPOUND: ClassVar[tuple[Callable[[Writer, int], Number], ...]] = (
        _sum, _sum, _sum, _sum, _product, _product, _division, _by_a_size, _bits, _cast, _choice,
        _truth, _called, _called, _loaded, _negated, _function_of_loop,
    )  # fmt: skip

    def index(self, depth: int = 1) -> str:
        stepping, self.stepping_off = self.stepping_off, True  # not in what is inside of it
        made = self.number(depth)
        if not made.within(-_FAR, _FAR):
            made = self._reduced(made)
        self.stepping_off = stepping
        middle = self.rng.choice([str(MIDDLE), "base"])
        steps = self._stepped(made)
        return f"{middle} + {made.text}{steps}" if self.rng.random() < 0.5 else (
            f"{made.text} + {middle}{steps}")  # fmt: skip

    def _stepped(self, made: Number) -> str:
        """A step inside of the subscript, of a local that is not in it otherwise."""
        ready = [
            v for v in self.visible
            if not v.fixed and v.type == INT
            and v.name not in made.text and v.spare > self.rounds
        ]  # fmt: skip
        aliased = any(v.name.startswith("r") for v in self.locals)
        if not ready or self.stepping_off or aliased or self.rng.random() > 0.15:
            return ""
        found = self.rng.choice(ready)
        found.spare -= self.rounds
        return " + " + self.rng.choice(["{}++", "++{}", "{}--", "--{}"]).format(found.name)

    stepping_off = True

    # -- conditions

    def condition(self, depth: int = 1) -> str:
        roll = self.rng.random()
        if depth > 0 and roll < 0.3:
            op = self.rng.choice(["&&", "||"])
            return f"({self.condition(depth - 1)} {op} {self.condition(depth - 1)})"
        if roll < 0.35:
            return f"!({self.condition(depth - 1)})"
        left, right = self.number(min(depth, 1)), self.number(0)
        if roll < 0.45:
            return f"({left.text})"
        kind = self._joined(left, right)
        if kind is None:
            return f"({left.text})"
        if kind in UNSIGNED:
            left, right = self.settled(left, kind), self.settled(right, kind)
        op = self.rng.choice(["<", "<=", ">", ">=", "==", "!="])
        return f"({left.text} {op} {right.text})"
