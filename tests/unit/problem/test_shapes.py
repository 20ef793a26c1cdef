from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optiml_magic.errors import BindingError, OracleError, UsageError
from optiml_magic.model.task import Task
from optiml_magic.problem import prepare
from optiml_magic.problem.shapes import advice

SHAPES = st.lists(st.integers(1, 4), min_size=0, max_size=4).map(tuple)


@pytest.mark.parametrize(
    ("got", "wanted", "told"),
    [
        ((4, 8), (8, 4), "transposed: return its .T"),
        ((2, 3, 5), (3, 2, 5), "np.transpose(answer, (1, 0, 2))"),
        ((8,), (8, 1), "squeezed: return answer.reshape((8, 1))"),
        ((1, 8), (8,), "given an axis of one element"),
        ((8,), (8, 4), "axis 1, of 4, is missing"),
        ((8, 4), (8,), "axis 1, of 4, is too many"),
        ((32,), (8, 4), "as many elements: return answer.reshape((8, 4))"),
        ((7,), (8, 4), "make it (8, 4), or declare the output with the shape (7,)"),
    ],
)
def test_a_wrong_shape_is_read(got: tuple[int, ...], wanted: tuple[int, ...], told: str) -> None:
    assert told in advice(got, wanted)


@given(got=SHAPES, wanted=SHAPES)
def test_what_is_advised_makes_the_shapes_agree(
    got: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    if got == wanted:
        return
    answer, told = np.zeros(got), advice(got, wanted)
    if "its .T" in told:
        assert answer.T.shape == wanted
    elif "return " in told:
        made = eval(told.split("return ")[1], {"np": np, "answer": answer})
        assert made.shape == wanted
    else:
        assert math.prod(got) != math.prod(wanted) or "axis" in told


TEXT = """\
#pragma optiml launch k grid(cdiv(rows, 8)) block(8)
__global__ void k(const float* x, float* out, int rows) { out[threadIdx.x] = x[threadIdx.x]; }
"""
X = np.ones((8, 4), np.float32)


def test_the_hint_stands_in_the_error() -> None:
    task = Task(TEXT, reference=lambda x: x.T, inputs={"x": X, "out": X, "rows": 8})
    with pytest.raises(
        OracleError, match=r"of shape \(4, 8\), and the kernel's has \(8, 4\)"
    ) as raised:
        prepare(task, seeds=1)
    assert "transposed" in raised.value.fix


@pytest.mark.parametrize("rows", [0, -3])
def test_an_axis_without_elements_names_its_scalar(rows: int) -> None:
    task = Task(TEXT, inputs={"x": X, "rows": rows}, outputs={"out": "float32[rows, 4]"})
    with pytest.raises(BindingError, match=f"is {rows}, from `rows` with rows = {rows}"):
        prepare(task, seeds=1)


def test_an_output_of_structs_is_declared_as_such() -> None:
    text = (
        "struct P { float x, y; };\n#pragma optiml launch k grid(cdiv(n, 64)) block(64)\n"
        "__global__ void k(const P* a, P* out, int n) {\n    int i = blockIdx.x * 64 + "
        "threadIdx.x;\n    if (i < n) out[i] = a[i];\n}\n"
    )
    a = np.ones(70, [("x", "f4"), ("y", "f4")])
    problem = prepare(Task(text, inputs={"a": a, "n": 70}, outputs={"out": "struct[n]"}), seeds=1)
    assert problem.instances[0].shapes["out"] == (70,)
    for spec in "P[n]", "struct {x: float32, y: float32}[n]":
        with pytest.raises(UsageError) as raised:
            prepare(Task(text, inputs={"a": a, "n": 70}, outputs={"out": spec}), seeds=1)
        assert "struct[rows, cols]" in raised.value.fix


STRUCTS = """\
struct P { float x, y, z; };
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const P* a, P* out, P* kept, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) { P p = a[i]; p.y += 1.0f; out[i] = p; kept[i].z = p.x; }
}
"""


def test_structs_of_numbers_alike_may_be_rows_of_them() -> None:
    a = np.arange(210, dtype=np.float32).reshape(70, 3)

    def reference(a, kept):
        out, kept = a.astype(np.float64), kept.copy()
        out[:, 1] += 1
        kept[:, 2] = a[:, 0]
        return {"out": out, "kept": kept}

    for outputs in ({}, {"out": "f4[n, 3]"}):
        given = {"a": a, "kept": a * 2, "n": 70}
        task = Task(STRUCTS, reference, given, outputs=outputs, inout=("kept",))
        problem = prepare(task, seeds=1)
        buffers = {b.name: b for b in problem.instances[0].case.buffers}
        assert buffers["out"].array.shape == (70, 3)
        assert buffers["out"].array.dtype == np.float32
        assert buffers["out"].expected[3, 1] == 11


@pytest.mark.parametrize(
    ("a", "spec"),
    [
        (np.ones((70, 4), np.float32), "f4[n, 3]"),
        (np.ones((70, 3)), "f4[n, 3]"),
        (np.ones(210, np.float32), "f4[n, 3]"),
        (np.ones((70, 3), np.float32), "f4[n]"),
        (np.ones((70, 3), np.float32), "f8[n, 3]"),
    ],
)
def test_rows_that_are_not_the_members_are_refused(a: np.ndarray, spec: str) -> None:
    given = {"a": a, "kept": np.ones((70, 3), np.float32), "n": 70}
    with pytest.raises(BindingError):
        prepare(Task(STRUCTS, None, given, outputs={"out": spec}, inout=("kept",)), seeds=1)


def test_an_output_without_elements_proves_nothing() -> None:
    task = Task(TEXT, inputs={"x": X, "out": X[:0], "rows": 8})
    with pytest.raises(BindingError, match="nothing to check"):
        prepare(task, seeds=1)
