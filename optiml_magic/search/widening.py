"""Progressive widening: how many children a node may have after so many visits.

Source of the idea: Coulom 2007; KernelPro (arXiv 2606.26453) uses it for kernels. Constants are
ours.
"""

from __future__ import annotations

import math

from optiml_magic.search.tree import Node


def allowed_children(node: Node, factor: float, exponent: float) -> int:
    """``max(1, floor(C N^a))`` with the visits in flight counted."""
    visits = node.visits + node.pending
    return max(1, math.floor(factor * math.pow(visits, exponent)))


def may_widen(node: Node, factor: float, exponent: float) -> bool:
    """Whether a new child may be made now, as far as the count of visits goes."""
    return len(node.children) < allowed_children(node, factor, exponent)
