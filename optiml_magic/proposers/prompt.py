"""Words for a model: the texts of this package, programs and what became of them.

Texts are joined, never formatted, so that braces and percent signs of CUDA arrive as they are.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from optiml_magic.chips import CHIPS, Chip
from optiml_magic.errors import UsageError
from optiml_magic.model.candidate import text_digest
from optiml_magic.model.evaluation import Step
from optiml_magic.model.measurement import Measurement
from optiml_magic.settings import resolve


def system() -> str:
    """What holds for every question."""
    return "\n".join([text("system"), text("program"), text("reply")])


def failed(step: Step, *, exact: bool = False) -> str:
    """The question about a program of the model's own that failed its evaluation."""
    task = [text("debug"), *([text("exact")] if exact else [])]
    return joined(
        ("Your program", fenced(step.candidate.text)),
        ("What it was for", step.candidate.proposal.title),
        ("What was wrong with it", verdict(step)),
        ("Your task", "\n".join(task)),
    )


def joined(*sections: tuple[str, str]) -> str:
    """Titles and bodies as one text; what has no body is left out."""
    return "\n\n".join(f"# {title}\n\n{body.strip()}" for title, body in sections if body.strip())


def text(name: str) -> str:
    """A text of this package, or the user's own of that name; raises UsageError for an odd one."""
    return _text(name, resolve().prompts)


@cache
def _text(name: str, folder: str) -> str:
    own = Path(folder).expanduser() / f"{name}.md"
    if not folder or not own.is_file():
        return _prompts().joinpath(f"{name}.md").read_text(encoding="utf-8")
    try:
        return own.read_text(encoding="utf-8")
    except (OSError, ValueError) as unreadable:
        raise UsageError(f"{own} cannot be read: {unreadable}", fix="save it as UTF-8") from None


def _prompts() -> Traversable:
    return files(__package__).joinpath("prompts")


def digest() -> str:
    """Of all texts that are in use: two runs of one digest asked in the same words."""
    names = sorted(one.name.removesuffix(".md") for one in _prompts().iterdir())
    return text_digest("\0".join(map(text, names)))[:12]


def fenced(program: str, language: str = "cuda") -> str:
    """A program as it is, in a fence longer than any in it.

    It has no line numbers, since a model copies them into the texts that it wants found. What
    points at a line quotes the line instead.
    """
    longest = max((len(run) for run in re.findall("`{3,}", program)), default=2)
    fence = "`" * (longest + 1)
    return "\n".join([fence + language, program.rstrip("\n"), fence])


def verdict(step: Step) -> str:
    """Whether a step is right, and else what is wrong with it, with the line quoted."""
    found = step.evaluation.verdict
    if found.passed:  # on how many inputs is a matter of time: equal questions have equal words
        return "It is right."
    place = f" at {line_of(step, found.line)}" if found.line else ""
    fix = f"; fix: {found.fix}" if found.fix else ""
    return f"It failed ({found.outcome}){place}: {found.summary}{fix}"


def outcome(step: Step, other: Step) -> str:
    """What became of a step, its time beside that of another."""
    evaluation = step.evaluation
    if evaluation.duplicate_of is not None:
        return "the compiler made the same machine code of it as of an earlier program"
    if not evaluation.verdict.passed or evaluation.measurement is None:
        return verdict(step)
    return f"right, {time_of(evaluation.measurement)}{against(step, other)}{tested(step)}"


def tested(step: Step) -> str:
    """What was expected of the edit, and what came."""
    hypothesis, test = step.candidate.proposal.hypothesis, step.evaluation.test
    return f"; expected {hypothesis}, {test}" if hypothesis and test else ""


def against(step: Step, other: Step) -> str:
    """How the times of two steps compare, where they can be compared."""
    before, after = other.evaluation.measurement, step.evaluation.measurement
    if step.candidate.number == other.candidate.number or before is None or after is None:
        return ""
    if (before.source, before.chip) != (after.source, after.chip) or not after.seconds:
        return ""
    name = "the input kernel" if other.candidate.number == 0 else "the program above"
    return f", {before.seconds / after.seconds:.3g}x the speed of {name} ({after.source})"


def time_of(measured: Measurement) -> str:
    """How long it took, by what means, and where."""
    return f"{measured.seconds * 1e6:.4g} us, {measured.source}, on {measured.chip}"


def chip(step: Step) -> str:
    """The chip that a step was measured on, and what the device lacks; "" where it was not."""
    measured = step.evaluation.measurement
    if measured is None:
        return ""
    parts = [measured.chip]
    if known := CHIPS.get(measured.chip):
        parts = _described(known)
    emulated = text("emulated") if measured.source == "estimated" else ""
    return "\n".join([". ".join(parts) + ".", emulated])


def _described(chip: Chip) -> list[str]:
    major, minor = chip.capability
    shared, most = chip.shared_bytes_per_sm >> 10, chip.shared_bytes_per_block >> 10
    return [
        f"{chip.title}, compute capability {major}.{minor}, {chip.sms} multiprocessors",
        f"Each has {shared} KB of shared memory ({most} KB a block at most)",
        f"Each has {chip.registers_per_sm} registers and room for {chip.warps_per_sm} warps",
        f"DRAM {chip.dram_bandwidth / 1e12:.3g} TB/s, L2 {chip.l2_bytes >> 20} MB",
        f"float32 {chip.fp32_flops / 1e12:.3g} TFLOP/s, float64 {chip.fp64_flops / 1e12:.3g}",
    ]


def line_of(step: Step, number: int) -> str:
    """A line of a step's program, quoted."""
    lines = step.candidate.text.splitlines()
    quoted = lines[number - 1].strip()[:160] if 0 < number <= len(lines) else ""
    return f"line {number}: `{quoted}`" if quoted else f"line {number}"
