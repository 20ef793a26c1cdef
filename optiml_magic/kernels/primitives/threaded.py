"""P4, threads: blocks of which one thread works, as blocks of threads that all do.

``add<<<n, 1>>>`` and ``if (threadIdx.x == 0)`` around all that a block does leave the other lanes
of a warp idle. Blocks become threads along the same axes, with a guard.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import builtin
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import every_place_read, without_warps
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cutting import TOLD
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.firsts import decides
from optiml_magic.kernels.primitives.grids import most_threads
from optiml_magic.kernels.primitives.limits import with_limits
from optiml_magic.kernels.primitives.places import own_text_only
from optiml_magic.kernels.primitives.rowed import height_of
from optiml_magic.kernels.primitives.sizes import with_grid
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.tree import Block, If, Statement, expressions, walk
from optiml_magic.source.expressions import Call, Expression, Number, parse_expression

_THREAD = "threadIdx.x"
_BLOCKS = ((256,), (32, 8))  # by how many axes the grid has


@primitive
def threaded(kernel: Kernel) -> Kernel:
    """Blocks of one working thread as threads along x, and y, below the extents of the grid.

    A single one stays alone.
    """
    launch, effects = kernel.launch, Effects(kernel)
    alone = kernel.block == (1, 1, 1)
    if launch.shared is not None or not (alone or len(launch.block) == 1):
        raise NotLegal("its blocks have more than one axis")
    effects.straightforward()
    steps = {name for axis in kernel.reading.axes if axis.step for name in axis.step.symbols}
    if alone and "gridDim.x" in steps:
        raise NotLegal("its blocks take items a grid apart")  # which ``unstrided`` sees
    if not alone and not _first_alone(kernel):
        raise NotLegal("more than one thread of a block works")
    without_warps(kernel)
    own_text_only(kernel)
    every_place_read(kernel)
    if kernel.reading.calls & set(TOLD):
        raise NotLegal("it prints, which tells how many threads there are")
    if most_threads(kernel) < prod(_BLOCKS[0]):
        raise NotLegal("its launch bounds say how many threads a block has")
    axes = "xy"[: len(launch.grid)]
    counts = [_words_for(kernel, effects, extent) for extent in launch.grid[: len(axes)]]
    if None in counts or kernel.block[0] is None:
        raise NotLegal("how many blocks there are the kernel has no words for")
    single = all(str(extent) == "1" for extent in launch.grid)
    if alone and single and not any(map(builtin, expressions(kernel.function.body))):
        raise NotLegal("there is one thread in all")
    shape = (1,) * len(axes) if single else _BLOCKS[len(axes) - 1]
    others = {f"threadIdx.{axis}": text("0u") for axis in "xyz"}
    others |= {
        f"blockDim.{axis}": text(f"{extent}u")
        for axis, extent in zip("xyz", kernel.block, strict=True)
    }
    words = {
        axis: "0u" if single else f"(blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis})"
        for axis in axes
    }
    others |= {f"blockIdx.{axis}": text(place) for axis, place in words.items()}
    others |= {
        f"gridDim.{axis}": text(f"(unsigned int)({count})")
        for axis, count in zip(axes, counts, strict=True)
    }
    body = _decided(kernel)
    swaps: dict[Node, Node] = {
        e: others[name] for e in expressions(body) if (name := builtin(e)) in others
    }
    tests = () if single else map("{} >= {}".format, words.values(), counts)
    guard = [lines(f"if ({' || '.join(tests)}) return;")] * (not single)
    made = edited(body, swaps)
    launched = replace(
        launch,
        grid=(
            *(
                parse_expression("1" if single else f"cdiv({count}, {n})")
                for count, n in zip(counts, shape, strict=True)
            ),
            *launch.grid[len(axes) :],
        ),
        block=tuple(parse_expression(str(n)) for n in shape),
    )
    return with_grid(
        kernel.rewritten(
            replace(made, body=(*guard, *(replace(s, lead=None) for s in made.body))),
            launch=launched,
            directives=with_limits(kernel, launched, lambda _: []),
        )
    )


def _words_for(kernel: Kernel, effects: Effects, blocks: Expression) -> str | None:
    """How many blocks there are, of ``cdiv(n, 512)`` as well, where the kernel has words for it."""
    match blocks.tree:
        case Call("cdiv", (whole, Number(by))):
            words = height_of(kernel, effects, Expression(whole, str(Expression(whole, ""))))
            return f"(({words} - 1) / {by} + 1)" if words is not None else None
    return height_of(kernel, effects, blocks)


def _first_alone(kernel: Kernel) -> bool:
    """Whether nothing but the first thread of each block leaves anything behind."""
    guards = {a.guard for a in kernel.reading.accesses if a.mode != "load"}
    if _THREAD not in kernel.reading.symbols.table:
        return False
    left, symbols = -Polynomial.symbol(_THREAD), kernel.reading.symbols
    return bool(guards) and all(Ranges(guard, symbols).nonnegative(left) for guard in guards)


def _decided(kernel: Kernel) -> Block:
    """What the first thread of a block does: tests that ask for that alone are decided."""
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    for statement in walk(kernel.function.body):
        told = decides(kernel, statement, _THREAD) if isinstance(statement, If) else None
        if isinstance(statement, If) and told is not None:
            taken = statement.then if told[0] else statement.other
            swaps[statement] = (
                None
                if taken is None
                else tuple(taken.body if isinstance(taken, Block) else (taken,))
            )
    return edited(kernel.function.body, swaps)
