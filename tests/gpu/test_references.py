"""Maps and references on a real card: bit by bit, and number by number, what NumPy gives."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from optiml_magic.devices.maps import Kind, Map, digest, mapped
from optiml_magic.devices.memory import stored
from optiml_magic.model.task import Task
from optiml_magic.optimize import evaluate_once, prepared
from optiml_magic.problem.card import cupy_on
from optiml_magic.problem.reference import Answer, ask
from optiml_magic.settings import resolve
from optiml_magic.synthesize import synthesize
from tests.unit.devices.test_maps import FLOATS, KINDS

pytestmark = pytest.mark.gpu
COPY = """#pragma optiml launch k grid(cdiv(n, BLOCK)) block(BLOCK)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}
"""
N = 1 << 23


def odd(dtype: Any) -> Any:
    """Values of all magnitudes, with infinities, zeros, subnormal ones and NaN."""
    array = np.random.default_rng(0).standard_normal(300_000) * 10.0 ** np.repeat(
        np.arange(-45, 30), 4000
    )
    with np.errstate(all="ignore"):
        found = array.astype(dtype)
        found[:4] = np.array([np.nan, np.inf, -np.inf, 0.0]).astype(dtype)
    return found


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_map_makes_the_same_bits_on_the_card(kind: Kind, dtype: Any) -> None:
    import cupy

    array = odd(dtype)
    change = Map(kind, 0.01, "f" if kind in ("below", "steps") else "fc", 3)
    here = mapped(change, array)
    there = mapped(change, cupy.asarray(stored(array)), xp=cupy, dtype=array.dtype)
    assert np.array_equal(stored(here).view(np.uint8), there.get().view(np.uint8))
    assert digest(there, cupy) == digest(here)


def test_cupy_running_the_reference_is_the_baseline_of_a_kernel_made_from_it() -> None:
    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    x = np.random.default_rng(0).standard_normal((4096, 4096), dtype=np.float32)
    settings = resolve({"llm": "none", "budget": 4})
    found = synthesize(Task(reference=softmax, inputs={"x": x}), settings).summary
    assert found.peer is not None
    assert found.peer.how == "a graph"
    least = 2 * x.nbytes / 4.8e12  # to read and write it once, on an H200
    assert least < found.peer.seconds < 1e-2
    assert found.peer.ratio_error < 1.1
    after = found.winner.evaluation.measurement
    assert after is not None
    assert found.speedup == pytest.approx(found.peer.seconds / after.seconds)


def test_the_users_cupy_reduces_afterwards_as_before() -> None:
    import cupy
    from cupy._core import _accelerator

    before = _accelerator.get_reduction_accelerators()
    within: list[Any] = []

    def reference(x: Any) -> Any:
        within.append(_accelerator.get_reduction_accelerators())
        return cupy.abs(x)

    card = cupy_on("cuda:0")
    assert card is not None
    assert isinstance(card.ask(reference, {"x": np.ones(8)}, {}, ["out"]), Answer)
    assert within == [[]]
    assert _accelerator.get_reduction_accelerators() == before


@pytest.mark.parametrize("kind", ["signs", "large", "alike"])
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint32])
def test_so_it_does_of_integers(kind: Kind, dtype: Any) -> None:
    import cupy

    array = np.random.default_rng(0).integers(0, 100, 100_001).astype(dtype)
    change = Map(kind, kinds="iu", seed=2)
    there = mapped(change, cupy.asarray(array), xp=cupy)
    assert np.array_equal(mapped(change, array), there.get())


REFERENCES: dict[str, Any] = {
    "sum": lambda x: x.sum(axis=1),
    "softmax": lambda x: (
        np.exp(x - x.max(1, keepdims=True))
        / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)
    ),
    "product": lambda x: x @ x.T,
    "where": lambda x: np.where(x > 0, x, 0.1 * x),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_a_reference_gives_what_it_gives_in_numpy(name: str) -> None:
    x = np.random.default_rng(0).standard_normal((300, 200)).astype(np.float32)
    card = cupy_on("cuda:0")
    assert card is not None
    found = card.ask(REFERENCES[name], {"x": x}, {}, ["out"])
    wanted = ask(REFERENCES[name], {"x": x}, ["out"]).outputs["out"]
    assert isinstance(found, Answer), found
    assert found.outputs["out"].dtype == np.float64
    assert np.allclose(found.outputs["out"], wanted, 1e-11, 1e-11)


def slow(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        time.sleep(x.size / N)
    return 2 * x


def drawn(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"x": rng.uniform(1, 2, n).astype(np.float32), "n": n}


def test_a_slow_reference_runs_on_the_card_and_so_are_the_trials() -> None:
    task = Task(COPY.replace("BLOCK", "64"), slow, drawn, sizes={"n": N})
    settings = resolve({"device": "cuda"})
    problem = prepared(task, settings)
    assert problem.references is not None
    assert problem.references.is_on_card, problem.references.note
    other = COPY.replace("BLOCK", "256")
    checked = evaluate_once(task, settings, program=other, counters=False)
    assert checked.evaluation.verdict.passed, checked.evaluation.verdict
    told = "computed on the card, compared with NumPy at n = "
    assert any(told in note for note in checked.notes), checked.notes
    assert not any(note.startswith("trials") for note in checked.notes)
    late = other.replace("2.0f * x[i]", "fmaxf(2.0f * x[i], 0.0f)")
    wrong = evaluate_once(task, settings, program=late, counters=False).evaluation.verdict
    assert "on n = " in wrong.summary or "inputs" in wrong.summary


def test_a_wrong_answer_at_full_size_under_a_map_is_caught() -> None:
    """It shows where all elements are negative, and at no small size."""
    task = Task(COPY.replace("BLOCK", "64"), slow, drawn, sizes={"n": N})
    late = COPY.replace("BLOCK", "256").replace(
        "2.0f * x[i]", f"(i == {N - 3} && x[i] < 0.0f) ? 0.0f : 2.0f * x[i]"
    )
    verdict = evaluate_once(task, resolve({"device": "cuda"}), program=late, counters=False)
    summary = verdict.evaluation.verdict.summary
    assert "1 of" in summary, summary
    assert "inputs" in summary, summary
