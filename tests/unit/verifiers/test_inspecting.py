"""How runs are spread over processes of compute-sanitizer: hosts that write reports stand for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from optiml_magic.devices.base import Case, Execution, Fault, Job
from optiml_magic.errors import InternalError, MachineError, OptimlError
from optiml_magic.model.build import Build
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.verdict import Outcome
from optiml_magic.verifiers import sanitizer
from optiml_magic.verifiers.sanitizer import TOOLS, SanitizerInspector

from .test_sanitizer import RACECHECK

CLEAN = "========= ERROR SUMMARY: 0 errors\n"


class Processes:
    """Every host that was started: its tool and the builds that it ran."""

    def __init__(self) -> None:
        self.started: list[tuple[str, list[str]]] = []
        self.waiting: set[str] = set()
        self.report: Callable[[str, str], str] = lambda _tool, _build: ""
        self.fault: Callable[[str, str], Fault | None] = lambda _tool, _build: None
        self.refuse: OptimlError | None = None
        self.end = CLEAN

    def sanitized(self, device: str, tool: str, name: str, folder: Path, *, seconds: float) -> Host:
        assert (device, tool) == ("cuda:0", "/bin/compute-sanitizer")
        assert 0 < seconds <= 120
        ran: list[str] = []
        self.started.append((name, ran))
        return Host(self, name, folder, ran)


class Host:
    def __init__(self, processes: Processes, name: str, folder: Path, ran: list[str]) -> None:
        self.processes, self.name, self.folder, self.ran = processes, name, folder, ran

    def start(self) -> None:
        self.processes.waiting.add(self.name)

    def put(self, case: Case) -> None:
        if self.processes.refuse:
            raise self.processes.refuse

    def execute(self, build: Build, job: Job) -> Execution:
        assert job.checks
        assert not job.count
        self.ran.append(build.digest)
        return Execution(self.processes.fault(self.name, build.digest))

    def close(self, *, seconds: float) -> None:
        self.processes.waiting.discard(self.name)
        said = "".join(self.processes.report(self.name, build) for build in self.ran)
        (self.folder / "1.log").write_text(said + self.processes.end)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Processes:
    found = Processes()
    monkeypatch.setattr(sanitizer.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(sanitizer, "sanitized", found.sanitized)
    return found


def inspect(*builds: str, seconds: float = 120.0) -> list[sanitizer.Inspection]:
    inspector = SanitizerInspector("cuda:0", seconds=seconds)
    inspector.put(Case("one", ()))
    job = Job("one", LaunchPlan(()), 0, True, 0)
    return inspector.inspect([(Build("", b"", {}, {}, (), (), name), job) for name in builds])


def test_clean_runs_need_one_process_of_each_tool(processes):
    found = inspect("a", "b", "c")
    assert [(i.hazards, i.unchecked) for i in found] == [((), "")] * 3
    assert sorted(processes.started) == sorted((tool, ["a", "b", "c"]) for tool in TOOLS)


def test_a_report_is_laid_at_the_door_of_the_run_that_it_means(processes):
    processes.report = lambda tool, build: RACECHECK if (tool, build) == ("racecheck", "b") else ""
    clean, racing, also_clean = inspect("a", "b", "c")
    assert {hazard.kind for hazard in racing.hazards} == {"race"}
    assert clean.hazards == also_clean.hazards == ()
    assert not any(i.unchecked for i in (clean, racing, also_clean))
    assert sorted(processes.started[4:]) == [("racecheck", [name]) for name in ("a", "b", "c")]


def test_a_run_that_faults_does_not_hide_those_behind_it(processes):
    out = Fault(Outcome.OUT_OF_BOUNDS, "an access outside", sticky=True)
    processes.fault = lambda _, build: out if build == "a" else None
    processes.report = lambda tool, build: RACECHECK if (tool, build) == ("racecheck", "b") else ""
    faulted, racing = inspect("a", "b")
    assert faulted == sanitizer.Inspection(
        ()
    )  # its own fault ends it, and verification tells of it
    assert racing.hazards


@pytest.mark.parametrize("outcome", [Outcome.TIMEOUT, Outcome.CRASHED])
def test_a_run_that_did_not_end_under_a_tool_is_not_inspected(processes, outcome):
    processes.fault = lambda tool, _: Fault(outcome, "no end") if tool == "racecheck" else None
    (found,) = inspect("a")
    assert found == sanitizer.Inspection((), "racecheck: no end")


def test_a_tool_without_a_summary_has_not_looked(processes):
    processes.end = "========= Target application terminated before first instrumented API call\n"
    (found,) = inspect("a")
    assert found.unchecked == "; ".join(f"{tool} gave no summary" for tool in TOOLS)


@pytest.mark.parametrize(
    "error",
    [
        MachineError("the inputs do not fit", fix=""),
        InternalError("a child process failed:\nTraceback\nthe inputs do not fit\n"),
    ],
)
def test_a_host_that_does_not_take_the_inputs_is_a_reason(processes, error):
    processes.refuse = error
    found = inspect("a", "b")
    reasons = "; ".join(f"{tool}: the inputs do not fit" for tool in TOOLS)
    assert [i.unchecked for i in found] == [reasons] * 2


def test_time_that_is_spent_is_a_reason(processes):
    found = inspect("a", "b", seconds=0.0)
    assert all(i.unchecked.startswith("memcheck: the 0 s for it were spent") for i in found)
    assert processes.started == []


def test_without_the_tool_nothing_is_started(processes, monkeypatch):
    monkeypatch.setattr(sanitizer.shutil, "which", lambda _: None)
    found = inspect("a", "b")
    assert [i.unchecked for i in found] == [found[0].unchecked] * 2
    assert "not on the PATH" in found[0].unchecked
    assert processes.started == []


def test_what_was_started_ahead_is_used_once_and_ended(processes):
    inspector = SanitizerInspector("cuda:0")
    inspector.warm()
    inspector.warm()
    assert processes.waiting == set(TOOLS)
    inspector.put(Case("one", ()))
    run = Build("", b"", {}, {}, (), (), "a"), Job("one", LaunchPlan(()), 0, True, 0)
    for _ in range(2):
        assert inspector.inspect([run]) == [sanitizer.Inspection(())]
    assert len(processes.started) == 2 * len(TOOLS)
    inspector.warm()
    inspector.close()
    assert not processes.waiting
    assert sorted(ran for _, ran in processes.started) == [[]] * 4 + [["a"]] * 8
