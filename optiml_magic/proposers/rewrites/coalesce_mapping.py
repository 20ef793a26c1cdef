"""Threads mapped to indices the other way round, so that a warp touches neighbours in memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.primitives.axes import THREADS, exchangeable, exchanged
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.coalescing import along, apart, wide
from optiml_magic.kernels.primitives.cutting import cut, uses
from optiml_magic.kernels.primitives.direct import in_full
from optiml_magic.kernels.primitives.order import pairs, reordered
from optiml_magic.kernels.primitives.raised import raised
from optiml_magic.kernels.primitives.shaped import planar
from optiml_magic.kernels.primitives.unstrided import unstrided
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_BY_DATA = 0.15  # the chance where what data tell may be neighbours already: ours
_EXPECTED = Hypothesis(
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "lower",
    "the lanes of a warp touch neighbouring elements", (1.5, 8.0),
)  # fmt: skip


class CoalesceMapping(KernelRule):
    """Swaps x with another axis, or the quotient with the rest of an index that is taken apart."""

    name = "coalesce_mapping"
    before = (raised, unstrided, planar, in_full)
    teaches = (
        "The lanes of a warp differ in threadIdx.x. Where that index is multiplied by a row's "
        "length, each lane touches a sector of its own; mapped to the unit stride, a warp's "
        "accesses share sectors."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        for axis in "yz":
            there = kernel.block["xyz".index(axis)] != 1 or _blocks(kernel, axis)
            own = along(kernel, "x")
            before, after = apart(kernel, own), apart(kernel, along(kernel, axis))
            if there and before and after <= before:
                certain = after < apart(kernel, own, data=False)
                chance = 0.8 if certain else _BY_DATA if after < before else 0.1
                yield from _swaps(kernel, axis, chance)
        yield from _orders(kernel)


def _swaps(kernel: Kernel, axis: str, prior: float) -> Iterator[Site]:
    exchangeable(kernel)
    title, own = f"swap threadIdx.x and threadIdx.{axis}", kernel.block["xyz".index(axis)]
    shape = wide(kernel, axis)
    if shape is not None:
        yield Site(
            f"wide {axis}", f"{title}, in blocks of {shape[axis]} x {shape['x']}",
            partial(_apply, kernel, axis, shape), prior, _EXPECTED,
        )  # fmt: skip
    if own != 1:
        narrower = prior if shape is None else prior - 0.05
        yield Site(axis, title, partial(_turned, kernel, axis), narrower, _EXPECTED)


def _apply(kernel: Kernel, axis: str, shape: dict[str, int]) -> Kernel | Refused:
    made = cut(kernel, shape)
    return made if isinstance(made, Refused) else _turned(made, axis)


def _turned(kernel: Kernel, axis: str) -> Kernel | Refused:
    """The axes exchanged, of the threads of a block alone where indices are whole then.

    ``blockIdx.y * 32 + threadIdx.x`` is such an index, which turned the threads of a tile.
    """
    made, own = exchanged(kernel, "x", axis), exchanged(kernel, "x", axis, THREADS)
    if isinstance(made, Refused) or isinstance(own, Refused):
        return made
    return own if _in_parts(own, axis) < _in_parts(made, axis) else made


def _in_parts(kernel: Kernel, axis: str) -> int:
    """How often the kernel asks for less than its index along both axes."""
    return sum(len(uses(kernel, a).parts) for a in ("x", axis))


def _orders(kernel: Kernel) -> Iterator[Site]:
    try:
        found = pairs(kernel)
    except NotLegal:
        return
    before, after = apart(kernel, found.rest.name), apart(kernel, found.quotient.name)
    if before and after <= before:
        prior = 0.8 if after < before else 0.1
        title = "number the threads along the columns, no longer along the rows"
        yield Site("order", title, partial(reordered, kernel), prior, _EXPECTED)


def _blocks(kernel: Kernel, axis: str) -> bool:
    at = "xyz".index(axis)
    return at < len(kernel.launch.grid) and str(kernel.launch.grid[at]) != "1"
