"""Loads of what no round moves, in front of loops whose rounds wait."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.loaded_before import loaded_before

from .running import same
from .shapes import applied, kernel, refused

LINE = """\
#pragma optiml launch k grid(n) block(64)
__global__ void k(const float* a, const float* b, float* out, int n, int steps) {
    __shared__ float s[66];
    int t = threadIdx.x, row = blockIdx.x, at = t;
    s[t] = a[row * 64 + t];
    __syncthreads();
    for (int k = %s; k > 0; --k) {
        float next = 0.0f;
        %s
        __syncthreads();
        s[t] = next;
        __syncthreads();
    }
    out[row * 64 + t] = s[t];
}
"""
SHAPES = {"a": ("n", "64"), "b": ("n + 64",), "out": ("n", "64")}
SIZES = {"n": 3, "steps": 4}
KEPT = {
    "some thread": ("63", "if (t < k) next = b[row] * s[t] + b[row];", "const float b_here = b[row];"),
    "its own": ("5", "next = b[t] * s[t] + b[row];", "const float b_here = b[t];"),
    "perhaps no round": ("steps", "if (t < k) next = b[row] + s[t];",
                         "const float b_here = 0 < steps ? b[row] : float(0);"),
    "within": ("3", "for (int j = 0; j < 4; ++j) next += b[row] * j + b[row + j];",
               "const float b_here = b[row];"),
}  # fmt: skip


@pytest.mark.parametrize("case", KEPT)
def test_it_stands_before_the_loop(case: str) -> None:
    count, body, why = KEPT[case]
    text = LINE % (count, body)
    made = loaded_before(kernel(text))
    shown = applied(made).program.text
    assert why in shown.partition("for (int k")[0]
    assert "b[row]" not in shown.partition("for (int k")[2]
    for sizes in (SIZES, SIZES | {"steps": 0}):
        same(text, made, SHAPES, sizes)


def test_loops_in_loops_have_their_own() -> None:
    body = "for (int j = 0; j < 2; ++j) { __syncthreads(); next += b[row] * b[row + k]; }"
    text = LINE % ("3", body)
    made = loaded_before(kernel(text))
    shown = applied(made).program.text
    assert shown.index("= b[row];") < shown.index("for (int k") < shown.index("= b[row + k];")
    assert shown.index("= b[row + k];") < shown.index("for (int j")
    same(text, made, SHAPES, SIZES)


MOVING = {
    "counter": "next = b[k];",
    "changed": "next = b[at]; at += 1;",
    "written": "next = out[row]; out[row] = 1.0f;",
    "guarded": "if (n > 4) next = b[row];",
    "some threads": "if (t > 5) next = b[row + 1];",
    "never": "if (t > k + 63) next = b[row];",
    "by data": "if (s[t] > 1.0f) next = b[row];",
    "early": "if (k == 3) break; next = b[row];",
    "indirect": "next = b[(int)b[row] + k];",
}


@pytest.mark.parametrize("case", MOVING)
def test_what_moves_or_may_not_be_there_stays(case: str) -> None:
    made = loaded_before(kernel(LINE % ("9", MOVING[case])))
    if case == "indirect":
        assert "b[(int)b_here + k]" in applied(made).program.text
        return
    reason, _ = refused(made)
    assert reason == "no round that waits loads from where no round moves"


def test_a_loop_without_a_barrier_is_the_compilers() -> None:
    text = (LINE % ("9", "next = b[row];")).replace("        __syncthreads();\n", "")
    assert refused(loaded_before(kernel(text)))[0].startswith("no round that waits")
