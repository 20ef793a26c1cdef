"""Search over edits: ask for candidates, tell what became of them.

One evaluation is one simulation; there is no rollout, since a program can be measured where it
stands. ``ask`` and ``tell`` are separate so that a batch may be in flight; ``run`` in ``loop.py``
is the loop on top of them. Which structure is edited or tuned next is the policy's choice alone.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Step
from optiml_magic.model.idea import Idea
from optiml_magic.model.refusal import Refusal, Refused
from optiml_magic.model.space import Point
from optiml_magic.model.suggestion import HAND
from optiml_magic.model.view import View
from optiml_magic.search.policies.base import Arm, Policy, Tune
from optiml_magic.search.policies.puct import Puct
from optiml_magic.search.prefix import Prefix
from optiml_magic.search.sources import ByHand, Expand, Roots, Spaces, no_more, nobody, untuned
from optiml_magic.search.tree import Edits, Node
from optiml_magic.tuning.gaussian import Gaussian

_PROPOSALS = 16  # asked of the proposers at a time; ours


class TreeSearch:
    """The tree and what is in flight. Deterministic for a seed and an order of ``tell``.

    It begins from ``root``, the baseline of all, and then from what ``roots`` gives; once it gives
    none it is not asked again. ``base`` is above all roots and stands for no program. What comes
    ``by_hand`` is next, before all else.

    Ideas that were paid for are tried in the order in which they came, every other evaluation at
    least: a policy that liked others better would throw them away.
    """

    def __init__(
        self,
        root: Proposal,
        expand: Expand,
        spaces: Spaces = untuned,
        *,
        roots: Roots = no_more,
        by_hand: ByHand = nobody,
        policy: Policy | None = None,
        seed: int = 0,
    ) -> None:
        self._expand = expand
        self._spaces = spaces
        self._policy = policy or Puct()
        self._seed = seed
        self.rng = random.Random(seed)  # noqa: S311  # a search, not a secret
        self._roots: Roots | None = roots
        self._by_hand = by_hand
        self._seeds: deque[Proposal] = deque()
        self.base = Node(Candidate(-1, None, root), None, tunable=False, spent=True)
        self.root = Node(Candidate(0, None, root), self.base)
        self.base.children = (self.root,)
        self.nodes = [self.root]
        self.best: Node | None = None
        self.stalled = 0  # evaluations since the best was found
        self.lowest = self.highest = 0.0  # rewards of what passed
        self.fruitless: Node | None = None  # its arm came to nothing just now: all else stands
        self._count = 1
        self._texts = {root.text}
        self._planned: set[Edits] = {()}
        self._flying: dict[int, tuple[Node, Candidate, Point | None]] = {}
        self._places: dict[int, Node] = {}  # by the number of the candidate
        self._refused: dict[int, tuple[Refusal, ...]] = {}
        self._paid: deque[tuple[Node, Idea]] = deque()
        self._paid_last = False
        self._evaluated: list[Step] = []
        self._ranked: list[tuple[float, int, Node]] = []  # a heap of those with arms, best first
        self._waiting: list[tuple[float, int, Node]] = []  # a heap of those with ideas for later
        self._asked_root = False

    @property
    def exhausted(self) -> bool:
        """Nothing is left to try: every node is closed, and neither an idea nor a root waits."""
        begun = self._roots is None or self.root.best is None
        waiting = any(node.later for _, _, node in self._waiting)
        return begun and all(root.closed for root in self.base.children) and not waiting

    @property
    def refused(self) -> Refused:
        """What the proposers would not do so far, by the candidate that it was about."""
        return dict(self._refused)

    def step(self, number: int | None) -> Step | None:
        """A candidate that was told, None: the best so far; from any thread."""
        best = self.best
        if number is None:
            return best.best if best is not None else None
        told = Prefix(self._evaluated)
        return next((step for step in told if step.candidate.number == number), None)

    def ask(self, count: int) -> list[Candidate]:
        """Up to ``count`` candidates to evaluate; fewer where too little is known yet."""
        if not self._asked_root:
            self._asked_root = True
            return [self._sent(self.root, self.root.candidate, None)]
        asked: list[Candidate] = []
        while len(asked) < count and self.root.best is not None:
            candidate = self._next()
            if candidate is None:
                break
            asked.append(candidate)
        return asked

    def tell(self, evaluations: Sequence[Evaluation]) -> list[Step]:
        """Report candidates that ``ask`` handed out; the order within one call does not matter.

        The steps that they became, in the order of ``evaluations``.
        """
        told: dict[int, Step] = {}
        for evaluation in sorted(evaluations, key=lambda evaluation: evaluation.candidate):
            node, candidate, point = self._flying.pop(evaluation.candidate)
            step = told[candidate.number] = Step(candidate, evaluation)
            passed = evaluation.verdict.passed
            same = evaluation.duplicate_of
            if same is None:
                better = node.finish(step)
            else:
                better = False
                node.refer(step, self._places[same])
            if node.tuner is not None and point is not None:
                node.tuner.tell(point, evaluation.reward if passed else None)
                node.tunable = True  # it may go on from there
            if better:
                node.at = point or node.at
                if node.later:
                    self._push(self._waiting, node)
                if node.candidate.proposal.proposer == HAND:  # below what was closed, perhaps
                    node.reopen()
            if better or point is not None:
                self._push(self._ranked, node)
            self._evaluated.append(step)
            if same is None:
                self._rank(node, step)
        return [told[evaluation.candidate] for evaluation in evaluations]

    def _rank(self, node: Node, step: Step) -> None:
        self.stalled += 1
        if not step.evaluation.verdict.passed:
            return
        reward = step.evaluation.reward
        first = self.best is None
        self.lowest = reward if first else min(self.lowest, reward)
        if first or reward > self.highest:
            self.highest, self.best, self.stalled = reward, node, 0
            if node.step is not step:
                node.tuned += 1
            elif node.parent is not None:
                node.parent.gains += 1

    def editable(self, node: Node) -> bool:
        """Whether a node may have an idea left."""
        return bool(node.untried) or not node.spent

    def tunable(self, node: Node) -> bool:
        """Whether a node may have a point left; its space is looked at when first asked."""
        if node.tuner is None and node.tunable and node.step is not None:
            space = self._spaces(node.step)
            node.tunable = space is not None
            if space is not None:
                node.space, node.at = space, space.present
                node.tuner = Gaussian(space, node.starts, seed=self._seed)
                node.tuner.tell(space.present, node.step.evaluation.reward)
        return node.tunable

    def other_than(self, path: set[Node]) -> Node | None:
        """The best node with an arm of its own that is not on the path."""
        aside: list[tuple[float, int, Node]] = []
        found = None
        while self._ranked and found is None:
            entry = self._ranked[0]
            value, _, node = entry
            stale = -value < node.value or (aside and aside[-1] == entry)
            if stale or node.closed or not (self.editable(node) or self.tunable(node)):
                heapq.heappop(self._ranked)  # it comes back with a better value, a point or an idea
            elif node in path:
                aside.append(heapq.heappop(self._ranked))
            else:
                found = node
        for entry in aside:
            heapq.heappush(self._ranked, entry)
        return found

    def _push(self, heap: list[tuple[float, int, Node]], node: Node) -> None:
        if node.best is not None:
            heapq.heappush(heap, (-node.value, node.candidate.number, node))

    def _next(self) -> Candidate | None:
        """What is written by hand, or a program to begin from.

        Else what was paid for and what the policy wants, in turn.
        """
        first = self._edited() or self._begun()
        if first is not None:
            return first
        found = None if self._paid_last else self._bought()
        self._paid_last = found is not None
        self.fruitless = None
        while found is None:
            arm = self._policy.choose(self)
            self.fruitless = arm.node if arm is not None else None
            if arm is not None:
                found = self._tried(arm) or self._bought()
            elif (found := self._bought()) is None and (self._flying or not self._reopened()):
                break
        return found

    def _edited(self) -> Candidate | None:
        """What somebody wrote by hand, below the program that he began from.

        Where that did not pass, the tree goes on below the nearest above it that did; where it had
        come before by another way, below the one that it stands for.
        """
        suggestion = self._by_hand(self._count, len(self._evaluated))
        if suggestion is None:
            return None
        node = self._places[suggestion.parent]
        while node.same is not None:
            node = node.same
        while node.best is None and node.parent is not None:
            node = node.parent
        return self._child(node, suggestion.parent, Idea.of(suggestion.proposal), suggestion.text)

    def _begun(self) -> Candidate | None:
        """The next of the other roots; more are asked for when all of those before are told."""
        while self._roots is not None:
            while self._seeds:
                proposal = self._seeds.popleft()
                if proposal.text not in self._texts:
                    candidate = self._numbered(None, proposal)
                    edits = (f"root {candidate.digest}",)  # so that no other root plans the same
                    node = Node(candidate, self.base, proposal.prior, edits)
                    self.base.children += (node,)
                    self.nodes.append(node)
                    return self._sent(node, candidate, None)
            if any(root.step is None for root in self.base.children):
                return None
            self._seeds.extend(self._roots(Prefix(self._evaluated)))
            if not self._seeds:
                self._roots = None
        return None

    def _bought(self) -> Candidate | None:
        """The oldest idea that was paid for and becomes a new text."""
        while self._paid:
            made = self._made(*self._paid.popleft())
            if made is not None:
                return made
        return None

    def _tried(self, arm: Arm) -> Candidate | None:
        """A candidate of the arm; None where it came to nothing, and is no longer there."""
        if isinstance(arm, Tune):
            return self._tuned(arm.node)
        node = arm.node
        made = self._idea(node)
        if made is None and not node.spent:
            paid = len(self._paid)
            more = self._ask_proposers(node)
            made = self._idea(node)
            node.spent = made is None and not more and len(self._paid) == paid
        return made

    def _idea(self, node: Node) -> Candidate | None:
        """A child of the first idea of a node that becomes one."""
        while node.untried:
            idea, node.untried = node.untried[0], node.untried[1:]
            made = self._made(node, idea)
            if made is not None:
                return made
        return None

    def _ask_proposers(self, node: Node) -> bool:
        """Take their ideas; whether there may be more of them later."""
        node.ground = node.ground or node.best
        assert node.ground is not None
        answer = self._expand(self._view(node, node.ground), _PROPOSALS)
        node.take(answer, self._planned)
        if node.later:
            self._push(self._waiting, node)
        paid = [idea for idea in node.untried if idea.paid]
        if paid:
            self._paid += ((node, idea) for idea in paid)
            node.untried = tuple(idea for idea in node.untried if not idea.paid)
        self._tell_refused(node)
        return answer.more

    def _made(self, node: Node, idea: Idea) -> Candidate | None:
        """A child of the idea's text, where it becomes one that no candidate has yet."""
        made = idea.make()
        if isinstance(made, Refusal):
            node.refuse(made)
            self._tell_refused(node)
            return None
        if made in self._texts:
            return None
        assert node.ground is not None
        return self._child(node, node.ground.candidate.number, idea, made)

    def _child(self, node: Node, parent: int, idea: Idea, text: str) -> Candidate:
        candidate = self._numbered(parent, idea.proposal(text))
        child = Node(candidate, node, idea.prior, node.and_then(idea), idea.starts)
        node.children += (child,)
        self.nodes.append(child)
        return self._sent(child, candidate, None)

    def _tuned(self, node: Node) -> Candidate | None:
        assert node.best is not None
        while node.tuner is not None and node.space is not None and node.at is not None:
            point = node.tuner.ask()
            if point is None:
                node.tunable = False
                return None
            move = node.candidate.proposal.move
            proposal = node.space.proposal(point, node.at, move)
            if proposal.text not in self._texts:
                node.points += 1
                return self._sent(node, self._numbered(node.best.candidate.number, proposal), point)
            node.tuner.tell(point, None)
        return None

    def _numbered(self, parent: int | None, proposal: Proposal) -> Candidate:
        self._texts.add(proposal.text)
        self._count += 1
        return Candidate(self._count - 1, parent, proposal)

    def _sent(self, node: Node, candidate: Candidate, point: Point | None) -> Candidate:
        node.begin()
        self._flying[candidate.number] = node, candidate, point
        self._places[candidate.number] = node
        return candidate

    def _tell_refused(self, node: Node) -> None:
        if node.ground is not None and node.refused:
            self._refused[node.ground.candidate.number] = node.refused

    def _reopened(self) -> bool:
        """Whether a closed tree goes on with ideas that waited: those of the best node first."""
        while self._waiting:
            value, _, best = heapq.heappop(self._waiting)
            if not best.later or -value < best.value:
                continue  # reopened already, or it stands there again with its better value
            best.untried, best.later = best.later, ()
            best.reopen()
            for node in best.path():
                self._push(self._ranked, node)
            return True
        return False

    def _view(self, node: Node, step: Step) -> View:
        root, path, begun = self.root.step, [], node
        assert root is not None
        for one in node.path():
            if one is not self.base:
                begun = one
                if one.best is not None:
                    path.append(one.best)
        tried = [child.step for child in node.children if child.step] if node.children else ()
        return View(
            replace(step, refused=node.refused) if node.refused else step,
            root,
            tried=tuple(tried),
            origin=begun.step,
            path=tuple(path[::-1]),
            best=self.best.best if self.best else None,
            evaluated=Prefix(self._evaluated),
            find_queued=partial(self._queued, node),
        )

    def _queued(self, node: Node) -> tuple[Idea, ...]:
        return (*(idea for _, idea in self._paid), *node.untried, *node.later)
