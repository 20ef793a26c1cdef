"""Monte Carlo tree search: from the root down, always the arm of the highest PUCT value.

    Q + c P sqrt(N + 1) / (1 + n)

with the visits N of the node and n of the arm, those in flight among them. Source of the form:
Rosin 2011 and Silver et al. 2017. Ours: a prior P is the chance that an edit pays off and is not
normalised, so that a node with many poor ideas is not explored for their number; Q is half the
mean, half the best reward below an arm, since one best kernel is looked for and not the best
average, scaled to [0, 1] by the rewards of the run; failures and what is in flight count as the
lowest of them; an idea that was never tried is worth the best of the run by the chance P, and else
the program that it is an edit of (first-play urgency); numbers are an arm of their own node.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from optiml_magic.search.policies.base import Arm, Edit, Tune

if TYPE_CHECKING:
    from optiml_magic.search.search import TreeSearch
    from optiml_magic.search.tree import Node


@dataclass(frozen=True)
class Puct:
    """The constants are ours, chosen on small problems with known optima.

    ``unasked`` is the prior of a node whose proposers were not asked yet, ``tuning`` that of its
    numbers. After ``patience`` evaluations without a gain every other one goes to the best node
    that is not on the path of the best. A program whose reward is by more than ``worse`` below the
    best above it is tuned and not edited: 1/16 is twice as slow.
    """

    exploration: float = 0.25
    unasked: float = 0.5
    tuning: float = 0.2
    patience: int = 12
    worse: float = 1 / 16

    def choose(self, tree: TreeSearch) -> Arm | None:
        node = tree.root
        if tree.stalled >= self.patience and tree.stalled % 2:
            node = tree.other_than(set(tree.best.path()) if tree.best else set()) or node
        while True:
            if node.closed:
                return None
            arm = self._best(tree, node)
            if arm is None:
                if node.pending:
                    return None
                node.closed = True
                node = tree.root
            elif isinstance(arm, (Edit, Tune)):
                return arm
            else:
                node = arm

    def _best(self, tree: TreeSearch, node: Node) -> Arm | Node | None:
        """An arm of the node itself, or the child to go on from; ties are broken at random."""
        known = _scaled(tree, node.value)
        scored: list[tuple[float, Arm | Node]] = []
        for child in node.open_children():
            visits = child.visits + child.pending
            scored.append((self._value(quality(tree, child), child.prior, node, visits), child))
        if tree.editable(node) and node.value + self.worse >= max(n.value for n in node.path()):
            prior = node.untried[0].prior if node.untried else self.unasked
            hoped = known + prior * (1.0 - known)
            scored.append((self._value(hoped, prior, node, 0), Edit(node)))
        if tree.tunable(node):
            scored.append((self._value(known, self.tuning, node, node.points), Tune(node)))
        if not scored:
            return None
        highest = max(score for score, _ in scored)
        return tree.rng.choice([arm for score, arm in scored if score == highest])

    def _value(self, q: float, prior: float, node: Node, visits: int) -> float:
        total = node.visits + node.pending
        return q + self.exploration * prior * math.sqrt(total + 1) / (1 + visits)


def quality(tree: TreeSearch, node: Node) -> float:
    """Half the mean, half the best reward below a node, in [0, 1]."""
    visits = node.visits + node.pending
    lost = node.failures + node.pending
    mean = (node.value_sum + tree.lowest * lost) / visits
    return 0.5 * (_scaled(tree, mean) + _scaled(tree, node.value_max))


def _scaled(tree: TreeSearch, reward: float) -> float:
    width = tree.highest - tree.lowest
    return (reward - tree.lowest) / width if width > 0 else 0.5
