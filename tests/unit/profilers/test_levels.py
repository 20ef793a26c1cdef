"""Levels of measurement that do not answer: everything goes on, and the reasons are there."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from optiml_magic.commands.views import ProfileView
from optiml_magic.devices.base import Buffer, Case, Draw, Fault, Job
from optiml_magic.model.build import Build, Resources
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.launch import Launch, LaunchPlan
from optiml_magic.model.measurement import Bound, Measurement, Metric, Missing
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.model.vocabulary import (
    LEVEL_OF,
    VOCABULARY,
    brief_counters,
    default_counters,
    line_counters,
)
from optiml_magic.optimize import evaluate_once
from optiml_magic.profilers import ncu, permission
from optiml_magic.profilers.energy import EnergyProfiler
from optiml_magic.profilers.levels import Levels, Measured
from optiml_magic.profilers.ncu import NcuCounters, Refused
from optiml_magic.profilers.ncu_process import NcuProcess
from optiml_magic.profilers.report import LaunchReport, Unreadable, combined, load
from optiml_magic.reports import standing
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task

LAUNCH = Launch("k", (4, 1, 1), (32, 1, 1), 0, ())
JOB = Job("case", LaunchPlan((LAUNCH,)), 0, False, 10**9)
BUILD = Build("", b"", {"k": "k"}, {"k": Resources(8, 0, 0, 0, 0)}, (), (), "0")
CASES = [Case("case", (Buffer("x", "input", np.zeros(4, np.float32)),))]
TIMED = Measurement("h200", "events", 1e-3, 1.01, (), (Bound("measured", 1e-3),), ())
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
RATIO = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_no_metric(value: float) -> None:
    with pytest.raises(ValueError, match="Missing"):
        Metric("dram__bytes.sum", value, "byte", "ncu")


def test_the_vocabulary_is_whole() -> None:
    for name, entry in VOCABULARY.items():
        assert entry.name == name
        assert entry.meaning, name
        assert entry.sources, name
        assert entry.unit, name
        assert set(entry.sources) <= set(LEVEL_OF)
        if entry.combine == "mean" and "ncu" in entry.sources:
            assert "ncu" in VOCABULARY[entry.weight].sources, name
    assert all("ncu" in VOCABULARY[n].sources for n in (*default_counters(), *line_counters()))
    assert not [name for name in line_counters(samples=False) if "pcsamp" in name]


def test_whatever_a_profile_says_is_in_the_vocabulary() -> None:
    settings = resolve({"device": "emulated:h200", "verify_seeds": 1})
    checked = evaluate_once(known_task("histogram", n=1 << 12), settings)
    measured = checked.evaluation.measurement
    assert measured is not None
    for metric in measured.metrics:
        entry = VOCABULARY[metric.name]
        assert metric.source in entry.sources, metric
        assert metric.unit == entry.unit, metric
    assert measured.why("dram__bytes.sum") == ""
    assert "emulated" in measured.why("lts__t_sector_hit_rate.pct")
    assert "no power" in measured.why("nvml__energy.sum")
    text = repr(ProfileView(checked))
    assert "missing counters: an emulated device" in text
    assert "above its floor of" in text


def test_hidden_ncu_is_said_and_the_rest_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    levels = Levels(emulated=False, counters=NcuCounters("cuda:0", CASES))
    (found,) = levels.complete([Measured(BUILD, JOB, TIMED)])
    assert found.seconds == TIMED.seconds
    assert "ncu is not on the PATH" in found.why("dram__bytes.sum")
    assert "--energy" in found.why("nvml__energy.sum")
    assert found.why("flop_count.sum")
    assert levels.notes == ("no hardware counters: ncu is not on the PATH; install Nsight Compute",)
    told = standing.levels(found)
    assert told[0] == "measured: durations"
    assert any(line.startswith("missing counters: ncu is not on the PATH") for line in told)


def test_locked_counters_are_said_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake(tmp_path, "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    refused = NcuCounters("emulated:h200", CASES).count([(BUILD, JOB)])
    assert isinstance(refused, Refused)
    assert "NVreg_RestrictProfilingToAdminUsers=0" in refused.reason


def test_unknown_metrics_are_left_out_and_asked_no_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake(tmp_path, "==ERROR== Failed to find metric dram__bytes.sum")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    wanted = ("dram__bytes.sum", SECTORS)
    counters = NcuCounters("emulated:t4", CASES, metrics=wanted, by_line=())
    assert isinstance(counters.count([(BUILD, JOB)], depth="lines"), Refused)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 2
    assert "dram__bytes.sum" in asked[0]
    assert "dram__bytes.sum" not in asked[1]
    assert SECTORS in asked[1]


def test_where_lines_are_refused_by_name_they_come_as_a_section(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake(tmp_path, "==ERROR== Something is wrong with these metrics")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    for _ in range(2):
        counters = NcuCounters("emulated:l4", CASES)
        assert isinstance(counters.count([(BUILD, JOB)], depth="lines"), Refused)
    first, second, third = (tmp_path / "asked").read_text().splitlines()
    assert "memory_l2_theoretical_sectors_global" in first
    assert "--section" not in first
    for later in (second, third):  # it is remembered
        assert "--section SourceCounters" in later
        assert "memory_l2_theoretical_sectors_global" not in later
        assert "dram__bytes.sum" in later


@pytest.mark.parametrize("close", [True, False])
def test_one_program_is_looked_at_closely_and_others_briefly(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, close: bool
) -> None:
    fake(tmp_path, "==ERROR== nothing works here")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    verdict = Verdict(Outcome.PASSED, "")
    evaluation = Evaluation(1, "", verdict, measurement=TIMED)
    levels = Levels(emulated=False, counters=NcuCounters("emulated:a100", CASES))
    (found,) = levels.begin([evaluation], {1: (BUILD, JOB)}, counted={1}, closely=close)()
    assert found.measurement is not None
    assert "nothing works here" in found.measurement.why("dram__bytes.sum")
    asked = (tmp_path / "asked").read_text().splitlines()[0]
    metrics = asked.split("--metrics ")[1].split()[0].split(",")
    by_line = set(metrics) & set(line_counters())
    assert bool(by_line) is close
    assert close or set(metrics) <= set(brief_counters()) | {"gpc__cycles_elapsed.max"}


def test_a_profile_finds_both_processes_of_ncu_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake(tmp_path, "==ERROR== ERR_NVGPUCTRPERM")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    counters = NcuCounters("emulated:v100")
    counters.put(CASES)
    counters.warm(depth="rules")
    waiting = [process.arguments for process in counters._waiting]
    assert ["--set" in arguments for arguments in waiting] == [False, True]
    counters.warm(depth="rules")
    assert [process.arguments for process in counters._waiting] == waiting
    refused = counters.count([(BUILD, JOB)], depth="rules")
    assert isinstance(refused, Refused)
    assert "ERR_NVGPUCTRPERM" in refused.reason
    assert not counters._waiting
    assert len((tmp_path / "asked").read_text().splitlines()) == len(waiting)


@pytest.mark.parametrize("slow", [False, True])
def test_figures_by_line_that_take_too_long_are_given_up_where_the_kernel_is_slow(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, slow: bool
) -> None:
    class Late(NcuProcess):
        def run(
            self, cases: Sequence[Case], runs: Sequence[tuple[Build, Job]], seconds: float = 180.0
        ) -> str:
            self.late = "inst_executed" in self.arguments[1].split(",") and seconds == 7.0
            return "no end within 7 s" if self.late else super().run(cases, runs, seconds)

    fake(tmp_path, "==ERROR== nothing works here")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(ncu, "NcuProcess", Late)
    counters = NcuCounters(f"emulated:slow-{slow}", CASES, by_line_seconds=7.0)
    refused = counters.begin([(BUILD, JOB)], depth="lines", slow=slow)()
    assert isinstance(refused, Refused)
    assert "nothing works here" in refused.reason
    assert not counters._waiting
    asked, *_ = (tmp_path / "asked").read_text().splitlines()  # one that gives no lines: once more
    metrics = asked.split("--metrics ")[1].split()[0].split(",")
    assert "dram__bytes.sum" in metrics
    assert bool(set(line_counters()) & set(metrics)) is not slow
    assert any("__sass_" in name for name in metrics) is not slow


def test_candidates_are_counted_by_what_they_promise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake(tmp_path, "==ERROR== nothing works here")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    promised = ("smsp__inst_executed_pipe_fp64.sum", "launch__grid_size", "no_such_metric.sum")
    evaluation = Evaluation(1, "", Verdict(Outcome.PASSED, ""), measurement=TIMED)
    levels = Levels(emulated=False, counters=NcuCounters("emulated:a100", CASES))
    levels.begin([evaluation], {1: (BUILD, JOB)}, counted={1}, also=promised)()
    asked = (tmp_path / "asked").read_text().splitlines()[0]
    metrics = set(asked.split("--metrics ")[1].split()[0].split(","))
    assert promised[0] in metrics
    assert not metrics & set(promised[1:])  # the compiler tells; ncu would refuse


def test_a_metric_that_ncu_was_not_asked_for_is_said_to_be_that() -> None:
    (found,) = Levels(emulated=False).complete([Measured(BUILD, JOB, TIMED)])
    assert found.why("smsp__inst_executed_pipe_fp64.sum") == "not requested from ncu"


def fake(folder: Path, says: str) -> None:
    """An ncu that only writes to its log."""
    tool = folder / "ncu"
    tool.write_text(
        '#!/bin/sh\necho "$@" >> "$(dirname "$0")/asked"\n'
        f'while [ "$1" != "--log-file" ]; do shift; done\necho "{says}" > "$2"\nexit 1\n'
    )
    tool.chmod(0o755)


def test_a_report_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    (tmp_path / "broken.ncu-rep").write_bytes(b"nothing")
    assert isinstance(load(tmp_path / "broken.ncu-rep", str(tmp_path / "ncu"), []), Unreadable)


def launch(**values: float) -> LaunchReport:
    names = {"sectors": SECTORS, "requests": REQUESTS, "inst": "smsp__inst_executed.sum",
             "lanes": "smsp__thread_inst_executed_per_inst_executed.ratio"}  # fmt: skip
    return LaunchReport("k", {names[name]: value for name, value in values.items()})


def test_launches_add_up_by_their_weights() -> None:
    two = [
        launch(sectors=10, requests=5, inst=100, lanes=32),
        launch(sectors=30, requests=5, inst=300, lanes=16),
    ]
    assert combined(SECTORS, two) == 40
    assert combined(RATIO, two) == 4
    assert combined("smsp__thread_inst_executed_per_inst_executed.ratio", two) == 20


def test_a_launch_without_a_figure_leaves_the_whole_without() -> None:
    assert combined(SECTORS, [launch(sectors=10), launch(requests=5)]) is None
    lanes = "smsp__thread_inst_executed_per_inst_executed.ratio"
    assert combined(lanes, [launch(inst=100, lanes=32), launch(inst=300)]) is None
    assert combined(lanes, [launch(inst=100, lanes=32), launch(inst=0)]) == 32
    assert combined(RATIO, [launch(sectors=0, requests=0)]) is None


class Drawing:
    """A device that says what it is told to."""

    def __init__(self, answer: Draw | Fault) -> None:
        self.answer = answer
        self.seconds = 0.0

    def draw(self, build: Build, job: Job, seconds: float) -> Draw | Fault:
        self.seconds = seconds
        return self.answer


def test_energy_is_that_of_one_run() -> None:
    device = Drawing(Draw(1000, 2.0, 1.9, joules=600.0, sm_hertz=1.98e9))
    found = EnergyProfiler(device, 0.1).measure(BUILD, JOB)  # type: ignore[arg-type]
    assert not isinstance(found, Missing)
    assert device.seconds >= 1.0  # the sensor needs that
    values = {metric.name: metric.value for metric in found}
    assert values["nvml__energy.sum"] == 0.6
    assert values["nvml__power.avg"] == 300
    assert "nvml__temperature.max" not in values


def test_the_seconds_of_energy_count_as_spent() -> None:
    drawing = Drawing(Draw(1000, 2.0, 1.9, joules=600.0))
    levels = Levels(emulated=False, energy=EnergyProfiler(drawing))  # type: ignore[arg-type]
    evaluation = Evaluation(1, "a", Verdict(Outcome.PASSED, ""), TIMED, seconds_spent=0.5)
    (found,) = levels.begin([evaluation], {1: (BUILD, JOB)}, counted=())()
    assert found.seconds_spent == 2.5
    assert found.measurement is not None
    assert found.measurement.get("nvml__energy.sum") == 0.6


@pytest.mark.parametrize(
    "answer",
    [Draw(10, 2.0, 2.0, refused="no NVML"), Fault(Outcome.TIMEOUT, "no end within 30 s")],
)
def test_refused_energy_has_a_reason(answer: Draw | Fault) -> None:
    levels = Levels(emulated=False, energy=EnergyProfiler(Drawing(answer)))  # type: ignore[arg-type]
    (found,) = levels.complete([Measured(BUILD, JOB, TIMED)])
    assert found.why("nvml__energy.sum") in (
        "no NVML",
        "the loop did not end by itself: no end within 30 s",
    )
    assert levels.notes[0].startswith("no energy: ")


@pytest.mark.parametrize(
    ("ncu", "locked", "notes", "well", "words"),
    [
        (False, False, (), False, "install Nsight Compute"),
        (True, True, (), False, "NVreg_RestrictProfilingToAdminUsers=0"),
        (True, False, ("no hardware counters: ncu saw 3 launches",), False, "ncu saw 3 launches"),
        (True, False, (), True, ""),
    ],
)
def test_the_doctor_names_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    ncu: bool,
    locked: bool,
    notes: tuple[str, ...],
    well: bool,
    words: str,
) -> None:
    (tmp_path / "version").write_text("NVRM version: 580")
    (tmp_path / "params").write_text(f"RmProfilingAdminOnly: {int(locked)}\n")
    if ncu:
        fake(tmp_path, "")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(permission, "_DRIVER", tmp_path)
    monkeypatch.setattr(permission, "reader_folder", lambda _: tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = permission.permission(notes, emulated=False)
    assert found.well is well
    assert words in found.remedy


def test_without_a_driver_nothing_is_to_be_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(permission, "_DRIVER", tmp_path)
    assert permission.permission(emulated=True).well


def test_of_what_is_too_slow_to_build_on_ncu_is_not_asked() -> None:
    evaluation = Evaluation(1, "", Verdict(Outcome.PASSED, ""), measurement=TIMED)
    levels = Levels(emulated=False, counters=NcuCounters("emulated:h200", CASES))
    (found,) = levels.begin([evaluation], {1: (BUILD, JOB)}, counted=())()
    assert found.measurement is not None
    assert "too slow to build on" in found.measurement.why("dram__bytes.sum")
