"""P20, bound registers: as few of them for a thread as so many blocks of a multiprocessor leave.

A thread that holds much has a compiler load all of it ahead, with registers for each load, until
few warps are left to wait for these. How many should be there is measured.
"""

from __future__ import annotations

import math

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.model.space import Point
from optiml_magic.source.directives import TuneDirective
from optiml_magic.source.expressions import parse_expression

_REGISTERS = 65536  # of a multiprocessor; CUDA C++ Programming Guide, "Compute Capabilities"
_RESIDENT = 2048  # threads of a multiprocessor that is full
_OTHERS = 16  # registers of a thread beside those that it holds: ours
_NAME = "RESIDENT"
_COUNTS = (1, 2, 3, 4, 5, 6, 8)


@primitive
def resident(kernel: Kernel, count: int) -> Kernel:
    """The kernel with registers for so many blocks, a number that is tuned."""
    if kernel.function.launch_bounds:
        raise NotLegal("its launch bounds say how many blocks there are", kernel.function.line)
    if None in kernel.block:
        raise NotLegal("how many threads its blocks have is not known", kernel.function.line)
    sizes = [str(size) for size in kernel.launch.block]
    block = " * ".join(f"({size})" if " " in size else size for size in sizes)
    name = kernel.fresh(_NAME)
    fits = parse_expression(f"{block} * {name} <= {_RESIDENT}")
    tune = TuneDirective(name, _COUNTS, count, fits)
    return kernel.rewritten(kernel.function.body, directives=[tune], bounds=f"{block}, {name}")


def points(kernel: Kernel, words: int) -> tuple[Point, ...]:
    """How many blocks have room where a thread holds so many words, and one more or less."""
    threads = math.prod(size or 1 for size in kernel.block)
    counts = [n for n in _COUNTS if n * threads <= _RESIDENT]
    fitting = [n for n in counts if n * threads * (words + _OTHERS) <= _REGISTERS]
    at = max(len(fitting) - 1, 0)
    near = (*counts[at : at + 2], *counts[max(at - 1, 0) : at])
    return tuple({kernel.fresh(_NAME): n} for n in near)
