"""Every exception of this package: its class says whether user, machine or this code is at fault.

    OptimlError
      UsageError        the cell, the flags or the task must change
        SourceError       the kernel text or a directive; carries a line of the cell
          RequirementError  the program says itself that it is not for these sizes
        BindingError      a parameter and the array given for it do not fit
        OracleError       the reference raised, or is not a function of its inputs
        KernelFailed      the input kernel itself does not compile, faults or is wrong
          KernelUnsupported the device cannot run it: nothing is said about the kernel
      MachineError      this machine lacks something; the message names the remedy
      InternalError     a defect of this package

A candidate that does not compile, is wrong, traps or hangs is none of these: it is a ``Verdict``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from optiml_magic.printable import printable

_SURELY, _PERHAPS = 0.75, 0.5  # shares of equal characters; ours


def nearest(word: str, known: Iterable[str], *, surely: bool = False) -> str:
    """A question that names the closest of the known words, as a fix; nothing where none is.

    ``surely`` leaves out those that are hardly alike.
    """
    names = sorted(known)
    close = difflib.get_close_matches(word[:100], names, n=1, cutoff=_SURELY)
    if not surely:
        close = close or difflib.get_close_matches(word[:100], names, n=3, cutoff=_PERHAPS)
    return "did you mean " + " or ".join(f"`{name}`" for name in close) + "?" if close else ""


class OptimlError(Exception):
    """Base of all. ``fix`` is one sentence saying what to do; ``line`` a 1-based line of the text.

    ``excerpt`` is the text of that line, once a front end that holds the text has filled it in.
    """

    def __init__(self, message: str, *, fix: str = "", line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        self.line = line or None
        self.excerpt = ""

    def __str__(self) -> str:
        parts = [f"line {self.line}: {self.message}" if self.line else self.message]
        if self.line and self.excerpt:
            parts.append(f"  {self.line} | {self.excerpt}")
        if self.fix:
            parts.append(f"  fix: {self.fix}")
        return printable("\n".join(parts))

    def quoting(self, text: str) -> OptimlError:
        """This error with the line of ``text`` that it points at."""
        lines = text.splitlines()
        if self.line and self.line <= len(lines):
            self.excerpt = lines[self.line - 1].strip()[:120]
        return self

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a Python traceback."""
        return [f"{type(self).__name__}: {self}"]


class UsageError(OptimlError):
    """The user's input must change."""


class SourceError(UsageError):
    """The kernel text or one of its directives."""


class RequirementError(SourceError):
    """A ``require`` of the program does not hold for these sizes."""


class BindingError(UsageError):
    """A kernel parameter and the value bound to it do not fit."""


class OracleError(UsageError):
    """The reference raised, gave the wrong shape, or answered differently when called twice."""


class KernelFailed(UsageError):  # noqa: N818  # it says what happened to whom
    """The input kernel did not pass, so there is nothing to optimise or to run."""


class KernelUnsupported(KernelFailed):
    """The device lacks what the input kernel uses; another device may run it."""


class MachineError(OptimlError):
    """Something that this machine lacks."""


class InternalError(OptimlError):
    """A defect of this package."""
