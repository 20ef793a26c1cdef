"""Loops that count in their rounds, as ``for`` loops."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.headed import headed
from optiml_magic.kernels.primitives.scoped import scoped
from optiml_magic.kernels.primitives.stepwise import stepwise
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch f grid(cdiv(n, 64)) block(64)
__global__ void f(const int* a, int* out, int n, int k) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, s = 0;
    if (x >= n) return;
    BODY
    out[x] = s;
}
"""
ADD = "if (x + j >= 0 && x + j < n) s += a[x + j] * (j + 9);"


def text_of(body: str) -> str:
    return TEXT.replace("BODY", body)


def ends(before: str, after: str) -> str:
    arrays = {"a": Array("i4", ("n",)), "out": Array("i4", ("n",), "zeros")}
    return end_of(before, after, arrays, {"n": 150, "k": 2}, {"n": 70, "k": -1})


@pytest.mark.parametrize(
    "body",
    [
        f"int j = -k; while (j <= k) {{ {ADD} j++; }}",
        f"int j; j = -k; while (j <= k) {{ {ADD} j = j + 1; }}",
        f"int j = k; while (j >= -k) {{ {ADD} j -= 1; }}",
        f"int j = -k; while (j <= k) {{ if (x % 3 == 0) {{ j++; continue; }} {ADD} j++; }}",
        f"int j = -k; while (true) {{ if (j > k) break; {ADD} ++j; }}",
        f"int j = -k; for (;;) {{ if (j > k) break; {ADD} ++j; }}",
        f"for (int j = -k; j <= k;) {{ {ADD} ++j; }}",
        f"int j = -k; for (; j <= k; ++j) {{ if (s == 5) continue; {ADD} }}",
        f"int j = 0; do {{ {ADD} j++; }} while (j < 3);",
        f"int j = 0; do {{ if (x % 3 == 0) continue; {ADD} }} while (++j < 3);",
        f"int j = max(-2, -k), b = 1; while (j <= k && s < 40) {{ {ADD} b += j; j += 2; }} s += b;",
        f"int j = -k, *p = &s; while (j <= k) {{ {ADD} j++; *p += 1; s += 1; }}",
        f"int j = a[x] % 3; int d = k + 1; while (j <= d) {{ {ADD} ++j; }}",
        f"int j = -k; while (j <= k) {{ if (s > 60) break; {ADD} ++j; }} j = 5; s += j;",
        f"int j = -k; while (j <= k) {{ {ADD} ++j; }} j = 0; while (j < k) {{ s += j; ++j; }}",
        f"int i = -k; while (i <= k) {{ int j = -k; while (j <= k) {{ {ADD} s += i; j++; }} i++; }}",
        f"int i = -k, j; while (i <= k) {{ j = -k; while (j <= k) {{ {ADD} j++; }} i++; }}",
    ],
)
def test_the_counter_moves_in_the_head(body: str) -> None:
    before = text_of(body)
    after = written(stepwise(kernel_of(before)))
    assert not any(f in after for f in ("while", "for (;", "; )", ";)"))
    assert ends(before, after) == "same"


@pytest.mark.parametrize(
    "body",
    [
        f"int j = -k; while (j <= k && a[x] != j) {{ {ADD} ++j; }} s += j;",
        "int j = 0; for (; j < n && a[j] < 3; ++j); s += j;",
        f"int j; for (int i = 0; i < 2; ++i) {{ j = 0; while (j < k) {{ {ADD} j++; }} }} s += j;",
        f"int j; {{ j = 0; while (j < k) {{ {ADD} j++; }} }} j += 1; s += j;",
        f"int j = 0; while (j < k) {{ {ADD} j++; }} for (j = j + 1; j < 5; ++j) {{ {ADD} }}",
        f"int j = x; for (; j > 0; j /= 2) {{ {ADD} }}",
    ],
)
def test_a_counter_that_is_asked_for_behind_the_loop(body: str) -> None:
    assert "no loop moves" in refused(stepwise(kernel_of(text_of(body))))


def test_one_counter_after_the_other() -> None:
    before = text_of(
        f"int j = -k; while (j <= k) {{ {ADD} ++j; }} j = 0; while (j < k) {{ s += j; ++j; }}"
    )
    made = stepwise(kernel_of(before))
    assert isinstance(made, Kernel)
    after = written(scoped(made))
    assert "for (int j = -k;" in after
    assert "for (int j = 0;" in after
    assert ends(before, after) == "same"


