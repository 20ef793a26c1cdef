"""Blocks whose threads add up at an element of their block, an atomic operation each, as threads.

``for (k = threadIdx.x; k < n; k += blockDim.x) count += ...; atomicAdd(&out[blockIdx.x], count);``
is what a block with a tree in shared memory does as well: threads of such blocks are one thread.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive
from optiml_magic.kernels.primitives.gathered import gathered, sums
from optiml_magic.kernels.primitives.raised import raised
from optiml_magic.source.program import parse_program


@primitive
def added_up(kernel: Kernel) -> Kernel:
    """A kernel whose blocks add up an element each, as one of an element a thread."""
    if any(access.space == "shared" for access in kernel.reading.accesses):
        raise NotLegal("its threads share memory")
    found, _ = sums(kernel)
    if not found or not all(one.own_blocks(kernel) for one in found):
        raise NotLegal("its blocks have no element of their own to which all threads add")
    whole = gathered(kernel)
    made = whole if isinstance(whole, Refused) else raised(whole)
    if isinstance(made, Refused):
        raise NotLegal(made.reason, made.line)
    text = made.program.text
    for helper in combine.helpers((one.whole.reduction for one in found), "block", mask=False):
        if helper not in kernel.program.text:
            text = text.replace(helper.strip("\n") + "\n", "")
    program = parse_program(text)
    launch = next(d for d in program.launches if str(d) == str(made.launch))
    return replace(made, program=program, launch=launch)
