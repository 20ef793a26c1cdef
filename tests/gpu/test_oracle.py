"""Where the input kernel is its own oracle, on a card that lets it read beyond its arrays."""

from __future__ import annotations

import numpy as np
import pytest

from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.task import Task
from optiml_magic.problem import prepare
from optiml_magic.session import session
from optiml_magic.settings import resolve

pytestmark = pytest.mark.gpu
# Of an odd number of elements the last one lies behind `deep`.
UPSAMPLE = """#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* deep, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = deep[i / 2];
}
"""


def inputs(rng: np.random.Generator, n: int) -> dict[str, object]:
    return {"deep": rng.standard_normal(n // 2, dtype=np.float32), "n": n}


def test_sizes_at_which_it_reads_beyond_its_arrays_are_left_out() -> None:
    task = Task(UPSAMPLE, None, inputs, sizes={"n": 4096}, outputs={"out": "f4[n]"})
    other = UPSAMPLE.replace("deep[i / 2]", "deep[i >> 1]")
    with session(resolve({"device": "cuda:0"}), task=task) as members:
        judged = Evaluator(prepare(task, seeds=1), members.tools, thorough=True)
        first, second = (
            judged([Candidate(at, 0 if at else None, Proposal(text, "", "test"))])[0].verdict
            for at, text in enumerate((UPSAMPLE, other))
        )
    assert first.passed
    assert second.passed, second.summary
