"""Threads mapped to indices the other way round, so that a warp touches neighbours in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from optiml_magic.model.candidate import Proposal
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.idea import Idea
from optiml_magic.proposers.rewrites.accesses import accesses, pattern
from optiml_magic.proposers.rewrites.affine import Affine
from optiml_magic.proposers.rewrites.indices import (
    cooperative,
    helpers_see_threads,
    only_global,
)
from optiml_magic.proposers.rewrites.kernel import Kernel, builtin
from optiml_magic.proposers.rewrites.launches import (
    AXES,
    expression,
    extents,
    launched,
    recut,
    relaunch,
)
from optiml_magic.source.directives import LaunchDirective, RequireDirective
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.expressions import Expression, Number, parse_expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optiml_magic.model.view import View
    from optiml_magic.source.program import Program

_ONE = parse_expression("1")


class CoalesceMapping:
    """Swaps x with another axis in the kernel and in its launch: the same threads, renamed."""

    name = "coalesce_mapping"

    def propose(self, program: Program, view: View) -> Iterator[Idea]:
        """The plain swap, and the swap with blocks 32 wide where the kernel takes any block."""
        del view
        for kernel, launch in launched(program):
            sizes = extents(program, launch)
            affine = Affine(kernel)
            if sizes is None or cooperative(kernel) or helpers_see_threads(kernel):
                continue
            for axis in range(1, len(sizes)):
                before, after = (_far_apart(affine, AXES[a]) for a in (0, axis))
                if sizes[axis] == 1 or before == 0 or after > before:
                    continue
                prior = 0.8 if after < before else 0.1
                for wide in (True, False):
                    text = _swapped(program, affine, launch, sizes, axis, wide=wide)
                    if text is not None:
                        yield self._idea(text, axis, prior=prior - 0.05 * (not wide))

    def _idea(self, text: tuple[str, str], axis: int, *, prior: float) -> Idea:
        return Idea.of(
            Proposal(
                text[0],
                f"swap threadIdx.x and threadIdx.{AXES[axis]}{text[1]}",
                self.name,
                "The lanes of a warp differ in threadIdx.x. Where that index is multiplied by a "
                "row's length, each lane touches a sector of its own; mapped to the unit stride, "
                "a warp's accesses share sectors.",
                Hypothesis(
                    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                    "lower",
                    "the lanes of a warp touch neighbouring elements",
                    (1.5, 8.0),
                ),
                prior=prior,
            )
        )


def _far_apart(affine: Affine, axis: str) -> int:
    """How many accesses are strided along ``axis``, those in loops weighed more."""
    found = accesses(affine)
    return sum(
        access.weight * (access.load + access.store)
        for access in found
        if pattern(affine, access, f"threadIdx.{axis}") in ("strided", "unknown")
    )


def _swapped(
    program: Program,
    affine: Affine,
    launch: LaunchDirective,
    sizes: tuple[int, ...],
    axis: int,
    *,
    wide: bool,
) -> tuple[str, str] | None:
    """The program with the axes swapped, and what the title adds; ``wide`` makes a warp a row."""
    grid = _swap((*launch.grid, *[_ONE] * (axis + 1 - len(launch.grid))), axis)
    block = _swap(launch.block, axis)
    note = ""
    if wide:
        threads = sizes[0] * sizes[axis]
        fits = threads % 32 == 0 and sizes[axis] % 32 != 0
        free = all(only_global(affine, AXES[a], sizes[a]) for a in (0, axis))
        if not fits or not free or _names_literals(affine.kernel, sizes):
            return None
        shape = {0: Number(32), axis: Number(threads // 32)}
        cut = {a: recut(grid[a], block[a].tree, shape[a]) for a in shape}
        if cut[0] is None or cut[axis] is None:
            return None
        grid = tuple(cut.get(a) or g for a, g in enumerate(grid))
        block = tuple(expression(shape[a]) if a in shape else b for a, b in enumerate(block))
        note = f", in blocks of 32 x {threads // 32}"
    new = replace(launch, grid=grid, block=block)
    edits = list(_renamed(affine.kernel, AXES[axis]))
    return apply(
        program.text, [relaunch(program, launch, new, _limits(program, grid)), *edits]
    ), note


def _limits(program: Program, grid: tuple[Expression, ...]) -> list[RequireDirective]:
    """A grid has at most 65535 blocks along y and z; x has no such limit."""
    names = {tune.name for tune in program.tunes}
    limits = [
        RequireDirective(parse_expression(f"{size} <= 65535"))
        for size in grid[1:]
        if size.names - names or size.arrays
    ]
    return [limit for limit in limits if limit not in program.requires]


def _swap(parts: tuple[Expression, ...], axis: int) -> tuple[Expression, ...]:
    swapped = list(parts)
    swapped[0], swapped[axis] = swapped[axis], swapped[0]
    return tuple(swapped)


def _renamed(kernel: Kernel, other: str) -> Iterator[Edit]:
    for node in kernel.builtins():
        axis = builtin(node)[-1]
        if axis in ("x", other):
            field = node.children[-1]
            yield Edit(field.start_byte, field.end_byte, other if axis == "x" else "x")


def _names_literals(kernel: Kernel, sizes: tuple[int, ...]) -> bool:
    """Whether a literal of the kernel stands for ``blockDim``, as in ``blockIdx.x * 16``."""
    for node in kernel.builtins():
        parent = node.parent
        if builtin(node).startswith("blockIdx") and parent is not None and (
            parent.type == "binary_expression"
            and any(kernel.text(c) in map(str, sizes) for c in parent.children)
        ):  # fmt: skip
            return True
    return False
