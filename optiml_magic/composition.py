"""What a search is put together from, run or asked by hand.

With ``session.py`` and ``optimize.py`` the only places that name concrete members.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import partial

from optiml_magic.evaluation import Evaluator
from optiml_magic.journal import SCHEMA, About, Journal, RunHeader
from optiml_magic.model.candidate import Proposal
from optiml_magic.problem import Problem
from optiml_magic.proposers.base import Proposer
from optiml_magic.proposers.mixture import informed, mixed
from optiml_magic.proposers.rewrites import REWRITES
from optiml_magic.proposers.rules import RuleProposer
from optiml_magic.proposers.spaces import space_of
from optiml_magic.provenance import inputs_digest, options_digest, source_digest
from optiml_magic.search.policies import POLICIES
from optiml_magic.search.policies.base import Policy
from optiml_magic.search.search import Expand, TreeSearch
from optiml_magic.session import Session
from optiml_magic.settings import Settings


def proposers_of(
    members: Session, settings: Settings, model: Proposer | None
) -> tuple[Proposer, ...]:
    """The rules, and a language model where there is one."""
    rules = RuleProposer((*REWRITES, *members.plugins.rules), exact=settings.exact)
    return (rules, *([model] if model else []))


def remembered(proposers: Sequence[Proposer], journal: Journal) -> Expand:
    """What the proposers answer, or answered in the run of the journal; rules are free to ask."""
    propose = partial(mixed, proposers, hit_rates=journal.hit_rates)
    return journal.remember_expand(propose, partial(mixed, proposers[:1]))


def tree_of(
    problem: Problem,
    evaluator: Evaluator,
    expand: Expand,
    settings: Settings,
    policy: Policy | None = None,
) -> TreeSearch:
    """The search from the input kernel; ``policy`` overrules that of the settings."""
    return TreeSearch(
        Proposal(problem.program.text, "the input kernel", "user", prior=1.0),
        informed(expand, evaluator.facts),
        partial(space_of, evaluator.facts),
        policy=policy or POLICIES[settings.policy](),
        seed=settings.seed,
    )


def about_of(problem: Problem, members: Session, model: str) -> About:
    """What a report says of a run beside its steps; ``model`` says why it was taken."""
    notes = (*problem.notes, *members.plugins.notes)
    return About(members.choice.reason, problem.oracle, problem.launch, notes, model)


def header_of(
    problem: Problem,
    members: Session,
    settings: Settings,
    proposers: Sequence[Proposer],
    batch: int,
) -> RunHeader:
    """What the first line of the journal says of a new run."""
    reference = problem.task.reference
    return RunHeader(
        schema=SCHEMA,
        run=f"{problem.name}-{uuid.uuid4().hex[:8]}",
        task=problem.name,
        program=problem.program.text,
        inputs_digest=inputs_digest(problem, settings),
        reference=getattr(reference, "__qualname__", "") if reference else "",
        reference_digest=source_digest(reference) if reference else "",
        device=members.choice.name,
        compiler=members.tools.compiler.version,
        seed=settings.seed,
        policy=settings.policy,
        batch=batch,
        proposers=tuple(proposer.name for proposer in proposers),
        plugins=members.plugins.names,
        exact=settings.exact,
        options_digest=options_digest(members.tools.options, problem.program.text),
        objective=settings.objective,
    )
