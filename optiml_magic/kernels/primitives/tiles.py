"""Tiles of the operands of a product on their way to shared memory, through registers.

Each thread brings as many elements at once as 16 bytes hold, where addresses and sizes allow it;
what lies behind the last row, column or round is zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.items import WIDEST, Items, is_plain
from optiml_magic.kernels.primitives.operands import COLUMN, ROW, Operand, symbols_inside
from optiml_magic.kernels.primitives.tile_guards import guards
from optiml_magic.kernels.primitives.tile_layout import Layout
from optiml_magic.kernels.primitives.tile_steps import Steps
from optiml_magic.kernels.primitives.zeros import nothing
from optiml_magic.kernels.spelling import Speller
from optiml_magic.kernels.symbols import Compare, Condition

_SPARE = 4  # elements behind each row of a tile, which keep rows off their banks
_MOST = 4  # elements at once: with more, small tiles leave threads without any


@dataclass(frozen=True)
class Brought:
    """How the tile of an operand comes: ``width`` elements at once, neighbours along ``along``.

    ``along`` is the name of the loop's counter, that of its side, or empty; ``tests`` say where
    the addresses of such groups are multiples of their size and their ends those of the tile's.
    """

    operand: Operand
    items: Items
    along: str
    width: int
    tests: tuple[str, ...]

    @property
    def vector(self) -> str:
        return self.items.vector(self.width)


class Tiles:
    """The tiles of all operands of a product."""

    def __init__(self, layout: Layout, depth: Polynomial) -> None:
        self.layout = layout
        self.parts = layout.parts
        fresh = layout.old.fresh
        self.count = layout.speller({}).factor(depth)
        # What memory says would be loaded anew behind each barrier.
        named = any(sign in self.count for sign in "([")
        self.rounds = fresh("rounds") if named else self.count
        self.depth = depth
        self.turn, self.element = fresh("turn"), fresh("element")
        self.fetch, self.put, self.look = fresh("fetch"), fresh("put"), fresh("look")
        self.steps = {operand: Steps(layout, operand) for operand in self.parts.operands}
        self.brought = tuple(self._brought(operand) for operand in self.parts.operands)

    def taken(self, operand: Operand, at: str, deep: str = "") -> str:
        """An element of a tile in a round, of those of a thread; this one if it is not ``deep``."""
        side, deep = self.layout.side(operand), deep or self.layout.round
        index = self.layout.owned(side, at, self._turned(operand, side.start, deep))
        return self._element(operand, index, deep)

    def taken_at(self, operand: Operand, place: str) -> str:
        """The element of a tile in a round, of the row or column at this place of it."""
        deep = self.layout.round
        return self._element(operand, self._turned(operand, place, deep), deep)

    def _element(self, operand: Operand, index: str, deep: str) -> str:
        return f"{self.layout.names[operand][0]}[{self.layout.half}][{deep}][{index}]"

    def _turned(self, operand: Operand, place: str, deep: str) -> str:
        one = next(b for b in self.brought if b.operand is operand)
        if one.along == self.parts.axis.name and one.width > 1:
            return f"({place} ^ {self.layout.turned(deep)})"
        return place

    def declared(self) -> list[str]:
        """The tiles, and what of them is on its way."""
        made = [f"const int {self.rounds} = {self.count};"] * (self.rounds != self.count)
        for one in self.brought:
            tile, following, _, whole = self.layout.names[one.operand]
            many = self.layout.side(one.operand).whole
            kind, deep = one.operand.kind, self.layout.deep
            made.append(f"__shared__ __align__(16) {kind} {tile}[2][{deep}][{many} + {_SPARE}];")
            aligned = f"alignas({one.width * one.operand.size}) " if one.width > 1 else ""
            count = f"{many} * {deep} / {self.layout.threads}"
            made.append(f"{aligned}{kind} {following}[{count}];")
            if one.width > 1:
                made.append(f"const bool {whole} = {' && '.join(one.tests)};")
            made += self.steps[one.operand].declared()
        return made

    def looking(self) -> list[str]:
        """Computes what is looked up for the rounds of one tile, before they are fetched."""
        inside = [line for steps in self.steps.values() for line in steps.filled(self.rounds)]
        if not inside:
            return []
        from_, deep = self.layout.from_, self.layout.deep
        return [
            f"const auto {self.look} = [&](int {from_}) {{",
            f"if (threadIdx.x < {deep}) {{",
            f"const int {self.layout.round} = {from_} + threadIdx.x;", *inside, "}", "};",
        ]  # fmt: skip

    def looked(self, from_: str) -> str:
        """The call for the tile from this round on; nothing where nothing is looked up."""
        return f"{self.look}({from_});" if any(s.looks for s in self.steps.values()) else ""

    def fits(self) -> list[str]:
        """The conditions on tuned names under which threads bring whole groups."""
        found = []
        for one in self.brought:
            many, deep = self.layout.side(one.operand).whole, self.layout.deep
            by = f"{one.width} * {self.layout.count}" if one.width > 1 else self.layout.count
            found.append(f"{many} * {deep} % ({by}) == 0")
        return list(dict.fromkeys(found))

    def shared(self) -> str:
        """The bytes of all tiles."""
        parts: dict[str, int] = {}
        for one in self.brought:
            row = f"({self.layout.side(one.operand).whole} + {_SPARE})"
            parts[row] = parts.get(row, 0) + 2 * one.operand.size
        tables = sum(steps.tables for steps in self.steps.values())
        rows = [f"{by} * {self.layout.deep} * {row}" for row, by in parts.items()]
        return " + ".join([*rows, *([f"{8 * tables} * {self.layout.deep}"] if tables else [])])

    def fetching(self) -> str:
        """Brings the tiles of some rounds into registers."""
        made = []
        for one in self.brought:
            if one.width == 1:
                made.append(self._turns(one, self._single(one)))
                continue
            *_, whole = self.layout.names[one.operand]
            made.append(
                f"if ({whole}) {{\n{self._turns(one, self._vector(one))}\n}} else {{\n"
                f"{self._turns(one, self._single(one))}\n}}"
            )
        from_ = self.layout.from_
        return f"const auto {self.fetch} = [&](int {from_}) {{\n" + "\n".join(made) + "\n};"

    def putting(self) -> str:
        """Lays what came into one of the two tiles of each operand."""
        made = []
        for one in self.brought:
            tile, following, *_ = self.layout.names[one.operand]
            deep, own = self._placing(one)
            along, half = one.along == self.parts.axis.name, self.layout.half
            if one.width == 1:
                inside = f"{tile}[{half}][{deep}][{own}] = {following}[{self.turn}];"
            elif along:
                inside = (
                    f"const int {self.layout.round} = {deep}, "
                    f"{self.layout.at_side} = ({own}) ^ {self.layout.turned(self.layout.round)};\n"
                    + self._elements(one)
                    + f"{tile}[{half}][{self.layout.round} + {self.element}]"
                    f"[{self.layout.at_side}] = {following}[{self.turn} * {one.width} + "
                    f"{self.element}];"
                )
            else:
                inside = one.items.stored(
                    one.width, f"{following} + {self.turn} * {one.width}",
                    f"&{tile}[{half}][{deep}][{own}]",
                )  # fmt: skip
            made.append(self._turns(one, inside))
        return (
            f"const auto {self.put} = [&](int {self.layout.half}) {{\n" + "\n".join(made) + "\n};"
        )

    # -- one operand

    def _brought(self, operand: Operand) -> Brought:
        access = operand.accesses[0]
        items = Items(operand.array, operand.form, operand.accesses)
        axis, plain = self.parts.axis.name, is_plain(self.layout.old, access)
        width = min(WIDEST // operand.size, _MOST) if plain else 1
        for along in (axis, operand.side):
            by = operand.form.coefficient(along)
            if by is None or by.value not in (1, -1):
                continue
            if along == axis and axis in self._inside(operand):
                continue  # neighbouring rounds are not neighbours throughout
            tests = self._tests(operand, along, width) if by.value == 1 and width > 1 else None
            if tests is None:
                return Brought(operand, items, along, 1, ())
            return Brought(operand, items, along, width, tests)
        return Brought(operand, items, "", 1, ())

    def _inside(self, operand: Operand) -> frozenset[str]:
        """The names in the operations of an operand's index."""
        alone = operand.form.symbols - {self.parts.axis.name, operand.side}
        return symbols_inside(self.parts, Polynomial.of({(name,): 1 for name in alone}))

    def _tests(self, operand: Operand, along: str, width: int) -> tuple[str, ...] | None:
        """When groups of ``width`` are aligned and whole; None where that cannot be."""
        axis, side = self.parts.axis.name, operand.side
        if any(along in self._names(condition) for condition in self._further(operand)):
            return None
        other = side if along == axis else axis
        bound = self.depth if along == axis else self.parts.extent(side)
        return self.layout.tests(
            operand.array, operand.form, (along, other), bound, width, operand.size
        )

    def _names(self, condition: Condition) -> frozenset[str]:
        if not isinstance(condition, Compare):
            return condition.depends
        return condition.form.symbols | symbols_inside(self.parts, condition.form)

    def _further(self, operand: Operand) -> list[Condition]:
        """What must hold for an element to be there, but for the ends of rows and columns."""
        return guards(self.parts, operand)[1:]

    def _placing(self, one: Brought) -> tuple[str, str]:
        """Round and row in the tile of the first element that a thread brings in its turn."""
        many, deep = self.layout.side(one.operand).whole, self.layout.deep
        width, along = one.width, one.along == self.parts.axis.name
        # Neighbouring threads bring a row's whole share.
        length = deep if along else many
        line, place = self._parted(length if width == 1 else f"({length} / {width})")
        place = place if width == 1 else f"({place}) * {width}"
        return (place, line) if along else (line, place)

    def _parted(self, by: str) -> tuple[str, str]:
        """A thread's place in a turn by rows of this length: the row, and where in it.

        Tiles and blocks are powers of two, of which one divides the other, so that what the turn
        adds to either is a number once its loop is unrolled.
        """
        before = f"{self.turn} * {self.layout.threads}"
        own = "(int)threadIdx.x"  # else ptxas orders products worse, for 6 % on an H200: measured
        return f"{own} / {by} + {before} / {by}", f"{own} % {by} + {before} % {by}"

    def _turns(self, one: Brought, inside: str) -> str:
        many, deep, threads = (
            self.layout.side(one.operand).whole, self.layout.deep, self.layout.threads,
        )  # fmt: skip
        by = f"({one.width} * {threads})" if one.width > 1 else threads
        return (
            f"#pragma unroll\nfor (int {self.turn} = 0; {self.turn} < {many} * {deep} / {by}; "
            f"++{self.turn}) {{\n{inside}\n}}"
        )

    def _elements(self, one: Brought) -> str:
        e = self.element
        return f"#pragma unroll\nfor (int {e} = 0; {e} < {one.width}; ++{e}) "

    def _first(self, one: Brought) -> str:
        """Which round and row the first element of a group is of."""
        deep, own = self._placing(one)
        side = self.layout.side(one.operand)
        return (
            f"const int {self.layout.round} = {self.layout.from_} + {deep}, "
            f"{side.at} = {side.first} + {own};\n{self.steps[one.operand].looked(deep)}"
        )

    def _loaded(self, one: Brought, deep: str, own: str) -> tuple[str, str]:
        """When an element is there, and where; after what is looked up for it."""
        steps = self.steps[one.operand]
        names = {self.parts.axis.name: deep, one.operand.side: own}
        names |= steps.names()
        speller = self.layout.speller(names)
        tests = [] if steps.there else [f"{deep} < {self.rounds}"]
        tests += [c if isinstance(c, str) else speller.condition(steps.condition(c))
                  for c in steps.tests()]  # fmt: skip
        form = steps.put(one.operand.form)
        wide = self.layout.speller(names, wide=self.layout.wide)
        there = f"{one.operand.array}[{self._index(form, wide)}]"
        tests = [*dict.fromkeys(tests)]
        if not steps.plain or len(tests) == 1:
            return " && ".join(tests), there
        # Without a branch for each test the loads of a thread wait for each other no longer.
        return " & ".join(f"({test})" for test in tests), there

    def _index(self, form: Polynomial, speller: Speller) -> str:
        """An index, its parts of the counter each once: what they are times is the same for all."""
        axis, made = self.parts.axis.name, list[str]()
        for name in sorted(form.symbols - {axis, ROW, COLUMN}):
            part, by = Polynomial.symbol(name), form.coefficient(name)
            if by is None or axis not in symbols_inside(self.parts, part):
                continue
            times = "" if by.value == 1 else f" * {speller.factor(by)}"
            made.append(f"{speller.form(part)}{times}")
            form = form.without([name])
        return " + ".join([*made, speller.form(form)])

    def _vector(self, one: Brought) -> str:
        _, following, *_ = self.layout.names[one.operand]
        side = self.layout.side(one.operand)
        test, there = self._loaded(one, self.layout.round, side.at)
        there = f"*reinterpret_cast<const {one.vector}*>(&{there})"
        here = f"*reinterpret_cast<{one.vector}*>({following} + {self.turn} * {one.width})"
        return f"{self._first(one)}{here} = {test} ? {there} : {nothing(one.vector)};"

    def _single(self, one: Brought) -> str:
        _, following, *_ = self.layout.names[one.operand]
        side, kind = self.layout.side(one.operand), one.operand.kind
        if one.width == 1:
            test, there = self._loaded(one, self.layout.round, side.at)
            return (
                f"{self._first(one)}{following}[{self.turn}] = {test} ? {there} : {nothing(kind)};"
            )
        deep, own = self._placing(one)
        along = one.along == self.parts.axis.name
        k, i = self.layout.round, side.at
        more = f" + {self.element}"
        first = (
            f"const int {k} = {self.layout.from_} + {deep}{more * along}, "
            f"{i} = {side.first} + {own}{more * (not along)};\n"
            f"{self.steps[one.operand].looked(f'{deep}{more * along}')}"
        )
        test, there = self._loaded(one, k, i)
        place = f"{following}[{self.turn} * {one.width} + {self.element}]"
        return f"{self._elements(one)}{{\n{first}{place} = {test} ? {there} : {nothing(kind)};\n}}"
