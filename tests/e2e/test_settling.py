"""The end of a search on a device that is timed: finalists inspected, then timed once more.

The emulated device with made-up times stands for a card, its own checks for compute-sanitizer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from optiml_magic.devices.base import Case, Fault, Job, Sampling, Timing
from optiml_magic.evaluation import Evaluator
from optiml_magic.evaluation.limit import Limit
from optiml_magic.model.build import Build
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.condition import Condition, Conditions
from optiml_magic.model.evaluation import Step, Trajectory
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.problem import prepare
from optiml_magic.profilers.events import EventsProfiler
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.timings import Timings
from optiml_magic.verifiers.hazards import DeviceInspector, Inspection

# Lanes of one warp exchange their elements: without the barrier it is a race that comes out right.
MIRROR = """\
#pragma optiml launch mirror grid(cdiv(n, 32)) block(32)
__global__ void mirror(const float* x, float* out, int n) {
    __shared__ float tile[32];
    int i = blockIdx.x * 32 + threadIdx.x;
    tile[threadIdx.x] = i < n ? 2.0f * x[i] : 0.0f;
    WAIT
    if (i < n) out[i] = tile[31 - threadIdx.x];
}
"""
ROOT = MIRROR.replace("WAIT", "__syncthreads(); __syncthreads();")
HONEST = MIRROR.replace("WAIT", "__syncwarp();")
RACING = MIRROR.replace("WAIT", "")
SLOW = MIRROR.replace("WAIT", "__syncthreads();")
SECONDS = {ROOT: 50e-6, HONEST: 30e-6, RACING: 20e-6, SLOW: 49.9e-6}
N = 1000
READING = Condition(1980, 3201, 41, 312.0, ("the power limit",))


def mirrored(x: np.ndarray) -> np.ndarray:
    padded = np.zeros(-(-len(x) // 32) * 32)
    padded[: len(x)] = 2.0 * x
    return padded.reshape(-1, 32)[:, ::-1].ravel()[: len(x)]


class Timed:
    """Samples of the seconds that each text should take; what it was asked is kept."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}  # by digest
        self.asked: list[tuple[int, Sampling]] = []
        self.builds: list[set[str]] = []  # digests of those timed in turn
        self.fault: Fault | None = None
        self._rng = np.random.default_rng(0)

    def time(
        self, runs: Sequence[tuple[Build, Job]], sampling: Sampling
    ) -> tuple[Timing, ...] | Fault:
        self.asked.append((len(runs), sampling))
        self.builds.append({build.digest for build, _ in runs})
        if self.fault:
            return self.fault
        state = Conditions(READING, READING, 1980.0, 1980.0)
        noise = [np.exp(0.002 * self._rng.standard_normal(20)) for _ in runs]
        return tuple(
            Timing(tuple(self.seconds[build.digest] * one), 20, None, state)
            for (build, _), one in zip(runs, noise, strict=True)
        )


@pytest.fixture(scope="module")
def timed() -> Timed:
    return Timed()


@pytest.fixture(scope="module")
def evaluator(timed: Timed) -> Iterator[Evaluator]:
    x = np.random.default_rng(0).uniform(-1, 1, N).astype(np.float32)
    problem = prepare(Task(ROOT, reference=mirrored, inputs={"x": x, "n": N}), seeds=2)
    with session(resolve({"device": "emulated"})) as members:
        tools = replace(
            members.tools,
            profiler=EventsProfiler(timed, members.choice.chip),  # type: ignore[arg-type]
            inspector=DeviceInspector(members.tools.device),
            extent="finalists",
        )
        for text, seconds in SECONDS.items():
            build = tools.compiler.compile(text, ("mirror",), tools.chip, tools.options)
            assert isinstance(build, Build)
            timed.seconds[build.digest] = seconds
        yield Evaluator(problem, tools)


@pytest.mark.slow
def test_the_next_problem_of_a_session_has_a_baseline_of_its_own() -> None:
    """The first one's would run with the buffers of the second."""
    timed = Timed()
    x = np.ones(N, np.float32)
    with session(resolve({"device": "emulated"})) as members:
        profiler = EventsProfiler(timed, members.choice.chip)  # type: ignore[arg-type]
        tools = replace(members.tools, profiler=profiler)
        for text in (ROOT, HONEST):
            build = tools.compiler.compile(text, ("mirror",), tools.chip, tools.options)
            assert isinstance(build, Build)
            timed.seconds[build.digest] = SECONDS[text]
            problem = prepare(Task(text, reference=mirrored, inputs={"x": x, "n": N}), seeds=1)
            (root,) = Evaluator(problem, tools)([Candidate(0, None, Proposal(text, "", "test"))])
            assert timed.builds == [{build.digest}]
            assert root.measurement is not None
            assert root.measurement.seconds == pytest.approx(SECONDS[text], rel=0.01)
            timed.builds.clear()


@pytest.fixture(scope="module")
def trajectory(evaluator: Evaluator) -> Trajectory:
    candidates = [
        Candidate(number, 0 if number else None, Proposal(text, "", "test"))
        for number, text in enumerate(SECONDS)
    ]
    steps = tuple(Step(c, e) for c, e in zip(candidates, evaluator(candidates), strict=True))
    return Trajectory(steps, "done")


