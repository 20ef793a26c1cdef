"""What only a card can show of timing: equals are equal, 5 per cent is seen, its state is known."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from optiml_magic.commands import doctor
from optiml_magic.devices.base import Fault, Job, Sampling, Timing
from optiml_magic.devices.hosted import HostedDevice
from optiml_magic.devices.ratio import ratio
from optiml_magic.evaluation import Evaluator
from optiml_magic.model.build import Build
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.measurement import Measurement, speedup_interval
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.optimize import evaluate_once, optimize
from optiml_magic.preparation import Preparation, Prepared
from optiml_magic.problem import prepare
from optiml_magic.profilers.events import EventsProfiler
from optiml_magic.profilers.levels import Levels
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task
from optiml_magic.timings import Timings
from optiml_magic.verifiers.trials import Trials

pytestmark = pytest.mark.gpu

# Arithmetic alone, so that its length follows the count of rounds: about 50 us on an H200.
ROUNDS = 4000
BUSY = """\
#pragma optiml launch busy grid(cdiv(n, 256)) block(256)
__global__ void busy(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = x[i];
    #pragma unroll 8
    for (int k = 0; k < ROUNDS; ++k) a = a * 0.99f + 1e-2f;
    out[i] = a;
}
"""
N = 132 * 2048
USUAL = Sampling(10, 100, 2.0)


def busy(rounds: int = ROUNDS) -> str:
    return BUSY.replace("ROUNDS", str(rounds))


def settled(x: np.ndarray) -> np.ndarray:
    """Whatever it starts from, ``a`` goes to 1: a few rounds more or less stay in the tolerance."""
    return x * 0.99**ROUNDS + (1 - 0.99**ROUNDS)


def task() -> Task:
    x = np.random.default_rng(0).uniform(-1, 1, N).astype(np.float32)
    return Task(busy(), reference=settled, inputs={"x": x, "n": N}, rtol=2e-2, atol=2e-2)


class Bench:
    """One device host, and programs of the task ready to be timed on it."""

    def __init__(self) -> None:
        self.problem = prepare(task(), seeds=1)
        self._session = session(resolve({"device": "cuda"}))
        self.members = self._session.__enter__()
        device = self.members.tools.device
        assert isinstance(device, HostedDevice)
        self.device = device
        device.put(self.problem.instances[0].case)

    def close(self) -> None:
        self._session.__exit__(None, None, None)

    def run(self, text: str) -> tuple[Build, Job]:
        tools = self.members.tools
        trials = Trials(self.problem, tools.device, tools.instructions)
        prepared = Preparation(
            self.problem, tools.compiler, tools.options, tools.chip, trials, Timings()
        )(text, self.problem.instances)
        assert isinstance(prepared, Prepared), prepared
        instance, plan = prepared.plans[0]
        return prepared.build, Job(instance.case.key, plan, 0, False, tools.instructions)

    def time(self, *texts: str, sampling: Sampling = USUAL) -> tuple[Timing, ...]:
        timed = self.device.time([self.run(text) for text in texts], sampling)
        assert not isinstance(timed, Fault), timed
        return timed


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.close()


def test_a_kernel_against_itself_is_one_within_noise(bench: Bench) -> None:
    found = [ratio(*(timing.samples for timing in bench.time(busy(), busy()))) for _ in range(5)]
    assert all(one.width < 0.03 for one in found), found
    assert all(one.beyond < 1.005 for one in found), found
    assert sum(one.low <= 1 <= one.high for one in found) >= 3, found


def test_a_twin_that_is_5_per_cent_slower_is_slower(bench: Bench) -> None:
    one, two = bench.time(busy(), busy(ROUNDS * 105 // 100))
    found = ratio(one.samples, two.samples)
    assert 1.03 < found.value < 1.07, found
    assert found.low > 1.02, found


def test_a_twin_that_is_5_per_cent_faster_is_a_gain_through_the_evaluator(bench: Bench) -> None:
    """And one that is the same is none."""
    root, faster, same = evaluations(
        bench, busy(), busy(ROUNDS * 95 // 100), busy() + "\n// same\n"
    )
    assert root.measurement is not None
    assert faster.measurement is not None
    _, low, high = speedup_interval(root.measurement, faster.measurement)
    assert 1.01 < low < high < 1.10, (low, high)
    assert same.duplicate_of == 0


def evaluations(bench: Bench, *texts: str) -> list[Evaluation]:
    evaluator = Evaluator(
        bench.problem, replace(bench.members.tools, levels=Levels(emulated=False))
    )
    found = []
    for number, text in enumerate(texts):
        parent = 0 if number else None
        found += evaluator([Candidate(number, parent, Proposal(text, "", "test"))])
        assert found[-1].verdict.passed, found[-1].verdict
    return found


def test_a_quiet_pair_needs_few_rounds(bench: Bench) -> None:
    one, _ = bench.time(busy(), busy())
    assert 20 <= len(one.samples) < 200


def test_a_hopeless_candidate_is_cut_after_one_round(bench: Bench) -> None:
    sampling = replace(USUAL, hopeless=2.0)
    one, two = bench.time(busy(), busy(5 * ROUNDS), sampling=sampling)
    assert len(one.samples) == len(two.samples) == 2
    one, two = bench.time(busy(), busy(ROUNDS * 3 // 2), sampling=sampling)
    assert len(one.samples) == len(two.samples) >= 20


def test_the_state_of_the_card_is_kept_with_the_measurement(bench: Bench) -> None:
    one, two = bench.time(busy(), busy(2 * ROUNDS))
    for timing in (one, two):
        state = timing.conditions
        assert state is not None
        assert state.absent == ""
        for reading in (state.before, state.after):
            assert reading is not None
            assert 300 < reading.sm_clock < 4000
            assert 500 < reading.memory_clock < 20000
            assert 10 < reading.temperature < 110
            assert 20 < reading.power < 2000
        assert state.before is not None
        assert abs(state.clock_ratio - 1) < 0.05
    (root,) = evaluations(bench, busy())
    assert root.measurement is not None
    assert root.measurement.conditions is not None
    assert root.measurement.conditions.after is not None


def test_nvml_reads_the_clock_after_every_batch(bench: Bench) -> None:
    one, _ = bench.time(busy(), busy())
    assert one.conditions is not None
    assert one.conditions.sm_clock > 300


def test_after_a_warm_up_the_clock_no_longer_rises(bench: Bench) -> None:
    """The first samples are no slower than the last."""
    one, _ = bench.time(busy(), busy(), sampling=Sampling(40, 40, 10.0))
    first, last = np.median(one.samples[:20]), np.median(one.samples[-20:])
    assert abs(first / last - 1) < 0.01, (first, last)


def test_the_profiler_tells_of_the_baseline_against_itself(bench: Bench) -> None:
    profiler = EventsProfiler(bench.device, bench.members.choice.chip)
    measured = profiler.measure(*bench.run(busy()))
    assert isinstance(measured, Measurement)
    assert 1.01 <= measured.ratio_error < 1.03
    assert profiler.notes[0].startswith("timed against itself")


def test_the_doctor_says_so_too() -> None:
    checked = evaluate_once(known_task("saxpy", n=1000), resolve({"device": "cuda"}))
    said = doctor._timing(resolve({"device": "cuda"}), [checked])
    assert "within noise" in said
    assert "MHz" in said


needs_sanitizer = pytest.mark.skipif(
    shutil.which("compute-sanitizer") is None, reason="no compute-sanitizer here"
)
# The warps of a block exchange their halves without a barrier. Each waits so long before it reads
# that the other has always written.
MIRROR = """\
#pragma optiml launch mirror grid(cdiv(n, 64)) block(64)
__global__ void mirror(const float* x, float* out, int n) {
    __shared__ float tile[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    tile[threadIdx.x] = i < n ? 2.0f * x[i] : 0.0f;
    WAIT
    if (i < n) out[i] = tile[63 - threadIdx.x];
}
"""
HONEST = MIRROR.replace("WAIT", "__syncthreads();")
LUCKY = MIRROR.replace(
    "WAIT", "long long begun = clock64();\n    while (clock64() - begun < 20000) {}"
)
MIRRORED = 1 << 14


def mirrored(x: np.ndarray) -> np.ndarray:
    padded = np.zeros(-(-len(x) // 64) * 64)
    padded[: len(x)] = 2.0 * x
    return padded.reshape(-1, 64)[:, ::-1].ravel()[: len(x)]


@needs_sanitizer
def test_a_finalist_that_races_and_is_right_by_luck_is_rejected() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, MIRRORED).astype(np.float32)
    problem = prepare(Task(HONEST, reference=mirrored, inputs={"x": x, "n": MIRRORED}), seeds=2)
    [instance.case for instance in problem.instances]
    texts = (HONEST, LUCKY, HONEST.replace("2.0f * x[i]", "x[i] + x[i]"))
    with session(resolve({"device": "cuda"}), extent="winners") as members:
        evaluator = Evaluator(problem, replace(members.tools, levels=Levels(emulated=False)))
        candidates = [
            Candidate(number, 0 if number else None, Proposal(text, "", "test"))
            for number, text in enumerate(texts)
        ]
        for evaluation in evaluator(candidates):
            assert evaluation.verdict.passed, evaluation.verdict
        settled = evaluator.settle(candidates[1:])
    racing, honest = settled[1], settled[2]
    assert isinstance(racing, Verdict), racing
    assert racing.outcome is Outcome.RACE
    assert racing.line in (5, 8)
    assert isinstance(honest, Measurement), honest
    assert "hazards of the finalists: compute-sanitizer looked for them" in evaluator.notes


@needs_sanitizer
def test_a_search_says_who_looked_for_hazards() -> None:
    result = optimize(
        known_task("transpose_naive", rows=512, cols=512), resolve({"device": "cuda", "budget": 6})
    )
    notes = [note for note in result.summary.notes if note.startswith("hazards of the finalists")]
    assert notes == ["hazards of the finalists: compute-sanitizer looked for them"]


def test_without_the_tool_the_result_says_that_nobody_looked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("optiml_magic.verifiers.sanitizer.shutil.which", lambda _: None)
    task = known_task("transpose_naive", rows=512, cols=512)
    result = optimize(task, resolve({"device": "cuda", "budget": 4}))
    (note,) = [n for n in result.summary.notes if n.startswith("hazards of the finalists")]
    assert "not on the PATH" in note
