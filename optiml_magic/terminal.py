"""The commands of the command line: ``optiml VERB TASK.py``; ``optiml -h`` lists its exit codes."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optiml_magic import exports, files
from optiml_magic.commands import consent, doctor, outcomes, parsers, tasks, verbs
from optiml_magic.commands.views import CheckView, ProfileView
from optiml_magic.errors import KernelFailed, KernelUnsupported, OptimlError, UsageError
from optiml_magic.journal import Asked
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.printable import printable
from optiml_magic.reports import annotation_html, contract, experience, html, text, tree
from optiml_magic.reports.colour import coloured
from optiml_magic.reports.fitting import fitted
from optiml_magic.reports.markup import document
from optiml_magic.reports.summary import Summary
from optiml_magic.runs import saved
from optiml_magic.synthesize import Synthesis
from optiml_magic.testing.kernels import DEMO, known_task
from optiml_magic.widgets.line import StageLine, TerminalLine, clear
from optiml_magic.widgets.plain import PlainView
from optiml_magic.widgets.subject import Subject

if TYPE_CHECKING:
    from optiml_magic.oracles import Shown


def run(options: argparse.Namespace, words: Sequence[str], began: float) -> int:
    """Run one command, which ``began`` at that time; returns the exit status."""
    try:
        status = _command(options, words, began)
        sys.stdout.flush()  # a pipe may break here first
    except BrokenPipeError:  # whoever reads has enough, as `head` has
        # The interpreter flushes what is left when it exits, and would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _UNREAD
    return status


def _command(options: argparse.Namespace, words: Sequence[str], began: float) -> int:
    try:
        options.words, options.began, options.asked = words, began, Asked(tuple(words))
        _check_outputs(options)
        if options.verb in ("optimize", "synthesize"):
            options.llm = consent.agreed(verbs.settings_of(options), options.llm, _said)
        return _VERBS[options.verb](options)
    except OptimlError as error:
        clear()
        sys.stderr.write(f"optiml: {error}\n")
        if isinstance(error, KernelUnsupported):
            return _UNSUPPORTED
        return _FAILED if isinstance(error, KernelFailed) else _USAGE


def _said(question: str) -> bool:
    """A command that nobody may be watching says what it sends, and goes on."""
    clear()
    sys.stderr.write(f"optiml: {question.partition('. ')[0]}; --llm none asks nobody\n")
    return True


def _check_outputs(options: argparse.Namespace) -> None:
    """Nothing is computed that could not be written."""
    for name in ("json", "html"):
        path = getattr(options, name, None)
        if path is not None and not Path(path).absolute().parent.is_dir():
            raise UsageError(f"there is no folder for --{name} {path}", fix="make the folder first")
        if path is not None and Path(path).is_dir():
            raise UsageError(f"--{name} {path} is a folder", fix="name a file in it")
    if getattr(options, "export", None) is not None:
        exports.target(options.export, overwrite=options.force)


def _optimize(options: argparse.Namespace) -> int:
    program = _program(options)
    found = [task if program is None else replace(task, kernel=program) for task in _tasks(options)]
    _one_export(options, found)
    return _optimize_all(options, found, "optiml report")


def _one_export(options: argparse.Namespace, found: Sequence[Task | Synthesis]) -> None:
    if options.export is not None and len(found) > 1:
        raise UsageError(
            f"--export takes one program, and {options.file} defines {len(found)} tasks",
            fix="put the task in a file of its own",
        )


def _synthesize(options: argparse.Namespace) -> int:
    examples = tasks.examples_from(options.examples)
    found = []
    for task in _tasks(options):
        begun = verbs.synthesized(
            task, options, examples, show=lambda shown: _print(repr(shown) + "\n"), ask=_confirmed
        )
        if begun is None:
            return 1
        found.append(begun)
    _one_export(options, found)
    return _optimize_all(options, found, "optiml synthesis")


def _confirmed(shown: Shown) -> bool:
    """Ask whoever sits at the terminal; nobody may."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    clear()
    _print(printable("\n".join([*shown.lines(), ""])))
    return input("Is this what you want? [y/N] ").strip().lower() in ("y", "yes")


def _demo(options: argparse.Namespace) -> int:
    if options.budget is None:
        options.budget = _DEMO_BUDGET
    options.experience = "none"  # the same for everybody, and no run of a user learns from it
    return _optimize_all(options, [known_task(name) for name in DEMO], "optiml demo")


