"""Local arrays whose places tables of numbers say, with these as constants of the functions."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.known_tables import known_tables, tables_known
from optiml_magic.proposers.rewrites.scalarise_array import ScalariseArray

from .running import same
from .shapes import applied, kernel, refused

TEXT = """\
#define SIX 6
#define STEP(i) do { s = s * 5 + v[order[i]]; } while (0)
__constant__ int order[8] = {3, 1, 4, /* of pi */ 0, 5, 7, 2, 6};  // a permutation
__constant__ unsigned char by[2][8] = {{1, 2, 3, 4, 5, 6, 7, 0x1}, {7, 6, 5, 4, 3, 2, 1, 0}};
__constant__ float weight[4] = {1.f / 4, .5f, -1e-1f, 2.0f};
__constant__ int open[] = {1, 0, 3, 2,};
__constant__ int named[2] = {SIX, 1};
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
%s
__global__ void k(const int* q, int* y, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n) return;
    int v[8], s = 0;
    for (int i = 0; i < 8; ++i) v[i] = q[r * 8 + i];
    %s
    for (int i = 0; i < 8; ++i) s = s * 3 + v[i];
    y[r] = s;
}
"""
SHAPES = {"q": ("i4", "n", "8"), "y": ("i4", "n")}
MIX = """\
__device__ void mix(int* st) {
    int t = st[1];
    for (int i = 0; i < 8; ++i) { int j = order[i]; int old = st[j]; st[j] = t << by[0][i]; t = old; }
}"""
PERMUTED = (
    "int t = v[1]; for (int i = 0; i < 8; ++i) { int j = order[i], b = v[j]; v[j] = t; t = b; }"
)


@pytest.mark.parametrize(
    ("functions", "body", "now"),
    [
        ("", PERMUTED, "int j = order_known[i]"),
        ("", f"for (int round = 0; round < n; ++round) {{ {PERMUTED} }}", "#pragma unroll"),
        ("", PERMUTED.replace("for", "\n#pragma unroll\nfor", 1), "order_known[8] = {3, 1, 4, "),
        ("", "for (int p = 0; p < 2; ++p) for (int i = 0; i < 8; ++i) s += v[by[p][i]] << p;",
         "const unsigned char by_known[2][8] = {{1, 2,"),
        ("", "for (int i = 0; i < 4; ++i) s += v[order[i] ^ 1] * weight[i];",
         "const float weight_known[4] = {1.f / 4, .5f, -1e-1f, 2.0f};"),
        ("", "for (int i = 0; i < 8; ++i) v[i] += order[7 - i] * v[order[order[i]]];",
         "v[order_known[order_known[i]]]"),
        ("", "int order_known = 3; for (int i = 0; i < 8; ++i) s += v[order[i]] * order_known;",
         "order_known_2[i]"),
        ("", "for (int i = 0; i < 8; ++i) s += v[order[i]] + order[q[r] & 7];", "+ order[q[r] & 7]"),
        ("", "for (int i = 0; i < 2; ++i) s += v[named[i]];", "named_known[2] = {6, 1};"),
        ("", "for (int i = 0; i < 4; ++i) { STEP(i); STEP(2 * i); }", "v[order_known[2 * i]]"),
        ("", "for (int i = 0; i < 4; ++i) s += v[open[i]] << i;", "open_known[] = {1, 0, 3, 2,};"),
        (MIX, "mix(v); mix(v);", "t << by_known[0][i]"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("n", [1, 70])
def test_places_by_tables(functions: str, body: str, now: str, n: int) -> None:
    text = TEXT % (functions, body)
    made = tables_known(kernel(text))
    assert now in applied(made).program.text
    assert applied(made).program.text.count("#pragma unroll\n#pragma unroll") == 0
    same(text, made, SHAPES, {"n": n})


@pytest.mark.parametrize(
    "body",
    [
        "",
        "for (int i = 0; i < 8; ++i) s += v[i] * order[i];",
        "for (int i = 0; i < 8; ++i) s += v[given[i]];",
        "for (int i = 0; i < (n & 7); ++i) s += v[order[i]];",
        "for (int i = 0; i < 8; ++i) { s += v[order[i]]; v[q[r] & 7] = 1; }",
        "for (int i = 0; i < 8; ++i) s += v[order[v[0] & 7]];",
        "const int* p = order; for (int i = 0; i < 8; ++i) s += v[p[i]];",
        "int order[8]; for (int i = 0; i < 8; ++i) order[i] = 7 - i; for (int i = 0; i < 8; ++i) s += v[order[i]];",
        "\n#pragma unroll 1\nfor (int i = 0; i < 8; ++i) s += v[order[i]];",
        "for (int i = 0; i < 8; ++i) { s += v[order[i]]; i += v[0] & 1; }",
        "for (int i = 0; i < 8; ++i) { int j = order[i]; if (v[0] & 1) j = 2; s += v[j]; }",
        "for (int i = 0; i < 8; ++i) { if (s > 99) break; s += v[order[i]]; }",
        "int* p = v; for (int i = 0; i < 8; ++i) s += p[order[i] + n] ;",
    ],
)  # fmt: skip
def test_what_is_refused(body: str) -> None:
    """Places that no table tells, tables that nobody knows, and loops that stay loops."""
    assert refused(tables_known(kernel(f"__constant__ int given[8];\n{TEXT % ('', body)}")))


def test_a_local_array_too_large_for_registers_is_left_alone() -> None:
    text = (TEXT % ("", PERMUTED)).replace("int v[8]", "int v[800]")
    assert not known_tables(kernel(text))


def test_a_function_that_another_kernel_calls_as_well() -> None:
    """Its copy of a table is its own, so that whoever calls it finds the same."""
    other = "__global__ void other(int* y) { int v[8] = {}; mix(v); y[0] = v[3]; }\n"
    text = TEXT % (MIX + "\n" + other, "mix(v);")
    made = tables_known(kernel(text))
    assert "order_known[i]" in applied(made).program.text
    same(text, made, SHAPES, {"n": 70})


@pytest.mark.parametrize("kind", ["half", "float2", "char*"])
def test_elements_that_no_number_is_are_left_alone(kind: str) -> None:
    text = (TEXT % ("", "for (int i = 0; i < 4; ++i) s += v[order[i]] * (int)other[i];")).replace(
        "__constant__ float weight",
        f"__constant__ {kind} other[4] = {{0, 1, 2, 3}};\n__constant__ float weight",
    )
    made = tables_known(kernel("#include <cuda_fp16.h>\n" + text))
    assert "other_known" not in applied(made).program.text


def test_the_rule_says_whose_places_are_known() -> None:
    rule = ScalariseArray()
    titles = [s.title for s in rule.sites(kernel(TEXT % ("", PERMUTED))) if hasattr(s, "title")]
    assert "find places in v by the numbers of order" in titles
