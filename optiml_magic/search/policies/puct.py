"""Monte Carlo tree search: from the roots down, always the arm of the highest PUCT value.

    Q + c P sqrt(N + 1) / (1 + n)

with the visits N of the node and n of the arm, those in flight among them. Source of the form:
Rosin 2011 and Silver et al. 2017. Ours: a prior P is the chance that an edit pays off and is not
normalised, so that a node with many poor ideas is not explored for their number; Q is a blend of
the mean and the best reward below an arm, since one best kernel is looked for and not the best
average, scaled to [0, 1] by the rewards of the run; failures and what is in flight count as the
lowest of them; an idea that was never tried is worth more than the best of the run by the chance P,
and else the program that it is an edit of (first-play urgency), where P falls with each edit of the
same program that was tried and gained nothing; numbers are an arm of their own node, whose chance
falls likewise with each point. Most edits commute: what can be tried on a better child is tried
there, so that the second and the third edit of the best come before the others of the first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from optiml_magic.search.policies.base import Arm, Edit, Tune
from optiml_magic.search.tree import NOTHING, Lead, Node

if TYPE_CHECKING:
    from optiml_magic.search.search import TreeSearch

_ROUNDING = 1e-9  # far more than a sum of such scores is off by


@dataclass(frozen=True)
class Puct:
    """The constants are ours, chosen on drawn problems and pools of real kernels (docs/search.md).

    What is tried may gain ``headroom`` beyond the best, in the scale of the run: so that an untried
    recipe comes before the last numbers of the best program. Q is by ``average`` the mean, else the
    best reward. ``unasked`` is the prior of a node whose
    proposers were not asked yet, ``tuning`` that of its numbers; the edits of a node are trusted as
    if ``strength`` of them had been tried and gained already. After ``patience`` evaluations
    without a gain every other one goes to the best node that is not on the path of the best. A
    program whose reward is by more than ``worse`` below the best above it is tuned and not edited:
    1/16 is twice as slow. With ``waiting`` an idea that a better child has as well is tried there
    first.
    """

    headroom: float = 0.35
    exploration: float = 0.1
    average: float = 0.5
    unasked: float = 0.2
    tuning: float = 0.1
    strength: float = 1.0
    patience: int = 12
    worse: float = 1 / 16
    waiting: bool = True

    def choose(self, tree: TreeSearch) -> Arm | None:
        node = tree.fruitless or tree.base  # from there the way would be the same once more
        if node is tree.base and tree.stalled >= self.patience and tree.stalled % 2:
            node = tree.other_than(set(tree.best.path()) if tree.best else set()) or node
        scale = lowest, zero, factor = _scale(tree)
        exploration, average, most = self.exploration, self.average, 1 - self.average
        while not node.closed:
            lead = node.lead
            if lead is not None and lead.scale == scale:
                child, _, before, second, steepest = lead
                # Scored as in _best: calls would be most of the time.
                spread = exploration * math.sqrt(node.begun + 1)
                begun = child.begun
                lost = child.failures + child.pending
                mean = (child.value_sum + lowest * lost) / begun
                score = (
                    zero
                    + (mean * average + child.value_max * most - lowest) * factor
                    + spread * child.prior / (1 + begun)
                )
                if spread > before:
                    second += (spread - before) * steepest
                if score > second + _ROUNDING:
                    node = child
                    continue
            arm = self._best(tree, node, scale)
            if isinstance(arm, Node):
                node = arm
            elif arm is not None or node.pending:
                return arm
            else:
                node.close()
                node = tree.base
        return None

    def _best(
        self, tree: TreeSearch, node: Node, measure: tuple[float, float, float]
    ) -> Arm | Node | None:
        """An arm of the node itself, or the child to go on from; ties are broken at random."""
        edits = (node.untried or not node.spent) and self._near(node)
        waits = bool(edits and self.waiting and node.opened and _waits(node))
        edits = edits and not waits
        if not node.opened and not node.tunable:  # as most: nothing to weigh
            return Edit(node) if edits else None
        lowest, zero, scale = measure
        spread = self.exploration * math.sqrt(node.begun + 1)
        known = zero + (node.value - lowest) * scale
        average, most, ceiling = self.average, 1 - self.average, 1 + self.headroom
        highest = second = NOTHING
        steepest = 0.0
        best: list[Arm | Node] = []
        if edits:
            prior = node.untried[0].prior if node.untried else self.unasked
            kept = (self.strength + node.gains) / (self.strength + len(node.children))
            steepest = chance = prior * kept
            highest, best = known + chance * (ceiling - known) + spread * chance, [Edit(node)]
        if node.tunable and tree.tunable(node):
            chance = self.tuning * (self.strength + node.tuned) / (self.strength + node.points)
            steepest = max(steepest, chance)
            score = known + chance * (ceiling - known) + spread * chance
            if score > highest:
                second, highest, best = highest, score, [Tune(node)]
            elif score == highest:
                best.append(Tune(node))
            else:
                second = score
        for child in node.opened:  # most of the search's own time: no calls in here
            begun = child.begun
            lost = child.failures + child.pending
            mean = (child.value_sum + lowest * lost if lost else child.value_sum) / begun
            slope = child.prior / (1 + begun)
            score = (
                zero
                + (mean * average + child.value_max * most - lowest) * scale
                + spread * child.prior / (1 + begun)
            )
            if slope > steepest:  # noqa: PLR1730  # a call
                steepest = slope
            if score > highest:
                second, highest, best = highest, score, [child]
            elif score == highest:
                best.append(child)
            elif score > second:
                second = score
        chosen = best[0] if len(best) == 1 else None
        if isinstance(chosen, Node) and not waits:
            node.lead = Lead(chosen, measure, spread, second, steepest)
        else:
            node.lead = None
        return tree.rng.choice(best) if len(best) > 1 else chosen

    def _near(self, node: Node) -> bool:
        """Whether a node is not worse by more than ``worse`` than the best above it."""
        least = node.value + self.worse
        above = node.parent
        while above is not None and above.value <= least:
            above = above.parent
        return above is None


def _waits(node: Node) -> bool:
    """Whether the next idea of a node is one for the best of its better children as well."""
    if not node.untried:
        return False
    best = node
    for child in node.opened:  # max() would call for each of them
        if child.value_max > node.value and (best is node or child.value_max > best.value_max):
            best = child
    if best is node:
        return False
    key = node.untried[0].key
    return best.ground is None or any(idea.key == key for idea in best.untried)


def _scale(tree: TreeSearch) -> tuple[float, float, float]:
    """How rewards of the run become values in [0, 1]: the lowest, what it is worth, a factor."""
    width = tree.highest - tree.lowest
    return (tree.lowest, 0.0, 1 / width) if width > 0 else (tree.lowest, 0.5, 0.0)
