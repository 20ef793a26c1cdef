"""The pictures of a run: the same bytes each time, small, and safe to set into any page."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import matplotlib as mpl
import pytest

from optiml_magic.errors import UsageError
from optiml_magic.model.counters import KernelCounters
from optiml_magic.model.measurement import Bound, Measurement, Metric
from optiml_magic.model.roofline import Roofs, Standing, Work
from optiml_magic.reports import html
from optiml_magic.reports.bars import bars
from optiml_magic.reports.figure import NoPicture, Picture
from optiml_magic.reports.pictures import pictures
from optiml_magic.reports.progress import progress
from optiml_magic.reports.roofline import best_so_far, roofline
from optiml_magic.reports.summary import Summary
from optiml_magic.result import Result
from tests.unit.test_reports import EVIL, _Reader, summary

Change = Callable[[Measurement], Measurement]


def run(*durations: float | None, flops: float = 4e6, **others: object) -> Summary:
    """A run whose programs do ``flops`` operations on a megabyte in that many microseconds."""

    def counted(measured: Measurement) -> Measurement:
        metrics = (
            Metric("flop_count.sum", flops, "flop", "emulated"),
            Metric("smsp__inst_executed.sum", 5e5, "inst", "emulated"),
            Metric("dram__bytes.sum", 1e6, "byte", "estimated"),
        )
        found = replace(measured, seconds=1e-6 * measured.seconds, metrics=metrics)
        bounds = (Bound("dram", 0.7 * found.seconds), Bound("launch", 2e-6))
        return replace(found, **{"bounds": bounds, **others})  # type: ignore[arg-type]

    return changed(summary(*durations), counted)


def changed(found: Summary, change: Change) -> Summary:
    steps = tuple(
        replace(s, evaluation=replace(s.evaluation, measurement=change(s.evaluation.measurement)))
        if s.evaluation.measurement
        else s
        for s in found.trajectory.steps
    )
    return replace(found, trajectory=replace(found.trajectory, steps=steps))


def texts(found: Picture | NoPicture) -> list[str]:
    """What is written in a picture, in order."""
    assert isinstance(found, Picture)
    root = ET.fromstring(found.svg)
    return ["".join(e.itertext()) for e in root.iter("{http://www.w3.org/2000/svg}text")]


def test_the_path_is_the_input_and_each_best_so_far_and_the_winner() -> None:
    found = run(40, 20, 30, 10, None, 12)
    assert [s.candidate.number for s in best_so_far(found)] == [0, 1, 3]
    shown = texts(roofline(found))
    keys = [text for text in shown if re.match(r"#\d+ ", text)]
    assert [key.split()[0] for key in keys] == ["#0", "#1", "#3"]
    assert [key.rsplit(": ", 1)[1] for key in keys] == ["40 us", "20 us", "10 us"]
    # 4 MFLOP over 1 MB: 4 a byte; in 40 us 0.1 TFLOP/s, in 10 us 0.4.
    assert "does 4 floating-point operations per byte at 100 GFLOP/s" in repr(roofline(found))
    assert "the final one 4 at 400 GFLOP/s" in repr(roofline(found))
    assert "fp32 66.9 TFLOP/s" in shown
    assert "DRAM 4.8 TB/s" in shown
    assert "times estimated, operations emulated, bytes estimated; roofs published" in shown
    assert not any("fp64" in text for text in shown)


def test_without_operations_it_counts_instructions() -> None:
    found = roofline(run(40, 10, flops=0.0))
    assert "warp instructions per byte of device memory" in texts(found)
    assert "issue 1.05 Tinst/s" in texts(found)
    assert "does 0.5 warp instructions per byte at 12.5 Ginst/s" in repr(found)


def test_the_roofs_are_those_that_the_kernel_was_judged_by() -> None:
    found = run(40, 10)
    roofs = Roofs("h200", 4e12, 5e13, 2.5e13, 8e14, 2e-6, "measured")
    work = Work(4e6, 1e6, "declared", "declared", "tensor")
    standing = Standing("memory", "declared", work, roofs, 4e-5)
    first, *others = found.trajectory.steps
    first = replace(first, evaluation=replace(first.evaluation, standing=standing))
    found = replace(found, trajectory=replace(found.trajectory, steps=(first, *others)))
    shown = texts(roofline(found))
    assert {"DRAM 4 TB/s", "fp32 50 TFLOP/s", "tensor 800 TFLOP/s"} <= set(shown)
    assert any(text.endswith("; roofs measured") for text in shown)
    # Without counters the task's own needs place the kernels.
    timed = changed(found, lambda m: replace(m, metrics=(), source="events"))
    wanted = "times events, operations declared, bytes declared for the task; roofs measured"
    assert wanted in texts(roofline(timed))
    assert "does 4 floating-point operations per byte at 100 GFLOP/s" in repr(roofline(timed))


def test_double_precision_has_its_own_roof_where_it_is_used() -> None:
    def doubled(measured: Measurement) -> Measurement:
        counters = KernelCounters(
            "k", 1, 32, {}, {"f64": 4}, (), (), 0, 0, 0, 0, 0
        )  # fmt: skip
        return replace(measured, kernels=(counters,))

    shown = texts(roofline(changed(run(40, 10), doubled)))
    assert {"fp32 66.9 TFLOP/s", "fp64 33.5 TFLOP/s"} <= set(shown)


def test_bars_stand_for_the_terms_of_the_model_and_say_so() -> None:
    shown = texts(bars(run(40, 10)))
    assert "device memory" in shown
    assert "launching" in shown
    assert "input kernel, 40 us" in shown
    assert "best, 10 us" in shown
    assert any("goes on h200, estimated" in text for text in shown)
    # Nothing better was found: one bar each.
    assert not any(text.startswith("best, ") for text in texts(bars(run(40, 39))))


def test_without_terms_there_are_no_bars() -> None:
    assert bars(run(40, 10, bounds=())) == NoPicture(
        "bars", "the estimate does not say where the time goes"
    )


def test_on_a_card_bars_are_what_ncu_says_or_nothing() -> None:
    metric = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
    timed = {"source": "events", "bounds": (Bound("measured", 1e-5),)}
    assert bars(run(40, 10, **timed)) == NoPicture(
        "bars", "no hardware counters say where the time goes"
    )
    counted = run(40, 10, **timed, metrics=(Metric(metric, 61.0, "%", "ncu"),))
    shown = texts(bars(counted))
    assert "% of its peak" in shown
    assert any("keeps the parts of h200, by ncu" in text for text in shown)


def test_the_search_shows_what_failed() -> None:
    shown = texts(progress(run(40, 20, None, 10)))
    assert {"best so far", "verified", "failed", "speed-up, estimated", "4x"} <= set(shown)
    assert "the best of 4 evaluations is 4x, estimated, found as number 3; 1 failed" in repr(
        progress(run(40, 20, None, 10))
    )
    assert "failed" not in texts(progress(run(40, 20)))


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (changed(run(40, 10), lambda m: replace(m, chip="gtx")), "no limits of gtx are known"),
        (changed(run(40, 10), lambda m: replace(m, metrics=())), "counted with DRAM bytes"),
        (summary(None), "the input kernel has no time"),
    ],
)
def test_what_cannot_be_drawn_is_said(found: Summary, reason: str) -> None:
    missing = roofline(found)
    assert isinstance(missing, NoPicture)
    assert reason in missing.reason
    result = Result(found, lambda _: None)  # type: ignore[arg-type, return-value]
    assert "roofline" not in result.pictures()
    with pytest.raises(UsageError, match="there is no roofline: "):
        result.roofline()
    timed = found.root.evaluation.measurement is not None
    assert ("no roofline: " in html.fragment(found)) == timed


@pytest.mark.slow
def test_the_user_own_settings_are_neither_used_nor_changed() -> None:
    before = pictures(run(40, 10))
    with mpl.rc_context({"axes.facecolor": "pink", "font.size": 30, "svg.fonttype": "path"}):
        assert pictures(run(40, 10)) == before
        assert mpl.rcParams["font.size"] == 30


@pytest.mark.slow
def test_another_process_draws_the_same_bytes_and_needs_no_pyplot() -> None:
    program = (
        "import sys, warnings; warnings.simplefilter('error')\n"
        "from tests.unit.test_pictures import run\n"
        "from optiml_magic.reports.pictures import pictures\n"
        "sys.stdout.write(''.join(p.svg for p in pictures(run(40, 20, None, 10))))\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=root
    )
    assert done.returncode == 0, done.stderr
    drawn = [p.svg for p in pictures(run(40, 20, None, 10)) if isinstance(p, Picture)]
    assert done.stdout == "".join(drawn)


@pytest.mark.slow
def test_a_long_search_stays_small() -> None:
    durations = [1000 / (n + 1) if n % 3 else None for n in range(1, 400)]
    for found in pictures(run(1000, *durations)):
        assert isinstance(found, Picture)
        assert len(found.svg) < 40_000, found.name
    keys = [t for t in texts(roofline(run(1000, *durations))) if re.match(r"#\d+ ", t)]
    assert len(keys) == 8


def test_a_page_of_pictures_is_static_and_escaped() -> None:
    named = replace(run(40, 20, None, 10), task=f"$x_1$ {EVIL}")
    page = html.page([named, run(30, 5)], "two")
    reader = _Reader()
    reader.feed(page)
    assert reader.open == []
    assert reader.tags.count("img") == 8
    assert not {"script", "style", "svg", "image", "foreignObject", "a"} & set(reader.tags)
    assert "$x_1$" in reader.text
    for drawn in pictures(named):
        assert isinstance(drawn, Picture)
        assert drawn.image in page
        names = re.findall(r' id="([^"]*)"', drawn.svg)
        assert set(names) == set(re.findall(r'(?:url\(#|href="#)([^")]+)', drawn.svg))
        assert EVIL not in drawn.svg
        assert "currentColor" in drawn.svg
        assert "#010203" not in drawn.svg


def test_a_file_stands_alone(tmp_path: Path) -> None:
    found = Result(run(40, 10), lambda _: None).roofline()  # type: ignore[arg-type, return-value]
    text = found.save(tmp_path / "roofline.svg").read_text()
    root = ET.fromstring(text.split("\n", 1)[1])
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "prefers-color-scheme:dark" in text
    assert root.findtext("{http://www.w3.org/2000/svg}desc") == found.description
