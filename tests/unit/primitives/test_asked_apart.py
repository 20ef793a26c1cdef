"""Guards that ask whether an item is there and what memory holds of it, in branches of their own."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.asked_apart import asked_apart
from optiml_magic.proposers.rewrites.block_sum import BlockSum
from tests.ideas import asked, made
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, const float* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    BODY
}
"""


def ends(before: str, after: str) -> str:
    arrays = {
        "a": Array("f4", ("n",), "odd"), "b": Array("f4", ("n",), "odd"),
        "out": Array("f4", ("n",), "zeros"),
    }  # fmt: skip
    return end_of(before, after, arrays, {"n": 150}, {"n": 1})


@pytest.mark.parametrize(
    ("body", "now"),
    [
        ("if (i < n && a[i] > 1.0f) out[i] = b[i];", "if (i < n) {"),
        ("if (n > i && i > 2 && a[i] > b[i - 1] && a[i] < 9.0f) { out[i] = 1; }", "if (n > i && i > 2) {"),
        ("if (i >= n || a[i] > 1.0f) return; out[i] = b[i];", "if (i >= n) return;"),
        ("if (i < n && fabsf(a[i]) > 1.0f) atomicAdd(out, 1.0f);", "if (i < n) {"),
        (
            (
                "if (i >= n) return; float m = 0; for (int j = i - 2; j <= i + 2; ++j) "
                "if (j >= 0 && j < n && a[j] > m) m = a[j]; out[i] = m;"
            ),
            "if (j >= 0 && j < n) {",
        ),
    ],
)  # fmt: skip
def test_what_memory_says_is_asked_behind_whether_it_is_there(body: str, now: str) -> None:
    text = TEXT.replace("BODY", body)
    after = written(asked_apart(kernel_of(text)))
    assert now in after
    assert ends(text, after) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "if (a[0] > 1.0f && i < n) out[i] = b[i];",
        "if (i < n && a[i] > 1.0f) out[i] = b[i]; else if (i < n) out[i] = 2;",
        "if (i < n && i > 3) out[i] = b[i];",
        "if (n > 3 && a[0] > 1.0f) out[0] = 7;",
        "if (i < n || a[0] > 1.0f) out[min(i, n - 1)] = 7;",
        "float m = 0; for (int j = 0; j < n; ++j) if (m < 9 && a[j] > m) m = a[j]; if (i < n) out[i] = m;",
        "for (int j = 0; j < n; ++j) if (j > i && a[j] > 2) break;",
    ],
)
def test_guards_that_ask_one_thing_stay(body: str) -> None:
    assert "no test asks memory" in refused(asked_apart(kernel_of(TEXT.replace("BODY", body))))


def test_a_count_of_items_that_memory_chooses_takes_vectors() -> None:
    text = TEXT.replace("BODY", "if (i < n && a[i] > 1.0f) atomicAdd(out, 1.0f);")
    (first, *_) = made(asked(BlockSum(), text)[0])
    assert "float4" in first.text
    assert ends(text, first.text) == "same"
