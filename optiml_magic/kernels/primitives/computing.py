"""Functions that do nothing but find a value from their arguments."""

from __future__ import annotations

from collections.abc import Collection

from optiml_magic.kernels.expressions import Call, Expr, builtin
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


def noticed(kernel: Kernel, inside: Collection[Expr]) -> list[str]:
    """What is called there, by functions of the text as well, that may do more than find a value.

    Loads and stores are the reading's, and none of these.
    """
    accesses = kernel.reading.accesses
    known = {a.own for a in accesses} | {a.node for a in accesses}
    calls = [e for e in inside if isinstance(e, Call)]
    own = {f for e in calls for f in kernel.unit.called(e.function, len(e.arguments))}
    own |= {f for one in own for f in reached(kernel.unit, one)}
    calls += [e for f in own for e in expressions(f.body) if isinstance(e, Call)]
    found = {f.name for f in own if any(isinstance(s, Verbatim) for s in walk(f.body))}
    for call in calls:
        computes = call in known or pure(bare(call.function))
        if not computes and not kernel.unit.called(call.function, len(call.arguments)):
            found.add(call.function)
    return sorted(found)
