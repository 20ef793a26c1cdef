"""The number of threads that a kernel's indices, loops and shared arrays ask for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from optiml_magic.errors import SourceError
from optiml_magic.kernels.parallel import (
    AXES,
    Bound,
    Names,
    block_free,
    comparisons,
    widths,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Reading
from optiml_magic.kernels.symbols import Compare, Condition, Symbols
from optiml_magic.kernels.unit import Unit
from optiml_magic.source.expressions import Expression, parse_expression
from optiml_magic.source.values import constants

DEFAULTS = {1: (256,), 2: (32, 8), 3: (32, 4, 2)}
_MAX_THREADS = 1024
_ONE = Polynomial.constant(1)


class BlockSizes:
    """``fixed`` has the sizes that the code fixes, as text; the others are free to choose."""

    def __init__(
        self, unit: Unit, reading: Reading, names: Names, used: Collection[int],
        error: Callable[[str], SourceError],
    ) -> None:  # fmt: skip
        self.unit = unit
        self.reading = reading
        self.symbols: Symbols = reading.symbols
        self.names = names
        self.used = frozenset(used)
        self.error = error
        self.fixed: dict[int, str] = {}
        self._narrowed: set[int] = set()

    # -- what the code fixes

    def fix(self) -> None:
        """The sizes that strides ask for, and one thread where no thread knows its place."""
        known = {n for n in self.symbols.table if n.startswith(("threadIdx", "blockDim"))}
        for axis in self.used - {AXES.index(name[-1]) for name in known}:
            self.fixed[axis] = "1"  # more threads would only repeat what one does
        blocks = [f"blockIdx.{axis}" for axis in AXES]
        for form in self._forms():
            self._agree(widths(form, blocks, self.symbols, self.names))
        for axis in self.reading.axes:
            if axis.start is None or axis.step is None:
                continue
            form = axis.start + axis.step * Polynomial.symbol(axis.name)
            if not any(name.startswith("blockIdx") for name in form.symbols):
                self._agree(widths(form, [axis.name], self.symbols, self.names))

    def _forms(self) -> Iterator[Polynomial]:
        for access in self.reading.accesses:
            single = {axis for axis in range(3) if self._alone(access, axis)}
            for condition in access.guard:
                for compare in comparisons(condition):
                    yield compare.form
            if access.index is not None and access.space == "global" and not single:
                yield access.index

    def _alone(self, access: Access, axis: int) -> bool:
        """Whether an access is made by a part of the threads along an axis that is a number."""
        return any(
            self._threshold(compare, axis) is not None
            for condition in access.guard
            for compare in comparisons(condition)
        )

    def _agree(self, found: Mapping[int, tuple[Polynomial, bool]]) -> None:
        for axis, (width, narrowed) in found.items():
            text = self._width_text(width)
            known = self.fixed.setdefault(axis, text)
            if known == text:
                continue
            # A loop over a part of each tile says more than the tile does.
            sizes = [int(t) for t in (known, text) if t.isdigit()]
            whole = len(sizes) == 2 and max(sizes) % min(sizes) == 0
            if whole and (axis in self._narrowed or narrowed):
                self.fixed[axis] = str(min(sizes))
                self._narrowed.add(axis)
                continue
            raise self.error(
                f"its strides ask for {known} and for {text} threads along {AXES[axis]}"
            )

    def _width_text(self, width: Polynomial) -> str:
        monomial, factor = width.terms[0] if width.terms else ((), 0)
        parts = [str(factor)] if factor != 1 or not monomial else []
        return str(parse_expression(" * ".join([*parts, *monomial])))

    # -- what is chosen

    def chosen(self, leading: Mapping[int, Bound]) -> tuple[Expression, ...]:
        """Fixed sizes as they are, the others by default, within the kernel's launch bounds."""
        rank = max(self.used) + 1
        self._fit_shared()
        for axis in sorted(self.used - self.fixed.keys()):
            self._check_free(axis, leading)
        texts = [self.fixed.get(axis, str(DEFAULTS[rank][axis])) for axis in range(rank)]
        limit, count = self._limit(), 1
        for text in texts:
            try:
                count *= parse_expression(text).evaluate({})
            except SourceError:  # a tuned name: what its values make of it is checked at launch
                if limit < _MAX_THREADS:
                    raise self.error("its launch bounds and its tuned block may differ") from None
                count = 1
                break
        if count > limit and not self.fixed and rank == 1 and limit >= 32:
            texts = [str(limit // 32 * 32)]
        elif not 1 <= count <= limit:
            raise self.error(f"a block of {' x '.join(texts)} is beyond its {limit} threads")
        self._check_thresholds(texts)
        return tuple(map(parse_expression, texts))

    def _limit(self) -> int:
        bounds = self.reading.function.launch_bounds
        if bounds is None:
            return _MAX_THREADS
        try:
            limit = parse_expression(bounds).evaluate(constants(self.unit.syntax))
        except SourceError:
            raise self.error("its launch bounds are no number") from None
        return min(limit, _MAX_THREADS)

    def stride(self, form: Polynomial, block: list[str]) -> str:
        """What a product of block sizes is where these are chosen."""
        monomial, factor = form.terms[0]
        parts = []
        for name in monomial:
            symbol = self.symbols[name]
            if name.startswith("blockDim"):
                parts.append(block[AXES.index(name[-1])])
            elif symbol.op == "/":
                above, below = symbol.arguments
                parts.append(f"({self.stride(above, block)}) / ({self.stride(below, block)})")
            else:
                parts.append(name)
        numbers = [p for p in parts if p.isdigit()]
        for number in numbers:
            factor *= int(number)
        rest = [f"({p})" for p in parts if not p.isdigit()]
        first = [str(factor)] if factor != 1 or not rest else []
        text = " * ".join([*rest, *first])
        try:
            return str(parse_expression(text).evaluate({}))
        except SourceError:
            return str(parse_expression(text))

    # -- where a size is free

    def _check_free(self, axis: int, leading: Mapping[int, Bound]) -> None:
        """Where a size is free, what is done must not depend on how many threads there are."""
        blocks = {
            f"blockIdx.{AXES[bound.axis]}" for bound in leading.values()
            if f"blockDim.{AXES[axis]}" in self.symbols.inside(bound.stride)
        }  # fmt: skip
        counted = any(axis in b.threads and f"blockIdx.{AXES[b.axis]}" in blocks
                      for b in leading.values())  # fmt: skip
        for access in self.reading.accesses:
            if access.space != "global":
                continue
            store = access.mode != "load"
            if self._some(access, axis):
                continue
            stepped = any(
                f"threadIdx.{AXES[axis]}" in compare.form.symbols
                and block_free(compare.form, axis, blocks, self.symbols)
                for condition in access.guard for compare in comparisons(condition)
            )  # fmt: skip
            index = access.index
            free = index is None or block_free(index, axis, blocks, self.symbols)
            if not free or (store and not counted and not stepped):
                raise self.error(
                    f"the number of threads along {AXES[axis]} that the "
                    f"{'store' if store else 'load'} on line {access.line} asks for is not known"
                )
        if counted and any(a.space == "shared" and a.mode == "atomic"
                           for a in self.reading.accesses):  # fmt: skip
            raise self.error("what the threads of a block share depends on how many there are")

    def _some(self, access: Access, axis: int) -> bool:
        """Whether certain threads along an axis make an access, whatever a block has beside them."""
        thread, size = f"threadIdx.{AXES[axis]}", f"blockDim.{AXES[axis]}"
        for condition in access.guard:
            for part in condition.conjuncts():
                if not isinstance(part, Compare) or thread not in part.form.symbols:
                    continue
                if part.op == "==" and part.form.symbols <= {thread, size}:
                    return True
                if part.op == ">=" and self._threshold(part, axis) is not None:
                    index = access.index
                    if index is not None and size not in self.symbols.inside(index):
                        return True
        return False

    # -- numbers that threads are compared with

    def _threshold(self, compare: Compare, axis: int) -> int | None:
        """The number of the first thread on the other side of a comparison with a number."""
        thread = f"threadIdx.{AXES[axis]}"
        if compare.form.symbols != {thread}:
            return None
        slope, rest = compare.form.coefficient(thread), compare.form.without([thread]).value
        if slope is None or slope.value is None or rest is None:
            return None
        if compare.op == ">=":
            return rest // -slope.value + 1 if slope.value < 0 else -(rest // slope.value)
        return -rest // slope.value + 1 if slope.value else None

    def _conditions(self) -> Iterator[Condition]:
        for guard in self.reading.guards:
            yield guard.condition
        for access in self.reading.accesses:
            yield from access.guard

    def _check_thresholds(self, texts: list[str]) -> None:
        """A kernel that asks whether a thread is below 14 has more than 14 of them."""
        for condition in self._conditions():
            for compare in comparisons(condition):
                for axis, text in enumerate(texts):
                    least = self._threshold(compare, axis)
                    if least is None or not text.isdigit():
                        continue
                    enough = int(text) >= least if compare.op != ">=" else int(text) > least
                    if not enough and least > 0:
                        raise self.error(
                            f"it compares threadIdx.{AXES[axis]} with {least}, which asks for more "
                            f"threads than {text}"
                        )

    # -- shared arrays

    def _fit_shared(self) -> None:
        """Let shared arrays that threads index directly fix the block; refuse other uses."""
        digits = list(self._digits())
        wanted: dict[int, tuple[Polynomial, str]] = {}
        for access, digit, extent in digits:
            axis = _direct(digit)
            if axis is None or axis in self.fixed or self._within(access, digit, extent):
                continue
            if extent is None or not extent.symbols <= set(self.names.tuned):
                raise self.error(f"the extent of `{access.array}` is not known")
            known = wanted.get(axis)
            if known is None or Ranges((), self.symbols).nonnegative(known[0] - extent):
                wanted[axis] = extent, access.array
        for axis, (extent, name) in wanted.items():
            odd = extent.value is not None and extent.value % 2 == 1
            if odd or len(extent.terms) != 1:  # a row with padding, or more than one item each
                raise self.error(f"how its block relates to `{name}` is not clear")
            self.fixed[axis] = self._width_text(extent)
        for access, digit, extent in digits:
            self._check_digit(access, digit, extent, wanted)

    def _digits(self) -> Iterator[tuple[Access, Polynomial, Polynomial | None]]:
        """Every subscript of a shared array with its extent."""
        for access in self.reading.accesses:
            array = self.reading.arrays.get(access.array)
            if access.space != "shared" or array is None or access.index is None:
                continue
            subscript = self.reading.subscript(access)
            digits = subscript.digits if subscript is not None else (access.index,)
            if len(digits) != len(array.extents):
                digits = (access.index,)
                product: Polynomial | None = _ONE
                for extent in array.extents:
                    product = product * extent if product is not None and extent else None
                yield access, digits[0], product if array.extents else None
            else:
                yield from ((access, d, e) for d, e in zip(digits, array.extents, strict=True))

    def _within(self, access: Access, digit: Polynomial, extent: Polynomial | None) -> bool:
        """Whether the guards of an access keep it inside, however many threads there are."""
        if extent is None:
            return False
        facts = [Compare(">=", self._last(axis), frozenset()) for axis in self.fixed
                 if self.fixed[axis].isdigit()]  # fmt: skip
        return Ranges((*access.guard, *facts), self.symbols).within(digit, extent)

    def _last(self, axis: int) -> Polynomial:
        return Polynomial.constant(int(self.fixed[axis]) - 1) - self.symbols.builtin(
            f"threadIdx.{AXES[axis]}"
        )

    def _check_digit(
        self, access: Access, digit: Polynomial, extent: Polynomial | None,
        wanted: Mapping[int, object],
    ) -> None:  # fmt: skip
        inside = self.symbols.inside(digit)
        for axis in self.used:
            thread, size = f"threadIdx.{AXES[axis]}", f"blockDim.{AXES[axis]}"
            if not inside & {thread, size}:
                continue
            fixed = self.fixed.get(axis)
            if axis not in wanted and fixed is not None:
                self._check_fixed(access, digit, extent, axis)
            elif self._within(access, self._settled(digit, axis), extent):
                continue
            elif axis not in wanted and block_free(digit, axis, (), self.symbols):
                continue
            elif _direct(digit) == axis and fixed is not None and not fixed.isdigit():
                continue
            else:
                raise self.error(f"how its block relates to `{access.array}` is not clear")

    def _settled(self, digit: Polynomial, axis: int) -> Polynomial:
        """A form with the size of the block along an axis as the number that it is."""
        size, fixed = f"blockDim.{AXES[axis]}", self.fixed.get(axis, "")
        by = digit.coefficient(size)
        if by is None or not by.terms or not fixed.isdigit():
            return digit
        return digit.without([size]) + by * Polynomial.constant(int(fixed))

    def _check_fixed(
        self, access: Access, digit: Polynomial, extent: Polynomial | None, axis: int
    ) -> None:
        fixed = self.fixed[axis]
        if _direct(digit) != axis or not fixed.isdigit() or extent is None or extent.value is None:
            return
        held, asked = extent.value, int(fixed)
        if self._within(access, digit - self._last(axis) * Polynomial(), extent) and held >= asked:
            spare = held - asked
            if 1 < spare < asked and not self._alone(access, axis):
                raise self.error(f"how its block relates to `{access.array}` is not clear")
            return
        if asked > held:
            raise self.error(
                f"`{access.array}` holds {held} and its strides ask for {asked} threads"
            )


def _direct(digit: Polynomial) -> int | None:
    """The axis of a subscript that is ``threadIdx`` alone."""
    for axis, name in enumerate(AXES):
        if digit == Polynomial.symbol(f"threadIdx.{name}"):
            return axis
    return None
