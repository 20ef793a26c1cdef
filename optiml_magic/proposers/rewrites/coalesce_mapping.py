"""Threads mapped to indices the other way round, so that a warp touches neighbours in memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.primitives.axes import exchangeable, exchanged
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.cutting import cut, freedom
from optiml_magic.kernels.primitives.order import pairs, reordered
from optiml_magic.kernels.primitives.shaped import planar
from optiml_magic.kernels.reading import Access
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_WARP = 32
_MOST_LOOPS = 3
_EXPECTED = Hypothesis(
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "lower",
    "the lanes of a warp touch neighbouring elements", (1.5, 8.0),
)  # fmt: skip


class CoalesceMapping(KernelRule):
    """Swaps x with another axis, or the quotient with the rest of an index that is taken apart."""

    name = "coalesce_mapping"
    before = (planar,)
    teaches = (
        "The lanes of a warp differ in threadIdx.x. Where that index is multiplied by a row's "
        "length, each lane touches a sector of its own; mapped to the unit stride, a warp's "
        "accesses share sectors."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        for axis in "yz":
            there = kernel.block["xyz".index(axis)] != 1 or _blocks(kernel, axis)
            before, after = (
                _apart(kernel, _along(kernel, "x")),
                _apart(kernel, _along(kernel, axis)),
            )
            if there and before and after <= before:
                yield from _swaps(kernel, axis, 0.8 if after < before else 0.1)
        yield from _orders(kernel)


def _swaps(kernel: Kernel, axis: str, prior: float) -> Iterator[Site]:
    exchangeable(kernel)
    title, own = f"swap threadIdx.x and threadIdx.{axis}", kernel.block["xyz".index(axis)]
    shape = _wide(kernel, axis)
    if shape is not None:
        yield Site(
            f"wide {axis}", f"{title}, in blocks of {shape[axis]} x {shape['x']}",
            partial(_apply, kernel, axis, shape), prior, _EXPECTED,
        )  # fmt: skip
    if own != 1:
        narrower = prior if shape is None else prior - 0.05
        yield Site(axis, title, partial(exchanged, kernel, "x", axis), narrower, _EXPECTED)


def _wide(kernel: Kernel, axis: str) -> dict[str, int] | None:
    """Extents before the swap that make a warp a row after it; None where they cannot be."""
    sizes = kernel.block[0], kernel.block["xyz".index(axis)]
    if sizes[0] is None or sizes[1] is None or sizes[1] % _WARP == 0:
        return None
    count = sizes[0] * sizes[1]
    shape = {axis: _WARP, "x": count // _WARP}
    try:
        fits = all(
            freedom(kernel, a).allows(extent, kernel.block["xyz".index(a)] or 1)
            for a, extent in shape.items()
        )
    except NotLegal:
        return None
    return shape if fits and count % _WARP == 0 else None


def _apply(kernel: Kernel, axis: str, shape: dict[str, int]) -> Kernel | Refused:
    made = cut(kernel, shape)
    return made if isinstance(made, Refused) else exchanged(made, "x", axis)


def _orders(kernel: Kernel) -> Iterator[Site]:
    try:
        found = pairs(kernel)
    except NotLegal:
        return
    before, after = _apart(kernel, found.rest.name), _apart(kernel, found.quotient.name)
    if before and after <= before:
        prior = 0.8 if after < before else 0.1
        title = "number the threads along the columns, no longer along the rows"
        yield Site("order", title, partial(reordered, kernel), prior, _EXPECTED)


def _blocks(kernel: Kernel, axis: str) -> bool:
    at = "xyz".index(axis)
    return at < len(kernel.launch.grid) and str(kernel.launch.grid[at]) != "1"


def _along(kernel: Kernel, axis: str) -> str:
    """What differs between neighbours along an axis; blocks of one thread are their own."""
    alone = kernel.block["xyz".index(axis)] == 1
    return f"{'blockIdx' if alone else 'threadIdx'}.{axis}"


def _apart(kernel: Kernel, name: str) -> int:
    """How many accesses take elements that lie apart where this differs, more in loops."""
    found = (
        a for a in kernel.reading.accesses if a.space == "global" and not _near(kernel, a, name)
    )
    return sum(8 ** min(len(access.loops), _MOST_LOOPS) for access in found)


def _near(kernel: Kernel, access: Access, name: str) -> bool:
    form, size = access.offset, access.element.size
    if form is None or size is None:
        return True  # whatever it is, it is so along every axis
    by = form.coefficient(name)
    rest = form.without([name])
    hidden = name in kernel.reading.symbols.inside(rest)
    return not hidden and by is not None and by.value is not None and abs(by.value) <= size
