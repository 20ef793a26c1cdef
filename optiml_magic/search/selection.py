"""UCT over the children of a node.

Source: Kocsis and Szepesvari 2006 (UCT). Half mean, half maximum for Q is ours: the search looks
for one best kernel, not for the best average. Simulations in flight count as visits with the worst
reward (virtual loss, Chaslot et al. 2008), so that a batch spreads over the tree.
"""

from __future__ import annotations

import math
import random

from optiml_magic.search.tree import Node

WORST = -1.0


def quality(node: Node) -> float:
    """Half the mean reward, half the best one, with virtual losses in the mean. In [-1, 1]."""
    visits = node.visits + node.pending
    if not visits:
        return 0.0
    mean = (node.value_sum + WORST * node.pending) / visits
    return 0.5 * (mean + node.value_max)


def uct(parent: Node, child: Node, exploration: float) -> float:
    """Quality plus the exploration bonus ``c sqrt(ln N_parent / N_child)``."""
    parent_visits = max(1, parent.visits + parent.pending)
    child_visits = max(1, child.visits + child.pending)
    return quality(child) + exploration * math.sqrt(math.log(parent_visits) / child_visits)


def best_child(parent: Node, exploration: float, rng: random.Random) -> Node:
    """The open child of the highest UCT value; ties are broken at random."""
    scored = [(uct(parent, child, exploration), child) for child in parent.open_children()]
    highest = max(score for score, _ in scored)
    return rng.choice([child for score, child in scored if score == highest])
