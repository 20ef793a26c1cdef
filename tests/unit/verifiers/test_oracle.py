"""The input kernel as its own oracle: one element that it leaves unwritten is seen, whichever."""

from __future__ import annotations

import numpy as np
import pytest

from optiml_magic.devices.base import Buffer
from optiml_magic.errors import OracleError
from optiml_magic.model.task import Task
from optiml_magic.optimize import evaluate_once
from optiml_magic.settings import resolve
from optiml_magic.verifiers.oracle import _expecting

TEXT = """\
#pragma optiml launch copy grid(1) block(64)
__global__ void copy(const {kind}* x, {kind}* out) {{
    if (threadIdx.x != {left}) out[threadIdx.x] = x[threadIdx.x];
}}
"""
SETTINGS = {"device": "emulated:h200", "verify_seeds": 1}


@pytest.mark.parametrize(("kind", "dtype"), [("float", "f4"), ("double", "f8"), ("int", "i4")])
@pytest.mark.parametrize("left", [0, 1, 2, 3, 5, 8, 13, 21, 34, 63])
def test_an_element_that_holds_what_was_there_is_unwritten(
    kind: str, dtype: str, left: int
) -> None:
    x = np.arange(64).astype(dtype)
    task = Task(TEXT.format(kind=kind, left=left), inputs={"x": x}, outputs={"out": f"{dtype}[64]"})
    with pytest.raises(OracleError, match="1 elements of `out` unwritten"):
        evaluate_once(task, resolve(SETTINGS), counters=False)


def test_what_is_written_in_any_order_is_not_said_to_be_unwritten() -> None:
    out = Buffer("out", "output", np.zeros(64, "f4"))
    one = np.arange(64).astype("f4")
    with pytest.raises(OracleError, match="`out` differ from run to run") as raised:
        _expecting(out, one, one[::-1], None, None, 0)
    assert "any order" in str(raised.value.fix)
    with pytest.raises(OracleError, match="unwritten or different"):
        _expecting(out, one, one[::-1], None, None, 3)


def test_an_array_that_is_given_for_an_output_can_be_what_it_begins_as() -> None:
    x = np.arange(64).astype("f4")
    task = Task(TEXT.format(kind="float", left=3), inputs={"x": x, "out": np.zeros(64, "f4")})
    with pytest.raises(OracleError, match="unwritten") as raised:
        evaluate_once(task, resolve(SETTINGS), counters=False)
    assert "--inout out" in str(raised.value.fix)
    began = Task(TEXT.format(kind="float", left=3), None, {**task.inputs}, inout=("out",))
    assert evaluate_once(began, resolve(SETTINGS), counters=False).evaluation.verdict.passed


def test_all_bytes_are_written_though_some_are_what_was_there() -> None:
    text = TEXT.format(kind="unsigned char", left=64)
    x = np.arange(64, dtype=np.uint8)
    task = Task(text, inputs={"x": x}, outputs={"out": "u1[64]"})
    verdict = evaluate_once(task, resolve(SETTINGS), counters=False).evaluation.verdict
    assert verdict.passed, verdict


def test_elements_that_stay_as_they_were_say_nothing_of_how_exact_the_others_are() -> None:
    """Sums that cancel, beside many more small elements that the kernel does not touch."""
    text = """\
#pragma optiml launch sums grid(cdiv(m, 32)) block(32)
__global__ void sums(const float* a, float* c, int m, int n) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= m) return;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) sum += a[i * n + k];
    c[i] += sum;
}
"""
    rng = np.random.default_rng(0)
    a = (rng.random((32, 256), np.float32) - 0.5) * np.float32(1e6)
    a[::4, 128:] = -rng.permuted(a[::4, :128], axis=1)
    c = rng.random(4096, np.float32)
    task = Task(text, inputs={"a": a.ravel(), "c": c, "m": 32, "n": 256})
    programs = {
        "passed": text.replace("int k = 0; k < n; ++k", "int k = n - 1; k >= 0; --k"),
        "wrong": text.replace("c[i] += sum", "c[i] += sum - a[i * n]"),
    }
    for outcome, program in programs.items():
        found = evaluate_once(task, resolve(SETTINGS), program=program, counters=False)
        assert found.evaluation.verdict.outcome == outcome
