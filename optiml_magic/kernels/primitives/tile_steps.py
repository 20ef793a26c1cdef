"""What the address and the tests of a tile's element ask of its block and its round, kept for it.

Where loops were collapsed, a round is taken apart by divisions: so a few threads do that once for
each round of the next tile, and the others look it up. What a block's number is divided for is
kept by each thread. Source: the offset table of implicit products, NVIDIA/cutlass,
conv/threadblock/conv2d_fprop_activation_tile_access_iterator_optimized.h.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from optiml_magic.kernels.expressions import every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.operands import (
    COLUMN,
    ROW,
    Contraction,
    Operand,
    symbols_inside,
)
from optiml_magic.kernels.primitives.tile_guards import guards
from optiml_magic.kernels.primitives.tile_layout import Layout
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.kernels.types import named

_PLAIN = frozenset({"scalar", "builtin", "operation", "counter", "select"})


@dataclass(frozen=True)
class _Part:
    """A sum that is kept under a ``name``: of this ``kind`` for all rounds, else in a table."""

    form: Polynomial
    name: str
    symbol: str
    kind: str


class Steps:
    """What is kept for an operand; nothing where its indices are plain sums and products."""

    def __init__(self, layout: Layout, operand: Operand) -> None:
        self.layout = layout
        self.parts: Contraction = layout.parts
        self.operand = operand
        self.kept: list[_Part] = []
        name = layout.called[operand]
        tests = [c.form for c in self._compared()] if self._is_int() else []
        forms = [operand.form, *tests]
        apart = self._is_int() and any(map(self._apart, forms)) and all(map(self._separate, forms))
        self.counted = [c for c in self._compared() if self._alike(c.form)] if apart else []
        for form in forms:
            if apart and form not in [c.form for c in self.counted]:
                self._keep(self._round(form), f"{name}_steps", "")
            kinds = self._kinds(self._block(form))
            # Tests are of numbers with a sign, where a built-in variable has none.
            kind = "int" if form in tests else "auto"
            worth = {"operation", "builtin"} if form in tests else {"operation"}
            if kinds <= _PLAIN and kinds & worth:
                self._keep(self._block(form), f"{name}_from", kind)
        taken = [part.name for part in self.kept]
        self.there = layout.old.fresh(f"{name}_there", *taken) if self.counted else ""
        tables = [p.name for p in self.kept if not p.kind] + [self.there] * bool(self.there)
        self.now = {table: layout.old.fresh(f"{table}_now", *taken) for table in tables}

    @property
    def looks(self) -> bool:
        """Whether something is kept in a table."""
        return any(not part.kind for part in self.kept)

    @property
    def tables(self) -> int:
        """How many tables there are."""
        return sum(not part.kind for part in self.kept) + bool(self.there)

    @property
    def plain(self) -> bool:
        """Whether to compute its tests asks for nothing but numbers at hand, whatever they are."""
        tests = guards(self.parts, self.operand)
        return all(isinstance(c, Compare) and self._kinds(c.form) <= _PLAIN for c in tests)

    def tests(self) -> list[Condition | str]:
        """What must hold for an element, of which that is alike for a whole round was looked up."""
        rest = [c for c in guards(self.parts, self.operand) if c not in self.counted]
        return [*([self.now[self.there]] if self.there else []), *rest]

    def put(self, form: Polynomial) -> Polynomial:
        """A form with what is kept in the place of what it was."""
        for own in (self._round(form), self._block(form)):
            for part in self.kept:
                for sign in (1, -1):
                    if own == Polynomial.constant(sign) * part.form:
                        found = Polynomial.constant(sign) * Polynomial.symbol(part.symbol)
                        form = form - own + found
        return form

    def condition(self, test: Condition) -> Condition:
        """The same for a test."""
        return (
            Compare(test.op, self.put(test.form), test.roots) if isinstance(test, Compare) else test
        )

    def names(self) -> dict[str, str]:
        """What stands for what is kept, where a round's share of it was ``looked`` up."""
        return {p.symbol: p.name if p.kind else self.now[p.name] for p in self.kept}

    def looked(self, deep: str) -> str:
        """Looks up what is asked for in a round, ``deep`` rounds behind the first of its tile.

        Whether it is needed is not asked before, so that the lookups of a thread do not wait.
        """
        found = (f"{now} = {self._place(table, deep)}" for table, now in self.now.items())
        return f"const int {', '.join(found)};\n" if self.now else ""

    def declared(self) -> Iterator[str]:
        """What is kept: tables of this tile's rounds and of the next one's, and plain numbers."""
        for part in self.kept:
            if part.kind:
                wide = self.layout.wide and part.kind == "auto"
                words = self.layout.speller({}, wide=wide).form(part.form)
                yield f"const {part.kind} {part.name} = {words};"
            else:
                yield f"__shared__ int {part.name}[2][{self.layout.deep}];"
        if self.there:
            yield f"__shared__ int {self.there}[2][{self.layout.deep}];"

    def filled(self, rounds: str) -> Iterator[str]:
        """What a thread computes for the round ``from_`` and as many more as its own number."""
        deep = self.layout.round
        names = {p.symbol: p.name for p in self.kept if p.kind}
        speller = self.layout.speller({self.parts.axis.name: deep, **names})
        for part in self.kept:
            if not part.kind:
                yield f"{self._place(part.name, 'threadIdx.x')} = {speller.form(part.form)};"
        if self.there:
            tests = [f"{deep} < {rounds}"]
            tests += [speller.condition(self.condition(c)) for c in self.counted]
            there = " & ".join(f"({test})" for test in tests)
            yield f"{self._place(self.there, 'threadIdx.x')} = {there};"

    def _place(self, table: str, deep: str) -> str:
        return f"{table}[{self.layout.from_} / {self.layout.deep} % 2][{deep}]"

    def _keep(self, form: Polynomial, name: str, kind: str) -> None:
        known = any(form in (p.form, -p.form) and p.kind == kind for p in self.kept)
        if form.terms and not known:
            name = self.layout.old.fresh(name, *(part.name for part in self.kept))
            self.kept.append(_Part(form, name, f"@{name}", kind))

    def _compared(self) -> list[Compare]:
        return [c for c in guards(self.parts, self.operand) if isinstance(c, Compare)]

    def _round(self, form: Polynomial) -> Polynomial:
        """The terms of a form that are others in each round."""
        return Polynomial.of({m: by for m, by in form.terms if self.parts.axis.name in self._in(m)})

    def _block(self, form: Polynomial) -> Polynomial:
        """The terms of a form that are the same for all that a thread brings, but its number."""
        moving = {self.parts.axis.name, ROW, COLUMN}
        return Polynomial.of({m: by for m, by in form.terms if m and not moving & self._in(m)})

    def _in(self, monomial: tuple[str, ...]) -> frozenset[str]:
        """The names of a product and of the operations in it."""
        return symbols_inside(self.parts, Polynomial.of({monomial: 1})) | {*monomial}

    def _kinds(self, form: Polynomial) -> frozenset[str]:
        """What a form and its operations consist of."""
        table = self.parts.kernel.reading.symbols.table
        inside = frozenset[str]().union(*(self._in(m) for m, _ in form.terms))
        return frozenset(table[name].kind for name in inside if name in table)

    def _apart(self, form: Polynomial) -> bool:
        """Whether a form takes a round apart, by operations on plain numbers alone."""
        alone = Polynomial.of({(n,): 1 for n in form.symbols - {self.parts.axis.name}})
        return self.parts.axis.name in symbols_inside(self.parts, alone)

    def _alike(self, form: Polynomial) -> bool:
        """Whether a test is of a round and its block alone, of plain numbers."""
        inside = frozenset[str]().union(*(self._in(m) for m, _ in form.terms))
        moving = {ROW, COLUMN} & inside
        return self.parts.axis.name in inside and not moving and self._kinds(form) <= _PLAIN

    def _separate(self, form: Polynomial) -> bool:
        """Whether what a form asks of a round is a sum of its own, without loads."""
        own = self._round(form)
        inside = frozenset[str]().union(*(self._in(m) for m, _ in own.terms))
        return self.operand.side not in inside and self._kinds(own) <= _PLAIN

    def _is_int(self) -> bool:
        """Whether an index is computed in 32 bits, from sizes with signs."""
        kernel = self.parts.kernel
        exprs = [e for a in self.operand.accesses for e in every(a.own)]
        kinds = [kernel.reading.types.get(e) for e in exprs]
        sizes = [named(p.type.base, kernel.unit.aliases) for p in kernel.function.parameters
                 if not p.type.depth]  # fmt: skip
        return not any(k is not None and k.integral and k.size == 8 for k in kinds) and not any(
            k.integral and not (k.signed and k.size == 4) for k in sizes
        )
