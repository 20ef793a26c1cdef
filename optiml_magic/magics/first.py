"""``%optiml`` until it is used: what it needs takes most of a second to load."""

from __future__ import annotations

import re
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from optiml_magic.commands import parsers


def begin(shell: InteractiveShell) -> None:
    """Give the shell ``%optiml``, unless it has it already with all that was kept."""
    if as_line not in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.append(as_line)
        shell.register_magics(FirstUse)


def as_line(lines: list[str]) -> list[str]:
    """``%%optiml`` without a body as the line magic: IPython refuses a cell magic without one."""
    first, rest = lines[:1], lines[1:]
    alone = bool(first) and re.match(r"%%optiml\b", first[0]) and not "".join(rest).strip()
    return [first[0][1:]] if alone and not first[0].rstrip().endswith("?") else lines


@magics_class
class FirstUse(Magics):
    """Puts ``OptimlMagics`` in its place, and runs the line or the cell once more."""

    @no_var_expand
    @line_cell_magic
    def optiml(self, line: str, cell: str | None = None) -> Any:
        from optiml_magic.magics.optiml import OptimlMagics

        shell: Any = self.shell
        shell.register_magics(OptimlMagics)
        if cell is None:
            return shell.run_line_magic("optiml", line)
        return shell.run_cell_magic("optiml", line, cell)

    optiml.__doc__ = (
        f"CUDA kernels proved right, measured, explained and made faster.\n\n{parsers.HELP}"
    )
