"""Loads that a test leaves out, of elements that a loop beside it is certain to have."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.vectors import vectorised
from optiml_magic.model.facts import ArrayFacts, Facts, LaunchFacts
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64), 2) block(64)
__global__ void k(const float* __restrict__ x, const unsigned char* __restrict__ keep, float* __restrict__ o, int n, int d, int c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int b = (blockIdx.y * n + i) * d;
    const float* row = x + b;
    float m = -1e30f;
    for (int j = 0; j < d; ++j) { if (j < c) m = fmaxf(m, row[j]); }
    BEHIND
}
"""
STORES = "for (int j = 0; j < d; ++j) o[b + j] = j < c ? row[j] - m : 0.0f;"
ARRAYS = {"x": Array("f4", ("2", "n", "d")), "keep": Array("u1", ("2", "n", "d")),
          "o": Array("f4", ("2", "n", "d"), "zeros")}  # fmt: skip


def facts(x: int = 64) -> Facts:
    sizes = {"x": (4, x), "keep": (1, 64), "o": (4, 64)}
    arrays = {
        name: ArrayFacts(name, "out" if name == "o" else "in", "f4" if each > 1 else "u1",
                         (200, d), each * 200 * d, 256) for name, (each, d) in sizes.items()
    }  # fmt: skip
    launch = LaunchFacts("k", 1, (2, 2, 1), (64, 1, 1), arrays, {"n": 100, "d": 64, "c": 40})
    return Facts((launch,), {}, 1e-5, 1e-8, "h200")


def made(text: str, known: Facts | None = None) -> Kernel:
    return vectorised(kernel_of(text, known or facts()), (0,))[0]


@pytest.mark.parametrize(
    "behind",
    [
        STORES,
        "o[b] = 1.0f; " + STORES,
        STORES.replace("j < c ? row[j] - m : 0.0f", "m"),
        STORES.replace("o[b + j] =", "o[b + j] +="),
        "float s = 0.0f; for (int j = 0; j < d; ++j) { if (j < c) s += row[j]; } m = s; " + STORES,
        "for (int k = 0; k < d; ++k) { o[b + k] = m; }",
    ],
)
def test_a_row_that_is_stored_whole_is_there_to_be_loaded(behind: str) -> None:
    text = TEXT.replace("BEHIND", behind)
    after = made(text).program.text
    assert "require size(x) >= size(o)" in after
    for sizes in ({"n": 77, "d": 64, "c": 40}, {"n": 3, "d": 7, "c": 9}, {"n": 5, "d": 13, "c": 0}):
        assert end_of(text, after, ARRAYS, sizes, {"n": 2, "d": 5, "c": 2}) == "same"
    short = {**ARRAYS, "x": Array("f4", ("d + c",))}
    end = end_of(text, after, short, {"n": 1, "d": 40, "c": 12}, {"n": 1, "d": 9, "c": 4})
    assert end == "narrowed"


@pytest.mark.parametrize(
    "behind",
    [
        "o[b] = m;",
        STORES.replace("for (int j = 0; j < d", "for (int j = 0; j < c"),
        STORES.replace("for (int j = 0", "for (int j = 1"),
        STORES.replace("++j", "j += 2"),
        STORES.replace("o[b", "if (j < c) o[b"),
        f"if (m > 0.0f) {{ {STORES} }}",
        f"if (m > 0.0f) return; {STORES}",
        STORES.replace("o[b + j] = ", "if (m > 3.0f) break; o[b + j] = "),
        STORES.replace("o[b + j]", "o[b + d - 1 - j]"),
        STORES.replace("o[b + j]", "o[b + (j ^ 1)]"),
        STORES.replace("o[b + j]", "o[b + d + j]"),
        f"float* o_2 = o; {STORES}".replace("o[", "o_2[").replace("o_2 = o;", "o_2 = o + c;"),
        f"for (int r = 0; r < c; ++r) {{ {STORES} }}",
    ],
)  # fmt: skip
def test_what_is_not_certain_is_loaded_as_it_was(behind: str) -> None:
    after = made(TEXT.replace("BEHIND", behind)).program.text
    assert "m = fmaxf(m, row[j])" in after
    assert "require" not in after


def test_an_array_that_is_smaller_at_hand_has_no_vectors() -> None:
    after = made(TEXT.replace("BEHIND", STORES), facts(48)).program.text
    assert "x_items" not in after
