"""``%optiml`` until it is used: what it needs takes most of a second to load."""

from __future__ import annotations

from typing import Any

from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand


@magics_class
class FirstUse(Magics):
    """Puts ``OptimlMagics`` in its place, and runs the line or the cell once more."""

    @no_var_expand
    @line_cell_magic
    def optiml(self, line: str, cell: str | None = None) -> Any:
        """CUDA kernels: optimize, check, profile, run, and more; %optiml help lists all."""
        from optiml_magic.magics.optiml import OptimlMagics

        shell: Any = self.shell
        shell.register_magics(OptimlMagics)
        if cell is None:
            return shell.run_line_magic("optiml", line)
        return shell.run_cell_magic("optiml", line, cell)
