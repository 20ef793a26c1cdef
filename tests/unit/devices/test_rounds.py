"""When sampling ends, on a clock that the test turns."""

from __future__ import annotations

import numpy as np

from optiml_magic.devices.base import Sampling
from optiml_magic.devices.rounds import sample, warm


class Card:
    """Batches of programs of known length, with noise; time passes by them alone."""

    def __init__(self, *lengths: float, noise: float = 0.0, cost: float = 1e-3) -> None:
        self.lengths, self.noise, self.cost = lengths, noise, cost
        self.time, self.order = 0.0, []
        self._rng = np.random.default_rng(0)

    def batch(self, at: int) -> float:
        self.order.append(at)
        self.time += self.cost
        return float(self.lengths[at] * np.exp(self.noise * self._rng.standard_normal()))

    def now(self) -> float:
        return self.time


def test_the_order_turns_round_in_each_round():
    card = Card(1.0, 2.0, 3.0, noise=0.3)
    found = sample(3, card.batch, Sampling(2, 2, 10.0), card.now)
    assert card.order == [0, 1, 2, 2, 1, 0] * 2
    assert [len(mine) for mine in found] == [4, 4, 4]


def test_a_quiet_pair_ends_early_and_a_noisy_one_goes_on():
    def rounds(noise: float) -> int:
        card = Card(1.0, 1.0, noise=noise)
        return len(sample(2, card.batch, Sampling(10, 100, 10.0), card.now)[0]) // 2

    quiet, noisy, hopelessly = rounds(0.001), rounds(0.01), rounds(0.2)
    assert quiet == 10
    assert 10 < noisy < 100
    assert hopelessly == 100


def test_the_end_is_due_to_the_width_alone():
    """The same noise ends after the same rounds, whether the programs differ or not."""
    cards = [Card(1.0, other, noise=0.01) for other in (1.0, 1.05, 3.0)]
    for card in cards:
        sample(2, card.batch, Sampling(10, 100, 10.0), card.now)
    assert len({len(card.order) for card in cards}) == 1


def test_time_is_up():
    card = Card(1.0, 1.0, noise=0.2, cost=0.1)
    found = sample(2, card.batch, Sampling(10, 100, 1.0), card.now)
    assert len(found[0]) == 4  # a third round would end after the second ran out
    found = sample(2, card.batch, Sampling(10, 100, 0.1), card.now)
    assert len(found[0]) == 2  # one is always taken


def test_only_a_hopeless_candidate_is_cut_after_one_round():
    def rounds(*lengths: float, hopeless: float) -> int:
        card = Card(*lengths, noise=0.001)
        sampling = Sampling(10, 100, 10.0, hopeless=hopeless)
        return len(sample(len(lengths), card.batch, sampling, card.now)[0]) // 2

    assert rounds(1.0, 2.2, hopeless=2.0) == 1
    assert rounds(1.0, 1.9, hopeless=2.0) == 10
    assert rounds(1.0, 2.2, hopeless=0.0) == 10
    assert rounds(1.0, 0.55, hopeless=0.25) == 1  # the fastest so far needs an eighth
    assert rounds(1.0, 2.2, 0.5, hopeless=2.0) == 10  # not while another one may win


def test_a_candidate_that_was_unlucky_once_is_not_cut():
    seconds = iter([1.0, 9.0, 1.0, 1.0] + [1.0] * 400)
    found = sample(2, lambda _: next(seconds), Sampling(10, 100, 10.0, hopeless=2.0), lambda: 0.0)
    assert len(found[0]) == 20


class TestWarm:
    def test_it_lasts_until_the_clock_no_longer_rises(self):
        time = 0.0

        def batch() -> float:  # the clock rises from a third for 0.2 s
            nonlocal time
            time += 2e-3
            return 1e-3 / min(1.0, 1 / 3 + time / 0.3)

        warm(batch, lambda: time)
        assert 0.2 < time < 0.4
        assert batch() == 1e-3

    def test_it_ends_where_nothing_is_ever_steady(self):
        time, at = 0.0, 0

        def batch() -> float:
            nonlocal time, at
            time, at = time + 2e-3, at + 1
            return 1e-3 * (1 + at % 97 / 97)

        warm(batch, lambda: time)
        assert 0.1 <= time < 2.0

    def test_a_long_batch_is_run_once(self):
        time = 0.0

        def batch() -> float:
            nonlocal time
            time += 2.0
            return 2.0

        assert warm(batch, lambda: time) == 1
