"""P4, unravelled planes: an index along x that is taken apart, of a launch with a block a plane.

``i / w`` and ``i % w`` of a launch whose blocks along y and z tell the plane become threads along y
and x, and the planes are counted by the blocks along z alone: with what is left above the two, such
as ``i / (w * h)``, which is the rest of their number.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import builtin
from optiml_magic.kernels.formulas import expression
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.grids import form_of, said_alike
from optiml_magic.kernels.primitives.limits import with_limits
from optiml_magic.kernels.primitives.mapped import mapped
from optiml_magic.kernels.primitives.places import Place, placed
from optiml_magic.kernels.primitives.sizes import with_grid
from optiml_magic.kernels.primitives.unravelled import Unravelling
from optiml_magic.kernels.tree import Statement, expressions
from optiml_magic.source.expressions import parse_expression


@primitive
def unravelled_planes(kernel: Kernel) -> Kernel:
    """A launch of blocks along x for each plane, whose threads take their index apart."""
    kernel = kernel.settled()
    if len(kernel.launch.grid) < 2 or kernel.block[0] is None or kernel.block[1:] != (1, 1):
        raise NotLegal("its launch does not have planes of one axis of threads")
    Effects(kernel).straightforward()
    stacked = _stacked(kernel)
    effects = Effects(stacked)
    made = _Planes(stacked, effects, mapped(stacked, effects)).kernel()
    wanted = with_limits(kernel, made.launch, lambda _: [])
    return with_grid(made.rewritten(made.function.body, directives=wanted))


def _stacked(kernel: Kernel) -> Kernel:
    """The kernel whose blocks along z count those along y as well."""
    launch, grid = kernel.launch, kernel.launch.grid
    whole = str(grid[1])
    places = {"y": Place("blockIdx.z", 1, "0", "blockIdx.z")}
    if len(grid) > 2:
        form = form_of(grid[1].tree, kernel.reading.symbols)
        moved = Effects(kernel).moved
        names = [p.name for p in kernel.function.parameters if p.name not in moved]
        words = expression(form, kernel.reading.symbols, names) if form is not None else None
        if words is None or not said_alike(kernel, words.names):
            raise NotLegal("how many planes there are is not said by sizes alone")
        whole = f"({grid[2]}) * ({whole})"
        line, plane = (_part(op, str(words)) for op in "%/")
        places = {"y": Place(line, 1, "0", line), "z": Place(plane, 1, "0", plane)}
    body = edited(kernel.function.body, placed(kernel, places))
    made = replace(launch, grid=(grid[0], parse_expression("1"), parse_expression(whole)))
    return with_grid(kernel.rewritten(body, launch=made))


def _part(op: str, words: str) -> str:
    """A part of the number of a plane."""
    return f"((unsigned int)(blockIdx.z {op} ({words})))"


class _Planes(Unravelling):
    """The digits of an index along x, beside planes along z."""

    def _above(self, rest: str) -> str:
        return _part("%", rest)

    def _beside(self, rest: str) -> dict[Node, Node | tuple[Statement, ...] | None]:
        planes = [e for e in expressions(self.old.function.body) if builtin(e) == "blockIdx.z"]
        return {e: text(_part("/", rest)) for e in planes} if self.top == 2 else {}

    def _shape(self, counts: list[str], rest: str) -> tuple[tuple[int, ...], list[str]]:
        if not self.bounded:
            raise NotLegal("its threads do not take their index apart")
        shape, blocks = super()._shape(counts, rest)
        planes = str(self.old.launch.grid[2])
        return shape, [*blocks[:2], planes if self.top == 1 else f"({planes}) * ({rest})"]
