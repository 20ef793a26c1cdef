"""``__ldg(&x[i])`` as ``x[i]``: for an array that the kernel writes as well, once it does.

Source: CUDA C++ Programming Guide, "Read-Only Data Cache Load Function": of data that is read-only
for as long as the kernel runs.
"""

from __future__ import annotations

from collections.abc import Collection

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Call, Unary
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive

_READ_ONLY = "__ldg"


@primitive
def coherent(kernel: Kernel, arrays: Collection[str]) -> Kernel:
    """The kernel with plain loads of these arrays; there must be others."""
    swaps: dict[Node, Node] = {}
    for access in (a for array in arrays for a in kernel.reading.of(array)):
        match access.node:
            case Call(function=function, arguments=(address,)) if function == _READ_ONLY:
                if access.call is not None:
                    raise NotLegal(f"a function loads `{access.array}` as if nobody wrote it")
                plain = (
                    address.operand if isinstance(address, Unary) and address.op == "&" else None
                )
                swaps[access.node] = plain or Unary(None, "*", address)
    if not swaps:
        raise NotLegal("all its loads of what is written are plain", kernel.function.line)
    return kernel.rewritten(edited(kernel.function.body, swaps), tidy=False)


def reads_only(kernel: Kernel, arrays: Collection[str]) -> bool:
    """Whether a load of one of these arrays says that nobody writes it."""
    return any(
        isinstance(a.node, Call) and a.node.function == _READ_ONLY
        for array in arrays for a in kernel.reading.of(array)
    )  # fmt: skip
