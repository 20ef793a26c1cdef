"""What a user holds after a run: the best kernel to call, the evidence, and views of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from optiml_magic import exports
from optiml_magic.errors import KernelFailed, MachineError, UsageError
from optiml_magic.exports import Exportable
from optiml_magic.model.evaluation import Trajectory
from optiml_magic.reports import html, marks, shown, table, text
from optiml_magic.reports.figure import Picture
from optiml_magic.reports.markup import element
from optiml_magic.reports.pictures import pictures
from optiml_magic.reports.roofline import roofline
from optiml_magic.reports.shown import Diff, Tree
from optiml_magic.reports.summary import Summary


class Kernel:
    """A program that can be called with arrays; a fresh output comes back.

    Arguments are the kernel's inputs in the order of its parameters, or by name. Scalars that
    follow from the shapes of the inputs may be left out; an output that is given by name is written
    to. NumPy arrays run where ``device`` says, guarded by its host; CuPy arrays and torch tensors
    on a GPU run right there: in this process, without a copy, on their library's current stream.
    """

    def __init__(
        self,
        exportable: Exportable,
        parameters: Sequence[str],
        outputs: Sequence[str],
        device: str,
        run: KernelRun,
    ) -> None:
        self.program = exportable.program
        self.outputs = tuple(outputs)
        self._exportable = exportable
        self.device = device
        self.parameters = tuple(parameters)
        self._run = run

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        if len(arrays) > len(self.parameters):
            raise UsageError(
                f"{len(arrays)} arguments given",
                fix=f"name an input: {', '.join(self.parameters)}",
            )
        given = dict(zip(self.parameters, arrays, strict=False))
        twice = given.keys() & named.keys()
        unknown = named.keys() - {*self.parameters, *self.outputs}
        if twice or unknown:
            name = min(twice or unknown)
            what = "given twice" if twice else "not an input of this kernel"
            raise UsageError(
                f"`{name}` is {what}", fix=f"name an input: {', '.join(self.parameters)}"
            )
        outputs = self._run(self.program.text, {**given, **named})
        values = tuple(outputs.values())
        return values[0] if len(values) == 1 else values

    def export(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write it as a file that stands alone; .cu, .py and _torch.py name the formats.

        Raises UsageError for another ending, a missing folder, or a file that is there already.
        """
        return exports.write(self._exportable, path, overwrite=overwrite)

    def __repr__(self) -> str:
        taken, made = ", ".join(self.parameters), ", ".join(self.outputs)
        arrow = f" -> {made}" if made else ""
        return f"<kernel {self._exportable.name}({taken}){arrow} on {self.device}>"

    def _repr_html_(self) -> str:
        how = "call it with arrays; .program.text is its text, .export(path) writes it to a file"
        text = shown.code(self.program.text)
        return element("div", element("p", f"{self!r}: {how}"), text)


class KernelRun(Protocol):
    """Runs a program on inputs by name; returns its outputs by name."""

    def __call__(self, program: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """See the class."""


class Result:
    """The outcome of ``optimize``. Shown in a notebook it draws itself; ``best`` is a callable."""

    def __init__(self, summary: Summary, kernel: Callable[[str], Kernel]) -> None:
        self.summary = summary
        self.kernels = kernel

    @cached_property
    def best(self) -> Kernel:
        """The winner as a callable, ``out = result.best(a)``; the input if nothing beat it."""
        return self.kernels(self.summary.winner.candidate.text)

    @cached_property
    def original(self) -> Kernel:
        """The input kernel as a callable."""
        return self.kernels(self.summary.root.candidate.text)

    @property
    def program(self) -> str:
        """The winner's whole text, directives included."""
        return self.summary.winner.candidate.text

    @property
    def speedup(self) -> float:
        """Of the winner over the input; ``summary.source`` says whether it is estimated."""
        return self.summary.speedup

    @property
    def interval(self) -> tuple[float, float]:
        """Within which the speed-up is claimed to lie."""
        return self.summary.interval

    @property
    def trajectory(self) -> Trajectory:
        """Every candidate with its evaluation, in order."""
        return self.summary.trajectory

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        return self.best(*arrays, **named)

    def diff(self) -> Diff:
        """From the input kernel to the winner, as a unified diff: a str that shows its lines."""
        return Diff(self.summary.diff())

    def export(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the winner as a file that stands alone: see ``Kernel.export``; needs no GPU.

        Raises KernelFailed where the input kernel did not pass its check.
        """
        verdict = self.summary.winner.evaluation.verdict
        if not verdict.passed:
            raise KernelFailed(
                f"there is no verified program to export: {verdict.outcome}", fix=verdict.fix
            )
        return self.best.export(path, overwrite=overwrite)

    def pictures(self) -> dict[str, Picture]:
        """By name: ``roofline``, ``bars``, ``progress`` and ``tree``; those that there are.

        Each shows itself in a notebook, and ``.save(path)`` writes it as an SVG file.
        """
        return {p.name: p for p in pictures(self.summary) if isinstance(p, Picture)}

    def roofline(self) -> Picture:
        """The roofline of the chip with the search's path on it.

        Raises UsageError where there is none, and says why.
        """
        found = roofline(self.summary)
        if isinstance(found, Picture):
            return found
        raise UsageError(f"there is no roofline: {found.reason}", fix="see .rows() for the figures")

    @property
    def tree(self) -> Tree:
        """The numbers of the children of each candidate, by its number; 0 is the input kernel."""
        return Tree(self.summary)

    def rows(self) -> list[dict[str, Any]]:
        """One flat row for each candidate, in order; seconds with their source and chip."""
        return table.rows(self.summary)

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame.

        Raises MachineError where pandas is not installed, which is an extra of this package.
        """
        try:
            import pandas as pd
        except ImportError as cause:
            raise MachineError(
                "pandas is not installed",
                fix="pip install 'optiml-magic[pandas]', or use .rows(), a list of dicts",
            ) from cause
        return pd.DataFrame(self.rows())

    def __repr__(self) -> str:
        return text.render(self.summary)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        root = self.summary.root
        marked = marks.evaluated(root.candidate.text, root.evaluation)
        return {"text/plain": repr(self), "text/html": html.fragment(self.summary), **marked}
