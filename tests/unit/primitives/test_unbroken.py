"""Loops that end with the first round that finds something: the same results, what is refused."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.ended import ended
from optiml_magic.kernels.primitives.unbroken import unbroken
from tests.present import drawn
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .alike import end_of, kernel_of, refused, written

ROWS = """\
__device__ float settled(float x) { while (x > 1.0f) x *= 0.5f; return x; }
#pragma optiml launch k grid(cdiv(h, 64)) block(64)
__global__ void k(const float* a, const float* b, int* o, int h, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= h) return;
    int at = -1;
    LOOP
    o[i] = at;
}
"""
ARRAYS = {"a": Array("f4", ("h", "w")), "b": Array("f4", ("w",)), "o": Array("i4", ("h",), "zeros")}
SIZES, OTHERS = {"h": 130, "w": 37}, {"h": 3, "w": 1}
FIRST = "for (int j = 0; j < w; j++) { if (a[i * w + j] > 1.5f) { at = j; break; } }"


def made(loop: str, arrays: dict[str, Array] = ARRAYS) -> tuple[str, Kernel | Refused]:
    text = ROWS.replace("LOOP", loop)
    stand = Stand(Made("one", text, dict(arrays), dict(SIZES), dict(OTHERS)))
    return text, unbroken(kernel_of(text, stand.facts(text)))


#: Loops that are searches, by how people write them.
LOOPS = {
    "a row": FIRST,
    "a table": "for (int j = 0; j < w; ++j) if (b[j] == a[i * w]) { at = j; break; }",
    "an interval": "for (int j = 0; j < w - 1; ++j) { if (a[i] >= b[j] && a[i] < b[j + 1]) { at = j; break; } }",
    "from the second": "for (int j = 1; j <= w - 1; j++) { if (a[i * w + j - 1] < a[i * w + j]) { at = j; break; } }",
    "a local": "for (int j = 0; j < w; j++) { float d = a[i * w + j] - b[j]; float e = d * d;"
               " if (e < 0.25f) { at = (int)(e * 8.0f); break; } }",
    "without a sign": "for (unsigned j = 0; j < (unsigned)w; j++) { if (a[i * w + j] > 1.0f) { at = j; break; } }",
    "64 bits": "for (long long j = 0; j < w; j++) { if (a[i * w + j] > 1.0f) { at = (int)j; break; } }",
    "a flag": "bool met = false; for (int j = 0; j < w; j++) { if (b[j] < a[i]) { met = true; break; } } at = met;",
    "a store": "for (int j = 0; j < w; j++) { if (b[j] < a[i]) { o[i] = 7; at = 2; break; } }",
    "in another loop": "for (int n = 0; n < 2; ++n) { for (int j = 0; j < w; j++) { if (a[i * w + j] > n) { at += j; break; } } }",
    "in the test": "int j = 0; while (j < w && a[i * w + j] <= 1.0f) j++; at = j;",
    "either of two in the test": "int j = 0; while (j < w && (a[i * w + j] <= 1.0f || b[j] < 1.0f) && b[j] < 0.5f) j++; at = j;",
    "in the head": "int j = 1; for (; j < w - 1 && b[j] < a[i]; ++j); at = j;",
    "a flag in the test": "bool met = false; for (int j = 0; j < w && !met; ++j) { if (b[j] > a[i]) { at = j; met = true; } } if (met) at += 2;",
    "a flag before the end": "int met = 0; for (int j = 0; !met && j < w; ++j) if (a[i * w + j] > 1.0f) met = 1; at = met;",
    "a flag that stays": "bool ok = true; for (int j = 0; ok && j < w; ++j) if (a[i * w + j] > 1.0f) ok = false; at = ok;",
    "a flag that is set": "bool met = i % 2; for (int j = 0; j < w && !met; ++j) { if (b[j] > a[i]) { at = j; met = true; } }",
    "a flag from before": "int ok = i % 3; for (int j = 0; ok && j < w; ++j) if (b[j] > a[i]) ok = 0; at = ok;",
    "rows of another loop": "for (int r = 0; r < i; ++r) for (int j = 0; j < w; ++j) { if (a[r * w + j] > 1.0f) { at = j; break; } }",
    "hinted": "\n    #pragma unroll 4\n    " + FIRST,
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_the_first_round_is_the_least(name: str) -> None:
    text, found = made(LOOPS[name])
    after = written(found)
    assert "break" not in after
    assert "= min(first" in after
    if drawn(name, 2):
        assert end_of(text, after, ARRAYS, SIZES, OTHERS) in ("same", "narrowed")


#: Loops whose later rounds may not be made, or do something.
WRONG = {
    "a last element beyond": "for (int j = 0; j < w; ++j) { if (a[i] >= b[j] && a[i] < b[j + 1]) { at = j; break; } }",
    "no end": "for (int j = 0; ; ++j) { if (j == w - 1 || b[j] > 1.0f) { at = j; break; } }",
    "a sum": "float s = 0; for (int j = 0; j < w; ++j) { s += b[j]; if (s > a[i]) { at = j; break; } }",
    "by two ways": "for (int j = 0; j < w; ++j) { if (b[j] > a[i]) { at = j; break; } else at = 0; }",
    "two ends": "for (int j = 0; j < w; ++j) { if (b[j] > 9.0f) break; if (b[j] > a[i]) { at = j; break; } }",
    "what is stored": "for (int j = 0; j < w; ++j) { if (o[j % h] > a[i]) { at = j; break; } }",
    "a place by the data": "for (int j = 0; j < w; ++j) { if (b[(int)(a[j] * a[j])] > a[i]) { at = j; break; } }",
    "rows of another loop and more": "for (int r = 0; r <= i; ++r) for (int j = 0; j < w; ++j) { if (a[r * w + j + 1] > 1.0f) { at = j; break; } }",
    "rows by the data": "int r = (int)a[i]; for (int j = 0; j < w; ++j) { if (a[r * w + j] > 1.0f) { at = j; break; } }",
    "a size that moves": "w -= i % 2; for (int j = 0; j < w; ++j) { if (b[j] > a[i]) { at = j; break; } }",
    "a function that waits": "for (int j = 0; j < w; ++j) { if (settled(b[j]) > a[i]) { at = j; break; } }",
    "two counters": "int j = 0, k = 0; while (j < w && b[k] < a[i]) { j++; k++; } at = k;",
    "a test beyond": "int j = 0; while (b[j] < a[i] && j < w) j++; at = j;",
    "a flag of all rows": "bool met = false; for (int r = 0; r < 2; ++r) for (int j = 0; j < w && !met; ++j) { if (b[j] > a[i] + r) { at += j; met = true; } }",
    "a flag by the data": "bool met = false; for (int j = 0; j < w && !met; ++j) { if (b[j] > a[i]) { at = j; met = b[j] > 1.0f; } }",
    "backwards": "for (int j = w - 1; j >= 0; --j) { if (b[j] > a[i]) { at = j; break; } }",
    "a counter of outside": "int j; for (j = 0; j < w; ++j) { if (b[j] > a[i]) break; } at = j;",
    "a loop inside": "for (int j = 0; j < w; ++j) { float s = 0; for (int k = 0; k < 3; ++k) s += b[j]; if (s > a[i]) { at = j; break; } }",
    "a local array": "float t[3] = {1, 2, 3}; for (int j = 0; j < w; ++j) { if (t[j % 3] > a[i]) { at = j; break; } }",
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_later_rounds_may_not_do_is_refused(name: str) -> None:
    refused(made(WRONG[name])[1])


def test_an_array_that_may_end_before_is_refused() -> None:
    short = {**ARRAYS, "a": Array("f4", ("h", "w - 1"))}
    text = ROWS.replace("LOOP", FIRST)
    assert "may end before" in refused(made(FIRST, short)[1])
    refused(unbroken(kernel_of(text)))  # nothing is known of its arrays


def test_how_far_arrays_go_is_asked_of_sizes() -> None:
    after = written(made(FIRST)[1])
    assert "#pragma optiml require size(a) >= h * w" in after


@pytest.mark.parametrize(
    "loop",
    [
        "int j; for (j = 0; j < w && !met; ++j) if (b[j] > a[i]) met = true; at = j;",
        ("int j = 0; for (int r = 0; r < 3; ++r) { met = false;"
        " for (; j < w && !met; ++j) if (b[j] > a[i]) met = true; at += met; }"),
        "for (int j = 0; j < w && met; ++j) if (b[j] > a[i]) met = false;",
        "for (int j = 0; j < w && !met; ++j) if (b[j] > a[i]) met = j;",
        "met = i > 3; for (at = 5; at < w && !met; ++at) if (b[at] > a[i]) met = true;",
        ("bool& also = met; for (int j = 0; j < w && !met; ++j) { also = b[j] > 2;"
        " if (b[j] > a[i]) met = true; }"),
    ],
)  # fmt: skip
def test_what_a_flag_leaves_behind_its_loop_is_as_it_was(loop: str) -> None:
    text = ROWS.replace("LOOP", f"bool met = false; {loop}")
    refused(ended(kernel_of(text)))
