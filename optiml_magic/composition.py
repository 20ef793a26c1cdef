"""What a search is put together from, run or asked by hand.

With ``session.py`` and ``optimize.py`` the only places that name concrete members. The rules load
when a search asks for them: they are half of what all the commands would load.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from optiml_magic.engines.base import Engine
from optiml_magic.engines.inline import Inline
from optiml_magic.engines.pool import Pool
from optiml_magic.evaluation import Evaluator
from optiml_magic.journal import Journal
from optiml_magic.model.candidate import Proposal
from optiml_magic.model.experience import NOTHING_KNOWN, Known
from optiml_magic.model.thought import BASELINES, Author, Wave
from optiml_magic.model.view import View
from optiml_magic.problem import Problem
from optiml_magic.proposers.base import Proposer
from optiml_magic.proposers.mixture import informed, mixed
from optiml_magic.search.loop import Batches
from optiml_magic.search.policies import POLICIES
from optiml_magic.search.policies.base import Policy
from optiml_magic.search.search import TreeSearch
from optiml_magic.search.sources import Expand, Roots, Sources, no_more
from optiml_magic.session import Session
from optiml_magic.settings import Settings

if TYPE_CHECKING:
    from optiml_magic.proposers.thinking import Thinker


def proposers_of(
    members: Session, settings: Settings, model: Proposer | None
) -> tuple[Proposer, ...]:
    """The rules, and a language model where there is one."""
    from optiml_magic.proposers.rewrites import REWRITES
    from optiml_magic.proposers.rules import RuleProposer

    rules = RuleProposer((*REWRITES, *members.plugins.rules), exact=settings.exact)
    return (rules, *([model] if model else []))


def remembered(
    proposers: Sequence[Proposer],
    journal: Journal,
    find_known: Callable[[View], Known] = lambda _: NOTHING_KNOWN,
) -> Expand:
    """What the proposers answer, or answered in the run of the journal; rules are free to ask.

    ``find_known`` says what is known of kernels like the one of a view.
    """
    propose = partial(mixed, hit_rates=journal.hit_rates, find_known=find_known)
    return journal.remember_expand(partial(propose, proposers), partial(propose, proposers[:1]))


def roots_of(thinker: Thinker | None, journal: Journal) -> Roots:
    """What the search begins from beside the input kernel: what was thought of, now or then."""
    if thinker is None and not journal.waves:
        return no_more
    return journal.remember_waves(thinker or (lambda *_: Wave(())))


def batches_of(members: Session) -> Batches:
    """How the engine of a session wants to be asked."""
    return (Inline if members.choice.is_emulated else Pool).batches


def engine_of(members: Session, evaluator: Evaluator, goes_on: Callable[[], bool]) -> Engine:
    """Who evaluates, as long as the search ``goes_on``."""
    if members.choice.is_emulated:
        return Inline(evaluator, goes_on)
    return Pool(evaluator, members.compilers, goes_on)


def tree_of(
    problem: Problem,
    evaluator: Evaluator,
    sources: Sources,
    settings: Settings,
    policy: Policy | None = None,
    *,
    author: Author | None = None,
) -> TreeSearch:
    """The search from the input kernel; ``policy`` overrules that of the settings.

    ``author`` is of the input kernel.
    """
    from optiml_magic.proposers.spaces import space_of

    return TreeSearch(
        Proposal(problem.program.text, BASELINES[author], author or "user", prior=1.0),
        informed(sources.expand, evaluator.facts),
        partial(space_of, evaluator.facts),
        roots=sources.roots,
        by_hand=sources.by_hand,
        policy=policy or POLICIES[settings.policy](),
        seed=settings.seed,
    )
