"""What fits into the shared memory that every block may declare in its text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.sizes import threads

# Bytes a block; more is dynamic and has to be asked for. Source: CUDA C++ Programming Guide,
# "Compute Capabilities", technical specifications.
SHARED = 48 * 1024


class Held(Protocol):
    """An array of which a block holds the first ``count`` elements, in ``bytes``."""

    @property
    def array(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def line(self) -> int: ...


def room(kernel: Kernel) -> int:
    """Bytes of shared memory that a block may ask for at its launch, where it has none as yet."""
    chip = CHIPS.get(kernel.chip)
    own = any(access.space == "shared" for access in kernel.reading.accesses)
    if chip is None or own or kernel.launch.shared is not None:
        return SHARED
    return max(SHARED, chip.shared_bytes_per_block)


H = TypeVar("H", bound=Held)


def fitting(
    kernel: Kernel, found: Iterable[H | Refused], each: int
) -> tuple[list[H], list[Refused]]:
    """Those that fit together, in order, and why others do not.

    ``each`` are the threads that the kernel must have for each element of one.
    """
    held, refused, count = list[H](), list[Refused](), threads(kernel)
    for own in found:
        if isinstance(own, Refused):
            refused.append(own)
        elif count is not None and own.count * each > count:
            reason = f"{own.count} elements are too many for {count} threads"
            refused.append(Refused(reason, own.line))
        elif sum(one.bytes for one in held) + own.bytes > (SHARED if held else room(kernel)):
            refused.append(Refused(f"`{own.array}` no longer fits shared memory", own.line))
        else:
            held.append(own)
    return held, refused
