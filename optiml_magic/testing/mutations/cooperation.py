"""Threads that no longer work together: barriers, atomics, shuffles, masks, what is cleared."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from optiml_magic.testing.mutations.base import Change, Function, replaced

_BARRIERS = re.compile(r"(?:__syncthreads|__syncwarp|(?:cg::|cooperative_groups::)?sync|.+\.sync)$")
_FENCES = re.compile(r"__threadfence(?:_block|_system)?$")
_UPDATES = {"atomicAdd": "{0} + ({1})", "atomicSub": "{0} - ({1})", "atomicMax": "max({0}, {1})",
            "atomicMin": "min({0}, {1})", "atomicOr": "{0} | ({1})", "atomicXor": "{0} ^ ({1})",
            "atomicAnd": "{0} & ({1})"}  # fmt: skip
_ATOMICS = {"atomicAdd": "atomicSub", "atomicMax": "atomicMin", "atomicMin": "atomicMax",
            "atomicOr": "atomicAnd", "atomicSub": "atomicAdd"}  # fmt: skip
_SHUFFLES = {"__shfl_down_sync": "__shfl_up_sync", "__shfl_up_sync": "__shfl_down_sync",
             "__shfl_xor_sync": "__shfl_down_sync", "__any_sync": "__all_sync",
             "__all_sync": "__any_sync", "__ballot_sync": "__match_any_sync"}  # fmt: skip
_FULL = re.compile(r"0x[fF]{8}[uU]?|FULL_MASK|FULL|~0u?|-1")


def _called(function: Function, node: Node) -> str:
    """The function that a statement calls and nothing more."""
    if node.type != "expression_statement" or not node.named_children:
        return ""
    (call, *_) = node.named_children
    called = call.child_by_field_name("function") if call.type == "call_expression" else None
    return function.text(called) if called is not None else ""


def barrier_dropped(function: Function, node: Node) -> Iterator[Change]:
    """``__syncthreads()``, ``__syncwarp()`` or a group's ``sync()`` is left out."""
    if _BARRIERS.match(_called(function, node)):
        yield replaced(node, ";")


def fence_dropped(function: Function, node: Node) -> Iterator[Change]:
    """``__threadfence()`` is left out."""
    if _FENCES.match(_called(function, node)):
        yield replaced(node, ";")


def barrier_of_a_warp(function: Function, node: Node) -> Iterator[Change]:
    """``__syncthreads()`` becomes ``__syncwarp()``."""
    if _called(function, node) == "__syncthreads":
        yield replaced(node, "__syncwarp();")


def atomic_dropped(function: Function, node: Node) -> Iterator[Change]:
    """``atomicAdd(&x, v)`` becomes ``x = x + v``."""
    name = _called(function, node)
    if name not in _UPDATES:
        return
    arguments = node.named_children[0].child_by_field_name("arguments")
    if arguments is not None and len(arguments.named_children) == 2:
        place, value = map(function.text, arguments.named_children)
        update = _UPDATES[name].format(f"*({place})", value)
        yield replaced(node, f"*({place}) = {update};")


def wrong_atomic(function: Function, node: Node) -> Iterator[Change]:
    """``atomicMax`` becomes ``atomicMin``."""
    called = node.child_by_field_name("function") if node.type == "call_expression" else None
    if called is not None and function.text(called) in _ATOMICS:
        yield replaced(called, _ATOMICS[function.text(called)])


def wrong_shuffle(function: Function, node: Node) -> Iterator[Change]:
    """``__shfl_down_sync`` becomes ``__shfl_up_sync``, ``__any_sync`` becomes ``__all_sync``."""
    called = node.child_by_field_name("function") if node.type == "call_expression" else None
    if called is not None and function.text(called) in _SHUFFLES:
        yield replaced(called, _SHUFFLES[function.text(called)])


def half_of_the_lanes(function: Function, node: Node) -> Iterator[Change]:
    """A mask of all lanes becomes one of the lower half."""
    arguments = node.child_by_field_name("arguments") if node.type == "call_expression" else None
    called = node.child_by_field_name("function")
    if arguments is None or called is None or not function.text(called).endswith("_sync"):
        return
    first = next(iter(arguments.named_children), None)
    if first is not None and _FULL.fullmatch(function.text(first)):
        yield replaced(first, "0x0000ffffu")


def shared_by_one_thread(function: Function, node: Node) -> Iterator[Change]:
    """A ``__shared__`` array becomes each thread's own."""
    if node.type == "declaration" and "extern" not in function.text(node):
        for child in node.children:
            if function.text(child) == "__shared__":
                yield replaced(child, "")
