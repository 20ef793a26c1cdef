"""Blocks that wait for one thread, or whose threads walk along rows: shared, or left as they are."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.sections import sectioned, shared_sections
from optiml_magic.proposers.rewrites.share_sections import ShareSections
from tests.ideas import asked, made
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(n) block(64)
__device__ float twice(float x) { return 2 * x; }
__device__ int own() { return threadIdx.x; }
__global__ void k(const float* a, const int* c, float* out, int n, int m) {
    __shared__ float part[64];
    __shared__ float total, most;
    __shared__ int at;
    const int i = blockIdx.x, t = threadIdx.x;
    part[t] = a[i * 64 + t];
    if (t == 0) { total = 0; most = 0; at = 0; }
    __syncthreads();
    %s
    __syncthreads();
    out[i * 64 + t] = total + part[t] + at + most;
}
"""
ARRAYS = {
    "a": Array("f4", ("n", "64")), "c": Array("i4", ("n",)), "out": Array("f4", ("n", "64"), "zeros"),
}  # fmt: skip
SIZES = {"n": 5, "m": 64}, {"n": 3, "m": 40}
ALONE = "if (threadIdx.x == 0) { %s }"
EACH = "for (int j = threadIdx.x; j < 64; j += blockDim.x) { %s }"
DOWN = "for (int j = t; j < 20; j += 64) { %s }"
COLUMN = "float s = 0; for (int k = 0; k < m; ++k) s += part[k] * a[k % n * 64 + j]; "
EVERY = "float s = 0; for (int j = 0; j < m; ++j) %s "
ROW = "float s = 0; for (int k = 0; k < m; ++k) s += a[j % n * 64 + k]; "


