"""``%optiml`` and ``%%optiml``: parse, call, show."""

from __future__ import annotations

from collections.abc import Callable
from keyword import iskeyword
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand
from IPython.display import display

from optiml_magic.background import Handle
from optiml_magic.commands import doctor, parsers, tasks, verbs
from optiml_magic.compilers.options import checked_header
from optiml_magic.devices.choice import choose
from optiml_magic.errors import OptimlError, UsageError
from optiml_magic.model.evaluation import Step
from optiml_magic.model.refusal import Refused
from optiml_magic.model.task import Task
from optiml_magic.result import Result
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

    @no_var_expand
    @line_cell_magic
    def optiml(self, line: str, cell: str | None = None) -> Any:
        """CUDA kernels: optimize, check, profile, run, and more; %optiml help lists all."""
        try:
            options = parsers.parse(parsers.cell_parser(), parsers.split(line))
        except parsers.HelpShown as help_text:
            print(help_text)  # noqa: T201  # help belongs on the cell's output
            return None
        if options.verb in _CELL_VERBS:
            return self._on_kernel(options, cell)
        if options.verb == "header":
            return print(self._header(options.name, cell))  # noqa: T201
        if options.verb == "best":
            return print(self._result(options.name).program.rstrip())  # noqa: T201
        if options.verb == "export":
            path = self._result(options.name).export(options.file, overwrite=options.force)
            return print(f"written: {path}")  # noqa: T201
        if options.verb == "replay":
            return self._replay(options)
        if options.verb == "experience":
            return verbs.experience(options)
        if options.verb == "doctor":
            return print(doctor.render(doctor.examine(verbs.settings_of(options))))  # noqa: T201
        return print(parsers.HELP)  # noqa: T201

    @property
    def _namespace(self) -> dict[str, Any]:
        assert self.shell is not None
        namespace: dict[str, Any] = self.shell.user_ns
        return namespace

    def _on_kernel(self, options: Any, cell: str | None) -> Any:
        text = cell or "" if options.verb == "synthesize" else _text(options, cell)
        if options.name and (not options.name.isidentifier() or iskeyword(options.name)):
            raise UsageError(
                f"`{options.name}` cannot be the name of a result",
                fix="use a name that is a Python variable, or leave it out",
            )
        try:
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
            lambda progress, stop: verbs.optimize(
                task, options, progress=progress, entered=view.enter, stop=stop
            ),
            in_place=options.background,
        )

        def run(progress: Callable[[Step, Refused], None], stop: Callable[[], bool]) -> Result:
            result = search(progress, stop)
            verbs.require_passed(result.summary.root.evaluation.verdict)
            self._last = self._namespace[name] = result
            return result

        if options.background:
            view.show()
            return Handle(run, name=name)
        return run(lambda *_: None, lambda: False)

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

    def _result(self, name: str | None) -> Result:
        found = self._namespace.get(name) if name else self._last
        if not isinstance(found, Result):
            raise UsageError(
                f"`{name}` is not a result" if name else "nothing was optimised yet",
                fix="run a %%optiml optimize cell first",
            )
        return found


def _text(options: Any, cell: str | None) -> str:
    """The kernel's text, lines counted as the user sees them: the magic's own is the first."""
    if options.file:
        path = Path(options.file)
        if not path.is_file():
            raise UsageError(f"there is no file {path}", fix="give the path of a .cu file")
        return tasks.read_text(path)
    if cell is None or not cell.strip():
        raise UsageError(
            "there is no kernel in this cell", fix=f"write CUDA below %%optiml {options.verb}"
        )
    return "\n" + cell.removeprefix("\ufeff")  # pasted from a file that begins with a mark
