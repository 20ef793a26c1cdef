"""What a block brings into a shared array before a barrier, and what a read behind it gets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optiml_magic.kernels.editing import Node, text
from optiml_magic.kernels.expressions import (
    Assign,
    Call,
    Cast,
    Choice,
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
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.domains import Domain, parted
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.inverted import Inverse
from optiml_magic.kernels.primitives.naming import LocalSpeller
from optiml_magic.kernels.primitives.roles import key_of
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Array
from optiml_magic.kernels.symbols import Compare, Condition, Some
from optiml_magic.kernels.tree import Evaluate, Variable
from optiml_magic.kernels.types import CType, named

_LANES = "xyzw"
_Box = Sequence[tuple[Polynomial, int, int]]  # indices, each with its least and its greatest
_WIDE = 8  # bytes of an index that may pass 32 bits


@dataclass(frozen=True, eq=False)
class Fill:
    """A store of what is loaded from global memory, by some threads and rounds, ``there``.

    It is made where all of ``needed`` holds; where one of ``tested`` does not, the element is
    ``other``, a constant. ``linear`` is its index, ``digits`` the same as it is written; ``own``
    are counters of the loops that it is in, ``all`` all that holds where it is made.
    """

    store: Access
    value: Expr
    there: Domain
    digits: tuple[Polynomial, ...]
    linear: Polynomial
    own: frozenset[str]
    all: frozenset[Condition]
    needed: tuple[Condition, ...]
    tested: tuple[Condition, ...] = ()
    other: Expr | None = None

    @property
    def elements(self) -> Any:
        found = self.there.numbers(self.linear)
        if found is None:
            raise NotLegal("which elements are brought is not counted", self.store.line)
        return found


@dataclass(frozen=True)
class Got:
    """What a read gets: ``value``, or ``other`` where one of ``tests`` does not hold."""

    value: str
    tests: tuple[Condition, ...]
    other: str


class Fills:
    """All that is stored to a shared array; ``around`` are the loops that begin it anew."""

    def __init__(
        self, kernel: Kernel, effects: Effects, array: Array, around: Sequence[str]
    ) -> None:
        self.kernel, self.effects, self.array = kernel, effects, array
        self.around = set(around)
        self._ranges: dict[tuple[Condition, ...], Ranges] = {}
        self.loads = {a.node: a for a in kernel.reading.accesses if a.mode == "load"}
        self.loads |= {
            taken: a for a in effects.hidden()
            if a.mode == "load" and (taken := effects.taken(a)) is not None
        }  # fmt: skip
        stores = [a for a in kernel.reading.of(array.name) if a.mode != "load"]
        found = [fill for store in stores for fill in self._fills(store)]
        brought = [f for f in found if any(self._loaded(f.value))]
        constants = [(at, f) for at, f in enumerate(found) if f not in brought]
        self.every = [self._with_other(f, found.index(f), constants) for f in brought]
        if not self.every:
            raise NotLegal(f"`{array.name}` is not brought from memory")

    # -- what is stored

    def _fills(self, store: Access) -> Iterator[Fill]:
        kernel, line = self.kernel, store.line
        node = store.node
        if not isinstance(node, Assign) or node.op != "=" or store.call is not None:
            raise NotLegal("an element is not only brought", line)
        inner = [a for a in kernel.reading.loops(store) if a.name not in self.around]
        if any(not axis.exact or axis.scaled for axis in inner) or store.verbatim:
            raise NotLegal("the loop that brings elements is not followed", line)
        found = parted(kernel, store.guard, inner)
        if found is None:
            raise NotLegal("which threads bring elements is not counted", line)
        there, rest = found
        for lane, value in self._lanes(store, node.value):
            linear = self.linear(store, lane)
            every = frozenset(p for c in store.guard for p in c.conjuncts())
            digits = store.digits if lane is None and self._whole(store) else (
                self._digits(linear, there)
            )  # fmt: skip
            own = frozenset(axis.name for axis in inner)
            yield self._chosen(Fill(store, value, there, digits, linear, own, every, tuple(rest)))

    def _lanes(self, store: Access, value: Expr) -> Iterator[tuple[int | None, Expr]]:
        """A vector that is stored over several elements, one by one."""
        if store.element == self.array.element:
            yield None, value
            return
        held = self._held(value)
        load, size = self.loads.get(held), self.array.element.size
        lanes = store.element.lanes
        if load is None or not size or lanes < 2 or store.element.size != lanes * size:
            raise NotLegal("what is stored is not an element", store.line)
        yield from ((lane, Member(None, held, _LANES[lane])) for lane in range(lanes))

    def linear(self, access: Access, lane: int | None = None) -> Polynomial:
        """The element of the array, counted from its first; also where a part of it is taken."""
        size, found = self.array.element.size, access.offset
        if found is not None and size:
            within = Polynomial.constant(dict(found.terms).get((), 0) % size)
            found = (found - within).divided(size)
        if found is None or not self.kernel.reading.symbols.known(found):
            raise NotLegal("an index of shared memory is not followed", access.line)
        return found + Polynomial.constant(lane or 0)

    def _digits(self, linear: Polynomial, there: Domain) -> tuple[Polynomial, ...]:
        """An index as rows and columns, as far as each is counted to be within its extent."""
        digits, rest = list[Polynomial](), linear
        for extent in self.array.extents[:0:-1]:
            size = extent.value if extent is not None else None
            if not size:
                return (linear,)
            row = Polynomial.of({m: c // size for m, c in rest.terms if c % size == 0})
            within = rest - row * Polynomial.constant(size)
            numbers = there.numbers(within)
            if numbers is None or not numbers.size or numbers.min() < 0 or numbers.max() >= size:
                return (linear,)
            digits.insert(0, within)
            rest = row
        return (rest, *digits)

    def _whole(self, access: Access) -> bool:
        return len(access.digits) == len(self.array.extents) > 1

    def _chosen(self, fill: Fill) -> Fill:
        """What is stored by ``c ? a[i] : 0`` is brought where the test holds."""
        value = self._held(fill.value)
        if not isinstance(value, Choice):
            return replace(fill, value=value)
        arms = [any(self._loaded(arm)) for arm in (value.then, value.other)]
        if arms[0] == arms[1]:
            raise NotLegal("what is stored depends on a test in another way", fill.store.line)
        arm, other = (value.then, value.other) if arms[0] else (value.other, value.then)
        load = next(self._loaded(arm))
        more = tuple(part for c in load.guard for part in c.conjuncts() if part not in fill.all)
        if isinstance(self._held(arm), Choice) or not more:
            raise NotLegal("what is stored depends on several tests", fill.store.line)
        counted = [fill.there.holds(part) for part in more]
        if any(one is not None for one in counted):
            raise NotLegal("what is stored depends on the place of a thread", fill.store.line)
        return replace(fill, value=arm, tested=more, other=other)

    def _with_other(self, fill: Fill, place: int, constants: list[tuple[int, Fill]]) -> Fill:
        """With the constant that another store leaves where this one does not come."""
        mine = fill.elements
        for at, constant in constants:
            theirs = constant.elements
            shared = np.isin(mine, theirs)
            if not shared.any():
                continue
            if not shared.all() or fill.tested:
                raise NotLegal("an element is stored to in several ways", constant.store.line)
            if constant.all <= fill.all and at < place:
                left = [c for c in fill.needed if c not in constant.all]
                fill = replace(fill, needed=tuple(c for c in fill.needed if c in constant.all),
                               tested=tuple(left), other=constant.value)  # fmt: skip
                continue
            common = constant.all & fill.all
            extra = fill.all - common
            (opposite,) = (
                constant.all - common or (None,) if len(constant.all - common) < 2 else (None,)
            )
            if opposite is None or {*(~opposite).conjuncts()} != extra:
                raise NotLegal("an element is stored to in several ways", constant.store.line)
            fill = replace(fill, needed=tuple(c for c in fill.needed if c in common),
                           tested=tuple(c for c in fill.needed if c not in common),
                           other=constant.value)  # fmt: skip
        return fill

    def _held(self, expr: Expr) -> Expr:
        """What a local holds that never changes, in its place."""
        types = self.kernel.reading.types
        while True:
            match expr:
                case Name(variable=Variable(value=value) as local) if (
                    local in self.effects.lasting and value is not None
                    and types.get(value) == self._kind(expr)
                ):  # fmt: skip
                    expr = value
                case Cast(operand=operand) if types.get(operand) == types.get(expr):
                    expr = operand
                case _:
                    return expr

    def _kind(self, expr: Name) -> CType | None:
        """The type of a local, also where nothing but a part of it is asked for."""
        assert expr.variable is not None
        declared = expr.variable.type
        known = self.kernel.reading.types.get(expr)
        if known is None and declared.base != "auto" and not declared.depth:
            return named(declared.base, self.kernel.unit.aliases)
        return known

    def _loaded(self, expr: Expr) -> Iterator[Access]:
        """The loads from global memory that make a value."""
        expr = self._held(expr)
        if expr in self.loads:
            load = self.loads[expr]
            if load.space != "global":
                raise NotLegal("what is stored does not come from global memory", load.line)
            yield load
            return
        for part in expr.parts:
            yield from self._loaded(part)

    # -- what a read gets

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
        every = [f for f in self.every if np.isin(f.elements, asked).any()]
        if not every or not np.isin(asked, np.concatenate([f.elements for f in every])).all():
            raise NotLegal("an element that is read may not have been brought", line)
        pieces = [self._piece(fill, read, linear, asked, path, speller) for fill in every]
        values = {value for value, _, _, _ in pieces}
        others = {o for _, _, _, o in pieces if o}
        if len(values) > 1 or len(others) > 1:
            raise NotLegal("an element is brought in several ways", line)
        tests = dict.fromkeys(t for _, tested, _, _ in pieces for t in tested)
        for _, tested, box, _ in pieces:
            for test in tests:
                if test not in tested and not self._proved(test, (*path, *tested), box):
                    raise NotLegal("whether an element is there is asked in several ways", line)
        left = tuple(t for t in tests if not self._proved(t, path))
        return Got(values.pop(), left, others.pop() if others else "")

    def _piece(
        self, fill: Fill, read: Access, linear: Polynomial, asked: Any,
        path: Sequence[Condition], speller: LocalSpeller,
    ) -> tuple[str, tuple[Condition, ...], _Box, str]:  # fmt: skip
        """The value, what is tested, which elements of one fill are read, and its other."""
        kernel = self.kernel
        same = len(fill.digits) == len(read.digits) > 1
        writer = fill.digits if same else (fill.linear,)
        reader = read.digits if same else (linear,)
        mine = fill.there.where(np.isin(fill.elements, asked))
        box = list[tuple[Polynomial, int, int]]()
        for one, other in zip(writer, reader, strict=True):
            numbers = mine.numbers(one)
            if numbers is not None and numbers.size:
                box.append((other, int(numbers.min()), int(numbers.max())))
        refused: NotLegal | None = None
        for digits in (False, True):
            try:
                inverse = Inverse.of(kernel.reading.symbols, path, fill.own, writer, reader,
                                     mine, digits=digits)  # fmt: skip
                needed = [inverse.condition(c) for c in fill.needed]
                tested = tuple(inverse.condition(c) for c in fill.tested)
                value = self._shown(fill.value, inverse, speller)
                break
            except NotLegal as reason:
                refused = refused or NotLegal(reason.reason, read.line)
        else:
            assert refused is not None
            raise refused
        for condition in needed:
            if not self._proved(condition, path, box):
                raise NotLegal("whether an element was brought is not certain", read.line)
        other = self._constant(fill.other) if fill.other is not None and tested else ""
        return value, tested, box, other

    def _length(self, line: int) -> int:
        length = 1
        for extent in self.array.extents:
            if extent is None or extent.value is None:
                raise NotLegal("which elements are read is not counted", line)
            length *= extent.value
        return length

    # -- in words

    def _shown(self, value: Expr, inverse: Inverse, speller: LocalSpeller) -> str:
        kind, own = self.kernel.reading.types.get(value), self.array.element
        swaps: dict[Node, Node] = {}
        self._swap(value, inverse, speller, swaps)
        words = self.kernel.show(Evaluate(None, 0, value), swaps).strip().removesuffix(";")
        vector = isinstance(value, Member) and value.span is None
        return words if kind == own or vector else f"({own.name})({words})"

    def _swap(
        self, expr: Expr, inverse: Inverse, speller: LocalSpeller, swaps: dict[Node, Node]
    ) -> None:
        plain = self._held(expr)
        lane = None
        if isinstance(plain, Member) and not plain.arrow and plain.field in _LANES:
            load = self.loads.get(self._held(plain.base))
            if load is not None and load.array and load.element.lanes > 1:
                own = self.kernel.reading.arrays[load.array].element
                lane = _LANES.index(plain.field) if own != load.element else None
                if lane is not None:
                    swaps[expr] = text(self._there(load, lane, inverse, speller))
                    return
        if plain in self.loads:
            swaps[expr] = text(self._there(self.loads[plain], 0, inverse, speller))
            return
        match plain:
            case Name(variable=Variable() as local):
                given = local in self.kernel.function.parameters
                if not given or local.name in self.effects.moved or local.type.depth:
                    raise NotLegal(f"`{local.name}` may be another one where it is read")
            case Call(function=name) if not pure(bare(name)) or plain.callee is not None:
                raise NotLegal(f"`{name}` computes what is stored")
            case Call() | Literal() | Name() | Member() | Cast() | Unary():
                pass
            case _ if builtin(plain) or type(plain).__name__ not in ("Binary", "Braces"):
                raise NotLegal("what is stored is not only what is loaded")
        if builtin(plain) or (isinstance(plain, Unary) and plain.op in "*&"):
            raise NotLegal("what is stored is not only what is loaded")
        for part in plain.parts:
            self._swap(part, inverse, speller, swaps)
        if plain is not expr:
            shown = self.kernel.show(Evaluate(None, 0, plain), dict(swaps))
            swaps[expr] = text(f"({shown.strip().removesuffix(';')})")

    def _there(self, load: Access, lane: int, inverse: Inverse, speller: LocalSpeller) -> str:
        """The element of global memory that a load brought, where it is read now."""
        own = self.kernel.reading.arrays[load.array].element
        size = own.size
        form = load.offset.divided(size) if load.offset is not None and size else None
        if form is None or load.verbatim or load.array in self.effects.moved:
            raise NotLegal("what is loaded is not followed", load.line)
        if load.element != own and load.element.size != (size or 0) * load.element.lanes:
            raise NotLegal("what is loaded is not an element", load.line)
        if any(self.effects.same(load.array, other) for other in self.kernel.reading.written):
            raise NotLegal(f"`{load.array}` is written", load.line)
        kinds = self.kernel.reading.types.values()
        speller.wide = any(kind.integral and kind.size == _WIDE for kind in kinds)
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
            more = speller.form(digit)
            words = f"{row} * {speller.factor(inverse.form(extent))}"
            words += f" - {more[1:]}" if more.startswith("-") else f" + {more}"
        return words

    def _constant(self, expr: Expr) -> str:
        for part in every(expr):
            given = isinstance(part, Name) and part.variable is not None
            if given or builtin(part) or part in self.loads:
                raise NotLegal("what stands for an element that is not there is no constant")
            if isinstance(part, Call) and not pure(bare(part.function)):
                raise NotLegal("what stands for an element that is not there is no constant")
        shown = self.kernel.show(Evaluate(None, 0, expr)).strip().removesuffix(";")
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
