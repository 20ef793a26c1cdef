"""Monte Carlo tree search over edits: select, expand, evaluate, back up.

One evaluation is one simulation; there is no rollout, since a program can be measured where it
stands. ``ask`` and ``tell`` are separate so that a batch may be in flight; ``run`` is the loop on
top of them.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.idea import Idea, Ideas
from optiml_magic.model.refusal import Refusal, Refused
from optiml_magic.model.view import View
from optiml_magic.search import backup, selection, widening
from optiml_magic.search.tree import Node

Expand = Callable[[View, int], Ideas]
"""Ideas for a step, best first; if none of them becomes a new text there are no more."""


@dataclass(frozen=True)
class Policy:
    """Constants of the search; all are ours. See the modules named after them."""

    exploration: float = 0.7
    widening_factor: float = 1.5
    widening_exponent: float = 0.5
    proposals: int = 16  # asked of the proposers at a time


class Mcts:
    """The tree and its statistics. Deterministic for a seed and an order of ``tell``."""

    def __init__(
        self,
        root: Proposal,
        expand: Expand,
        *,
        policy: Policy = Policy(),
        seed: int = 0,  # frozen
    ) -> None:
        self._expand = expand
        self._policy = policy
        self._rng = random.Random(seed)  # noqa: S311  # a search, not a secret
        self._nodes = [Node(Candidate(0, None, root), None)]
        self._texts = {root.text}
        self._planned: set[frozenset[str]] = {frozenset()}
        self._asked_root = False

    @property
    def exhausted(self) -> bool:
        """Nothing is left to try: every node is closed, and no idea waits."""
        return self._nodes[0].closed and not any(node.later for node in self._nodes)

    @property
    def refused(self) -> Refused:
        """What the proposers would not do so far, by the candidate that it was about."""
        return {n.candidate.number: tuple(n.refused) for n in self._nodes if n.refused}

    def ask(self, count: int) -> list[Candidate]:
        """Up to ``count`` candidates to evaluate; fewer where too little is known yet."""
        if not self._asked_root:
            self._asked_root = True
            backup.begin(self._nodes[0])
            return [self._nodes[0].candidate]
        asked: list[Candidate] = []
        while len(asked) < count:
            leaf = self._grow()
            while leaf is None and self._reopened():
                leaf = self._grow()
            if leaf is None:
                break
            backup.begin(leaf)
            asked.append(leaf.candidate)
        return asked

    def tell(self, evaluations: Sequence[Evaluation]) -> None:
        """Report candidates that ``ask`` handed out, in any order."""
        for evaluation in evaluations:
            backup.finish(self._nodes[evaluation.candidate], evaluation)

    def _grow(self) -> Node | None:
        """Walk down to a node that may widen and give it a child; None if no node can."""
        node = self._nodes[0]
        if node.evaluation is None:
            return None
        while not node.closed:
            open_children = node.open_children()
            wide = widening.may_widen(
                node, self._policy.widening_factor, self._policy.widening_exponent
            )
            if wide or not open_children:
                child = self._new_child(node)
                if child is not None:
                    return child
                if not open_children:
                    if any(child.evaluation is None for child in node.children):
                        return None
                    backup.close(node)
                    node = self._nodes[0]
                    continue
            node = selection.best_child(node, self._policy.exploration, self._rng)
        return None

    def _new_child(self, node: Node) -> Node | None:
        found = self._next(node)
        if found is None and not node.spent:
            node.take(self._expand(self._view(node), self._policy.proposals), self._planned)
            found = self._next(node)
            node.spent = found is None
        if found is None:
            return None
        idea, text = found
        self._texts.add(text)
        candidate = Candidate(len(self._nodes), node.candidate.number, idea.proposal(text))
        child = Node(candidate, node, edits=node.edits | {idea.key})
        node.children.append(child)
        self._nodes.append(child)
        return child

    def _next(self, node: Node) -> tuple[Idea, str] | None:
        """The next idea that becomes a text which no candidate has yet, with that text."""
        while node.untried:
            idea = node.untried.popleft()
            made = idea.make()
            if isinstance(made, Refusal):
                node.refused[made] = None
            elif made not in self._texts:
                return idea, made
        return None

    def _reopened(self) -> bool:
        """Whether a closed tree goes on with ideas that waited: those of the best node first."""
        waiting = [node for node in self._nodes if node.later]
        if not self._nodes[0].closed or not waiting:
            return False
        best = max(waiting, key=lambda node: node.step.evaluation.reward)
        best.untried, best.later = best.later, deque()
        for node in best.path():
            node.closed = False
        return True

    def _view(self, node: Node) -> View:
        tried = tuple(child.step for child in node.children if child.evaluation)
        return View(node.step, self._nodes[0].step, tried)
