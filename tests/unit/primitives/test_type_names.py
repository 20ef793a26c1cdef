"""Types and macros that a body declares stay in front of what asks for them."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.foregone import foregone
from optiml_magic.kernels.primitives.forestalled import forestalled
from optiml_magic.kernels.primitives.pruned import pruned
from optiml_magic.kernels.primitives.type_names import names_between, names_in
from optiml_magic.kernels.primitives.unclamped import unclamped
from optiml_magic.kernels.primitives.unparted import unparted
from optiml_magic.kernels.primitives.unstaged import unstaged
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch f grid(cdiv(n, 32)) block(32)
__global__ void f(const int* a, int* out, int n, int m) {
    int t = threadIdx.x, i = blockIdx.x * 32 + t, v = 0;
    BODY
}
"""
LOOP = "for (int j = 0; j < 4; ++j) v += j * i;"
STAGED = "__shared__ int s[32]; s[t] = i < n ? a[i] : 0; __syncthreads(); v = s[31 - t];"


def text_of(body: str) -> str:
    return TEXT.replace("BODY", body)


def ends(before: str, after: str) -> str:
    arrays = {"a": Array("i4", ("n",)), "out": Array("i4", ("n",), "zeros")}
    return end_of(before, after, arrays, {"n": 70, "m": 3}, {"n": 64, "m": 0})


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("using T = int;", True),
        ("typedef int T;", True),
        ("struct P { int x; };", True),
        ("\n#define Q 3\n", True),
        ("\n#  undef Q\n", True),
        ("\n# /* none */ define Q \\\n 3\n", True),
        ("\n#if 1\n v = 3;\n#endif\n", True),
        ('\n#pragma push_macro("Q")\n', True),
        ("if (i > 3) { using T = int; v = (T)3; }", True),
        ("\n#pragma unroll\n", False),
        ("// using T = int;\n", False),
        ("/* typedef\n#define Q 3\n*/", False),
        ("int usings = 3, defined = 3;", False),
    ],
)
def test_what_declares_a_type_or_a_macro(words: str, told: bool) -> None:
    kernel = kernel_of(text_of(f"v = 1; {words} {LOOP}"))
    body = kernel.function.body
    assert names_between(kernel, body, 0, len(body.body) - 1) is told
    assert names_between(kernel, body, 0, 1) is False
    assert names_in(kernel, body) is told


@pytest.mark.parametrize(
    "body",
    [
        f"using I = long long; {LOOP} if ((I)i < n) out[i] = v;",
        f"typedef long long I; {LOOP} if (static_cast<I>(i) < n) out[i] = v;",
        f"\n#define LIM n\n{LOOP} if (i < LIM) out[i] = v;\n#undef LIM\n",
        f"struct P {{ int x; }}; {LOOP} if (i < n) {{ P p = {{3}}; out[i] = v + p.x; }}",
        f"\n#pragma unroll\n{LOOP} if (i < n) out[i] = v;",
    ],
)
def test_a_guard_stands_behind_the_types_that_it_asks_for(body: str) -> None:
    before = text_of(body)
    after = written(forestalled(kernel_of(before)))
    assert after.index("if (!") < after.index("for (")
    assert ends(before, after) == "same"


@pytest.mark.parametrize(
    "body",
    [
        f"{LOOP} using I = long long; if ((I)i < n) out[i] = v;",
        f"{LOOP}\n#define LIM n\n if (i < LIM) out[i] = v;\n#undef LIM\n",
        f"{LOOP} if (i < n) {{ using T = float; out[i] = (T)v; }} using T = int; v = (T)3;",
        f"{LOOP} if (i < n) {{\n#define Q v\n out[i] = Q; }} v = Q;",
    ],
)
def test_a_guard_behind_types_stays(body: str) -> None:
    assert refused(forestalled(kernel_of(text_of(body))))


@pytest.mark.parametrize(
    "behind",
    [
        "using I = long long; if ((I)i < n) out[i] = v;",
        "\n#define LIM n\n if (i < LIM) out[i] = v;\n#undef LIM\n",
        "if (i < n) { using T = float; out[i] = (T)v; } using T = int; v = (T)3;",
        "if (i < n) { int q = v; out[i] = q; } int q = 4; v = q;",
        "if (m == 0) { return; } else { v = v + 1; } if (i < n && i / m > 1) out[i] = v;",
    ],
)
def test_what_is_staged_no_more_has_its_guard_where_it_is_right(behind: str) -> None:
    before = text_of(f"{STAGED} {behind}")
    after = written(unstaged(kernel_of(before)))
    assert "__shared__" not in after
    assert "if (!" not in after
    assert ends(before, after) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "if (t < 32) { using T = float; v = (T)2.5f; } if (i < n) out[i] = v;",
        "if (t < 32) {\n#define Q v\n v = 3; } if (i < n) out[i] = Q;",
        "if (t > 99) {\n#define Q v\n v = 3; } if (i < n) out[i] = Q;",
    ],
)
def test_a_branch_with_names_of_its_own_stays(body: str) -> None:
    assert refused(foregone(kernel_of(text_of(body))))


@pytest.mark.parametrize(
    "body",
    [
        "int d = 3;\n#define Q 3\n int e = 2; if (i < n) out[i] = a[i] + Q;",
        "int e = 2;\n#define Q 3\n e = 4; if (i < n) out[i] = a[i] + Q;",
        "using T = float; int e = 2; if (i < n) out[i] = (T)a[i];",
        "if (n > 3) { using T = float; } int e = 2; if (i < n) out[i] = a[i];",
    ],
)
def test_what_is_left_out_takes_no_type_with_it(body: str) -> None:
    before = text_of(body)
    assert ends(before, written(pruned(kernel_of(before)))) == "same"


def test_a_macro_at_a_local_that_moves() -> None:
    body = "\n#if 1\n v = 3;\n#else\n v = 4;\n#endif\n if (i < n) out[i] = v;"
    assert refused(pruned(kernel_of(text_of(body))))


def test_loops_and_branches_with_a_line_of_the_preprocessor_in_front() -> None:
    place = "const int x = blockIdx.x * blockDim.x + threadIdx.x;"
    window = "for (int q = x - 2; q < x + 2; ++q) v += q;"
    branch = "if (x + 1 < n) v += a[x]; else if (x < n) v += a[x];"
    for step, words in ((unclamped, window), (unparted, branch)):
        body = f"{place} {words} if (x < n) out[x] = v;"
        assert ends(text_of(body), written(step(kernel_of(text_of(body))))) == "same"
        told = body.replace(words, f"\n#if 1\n{words}\n#endif\n")
        assert refused(step(kernel_of(text_of(told))))
