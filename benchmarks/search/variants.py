"""The searches that are compared: the policies, and the tree search with a part of it off."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from optiml_magic.model.candidate import Proposal
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.idea import Idea, Ideas
from optiml_magic.model.view import View
from optiml_magic.search.policies import POLICIES
from optiml_magic.search.policies.base import Policy
from optiml_magic.search.policies.puct import Puct
from optiml_magic.search.search import TreeSearch
from optiml_magic.search.sources import Expand, Spaces, untuned

#: The rules that leave what a thread does as it is: a text without the others has no recipe.
SMALL = frozenset((
    "restrict_readonly", "unroll_static", "float_literals", "fast_functions", "block_size",
    "index_strength", "pad_shared",
))  # fmt: skip
_ALIKE = 0.5  # every prior, where none is told
_NEVER = 10**9


@dataclass(frozen=True)
class Variant:
    """One search. ``without`` says what of it is off; "" where nothing is.

    ``priors``: chances of ideas are told, and order them. ``merged``: a program that came before by
    another way is known, and what is planned elsewhere waits. ``tuned``: numbers are. ``recipes``:
    rules that change what a thread does may be used. ``experience``: what comes with the package.
    """

    name: str
    make: Callable[[], Policy]
    without: str = ""
    priors: bool = True
    merged: bool = True
    tuned: bool = True
    recipes: bool = True
    experience: bool = False

    def tree(self, root: Proposal, expand: Expand, spaces: Spaces, seed: int) -> TreeSearch:
        """The search from a root; ``expand`` knows of the experience, where there is to be any."""
        return TreeSearch(
            root,
            partial(self._ideas, expand, seed),
            spaces if self.tuned else untuned,
            policy=self.make(),
            seed=seed,
        )

    def told(self, evaluation: Evaluation) -> Evaluation:
        """What the search is told of an evaluation."""
        return evaluation if self.merged else replace(evaluation, duplicate_of=None)

    def _ideas(self, expand: Expand, seed: int, view: View, count: int) -> Ideas:
        answer = expand(view, count)
        ideas = [idea for idea in answer.ideas if self.recipes or idea.proposer in SMALL]
        digest = view.step.candidate.digest
        if not self.priors:
            random.Random(f"{seed} {digest}").shuffle(ideas)
            ideas = [replace(idea, prior=_ALIKE) for idea in ideas]
        if not self.merged:
            ideas = [_of_its_own(idea, digest) for idea in ideas]
        return Ideas(tuple(ideas), answer.refused)


def _of_its_own(idea: Idea, digest: str) -> Idea:
    """An idea that is the same as no other program's."""
    return replace(idea, key=f"{idea.key} of {digest}")


def _without(part: str, **more: object) -> Variant:
    fields = Puct.__dataclass_fields__
    constants = {name: value for name, value in more.items() if name in fields}
    others = {name: value for name, value in more.items() if name not in fields}
    return Variant("mcts", partial(Puct, **constants), part, **others)  # type: ignore[arg-type]


RIVALS = tuple(Variant(name, make) for name, make in POLICIES.items())
FULL = RIVALS[0]
PARTS = (
    _without("priors", priors=False),
    _without("exploration", exploration=0.0),
    _without("hope beyond the best", headroom=0.0),
    _without("the mean of what is below", average=0.0),
    _without("the best of what is below", average=1.0),
    _without("chances that fall", strength=float(_NEVER)),
    _without("leaving after a stall", patience=_NEVER),
    _without("the bound on what is edited", worse=float(_NEVER)),
    _without("waiting for the better child", waiting=False),
    _without("transpositions", merged=False),
    _without("the tuner", tuned=False),
    _without("recipes", recipes=False),
)
WITH_EXPERIENCE = replace(FULL, name="mcts with experience", experience=True)
VARIANTS = (*RIVALS, WITH_EXPERIENCE, *PARTS)
