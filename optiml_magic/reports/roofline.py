"""The roofline with the search's path on it (Williams et al. 2009).

A kernel without floating-point operations stands on the instruction roofline instead (Ding and
Williams, "An Instruction Roofline Model for GPUs", 2019): warp instructions in place of operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from optiml_magic.chips import CHIPS
from optiml_magic.model.evaluation import Step
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.roofline import Work
from optiml_magic.reports.figure import (
    AFTER,
    BEFORE,
    HEIGHT,
    INK,
    OTHER,
    WIDTH,
    NoPicture,
    Picture,
    drawing,
    label,
    picture,
    settle,
)  # fmt: skip
from optiml_magic.reports.quantities import seconds
from optiml_magic.reports.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "roofline"
_SCHEDULERS = 4  # warp instructions issued per clock and multiprocessor
_MOST = 8  # steps of the path that are drawn
_BYTES = "dram__bytes.sum"


@dataclass(frozen=True)
class _Point:
    step: Step
    intensity: float  # operations or instructions per byte
    rate: float  # of them per second

    @property
    def key(self) -> str:
        measured = self.step.evaluation.measurement
        assert measured is not None
        title = label(self.step.candidate.proposal.title)
        return f"#{self.step.candidate.number} {title}: {seconds(measured.seconds)}"


@dataclass(frozen=True)
class _Unit:
    """What a rate counts: its metric, and the roofs that it meets, by name, per second."""

    metric: str
    noun: str
    short: str
    roofs: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class _Limits:
    """What a chip can do at most; ``source`` says whether it was measured on this card."""

    title: str
    memory: float  # bytes/s
    operations: _Unit
    instructions: _Unit
    source: str


def roofline(summary: Summary) -> Picture | NoPicture:
    """The chip's roofs; the input kernel, each best so far and the winner below them."""
    root = summary.root.evaluation.measurement
    if root is None:
        return NoPicture(NAME, "the input kernel has no time")
    limits = _limits(summary, root)
    if limits is None:
        return NoPicture(NAME, f"no limits of {root.chip} are known")
    units = (limits.operations, limits.instructions)
    unit = next((u for u in units if root.get(u.metric) and root.get(_BYTES)), None)
    work = None
    if unit is None:
        unit, work = limits.operations, _work(summary)
        if work is None:
            what = "neither operations nor instructions were counted with DRAM bytes"
            return NoPicture(NAME, f"{what}, and the task does not say what it needs")
    path = _thinned([p for step in best_so_far(summary) if (p := _point(step, unit, work))])
    passed = [step for step in summary.trajectory.steps if step.evaluation.verdict.passed]
    others = [p for step in passed if (p := _point(step, unit, work))]
    with drawing(WIDTH, HEIGHT) as (figure, axes):
        _scales(axes, unit, limits, [*path, *others])
        _dots(axes, others)
        _path(axes, path, summary.winner)
        axes.set_xlabel(f"{unit.noun} per byte of device memory")
        axes.set_ylabel(f"{unit.noun} per second")
        axes.set_title(f"{label(summary.task, 40)} under the roofs of {limits.title}")
        figure.legend(
            loc="outside lower left",
            fontsize=9,
            handlelength=1.2,
            title=f"{_sources(root, unit, work)}; roofs {limits.source}",
            title_fontsize=9,
            alignment="left",
        )
        settle(figure)  # so that the slope of the roof is known
        _roofs(axes, unit, limits)
        return picture(figure, NAME, _told(summary, unit, path))


def _limits(summary: Summary, root: Measurement) -> _Limits | None:
    """The roofs that the kernel was judged by, else those published for its chip."""
    chip, standing = CHIPS.get(root.chip), summary.root.evaluation.standing
    if chip is None:
        return None
    memory, single, double = chip.dram_bandwidth, chip.fp32_flops, chip.fp64_flops
    operations, source = [("fp32", single)], "published"
    doubles = any(kernel.flops.get("f64") for kernel in root.kernels)
    if standing is not None:
        roofs = standing.roofs
        memory, single, double, source = roofs.memory, roofs.fp32, roofs.fp64, roofs.source
        operations = [("fp32", single)]
        if standing.work.precision == "tensor" and roofs.tensor:
            operations.append(("tensor", roofs.tensor))
        doubles = doubles or standing.work.precision == "fp64"
    if doubles:
        operations.append(("fp64", double))
    issue = (("issue", float(chip.sms * _SCHEDULERS * chip.clock)),)
    return _Limits(
        chip.title,
        memory,
        _Unit("flop_count.sum", "floating-point operations", "FLOP", tuple(operations)),
        _Unit("smsp__inst_executed.sum", "warp instructions", "inst", issue),
        source,
    )


def best_so_far(summary: Summary) -> list[Step]:
    """The input kernel and each verified step that was faster than all before; the winner last."""
    found, fastest = [summary.root], _time(summary.root)
    for step in summary.trajectory.steps[1:]:
        if step.evaluation.verdict.passed and _time(step) < fastest:
            found.append(step)
            fastest = _time(step)
    if summary.winner not in found:
        found.append(summary.winner)
    return found


