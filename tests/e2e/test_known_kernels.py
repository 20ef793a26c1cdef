"""The eight kernels on the emulated device: right, counted exactly, and made faster where they can be."""

from __future__ import annotations

import pytest

from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.verdict import Outcome
from optiml_magic.optimize import evaluate_once, optimize
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import NAMES, known_task
from tests.present import sampled

SMALL = {
    "saxpy": {"n": 5000},
    "transpose_naive": {"rows": 128, "cols": 64},
    "transpose_tiled": {"rows": 128, "cols": 64},
    "matmul_naive": {"m": 64, "n": 48, "k": 40},
    "matmul_tiled": {"m": 70, "n": 45, "k": 33},
    "row_sum": {"rows": 33, "cols": 257},
    "row_sum_naive": {"rows": 300, "cols": 65},
    "histogram": {"n": 10_000},
    "softmax": {"rows": 17, "cols": 100},
}
LOADS = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"
STORES = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"


def evaluated(name: str, program: str | None = None, **sizes: int) -> Evaluation:
    task = known_task(name, **{**SMALL[name], **sizes})
    return evaluate_once(task, resolve(), program=program).evaluation


@pytest.mark.parametrize("name", sampled(NAMES, 4))
def test_it_gives_the_references_result(name: str) -> None:
    task = known_task(name, **SMALL[name])
    verdict = evaluate_once(task, resolve(), counters=False).evaluation.verdict
    assert verdict.passed, verdict


def test_a_naive_transpose_loads_4_and_stores_32_sectors_a_request() -> None:
    measured = evaluated("transpose_naive").measurement
    assert measured is not None
    assert measured.get(LOADS) == 4.0
    assert measured.get(STORES) == 32.0


@pytest.mark.slow
def test_a_padded_tile_has_no_bank_conflicts_and_an_unpadded_one_31_a_request() -> None:
    padded = evaluated("transpose_tiled").measurement
    text = known_task("transpose_tiled").text.replace("[TILE + 1]", "[TILE]")
    bare = evaluated("transpose_tiled", program=text).measurement
    assert padded is not None
    assert bare is not None
    assert padded.get(CONFLICTS) == 0
    assert bare.get(CONFLICTS) == 31 * (128 * 64 / 32)


def test_a_tiled_matmul_without_its_second_barrier_is_caught() -> None:
    text = known_task("matmul_tiled").text
    head, barrier, tail = text.rpartition("        __syncthreads();\n")
    assert barrier
    assert evaluated("matmul_tiled", program=head + tail, k=64).verdict.outcome is Outcome.WRONG


@pytest.mark.slow
@pytest.mark.parametrize("name", ["transpose_naive", "matmul_naive", "row_sum_naive"])
def test_the_search_makes_naive_kernels_faster_and_never_worse(name: str) -> None:
    sizes = {"transpose_naive": {"rows": 512, "cols": 512},
             "matmul_naive": {"m": 96, "n": 96, "k": 64},
             "row_sum_naive": {"rows": 512, "cols": 128}}[name]  # fmt: skip
    result = optimize(known_task(name, **sizes), resolve({"budget": 6}))
    assert result.summary.source == "estimated"
    assert result.speedup > 1.3
    low, high = result.interval
    assert low <= result.speedup <= high
    assert result.summary.winner.evaluation.verdict.passed
    assert result.diff()


def test_a_fast_kernel_is_left_as_it_is() -> None:
    result = optimize(known_task("saxpy", n=1 << 14), resolve({"budget": 3}))
    assert result.speedup == 1.0
    assert result.program == known_task("saxpy").text
    assert "no significant change" in repr(result)
