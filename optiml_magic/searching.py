"""A search that is asked and told by hand: for experiments with policies and with other timers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Self

from optiml_magic import rewards
from optiml_magic.calling import noted
from optiml_magic.composition import proposers_of, remembered, tree_of
from optiml_magic.errors import UsageError
from optiml_magic.evaluation import Evaluator
from optiml_magic.journal import Journal
from optiml_magic.llms.choice import choose as choose_model
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Step, Trajectory
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.refusal import Refused
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.optimize import prepared, require_objective, result_of
from optiml_magic.proposers.hand import suggestion
from optiml_magic.proposers.model import language_model
from optiml_magic.reports.quantities import number_of
from optiml_magic.result import Result
from optiml_magic.search.controls import Controls
from optiml_magic.search.policies.base import Policy
from optiml_magic.search.sources import Sources, also
from optiml_magic.session import about_of, header_of, session
from optiml_magic.settings import Settings, resolve
from optiml_magic.timings import Timings

_STOPPED = "asked by hand"


class Search:
    """A search over edits of a task's kernel, one ``ask`` and one ``tell`` at a time.

    ``ask`` gives candidates, the input kernel alone the first time; ``evaluate`` does what
    ``optimize`` would with them, and ``timed`` and ``failed`` say what somebody else found. Each
    candidate is told once, in any order. What was told is in a journal before the search sees it,
    so ``optiml replay`` shows it. ``policy`` overrules that of the settings and may be one's own;
    the budget of the settings is left to whoever asks, and experience is neither used nor added to.
    ``roots`` are other programs of the task that it begins from as well.

    Use it in a ``with`` statement, or call ``close``: it holds a device.
    """

    def __init__(
        self,
        task: Task,
        settings: Settings | None = None,
        *,
        policy: Policy | None = None,
        roots: Sequence[str] = (),
    ) -> None:
        self._settings = settings = settings or resolve()
        self._timings = timings = Timings()
        self._asked: dict[int, Candidate] = {}
        self._steps: list[Step] = []
        self._ours: bool | None = None  # whether the input kernel was evaluated here
        self._closed = False
        self._open = ExitStack()
        require_objective(settings)
        with ExitStack() as opened:
            self._problem = problem = prepared(task, settings, searched=True)
            chosen = choose_model(settings.llm, settings.llm_url)
            self._members = members = opened.enter_context(
                session(settings, task=task, counted=True, extent="winners", timings=timings)
            )
            members.begin(problem)
            model = opened.enter_context(language_model(chosen, settings))
            proposers = proposers_of(members, settings, model)
            header = header_of(problem, members, settings, proposers, batch=1)
            if policy is not None:
                header = replace(header, policy=type(policy).__name__)
            about = about_of(problem, members, chosen.reason, header.run)
            self._about = replace(about, call=noted(problem, settings))
            path = settings.runs / f"{header.run}.jsonl"
            self._journal = Journal.create(path, header, about=self._about)
            opened.callback(self._journal.close)
            self._evaluator = Evaluator(
                problem, members.tools, exact=settings.exact, objective=settings.objective
            )
            expand = remembered(proposers, self._journal)
            begun = also(*(Proposal(text, "another root", "user") for text in roots))
            self._controls = Controls()
            by_hand = self._journal.remember_suggestions(self._controls.take)
            sources = Sources(expand, begun, by_hand)
            self._tree = tree_of(problem, self._evaluator, sources, settings, policy)
            check = partial(suggestion, self._tree.step)
            opened.enter_context(self._controls.accepting(check, self._journal.suggest))
            self._open = opened.pop_all()

    def ask(self, count: int = 1) -> list[Candidate]:
        """Up to ``count`` candidates that are to be told; none where nothing is left to try.

        Fewer, or none, also where what could be tried next waits for what is not told yet.
        """
        asked = self._tree.ask(count)
        self._asked |= {candidate.number: candidate for candidate in asked}
        return asked

    def evaluate(self, *candidates: Candidate) -> list[Evaluation]:
        """Compile, verify and measure candidates on the device of the settings.

        Raises UsageError where the input kernel's time came from elsewhere: such times are not
        compared.
        """
        if self._ours is False:
            raise UsageError(
                "the input kernel was timed elsewhere, and is not compared with times from here",
                fix="evaluate the input kernel here too, the first candidate of all",
            )
        if any(candidate.number == 0 for candidate in candidates):
            self._ours = True
        return self._evaluator(candidates)

    def timed(
        self, candidate: Candidate, seconds: float, *, ratio_error: float = 1.02
    ) -> Evaluation:
        """What somebody else's clock said of a candidate that is right, without counters.

        A ratio of two such times may be off by the factor ``ratio_error``; a gain below it does not
        count. Raises UsageError for what is not a time, and where the input kernel was timed here.
        """
        if not (math.isfinite(seconds) and seconds > 0):
            raise UsageError(f"{seconds} is not a time", fix="give the seconds of one run")
        if candidate.number == 0:
            self._ours = False
        if self._settings.objective == "energy":
            raise UsageError("a time from elsewhere has no joules", fix="search for speed")
        if self._ours:
            raise UsageError(
                "the input kernel was timed here, and is not compared with times from elsewhere",
                fix="evaluate every candidate here, or none",
            )
        chip = self._members.choice.chip.name
        measured = Measurement(chip, "events", seconds, ratio_error, (), (), ())
        root = self._steps[0].evaluation.measurement if self._steps else measured
        verdict = Verdict(Outcome.PASSED, "found right by whoever timed it")
        return Evaluation(
            candidate.number,
            candidate.digest,
            verdict,
            measured,
            reward=rewards.reward(root, measured) if root is not None else rewards.FAILED,
        )

    def failed(
        self, candidate: Candidate, why: str, outcome: Outcome = Outcome.WRONG
    ) -> Evaluation:
        """What somebody else found wrong with a candidate, in a sentence."""
        return Evaluation(candidate.number, "", Verdict(outcome, why))

    def tell(self, *evaluations: Evaluation) -> None:
        """Report candidates that ``ask`` gave, in any order; UsageError for any other."""
        for evaluation in evaluations:
            candidate = self._asked.pop(evaluation.candidate, None)
            if candidate is None:
                raise UsageError(
                    f"no candidate {evaluation.candidate} waits for its result",
                    fix="tell the result of each candidate of ask once",
                )
            self._journal.record(candidate, evaluation)
            self._steps += self._tree.tell([evaluation])

    def suggest(self, program: str, parent: int | None = None) -> None:
        """Let a program that was written by hand be the next candidate of ``ask``.

        It is an edit of candidate ``parent``, which was told, or of the best so far. UsageError
        with its line where it cannot be one.
        """
        self._controls.require(parent, program)

    @property
    def best(self) -> Step:
        """The fastest so far that is right; the input kernel wins ties."""
        return self.trajectory.best

    @property
    def refused(self) -> Refused:
        """What the rules and the model would not do so far, and why."""
        return self._tree.refused

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left to try, and nothing waits for its result."""
        return self._tree.exhausted and not self._asked

    @property
    def trajectory(self) -> Trajectory:
        """What was told so far, in its order; UsageError before the input kernel was."""
        if not self._steps:
            raise UsageError("no result was told yet", fix="ask, evaluate and tell first")
        steps = tuple(sorted(self._steps, key=lambda step: step.candidate.number != 0))
        found = Trajectory(steps, _STOPPED, objective=self._settings.objective)
        return found.told(self.refused)

    @property
    def result(self) -> Result:
        """As ``optimize`` returns it, of what was told so far; finalists are not timed again."""
        return result_of(
            self._problem,
            self._settings,
            replace(self._about, notes=self._notes),
            self.trajectory,
            self._timings.seconds(),
            self._journal.path,
        )

    def close(self) -> None:
        """Give the device back; the journal gets its end. The result stays."""
        if self._steps and not self._closed:
            self._journal.end(self.trajectory, self._notes, self._timings.seconds())
        self._closed = True
        self._open.close()

    @property
    def _notes(self) -> tuple[str, ...]:
        return (*self._about.notes, *self._evaluator.notes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        told, waiting = number_of(len(self._steps), "candidate"), len(self._asked)
        return f"<search of {self._problem.name}: {told} told, {waiting} asked and not told>"
