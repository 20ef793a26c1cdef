"""A model's order of what waits to be tried: a prior, and held to what was measured.

OptiML has a language model as a judge; how it is used is not public, and all of this is ours. Its
order moves the chances of ideas by a quarter at most and decides nothing. It is compared with what
was measured, pair by pair as Kendall's tau is, and no longer followed where a coin does as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from optiml_magic.model.evaluation import Step
from optiml_magic.model.idea import Idea

_FIRST, _LEFT_OUT = 1.25, 0.8  # times the chance of the idea it would try first, and would not try
_ENOUGH = 10  # pairs to be judged by

Name = tuple[str, str]
"""An idea by its proposer and its title, which its step has as well."""


@dataclass(frozen=True)
class Agreement:
    """Of so many ``pairs`` of ideas, how many were measured ``in_order``."""

    in_order: int
    pairs: int

    @property
    def tau(self) -> float:
        """Kendall's rank correlation: 1 where all are in order, 0 for a coin, -1 for none."""
        return 2 * self.in_order / self.pairs - 1 if self.pairs else 0.0

    @property
    def is_below_chance(self) -> bool:
        """Whether there are pairs enough, and no more of them in order than a coin would have."""
        return self.pairs >= _ENOUGH and 2 * self.in_order <= self.pairs

    def __str__(self) -> str:
        return f"{self.in_order} of {self.pairs} pairs as they were measured (tau {self.tau:.2f})"


class Judge:
    """Keeps the ranks that a model gave to ideas for one program."""

    def __init__(self) -> None:
        self._ranks: list[tuple[int, Mapping[Name, int]]] = []

    def ordered(self, number: int, ideas: Sequence[Idea]) -> None:
        """The ideas for the candidate of this number, best first."""
        self._ranks.append((number, {_name(idea): rank for rank, idea in enumerate(ideas)}))

    def weights(
        self, number: int, waiting: Sequence[Idea], first: Sequence[int]
    ) -> Mapping[str, float]:
        """What the chance of each idea is multiplied by, by its key.

        ``first`` are the numbers of those that the model would try, best first, from 1.
        """
        chosen = [waiting[at - 1] for at in dict.fromkeys(first) if 0 < at <= len(waiting)]
        if not chosen:
            return {}
        ranks = {_name(idea): len(chosen) for idea in waiting}
        found = dict.fromkeys((idea.key for idea in waiting), _LEFT_OUT)
        for rank, idea in enumerate(chosen):
            ranks[_name(idea)] = rank
            found[idea.key] = _FIRST - (_FIRST - 1) * rank / len(chosen)
        self._ranks.append((number, ranks))
        return found

    def agreement(self, evaluated: Sequence[Step]) -> Agreement:
        """How the ranks compare with what was measured by now; equal rewards are no pair."""
        below: dict[int | None, dict[Name, float]] = {}
        for step in evaluated:
            proposal, found = step.candidate.proposal, step.evaluation
            if found.duplicate_of is None:
                reward = found.reward if found.verdict.passed else -math.inf
                rewards = below.setdefault(step.candidate.parent, {})
                rewards.setdefault((proposal.proposer, proposal.title), reward)
        pairs: dict[tuple[int, Name, Name], bool] = {}
        for number, ranks in self._ranks:  # of a pair that it ordered twice the later holds
            known = _measured(ranks, below.get(number, {}))
            for (name, one), (other, than) in combinations(known, 2):
                if ranks[name] != ranks[other] and one != than:
                    first, second = sorted((name, other))
                    pairs[number, first, second] = (one > than) == (ranks[name] < ranks[other])
        return Agreement(sum(pairs.values()), len(pairs))


def _name(idea: Idea) -> Name:
    return idea.proposer, idea.title


def _measured(
    ranks: Mapping[Name, int], rewards: Mapping[Name, float]
) -> Iterator[tuple[Name, float]]:
    """The reward of each idea that has a rank and was measured."""
    return ((name, rewards[name]) for name in ranks if name in rewards)