def test_a_candidate_is_not_inspected_before_it_is_a_finalist(trajectory, timed):
    assert all(step.evaluation.verdict.passed for step in trajectory.steps)
    assert trajectory.best.candidate.text == RACING
    assert [count for count, _ in timed.asked] == [2] * len(SECONDS)
    limits = [sampling.hopeless for _, sampling in timed.asked]
    assert limits[:2] == [0.0, 1.25]  # nothing beats the input kernel yet
    assert limits[2] == pytest.approx(1.25 * 30 / 50, rel=0.01)
    assert limits[3] == pytest.approx(1.25 * 20 / 50, rel=0.01)


def test_a_race_that_comes_out_right_loses_in_the_end(evaluator, trajectory, timed):
    finalists = [step.candidate for step in trajectory.leading(3)]
    settled = evaluator.settle(finalists)
    assert sorted(settled) == [0, 1, 2, 3]
    racing = settled[2]
    assert isinstance(racing, Verdict)
    assert racing.outcome is Outcome.RACE
    assert racing.line in (5, 7)
    assert timed.asked[-1][0] == 3  # it is not timed any more
    ended = trajectory.settled(settled)
    assert set(ended.finalists) == {1, 2, 3}
    assert ended.best.candidate.text == HONEST
    assert ended.steps[2].evaluation.verdict.outcome is Outcome.RACE
    assert "hazards of the finalists: emulated:h200 looked for them" in evaluator.notes


def test_the_state_of_the_card_is_told_once_and_kept(evaluator, trajectory):
    measured = trajectory.steps[1].evaluation.measurement
    assert measured is not None
    assert measured.conditions is not None
    assert measured.conditions.after == READING
    assert len([note for note in evaluator.notes if "the power limit" in note]) == 1
    assert len([note for note in evaluator.notes if "against itself" in note]) == 1


def test_where_a_finalist_faults_the_race_is_still_rejected(
    evaluator, trajectory, timed, monkeypatch
):
    monkeypatch.setattr(timed, "fault", Fault(Outcome.TIMEOUT, "no end"))
    settled = evaluator.settle([step.candidate for step in trajectory.leading(2)])
    assert isinstance(settled[2], Verdict)
    assert settled[1] == trajectory.steps[1].evaluation.measurement
    assert trajectory.settled(settled).best.candidate.text == HONEST
    assert "the finalists could not be timed again" in evaluator.notes


def test_where_nobody_can_look_the_run_says_so(evaluator, trajectory, monkeypatch):
    class Blind:
        name = "nobody"

        def put(self, case: Case) -> None:
            """It looks at nothing."""

        def warm(self) -> None:
            """It needs no start."""

        def inspect(self, runs: Sequence[tuple[Build, Job]]) -> list[Inspection]:
            return [Inspection((), "there is no tool")] * len(runs)

    tools = replace(evaluator._tools, inspector=Blind())
    monkeypatch.setattr(evaluator, "_context", replace(evaluator._context, tools=tools))
    settled = evaluator.settle([step.candidate for step in trajectory.leading(2)])
    assert all(isinstance(found, Measurement) for found in settled.values())
    assert "hazards of the finalists: not all were looked for; there is no tool" in evaluator.notes


class Spent(Limit):
    """All seconds of the command are gone, and what they were needed for is known."""

    def __init__(self) -> None:
        super().__init__(Timings(clock=iter((0.0, *[70.0] * 999)).__next__), 60.0)


def test_where_the_seconds_are_spent_the_best_alone_is_a_finalist(
    evaluator, trajectory, timed, monkeypatch
):
    monkeypatch.setattr(evaluator, "_limit", Spent())
    monkeypatch.setattr(evaluator._context.scrutiny, "_passed", {})
    settled = evaluator.settle([trajectory.steps[at].candidate for at in (1, 2, 3)])
    assert sorted(settled) == [0, 1]
    assert timed.asked[-1][0] == 2
    assert trajectory.settled(settled).best.candidate.text == HONEST
    assert "finalists left out, since the time was used up: 2" in evaluator.notes


def test_where_the_seconds_are_spent_no_other_size_is_timed(
    evaluator, trajectory, timed, monkeypatch
):
    monkeypatch.setattr(evaluator, "_limit", Spent())
    before = len(timed.asked)
    best = trajectory.steps[1].candidate
    assert evaluator.elsewhere(trajectory.root.candidate, best) is None
    assert len(timed.asked) == before
    told = "the winner was not timed at another size: the time was used up"
    assert told in evaluator.notes


def test_where_the_end_is_near_ncu_is_not_asked(evaluator, timed, monkeypatch):
    tools, asked = evaluator._tools, list[int]()
    begin = tools.levels.begin

    def counting(evaluations, runs, *, counted, **others):
        asked.append(len(counted))
        return begin(evaluations, runs, counted=counted, **others)

    monkeypatch.setattr(tools.levels, "begin", counting)

    def evaluated(number: int, factor: str) -> bool:
        text = HONEST.replace("2.0f * x[i]", factor)
        build = tools.compiler.compile(text, ("mirror",), tools.chip, tools.options)
        timed.seconds[build.digest] = (20 - number) * 1e-6
        (found,) = evaluator([Candidate(number, 0, Proposal(text, "", "test"))])
        return bool(found.verdict.passed)

    assert evaluated(8, "3.0f * x[i] - x[i]")
    monkeypatch.setattr(evaluator, "_limit", Spent())
    assert evaluated(9, "5.0f * x[i] - 3.0f * x[i]")
    assert asked == [1, 0]
    told = "ncu did not profile the last candidates: the time was nearly used up"
    assert told in evaluator.notes
