"""Monte Carlo tree search over edits: select, expand, evaluate, back up.

One evaluation is one simulation; there is no rollout, since a program can be measured where it
stands. ``ask`` and ``tell`` are separate so that a batch may be in flight; ``run`` is the loop on
top of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.idea import Ideas
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
        self._asked_root = False

    @property
    def exhausted(self) -> bool:
        """Nothing is left to try: every node is closed."""
        return self._nodes[0].closed

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
        proposal = self._next_text(node)
        if proposal is None and not node.spent:
            node.take(self._expand(self._view(node), self._policy.proposals))
            proposal = self._next_text(node)
            node.spent = proposal is None
        if proposal is None:
            return None
        self._texts.add(proposal.text)
        child = Node(Candidate(len(self._nodes), node.candidate.number, proposal), node)
        node.children.append(child)
        self._nodes.append(child)
        return child

    def _next_text(self, node: Node) -> Proposal | None:
        """The next idea that becomes a text which no candidate has yet."""
        while node.untried:
            idea = node.untried.popleft()
            made = idea.make()
            if isinstance(made, Refusal):
                node.refused[made] = None
            elif made not in self._texts:
                return idea.proposal(made)
        return None

    def _view(self, node: Node) -> View:
        tried = tuple(child.step for child in node.children if child.evaluation)
        return View(node.step, self._nodes[0].step, tried)
