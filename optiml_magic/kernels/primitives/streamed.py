"""P22, stream: what a launch reads once is loaded so that caches let go of it first.

Then it pushes nothing out that is still needed, nor what waits to be written back. Source: PTX ISA,
"Cache Operators" (``.cs``); CUDA C++ Programming Guide, "Load Functions Using Cache Hints".
"""

from __future__ import annotations

import math
from collections.abc import Collection

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Call, Index, Unary
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.sizes import most_rounds, threads
from optiml_magic.kernels.reading import Access

_ONCE = (0.5, 1.25)  # times the bytes of an array, between which it counts as read once: ours
_WORDS = frozenset(
    [f"{sign}{kind}{many}" for sign in ("", "u") for kind in ("char", "short", "int")
     for many in ("", "2", "4")]
    + [f"unsigned {kind}" for kind in ("char", "short", "int", "long long")]
    + ["signed char", "long long", "unsigned", "float", "float2", "float4", "double", "double2"]
)  # fmt: skip


@primitive
def streamed(kernel: Kernel, names: Collection[str]) -> Kernel:
    """The kernel whose own loads of these arrays are the first that caches let go of."""
    swaps: dict[Node, Node] = {}
    for access in kernel.reading.accesses:
        if access.array not in names or not _in_its_text(access):
            continue
        match access.node:
            case Unary(op="*", operand=place):
                swaps[access.node] = Call(None, "__ldcs", (place,))
            case Index() as taken:
                swaps[taken] = Call(None, "__ldcs", (Unary(None, "&", taken),))
    if not swaps:
        raise NotLegal("nothing that is read once is loaded by the kernel's own text")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def read_once(kernel: Kernel, least: int) -> tuple[str, ...]:
    """The arrays of at least so many bytes that a launch only reads, each element once."""
    facts, count = kernel.facts, threads(kernel)
    if facts is None or count is None:
        return ()
    found = []
    for name, array in facts.arrays.items():
        touching = [a for a in kernel.reading.accesses if a.array == name]
        only_read = touching and all(map(_in_its_text, touching))
        if (
            not only_read
            or array.nbytes < least
            or any(facts.aliased(name, other) for other in facts.arrays if other != name)
        ):
            continue
        times = _bytes(kernel, touching, count) / array.nbytes
        if _ONCE[0] <= times <= _ONCE[1]:
            found.append(name)
    return tuple(found)


def _in_its_text(access: Access) -> bool:
    return (
        access.mode == "load" and access.space == "global" and access.call is None
        and not access.verbatim and access.element.name in _WORDS
        and isinstance(access.node, Index | Unary)
    )  # fmt: skip


def _bytes(kernel: Kernel, accesses: Collection[Access], count: int) -> float:
    """What all threads load at most, of branches that exclude each other the larger."""
    axes = {axis.name: most_rounds(kernel, axis) for axis in kernel.reading.axes}
    total, taken = 0.0, list[Access]()
    for access in accesses:
        rounds = [axes.get(name) for name in access.loops]
        if None in rounds:
            return math.inf
        own = count * (access.element.size or 1) * math.prod(n for n in rounds if n is not None)
        if not any(_excluded(access, other) for other in taken):
            total += own
            taken += [access] if own else []
    return total


def _excluded(one: Access, other: Access) -> bool:
    """Whether no thread makes both."""
    return any(~condition in other.guard for condition in one.guard)
