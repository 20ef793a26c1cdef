"""What each command does, for both front ends: a task and options in, a value out."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optiml_magic.annotate import annotate as annotation
from optiml_magic.commands import outcomes
from optiml_magic.commands.views import AnnotateView, CheckView, ExperienceView, ProfileView
from optiml_magic.errors import UsageError
from optiml_magic.experience import shipped
from optiml_magic.experience.store import Experience
from optiml_magic.llms.spending import Spent
from optiml_magic.model.evaluation import Step
from optiml_magic.model.oracle import Example
from optiml_magic.model.refusal import Refused
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Verdict
from optiml_magic.optimize import evaluate_once, run_once
from optiml_magic.optimize import optimize as search
from optiml_magic.replay.past import Replayed, replayed, searched
from optiml_magic.replay.recording import Recording
from optiml_magic.result import Result
from optiml_magic.search.controls import Controls
from optiml_magic.settings import Settings, resolve
from optiml_magic.synthesize import Synthesis, begin
from optiml_magic.timings import Stage, Timings
from optiml_magic.verifiers.verify import failure

if TYPE_CHECKING:
    from optiml_magic.oracles import Shown

_SETTINGS = (
    "device", "llm", "llm_url", "llm_budget", "llm_prices", "llm_temperature", "llm_effort",
    "show_prompts", "thoughts", "budget", "seconds", "seed", "policy", "objective", "verify_seeds",
    "run_seconds", "std", "fast_math", "compiler", "nvcc_args", "experience", "energy", "exact",
)  # fmt: skip


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings in force for one command."""
    return resolve({name: getattr(options, name, None) for name in _SETTINGS})


def optimize(
    task: Task | Synthesis,
    options: argparse.Namespace,
    *,
    progress: Callable[[Step, Refused], None] = lambda *_: None,
    entered: Callable[[Stage], None] = lambda _: None,
    spent: Callable[[Spent], None] = lambda _: None,
    controls: Controls | None = None,
    before: float = 0.0,
) -> Result:
    """Search; the result may say that nothing better was found.

    ``before`` are seconds that the command took already.
    """
    settings = settings_of(options)
    return search(
        task.task if isinstance(task, Synthesis) else task,
        settings,
        wanted=task.wanted if isinstance(task, Synthesis) else None,
        resume=_resumed(options, settings),
        asked=getattr(options, "asked", None),
        progress=progress,
        spent=spent,
        controls=controls,
        timings=Timings(entered, before=before),
    )


def check(
    task: Task,
    options: argparse.Namespace,
    program: str | None = None,
    *,
    entered: Callable[[Stage], None] = lambda _: None,
) -> CheckView:
    """Compile, compare with the reference, look for hazards."""
    settings = settings_of(options)
    checked = evaluate_once(
        task, settings, program=program, hazards=True, counters=False, entered=entered
    )
    return CheckView(checked)


def profile(
    task: Task,
    options: argparse.Namespace,
    program: str | None = None,
    *,
    entered: Callable[[Stage], None] = lambda _: None,
) -> ProfileView:
    """Measure and diagnose."""
    checked = evaluate_once(task, settings_of(options), program=program, entered=entered)
    return ProfileView(checked)


def annotate(task: Task, options: argparse.Namespace, program: str | None = None) -> AnnotateView:
    """Show what became of each line; works without inputs and for a kernel that is wrong."""
    kernel = task if program is None else replace(task, kernel=program)
    return AnnotateView(annotation(kernel, settings_of(options)))


def run(task: Task, options: argparse.Namespace, program: str | None = None) -> Any:
    """Run once on the task's own inputs; the outputs, one alone or a tuple."""
    outputs = run_once(task, settings_of(options), program=program)
    values = tuple(outputs.values())
    return values[0] if len(values) == 1 else values


def replay(options: argparse.Namespace) -> Replayed:
    """A past search as it was; with a policy, how it would have gone over what was evaluated."""
    settings = settings_of(options)
    recordings = [Recording.read(_journal(name, settings)) for name in options.runs]
    if options.policy is not None:
        return searched(recordings, settings)
    given = [name for name in ("budget", "seed") if getattr(options, name) is not None]
    if given:
        raise UsageError(
            f"--{given[0]} belongs to a search, and this one is over",
            fix="name a --policy to search again over what was evaluated",
        )
    if len(recordings) > 1:
        raise UsageError(
            f"{len(recordings)} runs given",
            fix="replay one at a time, or name a --policy to search over all of them",
        )
    return replayed(recordings[0])


def experience(options: argparse.Namespace) -> ExperienceView:
    """What earlier runs learned."""
    settings = settings_of(options)
    others, unread = shipped.read(settings.shipped)
    with closing(Experience(settings.experience_file)) as file:
        tallies, own = file.tallies(), file.entries()
        notes = (*file.notes, *([unread] if unread else []))
    return ExperienceView(tallies, own, others, notes)


def synthesized(
    task: Task,
    options: argparse.Namespace,
    examples: Sequence[Example] = (),
    *,
    show: Callable[[Shown], None],
    ask: Callable[[Shown], bool] = lambda _: False,
) -> Synthesis | None:
    """The task with the kernel that its reference says; one that it has is left aside.

    Without a reference a model writes one from the words, which is shown; None where the user does
    not confirm it: with examples, by accepting those that were shown, or when asked.
    """
    settings, words = settings_of(options), options.comment or ""
    if task.reference is None:
        from optiml_magic.oracles import referenced

        shown = referenced(task, settings, words, examples=examples, accept=options.accept, ask=ask)
        show(shown)
        if shown.task is None:
            return None
        task = shown.task
    elif examples or options.accept:
        flag = "--examples" if examples else "--accept"
        raise UsageError(
            f"{flag} is only for words, and there is a reference", fix=f"leave out {flag}"
        )
    return begin(task, settings, words, resume=_resumed(options, settings))


def require_passed(verdict: Verdict) -> None:
    """Raise KernelFailed for an input kernel that did not pass."""
    if not verdict.passed:
        raise failure(verdict, "the input kernel")


def _resumed(options: argparse.Namespace, settings: Settings) -> Path | None:
    return _journal(options.resume, settings) if options.resume else None


def _journal(name: str, settings: Settings) -> Path:
    """A journal by its path, or by the name of its run or the beginning of that."""
    path = Path(name)
    found = path if path.suffix == ".jsonl" else outcomes.run_of(name, settings)
    if found is None or not found.is_file():
        raise UsageError(
            f"no journal at {path if found else settings.runs / name}",
            fix="name a run that history lists, or the path of a journal",
        )
    return found