def _optimize_all(
    options: argparse.Namespace, found: Sequence[Task | Synthesis], title: str
) -> int:
    summaries: list[Summary] = []
    for wanted in found:
        task = wanted.task if isinstance(wanted, Synthesis) else wanted
        settings = verbs.settings_of(options)
        # To load what the first needs is part of it; a person may have been asked for others.
        alone = not summaries and wanted is task
        before = time.monotonic() - options.began if alone else 0.0
        seconds = settings.seconds - before if settings.seconds < float("inf") else 0.0
        subject = Subject(
            tasks.name_of(task),
            settings.device,
            "",
            settings.budget,
            seconds,
            objective=settings.objective,
            author=wanted.wanted.author if isinstance(wanted, Synthesis) else None,
        )
        with _quoting(task), PlainView(subject, TerminalLine(), "in a terminal") as view:
            result = verbs.optimize(
                wanted, options, progress=view, entered=view.enter, spent=view.spend, before=before
            )
            view.finish(result.summary)
        _tell(repr(result) + "\n")
        summaries.append(result.summary)
        _write_outcomes(options, [contract.optimized(summary) for summary in summaries])
        if getattr(options, "export", None) is not None:
            _print(f"export: {result.export(options.export, overwrite=options.force)}")
    _write_html(options, lambda: html.page(summaries, title))
    return _status(s.root.evaluation.verdict for s in summaries)


def _check(options: argparse.Namespace) -> int:
    views = []
    for task in _tasks(options):
        with _quoting(task), StageLine("check", TerminalLine()) as line:
            views.append(verbs.check(task, options, _program(options), entered=line.enter))
    for view in views:
        _tell(repr(view))
    _write_outcomes(options, [_verdict(view) for view in views])
    return _status(view.evaluation.verdict for view in views)


def _verdict(view: CheckView | ProfileView) -> dict[str, Any]:
    """The contract of a check, and of a profile that has nothing but its verdict."""
    checked = view.checked
    verdict = checked.evaluation.verdict
    return contract.checked(checked.problem.name, checked.choice.name, verdict, checked.timings)


def _profile(options: argparse.Namespace) -> int:
    views = []
    for task in _tasks(options):
        with _quoting(task), StageLine("profile", TerminalLine()) as line:
            views.append(verbs.profile(task, options, _program(options), entered=line.enter))
    outcomes = []
    for view in views:
        _tell(repr(view))
        evaluation, measurement = view.evaluation, view.evaluation.measurement
        if measurement is None:
            outcomes.append(_verdict(view))
        else:
            outcomes.append(
                contract.profiled(
                    view.checked.problem.name,
                    view.checked.choice.name,
                    measurement,
                    evaluation.roofline,
                    evaluation.findings,
                    view.checked.timings,
                )
            )
    _write_outcomes(options, outcomes)
    return _status(view.evaluation.verdict for view in views)


def _annotate(options: argparse.Namespace) -> int:
    found = []
    for task in _tasks(options):
        with _quoting(task):
            found.append(verbs.annotate(task, options, _program(options)))
        _print(repr(found[-1]) + "\n")
    _write_outcomes(options, [contract.annotated(view.annotation) for view in found])
    annotations = [view.annotation for view in found]
    _write_html(options, lambda: annotation_html.page(annotations, "optiml annotate"))
    return 0


def _run(options: argparse.Namespace) -> int:
    for task in _tasks(options):
        with _quoting(task):
            _print(repr(verbs.run(task, options, _program(options))))
    return 0


def _doctor(options: argparse.Namespace) -> int:
    facts = doctor.examine(verbs.settings_of(options))
    _tell(doctor.render(facts))
    return 0 if all(fact.well for fact in facts) else 1


def _bench(options: argparse.Namespace) -> int:
    from optiml_magic.bench.report import bench  # all of its tasks, which no other verb needs

    return bench(options, verbs.settings_of(options), " ".join(["optiml", *options.words]), _print)


def _replay(options: argparse.Namespace) -> int:
    return _shown(options, verbs.replay(options).result.summary, "optiml replay")


def _load(options: argparse.Namespace) -> int:
    return _shown(options, saved.load(options.file).summary, "optiml load")


