"""P4, unravelled: an index that each thread takes apart into digits, as an axis for each digit.

``x = i % w, y = i / w % h, c = i / (w * h)`` of one long axis become threads along x and y and
blocks along z: the launch then tells which elements are neighbours along a row and a column.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Binary, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cutting import uses
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.factors import Factored, Factors, product
from optiml_magic.kernels.primitives.grids import form_of, needed, room, said_alike
from optiml_magic.kernels.primitives.limits import with_limits
from optiml_magic.kernels.primitives.mapped import Mapped, mapped
from optiml_magic.kernels.primitives.sizes import measured
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import Block, If, Leave, Statement, walk
from optiml_magic.source.directives import LaunchDirective, RequireDirective
from optiml_magic.source.expressions import parse_expression

_WARP, _NARROWEST = 32, 8
_INDEX_FIRST = frozenset({"<", ">="})  # ``i < n`` and, to leave, ``i >= n``
_COMPARED = _INDEX_FIRST | {">", "<="}
_Swaps = dict[Node, Node | tuple[Statement, ...] | None]


@primitive
def unravelled(kernel: Kernel, like: Kernel | None = None) -> Kernel:
    """A grid of one axis whose threads take their index apart, as one of an axis a digit.

    Or as the axes of a launch that it is to be ``like``, one of the same items.
    """
    kernel = kernel.settled()
    if len(kernel.launch.grid) != 1 or len(kernel.launch.block) != 1 or None in kernel.block:
        raise NotLegal("its launch does not have one axis of known extent")
    effects = Effects(kernel)
    items = mapped(kernel, effects)
    if like is None:
        return Unravelling(kernel, effects, items).kernel()
    return _Alike(kernel, effects, items, like).kernel()


class Unravelling:
    """The digits of an index, as an axis each as far as there are axes."""

    order = "xy"  # along which the digits lie, the lowest one first

    def __init__(
        self, kernel: Kernel, effects: Effects, items: Mapped, across: Factors = ()
    ) -> None:
        self.old, self.effects, self.items = kernel, effects, items
        self.bounded = True  # whether the digits say how many items there are
        self.measures = type(self) is Unravelling  # others have axes that the launch says
        self.asked = ""  # what has to hold so that they do
        self.factored = Factored(kernel, effects, uses(kernel, "x").whole, across)
        self.chain, self.across = self.factored.chain, across
        self.ends = self._axes()  # where each axis ends in the chain, and what is left begins
        self.top = len(self.ends)
        self.names = [kernel.fresh(name) for name in ("column", "line", "rest")]
        self.names = [*self.names[: self.top], self.names[2]]

    def _axes(self) -> list[int]:
        """Digits that are too few for an axis share it with those above them."""
        ends, last = [0], len(self.chain) - 1
        for least in (_WARP, _NARROWEST):
            low = ends[-1]
            counts = (
                (at, self._number(self.factored.size(low, at))) for at in range(low + 1, last + 1)
            )
            found = [at for at, count in counts if count is None or count >= least]
            if low < last:
                ends.append(found[0] if found else last)
        return ends[1:]

    def kernel(self) -> Kernel:
        old, names = self.old, self.names
        counts = [self.factored.size(*ends) for ends in pairwise([0, *self.ends])]
        rest = self._left()
        shape, blocks = self._shape(counts, rest)
        edges = [0, *self.ends, len(self.chain)]
        held = [*zip(names, edges, edges[1:], strict=False)]
        swaps: _Swaps = {
            expr: text(self.factored.value(held, *self.factored.ends(cut)))
            for expr, cut in self.factored.cuts.items()
        }
        swaps |= self._beside(rest)
        self._drop_guard(swaps)
        words = self.items.words
        places = [
            f"const {words} {name} = ({words})blockIdx.{axis} * {width} + threadIdx.{axis};"
            for name, axis, width in zip(names, self.order, shape, strict=False)
        ]
        bounds = [f"{name} >= {count}" for name, count in zip(names, counts, strict=False)]
        if self.top == 1 and self.bounded:
            bounds.append(f"{names[1]} >= {rest}")
        elif self.top == 2:
            places.append(f"const {words} {names[2]} = {self._above(rest)};")
        first = lines("\n".join([*places, f"if ({' || '.join(bounds)}) return;"]))
        body = edited(old.function.body, swaps)
        assert isinstance(body, Block)
        if self.order == "yx":
            shape, blocks = (*shape[1::-1], *shape[2:]), [*blocks[1::-1], *blocks[2:]]
        launch = replace(
            old.launch,
            grid=tuple(parse_expression(b) for b in blocks),
            block=tuple(parse_expression(str(s)) for s in shape),
        )
        made = old.rewritten(
            replace(body, body=(first, *(replace(s, lead=None) for s in body.body))),
            launch=launch,
            directives=[*with_limits(old, launch, lambda _: []), *self._requires()],
        )
        return self._with_facts(made, launch, shape)

    def _above(self, rest: str) -> str:
        """Which of the ``rest`` values above the axes a block has."""
        del rest
        return f"blockIdx.{'yz'[self.top - 1]}"

    def _beside(self, rest: str) -> _Swaps:
        """What becomes of other places that a thread asks for."""
        del rest
        return {}

    def _requires(self) -> list[RequireDirective]:
        return [RequireDirective(parse_expression(self.asked))] if self.asked else []

    def _left(self) -> str:
        """How many values are left above the axes."""
        have, above = self._bound(), self.chain[self.ends[-1]]
        if have is None or not Counter(above) <= Counter(have):
            end, count = len(self.chain) - 1, str(self.items.count)
            size = self.factored.size(0, end)
            self.asked = self._whole_rows(count, size)
            if self.asked:
                between = self.factored.size(self.ends[-1], end) if self.ends[-1] < end else "1"
                return f"{count} / ({size})" + ("" if between == "1" else f" * ({between})")
            self.bounded = False  # the guard says how many there are, row or not
            return f"cdiv({self.items.count}, {self.factored.size(0, self.ends[-1])})"
        left = Counter(have) - Counter(above)
        return self.factored.words(tuple(sorted(left.elements())))

    def _whole_rows(self, count: str, size: str) -> str:
        """What the launch has to ask for where a number of items is one of whole rows.

        It is a parameter of its own, ``total`` of ``c * h * w`` items, and empty where it is none.
        """
        single = count.isidentifier() and self.items.bound == Polynomial.symbol(count)
        asked = f"{size} >= 1 && {count} % ({size}) == 0"
        names = parse_expression(asked).names
        if not single or not self.measures or not said_alike(self.old, names):
            return ""
        return asked if self._number(asked) else ""

    def _bound(self) -> Factors | None:
        """The sizes whose product is how many items there are, as their guard says."""
        guards = {g.test for g in self.old.reading.guards if not g.loops}
        factored = self.factored
        for test in guards:
            for part in (p for p in every(test) if isinstance(p, Binary) and p.op in _COMPARED):
                sides = part.left, part.right
                index, bound = sides if part.op in _INDEX_FIRST else sides[::-1]
                cut = factored.cut(index)
                found = factored.factors(bound) if cut is not None and cut.below is None else None
                if cut is not None and found is not None:
                    whole = product(cut.by, found)
                    if factored.form(whole) == self.items.bound:
                        return whole
        return self._launched()

    def _launched(self) -> Factors | None:
        """The sizes whose product is how many items there are, as the launch says."""
        if len(self.items.bound.terms) != 1:
            return None
        ((sizes, times),) = self.items.bound.terms
        if not all(size.isidentifier() for size in sizes):  # a quotient, by which no digit is cut
            return None
        found = (*sizes, *([str(times)] if times > 1 else []))
        self.factored.atoms |= {name: name for name in found if name not in self.factored.atoms}
        return (
            tuple(sorted(found))
            if times > 0 and self.factored.form(found) == self.items.bound
            else None
        )

    def _shape(self, counts: list[str], rest: str) -> tuple[tuple[int, ...], list[str]]:
        """The block, of as many threads as before, and the grid."""
        threads = self.old.block[0] or 1
        wide = self._number(counts[0]) or _WARP
        across = _WARP
        while across > _NARROWEST and across >= 2 * wide:
            across //= 2
        if threads % across:
            raise NotLegal("its block is not a number of whole rows")
        shape = (across, threads // across)
        rows = counts[1] if self.top == 2 else rest
        blocks = [f"cdiv({counts[0]}, {shape[0]})", f"cdiv({rows}, {shape[1]})"]
        return (*shape, 1)[: self.top + 1], [*blocks, rest][: self.top + 1]

    def _number(self, words: str) -> int | None:
        return None if self.old.facts is None else measured(self.old, parse_expression(words))

    def _drop_guard(self, swaps: _Swaps) -> None:
        """Take the bound of the whole index away where the bounds of its digits say the same."""
        if not self.bounded:
            return
        left = room("x", self.old.block[0] or 1, self.items.bound)
        tests = {
            g.test for g in self.old.reading.guards for c in (g.condition, ~g.condition)
            if not g.loops and all(
                isinstance(p, Compare) and p.op == ">=" and p.form == left for p in c.conjuncts()
            )
        }  # fmt: skip
        for branch in walk(self.old.function.body):
            if not isinstance(branch, If) or branch.test not in tests or branch.other is not None:
                continue
            inner = branch.then.body if isinstance(branch.then, Block) else (branch.then,)
            if len(inner) == 1 and isinstance(inner[0], Leave):
                swaps[branch] = None
            else:
                inside = edited(branch.then, swaps)
                swaps[branch] = inside.body if isinstance(inside, Block) else inside

    def _with_facts(self, made: Kernel, launch: LaunchDirective, shape: tuple[int, ...]) -> Kernel:
        facts = made.facts
        if facts is None:
            return made
        found = [self._number(str(size)) or 1 for size in launch.grid]
        grid = (*found, 1, 1)[:3]
        block = (*shape, 1, 1)[:3]
        return replace(
            made,
            facts=replace(
                facts, grid=(grid[0], grid[1], grid[2]), block=(block[0], block[1], block[2])
            ),
        )


class _Alike(Unravelling):
    """The axes of another launch, two or three, in the place of one index."""

    def __init__(self, kernel: Kernel, effects: Effects, items: Mapped, like: Kernel) -> None:
        self.like = like
        grid, block = like.launch.grid, like.launch.block
        if not 2 <= len(grid) <= 3 or len(block) < 2 or None in like.block or like.block[2] != 1:
            raise NotLegal("their launches have other axes", kernel.function.line)
        if _turned(like):
            self.order = "yx"
        axes = f"{self.order}z"[: len(grid)]
        counts = [grid[2] if axis == "z" else needed(like, axis, loads=True) for axis in axes]
        inner = tuple(str(count) for count in counts[:-1])
        self.last = form_of(counts[-1].tree, kernel.reading.symbols) if counts[-1] else None
        if self.last is None or not all(name.isidentifier() for name in inner):
            raise NotLegal("how many items there are its guards do not say", like.function.line)
        super().__init__(kernel, effects, items, inner)

    def _axes(self) -> list[int]:
        whole = [self.across[: n + 1] for n in range(len(self.across))]
        return [self.factored.at(product(one, ())) for one in whole]

    def _shape(self, counts: list[str], rest: str) -> tuple[tuple[int, ...], list[str]]:
        del counts  # the other launch has them
        same = form_of(parse_expression(rest).tree, self.old.reading.symbols) == self.last
        if not self.bounded or not same:
            raise NotLegal("their launches have other items", self.old.function.line)
        grid, block = [*map(str, self.like.launch.grid)], [w or 1 for w in self.like.block]
        block = block[: len(self.like.launch.block)]
        turned = slice(None, None, -1) if self.order == "yx" else slice(None)
        return (*block[:2][turned], *block[2:]), [*grid[:2][turned], *grid[2:]]


def _turned(kernel: Kernel) -> bool:
    """Whether neighbours along y store neighbours, and those along x do not."""
    stores = [a.index for a in kernel.reading.accesses if a.mode == "store" and a.index is not None]
    x, y = (
        {by.value for form in stores if (by := form.coefficient(f"threadIdx.{axis}")) is not None}
        for axis in "xy"
    )
    return y == {1} and x != {1}
