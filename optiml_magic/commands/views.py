"""What ``check`` and ``profile`` return: values that show themselves in a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optiml_magic.model.evaluation import Evaluation
from optiml_magic.optimize import Checked
from optiml_magic.reports import text
from optiml_magic.reports.markup import element


@dataclass(frozen=True)
class _View:
    checked: Checked

    @property
    def evaluation(self) -> Evaluation:
        """The evaluation with all its evidence."""
        return self.checked.evaluation

    @property
    def passed(self) -> bool:
        """Whether the kernel passed its check."""
        return self.evaluation.verdict.passed

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        plain = repr(self)
        return {"text/plain": plain, "text/html": element("pre", plain)}


class CheckView(_View):
    """The verdict on one kernel."""

    def __repr__(self) -> str:
        verdict, problem = self.evaluation.verdict, self.checked.problem
        lines = [
            f"{problem.name}: {text.describe(verdict)}",
            f"  device       {self.checked.choice.name}: {self.checked.choice.reason}",
            f"  checked by   {problem.oracle}",
        ]
        lines += [
            f"  {check.name:<12} {check.elements - check.wrong} of {check.elements} right, "
            f"relative error {check.error:.2g} (allowed {check.rtol:.2g})"
            for check in verdict.checks
        ]
        lines += [f"  note         {note}" for note in self.checked.notes]
        return "\n".join(lines)


class ProfileView(_View):
    """The measurement of one kernel and what it means."""

    def __repr__(self) -> str:
        evaluation = self.evaluation
        if evaluation.measurement is None:
            return CheckView.__repr__(self)  # type: ignore[arg-type]  # the same field
        head = f"{self.checked.problem.name}: {evaluation.roofline} bound"
        lines = [head, *(f"  {x}" for x in text.measurement(evaluation.measurement))]
        found = text.findings(evaluation.findings)
        if found:
            lines += ["", "findings:", *(f"  {line}" for line in found)]
        lines += [f"note: {note}" for note in self.checked.notes]
        return "\n".join(lines)
