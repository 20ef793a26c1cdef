"""Normal form: ``x[i] += v`` is ``x[i] = x[i] + v``, a load and then a store of an element.

Steps that follow an element from one launch to the next see what is stored, and what is asked for.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Assign, Binary, Call, Step, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.items import is_plain
from optiml_magic.kernels.tree import Evaluate, walk

_OPS = frozenset({"+=", "-=", "*=", "/="})


@primitive
def assigned(kernel: Kernel) -> Kernel:
    """The kernel whose statements change no element of global memory by ``+=`` and its kin."""
    plain = {a.node for a in kernel.reading.accesses if a.space == "global" and is_plain(kernel, a)}
    swaps: dict[Node, Node] = {}
    for statement in walk(kernel.function.body):
        node = statement.expression if isinstance(statement, Evaluate) else None
        if not isinstance(node, Assign) or node.op not in _OPS or node not in plain:
            continue
        # The place is asked for twice then.
        if not any(isinstance(e, Assign | Step | Call) for e in every(node.target)):
            value = Binary(None, node.op[0], node.target, node.value)
            swaps[node] = Assign(None, "=", node.target, value)
    if not swaps:
        raise NotLegal("it changes no element where it is")
    return kernel.rewritten(edited(kernel.function.body, swaps))