@pytest.mark.parametrize(
    "body",
    [
        f"int j = -k; while (j <= k) {{ if (x % 3 == 0) continue; {ADD} j++; }}",
        f"int j = -k; while (j <= k) {{ if (x % 3 == 0) {{ j += 2; continue; }} {ADD} j++; }}",
        f"int j = -k; while (j <= k) {{ if (x % 3 == 0) {{ j++; s++; continue; }} {ADD} j++; }}",
        f"int j = -k; while (j <= k) {{ j++; {ADD} }}",
        f"int j = -k; while (j <= k) {{ {ADD} if (x > 3) j++; else j += 2; }}",
        f"int j = -k; while (j <= k) {{ {ADD} if (x % 2) j++; j++; }}",
        f"int j = -k; while (j <= k) {{ int d = x % 2 + 1; {ADD} j += d; }}",
        f"int j = -k, d = 1; while (j <= k) {{ {ADD} j += d; d = 2; }}",
        f"int j = -k; while (j <= k) {{ {ADD} j += a[x] % 2 + 2; }}",
        f"int j = -k, e = j; while (j <= k) {{ {ADD} j++; s += e; }}",
        f"int j = -k; int e = j; while (j <= k) {{ {ADD} j++; s += e; }}",
        f"int b = k, j = -b; b = 0; while (j <= k) {{ {ADD} j++; s += b; }}",
        f"int b = k, j = b++, e = b; while (j <= k) {{ {ADD} j++; s += e; }}",
        f"int b = k, j = b++; int e = b; while (j <= k) {{ {ADD} j++; s += e; }}",
        f"int j = a[x] % 3; out[x] = 7; while (j <= k) {{ {ADD} j++; }}",
        f"int b = k, *p = &b, j = b; *p = 1; while (j <= k) {{ {ADD} j++; }}",
        f"__shared__ int b; b = 1; int j = b; __syncthreads(); b = 2; while (j <= k) {{ {ADD} j++; }}",
        f"int b = 1, *p = &b, j = -k; while (j <= k) {{ {ADD} j += b; *p = 2; }}",
        f"int j = a[x] % 3; __syncthreads(); while (j <= k) {{ {ADD} j++; }}",
        f"int j = -k, *p = &j; while (j <= k) {{ {ADD} ++*p; j++; }}",
        f"int j = -k, &r = j; while (j <= k) {{ {ADD} r += 1; j++; }}",
        f"auto m = [&]() {{ return 1; }}; int j = -k; while (j <= k) {{ {ADD} j += m(); }}",
        f"int j = -k; do {{ {ADD} j++; }} while (j <= k);",
        f"int j = 5; do {{ {ADD} j++; }} while (j < 3);",
        f"int j = 0, e = -9; do {{ {ADD} e = 3; j++; }} while (j < e);",
        f"int j = 0; do {{ {ADD} }} while (j++ < 3);",
        f"int j = 0; do {{ {ADD} ++j; }} while (++j < 3);",
        f"int j = -k; while (j++ <= k) {{ {ADD} }}",
        "float j = -k; while (j <= k) { s += (int)j; j++; }",
        f"volatile int j = -k; while (j <= k) {{ {ADD} j++; }}",
        f"int j = -k; while (j <= k) {{ {ADD} {{ int j = 4; s += j; }} j++; }}",
        f"int j = -k; again: while (j <= k) {{ {ADD} j++; }} if (s == 17) {{ s++; goto again; }}",
        f"auto j = -k; while (j <= k) {{ {ADD} j++; }} s += j;",
        f"int j(-k); while (j <= k) {{ {ADD} j++; }} s += j;",
        f"{ADD.replace('j', '1')} while (k > 0) {{ s += k; k--; }}",
    ],
)
def test_refused(body: str) -> None:
    assert refused(stepwise(kernel_of(text_of(body))))


def test_an_item_whose_first_moves_something() -> None:
    body = "int b = 0, i = threadIdx.x + b++; int e = b; while (i < k) { s += e; i += 64; }"
    assert refused(headed(kernel_of(text_of(body))))
