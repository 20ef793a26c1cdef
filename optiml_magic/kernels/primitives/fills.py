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
from optiml_magic.kernels.subscripts import delinearised
from optiml_magic.kernels.symbols import Compare, Condition, Some
from optiml_magic.kernels.tree import Evaluate, Variable

_LANES = "xyzw"


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
            digits = store.digits if lane is None and self._whole(store) else (linear,)
            own = frozenset(axis.name for axis in inner)
            yield self._chosen(
                Fill(store, value, there, digits, linear, own, every, tuple(rest))
            )

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
        size = self.array.element.size
        found = access.offset.divided(size) if access.offset is not None and size else None
        if found is None or not self.kernel.reading.symbols.known(found):
            raise NotLegal("an index of shared memory is not followed", access.line)
        return found + Polynomial.constant(lane or 0)

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
        more = tuple(
            part for c in load.guard for part in c.conjuncts() if part not in fill.all
        )
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
            (opposite,) = constant.all - common or (None,) if len(constant.all - common) < 2 else (None,)
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
                    and types.get(value) == types.get(expr)
                ):  # fmt: skip
                    expr = value
                case Cast(operand=operand) if types.get(operand) == types.get(expr):
                    expr = operand
                case _:
                    return expr

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
        if read.call is not None or read.verbatim or read.element.size != self.array.element.size:
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
        for _, tested, facts, _ in pieces:
            for test in tests:
                if test not in tested and not _proved(test, (*facts, *tested), kernel):
                    raise NotLegal("whether an element is there is asked in several ways", line)
        left = tuple(t for t in tests if not _proved(t, path, kernel))
        return Got(values.pop(), left, others.pop() if others else "")

    def _piece(
        self, fill: Fill, read: Access, linear: Polynomial, asked: Any,
        path: Sequence[Condition], speller: LocalSpeller,
    ) -> tuple[str, tuple[Condition, ...], list[Condition], str]:  # fmt: skip
        """The value, what is tested, what holds for the elements of one fill, and its other."""
        kernel = self.kernel
        same = len(fill.digits) == len(read.digits) > 1
        writer = fill.digits if same else (fill.linear,)
        reader = read.digits if same else (linear,)
        mine = fill.there.where(np.isin(fill.elements, asked))
        facts = [*path]
        for one, other in zip(writer, reader, strict=True):
            numbers = mine.numbers(one)
            if numbers is not None and numbers.size:
                low, high = Polynomial.constant(int(numbers.min())), int(numbers.max())
                facts += [Compare(">=", other - low, frozenset()),
                          Compare(">=", Polynomial.constant(high) - other, frozenset())]  # fmt: skip
        refused: NotLegal | None = None
        for digits in (False, True):
            try:
                inverse = Inverse.of(kernel.reading.symbols, facts, fill.own, writer, reader,
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
            if not _proved(condition, facts, kernel):
                raise NotLegal("whether an element was brought is not certain", read.line)
        other = self._constant(fill.other) if fill.other is not None and tested else ""
        return value, tested, facts, other

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
        found = inverse.form(form + Polynomial.constant(lane))
        return f"{load.array}[{self._index(found, inverse.path, speller)}]"

    def _index(
        self, form: Polynomial, path: Sequence[Condition], speller: LocalSpeller
    ) -> str:
        """An index by rows and columns, where it has these."""
        cut = delinearised(form, path, self.kernel.reading.symbols)
        words = speller.form(speller.local(cut.digits[0]))
        for digit, extent in zip(cut.digits[1:], cut.extents, strict=True):
            row = f"({words})" if " + " in words or " - " in words else words
            more = speller.form(speller.local(digit))
            words = f"{row} * {speller.factor(extent)} + {more}".replace("+ -", "- ")
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


def _proved(condition: Condition, path: Sequence[Condition], kernel: Kernel) -> bool:
    """Whether a condition certainly holds where all of ``path`` does."""
    if condition in {p for c in path for p in c.conjuncts()}:
        return True
    if isinstance(condition, Some):
        return any(_proved(part, path, kernel) for part in condition.parts)
    if not isinstance(condition, Compare):
        parts = [*condition.conjuncts()]
        return parts != [condition] and all(_proved(p, path, kernel) for p in parts)
    ranges = Ranges(path, kernel.reading.symbols)
    one = Polynomial.constant(1)
    if condition.op == ">=":
        return ranges.nonnegative(condition.form)
    sides = (condition.form, -condition.form)
    if condition.op == "==":
        return all(ranges.nonnegative(side) for side in sides)
    return any(ranges.nonnegative(side - one) for side in sides)
