"""P4, one block: where a grid has one block along an axis, a thread's place in it is its index.

``int bin = threadIdx.x`` of a launch with ``grid(1)`` becomes what rules look for, since
``blockIdx.x`` is 0.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import builtin
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cutting import uses
from optiml_magic.kernels.primitives.places import as_wide


@primitive
def one_block(kernel: Kernel) -> Kernel:
    """Threads of one block ask for their index in the grid."""
    swaps: dict[Node, Node] = {}
    for axis, blocks in zip("xyz", kernel.launch.grid, strict=False):
        alone = not blocks.names and not blocks.arrays and blocks.evaluate({}) == 1
        if not alone or kernel.block["xyz".index(axis)] in (None, 1):
            continue
        words = f"(blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis})"
        for part in uses(kernel, axis).parts:
            if builtin(part) == f"threadIdx.{axis}":
                swaps[part] = text(as_wide(kernel, part, words))
    if not swaps:
        raise NotLegal("no thread asks for its place in a single block")
    return kernel.rewritten(edited(kernel.function.body, swaps))
