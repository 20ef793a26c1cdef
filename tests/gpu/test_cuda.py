"""The CUDA device on a real card, through the same contract as the emulated one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import numpy as np
import pytest

from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.devices.base import Fault, Sampling
from optiml_magic.devices.choice import choose
from optiml_magic.devices.hosted import HostedDevice
from optiml_magic.evaluation import Evaluator
from optiml_magic.model.build import Build
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.objective import joules_of
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome
from optiml_magic.optimize import evaluate_once, optimize
from optiml_magic.problem import prepare
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.testing import faulty
from optiml_magic.testing.contracts import DeviceContract
from optiml_magic.testing.kernels import NAMES, known_task
from optiml_magic.verifiers.sanitizer import SanitizerInspector
from tests.e2e.test_faults import GOOD

pytestmark = pytest.mark.gpu
LARGE = {"transpose_naive": {"rows": 4096, "cols": 4096}, "matmul_naive": {"m": 512, "n": 512, "k": 512},
         "row_sum_naive": {"rows": 4096, "cols": 512}}  # fmt: skip
FAULTS = {
    "infinite loop": ("while (((volatile float*)out)[0] != 12345.0f) {} ", Outcome.TIMEOUT),
    "far out of bounds": ("out[i + (1ll << 40)] = 1.0f; ", Outcome.OUT_OF_BOUNDS),
    "just out of bounds": ("if (i == n - 1) out[n] = 1.0f; ", Outcome.OUT_OF_BOUNDS),
    "trap": ("if (i == 5) __trap(); ", Outcome.TRAP),
    "misaligned": ("*(double*)(out + 1) = 1.0; ", Outcome.MISALIGNED),
    "syntax": ("int 3x; ", Outcome.COMPILE_ERROR),
    "writes its input": ("((float*)x)[i] = 0.0f; ", Outcome.INPUT_MODIFIED),
}


class TestCudaDevice(DeviceContract):
    @pytest.fixture
    def device(self) -> Iterator[HostedDevice]:
        device = HostedDevice("cuda:0", seconds=60)
        yield device
        device.close()

    def test_a_kernel_against_itself_takes_the_same_time(self, device: HostedDevice) -> None:
        build = self.build()
        device.put(self.case())
        timed = device.time([(build, self.job(build))] * 2, Sampling(10, 10, 10.0))
        assert not isinstance(timed, Fault)
        one, two = (np.median(t.samples) for t in timed)
        assert one > 0
        assert 0.5 < one / two < 2


def test_auto_takes_the_card_and_says_so() -> None:
    choice = choose("auto")
    assert choice.name == "cuda:0"
    assert "answers" in choice.reason


@pytest.mark.parametrize("name", NAMES)
def test_the_known_kernels_are_right_and_measured_by_events(name: str) -> None:
    settings = resolve({"device": "cuda"})
    evaluation = evaluate_once(known_task(name), settings, counters=False).evaluation
    assert evaluation.verdict.passed, evaluation.verdict
    assert evaluation.measurement is not None
    assert evaluation.measurement.source == "events"


@pytest.mark.skipif(shutil.which("ncu") is None, reason="no ncu on this machine")
def test_ncu_counts_a_naive_transpose_like_the_emulator() -> None:
    """As it counts the candidates of a search: with many more passes the L1's counters are off."""
    task = known_task("transpose_naive", rows=512, cols=512)
    problem = prepare(task, seeds=1)
    stem = "l1tex__t_sectors_pipe_lsu_mem_global_op"
    names = [f"{stem}_{op}.sum" for op in ("ld", "st")]
    [instance.case for instance in problem.instances]
    with session(resolve({"device": "cuda"}), counted=True) as members:
        members.begin(problem)
        evaluator = Evaluator(problem, members.tools)
        evaluator([Candidate(0, None, Proposal(problem.program.text, "", "test"))])
        text = problem.program.text.replace("out[", "if (rows == -1) return;\n    out[", 1)
        (evaluation,) = evaluator([Candidate(1, 0, Proposal(text, "", "test"))])
    assert evaluation.duplicate_of is None
    counted = evaluation.measurement
    emulated = evaluate_once(task, resolve({"device": "emulated:h200"})).evaluation.measurement
    assert counted is not None
    assert emulated is not None
    wanted = [emulated.get(name) for name in names]
    assert [counted.get(name) for name in names] == wanted == [32768.0, 262144.0]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", LARGE)
def test_the_rules_make_naive_kernels_faster(name: str) -> None:
    settings = resolve({"device": "cuda", "budget": 16})
    result = optimize(known_task(name, **LARGE[name]), settings)
    assert result.summary.source == "events"
    assert result.speedup > 1.05
    assert "estimated" not in result.summary.trajectory.steps[0].evaluation.measurement.source  # type: ignore[union-attr]
    low, high = result.interval
    assert 1.0 < low <= result.speedup <= high


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    x = np.random.default_rng(0).uniform(-1, 1, 1000).astype(np.float32)
    task = Task(GOOD, reference=lambda x: 2 * x, inputs={"x": x, "n": 1000})
    problem = prepare(task, seeds=2)
    with session(resolve({"device": "cuda", "run_seconds": 5.0})) as members:
        yield Evaluator(problem, members.tools)


