"""Rewrite rules as a proposer: every rule sees the program and its findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optiml_magic.errors import SourceError
from optiml_magic.proposers.rewrites import REWRITES
from optiml_magic.source.program import parse_program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optiml_magic.model.candidate import Proposal
    from optiml_magic.model.view import View
    from optiml_magic.proposers.rewrites.base import Rewrite


class RuleProposer:
    """Rules are cheap and exact, so all their proposals are given, whatever the count asked for."""

    name = "rules"

    def __init__(self, rewrites: Sequence[Rewrite] = REWRITES) -> None:
        self._rewrites = tuple(rewrites)

    def propose(self, view: View, count: int) -> Sequence[Proposal]:  # see above
        del count
        try:
            program = parse_program(view.step.candidate.text)
        except SourceError:
            return ()
        findings = view.step.evaluation.findings
        found = [p for rewrite in self._rewrites for p in rewrite.propose(program, findings)]
        return sorted(found, key=lambda proposal: -proposal.prior)
