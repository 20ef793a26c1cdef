"""Loops that end in a round that all behind it would end as well, as rounds that go on."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.onward import onward
from optiml_magic.kernels.primitives.uncoarsened import thread_an_item
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of, kernel_of, refused, written

CAUSAL = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int j = 0; j < n; j++) {
        if (j > i) break;
        sum += x[j] * i;
    }
    out[i] = sum;
}
"""
ARRAYS = {
    "starts": Array("i4", ("1",)),
    "x": Array("f4", ("n",)),
    "out": Array("f4", ("n",), "zeros"),
}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *(("j > i)", f"{test})") for test in ("j >= i", "i < j", "i / 2 <= j", "2 * j + 1 > n")),
        ("if (j > i) break;", "if (j > i) { break; }"),
        ("if (j > i)", "int at = j - i;\n        if (at >= 1)"),
        ("if (j > i)", "if (j == 2) continue;\n        if (j > i)"),
        ("int j = 0; j < n; j++", "int j = 0; j < n; j += 2"),
        (
            "int j = 0; j < n; j++) {\n        if (j > i)",
            "int j = n - 1; j >= 0; j--) {\n        if (j < i)",
        ),
    ],
)
def test_such_rounds_go_on(old: str, new: str) -> None:
    text = CAUSAL.replace(old, new)
    assert text != CAUSAL
    made = written(onward(kernel_of(text)))
    assert "continue;" in made
    assert "break;" not in made
    assert end_of(text, made, ARRAYS, {"n": 37}, {"n": 5}) == "same"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("j > i", "j < i"),
        ("j > i", "x[j] > i"),
        ("j > i", "j > x[i]"),
        ("j > i", "j > i || sum > 9.0f"),
        ("j > i", "j > sum"),
        ("j > i) break", "j > i) { sum += 1.0f; break; }"),
        (
            "if (j > i) break;\n        sum += x[j] * i;",
            "sum += x[j] * i;\n        if (j > i) break;",
        ),
        ("int j = 0; j < n; j++", "int j = n - 1; j >= 0; j--"),
        ("for (int j = 0;", "int j = 0;\n    for (;"),
        ("j > i) break", "j + x[j] > i) break"),
        ("if (j > i)", "if (j == 7) return;\n        if (j > i)"),
        ("if (j > i) break;", "float v = x[j];\n        if (j > i) break;"),
        ("if (j > i) break;", "if (j == 3) sum += 1.0f;\n        if (j > i) break;"),
    ],
)
def test_other_ends_stay(old: str, new: str) -> None:
    text = CAUSAL.replace(old, new)
    assert text != CAUSAL
    assert refused(onward(kernel_of(text)))


FEW = """\
#pragma optiml launch k grid(cdiv(n, 256)) block(64)
__global__ void k(const float* x, float* out, int n, int m) {
    int i = blockIdx.x * 4 * blockDim.x + threadIdx.x;
    for (int j = 0; %s) {
        if (x[i] < 0.0f) continue;
        out[i] = x[i] + j;
    }
}
"""
HEADS = [
    "j < 4 && i < n; j++, i += blockDim.x",
    "i < n && j < 4; j++, i += 64",
    "j < 4 && (i < n && i <= n + 3); j++, i += blockDim.x",
    "(j < 4) && n > i; i += blockDim.x, ++j",
]


@pytest.mark.parametrize("head", HEADS)
def test_a_head_that_counts_a_few_items_has_their_bound_inside(head: str) -> None:
    text = FEW % head
    made = written(onward(kernel_of(text)))
    assert ")) continue;" in made
    assert end_of(text, made, ARRAYS, {"n": 700, "m": 3}, {"n": 5, "m": 1}) == "same"


@pytest.mark.parametrize("head", HEADS)
def test_such_items_then_have_a_thread_each(head: str) -> None:
    text = (FEW % head).replace("if (x[i] < 0.0f) continue;", "").replace("+ j", "+ 1.0f")
    made = onward(kernel_of(text))
    assert isinstance(made, Kernel)
    alone = written(thread_an_item(made))
    assert "block(256)" in alone
    assert "for (" not in alone
    assert end_of(text, alone, ARRAYS, {"n": 700, "m": 3}, {"n": 5, "m": 1}) == "same"


@pytest.mark.parametrize(
    "body",
    [
        (
            "unsigned char q = i, r = i + blockDim.x; if (i < n) out[i] = x[q];"
            " if (i + blockDim.x < n) out[i + blockDim.x] = x[r];"
        ),
        (
            "int off = 0, r = i + blockDim.x + off; off = 2; if (i + off < n) out[i] = x[i];"
            " if (r + off < n) out[r] = x[r];"
        ),
    ],
)
def test_what_is_done_twice_by_another_number_is_no_row(body: str) -> None:
    text = CAUSAL[: CAUSAL.index("{") + 2].replace("n, 64", "n, 128")
    text += f"    int i = blockIdx.x * 128 + threadIdx.x; {body}\n}}\n"
    assert "one loop" in refused(thread_an_item(kernel_of(text)))


def test_what_the_extent_of_a_block_was_has_no_sign() -> None:
    text = """\
#pragma optiml launch k grid(cdiv(n, 256)) block(64)
__global__ void k(const float* x, float* out, int n) {
    for (int j = 0; j < 4; ++j) {
        int i = blockIdx.x * blockDim.x * 4 + threadIdx.x + j * blockDim.x;
        if (i < n) out[i] = x[i] + -blockDim.x / 4 % 9;
    }
}
"""
    alone = written(thread_an_item(kernel_of(text)))
    assert "for (" not in alone
    assert end_of(text, alone, ARRAYS, {"n": 700}, {"n": 5}) == "same"


@pytest.mark.parametrize(
    "head",
    [
        "j < m && i < n; j++, i += blockDim.x",  # as many rounds as a size says are no few
        "j < 4 && i > n; j++, i += blockDim.x",
        "j < 4 && x[i] < n; j++, i += blockDim.x",
        "j < 4 && i < n; j++, i += m",
        "j < 4 || i < n; j++, i += blockDim.x",
        "j < 4 && (i += 64) < n; j++",
    ],
)
def test_other_heads_stay(head: str) -> None:
    assert refused(onward(kernel_of(FEW % head)))


def test_a_head_stays_where_somebody_asks_behind_how_far_it_came() -> None:
    text = (FEW % HEADS[0]).replace("    }\n}", "    }\n    if (i < n) out[i] = 7.0f;\n}")
    assert refused(onward(kernel_of(text)))
