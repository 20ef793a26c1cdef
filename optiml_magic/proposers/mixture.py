"""Several proposers as one: their proposals interleaved by prior, equal texts once."""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.model.candidate import Proposal
from optiml_magic.model.view import View
from optiml_magic.proposers.base import Proposer


def mixed(proposers: Sequence[Proposer], view: View, count: int) -> list[Proposal]:
    """All proposals for a view, highest prior first."""
    found: dict[str, Proposal] = {}
    for proposer in proposers:
        for proposal in proposer.propose(view, count):
            earlier = found.get(proposal.text)
            if earlier is None or earlier.prior < proposal.prior:
                found[proposal.text] = proposal
    return sorted(found.values(), key=lambda proposal: -proposal.prior)
