"""``%optiml`` until it is used: what it needs takes most of a second to load."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from optiml_magic.commands.page import HELP
from optiml_magic.magics import hooks

_ASKED = re.compile(r"%%?optiml\s+(\w+).*\?\s*$")
_ON_A_DEVICE = ("check", "profile", "run", "optimize", "synthesize")

SCHEMA = 1  # of questions and answers
TARGET = "optiml"


def begin(shell: InteractiveShell) -> None:
    """Give the shell ``%optiml``, unless it has it already with all that was kept."""
    if as_line not in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.append(as_line)
        shell.register_magics(FirstUse)
        hooks.begin(shell)
        comms = getattr(getattr(shell, "kernel", None), "comm_manager", None)
        if comms is not None:
            comms.register_target(TARGET, partial(_answer, shell))


def _answer(shell: Any, comm: Any, message: Mapping[str, Any]) -> None:
    """Answer the question that a front end opened a comm with."""
    from optiml_magic.magics.questions import answered

    comm.send({"schema": SCHEMA, **answered(shell, message["content"]["data"])})
    comm.close()


def as_line(lines: list[str]) -> list[str]:
    """``%%optiml`` without a body as the line magic: IPython refuses a cell magic without one.

    And ``%optiml COMMAND?`` as the help of that command, not of a name in Python.
    """
    first, rest = lines[:1], lines[1:]
    if not first or "".join(rest).strip():
        return lines
    if asked := _ASKED.match(first[0]):
        return [f"%optiml help {asked[1]}\n"]
    alone = re.match(r"%%optiml\b", first[0]) and not first[0].rstrip().endswith("?")
    return [first[0][1:]] if alone else lines


@magics_class
class FirstUse(Magics):
    """Puts ``OptimlMagics`` in its place, and runs the line or the cell once more."""

    @no_var_expand
    @line_cell_magic
    def optiml(self, line: str, cell: str | None = None) -> Any:
        from optiml_magic import early

        words = line.split()
        # One in the background asks for its processes when this has returned.
        if words[:1] and words[0] in _ON_A_DEVICE and "--background" not in words:
            early.begin(words)
        try:
            from optiml_magic.magics.optiml import OptimlMagics

            shell: Any = self.shell
            shell.register_magics(OptimlMagics)
            if cell is None:
                return shell.run_line_magic("optiml", line)
            return shell.run_cell_magic("optiml", line, cell)
        finally:
            early.end()

    optiml.__doc__ = f"CUDA kernels proved right, measured, explained and made faster.\n\n{HELP}"
