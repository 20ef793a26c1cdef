"""The names of a reading exchanged for those that every spelling of its kernel has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from optiml_magic.kernels.operations import Operations
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.ranges import holds
from optiml_magic.kernels.reading import Axis, Reading
from optiml_magic.kernels.symbols import (
    Always,
    Compare,
    Condition,
    Every,
    Some,
    Symbol,
    Symbols,
    Untold,
)
from optiml_magic.kernels.types import INT

_COMMUTATIVE = frozenset({"min", "max", "&", "|", "^"})
Loops = tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """All that holds where something runs; ``given`` are the tests of its loops."""

    holds: frozenset[Condition]
    given: frozenset[Condition]


def same_places(
    ours: Iterable[Place], theirs: Iterable[Place], table: Mapping[str, Symbol]
) -> bool:
    """Whether the same is said to hold in both: what narrower ones are part of does not count."""
    symbols = Symbols()
    symbols.table = dict(table)
    left, right = set(ours), set(theirs)
    if left == right:
        return True
    return all(any(_within(p, q, symbols) for q in right) for p in left) and all(
        any(_within(q, p, symbols) for p in left) for q in right
    )


def _within(inner: Place, outer: Place, symbols: Symbols) -> bool:
    """Whether everything that holds in the outer place certainly holds in the inner one."""
    known = [*inner.holds, *inner.given]
    return all(_follows(part, known, symbols) for part in outer.holds - inner.holds)


def _follows(part: Condition, known: list[Condition], symbols: Symbols) -> bool:
    if isinstance(part, Some):
        return any(_follows(p, known, symbols) for p in part.parts)
    if isinstance(part, Every):
        return all(_follows(p, known, symbols) for p in part.parts)
    if not isinstance(part, Compare):
        return part in known
    if part.op == ">=":
        return holds(part.form, known, symbols)
    return part.op == "==" and all(holds(f, known, symbols) for f in (part.form, -part.form))


@dataclass
class Names:
    """Forms and conditions of a reading in the names of the original.

    Attributes:
        renamed: from the text's names to the original's.
        block: the text's own block; ``beside`` is that of the spelling to compare with.
    """

    reading: Reading
    renamed: Mapping[str, str]
    block: tuple[int, ...]
    beside: tuple[int, ...]
    symbols: Symbols = field(default_factory=Symbols)

    def __post_init__(self) -> None:
        own = [a.name for a in self.reading.arrays.values() if a.space != "global"]
        self._own = {name: f"own{at}" for at, name in enumerate(own)}
        self._unknown: dict[str, str] = {}
        self._outer: dict[str, Loops] = {}
        reading = self.reading
        nests = [a.loops for a in reading.accesses] + [b.loops for b in reading.barriers]
        for loops in (*nests, *(g.loops for g in reading.guards)):
            for at, name in enumerate(loops):
                self._outer.setdefault(name, loops[:at])

    def outer(self, axis: Axis) -> Loops:
        """The loops around a loop."""
        return self._outer.get(axis.name, ())

    def array(self, name: str) -> str:
        return self._own.get(name) or self.renamed.get(name, name)

    def nest(self, loops: Loops) -> str:
        """How often each of these loops runs, outermost first."""
        return " of ".join(self._rounds(self.reading.axis(n), loops) for n in loops) or "no loop"

    def _rounds(self, axis: Axis, loops: Loops) -> str:
        if axis.start is None or axis.step is None or axis.stop is None:
            return "unknown"
        start, step, stop = (self.form(f, loops) for f in (axis.start, axis.step, axis.stop))
        if self._geometric(axis):
            return f"{start} by factors of {step} to {stop}"
        apart = _over(stop - start, step)
        return str(apart) if apart is not None else f"({stop - start})/({step})"

    def _geometric(self, axis: Axis) -> bool:
        table = self.reading.symbols
        forms = [c.form for c in axis.test.conjuncts() if isinstance(c, Compare)]
        return any(table[n].op.startswith("power") for f in forms for n in table.inside(f))

    def place(self, guard: Iterable[Condition], loops: Loops) -> Place:
        """What holds in these loops; their bounds are their own."""
        bounds: set[Condition] = set()
        for axis in map(self.reading.axis, loops):
            if axis.bounded:
                bounds.update(c for c in self.parts(axis.test, loops) if isinstance(c, Compare))
        parts = {c for g in guard for c in self.parts(g, loops)}
        return Place(frozenset(parts - bounds), frozenset(bounds))

    def parts(self, condition: Condition, loops: Loops) -> Iterator[Condition]:
        for part in condition.conjuncts():
            yield self.condition(part, loops)

    def told(self, condition: Condition) -> bool:
        """Whether a condition is one on whole numbers that are followed."""
        if isinstance(condition, Every | Some):
            return all(self.told(part) for part in condition.parts)
        return isinstance(condition, Compare)

    def condition(self, condition: Condition, loops: Loops) -> Condition:
        if isinstance(condition, Compare):
            form = self.form(condition.form, loops)
            if condition.op != ">=":  # either sign says the same
                form = min(form, -form, key=str)
            return Compare(condition.op, form, frozenset())
        if isinstance(condition, Every | Some):
            parts = {self.condition(part, loops) for part in condition.parts}
            return type(condition)(tuple(sorted(parts, key=str)))
        if isinstance(condition, Untold):
            roots = frozenset(self.array(n) for n in condition.roots if n in self.reading.arrays)
            return Untold("untold of " + " ".join(sorted(roots)), roots)
        assert isinstance(condition, Always)
        return condition

    def form(self, form: Polynomial, loops: Loops) -> Polynomial:
        total = Polynomial()
        for monomial, factor in form.terms:
            product = Polynomial.constant(factor)
            for name in monomial:
                product = product * self._symbol(self.reading.symbols[name], loops)
            total = total + product
        return total

    def _symbol(self, symbol: Symbol, loops: Loops) -> Polynomial:
        name = symbol.name
        if symbol.kind == "counter":
            name = f"c{loops.index(name)}" if name in loops else f"last of {name}"
        elif symbol.kind == "builtin":
            if name == "threadIdx.x" and len(self.block) < len(self.beside):
                return self._spread()
        elif symbol.kind == "unknown":
            name = self._unknown.setdefault(name, f"?{len(self._unknown)}")
        elif symbol.kind == "scalar":
            name = self.renamed.get(name, name)
        else:
            return self._made(symbol, loops)
        return self.symbols.of(replace(symbol, name=name))

    def _spread(self) -> Polynomial:
        """The thread of a block that has one axis here and two in the other spelling."""
        table = self.reading.symbols
        x, y = table.builtin("threadIdx.x"), table.builtin("threadIdx.y")
        for form in (x, y):
            (name,) = form.symbols
            self.symbols.of(table[name])
        return y * Polynomial.constant(self.beside[0]) + x

    def _made(self, symbol: Symbol, loops: Loops) -> Polynomial:
        """An operation, a load, a choice or what a loop leaves behind."""
        arguments = tuple(self.form(argument, loops) for argument in symbol.arguments)
        if symbol.kind == "final":
            return arguments[0]
        if symbol.op == "wrap":  # an index fits its type
            return arguments[0]
        if symbol.op in ("/", "%") and len(self.block) < len(self.beside):
            inside = Polynomial.constant(self.beside[0] - 1) - Polynomial.symbol("threadIdx.x")
            path = (Compare(">=", inside, frozenset()),)
            left, right = arguments
            return Operations(self.symbols).binary(symbol.op, left, right, INT, path)
        if symbol.op in _COMMUTATIVE:
            arguments = tuple(sorted(arguments, key=str))
        told = ", ".join(map(str, arguments))
        condition = None
        if symbol.condition is not None:
            condition = self.condition(symbol.condition, loops)
            told = f"{condition}, {told}"
        name = f"{symbol.op}({told})"
        if symbol.kind == "load":
            name = f"{self.array(symbol.array)}[{told}]"
        return self.symbols.of(replace(symbol, name=name, arguments=arguments, condition=condition))


def _over(form: Polynomial, step: Polynomial) -> Polynomial | None:
    """``form / step`` where that leaves no rest for any values."""
    if len(step.terms) != 1:
        return None
    ((own, times),) = step.terms
    found = {}
    for monomial, factor in form.terms:
        rest = list(monomial)
        for name in own:
            if name not in rest:
                return None
            rest.remove(name)
        if factor % times:
            return None
        found[tuple(rest)] = factor // times
    return Polynomial.of(found)
