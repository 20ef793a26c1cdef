"""Cooperative groups of a block and of its warps, as the barriers and shuffles that they stand for.

``cg::sync(block)`` is ``__syncthreads()``, ``warp.shfl_down(v, 4)`` of a tile of 32 threads
``__shfl_down_sync(0xffffffff, v, 4)``: what rules know of those then holds. Source: CUDA C++
Programming Guide, "Cooperative Groups".
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import Call, Expr, Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, kernels, primitive
from optiml_magic.kernels.tree import Declare, Variable, expressions, walk
from optiml_magic.source.program import Program

_WARP = 32
_SHUFFLES = {name: f"__{name}_sync" for name in ("shfl", "shfl_down", "shfl_up", "shfl_xor")}
_VOTES = {"ballot": "__ballot_sync", "any": "__any_sync", "all": "__all_sync"}
_COUNTS = ("size", "num_threads")
_BUILTINS = {
    "thread_index": "threadIdx", "group_index": "blockIdx", "group_dim": "blockDim",
    "dim_threads": "blockDim",
}  # fmt: skip


def all_ungrouped(program: Program) -> Program:
    """The program whose kernels call barriers and shuffles by their names."""
    for place in range(len(kernels(program, None))):
        made = ungrouped(kernels(program, None)[place])
        program = made.program if isinstance(made, Kernel) else program
    return program


@primitive
def ungrouped(kernel: Kernel) -> Kernel:
    """The kernel without the groups that it asks for such things alone."""
    if not _groups(kernel)[0]:
        raise NotLegal("it declares no cooperative group for its block")
    while swaps := _swaps(kernel):  # what one is given may be another
        kernel = kernel.rewritten(edited(kernel.function.body, swaps))
    for _ in range(2):  # the warps of a block first, which ask for it
        asked = {e.variable for e in expressions(kernel.function.body) if isinstance(e, Name)}
        blocks, warps = _groups(kernel)
        gone: dict[Node, Node | None] = {
            s: None for s in walk(kernel.function.body)
            if isinstance(s, Declare) and {*s.variables} <= (blocks | warps) - asked
        }  # fmt: skip
        kernel = kernel.rewritten(edited(kernel.function.body, gone)) if gone else kernel
    return kernel


def _swaps(kernel: Kernel) -> dict[Node, Node | None]:
    blocks, warps = _groups(kernel)
    swaps: dict[Node, Node | None] = {}
    for call in (e for e in expressions(kernel.function.body) if isinstance(e, Call)):
        group, name, given = _asked(call)
        words = None
        if group in blocks:
            words = _of_block(kernel, name, given)
        elif group in warps:
            words = _of_warp(kernel, name, given)
        if words is not None:
            swaps[call] = text(words)
    return swaps


def _groups(kernel: Kernel) -> tuple[set[Variable], set[Variable]]:
    """The locals that are all threads of a block, and those that are a warp of them."""
    blocks, warps = set[Variable](), set[Variable]()
    for statement in walk(kernel.function.body):
        for variable in statement.variables if isinstance(statement, Declare) else ():
            match variable.value:
                case Call(function=function, arguments=(), receiver=None, callee=None) if (
                    _bare(function) == "this_thread_block"
                ):
                    blocks.add(variable)
                case Call(function=function, template=(width,), arguments=(Name(variable=of),)) if (
                    _bare(function) == "tiled_partition" and width == str(_WARP) and of in blocks
                ):
                    warps.add(variable)
    return blocks, warps


def _asked(call: Call) -> tuple[Variable | None, str, tuple[Expr, ...]]:
    """The group that a call is of, what it asks, and what it is given for that."""
    if isinstance(call.receiver, Name):
        return call.receiver.variable, call.function, call.arguments
    if _bare(call.function) == "sync" and len(call.arguments) == 1:
        (only,) = call.arguments
        return only.variable if isinstance(only, Name) else None, "sync", ()
    return None, "", ()


def _of_block(kernel: Kernel, name: str, given: tuple[Expr, ...]) -> str | None:
    if given:
        return None
    if name == "sync":
        return "__syncthreads()"
    if name == "thread_rank":
        return _rank(kernel)
    if name in _COUNTS:
        return "blockDim.x" if _is_row(kernel) else "(blockDim.x * blockDim.y * blockDim.z)"
    return _BUILTINS.get(name)


def _of_warp(kernel: Kernel, name: str, given: tuple[Expr, ...]) -> str | None:
    shown = [kernel.spelled(e) for e in given]
    if name == "sync" and not given:
        return "__syncwarp()"
    if name == "thread_rank" and not given:
        return f"({_rank(kernel)} % {_WARP})"
    if name == "meta_group_rank" and not given:
        return f"({_rank(kernel)} / {_WARP})"
    if name in _COUNTS and not given:
        return str(_WARP)
    if (name in _SHUFFLES and len(given) == 2) or (name in _VOTES and len(given) == 1):
        return f"{(_SHUFFLES | _VOTES)[name]}(0xffffffff, {', '.join(shown)})"
    return None


def _rank(kernel: Kernel) -> str:
    if _is_row(kernel):
        return "threadIdx.x"
    return "((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x)"


def _is_row(kernel: Kernel) -> bool:
    return kernel.block[1:] == (1, 1)


def _bare(function: str) -> str:
    return function.rpartition("::")[2]
