"""Asking rules without a search, and making the texts of what they answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from optiml_magic.errors import SourceError
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Step
from optiml_magic.model.finding import Finding
from optiml_magic.model.idea import Idea
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.model.view import View
from optiml_magic.proposers.rewrites.base import Rewrite, answering
from optiml_magic.source.program import parse_program


def view_of(text: str, findings: Sequence[Finding] = ()) -> View:
    """A program that passed, with these findings."""
    candidate = Candidate(0, None, Proposal(text, "the input kernel", "user"))
    passed = Verdict(Outcome.PASSED, "")
    step = Step(candidate, Evaluation(0, "", passed, findings=tuple(findings)))
    return View(step, step)


def asked(
    rule: Rewrite, text: str, findings: Sequence[Finding] = ()
) -> tuple[list[Idea], list[Refusal]]:
    """A rule's ideas for a text in its order, lifted by the findings, and what it refuses."""
    found = list(rule.propose(parse_program(text), view_of(text, findings)))
    ideas = [answering(one, findings) for one in found if isinstance(one, Idea)]
    return ideas, [one for one in found if isinstance(one, Refusal)]


def made(ideas: Iterable[Idea]) -> list[Proposal]:
    """The proposals that ideas become, at every point that they begin with.

    Those that refuse late are left out.
    """
    texts = ((idea, idea.make()) for idea in ideas)
    return [
        idea.proposal(point)
        for idea, text in texts
        if isinstance(text, str)
        for point in points(idea, text)
    ]


def points(idea: Idea, text: str) -> list[str]:
    """The text that an idea became, and those of the other points that it begins with.

    A point that breaks a condition is left out, as the tuner does.
    """
    program, found = parse_program(text), [text]
    for start in idea.starts:
        with suppress(SourceError):
            found.append(program.with_values(start).text)
    return list(dict.fromkeys(found))
