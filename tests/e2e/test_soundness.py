"""Ways in which a wrong candidate could pass, or a right one be refused: each was found once."""

from __future__ import annotations

import numpy as np
import pytest

from optiml_magic.devices.compare import compare, poison_like
from optiml_magic.errors import BindingError, OracleError, UsageError
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome
from optiml_magic.optimize import evaluate_once, run_once
from optiml_magic.problem import prepare
from optiml_magic.problem.inputs import like
from optiml_magic.problem.tolerance import tolerance
from optiml_magic.settings import resolve
from tests.present import sampled

HEAD = "#pragma optiml launch k grid(cdiv(n, 64)) block(64)\n"
COPY = HEAD + (
    "__global__ void k(const float* x, float* out, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) out[i] = x[i];\n}\n"
)
X = np.random.default_rng(0).uniform(1, 2, 256).astype(np.float32)


def task(text: str = COPY, reference=lambda x: x, **inputs: object) -> Task:  # type: ignore[no-untyped-def]
    return Task(text, reference=reference, inputs={"x": X, "n": 256, **inputs})


def outcome(of: Task, program: str | None = None) -> Outcome:
    return evaluate_once(of, resolve(), program=program, counters=False).evaluation.verdict.outcome


@pytest.mark.parametrize("outlier", sampled([1e30, -1e38], 2))
def test_one_huge_element_does_not_excuse_the_others(outlier: float) -> None:
    x = X.copy()
    x[17] = outlier
    zeros = COPY.replace("= x[i]", "= x[i] * (x[i] > 1e9f || x[i] < -1e9f)")
    assert outcome(task(x=x)) is Outcome.PASSED
    assert outcome(task(x=x), zeros) is Outcome.WRONG


def test_the_scale_of_a_float64_output_cannot_overflow() -> None:
    wanted = np.array([1e300, 1.0, 2.0])
    assert np.isfinite(tolerance(wanted, np.dtype("f8")).atol)


@pytest.mark.parametrize("seed", range(20))
def test_the_poison_of_a_bool_is_neither_true_nor_false(seed: int) -> None:
    wanted = np.ones(16, bool)
    poison = poison_like(wanted, seed)
    check = compare("x", poison.copy(), wanted, tolerance(wanted, wanted.dtype), poison)
    assert (check.wrong, check.unwritten) == (16, 16)


def test_a_candidate_may_not_fill_the_outputs_by_a_directive() -> None:
    ones = task(reference=lambda x: np.ones_like(x))
    lazy = "#pragma optiml init(out) = 1\n" + COPY.replace("out[i] = x[i]", "{}")
    assert outcome(ones, lazy) is Outcome.INVALID


@pytest.mark.slow
def test_clearing_a_buffer_takes_time_too() -> None:
    zeros = task(reference=lambda x: 0 * x)
    honest = COPY.replace("x[i];", "0.0f;")
    cleared = "#pragma optiml zero(out)\n" + COPY.replace("out[i] = x[i]", "{}")
    seconds = []
    for program in (honest, cleared):
        measured = evaluate_once(zeros, resolve(), program=program).evaluation.measurement
        assert measured is not None
        seconds.append(measured.seconds)
    assert seconds[1] > 0.8 * seconds[0]


def test_an_input_cannot_be_cleared() -> None:
    assert outcome(task(), "#pragma optiml zero(x)\n" + COPY) is Outcome.INVALID


def test_a_kernel_without_outputs_has_nothing_to_check() -> None:
    text = HEAD + "__global__ void k(const float* x, int n) {}\n"
    with pytest.raises(BindingError, match="nothing to check"):
        prepare(task(text, reference=None), seeds=1)


@pytest.mark.parametrize(
    ("reference", "message"),
    [(lambda x: x * 1j, "complex"), (lambda x: np.full(256, "x"), "return an array of numbers")],
)
def test_a_reference_of_the_wrong_kind_is_refused(reference: object, message: str) -> None:
    with pytest.raises(OracleError, match=message):
        prepare(task(reference=reference), seeds=1)


