"""P4, unravelled: an index that each thread takes apart into digits, as an axis for each digit.

``x = i % w, y = i / w % h, c = i / (w * h)`` of one long axis become threads along x and y and
blocks along z: the launch then tells which elements are neighbours along a row and a column.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Binary, Expr, Literal, Name, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cutting import uses
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.grids import form_of, needed, room, said_alike
from optiml_magic.kernels.primitives.limits import with_limits
from optiml_magic.kernels.primitives.mapped import Mapped, mapped
from optiml_magic.kernels.primitives.places import axis_of, bare, tops
from optiml_magic.kernels.primitives.sizes import measured
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import Block, If, Leave, Statement, walk
from optiml_magic.source.directives import LaunchDirective
from optiml_magic.source.expressions import parse_expression

_WARP, _NARROWEST = 32, 8
_INDEX_FIRST = frozenset({"<", ">="})  # ``i < n`` and, to leave, ``i >= n``
_COMPARED = _INDEX_FIRST | {">", "<="}
_Swaps = dict[Node, Node | tuple[Statement, ...] | None]
Factors = tuple[str, ...]  # sizes that are multiplied, in the order of their names


@dataclass(frozen=True)
class Cut:
    """``i / by``, or ``i / by % below``."""

    by: Factors
    below: Factors | None = None


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
        return _Unravelling(kernel, effects, items).kernel()
    return _Alike(kernel, effects, items, like).kernel()


class _Unravelling:
    order = "xy"  # along which the digits lie, the lowest one first

    def __init__(
        self, kernel: Kernel, effects: Effects, items: Mapped, across: Factors = ()
    ) -> None:
        self.old, self.effects, self.items = kernel, effects, items
        self.whole = set(uses(kernel, "x").whole)
        self.bounded = True  # whether the digits say how many items there are
        self.atoms: dict[str, str] = {}  # how a size is spelled in the launch
        self.cuts: dict[Expr, Cut] = {}
        for top in tops(kernel.function.body):
            self._find(top)
        weights = {cut.by for cut in self.cuts.values()}
        weights |= {_product(c.by, c.below) for c in self.cuts.values() if c.below is not None}
        weights |= {tuple(sorted(across[: n + 1])) for n in range(len(across))}
        self.atoms |= {name: name for name in across}
        self.across = across
        self.chain: list[Factors] = sorted(weights | {()}, key=len)
        if len(self.chain) < 2 or not all(
            _divides(a, b) for a, b in zip(self.chain, self.chain[1:], strict=False)
        ):
            raise NotLegal("its threads do not take their index apart in one way")
        self.ends = self._axes()  # where each axis ends in the chain, and what is left begins
        self.top = len(self.ends)
        self.names = [kernel.fresh(name) for name in ("column", "line", "rest")]
        self.names = [*self.names[: self.top], self.names[2]]

    # -- what is there

    def _find(self, expr: Expr) -> None:
        cut = self._cut(expr)
        if cut is not None and not isinstance(bare(expr), Name):
            self.cuts[expr] = cut
            return
        for part in expr.parts:
            self._find(part)

    def _cut(self, expr: Expr) -> Cut | None:
        """What an expression is of the index; None for anything else."""
        plain = bare(expr)
        if expr in self.whole or plain in self.whole or axis_of(self.old, plain) == "x":
            return Cut(())
        if isinstance(plain, Name):
            value = self._value_of(plain)
            return self._cut(value) if value is not None else None
        if not isinstance(plain, Binary) or plain.op not in ("/", "%"):
            return None
        left, by = self._cut(plain.left), self._factors(plain.right)
        if left is None or by is None or not (left.below is None or _divides(by, left.below)):
            return None
        if plain.op == "%":
            return Cut(left.by, by)
        rest = Counter(left.below or ()) - Counter(by)
        return Cut(_product(left.by, by), left.below and tuple(sorted(rest.elements())))

    def _value_of(self, name: Name) -> Expr | None:
        """What a local holds as long as it lasts."""
        variable = name.variable
        if variable is None or variable not in self.effects.lasting:
            return None
        return variable.value

    def _factors(self, expr: Expr) -> Factors | None:
        plain = bare(expr)
        if isinstance(plain, Binary) and plain.op == "*":
            left, right = self._factors(plain.left), self._factors(plain.right)
            return _product(left, right) if left is not None and right is not None else None
        if isinstance(plain, Literal) and isinstance(plain.value, int) and plain.value > 0:
            self.atoms[str(plain.value)] = str(plain.value)
            return (str(plain.value),)
        if not isinstance(plain, Name):
            return None
        inner = bare(self._value_of(plain) or plain)
        if isinstance(inner, Binary) and inner.op == "*":
            return self._factors(inner)
        spelled = self._spelled(plain)
        if spelled is None:
            return None
        self.atoms[plain.name] = spelled
        return (plain.name,)

    def _spelled(self, expr: Expr) -> str | None:
        """A size in the words of the launch, over the parameters alone."""
        plain = bare(expr)
        if isinstance(plain, Literal) and isinstance(plain.value, int):
            return str(plain.value)
        if isinstance(plain, Binary) and plain.op in "+-*/":
            left, right = self._spelled(plain.left), self._spelled(plain.right)
            return f"{_whole(left)} {plain.op} {_whole(right)}" if left and right else None
        if not isinstance(plain, Name) or plain.name in self.effects.moved:
            return None
        value = self._value_of(plain)
        if value is not None:
            return self._spelled(value)
        parameters = {p.name for p in self.old.function.parameters if not p.type.depth}
        alike = plain.name in parameters and said_alike(self.old, [plain.name])
        return plain.name if alike else None

    # -- what becomes of it

    def _axes(self) -> list[int]:
        """Digits that are too few for an axis share it with those above them."""
        ends, last = [0], len(self.chain) - 1
        for least in (_WARP, _NARROWEST):
            low = ends[-1]
            counts = ((at, self._number(self._size(low, at))) for at in range(low + 1, last + 1))
            found = [at for at, count in counts if count is None or count >= least]
            if low < last:
                ends.append(found[0] if found else last)
        return ends[1:]

    def kernel(self) -> Kernel:
        old, names = self.old, self.names
        counts = [self._size(*ends) for ends in pairwise([0, *self.ends])]
        rest = self._left()
        shape, blocks = self._shape(counts, rest)
        swaps: _Swaps = {
            expr: text(_whole(self._value(self._at(cut.by), self._end(cut))))
            for expr, cut in self.cuts.items()
        }
        self._drop_guard(swaps)
        words = self.items.words
        last = "yz"[self.top - 1]
        places = [
            f"const {words} {name} = ({words})blockIdx.{axis} * {width} + threadIdx.{axis};"
            for name, axis, width in zip(names, self.order, shape, strict=False)
        ]
        bounds = [f"{name} >= {count}" for name, count in zip(names, counts, strict=False)]
        if self.top == 1 and self.bounded:
            bounds.append(f"{names[1]} >= {rest}")
        elif self.top == 2:
            places.append(f"const {words} {names[2]} = blockIdx.{last};")
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
            directives=with_limits(old, launch, lambda _: []),
        )
        return self._with_facts(made, launch, shape)

    def _size(self, low: int, high: int) -> str:
        """How many values the digits from ``low`` to below ``high`` have together."""
        left = Counter(self.chain[high]) - Counter(self.chain[low])
        return _whole(" * ".join(_whole(self.atoms[name]) for name in sorted(left.elements())))

    def _left(self) -> str:
        """How many values are left above the axes."""
        have, above = self._bound(), self.chain[self.ends[-1]]
        if have is None or not Counter(above) <= Counter(have):
            self.bounded = False  # the guard says how many there are, row or not
            return f"cdiv({self.items.count}, {self._size(0, self.ends[-1])})"
        left = Counter(have) - Counter(above)
        return " * ".join(_whole(self.atoms[name]) for name in sorted(left.elements())) or "1"

    def _bound(self) -> Factors | None:
        """The sizes whose product is how many items there are, as their guard says."""
        guards = {g.test for g in self.old.reading.guards if not g.loops}
        for test in guards:
            for part in (p for p in every(test) if isinstance(p, Binary) and p.op in _COMPARED):
                sides = part.left, part.right
                index, bound = sides if part.op in _INDEX_FIRST else sides[::-1]
                cut = self._cut(index)
                found = self._factors(bound) if cut is not None and cut.below is None else None
                if cut is not None and found is not None:
                    whole = _product(cut.by, found)
                    if self._form(whole) == self.items.bound:
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
        self.atoms |= {name: name for name in found if name not in self.atoms}
        return tuple(sorted(found)) if times > 0 and self._form(found) == self.items.bound else None

    def _form(self, factors: Factors) -> Polynomial | None:
        words = " * ".join(_whole(self.atoms[name]) for name in factors) or "1"
        return form_of(parse_expression(words).tree, self.old.reading.symbols)

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

    def _at(self, weight: Factors) -> int:
        return self.chain.index(weight)

    def _end(self, cut: Cut) -> int | None:
        return None if cut.below is None else self._at(_product(cut.by, cut.below))

    def _value(self, low: int, high: int | None) -> str:
        """The digits from ``low`` to below ``high``, or to the end, as one number."""
        found, last = "", len(self.chain)
        ends = [0, *self.ends, last]
        for name, start, end in reversed([*zip(self.names, ends, ends[1:], strict=False)]):
            first, beyond = max(low, start), min(last if high is None else high, end)
            if first >= beyond and not (end == last and high is None):
                continue
            part = f"{name} / {self._size(start, first)}" if first > start else name
            if beyond < end:
                part = f"{_whole(part)} % {self._size(first, beyond)}"
            found = f"{_whole(found)} * {self._size(first, beyond)} + {part}" if found else part
        return found

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


class _Alike(_Unravelling):
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
        return [self.chain.index(_product(one, ())) for one in whole]

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


def _product(one: Factors, other: Factors | None) -> Factors:
    return tuple(sorted((*one, *(other or ()))))


def _divides(one: Factors, other: Factors) -> bool:
    return one != other and Counter(one) <= Counter(other)


def _whole(words: str) -> str:
    """The words as one operand."""
    depth = [1 if c == "(" else -1 if c == ")" else 0 for c in words]
    wrapped = words.startswith("(") and all(sum(depth[:at]) > 0 for at in range(1, len(words)))
    return words if words.isidentifier() or words.isdigit() or wrapped else f"({words})"
