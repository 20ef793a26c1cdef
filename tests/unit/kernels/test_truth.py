"""What is read of a kernel is what it does: predicted accesses against those that are executed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optiml_magic import Task
from optiml_magic.kernels.symbols import Symbols
from optiml_magic.testing.kernels import known_task
from optiml_magic.testing.predictions import Comparison, check, reading_of
from optiml_magic.testing.traces import LaunchTrace, trace
from tests.present import SOAK, examples, sampled
from tests.tutorials.suite import TASKS
from tests.twins.originals import ORIGINALS, Original
from tests.twins.twins import of

from .on_host import COMPILER, traced, values
from .random_kernels import kernel
from .random_numbers import PRELUDE

f4, i4 = np.float32, np.int32
KNOWN = {
    "saxpy": {"n": 999},
    "transpose_naive": {"rows": 37, "cols": 45},
    "transpose_tiled": {"rows": 37, "cols": 45},
    "matmul_naive": {"m": 13, "n": 29, "k": 7},
    "matmul_tiled": {"m": 13, "n": 29, "k": 7},
    "row_sum": {"rows": 17, "cols": 53},
    "row_sum_naive": {"rows": 61, "cols": 7},
    "histogram": {"n": 999},
    "softmax": {"rows": 7, "cols": 61},
}
#: What the emulator does not run.
UNTRACED = {"modern/recursion"}


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPTIML_HOME", str(tmp_path_factory.getbasetemp() / "optiml"))


def compared(task: Task, **sizes: int) -> Iterator[Comparison]:
    for launch in trace(task, **sizes):
        yield check(launch)


def agree(task: Task, **sizes: int) -> None:
    for found in compared(task, **sizes):
        assert not found.contradictions, "\n".join(map(str, found.contradictions))


@pytest.mark.parametrize("name", sampled(KNOWN, 36))
def test_a_known_kernel_touches_what_is_predicted(name: str) -> None:
    agree(known_task(name), **KNOWN[name])


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name", sampled(sorted(TASKS.keys() - UNTRACED, key=lambda n: n[::-1]), 36)
)
def test_a_tutorial_touches_what_is_predicted(name: str) -> None:
    agree(TASKS[name])


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("original", sampled(ORIGINALS), ids=lambda one: one.name)
def test_a_twin_touches_what_is_predicted(original: Original) -> None:
    for one in sampled([original, *of(original)], 24):
        agree(Task(one.text, inputs=one.values, inout=one.inout))


COPY = """\
#pragma optiml launch grid(2) block(4)
__global__ void copy(const float* a, const int* at, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[at[i]] = a[i];
}
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> LaunchTrace:
    given = {"a": np.arange(7, dtype=f4), "at": np.array([6, 5, 4, 3, 2, 1, 0], i4), "n": 7}
    (found,) = trace(Task(COPY, inputs=given, outputs={"out": "f4[n]"}))
    return found


def test_every_byte_is_compared_both_ways(copied: LaunchTrace) -> None:
    found = check(copied)
    assert (found.addresses, found.exact, found.unchecked) == (84, 84, 0)
    assert found.contradictions == ()


BEYOND, LESS = "executed, not predicted", "predicted, not executed"


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ("out[at[i]] = a[i + 1]", {BEYOND}),
        ("out[i] = a[i]", {BEYOND, LESS}),
        ("if (i > 2) out[at[i]] = a[i]", {BEYOND}),
        ("if (i < n - 1) out[at[i]] = a[i]", {BEYOND}),
        ("for (int k = 0; k < 2; ++k) out[at[i] + k] = a[i]", {LESS}),
        ("out[at[i]] = a[i]; a[0]", set()),
    ],
)
def test_a_reading_of_another_kernel_is_caught(
    copied: LaunchTrace, other: str, what: set[str]
) -> None:
    text = COPY.replace("out[at[i]] = a[i]", other)
    found = check(copied, reading_of(replace(copied, text=text)))
    assert {c.what for c in found.contradictions} == what


def test_a_bound_that_does_not_hold_is_caught(copied: LaunchTrace) -> None:
    reading = reading_of(copied)
    name = next(n for n, s in reading.symbols.table.items() if s.kind == "load")
    table = {**reading.symbols.table, name: replace(reading.symbols[name], high=5)}
    symbols = Symbols()
    symbols.table.update(table)
    (found,) = check(copied, replace(reading, symbols=symbols)).contradictions
    assert found.what == "bound"
    assert found.detail.endswith("has high 5 and is 6")


@pytest.mark.skipif(COMPILER is None, reason="no g++ here")
@settings(
    max_examples=examples(2, 120),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.integers(0, 10**6))
def test_a_random_kernel_touches_what_is_predicted(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    texts = [kernel(Random(seed * 12 + at), f"k{at}") for at in range(12)]
    for text, launch in zip(texts, traced(texts, tmp_path_factory.mktemp("host")), strict=True):
        if launch is None:
            continue
        found = check(launch, by_line=True)
        wrong = "\n".join(map(str, found.contradictions))
        assert not found.contradictions, f"{wrong}\n{PRELUDE}\n{text}"


@pytest.mark.skipif(COMPILER is None, reason="no g++ here")
@pytest.mark.parametrize("seed", range(30 if SOAK else 1))
def test_the_host_and_the_emulator_see_the_same_stores(seed: int, tmp_path: Path) -> None:
    texts = [kernel(Random(seed * 3 + at), f"k{at}") for at in range(3 if SOAK else 1)]
    on_host = traced(texts, tmp_path)
    kept = [text for text, launch in zip(texts, on_host, strict=True) if launch is not None]
    program = PRELUDE + "\n" + "\n".join(kept)
    launches = trace(Task(program, inputs=values(), inout=("out", "cnt")))
    for ours, theirs in zip([x for x in on_host if x is not None], launches, strict=True):
        for thread, touches in theirs.touches.items():
            stored = {(t.array, t.offset) for t in touches if t.access != "load"}
            assert stored == {
                (t.array, t.offset) for t in ours.touches[thread] if t.access != "load"
            }
