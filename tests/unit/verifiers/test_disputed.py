"""Reports that compute-sanitizer makes of right programs: the emulated device decides.

An inspector that accuses as it is told stands for compute-sanitizer.
"""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.devices.base import Case, Job
from optiml_magic.model.build import Build
from optiml_magic.model.hazard import Hazard, HazardKind
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.verdict import Outcome, OutputCheck, Verdict, Writer
from optiml_magic.testing import faulty
from optiml_magic.verifiers.disputed import EmulatedInspector, SecondOpinion
from optiml_magic.verifiers.hazards import Inspection, inspected
from optiml_magic.verifiers.sanitizer import parse

REPORT = """\
========= Barrier error detected. Missing wait.
=========     at sums(const float *, float *, int)+0xbb0 in /cell.cu:27
=========     by thread (32,0,0) in block (0,0,0)
=========     Barrier is located at shared address 0x408
=========
========= ERROR SUMMARY: 1 error
"""


class Accuser:
    """Has the same to say of every run; what it was asked is kept."""

    def __init__(self, *hazards: Hazard, unchecked: str = "") -> None:
        self.name = "an accuser"
        self.asked: list[int] = []
        self._found = Inspection(hazards, unchecked)

    def put(self, case: Case) -> None:
        """It looks at nothing."""

    def inspect(self, runs: Sequence[tuple[Build, Job]]) -> list[Inspection]:
        self.asked.append(len(runs))
        return [self._found for _ in runs]

    def writer(self, build: Build, job: Job, check: OutputCheck) -> Writer | None:
        raise AssertionError


def run() -> tuple[Build, Job]:
    return Build("", b"", {}, {}, (), (), "a"), Job("one", LaunchPlan(()), 0, True, 0)


def accused(kind: HazardKind) -> Hazard:
    return Hazard(kind, "compute-sanitizer: so it says", "", line=3)


def test_what_the_emulated_device_does_not_confirm_is_told_and_rejects_nobody():
    pair = [make("copies_that_arrive_counted") for make in (faulty.twin, faulty.faulty)]
    runs = []
    for example in pair:
        built = NvrtcCompiler().compile(
            example.text, example.kernels, chip("h200"), CompileOptions()
        )
        assert isinstance(built, Build), built
        runs.append((built, example.job(built, checks=True)))
    (missing,) = parse(REPORT)
    assert (missing.kind, missing.lines, missing.severity) == ("missed_phase", (27,), "error")
    second = EmulatedInspector("emulated:h200")
    second.put(pair[0].case())
    right, wrong = SecondOpinion(Accuser(missing), second).inspect(runs)
    passed = Verdict(Outcome.PASSED, "")
    verdict = inspected(passed, right)
    assert verdict.passed
    assert "emulated:h200 found the rule kept" in verdict.notes[0]
    assert inspected(passed, wrong).outcome is Outcome.BARRIER


def test_other_reports_stand_by_themselves():
    second = Accuser()
    first = Accuser(accused("missed_phase"), accused("race"))
    (found,) = SecondOpinion(first, second).inspect([run()])
    assert [hazard.severity for hazard in found.hazards] == ["error", "error"]
    assert second.asked == []


def test_who_did_not_look_excuses_nobody():
    first = Accuser(accused("missed_phase"))
    (found,) = SecondOpinion(first, Accuser(unchecked="no end")).inspect([run()])
    assert [hazard.severity for hazard in found.hazards] == ["error"]


def test_nobody_is_asked_twice_about_the_innocent():
    second = Accuser()
    assert SecondOpinion(Accuser(), second).inspect([run()]) == [Inspection(())]
    assert second.asked == []