def _shown(options: argparse.Namespace, summary: Summary, title: str) -> int:
    """The report of a search that is over, with its tree."""
    _tell("\n".join([text.render(summary), "", "tree:", *(f"  {x}" for x in tree.lines(summary))]))
    _write_outcomes(options, [contract.optimized(summary)])
    _write_html(options, lambda: html.page([summary], title))
    return _status([summary.root.evaluation.verdict])


def _history(options: argparse.Namespace) -> int:
    found = outcomes.listed(options, verbs.settings_of(options))
    _print(repr(found))
    _write_json(options, found.rows())
    return 0


def _compare(options: argparse.Namespace) -> int:
    found = outcomes.compared(options, verbs.settings_of(options), {})
    _print(repr(found))
    _write_html(options, lambda: document("optiml compare", found.fragment()))
    return 0


def _save(options: argparse.Namespace) -> int:
    result = outcomes.named(options.name, verbs.settings_of(options), {})
    _print(f"written: {saved.save(result, options.file, overwrite=options.force)}")
    return 0


def _resume(options: argparse.Namespace) -> int:
    path, asked = outcomes.resumable(options.name, verbs.settings_of(options), {})
    if asked.cell is not None:
        raise UsageError(
            f"{path.stem} was begun in a notebook", fix=f"%optiml resume {path.stem} goes on there"
        )
    words = [*asked.words, *outcomes.more(options), "--resume", str(path)]
    return _command(parsers.parse(parsers.line_parser(), words), words, options.began)


def _experience(options: argparse.Namespace) -> int:
    view = verbs.experience(options)
    _print(repr(view))
    _write_json(options, experience.rows(view.tallies))
    _write_html(options, lambda: document("optiml experience", view.fragment()))
    return 0


def _status(verdicts: Iterable[Verdict]) -> int:
    """The exit code, by the verdicts on the kernels that were given."""
    outcomes = {verdict.outcome for verdict in verdicts} - {Outcome.PASSED}
    if not outcomes:
        return 0
    return _UNSUPPORTED if outcomes == {Outcome.UNSUPPORTED} else _FAILED


_DEMO_BUDGET = 12  # enough for these three, and within a minute on two cores
_FAILED, _USAGE, _UNSUPPORTED = 1, 2, 3
_UNREAD = 141  # what a shell says of a program that SIGPIPE ended

_VERBS: dict[str, Callable[[argparse.Namespace], int]] = {
    "optimize": _optimize,
    "synthesize": _synthesize,
    "check": _check,
    "profile": _profile,
    "annotate": _annotate,
    "run": _run,
    "demo": _demo,
    "bench": _bench,
    "replay": _replay,
    "load": _load,
    "history": _history,
    "compare": _compare,
    "save": _save,
    "resume": _resume,
    "experience": _experience,
    "doctor": _doctor,
}


def _tasks(options: argparse.Namespace) -> list[Task]:
    found = tasks.from_file(Path(options.file))
    return [tasks.compiled_as(task, options, getattr(options, "kernel", None)) for task in found]


def _program(options: argparse.Namespace) -> str | None:
    return None if options.kernel is None else files.read_kernel(Path(options.kernel))


@contextmanager
def _quoting(task: Task) -> Iterator[None]:
    """Errors inside show the line of the kernel that they point at."""
    try:
        yield
    except OptimlError as error:
        raise error.quoting(task.text) from error.__cause__


def _write_outcomes(options: argparse.Namespace, outcomes: list[dict[str, Any]]) -> None:
    """Of one task its outcome, of several a list."""
    _write_json(options, outcomes[0] if len(outcomes) == 1 else outcomes)


def _write_json(options: argparse.Namespace, value: Any) -> None:
    if options.json:
        files.write(options.json, json.dumps(value, indent=1) + "\n")


def _write_html(options: argparse.Namespace, page: Callable[[], str]) -> None:
    if options.html:
        files.write(options.html, page())
        _print(f"report: {options.html}")


def _tell(report: str) -> None:
    """Print a report, as wide as the terminal where it goes to one."""
    on_screen = sys.stdout.isatty()
    _print(fitted(report, shutil.get_terminal_size().columns) if on_screen else report)


def _print(text: str) -> None:
    sys.stdout.write(coloured(text.rstrip("\n"), sys.stdout) + "\n")
