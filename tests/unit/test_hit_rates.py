"""Rates of hits, and what they do to priors and ranks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from optiml_magic.model.candidate import Proposal
from optiml_magic.model.codec import from_json, to_json
from optiml_magic.model.finding import Finding, Severity
from optiml_magic.model.hit_rates import MEAN, NO_EXPERIENCE, HitRates, Kind, Tally, action_name
from optiml_magic.model.idea import Idea

counts = st.integers(0, 200)
priors = st.floats(0.01, 0.99)


def tally(kind: Kind, name: str, applied: int, gained: int, roofline: str = "memory") -> Tally:
    return Tally(
        kind, name, "events", "hopper", roofline, applied, applied, gained=gained, measured=applied
    )


def idea(rule: str, prior: float, answers: str = "") -> Idea:
    return Idea.of(Proposal(f"{rule} {prior}", rule, rule, prior=prior, answers=answers))


def finding(tool: str, gain: float, severity: Severity = "warning") -> Finding:
    return Finding(tool, severity, "because", (), (), (1.0, gain))


@given(gained=counts, missed=counts)
def test_a_rate_is_a_proportion_and_few_tries_move_it_little(gained: int, missed: int) -> None:
    rates = HitRates((tally("rule", "tile", gained + missed, gained),))
    rate = rates.rate("rule", "tile", "memory")
    assert 0.0 < rate < 1.0
    if gained + missed:
        share = gained / (gained + missed)
        assert min(MEAN, share) - 1e-12 <= rate <= max(MEAN, share) + 1e-12
    better = HitRates((tally("rule", "tile", gained + missed + 1, gained + 1),))
    assert better.rate("rule", "tile", "memory") > rate


def test_what_is_unknown_has_the_mean_and_another_class_says_a_little() -> None:
    rates = HitRates((tally("rule", "tile", 20, 20, "memory"),))
    assert rates.rate("rule", "other", "memory") == MEAN
    here, there = (rates.rate("rule", "tile", name) for name in ("memory", "compute"))
    assert MEAN < there < here


def test_an_action_starts_from_the_rate_of_its_rule() -> None:
    rule, action = tally("rule", "tile", 40, 40), tally("action", action_name("far", "tile"), 4, 0)
    known, unknown = HitRates((rule, action)), HitRates((rule,))
    answering = idea("tile", 0.5, "far")
    (alone,) = known.weighed([idea("tile", 0.5)], "memory")
    (worse,) = known.weighed([answering], "memory")
    (same,) = unknown.weighed([answering], "memory")
    assert alone.prior == same.prior > worse.prior


@given(prior=priors, gained=counts, missed=counts)
def test_a_scaled_prior_stays_a_prior(prior: float, gained: int, missed: int) -> None:
    rates = HitRates((tally("rule", "tile", gained + missed, gained),))
    (found,) = rates.weighed([idea("tile", prior)], "memory")
    assert 0.0 < found.prior < 1.0
    rate = rates.rate("rule", "tile", "memory")
    if rate > MEAN:
        assert found.prior >= round(prior, 3) - 1e-9
    elif rate < MEAN:
        assert found.prior <= round(prior, 3) + 1e-9


def test_what_paid_off_is_tried_earlier_and_what_did_not_later() -> None:
    rates = HitRates((tally("rule", "tile", 10, 0), tally("rule", "swap", 10, 9)))
    tile, swap, new = rates.weighed(
        [idea("tile", 0.6), idea("swap", 0.5), idea("new", 0.55)], "memory"
    )
    assert swap.prior > new.prior > tile.prior
    assert new.prior == 0.55


def test_findings_are_ranked_within_their_severity() -> None:
    found = [
        finding("far", 8.0, "critical"),
        finding("few", 4.0),
        finding("wide", 3.0),
        finding("rare", 9.0, "note"),
    ]
    rates = HitRates((tally("tool", "few", 30, 0), tally("tool", "wide", 30, 25)))
    ranked = [f.tool for f in rates.ranked(found, "memory")]
    assert ranked == ["far", "wide", "few", "rare"]


@given(st.permutations([finding("a", 2.0), finding("b", 2.0, "note"), finding("c", 1.5)]))
def test_without_experience_nothing_changes(found: list[Finding]) -> None:
    ideas = [idea("a", 0.2), idea("b", 0.9), idea("c", 1.0)]
    assert NO_EXPERIENCE.ranked(found, "memory") == tuple(found)
    assert NO_EXPERIENCE.weighed(ideas, "memory") == ideas


def test_they_are_kept_in_a_journal_as_they_are() -> None:
    rates = HitRates((tally("tool", "far", 3, 1),))
    assert from_json(HitRates, to_json(HitRates, rates)) == rates
