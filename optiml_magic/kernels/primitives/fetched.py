"""What a read of a shared array gets, as a load of global memory at the place that it came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from optiml_magic.kernels.editing import Node, text
from optiml_magic.kernels.expressions import (
    Binary,
    Braces,
    Call,
    Cast,
    Expr,
    Literal,
    Member,
    Name,
    Unary,
    builtin,
    every,
)
from optiml_magic.kernels.functions import bare, pure
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.agreed import Part, agreed, put
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.domains import parted
from optiml_magic.kernels.primitives.fills import LANES, Fill, Fills
from optiml_magic.kernels.primitives.inverted import Inverse
from optiml_magic.kernels.primitives.naming import LocalSpeller
from optiml_magic.kernels.primitives.roles import key_of
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.symbols import Compare, Condition, Some
from optiml_magic.kernels.tree import Evaluate, Variable

_Box = Sequence[tuple[Polynomial, int, int]]  # indices, each with its least and its greatest
_DEEPEST = 3  # stores of which one comes where conditions keep the others from it: ours
_There = Callable[[Access, int], str]  # the words for a load, or for a lane of one


@dataclass(frozen=True)
class Got:
    """What a read gets: ``value``, or ``other`` where one of ``tests`` does not hold."""

    value: str
    tests: tuple[Condition, ...]
    other: str


@dataclass(frozen=True, eq=False)
class _Piece:
    """What a fill brings of what is read: the elements of ``box``, where all ``tested`` holds.

    It is made where all of ``needed`` does, of which ``open`` is not certain.
    """

    fill: Fill
    inverse: Inverse
    value: str
    needed: tuple[Condition, ...]
    open: tuple[Condition, ...]
    tested: tuple[Condition, ...]
    box: _Box
    other: str


class Fetched(Fills):
    """What is stored to a shared array, as those who read it find it."""

    def got(self, read: Access, path: Sequence[Condition], speller: LocalSpeller) -> Got:
        """What a read finds; ``path`` is all that holds where its value is used."""
        kernel, line = self.kernel, read.line
        size, all_of_it = read.element.size or 0, self.array.element.size or 0
        if read.call is not None or read.verbatim or not 0 < size <= all_of_it:
            raise NotLegal("what is read is not an element", line)
        linear = self.linear(read)
        inner = [a for a in kernel.reading.loops(read) if a.name not in self.around]
        found = parted(kernel, read.guard, inner)
        asked = found[0].numbers(linear) if found is not None else None
        if asked is None:
            asked = np.arange(self._length(line))
        rows = self.whole(read) and found is not None and self.within(read.digits, found[0])
        every = [f for f in self.every if np.isin(f.elements, asked).any()]
        if not every or not np.isin(asked, np.concatenate([f.elements for f in every])).all():
            raise NotLegal("an element that is read may not have been brought", line)
        pieces = [self._piece(fill, read, rows, asked, path, speller) for fill in every]
        if any(p.open for p in pieces) and not self._covered(np.unique(asked), pieces, path):
            raise NotLegal("whether an element was brought is not certain", line)
        values, others = {p.value for p in pieces}, {p.other for p in pieces if p.other}
        value = values.pop() if len(values) == 1 else self._joint(pieces, path, speller)
        if value is None or len(others) > 1:
            raise NotLegal("an element is brought in several ways", line)
        tests = dict.fromkeys(t for p in pieces for t in p.tested)
        for piece in pieces:
            for test in tests:
                if test not in piece.tested and not self._holds(piece, path, test):
                    raise NotLegal("whether an element is there is asked in several ways", line)
        left = tuple(t for t in tests if not self._proved(t, path))
        return Got(value, left, others.pop() if others else "")

    def _holds(
        self, piece: _Piece, path: Sequence[Condition], condition: Condition,
        held: Sequence[Condition] = (),
    ) -> bool:  # fmt: skip
        """Whether a condition certainly holds where what a piece brought is asked for."""
        return self._proved(condition, (*path, *piece.open, *piece.tested, *held), piece.box)

    def _covered(
        self, elements: Any, pieces: Sequence[_Piece], path: Sequence[Condition], deep: int = 0
    ) -> bool:
        """Whether some piece brings each element, where a condition keeps others from it."""
        for piece in pieces if deep < _DEEPEST else ():
            own, others = piece.fill.elements, [p for p in pieces if p is not piece]
            mine = np.isin(elements, own)
            kept = [
                (condition, np.intersect1d(elements[mine], own[~piece.fill.there.certain(written)]))
                for condition, written in zip(piece.needed, piece.fill.needed, strict=True)
                if mine.any() and not self._proved(condition, path, piece.box)
            ]
            if all(self._covered(left, others, (*path, ~test), deep + 1) for test, left in kept):
                elements = elements[~mine]
        return not elements.size

    def _joint(
        self, pieces: Sequence[_Piece], path: Sequence[Condition], speller: LocalSpeller
    ) -> str | None:
        """What all pieces bring, in the words of one of them with the borders of the others."""
        shapes = [self._shape(piece) for piece in pieces]
        if len({words for words, _ in shapes}) > 1:
            return None
        symbols = self.kernel.reading.symbols
        loads = [
            [Part(form, partial(self._holds, piece, path))
             for piece, form in zip(pieces, forms, strict=True)]
            for forms in zip(*(forms for _, forms in shapes), strict=True)
        ]  # fmt: skip
        for at, piece in enumerate(pieces):
            found = [agreed(symbols, parts, parts[at]) for parts in loads]
            if any(one is None for one in found):
                continue
            instead = {n: (1, form) for one in found if one for n, form in one.items()}
            inverse = replace(piece.inverse, known={**piece.inverse.known, **instead})
            own = replace(piece, inverse=inverse)
            if all(
                one is not None and form == put(parts[at].form, one)
                for parts, one, form in zip(loads, found, self._shape(own)[1], strict=True)
            ):
                return self._shown(piece.fill.value, partial(self._there, inverse, speller))
        return None

    def _shape(self, piece: _Piece) -> tuple[str, list[Polynomial]]:
        """What a piece computes of what it loads, and where it loads that."""
        forms = list[Polynomial]()

        def place(load: Access, lane: int) -> str:
            size = self.kernel.reading.arrays[load.array].element.size
            form = load.offset.divided(size) if load.offset is not None and size else None
            if form is None:
                raise NotLegal("what is loaded is not followed", load.line)
            forms.append(piece.inverse.form(form) + Polynomial.constant(lane))
            return f"{load.array}[]"

        return self._shown(piece.fill.value, place), forms

    def _piece(
        self, fill: Fill, read: Access, rows: bool, asked: Any,
        path: Sequence[Condition], speller: LocalSpeller,
    ) -> _Piece:  # fmt: skip
        """What one fill brought of what is read."""
        kernel = self.kernel
        same = rows and len(fill.digits) == len(read.digits)
        writer = fill.digits if same else (fill.linear,)
        reader = read.digits if same else (self.linear(read),)
        mine = fill.there.where(np.isin(fill.elements, asked))
        box = list[tuple[Polynomial, int, int]]()
        for one, asked_for in zip(writer, reader, strict=True):
            numbers = mine.numbers(one)
            if numbers is not None and numbers.size:
                box.append((asked_for, int(numbers.min()), int(numbers.max())))
        refused: NotLegal | None = None
        for digits in (False, True):
            try:
                inverse = Inverse.of(kernel.reading.symbols, path, fill.own, writer, reader,
                                     mine, digits=digits)  # fmt: skip
                needed = [inverse.condition(c) for c in fill.needed]
                tested = tuple(inverse.condition(c) for c in fill.tested)
                value = self._shown(fill.value, partial(self._there, inverse, speller))
                break
            except NotLegal as reason:
                refused = refused or NotLegal(reason.reason, read.line)
        else:
            assert refused is not None
            raise refused
        open_ = tuple(c for c in needed if not self._proved(c, path, box))
        if open_ and tested:
            raise NotLegal("whether an element was brought is not certain", read.line)
        other = self._constant(fill.other) if fill.other is not None and tested else ""
        return _Piece(fill, inverse, value, tuple(needed), open_, tested, box, other)

    def _length(self, line: int) -> int:
        length = 1
        for extent in self.array.extents:
            if extent is None or extent.value is None:
                raise NotLegal("which elements are read is not counted", line)
            length *= extent.value
        return length

    # -- in words

    def _shown(self, value: Expr, there: _There) -> str:
        kind, own = self.kernel.reading.types.get(value), self.array.element
        swaps: dict[Node, Node] = {}
        self._swap(value, there, swaps)
        words = self.kernel.spelled(value, swaps)
        vector = isinstance(value, Member) and value.span is None
        return words if kind == own or vector else f"({own.name})({words})"

    def _swap(self, expr: Expr, there: _There, swaps: dict[Node, Node]) -> None:
        plain = self.held(expr)
        lane = None
        if isinstance(plain, Member) and not plain.arrow and plain.field in LANES:
            load = self.loads.get(self.held(plain.base))
            if load is not None and load.array and load.element.lanes > 1:
                own = self.kernel.reading.arrays[load.array].element
                lane = LANES.index(plain.field) if own != load.element else None
                if lane is not None:
                    swaps[expr] = text(there(load, lane))
                    return
        if plain in self.loads:
            load = self.loads[plain]
            words = there(load, 0)
            if (
                load.element.lanes > 1
                and load.element != self.kernel.reading.arrays[load.array].element
            ):
                words = f"*reinterpret_cast<const {load.element.name}*>(&{words})"
            swaps[expr] = text(words)
            return
        match plain:
            case Name(variable=Variable() as local):
                given = local in self.kernel.function.parameters
                if not given or local.name in self.effects.moved or local.type.depth:
                    raise NotLegal(f"`{local.name}` may be another one where it is read")
            case Call(function=name) if not pure(bare(name)) or plain.callee is not None:
                raise NotLegal(f"`{name}` computes what is stored")
            case Call() | Literal() | Name() | Member() | Cast() | Unary() | Binary() | Braces():
                pass
            case _:
                raise NotLegal("what is stored is not only what is loaded")
        if builtin(plain) or (isinstance(plain, Unary) and plain.op in "*&"):
            raise NotLegal("what is stored is not only what is loaded")
        for part in plain.parts:
            self._swap(part, there, swaps)
        if plain is not expr:
            shown = self.kernel.show(Evaluate(None, 0, plain), dict(swaps))
            swaps[expr] = text(f"({shown.strip().removesuffix(';')})")

    def _there(self, inverse: Inverse, speller: LocalSpeller, load: Access, lane: int) -> str:
        """The element of global memory that a load brought, where it is read now."""
        own = self.kernel.reading.arrays[load.array].element
        size = own.size
        form = load.offset.divided(size) if load.offset is not None and size else None
        known = self.kernel.reading.arrays[load.array]
        given = load.array.partition(".")[0] in {p.name for p in self.kernel.function.parameters}
        moved = load.array.partition(".")[0] in self.effects.moved
        if form is None or load.verbatim or moved or not (given or known.extents):
            raise NotLegal("what is loaded is not followed", load.line)
        if load.element != own and load.element.size != (size or 0) * load.element.lanes:
            raise NotLegal("what is loaded is not an element", load.line)
        if any(self.effects.same(load.array, other) for other in self.kernel.reading.written):
            raise NotLegal(f"`{load.array}` is written", load.line)
        speller.wide = self.kernel.wide
        index = form + Polynomial.constant(lane)
        return f"{load.array}[{self._index(load, index, lane, inverse, speller)}]"

    def _index(
        self, load: Access, form: Polynomial, lane: int, inverse: Inverse, speller: LocalSpeller
    ) -> str:
        """An index by rows and columns, where what was loaded has these."""
        cut = self.kernel.reading.subscript(load)
        whole = cut is not None and cut.linear + Polynomial.constant(lane) == form
        digits, extents = [form], list[Polynomial]()
        if cut is not None and whole:
            digits = [cut.digits[0]]
            for digit, extent in zip(cut.digits[1:], cut.extents, strict=True):
                if extent.value is None:
                    digits.append(digit)
                    extents.append(extent)
                else:
                    digits[-1] = digits[-1] * extent + digit
            digits[-1] += Polynomial.constant(lane)
        forms = [speller.local(inverse.form(digit)) for digit in digits]
        words = speller.form(forms[0])
        for digit, extent in zip(forms[1:], extents, strict=True):
            row = f"({words})" if " + " in words or " - " in words else words
            row = f"(size_t){row}" if speller.wide else row
            rest = speller.form(digit)
            words = f"{row} * {speller.factor(inverse.form(extent))}"
            words += f" - {rest[1:]}" if rest.startswith("-") else f" + {rest}"
        return words

    def _constant(self, expr: Expr) -> str:
        for part in every(expr):
            given = isinstance(part, Name) and part.variable is not None
            if given or builtin(part) or part in self.loads:
                raise NotLegal("what stands for an element that is not there is not a constant")
            if isinstance(part, Call) and not pure(bare(part.function)):
                raise NotLegal("what stands for an element that is not there is not a constant")
        shown = self.kernel.spelled(expr)
        kind = self.array.element
        if key_of(expr) == "0" and kind.name == "float":
            return "0.0f"
        same = self.kernel.reading.types.get(expr) == kind
        return shown if same else f"({kind.name})({shown})"

    def _proved(self, condition: Condition, path: Sequence[Condition], box: _Box = ()) -> bool:
        """Whether a condition certainly holds where all of ``path`` does, for what a box has."""
        parts = tuple(dict.fromkeys(p for c in path for p in c.conjuncts()))
        if condition in parts:
            return True
        if isinstance(condition, Some):
            return any(self._proved(part, path, box) for part in condition.parts)
        if not isinstance(condition, Compare):
            own = [*condition.conjuncts()]
            return own != [condition] and all(self._proved(p, path, box) for p in own)
        ranges = self._ranges.get(parts)
        if ranges is None:
            ranges = self._ranges[parts] = Ranges(parts, self.kernel.reading.symbols)
        one, sides = Polynomial.constant(1), (condition.form, -condition.form)
        if condition.op == ">=":
            return _certain(ranges, condition.form, box)
        if condition.op == "==":
            return all(_certain(ranges, side, box) for side in sides)
        return any(_certain(ranges, side - one, box) for side in sides)


def _certain(ranges: Ranges, form: Polynomial, box: _Box) -> bool:
    """Whether a form is not negative; of the indices of a box, where they are least for it."""
    least = form
    for index, low, high in box:
        moving = [m for m, _ in index.terms if m]
        by = dict(least.terms).get(moving[0], 0) if moving else 0
        first = dict(index.terms)[moving[0]] if moving else 1
        if by and by % first == 0:
            times = by // first
            bound = Polynomial.constant(times * (low if times > 0 else high))
            least = least - index * Polynomial.constant(times) + bound
    return any(ranges.nonnegative(one) for one in dict.fromkeys((least, form)))
