"""Results and rounds that have something to do with each other stay where they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.dispersed import dispersed, item_a_thread
from optiml_magic.kernels.primitives.guarded import guarded
from optiml_magic.kernels.primitives.sieved import sieved
from optiml_magic.kernels.primitives.unjammed import unjammed
from optiml_magic.kernels.primitives.untiled import untiled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written
from .test_unjammed import LATE, ROUNDS, ROWS, TERM, changed, same, text_of

FIRST = "        float x = b[k * n + col];\n"
AT = "a[(row + r * 4) * d + k]"


def summed(first: str, term: str) -> str:
    return changed(text_of(), (FIRST, f"{FIRST}        {first}\n"), (TERM, f"{{ {term} }}"))


@pytest.mark.parametrize(
    ("first", "term"),
    [
        ("float run = 0;", f"run += {AT}; acc[r] += run * x;"),
        ("int e = row;", "acc[r] += a[e++ * d + k] * x;"),
        ("int e = row;", "acc[r] += a[e * d + k] * x; e += 4;"),
        ("const float* e = a + row * d + k;", "acc[r] += *e * x; e += 4 * d;"),
        ("int q[2] = {0, 0};", f"q[0]++; acc[r] += {AT} * q[0];"),
        ("float3 q = make_float3(0, 0, 0);", f"q.x += 1; acc[r] += {AT} * q.x;"),
        ("float z[4];", f"z[r] = {AT}; acc[r] += z[0] * x;"),
        ("float z[4] = {};", f"float* y = z; y[0] += 1; acc[r] += {AT} * z[0];"),
        ("float z[4] = {};", f"float& y = z[0]; y += 1; acc[r] += {AT} * z[0];"),
        ("float y = 1;", f"if (r == 0) y = {AT}; acc[r] += y * x;"),
        ("int q = 0;", f"int& z = q; z++; acc[r] += {AT} * q;"),
    ],
)
def test_what_goes_from_result_to_result_keeps_them_side_by_side(first: str, term: str) -> None:
    before = summed(first, term)
    for step in (unjammed, item_a_thread):
        assert refused(step(kernel_of(before)))


@pytest.mark.parametrize(
    ("first", "term"),
    [
        ("float y = 2.0f; y *= x;", f"acc[r] += {AT} * y;"),
        ("float z[2] = {x, 2.0f}; z[1] += x;", f"float y = z[0]; y += 1; acc[r] += {AT} * y;"),
        ("", f"float z[2]; z[0] = x; z[1] = 1; acc[r] += {AT} * z[0];"),
        ("", "const float* e = a + (row + r * 4) * d; e += k; acc[r] += *e * x;"),
    ],
)
def test_what_a_result_or_a_round_has_alone_goes_with_it(first: str, term: str) -> None:
    before = summed(first, term)
    same(before, written(unjammed(kernel_of(before))))


@pytest.mark.parametrize(
    "before",
    [
        changed(text_of("o[0] = acc[r]; v = r;", "int t = 0; int& v = t;"), ("* x;", "* t;")),
        changed(text_of("o[0] = acc[r]; *v = r;", "int t = 0; int* v = &t;"), ("* x;", "* t;")),
        changed(text_of("o[0] = acc[r]; t = r;", "int t = 0; int& v = t;"), ("* x;", "* v;")),
        changed(text_of("o[0] = acc[r]; u = r;", "int t = 0; int& v = t; int& u = t;"),
                ("* x;", "* v;")),
        changed(text_of("o[0] = acc[r]; *u = r;", "int t = 0; int* v = &t; int* u = &t;"),
                ("* x;", "* *v;")),
        # A result is one of several in its array alone.
        changed(text_of(), (TERM, "{ float* z = &acc[r]; z[r == 0] += a[r]; }")),
        changed(text_of(), (TERM, "{ float& z = acc[r]; (&z)[r == 0] += a[r]; }")),
        # A name may be another's in front of the last loop.
        changed(text_of("o[0] = acc[r];", "using T = int; {", between="using T = float;") + "}",
                ("* x;", "* (T)1.5f;")),
        changed(text_of("o[0] = acc[r];", "{", between="int fmaxf = 2;") + "}",
                ("* x;", "* fmaxf(x, 1.0f);")),
    ],
)  # fmt: skip
def test_results_that_change_under_another_name_stay(before: str) -> None:
    assert refused(unjammed(kernel_of(before)))


SUMS = "        if (col + c * 32 < n)"
BESIDE = (("+ threadIdx.x;", "+ threadIdx.x * 4;"), ("c * 32", "c"))


def rounds(words: str, *pairs: tuple[str, str]) -> str:
    return changed(ROUNDS, (SUMS, f"        {words}\n{SUMS}"), *pairs)


TESTS = [
    "if (c == 2) s = 7;", "if (threadIdx.x == 0) s = 7;", "if (blockIdx.x == 0) s = 7;",
    "s = c == 2 ? 7 : s;", "if (c & 1) s = 3;", "if (s > c) s = 3;", "if (int q = c) s += q;",
    "switch (c) { case 1: s = 3; break; default: s += 1; }", "while (s > 100) s -= 100 + c;",
    "int z = threadIdx.x > 3 ? 2 : 1; if (z > 1) s = 3;", "if (s > 1) { if (c == 1) s = 3; }",
    "for (int k = 0; k < (c == 0 ? d : 1); ++k) s += 1;",
    "for (int k = 0; k < d; ++k) if (k > c) s += 1;",
    "int z = 0; if ((z = c, d > 0)) s += z;", "if (c == 1) s += b[col + c * 32];",
    # That these are 0 is known of a thread in its block, not of one in its grid.
    "if (threadIdx.x / 32 == 0) s += b[col + c * 32];", "if (c < 4) s += b[col + c * 32];",
    "s += threadIdx.x / 32 == 0 ? b[col + c * 32] : 0;", "if (threadIdx.x >> 5) s += 1;",
    "s += c < 4 ? b[col + c * 32] : 0;", "int z = threadIdx.x / 32; s += b[col + c * 32 + z];",
    "s += b[col + c * 32 + threadIdx.x / 1024 + c / 4];",
]  # fmt: skip


@pytest.mark.parametrize("words", TESTS)
def test_tests_that_tell_an_item_keep_its_round(words: str) -> None:
    for before in (rounds(words), rounds(words, *BESIDE)):
        assert refused(dispersed(kernel_of(before)))


@pytest.mark.parametrize(
    "words",
    ["float z = threadIdx.x ? 2 : 3;", "float z = 3; if (threadIdx.x) z = 2;",
     "int z = 0; if (blockIdx.x == 1) z = 4;", "float z = 1; if (threadIdx.x > 3) return;"],
)  # fmt: skip
def test_tests_before_the_rounds_keep_them(words: str) -> None:
    before = changed(
        ROUNDS, ("    for (int c", f"    {words}\n    for (int c"), ("= s;", "= s + z;")
    )
    assert "not items" in refused(dispersed(kernel_of(before)))


@pytest.mark.parametrize(
    "words",
    ["if (col + c * 32 == 5) s = 3;", "s += col + c * 32 < n - 3 ? b[col + c * 32] : 1.0f;",
     "if (d > 2) s = 3;", "if (s > 2) s = 3;", "if (int q = d) s += q;"],
)  # fmt: skip
def test_tests_of_whole_items_go_with_them(words: str) -> None:
    for before in (rounds(words), rounds(words, *BESIDE)):
        same(before, written(dispersed(kernel_of(before))))


ONE = "cdiv(n, 128), m", "1, m"
PLACE = "o[blockIdx.y * n + col + c * 32] = s;"


@pytest.mark.parametrize(
    "stores",
    [
        "o[blockIdx.y * n + threadIdx.x + c * 32] = s; o[blockIdx.y * n + threadIdx.x + c * 32 + 32] = s;",
        "int it = col + c * 32; o[blockIdx.y * n + it - it / 64 * 64] = s;",
        "int it = col + c * 32; o[blockIdx.y * n + it - it % 64] = s;",
        "for (int k = 0; k < 2; ++k) o[blockIdx.y * n + col + c * 32 + k * 32] = s + k;",
    ],
)
def test_rounds_that_store_to_one_element_stay(stores: str) -> None:
    reason = refused(dispersed(kernel_of(changed(ROUNDS, ONE, (PLACE, stores)))))
    assert any(words in reason for words in ("another stores", "one element", "is not followed"))


def test_a_factor_that_may_be_0_tells_no_rows_apart() -> None:
    before = changed(
        ROWS, ("m * 4", "m"), ("int d)", "int d, int st)"), ("(row + c) * n", "(row + c) * st")
    )
    assert "one element" in refused(dispersed(kernel_of(before)))


@pytest.mark.parametrize("grid", ["cdiv(n, 32)", "(n + 31) / 32", "n / 32", "2 * cdiv(n, 32)"])
@pytest.mark.parametrize("test", ["col < n && ", ""])
def test_a_size_of_the_grid_is_not_0_in_it(grid: str, test: str) -> None:
    before = changed(ROWS, ("m * 4", "m"), ("cdiv(n, 32)", grid), ("col < n && ", test))
    assert "c < 4" not in written(dispersed(kernel_of(before)))


@pytest.mark.parametrize("kind", ["unsigned", "size_t", "unsigned long long", "long long"])
def test_a_counter_stays_of_its_type(kind: str) -> None:
    words = "if (col + c * 32 - 3 >= 0) s += 1;"
    before = rounds(words, ("(int c", f"({kind} c"), ("    int col", "    int tx = threadIdx.x, bx = blockIdx.x, col"),
                    ("blockIdx.x * 128 + threadIdx.x;", "bx * 128 + tx;"))  # fmt: skip
    same(before, written(dispersed(kernel_of(before))))


@pytest.mark.parametrize(
    "before",
    [
        "const int top = 3;\n"
        + changed(LATE, ("k < d", "k < top"), ("int top = n", "int top = m")),
        changed(LATE, ("int top = n", "using W = int; W top = n")),
        changed(LATE, ("int top = n", "typedef int W; W top = n")),
        changed(LATE, ("    int top = n;", "#define W (n)\n    int top = W;")),
        "__device__ float top(float v) { return v; }\n"
        + changed(LATE, ("+= b[k * n + col]", "+= top(1)")),
    ],
)
def test_names_that_are_others_in_front_of_a_loop_stay(before: str) -> None:
    assert refused(guarded(kernel_of(before)))


LINE = {"a": Array("f4", ("n * 4 + 400",)), "o": Array("f4", ("n * 4 + 400",), "zeros")}
KERNEL = """\
#pragma optiml launch k grid(cdiv(n, 128)) block(BLOCK)
__global__ void k(const float* a, float* o, int n, int m) {
    int i = blockIdx.x * 128 + threadIdx.x;
    float s = 1;
    BODY
}
"""
HEAD = "for (int c = 0; c < 4; ++c) {"


@pytest.mark.parametrize("says", ["using T = float;", "typedef float T;", "#define T float\n"])
@pytest.mark.parametrize(
    ("step", "block", "body"),
    [
        (dispersed, 32, f"SAYS\n    {HEAD} T v = a[i + c * 32]; if (i + c * 32 < n) o[i + c * 32] = v; }}"),
        (sieved, 128, (f"SAYS\n    {HEAD} if ((i + c) % 2) continue; T v = a[i + c * 32]; s += v; }} "
         "T w = 2; o[i] = s * w;")),
        (unjammed, 128, ("float acc[4] = {}; for (int k = 0; k < m; ++k) {\nSAYS\n"
         "for (int r = 0; r < 4; ++r) { T v = a[i + k]; acc[r] += v * r; } }\n"
         "    for (int r = 0; r < 4; ++r) o[i * 4 + r] = acc[r];")),
        (untiled, 128, ("for (int k = 0; k < m; ++k) {\nSAYS\n"
         "for (int r = 0; r < 4; ++r) { T v = a[i + k]; s += v * r; } }\n    o[i] = s;")),
    ],
)  # fmt: skip
def test_what_stands_before_a_loop_and_is_no_hint_stays(
    step: Callable[[Kernel], Kernel | Refused], block: int, body: str, says: str
) -> None:
    before = KERNEL.replace("BODY", body).replace("SAYS", says).replace("BLOCK", str(block))
    found = step(kernel_of(before))
    if isinstance(found, Kernel) and found.program.text != before:
        assert (
            end_of(before, written(found), LINE, {"n": 256, "m": 3}, {"n": 128, "m": 1}) == "same"
        )


def test_a_hint_is_none_of_the_loop_that_comes_in_its_place() -> None:
    for hint in ("#pragma unroll", "#pragma unroll 4", "#pragma nounroll"):
        before = changed(ROUNDS, ("    for (int c", f"{hint}\n    for (int c"))
        after = written(dispersed(kernel_of(before)))
        assert hint not in after
        same(before, after)
