"""What ``check``, ``profile`` and ``annotate`` return: values that show themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.experience import Entry
from optiml_magic.model.hit_rates import Tally
from optiml_magic.model.verdict import OutputCheck
from optiml_magic.optimize import Checked
from optiml_magic.printable import printable
from optiml_magic.reports import (
    annotation_html,
    annotation_text,
    experience,
    html,
    marks,
    paths,
    standing,
    text,
)
from optiml_magic.reports.annotation import Annotation
from optiml_magic.reports.lines import lines as lines_of
from optiml_magic.reports.markup import Markup, element
from optiml_magic.reports.printed import block
from optiml_magic.verifiers.hazards import report


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

    @property
    def _device(self) -> tuple[str, str]:
        choice = self.checked.choice
        return ("device", f"{choice.name}: {choice.reason}")

    @property
    def _notes(self) -> list[tuple[str, str]]:
        return [("note", printable(note)) for note in self.checked.notes]

    @property
    def _printed(self) -> list[str]:
        return block(self.evaluation.verdict.printed)

    def _bundle(self, page: Markup) -> dict[str, Any]:
        marked = marks.evaluated(self.checked.text, self.evaluation)
        return {"text/plain": repr(self), "text/html": self._with_printed(page), **marked}

    def _with_printed(self, page: Markup) -> Markup:
        printed = self._printed
        return element("div", page, element("pre", "\n".join(printed))) if printed else page


def _rightness(check: OutputCheck) -> str:
    right = f"{check.elements - check.wrong} of {check.elements} right"
    if not check.comparable:
        return right
    ulp = f", at most {check.max_ulp:.3g} ulp" if check.max_ulp and not check.wrong else ""
    of = " of the finite ones" if check.nonfinite else ""
    return f"{right}, relative error{of} {check.error:.2g} (allowed {check.rtol:.2g}){ulp}"


class CheckView(_View):
    """The verdict on one kernel."""

    @property
    def _facts(self) -> list[tuple[str, str]]:
        checks = [(check.name, _rightness(check)) for check in self.evaluation.verdict.checks]
        hazards = [("hazard", line) for line in report(self.evaluation.verdict.hazards)]
        oracle = ("checked by", self.checked.problem.oracle)
        return [self._device, oracle, *checks, *hazards, *self._notes]

    def __repr__(self) -> str:
        head = f"{self.checked.problem.name}: {text.describe(self.evaluation.verdict)}"
        facts = (f"  {name:<12} {fact}" for name, fact in self._facts)
        where = (f"  {line}" for line in text.pictures(self.evaluation.verdict))
        return "\n".join([head, *facts, *where, *self._printed])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return self._bundle(
            html.verdict(self.checked.problem.name, self.evaluation.verdict, self._facts)
        )


@dataclass(frozen=True)
class ExperienceView:
    """What earlier runs learned, in tables."""

    tallies: tuple[Tally, ...]
    own: tuple[Entry, ...] = ()
    shipped: tuple[Entry, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        tables = (experience.text(self.tallies), paths.text(self.own, self.shipped))
        return "\n".join(["\n\n".join(tables), *(f"note: {n}" for n in self.notes)])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        notes = [element("p", f"note: {note}") for note in self.notes]
        page = element("div", self.fragment(), *notes)
        return {"text/plain": repr(self), "text/html": page}

    def fragment(self) -> Markup:
        """The tables as static HTML."""
        won = paths.fragment(self.own, self.shipped)
        return element("div", experience.fragment(self.tallies), won)


class ProfileView(_View):
    """The measurement of one kernel and what it means; its verdict where it has none."""

    @property
    def _headline(self) -> str:
        return f"{self.checked.problem.name}: {self.evaluation.roofline} bound"

    def __repr__(self) -> str:
        evaluation = self.evaluation
        if evaluation.measurement is None:
            return repr(CheckView(self.checked))
        first, *metrics = text.measurement(evaluation.measurement)
        lines = [self._headline, f"  {first}"]
        if evaluation.standing is not None:
            lines += [f"  {name:<6} {fact}" for name, fact in standing.lines(evaluation.standing)]
        lines += [f"  {name:<6} {note}" for name, note in self._notes]
        sections = {
            "findings": text.findings(evaluation.findings),
            "by line of the kernel": lines_of(evaluation.measurement),
            "metrics": [*standing.levels(evaluation.measurement), *metrics],
        }
        for title, found in sections.items():
            if found:
                lines += ["", f"{title}:", *(f"  {line}" for line in found)]
        return "\n".join([*lines, *([""] if self._printed else []), *self._printed])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        evaluation = self.evaluation
        if evaluation.measurement is None:
            return CheckView(self.checked)._repr_mimebundle_()
        facts = [self._device, *self._notes]
        if evaluation.standing is not None:
            facts += standing.lines(evaluation.standing)
        facts += [("levels", line) for line in standing.levels(evaluation.measurement)]
        return self._bundle(
            html.profile(self._headline, evaluation.measurement, evaluation.findings, facts)
        )


@dataclass(frozen=True)
class AnnotateView:
    """A kernel's text with what became of each line."""

    annotation: Annotation

    def __repr__(self) -> str:
        return annotation_text.render(self.annotation)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        lines = self.annotation.lines
        found = [finding for line in lines for finding in line.findings]
        marked = marks.advised([line.source for line in lines], found)
        page = annotation_html.fragment(self.annotation)
        return {"text/plain": repr(self), "text/html": page, **marked}
