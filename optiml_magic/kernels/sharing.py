"""What the extents of shared arrays say of the number of threads that index them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from optiml_magic.errors import SourceError
from optiml_magic.kernels.independence import block_free
from optiml_magic.kernels.parallel import AXES, Names
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Reading
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.widths import width_text

_ONE = Polynomial.constant(1)
Digit = tuple[Access, Polynomial, Polynomial | None]


class SharedArrays:
    """The subscripts of the shared arrays of one reading, each with its extent."""

    def __init__(self, reading: Reading, names: Names, error: Callable[[str], SourceError]) -> None:
        self.reading = reading
        self.symbols = reading.symbols
        self.names = names
        self.error = error
        self.digits = tuple(self._digits())

    def _digits(self) -> Iterator[Digit]:
        for access in self.reading.accesses:
            array = self.reading.arrays.get(access.array)
            if access.space != "shared" or array is None or access.index is None:
                continue
            subscript = self.reading.subscript(access)
            if subscript is not None and len(subscript.digits) == len(array.extents) > 1:
                for digit, extent in zip(subscript.digits, array.extents, strict=True):
                    yield access, digit, extent
                continue
            product: Polynomial | None = _ONE if array.extents else None
            for extent in array.extents:
                product = product * extent if product is not None and extent else None
            sizes = array.element.size, access.element.size
            if product is not None and sizes[0] != sizes[1]:  # seen as elements of another type
                whole = product * Polynomial.constant(sizes[0]) if sizes[0] else None
                product = whole.divided(sizes[1]) if whole is not None and sizes[1] else None
            yield access, access.index, product

    def wanted(self, fixed: Mapping[int, str]) -> dict[int, str]:
        """The sizes of a block that arrays fix which threads index directly."""
        found: dict[int, tuple[Polynomial, str]] = {}
        for access, digit, extent in self.digits:
            axis = _direct(digit)
            if axis is None or axis in fixed or self._within(access, digit, extent, fixed):
                continue
            if extent is None or not extent.symbols <= set(self.names.tuned):
                raise self.error(f"the extent of `{access.array}` is not known")
            known = found.get(axis)
            if known is None or Ranges((), self.symbols).nonnegative(known[0] - extent):
                found[axis] = extent, access.array
        for extent, name in found.values():
            padded = extent.value is not None and extent.value % 2 == 1
            if padded or len(extent.terms) != 1:
                raise self.error(f"how its block relates to `{name}` is not clear")
        return {axis: width_text(extent) for axis, (extent, _) in found.items()}

    def check(
        self, fixed: Mapping[int, str], wanted: Collection[int], used: Collection[int]
    ) -> None:
        """Refuse subscripts that such a block may not keep inside."""
        for access, digit, extent in self.digits:
            inside = self.symbols.inside(digit)
            for axis in sorted(used):
                if not inside & {f"threadIdx.{AXES[axis]}", f"blockDim.{AXES[axis]}"}:
                    continue
                size = fixed.get(axis)
                if size is not None and axis not in wanted:
                    self._check_fixed(access, digit, extent, int(size) if size.isdigit() else 0)
                elif (
                    not self._within(access, digit, extent, fixed)
                    and not (size is None and block_free(digit, axis, (), self.symbols))
                    and not (size is not None and not size.isdigit() and _direct(digit) == axis)
                ):
                    raise self.error(f"how its block relates to `{access.array}` is not clear")

    def _check_fixed(
        self, access: Access, digit: Polynomial, extent: Polynomial | None, asked: int
    ) -> None:
        """A direct subscript beside the number of threads that strides ask for."""
        held = extent.value if extent is not None else None
        if _direct(digit) is None or not asked or held is None:
            return
        if asked > held and not self._within(access, digit, extent, {}):
            raise self.error(
                f"`{access.array}` holds {held} and its strides ask for {asked} threads"
            )
        if asked + 1 < held < 2 * asked:  # more than padding: a border that threads load, too
            raise self.error(f"how its block relates to `{access.array}` is not clear")

    def _within(
        self, access: Access, digit: Polynomial, extent: Polynomial | None,
        fixed: Mapping[int, str],
    ) -> bool:  # fmt: skip
        """Whether the guards of an access and the sizes of a block keep it inside."""
        if extent is None:
            return False
        known = {f"threadIdx.{AXES[axis]}": size for axis, size in fixed.items() if size.isdigit()}
        most: dict[str, int | None] = {
            name: int(size) - 1 for name, size in known.items() if name in self.symbols.table
        }
        halved = [self.symbols[name] for name in digit.symbols]
        most |= {s.name: self._greatest(s.arguments[0], fixed) for s in halved if s.op == "power/"}
        facts = [
            Compare(">=", Polynomial.constant(high) - Polynomial.symbol(name), frozenset())
            for name, high in most.items() if high is not None and high != self.symbols[name].high
        ]  # fmt: skip
        return Ranges((*access.guard, *facts), self.symbols).within(digit, extent)

    def _greatest(self, start: Polynomial, fixed: Mapping[int, str]) -> int | None:
        """The greatest value of what a loop halves from: a number, or a part of a block's width."""
        for axis, size in fixed.items():
            width = Polynomial.symbol(f"blockDim.{AXES[axis]}")
            if size.isdigit() and start == width:
                return int(size)
            for name in start.symbols if size.isdigit() else ():
                symbol = self.symbols[name]
                by = symbol.arguments[1].value if symbol.op == "/" else None
                if by and start == Polynomial.symbol(name) and symbol.arguments[0] == width:
                    return int(size) // by
        return start.value


def _direct(digit: Polynomial) -> int | None:
    """The axis of a subscript that is ``threadIdx`` alone."""
    for axis, name in enumerate(AXES):
        if digit == Polynomial.symbol(f"threadIdx.{name}"):
            return axis
    return None
