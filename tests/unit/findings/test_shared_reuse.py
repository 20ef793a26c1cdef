"""What loads that come again and again are for, and the rule that takes it, on an emulated chip."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from diagnosing import Recorder

from optiml_magic.evaluation import Evaluator
from optiml_magic.findings import Subject
from optiml_magic.findings.shared_reuse import SharedReuse
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.task import Task
from optiml_magic.problem import prepare
from optiml_magic.session import Session, session
from optiml_magic.settings import resolve

PAIRS = """\
#pragma optiml launch k grid(cdiv(n, 32), cdiv(n, 32)) block(32, 32)
__global__ void k(const TYPE* a, TYPE* out, int n, int d) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n) return;
    TYPE c = 0;
    for (int k = 0; k < d; k++) WHAT;
    out[i * n + j] = c;
}
"""
RANGES = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* out, int n, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int t = 0; t < d; t++) {
        float s = 0.0f;
        for (int j = BEGIN; j <= END; j++) s += a[PLACE * n + i];
        out[t * n + i] = s;
    }
}
"""
OTHERS = ["stage_tile", "share_loads"]


@pytest.fixture(scope="module")
def members() -> Iterator[Session]:
    with session(resolve({"device": "emulated:t4"}), machine=True) as found:
        yield found


def advised(members: Session, text: str, dtype: str, n: int, d: int, count: int) -> list[str]:
    """The rules that it names, of a kernel of arrays with 2 d rows of n."""
    a = np.random.default_rng(0).integers(0, 4, 2 * n * d).astype(dtype)
    inputs = {"a": a, "n": n, "d": d}
    task = Task(text, inputs=inputs, outputs={"out": f"{dtype}[{count}]"}, rtol=1e-4)
    kept: list[Subject] = []
    tools = replace(members.tools, findings=(Recorder(kept),))
    (found,) = Evaluator(prepare(task, seeds=1), tools)(
        [Candidate(0, None, Proposal(text, "", ""))]
    )
    assert found.verdict.passed, found.verdict
    (finding,) = SharedReuse().diagnose(kept[0])
    return [action.rewrite for action in finding.actions]


@pytest.mark.parametrize(
    ("kind", "dtype", "what", "named"),
    [
        ("int", "i4", "c += a[k * n + i] != a[k * n + j]", ["bit_planes"]),
        ("int", "i4", "if (a[k * n + j] == a[k * n + i]) c++", ["bit_planes"]),
        ("float", "f4", "c += a[k * n + i] != a[k * n + j]", []),
        ("int", "i4", "c += a[k * n + i] < a[k * n + j]", []),
        ("int", "i4", "c += a[k * n + i] * a[k * n + j]", []),
        ("int", "i4", "if (k != j) c += a[k * n + i] * a[k * n + j]", []),
        ("int", "i4", "if (a[k * n + i] == 2) c += a[k * n + j]", []),
    ],
)
def test_elements_that_are_compared_are_for_planes_of_bits(
    members: Session, kind: str, dtype: str, what: str, named: list[str]
) -> None:
    text = PAIRS.replace("TYPE", kind).replace("WHAT", what)
    assert advised(members, text, dtype, 128, 32, 128 * 128) == [*named, *OTHERS]


@pytest.mark.parametrize(
    ("begin", "end", "place", "named"),
    [
        ("0", "t", "j", ["grow_window"]),
        ("t", "d - 1", "j", ["grow_window"]),
        ("0", "t", "(d - 1 - j)", ["grow_window"]),
        ("d - t", "d + t - 1", "j", ["grow_window"]),
        ("0", "t", "(j + t)", []),  # another element in each round
        ("0", "d - 1", "j", []),  # one sum, which is the same in all
        ("0", "d - 1", "(j + t)", []),  # a window that moves
    ],
)
def test_ranges_that_grow_are_kept_from_round_to_round(
    members: Session, begin: str, end: str, place: str, named: list[str]
) -> None:
    text = RANGES.replace("BEGIN", begin).replace("END", end).replace("PLACE", place)
    assert advised(members, text, "f4", 256, 32, 256 * 32) == [*named, *OTHERS]
