"""P4, aligned: a block that is a tile of a plane lies in it as its threads do.

``x = blockIdx.x * 32 + threadIdx.x / 32; y = blockIdx.y * 32 + threadIdx.x % 32`` of a block of one
axis is a block of two, and the blocks of its grid go along the axes of their threads: what a
thread has from both is then its index in the launch, which other steps look for.
"""

from __future__ import annotations

from collections.abc import Mapping

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import BLOCKS, exchanged
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive
from optiml_magic.kernels.primitives.places import index
from optiml_magic.kernels.primitives.shaped import planar

_MOST = 65535  # blocks along y
_PLACES = ("blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y")
_XY, _XZ, _YZ = ("x", "y"), ("x", "z"), ("y", "z")
_TURNS = ((_XY,), (_XZ,), (_YZ,), (_XY, _XZ), (_XZ, _XY))  # axes exchanged, in this order


@primitive
def aligned(kernel: Kernel) -> Kernel:
    """Threads of a block that is a tile, of one axis too, by their index along two axes."""
    plane = planar(kernel)
    if not isinstance(plane, Kernel):
        return _straightened(kernel)
    forms = _forms(plane)
    asked = {name for form in forms for name in plane.reading.symbols.inside(form)}
    if not {*_PLACES} <= asked:
        raise NotLegal("its block is not a tile of a plane")
    return plane if _all_along(plane, forms) else _straightened(plane)


@primitive
def straightened(kernel: Kernel) -> Kernel:
    """With blocks along the axes of their threads, where each met the other's in a tile."""
    return _straightened(kernel)


def _straightened(kernel: Kernel) -> Kernel:
    forms = _forms(kernel)
    if _all_along(kernel, forms):
        raise NotLegal("its blocks lie along the axes of their threads")
    turns = next((turns for turns in _TURNS if _all_along(kernel, forms, turns)), None)
    if turns is None:
        raise NotLegal("its blocks lie along no axis of their threads")
    if kernel.facts is not None and kernel.facts.grid[0] > _MOST and turns != (_YZ,):
        raise NotLegal("a grid cannot have so many blocks along its other axis")
    for one, other in turns:
        made = exchanged(kernel, one, other, BLOCKS)
        if isinstance(made, Refused):
            raise NotLegal(made.reason, made.line)
        kernel = made
    return kernel


def _forms(kernel: Kernel) -> list[Polynomial]:
    """Where the kernel goes in global memory, if its threads work alone."""
    reading = kernel.reading
    if reading.barriers or any(a.space == "shared" for a in reading.accesses):
        raise NotLegal("its threads wait for each other")
    forms = [a.index for a in reading.accesses if a.space == "global"]
    known = [form for form in forms if form is not None]
    if len(known) < len(forms):
        raise NotLegal("not all elements that it asks for are known")
    return known


def _all_along(
    kernel: Kernel, forms: list[Polynomial], turns: tuple[tuple[str, str], ...] = ()
) -> bool:
    names = {f"blockIdx.{axis}": f"blockIdx.{axis}" for axis in "xyz"}
    for one, other in turns:
        swapped = {f"blockIdx.{one}": f"blockIdx.{other}", f"blockIdx.{other}": f"blockIdx.{one}"}
        names = {name: swapped.get(now, now) for name, now in names.items()}
    return all(_along(kernel, form, names, turned=bool(turns)) for form in forms)


def _along(kernel: Kernel, form: Polynomial, names: Mapping[str, str], *, turned: bool) -> bool:
    """Whether a form has nothing of a thread but its index in the grid along each axis.

    Where a block has one thread along an axis, which block it is says that index.
    """
    found: Polynomial | None = Polynomial.of({
        tuple(sorted(names.get(n, n) for n in m)): c for m, c in form.terms
    })  # fmt: skip
    table, inside = kernel.reading.symbols.table, kernel.reading.symbols.inside
    parts = [Polynomial.symbol(s) for s in form.symbols if s in table and table[s].op]
    taken_apart = {names.get(root, root) for part in parts for root in inside(part)}
    for axis, width in zip("xyz", kernel.block, strict=True):
        if width != 1:
            if turned and {f"threadIdx.{axis}", f"blockIdx.{axis}"} & taken_apart:
                return False
            found = index(found, axis, width) if found is not None and width else None
    return found is not None
