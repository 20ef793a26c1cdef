"""The table of types, and arrays of CuPy and torch, on a real card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome
from optiml_magic.optimize import evaluate_once, run_once
from optiml_magic.problem import prepare
from optiml_magic.session import Session, session
from optiml_magic.settings import resolve
from tests.e2e.test_structs import MOVE, moved, particles, task
from tests.typetable import BFLOAT16, TYPES, Row

pytestmark = pytest.mark.gpu
SETTINGS = resolve({"device": "cuda"})


@pytest.fixture(scope="module")
def members() -> Iterator[Session]:
    with session(SETTINGS) as opened:
        yield opened


@pytest.mark.parametrize("row", [*TYPES, *BFLOAT16], ids=str)
def test_a_type_is_passed_computed_with_and_compared(members: Session, row: Row) -> None:
    evaluator = Evaluator(prepare(row.task(), seeds=2), members.tools)
    wrong = replace(row, add="a").text
    right, bad = evaluator(
        [
            Candidate(0, None, Proposal(row.text, "", "test")),
            Candidate(1, 0, Proposal(wrong, "", "test")),
        ]
    )
    assert right.verdict.passed, right.verdict
    assert right.verdict.checks[0].elements == row.values()[0].size
    assert bad.verdict.outcome is Outcome.WRONG, bad.verdict


def test_what_the_card_and_the_emulator_leave_is_the_same() -> None:
    for row in TYPES:
        if row.dtype not in (ml_dtypes.bfloat16, "f2", "c8", "u1", "i8"):
            continue
        found = [
            run_once(row.task(), resolve({"device": device}))["out"]
            for device in ("cuda", "emulated")
        ]
        assert found[0].dtype == found[1].dtype == np.dtype(row.dtype)
        assert found[0].tobytes() == found[1].tobytes(), row


def test_structs_by_value_and_in_arrays() -> None:
    assert evaluate_once(task(), SETTINGS, counters=False).evaluation.verdict.passed
    lazy = MOVE.replace("q.v *= s.drag;", "")
    verdict = evaluate_once(task(), SETTINGS, program=lazy, counters=False).evaluation.verdict
    assert verdict.outcome is Outcome.WRONG
    assert verdict.checks[0].wrong == 200
    out = run_once(task(), SETTINGS)["out"]
    given = task().inputs
    assert isinstance(given, Mapping)
    wanted = moved(particles(), given["s"])
    assert np.allclose(out["v"], wanted["v"])
    padded = particles().dtype
    packed = particles(np.dtype([(n, padded[n]) for n in padded.names or ()]))
    found = evaluate_once(
        Task(MOVE, inputs={**given, "p": packed, "out": packed}), SETTINGS, counters=False
    )
    assert found.evaluation.verdict.outcome is Outcome.INVALID


TWICE = """\
#include <cuda_bf16.h>
#pragma optiml launch twice grid(cdiv(n, 64)) block(64)
__global__ void twice(const T* x, T* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + x[i];
}
"""
X = np.random.default_rng(0).uniform(-1, 1, 1000).astype(np.float32)


@pytest.mark.parametrize("where", ["cpu", "cuda"])
@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float16", "float64", "int32"])
def test_torch_tensors_and_references(where: str, kind: str) -> None:
    torch = pytest.importorskip("torch")
    ctype = {"float32": "float", "bfloat16": "__nv_bfloat16", "float16": "half",
             "float64": "double", "int32": "int"}[kind]  # fmt: skip
    text = "#include <cuda_fp16.h>\n" + TWICE.replace("T*", f"{ctype}*")
    x = torch.from_numpy(X * 50).to(getattr(torch, kind)).to(where)
    x.requires_grad = x.dtype.is_floating_point
    seen = []

    def reference(x: Any) -> Any:
        seen.append((x.device.type, x.dtype))
        return x + x

    task = Task(text, reference=reference, inputs={"x": x, "n": 1000})
    checked = evaluate_once(task, SETTINGS, counters=False)
    assert checked.evaluation.verdict.passed, checked.evaluation.verdict
    wide = x.dtype if kind == "int32" else torch.float64
    assert set(seen) == {(where, wide)}


@pytest.mark.parametrize("kind", ["float32", "float16", "complex64", "bool", "uint8"])
def test_cupy_arrays_and_references(kind: str) -> None:
    cupy = pytest.importorskip("cupy")
    ctype = {"float32": "float", "float16": "half", "complex64": "cuFloatComplex", "bool": "bool",
             "uint8": "unsigned char"}[kind]  # fmt: skip
    text = "#include <cuda_fp16.h>\n#include <cuComplex.h>\n" + TWICE.replace("T*", f"{ctype}*")
    if kind == "complex64":
        text = text.replace("x[i] + x[i]", "cuCaddf(x[i], x[i])")
    x = cupy.asarray((X * 50).astype(kind))
    seen = []

    def reference(x: Any) -> Any:
        seen.append(type(x))
        return x + x

    task = Task(text, reference=reference, inputs={"x": x, "n": 1000})
    checked = evaluate_once(task, SETTINGS, counters=False)
    assert checked.evaluation.verdict.passed, checked.evaluation.verdict
    assert set(seen) == {cupy.ndarray}
