"""Search problems with known best programs, drawn from a seed.

A program is a set of edits, one letter each and in any order the same, with tuned numbers behind
them: ``ab 3 0``. Its worth is a logarithm of a speed as the rewards are: 1/16 is twice as fast.
What a landscape says stands in its function; priors are noisy, as those of rules and findings are.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from optiml_magic.model.candidate import Candidate, Proposal, text_digest
from optiml_magic.model.evaluation import Evaluation, Step
from optiml_magic.model.idea import Idea, Ideas
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.space import Point, Space
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.model.view import View

_PASSED = Verdict(Outcome.PASSED, "")
_WRONG = Verdict(Outcome.WRONG, "as the landscape has it")
_TIME = Measurement("toy", "estimated", 1.0, 1.01, (), (), ())


@dataclass(frozen=True)
class Landscape:
    """One problem.

    ``gains`` are what single edits bring, ``together`` what sets of edits bring on top of it, and
    ``wrong`` edits fail. ``numbers`` are tuned names by the edit that brings them, "" for the input
    kernel, each with its best value of ``values`` and what a step away from it costs. ``paid``
    edits come from the input kernel's expansion alone, and cost money. ``noise`` is the standard
    deviation of what is reported; the worth itself has none. At most ``depth`` edits go together.
    """

    gains: dict[str, float]
    priors: dict[str, float]
    together: dict[frozenset[str], float] = field(default_factory=dict)
    wrong: frozenset[str] = frozenset()
    numbers: Mapping[str, tuple[tuple[int, float], ...]] = field(default_factory=dict)
    values: tuple[int, ...] = (0, 1, 2, 3, 4)
    paid: frozenset[str] = frozenset()
    noise: float = 0.0
    depth: int = 6

    @property
    def root(self) -> Proposal:
        """The input kernel."""
        return Proposal(self._text("", ()), "the input kernel", "user", prior=1.0)

    @cached_property
    def best(self) -> float:
        """The worth of the best program, over that of the input kernel."""
        useful = [e for e in self.gains if e not in self.wrong and self._may_help(e)]
        sets = (
            frozenset(chosen)
            for size in range(min(self.depth, len(useful)) + 1)
            for chosen in itertools.combinations(useful, size)
            if len(self.paid.intersection(chosen)) < 2
        )
        return max(map(self._structure, sets)) - self.worth(self.root.text)

    def worth(self, text: str) -> float:
        """Of a program that passes."""
        edits, numbers = _parsed(text)
        spaces = self._open(edits)
        lost = sum(
            cost * abs(number - best) for number, (best, cost) in zip(numbers, spaces, strict=True)
        )
        return self._structure(frozenset(edits)) - lost

    def share(self, text: str) -> float:
        """How much of the best gain a program has; 0 for one that fails."""
        if self.wrong & set(_parsed(text)[0]):
            return 0.0
        return (self.worth(text) - self.worth(self.root.text)) / self.best

    def expand(self, view: View, count: int) -> Ideas:
        """Every edit that is not there yet, best prior first."""
        del count
        text = view.step.candidate.text
        edits, _ = _parsed(text)
        if len(edits) >= self.depth:
            return Ideas()
        left = [e for e in self.gains if e not in edits and (e not in self.paid or not edits)]
        ranked = sorted(left, key=lambda edit: -self.priors[edit])
        return Ideas(tuple(self._idea(text, edit) for edit in ranked))

    def spaces(self, step: Step) -> Space | None:
        """The open numbers of a program."""
        edits, numbers = _parsed(step.candidate.text)
        if not numbers:
            return None
        names = [f"n{at}" for at in range(len(numbers))]
        present = dict(zip(names, numbers, strict=True))
        return Space(
            dict.fromkeys(names, self.values),
            present,
            lambda _: 1.0,
            lambda point: self._at(edits, names, point),
        )

    def evaluate(self, candidates: Sequence[Candidate]) -> list[Evaluation]:
        """What a search is told."""
        return [self._evaluation(candidate) for candidate in candidates]

    def _idea(self, text: str, edit: str) -> Idea:
        make, prior = partial(self._with, text, edit), self.priors[edit]
        return Idea(edit, "toy", make, edit, prior=prior, paid=edit in self.paid)

    def _evaluation(self, candidate: Candidate) -> Evaluation:
        text, number = candidate.text, candidate.number
        if self.wrong & set(_parsed(text)[0]):
            return Evaluation(number, text, _WRONG)
        noise = random.Random(text_digest(text)).gauss(0, self.noise) if self.noise else 0.0
        return Evaluation(number, text, _PASSED, _TIME, reward=self.worth(text) + noise)

    def _may_help(self, edit: str) -> bool:
        return self.gains[edit] > 0 or any(edit in edits for edits in self.together)

    def _structure(self, edits: frozenset[str]) -> float:
        # In one order: the rounding of a sum must not depend on that of a set.
        alone = sum(self.gains[edit] for edit in sorted(edits))
        return alone + sum(gain for needed, gain in self.together.items() if needed <= edits)

    def _open(self, edits: str) -> list[tuple[int, float]]:
        return [one for owner in ("", *edits) for one in self.numbers.get(owner, ())]

    def _with(self, text: str, edit: str) -> str:
        edits, numbers = _parsed(text)
        kept = iter(numbers)
        more = "".join(sorted((*edits, edit)))
        owners = [owner for owner in ("", *more) for _ in self.numbers.get(owner, ())]
        return self._text(more, [0 if owner == edit else next(kept) for owner in owners])

    def _at(self, edits: str, names: Sequence[str], point: Point) -> str:
        return self._text(edits, [point[name] for name in names])

    def _text(self, edits: str, numbers: Sequence[int]) -> str:
        given = numbers or [0] * len(self._open(edits))
        return " ".join((edits or "-", *map(str, given)))


def _parsed(text: str) -> tuple[str, list[int]]:
    edits, *numbers = text.split()
    return edits.strip("-"), [int(number) for number in numbers]


def _priors(rng: random.Random, gains: dict[str, float]) -> dict[str, float]:
    """What is known beforehand: half of the truth, and as much noise."""
    return {
        edit: min(0.9, max(0.05, 0.35 + 3 * gain + rng.gauss(0, 0.15)))
        for edit, gain in gains.items()
    }


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def deceptive(seed: int) -> Landscape:
    """Two recipes of two edits pay off, whose first edit loses up to a third of a doubling."""
    rng = random.Random(f"deceptive {seed}")
    gains = {e: rng.choice([-0.02, 0.0, 0.0, 0.01, 0.03]) for e in _LETTERS[:10]}
    a, b, c, d = rng.sample(sorted(gains), 4)
    gains |= {a: -0.02, b: 0.0, c: -0.015, d: 0.0}
    together = {frozenset((a, b)): 0.16, frozenset((c, d)): 0.06}
    return Landscape(gains, _priors(rng, gains), together)


def plateau(seed: int) -> Landscape:
    """Most edits bring nothing; three of them do together, and tell it by nothing before."""
    rng = random.Random(f"plateau {seed}")
    gains = dict.fromkeys(_LETTERS[:8], 0.0)
    chain = rng.sample(sorted(gains), 3)
    gains |= dict.fromkeys(rng.sample(sorted(gains), 2), 0.005)
    return Landscape(gains, _priors(rng, gains), {frozenset(chain): 0.15})


def many_poor(seed: int) -> Landscape:
    """Forty edits, of which four gain, ten are wrong and the rest lose."""
    rng = random.Random(f"many poor {seed}")
    edits = rng.sample(_LETTERS[:40], 40)
    gains = {e: -rng.uniform(0.0, 0.03) for e in edits}
    gains |= {e: rng.uniform(0.02, 0.06) for e in edits[:4]}
    return Landscape(gains, _priors(rng, gains), wrong=frozenset(edits[4:14]), depth=8)


def numbers(seed: int) -> Landscape:
    """Numbers of the input kernel matter little; those that two edits bring decide."""
    rng = random.Random(f"numbers {seed}")
    gains = {e: rng.choice([-0.01, 0.0, 0.01, 0.02]) for e in _LETTERS[:8]}
    a, b = rng.sample(sorted(gains), 2)
    gains |= {a: 0.08, b: 0.06}
    tuned = {
        "": ((rng.randrange(5), 0.002),),
        a: ((rng.randrange(1, 5), 0.02), (rng.randrange(1, 5), 0.004)),
        b: ((rng.randrange(1, 5), 0.012),),
    }
    return Landscape(gains, _priors(rng, gains), numbers=tuned)


def noisy(seed: int) -> Landscape:
    """Gains of the size of the noise beside two that are larger."""
    rng = random.Random(f"noisy {seed}")
    gains = {e: rng.choice([-0.02, -0.01, 0.0, 0.01]) for e in _LETTERS[:10]}
    gains |= {e: rng.uniform(0.04, 0.07) for e in rng.sample(sorted(gains), 3)}
    return Landscape(gains, _priors(rng, gains), noise=0.01)


def paid(seed: int) -> Landscape:
    """Rules promise much and bring little; four edits that were paid for bring much, or fail."""
    rng = random.Random(f"paid {seed}")
    rules = {e: rng.choice([-0.02, 0.0, 0.01, 0.02]) for e in _LETTERS[:12]}
    bought = dict(zip("WXYZ", rng.sample([0.12, 0.05, -0.05, 0.0], 4), strict=True))
    priors = dict.fromkeys(rules, 0.7) | dict.fromkeys(bought, 0.3)
    wrong = frozenset(e for e, gain in bought.items() if gain == 0.0)
    return Landscape(rules | bought, priors, wrong=wrong, paid=frozenset(bought))


def mixed(seed: int) -> Landscape:
    """Good edits, a recipe that loses before it pays, a number of every edit's own, small noise."""
    rng = random.Random(f"mixed {seed}")
    gains = {e: rng.choice([-0.02, 0.0, 0.0, 0.02, 0.05]) for e in _LETTERS[:9]}
    a, b = rng.sample(sorted(gains), 2)
    gains |= {a: -0.02, b: 0.0}
    tuned = {"": ((rng.randrange(5), 0.008),), a: ((rng.randrange(1, 5), 0.015),)}
    together = {frozenset((a, b)): 0.18}
    return Landscape(gains, _priors(rng, gains), together, numbers=tuned, noise=0.003)


def rivals(seed: int) -> Landscape:
    """Three recipes that exclude each other, each with its own numbers."""
    rng = random.Random(f"rivals {seed}")
    gains = {e: rng.choice([-0.02, 0.0, 0.005]) for e in _LETTERS[:6]}
    recipes = dict(zip("XYZ", rng.sample([0.16, 0.1, 0.07], 3), strict=True))
    priors = _priors(rng, gains) | dict(zip("XYZ", rng.sample([0.7, 0.6, 0.5], 3), strict=True))
    tuned = {
        recipe: ((rng.randrange(1, 5), 0.008), (rng.randrange(1, 5), 0.004)) for recipe in recipes
    }
    both = {frozenset(pair): -0.15 for pair in itertools.combinations("XYZ", 2)}
    return Landscape(gains | recipes, priors, both, numbers=tuned)


LANDSCAPES: dict[str, Callable[[int], Landscape]] = {
    "deceptive": deceptive,
    "plateau": plateau,
    "many poor": many_poor,
    "numbers": numbers,
    "noisy": noisy,
    "paid": paid,
    "mixed": mixed,
    "rivals": rivals,
}
