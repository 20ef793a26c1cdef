"""Double precision by accident: arithmetic in float64 though no array holds it.

A literal such as ``0.5`` is a double, and turns what it meets into one. Source: CUDA C++ Best
Practices Guide, "Single-Precision Floating Point Literals".
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.base import saved
from optiml_magic.findings.subject import Subject
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass
from optiml_magic.ptx.traits import kind

# Of the executed instructions. A card counts the conversions around the arithmetic elsewhere, so
# that one float64 product among twenty instructions is three of them.
_PART = 0.02
_METRIC = "smsp__inst_executed_pipe_fp64.sum"
_DOUBLES = ("double", "double2", "double3", "double4")
_EXECUTED = "smsp__inst_executed.sum"


class AccidentalFp64:
    """Fires once, on the line with most float64 instructions."""

    name = "accidental_fp64"
    classes: frozenset[RooflineClass] = frozenset(
        {"memory", "compute", "latency", "mixed", "launch"}
    )
    metrics: tuple[str, ...] = (
        _METRIC,
        _EXECUTED,
        "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active",
    )

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        executed, total = subject.measured.get(_METRIC), subject.measured.get(_EXECUTED)
        if not executed or not total or executed < _PART * total or _meant(subject):
            return
        line = _line(subject)
        rate = subject.chip.fp32_per_sm / subject.chip.fp64_per_sm
        share = max(subject.share("fp64") or 0.0, executed / total)
        where = f" on line {line}" if line else ""
        yield Finding(
            tool=self.name,
            severity="critical" if share > 0.3 and rate > 4 else "warning",
            cause=f"{100 * executed / total:.0f} % of the instructions compute in double"
            f"{where}, though no argument is one: a literal or a function without its `f`.",
            evidence=(
                Evidence(_METRIC, executed, _PART * total, "inst", subject.counted_by, line),
            ),
            actions=(
                Action(
                    "Write float literals (0.5f) and float functions (sqrtf).",
                    "float_literals",
                    _METRIC,
                    factor=(2.0, 1e6),
                ),
            ),
            gain=(1.0, saved(share)),
            reason=f"this chip has {rate:.0f} times the float units, and conversions go with it",
        )


def _meant(subject: Subject) -> bool:
    """Whether the program says double itself: in an argument, in its text, or to printf alone."""
    codes = [run.code for run in subject.runs if run.code]
    lines = {
        i.line
        for code in codes
        for i in code.instructions
        if kind(i) == "fp64" and i.base not in ("cvt", "mov")
    }
    if codes and all("printf" in subject.lines.calls(line) for line in lines):
        return True
    doubles = any("double" in p.ctype for p in subject.parameters.values()) or any(
        "double" in (launch.kernel or "") for launch in subject.program.launches
    )
    return doubles or subject.lines.spells(*_DOUBLES)


def _line(subject: Subject) -> int:
    found: dict[int, int] = {}
    for run in subject.runs:
        for line in run.counts.lines if run.counts else ():
            found[line.line] = found.get(line.line, 0) + line.by_class.get("fp64", 0)
        if not any(found.values()) and run.code:
            for instruction in run.code.instructions:
                if kind(instruction) == "fp64":
                    found[instruction.line] = found.get(instruction.line, 0) + 1
    most = max(found, key=lambda at: found[at], default=0)
    return most if found.get(most) else 0
