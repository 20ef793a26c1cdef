"""``%optiml`` and ``%%optiml``: parse, call, show."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from keyword import iskeyword
from pathlib import Path
from typing import Any

from IPython.core.error import StdinNotImplementedError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand
from IPython.display import display

from optiml_magic.background import Handle
from optiml_magic.commands import consent, doctor, outcomes, parsers, tasks, verbs
from optiml_magic.commands.page import HELP
from optiml_magic.commands.searches import Searches
from optiml_magic.compilers.options import checked_header
from optiml_magic.devices.choice import choose
from optiml_magic.errors import OptimlError, UsageError
from optiml_magic.files import read_kernel
from optiml_magic.journal import Asked
from optiml_magic.magics.first import FirstUse
from optiml_magic.model.evaluation import Step
from optiml_magic.model.refusal import Refused
from optiml_magic.model.task import Task
from optiml_magic.reports import shown
from optiml_magic.result import Result
from optiml_magic.runs import saved
from optiml_magic.runs.history import running
from optiml_magic.search.controls import Controls
from optiml_magic.synthesize import Synthesis
from optiml_magic.widgets.live import live_view, stage_line, watched
from optiml_magic.widgets.subject import Subject

_CELL_VERBS = ("optimize", "synthesize", "check", "profile", "annotate", "run")
_STAGED = ("check", "profile")  # the line that names the stage is all that they show on the way


@magics_class
class OptimlMagics(Magics):
    """One magic with subcommands. Cell bodies are passed on as they are, never formatted."""

    _last: Result | None = None

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._headers: dict[str, str] = {}
        self.searches = Searches()
        assert shell.display_formatter is not None
        pages = shell.display_formatter.formatters["text/html"]
        pages.for_type_by_name("optiml_magic.model.evaluation", "Trajectory", shown.steps)

    @no_var_expand
    @line_cell_magic
    def optiml(self, line: str, cell: str | None = None) -> Any:
        return self._command(parsers.split(line), cell)

    optiml.__doc__ = FirstUse.optiml.__doc__

    @property
    def going(self) -> tuple[str, ...]:
        """The names of the searches in the background that did not end."""
        return tuple(handle.name for handle in self.searches.going)

    def _command(self, words: Sequence[str], cell: str | None) -> Any:
        if words in (["-h"], ["--help"]):
            words = ["help"]
        try:
            options = parsers.parse(parsers.cell_parser(), words)
            if options.verb == "help" and options.command:
                parsers.parse(parsers.cell_parser(), [options.command, "-h"])
        except parsers.HelpShown as help_text:
            return print(help_text)  # noqa: T201  # help belongs on the cell's output
        if options.verb in _CELL_VERBS:
            options.asked = Asked(tuple(words), cell)
            return self._on_kernel(options, cell)
        if options.verb in self._line_verbs:
            return self._line_verbs[options.verb](options, cell)
        if cell is not None and cell.strip():
            print("No command was given, so nothing was run: name one of these.\n")  # noqa: T201
        return print(HELP)  # noqa: T201

    @property
    def _line_verbs(self) -> Mapping[str, Callable[[Any, str | None], Any]]:
        settings, names = verbs.settings_of, self._namespace
        return {
            "header": lambda o, cell: print(self._header(o.name, cell)),  # noqa: T201
            "best": lambda o, _: print(self._result(o).program.rstrip()),  # noqa: T201
            "export": lambda o, _: _written(self._result(o).export(o.file, overwrite=o.force)),
            "save": lambda o, _: _written(saved.save(self._result(o), o.file, overwrite=o.force)),
            "load": lambda o, _: self._keep(saved.load(o.file), o.name),
            "history": lambda o, _: outcomes.listed(o, settings(o)),
            "compare": lambda o, _: outcomes.compared(o, settings(o), names),
            "status": lambda o, _: self.searches.status(running(settings(o).runs)),
            "stop": lambda o, _: print(self.searches.stop(o.name)),  # noqa: T201
            "pause": lambda o, _: print(self.searches.pause(o.name)),  # noqa: T201
            "resume": lambda o, _: self._resume(o),
            "replay": lambda o, _: self._replay(o),
            "experience": lambda o, _: verbs.experience(o),
            "doctor": lambda o, _: print(doctor.render(doctor.examine(settings(o)))),  # noqa: T201
        }

    @property
    def _namespace(self) -> dict[str, Any]:
        assert self.shell is not None
        namespace: dict[str, Any] = self.shell.user_ns
        return namespace

    def _on_kernel(self, options: Any, cell: str | None) -> Any:
        text = cell or "" if options.verb == "synthesize" else _text(options, cell)
        _require_variable(options.name)
        try:
            if options.verb in ("optimize", "synthesize"):
                options.llm = consent.agreed(verbs.settings_of(options), options.llm, _asked)
            if options.verb == "synthesize":
                options.comment = text
                asked = tasks.from_words(options, self._namespace)
                return self._synthesize(asked, options)
            task = tasks.from_cell(text, options, self._namespace, headers=self._headers)
            if options.verb == "optimize":
                return self._optimize(task, options)
            if options.verb in _STAGED:
                with stage_line(options.verb, self.shell, display) as line:
                    return getattr(verbs, options.verb)(task, options, entered=line.enter)
            return getattr(verbs, options.verb)(task, options)
        except OptimlError as error:
            raise error.quoting(text) from None

    def _synthesize(self, asked: Task, options: Any) -> Result | Handle[Result] | None:
        """Search from what the reference says; of words alone a second cell with --accept does."""
        examples = tasks.examples_in(options.examples, self._namespace)
        begun = verbs.synthesized(asked, options, examples, show=display)
        return self._optimize(begun, options) if begun else None

    def _header(self, name: str | None, cell: str | None) -> str:
        """Keep a cell as a header, in place of an earlier one of that name; or list them."""
        if cell is None and name is None:
            kept = [
                f"{key}: {text.count(chr(10)) - 1} lines" for key, text in self._headers.items()
            ]
            return "\n".join(kept) or "no header yet: write one below %%optiml header util.cuh"
        if name is None or cell is None:
            raise UsageError(
                "a header is a cell with a name",
                fix="write device code below %%optiml header util.cuh",
            )
        self._headers[checked_header(name)] = "\n" + cell  # lines as the user counts them
        return f'{name} is kept: #include "{name}" in later cells'

    def _optimize(self, task: Task | Synthesis, options: Any) -> Result | Handle[Result]:
        """Search in this cell or beside it; the result is bound to the name of the kernel."""
        settings = verbs.settings_of(options)
        name = options.name or tasks.name_of(task.task if isinstance(task, Synthesis) else task)
        device = choose(settings.device)
        subject = Subject(
            name,
            device.name,
            device.reason,
            settings.budget,
            settings.seconds if settings.seconds < float("inf") else 0.0,
            background=options.background,
            objective=settings.objective,
            author=task.wanted.author if isinstance(task, Synthesis) else None,
        )
        view = live_view(subject, self.shell, display, mode=options.view)
        search = watched(
            view,
            lambda progress, controls: verbs.optimize(
                task,
                options,
                progress=progress,
                entered=view.enter,
                spent=view.spend,
                controls=controls,
            ),
            in_place=options.background,
        )

        def run(progress: Callable[[Step, Refused], None], controls: Controls) -> Result:
            result = search(progress, controls)
            verbs.require_passed(result.summary.root.evaluation.verdict)
            self._last = self._namespace[name] = result
            return result

        if options.background:
            view.show()
            handle = Handle(run, name=name)
            self.searches.add(handle)
            return handle
        return run(lambda *_: None, Controls())

    def _replay(self, options: Any) -> Result:
        """The live view of a search that is over, left as it ended; and its result."""
        past = verbs.replay(options)
        summary = past.result.summary
        subject = Subject(
            summary.task,
            summary.device,
            summary.device_reason,
            len(summary.trajectory.steps),
            objective=summary.trajectory.objective,
            author=summary.author,
        )
        with live_view(subject, self.shell, display, mode=options.view, keep=True) as view:
            for step, refused in past.steps:
                view(step, refused)
            view.finish(summary)
        return past.result

    def _resume(self, options: Any) -> Any:
        """A paused search goes on, or a run from its journal, by the command that it is of."""
        waiting = self.searches.paused(options.name)
        if waiting is not None:
            waiting.resume()
            return waiting
        path, asked = outcomes.resumable(options.name, verbs.settings_of(options), self._namespace)
        if asked.cell is None:
            raise UsageError(
                f"{path.stem} was begun on the command line",
                fix=f"optiml resume {path.stem} goes on there",
            )
        words = [*asked.words, *outcomes.more(options), "--resume", str(path)]
        return self._command(words, asked.cell)

    def _keep(self, result: Result, name: str | None) -> Result:
        """A result that comes from a file, bound as one that comes from a search."""
        _require_variable(name)
        bound = name or re.sub(r"\W|^(?=\d)", "_", result.summary.task)
        self._last = self._namespace[bound] = result
        print(f"`{bound}` is this result:")  # noqa: T201
        return result

    def _result(self, options: Any) -> Result:
        """The result that an option names, else the last."""
        if options.name:
            return outcomes.named(options.name, verbs.settings_of(options), self._namespace)
        if self._last is None:
            raise UsageError("nothing was optimised yet", fix="run a %%optiml optimize cell first")
        return self._last


def _require_variable(name: str | None) -> None:
    if name and (not name.isidentifier() or iskeyword(name)):
        raise UsageError(
            f"`{name}` cannot be the name of a result",
            fix="give a name that Python takes for a variable, or none",
        )


def _written(path: Path) -> None:
    print(f"written: {path}")  # noqa: T201


def _text(options: Any, cell: str | None) -> str:
    """The kernel's text, lines counted as the user sees them: the magic's own is the first."""
    if options.file:
        return read_kernel(Path(options.file))
    if cell is None or not cell.strip():
        raise UsageError(
            "there is no kernel in this cell", fix=f"write CUDA below %%optiml {options.verb}"
        )
    return "\n" + cell.removeprefix("\ufeff")  # pasted from a file that begins with a mark


def _asked(question: str) -> bool:
    """A question to whoever sees the cell; no where the front end has no way to answer."""
    try:
        return input(f"optiml: {question}").strip().lower() in ("y", "yes")
    except (StdinNotImplementedError, EOFError):
        print(f"optiml: no model is asked, since nobody can answer here. {consent.HOW}.")  # noqa: T201
        return False
