"""What fits into the shared memory that every block may declare in its text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

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
        elif sum(one.bytes for one in held) + own.bytes > SHARED:
            refused.append(Refused(f"`{own.array}` no longer fits shared memory", own.line))
        else:
            held.append(own)
    return held, refused