@pytest.mark.parametrize(
    "body",
    [
        ALONE % "float s = 0; for (int j = 0; j < m; ++j) s += part[j]; total = s;",
        ALONE % "for (int j = 0; j < m; ++j) total += part[j];",
        ALONE % "float s = part[0]; for (int j = 1; j < m; ++j) s = fmaxf(s, part[j]); most = s;",
        ALONE % "float s = 0; for (int j = 0; j < m; ++j) { part[j] *= 2; s += part[j]; } total = s;",
        ALONE % "float s = 0; for (int j = 0; j < m; ++j) s += part[j]; total = s; "
                "float q = 0; for (int j = 0; j < m; ++j) { float d = part[j] - s; q += d * d; } most = q;",
        ALONE % "total = 0; float s = 0; for (int j = 0; j < m; ++j) s += twice(part[j]); "
                "if (s > 1) total = s; else total = 1;",
        ALONE % "float b = 0; int w = 0; for (int j = 0; j < m; ++j) if (part[j] > b) "
                "{ b = part[j]; w = j; } most = b; at = w;",
        ALONE % "float r = 0; for (int j = 0; j < m; ++j) { r += part[j]; part[j] = r; } total = r;",
        ALONE % "for (int j = 1; j < m; ++j) part[j] += part[j - 1];",
        ALONE % "part[0] = fabsf(part[0]); for (int j = 1; j < m; j++) part[j] = part[j - 1] + part[j]; total = part[m - 1];",
        ALONE % "for (int j = m - 2; j >= 0; --j) part[j] = fmaxf(part[j], part[j + 1]);",
        "if (t == 0) for (int j = 0; j < m; ++j) total += part[j];",
        "if (t == 0) for (int j = 1; j < m; ++j) part[0] += part[j];",
        ALONE % "for (int j = 0; j < m; ++j) { total += part[j]; most = fmaxf(most, part[j]); }",
        "if (!t) { float s = 1; for (int j = 0; j < m; ++j) s += a[i * 64 + j]; total = s; }",
        "for (int r = 0; r < 3; ++r) { " + ALONE % "float s = 0; for (int j = 0; j < m; ++j) "
        "s += part[j] * r; total = s;" + " __syncthreads(); part[t] += total; __syncthreads(); }",
        EACH % (ROW + "part[j] = s;"),
        DOWN % (COLUMN + "out[i * 64 + j] = s;"),
        DOWN % (COLUMN + "if (s > 1) out[i * 64 + j] = s - c[j % n];"),
        "for (int j = t; j < m; j += 64) { " + COLUMN + "out[i * 64 + j] = s; }",
        DOWN % "float s = 1; for (int k = 0; k < m; ++k) s = fmaxf(s, a[k % n * 64 + j]); "
               "out[i * 64 + j] = s;",
        EACH % (ROW + "if (j % 3) part[j] = s * c[j % n];"),
        EACH % "if (j % 2 == 0) continue; float s = 0; for (int k = 0; k < m; ++k) "
               "s = fmaxf(s, a[j % n * 64 + k]); part[j] = s;",
        EACH % (ROW + "part[j] = s;") + "\n__syncthreads();\n" + ALONE % "float s = 0; "
               "for (int j = 0; j < m; ++j) s += part[j]; total = s;",
        "float mine = 0; if (i > 1) mine = 3; " + ALONE % "float s = 0; "
        "for (int j = 0; j < m; ++j) s += part[j] * mine; total = s;",
        EVERY % ("s = fmaxf(s, part[j]);") + "float q = 0; for (int j = 0; j < m; ++j) "
        "q += expf(part[j] - s); if (t == 0) { total = q; most = s; }",
        ("float b = part[0]; int w = 0; for (int j = 1; j < m; ++j) if (part[j] > b) "
        "{ b = part[j]; w = j; } if (t == 1) { most = b; at = w; }"),
        "for (int r = 0; r < 3; ++r) { " + EVERY % "s += part[j] * r;" +
        " __syncthreads(); part[t] += s * s; __syncthreads(); }",
        "if (i > 0) { " + EVERY % "s += part[j];" + " if (t == 0) total = s; }",
        "float b = 1; while (b < 3) { b += 1; if (i > 1 && b > 2) break; } " + EVERY %
        "s += part[j] * b;" + " out[i * 64 + t] = s; if (t == 2) most = s;",
        EACH % (ROW + "part[j] = s;") + "\n__syncthreads();\n" + EVERY % "s = fmaxf(s, part[j]);" +
        DOWN % "float q = 0; for (int k = 0; k < m; ++k) q += (part[k] - s) * a[k % n * 64 + j]; "
        "out[i * 64 + j] = q;",
    ],
)  # fmt: skip
def test_sections_are_shared(body: str) -> None:
    ideas, _ = asked(ShareSections(), TEXT % body)
    assert ideas
    for one in made(ideas):
        assert any(f"{group}_" in one.text for group in ("block", "lanes", "stacked"))
        assert end_of(TEXT % body, one.text, ARRAYS, *SIZES, rounds=True) == "same"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (ALONE % "for (int j = 0; j < m; ++j) if (j < 3) part[j + 1] = part[j];",
         "a round may meet what another has stored, line 12"),
        (ALONE % "float s = 0; for (int j = 0; j < m; ++j) { s += part[j]; if (s > 2) break; } "
         "total = s;", "the loop has another way out: it is left early, line 12"),
        (ALONE % "for (int j = 2; j < m; ++j) part[j] += part[j - 2];",
         "a round may meet what another has stored, line 12"),
        (ALONE % "total = part[3];", "no thread works while its block waits"),
        (ALONE % "for (int j = 0; j < 8; ++j) total += part[j];",
         "no loop in it is worth sharing, line 12"),
        ("float mine = part[t]; " + ALONE % "float s = 0; for (int j = 0; j < m; ++j) s += part[j] * mine; "
         "total = s;", "it asks which thread it is, line 12"),
        ("int mine = own(); " + ALONE % "float s = 0; for (int j = 0; j < m; ++j) s += part[j] + mine; "
         "total = s;", "it asks which thread it is, line 12"),
        ("float mine = 0; " + ALONE % "for (int j = 0; j < m; ++j) mine += part[j]; total = mine;",
         "`mine` differs from thread to thread, line 12"),
        ("float mine = 0; if (t > 1) mine = 3; " + ALONE % "float s = 0; for (int j = 0; j < m; ++j) "
         "s += part[j] * mine; total = s;", "it asks which thread it is, line 12"),
        ("float mine = 0; float& its = mine; its = t; " + ALONE % "float s = 0; "
         "for (int j = 0; j < m; ++j) s += part[j] * mine; total = s;",
         "`mine` may differ from thread to thread, line 12"),
        ("if (c[i] + t < -40) return; " + ALONE % "float s = 0; for (int j = 0; j < m; ++j) s += part[j]; "
         "total = s;", "it asks which thread it is, line 12"),
        ("const float* p = a; " + ALONE % "float s = 0; for (int j = 0; j < m; ++j, ++p) s += *p; "
         "total = s;", "more than its counter moves with the loop, line 12"),
        (EACH % (ROW + "part[j] += s;"), "rounds load and store `part`, line 12"),
        (EACH % "float s = 0; for (int k = 0; k < m; ++k) s += a[k * n + j % n]; part[j] = s;",
         "no loop in it is worth sharing, line 12"),
        (EACH % (ROW + "part[j] = s; if (s > 4) break;"), "a round may end the loop, line 12"),
    ],
)  # fmt: skip
def test_others_stay(body: str, why: str) -> None:
    assert (
        refused(sectioned(kernel_of(TEXT % body), "rows" if "j = threadIdx" in body else "alone"))
        == why
    )


