"""P4, aligned: a block that is a tile of a plane lies in it as its threads do.

``x = blockIdx.x * 32 + threadIdx.x / 32; y = blockIdx.y * 32 + threadIdx.x % 32`` of a block of one
axis is a block of two, and the blocks of its grid go along the axes of their threads: what a
thread has from both is then its index in the launch, which other steps look for.
"""

from __future__ import annotations

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import BLOCKS, exchanged
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive
from optiml_magic.kernels.primitives.places import index
from optiml_magic.kernels.primitives.shaped import planar

_MOST = 65535  # blocks along y
_PLACES = ("blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y")


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
    return plane if _all_along(plane, forms, turned=False) else _straightened(plane)


@primitive
def straightened(kernel: Kernel) -> Kernel:
    """With blocks along the axes of their threads, where each met the other's in a tile."""
    return _straightened(kernel)


def _straightened(kernel: Kernel) -> Kernel:
    forms = _forms(kernel)
    if _all_along(kernel, forms, turned=False):
        raise NotLegal("its blocks lie along the axes of their threads")
    if not _all_along(kernel, forms, turned=True):
        raise NotLegal("its blocks lie along no axis of their threads")
    if kernel.facts is not None and kernel.facts.grid[0] > _MOST:
        raise NotLegal("a grid cannot have so many blocks along its other axis")
    made = exchanged(kernel, "x", "y", BLOCKS)
    if isinstance(made, Refused):
        raise NotLegal(made.reason, made.line)
    return made


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


def _all_along(kernel: Kernel, forms: list[Polynomial], *, turned: bool) -> bool:
    return all(_along(kernel, form, turned=turned) for form in forms)


def _along(kernel: Kernel, form: Polynomial, *, turned: bool) -> bool:
    """Whether a form has nothing of a thread but its index in the grid along each axis."""
    found: Polynomial | None = form
    if turned:
        swapped = dict(zip(_PLACES[:2], _PLACES[1::-1], strict=True))
        found = Polynomial.of({
            tuple(sorted(swapped.get(n, n) for n in m)): c for m, c in form.terms
        })  # fmt: skip
    for axis, width in zip("xy", kernel.block, strict=False):
        found = index(found, axis, width) if found is not None and width else None
    return found is not None
