"""Whether a step leaves most of a chip idle that its blocks kept busy.

Rules see a block whose threads work together as one thread (``raised``), and some then deal its
work out anew. What the others make of it has a thread for each block, however much that does.
"""

from __future__ import annotations

import math
from dataclasses import replace

from optiml_magic.chips import CHIPS
from optiml_magic.errors import SourceError
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.sizes import measured, threads
from optiml_magic.source.directives import LaunchDirective
from optiml_magic.source.program import Program

_BUSY = 128  # threads of a multiprocessor from which on a launch keeps it busy: ours
_IDLE = 32  # below which it does not, a warp: ours
_LESS = 16  # times fewer threads, from which on a step has done more than share work: ours


def idle(made: Program, written: Kernel) -> str | None:
    """Why a program that a rule made is not offered: it leaves too few threads; else None.

    Asked of kernels whose threads work together alone: others may launch more than have work.
    """
    chip, before = CHIPS.get(written.chip), threads(written)
    if chip is None or before is None or before < _BUSY * chip.sms or not _together(written):
        return None
    old = {str(launch) for launch in written.program.launches} - {str(written.launch)}
    left = [_threads(written, made, d) for d in made.launches if str(d) not in old]
    most = max((n for n in left if n is not None), default=None)
    if most is None or None in left or most >= _IDLE * chip.sms or most * _LESS > before:
        return None
    return f"of {before} threads it leaves {most}, too few for the chip"


def _together(kernel: Kernel) -> bool:
    """Whether threads of a block have shared memory or exchange values."""
    try:
        calls = kernel.reading.calls
        shared = any(a.space == "shared" for a in kernel.reading.accesses)
    except NotLegal:
        return False
    return shared or any(name.startswith(("__shfl", "__reduce", "cub::")) for name in calls)


def _threads(kernel: Kernel, made: Program, launch: LaunchDirective) -> int | None:
    """The threads of a launch of another program at the sizes that a kernel is measured at."""
    known = replace(kernel, program=made)
    try:
        return math.prod(measured(known, size) for size in (*launch.grid, *launch.block))
    except SourceError:
        return None