KEPT = (
    "float mine = -9, all = 0; int w = -1; "
    + EACH
    + "\n__syncthreads();\npart[t] += mine + w + all;"
)


@pytest.mark.parametrize(
    "body",
    [
        KEPT % (ROW + "mine = fmaxf(mine, s);"),
        KEPT % (ROW + "if (s > mine) { mine = s; w = j; } else all += s;"),
        KEPT % (ROW + "s *= 2; part[j] = s; all += s + t; mine = fmaxf(mine, all);"),
        KEPT % ("if (j % 3 == 1) continue; " + ROW + "float q = s + c[j % n]; mine = fmaxf(mine, q);"),
        "for (int r = 0; r < 2; ++r) { " + KEPT % (ROW + "all = all * 2 + s * r;") + " }",
        "float best[2] = {0, 0}; " + KEPT.replace("all;", "best[0];") % (
            ROW + "int at = j % 2; if (at == 0) { best[0] = s; mine = s; }"),
    ],
)  # fmt: skip
def test_what_a_thread_keeps_of_its_rows_is_its_own(body: str) -> None:
    body = body if "part[j]" in body else body.replace("j < 64", "j < m * 2")
    after = written(sectioned(kernel_of(TEXT % body), "rows"))
    assert "if (lane == row) " in after
    assert end_of(TEXT % body, after, ARRAYS, *SIZES, rounds=True) == "same"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (ROW + "float d = s - mine; mine = fmaxf(mine, d);",
         "`mine` differs from thread to thread, line 12"),
        ("float s = 0; for (int k = 0; k < m; ++k) s += a[j % n * 64 + k] * mine; mine = s;",
         "`mine` differs from thread to thread, line 12"),
        (ROW + "if (s > mine) { mine = s; out[i * 64 + j] = s; }",
         "`mine` differs from thread to thread, line 12"),
        (ROW + "mine += s; if (mine > 3) continue; part[j] = s;",
         "`mine` differs from thread to thread, line 12"),
        (ROW + "mine += s; if (mine > 3) break;", "a round may end the loop, line 12"),
    ],
)  # fmt: skip
def test_what_tells_the_lanes_of_a_row_apart_stays(body: str, why: str) -> None:
    assert refused(sectioned(kernel_of(TEXT % (KEPT % body)), "rows")) == why


@pytest.mark.parametrize("end", ["(i > 1 ? m : 2 * m)", "(m | 7)", "m + 0", "(n > 2 ? 20 : 10)"])
def test_the_end_of_rows_is_one_number(end: str) -> None:
    for kept in ("", "mine += s; "):
        body = f"float mine = 0; for (int j = t; j < {end} && true; j += 64) {{ {ROW} {kept} out[j] += s; }}"
        body = body.replace(" && true", "").replace("out[j] += s;", "if (i == 0) last[j] = s;")
        text = TEXT.replace("int n, int m)", "int n, int m, float* last)") % body
        text = text.replace("+ most;", "+ most + mine;")
        arrays = ARRAYS | {"last": Array("f4", ("200",), "zeros")}
        after = written(sectioned(kernel_of(text), "rows"))
        assert end_of(text, after, arrays, *SIZES, rounds=True) == "same"


def test_an_end_that_a_thread_changes_stays_its_own() -> None:
    body = (
        "int end = m; float mine = 0; for (int j = t; j < end; j += 64) { "
        + ROW
        + "mine += s; if (s > 2) end = j; } __syncthreads(); part[t] += mine;"
    )
    assert refused(sectioned(kernel_of(TEXT % body), "rows")) == (
        "`mine` differs from thread to thread, line 12"
    )


