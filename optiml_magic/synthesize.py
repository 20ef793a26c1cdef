"""A kernel for a task that has none, and a search from it: from its reference, with a model's help.

Without a model the reference is lowered, and the search begins from that. With one, programs by the
best few strategies stand beside it. Where a reference cannot be lowered, the first of them that is
right is the baseline.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from optiml_magic.errors import KernelFailed, UsageError
from optiml_magic.journal import read_lines
from optiml_magic.llms.choice import choose as choose_model
from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation, Step
from optiml_magic.model.task import Task
from optiml_magic.model.thought import Wanted, Wave
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.optimize import evaluate_once, optimize
from optiml_magic.problem.inputs import at_border
from optiml_magic.problem.reference import source_of
from optiml_magic.proposers.model import language_model, thinker_of
from optiml_magic.result import Result
from optiml_magic.search.controls import Controls
from optiml_magic.search.loop import Progress
from optiml_magic.settings import Settings
from optiml_magic.timings import Stage, Timings

if TYPE_CHECKING:
    from optiml_magic.from_reference import NotLoweredError
    from optiml_magic.proposers.thinking import Thinker


@dataclass(frozen=True)
class Synthesis:
    """A task with the kernel that its search begins from, and what that is for."""

    task: Task
    wanted: Wanted


def synthesize(
    task: Task,
    settings: Settings,
    words: str = "",
    *,
    resume: Path | None = None,
    progress: Progress = lambda *_: None,
    entered: Callable[[Stage], None] = lambda _: None,
    controls: Controls | None = None,
) -> Result:
    """A verified kernel for what the task's reference computes; ``words`` become its comment.

    Raises UsageError where there is no reference, or none that a kernel comes from; KernelFailed
    where a model had to write it and nothing of it was right.
    """
    begun = begin(task, settings, words, resume=resume)
    return optimize(
        begun.task,
        settings,
        wanted=begun.wanted,
        resume=resume,
        progress=progress,
        timings=Timings(entered),
        controls=controls,
    )


def begin(
    task: Task, settings: Settings, words: str = "", *, resume: Path | None = None
) -> Synthesis:
    """What a search begins from; raises as ``synthesize`` does.

    A run that is resumed begins from what it began from, and no model is asked for it again.
    """
    from optiml_magic.from_reference import NotLoweredError, made
    from optiml_magic.proposers.interface import inputs_of
    from optiml_magic.synthesis.thoughts import features

    try:
        found = made(task, words)
    except NotLoweredError as why:
        return _written(task, settings, words, why, resume)
    wanted = Wanted(words, source_of(task.reference), inputs_of(task), features(found.graph))
    return Synthesis(found.task, wanted)


def _written(
    task: Task, settings: Settings, words: str, why: NotLoweredError, resume: Path | None
) -> Synthesis:
    """What begins from the first program of a model that is right."""
    from optiml_magic.proposers.interface import inputs_of, interface

    chosen = choose_model(settings.llm, settings.llm_url)
    if not chosen.name or not settings.thoughts:
        raise why
    task = at_border(task).task
    assert task.reference is not None
    name = task.name or getattr(task.reference, "__name__", "kernel")
    task = replace(task, name=name)
    note = f"{why.message}; the baseline is the first correct program of the model"
    skeleton, outputs = interface(task, name)
    task = replace(task, outputs={**dict.fromkeys(outputs, ""), **task.outputs})
    wanted = Wanted(words, source_of(task.reference), inputs_of(task), (), skeleton, "model", note)
    if resume is not None:
        header, _ = read_lines(resume)
        return Synthesis(replace(task, kernel=header.program), wanted)
    with language_model(chosen, settings) as model:
        thinker = thinker_of(model, wanted, settings)
        assert thinker is not None
        wave, kernel = _first_right(thinker, task, settings)
    return Synthesis(replace(task, kernel=kernel), replace(wanted, first=wave))


def _first_right(thinker: Thinker, task: Task, settings: Settings) -> tuple[Wave, str]:
    """All attempts until one was right, and its text; KernelFailed where none was."""
    waves: list[Wave] = []
    steps: list[Step] = []
    while (wave := thinker(waves, steps)).attempts:
        waves.append(wave)
        for proposal in wave.proposals:
            found = _judged(replace(task, kernel=proposal.text), settings)
            steps.append(Step(Candidate(len(steps), None, proposal), found))
            if found.verdict.passed:
                attempts = tuple(one for told in waves for one in told.attempts)
                return Wave(attempts, waves[0].gate), proposal.text
    tried = "; ".join(f"{s.candidate.proposal.title}: {_told(s)}" for s in steps)
    notes = "; ".join(dict.fromkeys([a.said for w in waves for a in w.attempts if a.said]))
    raise KernelFailed(
        f"the model wrote no correct program: {tried or notes or 'it gave none'}",
        fix="describe more of what you want, or write a reference in functions that are traced",
    )


def _judged(task: Task, settings: Settings) -> Evaluation:
    try:
        return evaluate_once(task, settings, counters=False).evaluation
    except UsageError as unfit:
        return Evaluation(0, "", Verdict(Outcome.COMPILE_ERROR, str(unfit)))


def _told(step: Step) -> str:
    verdict = step.evaluation.verdict
    return f"{verdict.outcome}, {verdict.summary}"[:200]
