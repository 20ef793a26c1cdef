"""Which thread of a launch an element of an array belongs to, whatever else says where it is.

``walk[step * paths + path]`` is a path's in all rounds over the steps, and so is
``walk[path * steps + step]``: a digit of the index says which thread it is, the others lie within
their extents.
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.subscripts import in_extents

Digits = tuple[Polynomial, ...]


def together(kernel: Kernel, one: Access, behind: Kernel, other: Access) -> bool:
    """Whether one thread makes both accesses wherever these touch one element.

    They may be of one kernel, or of two with the same threads.
    """
    if one.element != other.element or one.offset is None or other.offset is None:
        return False
    for extents in extents_of(one.array, kernel, behind):
        digits, others = digits_in(kernel, one, extents), digits_in(behind, other, extents)
        if digits is None or others is None:
            continue
        own = {axis_of(kernel, d) for d, e in zip(digits, others, strict=True) if d == e}
        if {*axes_of(kernel)} <= own:
            return True
    return False


def digits_in(kernel: Kernel, access: Access, extents: Digits) -> Digits | None:
    """The digits of where an access is, in an array of these inner extents, if they are certain."""
    found, symbols = kernel.reading.subscript(access), kernel.reading.symbols
    if found is None:
        return None
    names = {name for extent in extents for name in extent.symbols}
    if not all(name in symbols.table and symbols[name].kind == "scalar" for name in names):
        return None  # another kernel may mean something else by it
    if found.proved and found.extents == extents:
        return found.digits
    return in_extents(found.linear, extents, access.guard, symbols)


def extents_of(array: str, *kernels: Kernel) -> tuple[Digits, ...]:
    """Inner extents that an array may have: the digits of some access, or a row of each thread."""
    found = dict[Digits, None]()
    for kernel in kernels:
        for access in kernel.reading.of(array):
            place = kernel.reading.subscript(access)
            if place is None:
                continue
            if place.proved:
                found[place.extents] = None
            for axis in axes_of(kernel):
                row = place.linear.coefficient(f"threadIdx.{axis}")
                if row is not None and len(row.terms) == 1 and row.value != 1:
                    found[(row,)] = None
    return (*found,)


def axes_of(kernel: Kernel) -> Iterator[str]:
    """The axes along which a launch has more than one thread."""
    blocks = [*map(str, kernel.launch.grid), "1", "1"]
    for axis, count, threads in zip("xyz", blocks, kernel.block, strict=False):
        if axis == "x" or count != "1" or threads != 1:
            yield axis


def axis_of(kernel: Kernel, digit: Polynomial) -> str:
    """The axis along which threads differ in this digit, each from all others; or none."""
    symbols = kernel.reading.symbols
    blocks = [*map(str, kernel.launch.grid), "1", "1"]
    for axis, width, count in zip("xyz", kernel.block, blocks, strict=False):
        whole = Polynomial.symbol(f"blockIdx.{axis}") * Polynomial.constant(width or 0)
        if f"blockIdx.{axis}" not in symbols.table:
            if count != "1" or width == 1:
                continue  # what other blocks do is the same
            whole = Polynomial.constant(0)
        if width != 1 or f"threadIdx.{axis}" in digit.symbols:
            whole += Polynomial.symbol(f"threadIdx.{axis}")
        by = digit.coefficient(f"{'blockIdx' if width == 1 else 'threadIdx'}.{axis}")
        if by is None or not by.value or width is None:
            continue
        rest = digit - by * whole
        if symbols.known(rest) and all(symbols[n].kind == "scalar" for n in symbols.inside(rest)):
            return axis
    return ""
