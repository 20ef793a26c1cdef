"""The sizes of a call on other arrays than the task's."""

from __future__ import annotations

import re

import numpy as np
import pytest

from optiml_magic.calls import sized
from optiml_magic.errors import BindingError
from optiml_magic.model.task import Task
from optiml_magic.problem import Problem, prepare
from optiml_magic.source.program import parse_program

DOUBLE = """\
#pragma optiml launch twice grid(cdiv(n, 64)) block(64)
__global__ void twice(const float* x, float* out) {
    int i = blockIdx.x * 64 + threadIdx.x;
    out[i] = 2 * x[i];
}
"""


def problem(**inputs: object) -> Problem:
    given = {"x": np.ones(640, np.float32), **inputs}
    return prepare(Task(DOUBLE, lambda x: 2 * x, given, outputs={"out": "f4[n]"}), seeds=1)


def test_a_size_that_the_grid_alone_reads_follows_the_shapes() -> None:
    known = problem(n=640)
    assert known.interface.scalars == ()
    x = np.ones(128, np.float32)
    assert sized(known, known.program, {"x": x})["n"] == 128
    assert sized(known, known.program, {"x": x, "n": 64})["n"] == 64


def test_a_size_of_another_program_follows_too() -> None:
    known = problem(n=640, parts=3)
    other = parse_program(
        DOUBLE.replace("block(64)", "block(64)\n#pragma optiml require parts < n")
    )
    found = sized(known, other, {"x": np.ones(640, np.float32)})
    assert (found["n"], found["parts"]) == (640, 3)
    with pytest.raises(BindingError, match=re.escape("`parts` does not follow")):
        sized(known, other, {"x": np.ones(128, np.float32)})


def test_a_size_with_a_twin_is_asked_for() -> None:
    known = problem(n=640, m=640)
    with pytest.raises(BindingError, match=re.escape("pass n=...")):
        sized(known, known.program, {"x": np.ones(128, np.float32)})
