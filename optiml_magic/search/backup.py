"""Backing a reward up the path, and closing what has nothing left below it."""

from __future__ import annotations

from optiml_magic.model.evaluation import Evaluation
from optiml_magic.search.tree import Node


def begin(leaf: Node) -> None:
    """Count a simulation as in flight on its whole path."""
    for node in leaf.path():
        node.pending += 1


def finish(leaf: Node, evaluation: Evaluation) -> None:
    """Give the leaf its evaluation and its reward to every node of the path."""
    leaf.evaluation = evaluation
    for node in leaf.path():
        node.pending -= 1
        node.visits += 1
        node.value_sum += evaluation.reward
        node.value_max = max(node.value_max, evaluation.reward)
    if not evaluation.verdict.passed or evaluation.duplicate_of is not None:
        close(leaf)


def close(node: Node) -> None:
    """Close a node, and every ancestor that has no other way to go on."""
    node.closed = True
    parent = node.parent
    if parent is None or parent.closed or not parent.spent or parent.untried:
        return
    if all(child.closed for child in parent.children):
        close(parent)
