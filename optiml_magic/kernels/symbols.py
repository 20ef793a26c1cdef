"""What the forms of index expressions are made of, and conditions over them.

A symbol's name says what it is, so that equal computations are equal polynomials: ``threadIdx.x``,
a scalar's name, a loop's counter, ``(n)/(4)``, ``col[k]``. ``depends`` tells what its value comes
from; ``UNKNOWN`` in it means: from something that this reading does not follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from optiml_magic.kernels.polynomial import Polynomial

UNKNOWN = "?"
MEMORY = "[]"
THREADS = frozenset({"threadIdx.x", "threadIdx.y", "threadIdx.z"})
BLOCKS = frozenset({"blockIdx.x", "blockIdx.y", "blockIdx.z"})
VARYING = THREADS | {UNKNOWN}
_LONGEST = 160  # characters
_LIMIT = {"x": 1024, "y": 1024, "z": 64}

Kind = Literal["builtin", "scalar", "counter", "operation", "load", "select", "final", "unknown"]


@dataclass(frozen=True)
class Symbol:
    """``low`` and ``high`` are bounds that hold by type or by construction, both included.

    ``width`` are the bytes of what is loaded, or of a scalar; 0 where nothing tells. What is loaded
    from an array of another type, such as a member of a vector, is ``seen`` as one of its own type.
    """

    name: str
    kind: Kind
    depends: frozenset[str]
    op: str = ""
    arguments: tuple[Polynomial, ...] = ()
    condition: Condition | None = None
    array: str = ""
    width: int = 0
    low: int | None = None
    high: int | None = None
    seen: str = ""


@dataclass(frozen=True)
class Condition:
    """What holds where a statement runs."""

    def __invert__(self) -> Condition:
        raise NotImplementedError

    @property
    def depends(self) -> frozenset[str]:
        raise NotImplementedError

    def conjuncts(self) -> Iterator[Condition]:
        """The parts that all hold."""
        yield self


@dataclass(frozen=True)
class Compare(Condition):
    """``form`` compared with zero; ``op`` is ``>=``, ``==`` or ``!=``."""

    op: Literal[">=", "==", "!="]
    form: Polynomial
    roots: frozenset[str] = field(compare=False)

    def __invert__(self) -> Condition:
        if self.op == ">=":
            return Compare(">=", -self.form - Polynomial.constant(1), self.roots)
        return Compare("!=" if self.op == "==" else "==", self.form, self.roots)

    @property
    def depends(self) -> frozenset[str]:
        return self.roots

    def __str__(self) -> str:
        return f"{self.form} {self.op} 0"


@dataclass(frozen=True)
class Every(Condition):
    """All of the parts."""

    parts: tuple[Condition, ...]

    def __invert__(self) -> Condition:
        return Some(tuple(~part for part in self.parts))

    @property
    def depends(self) -> frozenset[str]:
        return frozenset[str]().union(*(part.depends for part in self.parts))

    def conjuncts(self) -> Iterator[Condition]:
        for part in self.parts:
            yield from part.conjuncts()

    def __str__(self) -> str:
        return " && ".join(f"({part})" for part in self.parts)


@dataclass(frozen=True)
class Some(Condition):
    """At least one of the parts."""

    parts: tuple[Condition, ...]

    def __invert__(self) -> Condition:
        return Every(tuple(~part for part in self.parts))

    @property
    def depends(self) -> frozenset[str]:
        return frozenset[str]().union(*(part.depends for part in self.parts))

    def __str__(self) -> str:
        return " || ".join(f"({part})" for part in self.parts)


@dataclass(frozen=True)
class Always(Condition):
    """True, or false: known while reading."""

    value: bool

    def __invert__(self) -> Condition:
        return Always(not self.value)

    @property
    def depends(self) -> frozenset[str]:
        return frozenset()

    def conjuncts(self) -> Iterator[Condition]:
        if not self.value:
            yield self

    def __str__(self) -> str:
        return str(self.value).lower()


@dataclass(frozen=True)
class Untold(Condition):
    """A condition on what is no integer of this reading: floats, memory, unknown functions."""

    text: str
    roots: frozenset[str]
    negated: bool = False
    serial: int = 0

    def __invert__(self) -> Condition:
        return Untold(self.text, self.roots, not self.negated, self.serial)

    @property
    def depends(self) -> frozenset[str]:
        return self.roots

    def __str__(self) -> str:
        return f"!({self.text})" if self.negated else self.text


def every(parts: tuple[Condition, ...]) -> Condition:
    """All of these, as little as says it."""
    flat = tuple(dict.fromkeys(c for part in parts for c in part.conjuncts()))
    if any(isinstance(c, Always) for c in flat):
        return Always(False)
    return flat[0] if len(flat) == 1 else Every(flat) if flat else Always(True)


class Symbols:
    """The symbols of one reading by name."""

    def __init__(self) -> None:
        self.table: dict[str, Symbol] = {}
        self.proved: dict[object, bool] = {}  # what was asked of their ranges
        self._short: dict[str, str] = {}

    def __getitem__(self, name: str) -> Symbol:
        return self.table[name]

    def of(self, symbol: Symbol) -> Polynomial:
        """The form that is this symbol alone. A name that nobody would read is made short."""
        name = symbol.name
        if len(name) > _LONGEST:
            name = self._short.setdefault(name, f"{symbol.op}#{len(self._short)}")
            symbol = replace(symbol, name=name)
        self.table.setdefault(name, symbol)
        return Polynomial.symbol(name)

    def at_most(self, name: str, high: int) -> None:
        """Note what a symbol is at most, now that it is known."""
        self.table[name] = replace(self.table[name], high=high)
        self.proved.clear()

    def builtin(self, name: str, width: int | None = None) -> Polynomial:
        """A built-in variable; ``width`` is that of the block along its axis, where it is fixed."""
        axis = name[-1]
        low, high = (0, None) if "Idx" in name else (1, None)
        if name.startswith("threadIdx"):
            high = (width or _LIMIT[axis]) - 1
        elif name.startswith("blockDim"):
            high = _LIMIT[axis]
        elif name.startswith("blockIdx"):
            high = 2**31 - 2
        return self.of(Symbol(name, "builtin", frozenset({name}), low=low, high=high))

    def depends(self, form: Polynomial) -> frozenset[str]:
        """What the value of a form comes from."""
        return frozenset[str]().union(*(self.table[name].depends for name in form.symbols))

    def known(self, form: Polynomial) -> bool:
        """Whether every part of a form is followed."""
        return UNKNOWN not in self.depends(form)

    def inside(self, form: Polynomial) -> frozenset[str]:
        """The names of a form and of all that its operations consist of."""
        found: set[str] = set()
        todo = list(form.symbols)
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                todo += self._parts(self.table[name])
        return frozenset(found)

    def under(self, forms: Iterable[Polynomial], most: int) -> frozenset[Symbol] | None:
        """The symbols of forms, and all that these consist of; None of more than so many."""
        found = dict[str, Symbol]()
        todo = [name for form in forms for name in form.symbols]
        while todo and len(found) <= most:
            name = todo.pop()
            if name not in found:
                found[name] = self.table[name]
                todo += self._parts(found[name])
        return frozenset(found.values()) if len(found) <= most else None

    @staticmethod
    def _parts(symbol: Symbol) -> list[str]:
        """The names that a symbol is made of."""
        asked = _named_in(symbol.condition) if symbol.condition is not None else []
        return [name for argument in symbol.arguments for name in argument.symbols] + asked

    def made_of(self, form: Polynomial) -> frozenset[str]:
        """The names that a form comes down to, what its operations consist of in their place."""
        return frozenset(n for n in self.inside(form) if not self.table[n].arguments)


def _named_in(condition: Condition) -> list[str]:
    if isinstance(condition, Compare):
        return list(condition.form.symbols)
    if isinstance(condition, Every | Some):
        return [name for part in condition.parts for name in _named_in(part)]
    return []
