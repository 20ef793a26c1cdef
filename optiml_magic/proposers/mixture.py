"""Several proposers as one: their proposals interleaved by prior, equal texts once."""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.model.candidate import Proposal
from optiml_magic.model.hit_rates import NO_EXPERIENCE, HitRates
from optiml_magic.model.view import View
from optiml_magic.proposers.base import Proposer


def mixed(
    proposers: Sequence[Proposer],
    view: View,
    count: int,
    hit_rates: HitRates = NO_EXPERIENCE,
) -> list[Proposal]:
    """All proposals for a view, highest prior first; those that seldom paid off lose of theirs."""
    roofline = view.step.evaluation.roofline or ""
    found: dict[str, Proposal] = {}
    for proposer in proposers:
        for proposal in hit_rates.weighed(proposer.propose(view, count), roofline):
            earlier = found.get(proposal.text)
            if earlier is None or earlier.prior < proposal.prior:
                found[proposal.text] = proposal
    return sorted(found.values(), key=lambda proposal: -proposal.prior)
