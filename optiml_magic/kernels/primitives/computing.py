"""Functions that do nothing but find a value from their arguments."""

from __future__ import annotations

from optiml_magic.kernels.expressions import Call, builtin
from optiml_magic.kernels.functions import bare, pure
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.places import reached
from optiml_magic.kernels.tree import Declare, Function, Verbatim, expressions, walk


def only_computes(kernel: Kernel, call: Call) -> bool:
    """Whether a function that touches no memory has no other effect, nor asks other lanes."""
    if call.receiver is not None or call.callee is not None:
        return False
    own = kernel.unit.called(call.function, len(call.arguments))
    if not own:
        return pure(bare(call.function))
    every_one = [f for one in own for f in (one, *reached(kernel.unit, one))]
    return all(_computes(kernel, function) for function in every_one)


def _computes(kernel: Kernel, function: Function) -> bool:
    """Whether what a function does with its arguments is all read, and changes none of them.

    What it finds is the same in all threads, where the arguments are.
    """
    if any(builtin(expr) for expr in expressions(function.body)):
        return False
    inside = [*walk(function.body)]
    locals_ = [v for s in inside if isinstance(s, Declare) for v in s.variables]
    if any(v.type.reference or v.type.depth or v.array for v in (*function.parameters, *locals_)):
        return False
    if any(v.storage != "local" for v in locals_) or any(isinstance(s, Verbatim) for s in inside):
        return False
    return all(
        pure(bare(expr.function)) or kernel.unit.called(expr.function, len(expr.arguments))
        for expr in expressions(function.body) if isinstance(expr, Call)
    )  # fmt: skip
