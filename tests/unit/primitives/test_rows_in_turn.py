"""Rows that ask for all rows before them, several at once: the same bits, and what is refused."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.rows_in_turn import rows_in_turn
from tests.present import examples, sampled
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .alike import end_of, kernel_of, refused, written

ROWS = """\
__device__ float tells(int at) { printf("%d", at); return at; }
#pragma optiml launch k grid(cdiv(m, 64)) block(64)
__global__ void k(const float* L, const float* B, float* X, float* Y, const int* P, int n, int m) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= m) return;
    BODY
}
"""
ARRAYS = {
    "L": Array("f4", ("n", "n")), "B": Array("f4", ("n", "m")),
    "X": Array("f4", ("n", "m"), "zeros"), "Y": Array("f4", ("n", "m"), "zeros"),
    "P": Array("i4", ("n",), "below n"),
}  # fmt: skip
ODD = ARRAYS | {name: Array("f4", ARRAYS[name].shape, "odd") for name in "LB"}
SIZES, OTHERS = {"n": 24, "m": 70}, {"n": 5, "m": 3}
EACH, BEFORE = "for (int i = 0; i < n; ++i)", "for (int j = 0; j < i; ++j)"
SUM = f"float s = B[i * m + c]; {BEFORE} s -= L[i * n + j] * X[j * m + c];"
PUT = "X[i * m + c] = s * 0.5f;"


def made(body: str, rows: str = ROWS) -> tuple[str, Kernel | Refused]:
    text = rows.replace("BODY", body)
    stand = Stand(Made("one", text, dict(ARRAYS), dict(SIZES), dict(OTHERS)))
    return text, rows_in_turn(kernel_of(text, stand.facts(text)), 4)


BODIES = {
    "a system": f"{EACH} {{ {SUM} X[i * m + c] = s / (L[i * n + i] + 9); }}",
    "in place": f"{EACH} {{ float s = X[i * m + c] + i; {BEFORE} s -= L[i * n + j] * X[j * m + c]; {PUT} }}",
    "rows of one thread": f"{EACH} {{ float s = B[c * n + i]; {BEFORE} s += L[j * n + i] * X[c * n + j]; "
    "X[c * n + i] = s * 0.5f; }",
    "the best so far": f"{EACH} {{ float best = B[i * m + c]; int at = -1; {BEFORE} {{ float v = X[j * m + c] + "
    "L[i * n + j]; if (v > best) { best = v; at = j; } } X[i * m + c] = best; Y[i * m + c] = at; }",
    "a choice": f"{EACH} {{ float s = 0; {BEFORE} s += j % 2 == 0 ? L[i * n + j] : X[j * m + c]; X[i * m + c] = s + 1; }}",
    "two sums": f"{EACH} {{ float s = 1, t = B[i * m + c]; {BEFORE} {{ s += L[i * n + j] * X[j * m + c]; t *= 0.5f; }} "
    "X[i * m + c] = s - t; }",
    "what a row has": f"{EACH} {{ float d = L[i * n + i]; float s = B[i * m + c] * d; {BEFORE} s -= d * X[j * m + c]; {PUT} }}",
    "a pointer to its row": f"{EACH} {{ const float* row = L + i * n; float s = 0; {BEFORE} s += row[j] * X[j * m + c]; "
    "s += 1; X[i * m + c] = s; }",
    "rows by data": f"{EACH} {{ float s = B[P[i] * m + c]; {BEFORE} s -= L[P[i] * n + j] * X[j * m + c]; {PUT} }}",
    "two arrays": f"{EACH} {{ float s = 1; {BEFORE} s += X[j * m + c] - Y[j * m + c]; X[i * m + c] = s * 0.25f; "
    "Y[i * m + c] = s * 0.5f; }",
    "read again behind": f"{EACH} {{ {SUM} {PUT} Y[i * m + c] = X[i * m + c] + (i > 0 ? X[(i - 1) * m + c] : 0.0f); }}",
    "twice": f"for (int q = 0; q < 2; ++q) {EACH} {{ {SUM} {PUT} }}",
    "whole numbers": f"{EACH} {{ unsigned s = P[i]; {BEFORE} s = s * 3u + P[j]; X[i * m + c] = s % 17; }}",
    "nothing asked": f"{EACH} {{ float s = 0; {BEFORE} s += L[i * n + j]; Y[i * m + c] = s; }}",
}  # fmt: skip


@pytest.mark.parametrize("name", sampled(BODIES, every=4))
def test_rows_at_once_add_up_in_the_same_order(name: str) -> None:
    before, found = made(BODIES[name])
    text = kernel_of(written(found)).program
    for rows in (4, 8, 2, 16)[:: examples(2, 1)]:
        after = text.with_values({"ROWS": rows}).text
        for sizes in ({"n": 24, "m": 70}, {"n": 37, "m": 65}):
            assert end_of(before, after, ARRAYS, sizes, OTHERS) == "same"


@pytest.mark.parametrize("name", ["the best so far", "whole numbers"])
def test_what_is_no_number_is_compared_as_before(name: str) -> None:
    before, found = made(BODIES[name])
    assert end_of(before, written(found), ODD, SIZES, OTHERS) == "same"


def test_doubles_are_taken_by_two() -> None:
    before = ROWS.replace("float", "double").replace(
        "BODY", BODIES["a system"].replace("float", "double")
    )
    arrays = {
        name: Array(a.dtype.replace("f4", "f8"), a.shape, a.content) for name, a in ARRAYS.items()
    }
    stand = Stand(Made("one", before, dict(arrays), dict(SIZES), dict(OTHERS)))
    after = written(rows_in_turn(kernel_of(before, stand.facts(before)), 4))
    assert "const double2 several_vector" in after
    assert end_of(before, after, arrays, SIZES, OTHERS) == "same"
    assert end_of(before, after, arrays, {"n": 37, "m": 65}, OTHERS) == "same"


STAY = {
    "it asks for its own row": f"{EACH} {{ float s = 0; for (int j = 0; j <= i; ++j) s += X[j * m + c]; {PUT} }}",
    "it asks for all rows": f"{EACH} {{ float s = 0; for (int j = 0; j < n; ++j) s += X[j * m + c]; {PUT} }}",
    "it asks for the row before": f"{EACH} {{ float s = 0; {BEFORE} s += X[j * m + c] + X[(i > 0 ? i - 1 : 0) * m + c]; {PUT} }}",
    "it begins with the row before": f"{EACH} {{ float s = i > 0 ? X[(i - 1) * m + c] : 1; {BEFORE} s += L[i * n + j]; {PUT} }}",
    "it asks for rows by data": f"{EACH} {{ float s = 0; {BEFORE} s += X[P[j] * m + c]; {PUT} }}",
    "it asks for half of the row": f"{EACH} {{ float s = 0; {BEFORE} s += X[(j / 2) * m + c]; {PUT} }}",
    "it asks for rows behind": f"{EACH} {{ float s = 0; {BEFORE} s += X[(i - j) * m + c]; {PUT} }}",
    "it stores two rows": f"for (int i = 0; i < n - 1; ++i) {{ {SUM} {PUT} X[(i + 1) * m + c] = s; }}",
    "it stores by data": f"{EACH} {{ {SUM} X[P[i] * m + c] = s; }}",
    "it stores in one place": f"{EACH} {{ {SUM} X[c] = s; }}",
    "it stores on the way": f"{EACH} {{ float s = 0; {BEFORE} {{ s += X[j * m + c]; Y[j * m + c] = s; }} {PUT} }}",
    "it adds where it stores": f"{EACH} {{ float s = 0; {BEFORE} X[i * m + c] -= L[i * n + j] * X[j * m + c]; {PUT} }}",
    "a sum of all rows": f"float t = 0; {EACH} {{ {SUM} {PUT} t += s; }} Y[c] = t;",
    "a local array": f"float t[40]; {EACH} {{ float s = 0; {BEFORE} s += t[j]; t[i] = s + 1; {PUT} }}",
    "it is left early": f"{EACH} {{ {SUM} if (s > 9) break; {PUT} }}",
    "a round is left early": f"{EACH} {{ float s = 0; {BEFORE} {{ if (L[i * n + j] > 1) break; s += X[j * m + c]; }} {PUT} }}",
    "down": f"for (int i = n - 1; i >= 0; --i) {{ float s = 0; {BEFORE} s += X[j * m + c]; {PUT} }}",
    "by two": f"for (int i = 0; i < n; i += 2) {{ {SUM} {PUT} }}",
    "from the second": f"for (int i = 1; i < n; ++i) {{ {SUM} {PUT} }}",
    "an atomic operation": f"{EACH} {{ {SUM} atomicAdd(&X[i * m + c], s); }}",
    "two loops": f"{EACH} {{ {SUM} {BEFORE} s += X[j * m + c]; {PUT} }}",
    "a reference": f"{EACH} {{ float s = 0; float& t = s; {BEFORE} t += X[j * m + c]; {PUT} }}",
    "another name": f"{EACH} {{ float s = 0; float* t = &s; {BEFORE} *t += X[j * m + c]; {PUT} }}",
    "a name that hides it": f"{EACH} {{ float s = 0; {BEFORE} {{ float s = 1; X[i * m + c] = s; }} {PUT} }}",
    "the counter moves": f"{EACH} {{ {SUM} {PUT} if (s > 3) ++i; }}",
    "no row is added up": f"{EACH} {{ float s = 0; {PUT} }}",
    "what it has depends on its sum": f"{EACH} {{ float s = B[i * m + c], t = s * 2; {BEFORE} s += X[j * m + c]; "
    "X[i * m + c] = s + t; }",
    "as many rows as memory says": f"for (int i = 0; i < P[0]; ++i) {{ {SUM} {PUT} }}",
    "the count of rows moves": f"int e = n; for (int i = 0; i < e; ++i) {{ {SUM} {PUT} if (s > 1) --e; }}",
    "it prints": f'{EACH} {{ float s = 0; {BEFORE} {{ s += X[j * m + c]; printf("%d", j); }} {PUT} }}',
    "what it calls prints": f"{EACH} {{ float s = tells(i); {BEFORE} s += X[j * m + c]; {PUT} }}",
    "threads wait": f"__shared__ float t[64]; {EACH} {{ {SUM} t[threadIdx.x] = s; __syncthreads(); {PUT} }}",
}  # fmt: skip


@pytest.mark.parametrize("name", sampled(STAY, every=4))
def test_rows_that_may_not_be_taken_at_once(name: str) -> None:
    _, found = made(STAY[name])
    assert refused(found)


def test_an_array_that_is_also_another_stays() -> None:
    rows = ROWS.replace("block(64)", "block(64) args(L, X, X, Y, P, n, m)")
    body = f"{EACH} {{ float s = B[(n - 1 - i) * m + c]; {BEFORE} s -= L[i * n + j]; {PUT} }}"
    assert refused(made(body, rows)[1])
    assert written(made(f"{EACH} {{ {SUM} {PUT} }}")[1])