def test_what_is_declared_before_may_be_what_is_stored() -> None:
    text = """\
#pragma optiml launch k grid(n) block(64)
__global__ void k(const float* a, float* out, int n, int m) {
    float x = out[blockIdx.x * 64 + threadIdx.x];
    for (int j = threadIdx.x; j < 64; j += blockDim.x) {
        float s = 0; for (int k = 0; k < m; ++k) s += a[j % n * 64 + k];
        out[blockIdx.x * 64 + j] = s;
    }
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] += x;
}
"""
    arrays = {"a": Array("f4", ("n", "64")), "out": Array("f4", ("n", "64"))}
    after = written(sectioned(kernel_of(text), "rows"))
    assert after.count("__syncthreads();") == 2
    assert end_of(text, after, arrays, *SIZES, rounds=True) == "same"


def test_a_barrier_stands_where_there_was_none() -> None:
    text = TEXT.replace("    __syncthreads();\n    out[", "    out[").replace(
        "total + part", "part"
    )
    body = ALONE % "float s = 0; for (int j = 0; j < m; ++j) s += a[i * 64 + j]; out[n * 64] = s;"
    arrays = ARRAYS | {"out": Array("f4", ("n * 64 + 1",), "zeros")}
    after = written(sectioned(kernel_of(text % body), "alone"))
    assert "__syncthreads();\n    out[i" in after
    assert end_of(text % body, after, arrays, {"n": 1, "m": 64}, {"n": 1, "m": 9}, rounds=True) == "same"  # fmt: skip


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (DOWN % ("if (j == 3) continue; " + COLUMN + "out[i * 64 + j] = s;"),
         "not all threads of its block come to the loop, line 12"),
        (DOWN % ("if (j > 3) { " + COLUMN + "out[i * 64 + j] = s; }"),
         "not all threads of its block come to the loop, line 12"),
        (DOWN % (COLUMN + "part[j] = s;"), "rounds load and store `part`, line 12"),
        (DOWN % (ROW + "out[i * 64 + j] = s;"), "no loop in it is worth sharing, line 12"),
    ],
)  # fmt: skip
def test_such_columns_stay(body: str, why: str) -> None:
    assert refused(sectioned(kernel_of(TEXT % body), "columns")) == why


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("float s = t; for (int j = 0; j < m; ++j) s = fmaxf(s, part[j]); out[i * 64 + t] = s;",
         "it asks which thread it is, line 12"),
        (EVERY % "s += part[j] * t;" + "out[i * 64 + t] = s;", "it asks which thread it is, line 12"),
        ("if (t < 40) { " + EVERY % "s += part[j];" + " if (t == 0) total = s; }",
         "it asks which thread it is, line 12"),
        ("float b = 0; while (b < 3) { b += 1; if (t > 1 && b > 2) break; } " + EVERY %
         "s += part[j] * b;" + " out[i * 64 + t] = s;", "it asks which thread it is, line 12"),
        ("int b = atomicAdd(&at, 1); " + EVERY % "s += part[j] * b;" + " out[i * 64 + t] = s;",
         "`atomicAdd` may return a different value to each thread, line 12"),
        ("float b = part[t]; " + EVERY % "s += part[j] * b;" + " out[i * 64 + t] = s;",
         "it asks which thread it is, line 12"),
        ("if (c[i] + t < -40) return; " + EVERY % "s += part[j];" + " if (t == 0) total = s;",
         "it asks which thread it is, line 12"),
        (EVERY % "{ s += part[j]; out[i] = 1; }" + "if (t == 0) total = s;",
         "it stores in the loop, line 12"),
        ("float s = 0; for (int j = 0; j < 8; ++j) s += part[j]; if (t == 0) total = s;",
         "no loop in it is worth sharing, line 12"),
    ],
)  # fmt: skip
def test_such_rounds_are_not_alike(body: str, why: str) -> None:
    assert refused(sectioned(kernel_of(TEXT % body), "alike")) == why


def test_what_was_shared_and_where() -> None:
    both = EACH % (ROW + "part[j] = s;") + "\n__syncthreads();\n" + ALONE % (
        "int s = 0; for (int q = 0; q < m; ++q) s += c[q % n]; at = s;")  # fmt: skip
    kernel = kernel_of(TEXT % both)
    assert shared_sections(kernel, "alone").counters == ("q",)
    assert shared_sections(kernel, "alone").exact
    assert shared_sections(kernel, "rows").counters == ("k",)
    assert not shared_sections(kernel, "rows").exact