def _time(step: Step) -> float:
    measured = step.evaluation.measurement
    return measured.seconds if measured else float("inf")


def _work(summary: Summary) -> Work | None:
    """What the task needs at least, where there are operations in it."""
    standing = summary.root.evaluation.standing
    return standing.work if standing and standing.work.intensity else None


def _point(step: Step, unit: _Unit, work: Work | None) -> _Point | None:
    """By what was counted; with ``work`` by what the task needs, the same for every program."""
    measured = step.evaluation.measurement
    if measured is None:
        return None
    done, moved = measured.get(unit.metric), measured.get(_BYTES)
    if work is not None:
        done, moved = work.flops, work.bytes
    return _Point(step, done / moved, done / measured.seconds) if done and moved else None


def _sources(measured: Measurement, unit: _Unit, work: Work | None) -> str:
    """Where the figures behind a point come from."""
    noun = unit.noun.split()[-1]
    named = {m.name: m.source for m in reversed(measured.metrics)}
    if work is not None:
        basis = f"{noun} {work.flops_basis}, bytes {work.bytes_basis} for the task"
    else:
        basis = f"{noun} {named[unit.metric]}, bytes {named[_BYTES]}"
    return f"times {measured.source}, {basis}"


def _scales(axes: Axes, unit: _Unit, limits: _Limits, points: Sequence[_Point]) -> None:
    ridges = [roof / limits.memory for _, roof in unit.roofs]
    places = [*(p.intensity for p in points), *ridges]
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(min(places) / 5, max(places) * 5)
    axes.set_ylim(min(p.rate for p in points) / 4, max(roof for _, roof in unit.roofs) * 4)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: _rate(value).strip())
    axes.tick_params(which="minor", labelbottom=False, labelleft=False)
    axes.grid(visible=True, color=OTHER, alpha=0.25, linewidth=0.6)


def _roofs(axes: Axes, unit: _Unit, limits: _Limits) -> None:
    (low, high), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    ridges = [roof / limits.memory for _, roof in unit.roofs]
    for (name, roof), ridge in zip(unit.roofs, ridges, strict=True):
        axes.plot([ridge, high], [roof, roof], color=INK, linewidth=1.6)
        axes.annotate(
            f"{name} {_rate(roof)}{unit.short}/s", (high, roof), (-2, 4),
            textcoords="offset points", ha="right",
        )  # fmt: skip
    start, end = max(low, bottom / limits.memory), max(ridges)
    axes.plot([start, end], [start * limits.memory, end * limits.memory], color=INK, linewidth=1.6)
    across = axes.bbox.width / math.log(high / low)
    slope = axes.bbox.height / math.log(top / bottom) / across
    middle = math.sqrt(start * end)
    axes.annotate(
        f"DRAM {_rate(limits.memory)}B/s", (middle, middle * limits.memory), (-4, 4),
        textcoords="offset points", ha="center", va="bottom",
        rotation=math.degrees(math.atan(slope)), rotation_mode="anchor",
    )  # fmt: skip


def _dots(axes: Axes, points: Sequence[_Point]) -> None:
    """Every other verified candidate: lines of no length, which take few bytes."""
    nan = float("nan")
    across = [x for p in points for x in (p.intensity, p.intensity, nan)]
    up = [y for p in points for y in (p.rate, p.rate, nan)]
    axes.plot(across, up, color=OTHER, linewidth=4, solid_capstyle="round", alpha=0.45)


def _path(axes: Axes, path: Sequence[_Point], winner: Step) -> None:
    for one, other in pairwise(path):
        axes.annotate(
            "",
            (other.intensity, other.rate),
            (one.intensity, one.rate),
            arrowprops={"arrowstyle": "->", "color": OTHER, "shrinkA": 5, "shrinkB": 5},
        )
    for at, point in enumerate(path):
        marker, size = ("*", 14) if point.step is winner else ("o", 7)
        color = AFTER if at else BEFORE
        axes.plot(
            [point.intensity], [point.rate], marker, color=color, markersize=size, label=point.key
        )


def _thinned(path: Sequence[_Point]) -> list[_Point]:
    """The ends of a path, and between them the steps that gained most."""
    times = [_time(point.step) for point in path]
    gains = {at: times[at - 1] / times[at] for at in range(1, len(path) - 1)}
    most = sorted(gains, key=lambda at: -gains[at])[: _MOST - 2]
    return [path[at] for at in sorted({0, len(path) - 1, *most})] if path else []


def _rate(value: float) -> str:
    for scale, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= scale:
            return f"{value / scale:.3g} {letter}"
    return f"{value:.3g} "


def _told(summary: Summary, unit: _Unit, path: Sequence[_Point]) -> str:
    first, last = path[0], path[-1]
    return (
        f"Roofline of {summary.task}, {summary.source}: the input kernel does "
        f"{first.intensity:.3g} {unit.noun} per byte at {_rate(first.rate)}{unit.short}/s, the "
        f"final one {last.intensity:.3g} at {_rate(last.rate)}{unit.short}/s."
    )