def test_of_energy_every_program_that_was_timed_has_its_joules() -> None:
    settings = resolve({"device": "cuda", "objective": "energy", "budget": 3, "llm": "none"})
    found = optimize(known_task("transpose_naive"), settings).summary
    measured = [step.evaluation.measurement for step in found.trajectory.steps]
    assert all(joules_of(one) for one in measured if one is not None)
    seconds = [one.seconds for one in measured if one is not None]
    best = found.winner.evaluation.measurement
    assert best is not None
    assert best.seconds <= 1.1 * min(seconds)  # the finalists were timed once more


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_a_verdict_and_the_next_candidate_passes(
    evaluator: Evaluator, name: str
) -> None:
    fault, outcome = FAULTS[name]
    number = 2 * list(FAULTS).index(name)
    bad = GOOD.replace("if (i < n)", f"if (i < n) {{ {fault} }}\n    if (i < n)")
    good = GOOD.replace("x[i];", f"x[i] + (i == -{number + 1} ? 1.0f : 0.0f);")
    (evaluation,) = evaluator([Candidate(number, None, Proposal(bad, "", "test"))])
    assert evaluation.verdict.outcome is outcome, evaluation.verdict
    (healthy,) = evaluator([Candidate(number + 1, None, Proposal(good, "", "test"))])
    assert healthy.verdict.passed, healthy.verdict
    assert healthy.duplicate_of is None


@pytest.mark.skipif(shutil.which("compute-sanitizer") is None, reason="no compute-sanitizer here")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tile_without_barrier", "race"),
        ("stencil_past_the_end", "out_of_bounds"),
        ("misaligned_vector", "misaligned"),
        ("accumulator_not_cleared", "uninitialised"),
        ("barrier_in_a_branch", "barrier_divergence"),
    ],
)
def test_compute_sanitizer_sees_what_the_emulator_sees(name: str, kind: str) -> None:
    choice = choose("cuda")
    found = []
    for example in (faulty.faulty(name), faulty.twin(name)):
        build = NvrtcCompiler().compile(
            example.text, example.kernels, choice.chip, CompileOptions()
        )
        assert isinstance(build, Build)
        inspector = SanitizerInspector(choice.name)
        inspector.put(example.case())
        (inspection,) = inspector.inspect([(build, example.job(build, checks=True))])
        assert not inspection.unchecked
        found.append({h.kind: h.lines for h in inspection.hazards})
    assert kind in found[0], found
    assert set(found[0][kind]) & set(faulty.faulty(name).expected[kind])
    assert not found[1]


@pytest.mark.skipif(shutil.which("compute-sanitizer") is None, reason="no compute-sanitizer here")
def test_a_check_on_a_gpu_inspects_too() -> None:
    task = known_task("transpose_tiled", rows=256, cols=256)
    verdict = evaluate_once(task, resolve({"device": "cuda"}), hazards=True).evaluation.verdict
    assert verdict.passed, verdict
    assert verdict.hazards == ()
    assert not [note for note in verdict.notes if note.startswith("hazards")]


@pytest.mark.skipif(shutil.which("compute-sanitizer") is None, reason="no compute-sanitizer here")
def test_vectors_that_the_compiler_makes_end_within_shared_memory() -> None:
    """Of a row of 61 elements ptxas loads the last by 16 bytes, which is no fault of the kernel."""
    kernel = """
#pragma optiml launch attend grid(heads) block(128) shared(length * 4)
__global__ void attend(const float* __restrict__ q, const float* __restrict__ k,
                       float* __restrict__ out, int length, int d) {
    extern __shared__ float score[];
    for (int t = threadIdx.x; t < length; t += blockDim.x) {
        float s = 0.0f;
        #pragma unroll 16
        for (int i = 0; i < d; i++)
            s += q[blockIdx.x * d + i] * k[(blockIdx.x * length + t) * d + i];
        score[t] = s;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        float most = score[0];
        for (int t = 1; t < length; t++) most = fmaxf(most, score[t]);
        for (int t = 0; t < length; t++) score[t] = expf(score[t] - most);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        float s = 0.0f;
        #pragma unroll 16
        for (int t = 0; t < length; t++) s += score[t] * k[(blockIdx.x * length + t) * d + i];
        out[blockIdx.x * d + i] = s;
    }
}
"""
    rng = np.random.default_rng(0)
    arrays = {"q": rng.random((3, 2), np.float32), "k": rng.random((3, 61, 2), np.float32)}

    def attended(q: np.ndarray, k: np.ndarray) -> np.ndarray:
        scores = np.einsum("hd,hld->hl", q.astype(float), k)
        weights = np.exp(scores - scores.max(1, keepdims=True))
        out: np.ndarray = np.einsum("hl,hld->hd", weights, k)
        return out

    task = Task(kernel, attended, {**arrays, "heads": 3, "length": 61, "d": 2},
                outputs={"out": "f4[heads, d]"})  # fmt: skip
    verdict = evaluate_once(task, resolve({"device": "cuda"}), hazards=True).evaluation.verdict
    assert verdict.passed, verdict
