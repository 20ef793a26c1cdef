"""Cooperative groups: where a thread stands in its block, tile or grid.

Source: CUDA C++ Programming Guide, "Cooperative Groups".
"""

from __future__ import annotations

from optiml_magic.kernels.expressions import Call
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.literals import number

BLOCK, GRID, TILE = "thread_block", "grid_group", "thread_block_tile"
_MADE = {"this_thread_block": BLOCK, "this_grid": GRID}
_PLACES = {
    (BLOCK, "group_index"): "blockIdx", (BLOCK, "thread_index"): "threadIdx",
    (BLOCK, "group_dim"): "blockDim", (BLOCK, "dim_threads"): "blockDim",
    (GRID, "group_dim"): "gridDim", (GRID, "dim_blocks"): "gridDim",
    (GRID, "block_index"): "blockIdx",
}  # fmt: skip
ASKING = frozenset(
    {
        "group_index", "thread_index", "group_dim", "dim_threads", "dim_blocks", "block_index",
        "thread_rank", "block_rank", "size", "num_threads", "meta_group_rank", "meta_group_size",
    }
)  # fmt: skip
SYNCS = frozenset({"sync", "arrive_and_wait", "wait", "barrier_wait", "arrive", "barrier_arrive"})


def made(call: Call) -> str | None:
    """The kind of group that a call makes: a tile says how many threads it has."""
    name = bare(call.function)
    if name in _MADE:
        return _MADE[name]
    if name == "tiled_partition" and call.template:
        read = number(call.template[0])
        if read is not None and isinstance(read[0], int):
            return f"{TILE}<{read[0]}>"
    return None


def _bare(kind: str) -> str:
    """The name of a group's type without its namespaces."""
    head, angle, rest = kind.partition("<")
    return head.rpartition("::")[2] + angle + rest


def is_block(kind: str) -> bool:
    return _bare(kind) == BLOCK


def tile_size(kind: str) -> int | None:
    """The threads of a tile."""
    kind = _bare(kind)
    if not kind.startswith(f"{TILE}<"):
        return None
    read = number(kind[len(TILE) + 1 : -1].partition(",")[0])
    return read[0] if read is not None and isinstance(read[0], int) else None


def place(kind: str, method: str) -> str | None:
    """The built-in variable that a method of a group gives."""
    return _PLACES.get((_bare(kind), method))
