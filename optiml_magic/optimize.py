"""A search or one evaluation, from a task to what a user holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from optiml_magic.calling import Kernels, noted
from optiml_magic.calls import call
from optiml_magic.chips import DEFAULT_CHIP, chip
from optiml_magic.compilers.options import options_of
from optiml_magic.composition import (
    batches_of,
    engine_of,
    proposers_of,
    remembered,
    roots_of,
    tree_of,
)
from optiml_magic.devices.base import Case
from optiml_magic.devices.choice import Choice, choose
from optiml_magic.errors import KernelFailed, SourceError, UsageError
from optiml_magic.evaluation import Evaluator, Extent
from optiml_magic.evaluation.limit import Limit
from optiml_magic.experience.recall import Past, told
from optiml_magic.experience.recorder import Recorder
from optiml_magic.experience.store import Experience, Setting
from optiml_magic.journal import About, Asked, Journal, RunHeader
from optiml_magic.kernels.hostcode import drop_host_code
from optiml_magic.llms.choice import choose as choose_model
from optiml_magic.llms.spending import Spending, Spent
from optiml_magic.model.build import CompileFailure
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Trajectory
from optiml_magic.model.experience import Known
from optiml_magic.model.hit_rates import HitRates
from optiml_magic.model.task import Task
from optiml_magic.model.thought import Fate, Wanted, fates
from optiml_magic.model.view import View
from optiml_magic.preparation import advice, telling
from optiml_magic.problem import Problem, prepare
from optiml_magic.problem.reference import source_of
from optiml_magic.profilers.roofs import published
from optiml_magic.proposers.hand import suggestion
from optiml_magic.proposers.model import language_model, notes_of, thinker_of
from optiml_magic.reports.provenance import provenance
from optiml_magic.reports.summary import Summary
from optiml_magic.result import Result
from optiml_magic.search.controls import Controls
from optiml_magic.search.loop import Budget, Progress, run
from optiml_magic.search.sources import Sources
from optiml_magic.session import (
    Session,
    about_of,
    compiler_of,
    header_of,
    session,
    written_for,
)
from optiml_magic.settings import Settings
from optiml_magic.source.notes import taken_out
from optiml_magic.source.program import parse_program
from optiml_magic.timings import Stage, Timings

_FINALISTS = 3
_NOTHING_NEW = (
    "all evaluations were in the journal already: give a larger --budget or more --seconds to go on"
)


def prepared(
    task: Task,
    settings: Settings,
    made: Callable[[Case], None] = lambda _: None,
    *,
    searched: bool = False,
) -> Problem:
    """The task made concrete; for a text that does not even compile, the compiler's own words.

    ``made`` and ``searched`` are those of ``prepare``.
    """
    try:
        device, seconds, seeds = (
            choose(settings.device).name,
            settings.for_trials,
            settings.verify_seeds,
        )
        return prepare(
            task, seeds=seeds, seconds=seconds, device=device, made=made, searched=searched
        )
    except SourceError as unreadable:
        if "__global__" not in task.text and "#include" not in task.text:
            raise  # a compiler would complain about the first word that is not C++
        try:
            left, notes = drop_host_code(task.text, task.constants, task.lacks)
            source = parse_program(left).compiled_text()
        except SourceError:
            raise unreadable from None
        options = options_of(task, settings)
        with closing(compiler_of(settings, options)) as compiler:
            failure = compiler.compile(source, (), chip(DEFAULT_CHIP), options)
        if isinstance(failure, CompileFailure):
            dropped, absent = taken_out(notes)
            first = telling(failure.errors, absent)
            raise KernelFailed(
                f"the input kernel failed, compile_error: {first.message}",
                fix=advice(first, dropped, absent, left),
                line=first.line,
            ) from None
        raise


def _prepared_beside(
    task: Task, settings: Settings, members: Session, *, searched: bool = False
) -> Problem:
    """The task made concrete, while the processes of the members start and get what is there."""
    put = members.tools.device.put
    thread = ThreadPoolExecutor(1, thread_name_prefix="optiml-put")
    putting: list[Future[None]] = []
    with members.tools.timings.stage("prepare"):
        try:
            problem = prepared(
                task,
                settings,
                lambda case: putting.append(thread.submit(put, case)),
                searched=searched,
            )
            wait(putting)  # who needs one that failed puts it again, and is told
        finally:
            thread.shutdown(wait=False, cancel_futures=True)
    members.begin(problem)
    return problem


def optimize(  # noqa: PLR0913  # what a front end says beside the task and the settings
    task: Task,
    settings: Settings,
    *,
    wanted: Wanted | None = None,
    resume: Path | None = None,
    asked: Asked | None = None,
    progress: Progress = lambda *_: None,
    spent: Callable[[Spent], None] = lambda _: None,
    controls: Controls | None = None,
    timings: Timings | None = None,
) -> Result:
    """Search for a faster program; the best is verified, and never worse than the input.

    The search begins from the kernel of the task; where that was written for something ``wanted``,
    also from programs that the model of the settings writes by the best strategies. ``asked`` is
    the command that it is of, which the journal keeps. ``spent`` hears a few times a second, while
    the model is asked and from any thread, what it cost so far. The settings' seconds bound all of
    it, from the beginning of ``timings`` on, but for those that ``controls`` pause it: the end,
    which times the finalists once more, is not paused.
    """
    timings, controls = timings or Timings(), controls or Controls()
    require_objective(settings)
    chosen = choose_model(settings.llm, settings.llm_url)

    def left() -> float:
        return 0.0 if controls.stopped else settings.seconds - timings.elapsed

    spending = Spending(settings.llm_prices, spent)
    with (
        session(settings, task=task, counted=True, extent="winners", timings=timings) as members,
        language_model(chosen, settings, left, source_of(task.reference), spending) as model,
        _experience(settings) as experience,
    ):
        problem = _prepared_beside(task, settings, members, searched=True)
        proposers = proposers_of(members, settings, model)
        limit = Limit(timings, settings.seconds, settles=members.tools.profiler.settles)
        thinker = thinker_of(model, wanted, settings, lambda: timings.elapsed)
        batches = batches_of(members)
        header = header_of(problem, members, settings, proposers, batches.size)
        path = resume.absolute() if resume else settings.runs / f"{header.run}.jsonl"
        setting = Setting(members.tools.profiler.source, members.tools.chip.family)
        learned = HitRates(experience.tallies(setting))
        about = about_of(problem, members, chosen.reason, header.run)
        about = replace(about, call=noted(problem, settings), asked=asked)
        if wanted is not None:
            about = written_for(about, wanted, problem, timings)
        known = about.notes
        journal = (
            Journal.resume(path, header) if resume else Journal.create(path, header, learned, about)
        )
        try:
            with timings.stage("prepare"):
                evaluator = Evaluator(
                    problem,
                    members.tools,
                    hit_rates=journal.hit_rates,
                    exact=settings.exact,
                    objective=settings.objective,
                    limit=limit,
                )
            engine = engine_of(members, evaluator, partial(controls.goes_on, timings))
            recorder = Recorder(experience, journal.run, setting)
            past = Past(experience, settings, setting.source)
            find = journal.remember_known(partial(_known, past, evaluator, setting.family))
            expand = recorder.expand(remembered(proposers, journal, find))
            by_hand = journal.remember_suggestions(controls.take)
            sources = Sources(expand, roots_of(thinker, journal), by_hand)
            search = tree_of(problem, evaluator, sources, settings, author=about.author)
            begin = recorder.evaluate(journal.remember_evaluate(engine, evaluator.remember))

            with controls.accepting(partial(suggestion, search.step), journal.suggest):
                trajectory = run(
                    search,
                    begin,
                    Budget(settings.budget, settings.seconds, limit.kept, limit.first),
                    batches=batches,
                    progress=progress,
                    controls=controls,
                    timings=timings,
                )
            trajectory = replace(trajectory, objective=settings.objective)
            trajectory = recorder.settle(_elsewhere(_settled(trajectory, evaluator), evaluator))
            late = (note for note in members.plugins.notes if note not in known)
            if settings.objective == "speed":
                recorder.won(trajectory, journal.known, about.origin)
            learned_of = told(journal.known, trajectory)
            said = (
                *evaluator.notes,
                *late,
                *_other_model(journal, header),
                *notes_of(model, thinker, spending, trajectory.steps),
                *learned_of,
                *past.notes,
            )
            said = (*said, *experience.notes, *journal.left)
            if journal.had_ended and journal.replayed == len(trajectory.steps):
                said = (*said, _NOTHING_NEW)
            seconds = timings.seconds()
            journal.end(trajectory, (*known, *said), seconds)
        finally:
            journal.close()
    about = replace(about, notes=(*known, *said))
    thoughts = fates(journal.waves, trajectory.steps)
    return result_of(problem, settings, about, trajectory, seconds, path, thoughts=thoughts)


def _other_model(journal: Journal, header: RunHeader) -> tuple[str, ...]:
    """What a resumed run says where it goes on with another model, or without one."""
    before, now = (" and ".join(names) for names in (journal.proposers, header.proposers))
    return (f"resumed with {now}; it began with {before}",) if before != now else ()


def require_objective(settings: Settings) -> None:
    """UsageError where the device cannot tell what is to be searched for."""
    device = choose(settings.device)
    if settings.objective == "energy" and device.is_emulated:
        raise UsageError(
            f"{device.name} draws no power, and nothing else says how many joules a run needs",
            fix="use --device cuda where there is a GPU, or --objective speed",
        )


def _experience(settings: Settings) -> closing[Experience]:
    """What earlier runs here learned, where the user wants it; one of nothing otherwise."""
    path = settings.experience_file if settings.experience == "all" else None
    return closing(Experience(path))


def _known(past: Past, evaluator: Evaluator, family: str, view: View) -> Known:
    """What is known of kernels like the input kernel."""
    from optiml_magic.experience.kinds import kind_of

    root = view.root.candidate
    return past.known(kind_of(parse_program(root.text), evaluator.facts(root), family))


@dataclass(frozen=True)
class Checked:
    """One program, ``text``, evaluated alone: for ``check`` and ``profile``."""

    problem: Problem
    choice: Choice
    text: str
    evaluation: Evaluation
    notes: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)  # seconds by stage


def evaluate_once(
    task: Task,
    settings: Settings,
    *,
    program: str | None = None,
    hazards: bool = False,
    counters: bool = True,
    entered: Callable[[Stage], None] = lambda _: None,
) -> Checked:
    """Compile, verify and measure the task's kernel, or ``program`` in its place.

    With ``hazards`` they are looked for, whatever the outcome and however long it takes. Without
    ``counters`` ncu is not asked, nor is the machine code read: the verdict comes sooner.
    ``entered`` is called with each stage as it begins.
    """
    timings = Timings(entered)
    extent: Extent = "all" if hazards else "oracle"
    asked: dict[str, Any] = {"counted": counters, "machine": counters, "timings": timings}
    with session(settings, task=task, extent=extent, **asked) as members:
        problem = _prepared_beside(task, settings, members)
        tools = members.tools
        if not counters:  # to measure the roofs takes seconds, and a verdict does not need them
            tools = replace(tools, roofs=partial(published, tools.chip))
        evaluator = Evaluator(problem, tools, thorough=True, exact=settings.exact)
        shown = Candidate(0, None, Proposal(problem.program.text, "the input kernel", "user"))
        (evaluation,) = evaluator([shown])
        answered = task.reference is not None or evaluation.verdict.passed
        if program is not None and answered:
            shown = Candidate(1, 0, Proposal(program, "another program", "user"))
            (evaluation,) = evaluator([shown])
    notes = dict.fromkeys((*problem.notes, *evaluator.notes, *evaluation.verdict.notes))
    notes |= dict.fromkeys(members.plugins.notes)
    spent = timings.seconds()
    return Checked(problem, members.choice, shown.text, evaluation, tuple(notes), spent)


def run_once(task: Task, settings: Settings, *, program: str | None = None) -> dict[str, Any]:
    """The outputs of the task's kernel, or of ``program``, on the task's own inputs, by name.

    The outputs hold a poison before the run, so what the kernel leaves out is plain to see. Nothing
    is compared; raises UsageError where the kernel does not compile or faults.
    """
    problem = prepared(task, replace(settings, verify_seeds=1))
    with session(settings, task=task) as members:
        members.begin(problem)
        text = program or problem.program.text
        outputs = {bound.name for bound in problem.interface.named("output")}
        values = problem.instances[0].values
        return call(
            problem, members.tools, text, {n: v for n, v in values.items() if n not in outputs}
        )


def _elsewhere(trajectory: Trajectory, evaluator: Evaluator) -> Trajectory:
    """The winner is timed at another size too; one that is wrong there has not won."""
    root = trajectory.root
    while (best := trajectory.best) is not root:
        verdict = evaluator.elsewhere(root.candidate, best.candidate)
        if verdict is None:
            break
        trajectory = trajectory.rejected(best, verdict)
    return trajectory


def _settled(trajectory: Trajectory, evaluator: Evaluator) -> Trajectory:
    """Input and finalists timed once more, in turn: the fastest of many is lucky as well.

    What is surely slower than the input cannot win, and is none of them.
    """
    leading = [step for step in trajectory.leading(_FINALISTS) if trajectory.may_win(step)]
    if not leading:
        return trajectory
    return trajectory.settled(evaluator.settle([step.candidate for step in leading]))


def result_of(
    problem: Problem,
    settings: Settings,
    about: About,
    trajectory: Trajectory,
    spent: Mapping[str, float],
    journal: Path,
    *,
    thoughts: tuple[Fate, ...] = (),
) -> Result:
    """What a user holds; ``about`` has all notes, ``spent`` the seconds by stage."""
    summary = Summary(
        task=problem.name,
        device=choose(settings.device).name,
        device_reason=about.device_reason,
        oracle=problem.oracle,
        launch=problem.launch,
        notes=about.notes,
        trajectory=trajectory,
        wall_seconds=sum(spent.values()),
        timings=dict(spent),
        journal=journal,
        model=about.model,
        exact=settings.exact,
        author=about.author,
        peer=about.peer,
        thoughts=thoughts,
    )
    return Result(summary, Kernels.of(problem, settings, provenance(summary)))