@pytest.mark.parametrize("scratch", sampled(["n * 1000000000", "n - 1000"], 2))
def test_scratch_beyond_reason_is_only_invalid(scratch: str) -> None:
    assert outcome(task(), f"#pragma optiml scratch t f4[{scratch}]\n" + COPY) is Outcome.INVALID


@pytest.mark.slow
def test_shared_memory_beyond_the_chip_is_only_invalid() -> None:
    for asked in ("0 - 5", "1 << 20"):
        text = COPY.replace("block(64)", f"block(64) shared({asked})")
        assert outcome(task(), text) is Outcome.INVALID


def test_permutations_and_row_offsets_stay_what_they_are() -> None:
    rng = np.random.default_rng(1)
    p = rng.permutation(50).astype(np.int32)
    fresh = like(p, rng)
    assert np.array_equal(np.sort(fresh), np.arange(50))
    offsets = np.array([0, 4, 4, 9, 30], np.int32)
    fresh = like(offsets, rng)
    assert (fresh[0], fresh[-1]) == (0, 30)
    assert np.all(np.diff(fresh) >= 0)


@pytest.mark.slow
def test_off_by_one_integers_are_wrong_and_may_be_allowed() -> None:
    text = HEAD + (
        "__global__ void k(const float* x, int* out, int n) {\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < n) out[i] = (int)(100 * x[i]) + (i % 5 == 0);\n}\n"
    )
    strict = task(text, reference=lambda x: (100 * x.astype(np.float32)).astype(np.int32))
    verdict = evaluate_once(strict, resolve(), counters=False).evaluation.verdict
    assert verdict.outcome is Outcome.WRONG
    assert (
        "atol" not in f"{verdict.summary} {verdict.fix}"
    )  # nobody is led to allow a wrong integer
    loose = Task(text, strict.reference, strict.inputs, atol=1)
    assert outcome(loose) is Outcome.PASSED


def test_a_float_for_an_int_parameter_is_named() -> None:
    verdict = evaluate_once(task(n=256.0), resolve(), counters=False).evaluation.verdict
    assert verdict.outcome is Outcome.INVALID
    assert "`n` is the float 256.0" in verdict.summary


def test_run_starts_from_the_array_that_init_names() -> None:
    text = "#pragma optiml init(out) = start\n" + COPY.replace("i < n)", "i < n && i % 2)")
    outputs = run_once(task(text, reference=None, start=-X), resolve())
    assert np.array_equal(outputs["out"][::2], -X[::2])
    assert np.array_equal(outputs["out"][1::2], X[1::2])


def test_a_reference_may_name_a_parameter_after_a_keyword() -> None:
    text = COPY.replace("const float* x", "const float* in").replace("x[i]", "in[i]")
    of = Task(text, reference=lambda in_: in_, inputs={"in": X, "n": 256})
    assert outcome(of) is Outcome.PASSED


@pytest.mark.parametrize("name", ["budget", "verify_seeds", "seconds"])
def test_settings_below_zero_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="above zero"):
        resolve({name: 0})


def test_one_past_a_shared_array_is_out_of_bounds_however_its_size_is_rounded() -> None:
    text = HEAD + (
        "__global__ void k(const float* x, float* out, int n) {\n"
        "    __shared__ float tile[63];\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    tile[threadIdx.x] = x[i];\n"
        "    out[i] = tile[threadIdx.x];\n}\n"
    )
    verdict = evaluate_once(task(), resolve(), program=text, counters=False).evaluation.verdict
    assert (verdict.outcome, verdict.line) == (Outcome.OUT_OF_BOUNDS, 5)


@pytest.mark.slow
def test_a_float_parameter_written_into_the_kernel_is_caught() -> None:
    text = COPY.replace("int n", "float alpha, int n").replace("= x[i]", "= alpha * x[i]")
    of = task(text, reference=lambda x, alpha: alpha * x, alpha=1.5)
    assert outcome(of) is Outcome.PASSED
    verdict = evaluate_once(
        of, resolve(), program=text.replace("alpha *", "1.5f *"), counters=False
    ).evaluation.verdict
    assert verdict.outcome is Outcome.WRONG
    assert "float scalars x 0.7" in verdict.summary
