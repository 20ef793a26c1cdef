"""Which view a running search gets here, and why."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeVar

from optiml_magic.llms.spending import Spent
from optiml_magic.model.evaluation import Step
from optiml_magic.model.refusal import Refused
from optiml_magic.reports.summary import Summary
from optiml_magic.search.controls import Controls
from optiml_magic.timings import Stage
from optiml_magic.widgets.line import DisplayLine, Line, StageLine, TerminalLine
from optiml_magic.widgets.plain import PlainView
from optiml_magic.widgets.subject import Subject

Progress = Callable[[Step, Refused], None]
Mode = Literal["auto", "widget", "text"]
_VS_CODE = "__vsc_ipynb_file__"  # a name that it defines in the kernel of a notebook
UNHEARD = (
    "While this cell runs, the buttons do not work: to stop the search, interrupt the kernel "
    "(\u25a0, or Ctrl-C). What was found is kept."
)


class LiveView(Protocol):
    """What a front end needs of a view. ``why`` says why it is this one."""

    why: str

    def show(self) -> None:
        """Appear, in the output of the cell that runs now. ``with`` does it too."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def __call__(self, step: Step, refused: Refused) -> None:
        """One more step, and all that was refused so far; from any thread."""

    def enter(self, stage: Stage) -> None:
        """A stage begins; from any thread."""

    def spend(self, told: Spent) -> None:
        """What the model cost so far, an answer under way included. From any thread."""

    def steer(self, controls: Controls) -> None:
        """What its buttons do from now on."""

    def finish(self, summary: Summary, instead: object | None = None) -> None:
        """The outcome; ``instead`` is shown in the view's place when it ends."""


def live_view(
    subject: Subject,
    shell: Any,
    display: Callable[..., Any],
    *,
    mode: Mode = "auto",
    keep: bool = False,
) -> LiveView:
    """The widget where one can show, else a line of text; ``shell`` and ``display`` are IPython's.

    ``mode`` overrules what ``auto`` finds out. ``keep`` leaves the widget where it is at the end.
    """
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return PlainView(subject, TerminalLine(quiet=subject.background), "in a terminal")
    lacking = _lacking(kernel, mode)
    if lacking:
        return PlainView(subject, DisplayLine(display), lacking)
    from optiml_magic.widgets.window import Window

    why = "asked for" if mode == "widget" else "a front end is there"
    return Window(
        subject,
        display,
        hint=_hint(subject, shell),
        why=why,
        keep=keep,
        kernel=None if subject.background else kernel,
    )


def stage_line(verb: str, shell: Any, display: Callable[..., Any]) -> StageLine:
    """For ``check`` and ``profile``: the stage in a line of text, wherever this runs."""
    line: Line = TerminalLine() if getattr(shell, "kernel", None) is None else DisplayLine(display)
    return StageLine(verb, line)


class Summarized(Protocol):
    """What a search returns, as far as its view cares: a ``Result``."""

    @property
    def summary(self) -> Summary:
        """How it came out."""


R = TypeVar("R", bound=Summarized)


def watched(
    view: LiveView, search: Callable[[Progress, Controls], R], *, in_place: bool = False
) -> Callable[[Progress, Controls], R]:
    """``search`` with its steps shown in ``view``, whose buttons have the same controls.

    With ``in_place`` the result takes the view's place at the end: for a search in the background,
    whose cell returned long ago.
    """

    def run(progress: Progress, controls: Controls) -> R:
        def step(done: Step, refused: Refused) -> None:
            view(done, refused)
            progress(done, refused)

        view.steer(controls)
        with view:
            result = search(step, controls)
            view.finish(result.summary, result if in_place else None)
        return result

    return run


def _lacking(kernel: Any, mode: Mode) -> str:
    """Why the widget cannot show, or ""."""
    if mode == "text":
        return "as text, as requested"
    missing = [name for name in ("ipywidgets", "anywidget") if find_spec(name) is None]
    if missing:
        return f"no live view: {' and '.join(missing)} not installed"
    # nbclient and nbconvert allow no input; a person's front end does.
    if mode == "auto" and not getattr(kernel, "_allow_stdin", True):
        return "no live view: executed without a front end"
    return ""


def _hint(subject: Subject, shell: Any) -> str:
    """Where a button does nothing while the cell runs, what to do instead.

    Kernels without subshells, ipykernel 6 among them, take messages between cells only, and VS Code
    sends none to a subshell.
    """
    subshells = getattr(shell.kernel, "_supports_kernel_subshells", False)
    heard = subshells and _VS_CODE not in shell.user_ns
    return "" if subject.background or heard else UNHEARD
