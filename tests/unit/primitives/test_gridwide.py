"""Items that one block takes, or one thread, as a thread each."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.unstrided import unstrided

from .running import same
from .shapes import applied, kernel, refused

BLOCK = """\
#pragma optiml launch k grid(1) block(96)
__global__ void k(const float* a, const float* b, float* out, int n, int m) {
    %s
}
"""
HEAD = "for (int i = threadIdx.x; i < n * m; i += blockDim.x)"
THREAD = BLOCK.replace("block(96)", "block(1)")
LOOP = "for (int i = 0; i < n * m; ++i)"
SHAPES = {"a": ("n", "m"), "b": ("m",), "out": ("n", "m")}


@pytest.mark.parametrize(
    "body",
    [
        f"{HEAD} out[i] = a[i];",
        f"{HEAD.replace('blockDim.x', '96')} {{ if (a[i] < 0.0f) continue; out[i] = a[i]; }}",
        """int index = threadIdx.x, stride = blockDim.x; const float c = b[0];
        for (int i = index; i < n * m; i += stride) out[i] = c * a[i] + b[i % m];""",
        f"int i; {HEAD.replace('int i', 'i')} out[i] = a[i];",
        "int i = threadIdx.x; while (i < n * m) { out[i] = a[i]; i += blockDim.x; }",
    ],
)
def test_items_of_one_block_have_a_thread_each(body: str) -> None:
    text = BLOCK % body
    made = unstrided(kernel(text))
    program = applied(made).program
    assert "grid(cdiv(m * n, 96)) block(96)" in program.text
    same(text, made, SHAPES, {"n": 9, "m": 37})


def test_a_tuned_width_stays_one() -> None:
    text = (BLOCK % f"{HEAD} out[i] = a[i];").replace("block(96)", "block(WIDTH)")
    text = "#pragma optiml tune WIDTH in {32, 96} = 96\n" + text
    made = unstrided(kernel(text))
    assert "grid(cdiv(m * n, WIDTH)) block(WIDTH)" in applied(made).program.text
    same(text, made, SHAPES, {"n": 9, "m": 37}, {"WIDTH": 32})


@pytest.mark.parametrize(
    "body",
    [
        f"{LOOP} out[i] = a[i] * b[i % m];",
        """int index = 0, stride = 1;
        for (size_t i = index; i < n * m; i += stride) out[i] = 2 * a[i];""",
        "int i = 0; while (i < n * m) { out[i] = a[i] + 1.0f; i++; }",
        "for (int i = 1; i < n * m - 1; i++) out[i] = a[i - 1] + a[i + 1];",
        "for (int i = 0; i < n; i++) { for (int j = 0; j < m; j++) out[i * m + j] = a[j]; }",
    ],
)
def test_items_of_one_thread_have_one_each(body: str) -> None:
    text = THREAD % body
    made = unstrided(kernel(text))
    assert "block(256)" in applied(made).program.text
    assert "grid(cdiv(" in applied(made).program.text
    same(text, made, SHAPES, {"n": 33, "m": 37})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BLOCK % f"{HEAD} out[i] = out[i + 96];", "meet in memory"),
        (BLOCK % f"{HEAD} out[threadIdx.x] = a[i];", "more than its index"),
        (BLOCK % f"{HEAD} out[i] = a[i] + blockDim.x;", "more than its index"),
        (BLOCK % f"int t = threadIdx.x; {HEAD} out[i] = a[t];", "a thread's first item"),
        (BLOCK % f"{HEAD} {{ out[i] = a[i]; __syncthreads(); }}", "work together"),
        (BLOCK % f"__shared__ float s[96]; s[threadIdx.x] = 1; {HEAD} out[i] = s[0];", ""),
        (BLOCK % HEAD.replace("blockDim.x", "95") + "out[0] = 1;", ""),
        (BLOCK % f"{HEAD.replace('blockDim.x', '95')} out[i] = a[i];", "by the threads of its"),
        (BLOCK % f"{HEAD.replace('= thr', '= 1 + thr')} out[i] = a[i];", "at a thread's index"),
        (BLOCK.replace("grid(1)", "grid(2)") % f"{HEAD} out[i] = a[i];", "do not step"),
        (THREAD % f"{LOOP} out[i + 1] = out[i] + a[i];", "meet in memory"),
        (THREAD % f"float s = 0; {LOOP} {{ s += a[i]; out[i] = s; }}", "from round to round"),
        (THREAD % f"float s = 0; {LOOP} s += a[i]; out[0] = s;", "not a loop"),
        (THREAD % f"{LOOP} {{ if (a[i] > 3.0f) break; out[i] = a[i]; }}", ""),
        (THREAD % f"{LOOP} out[i] = a[i + threadIdx.x];", "more than its index"),
    ],
)
def test_refused(text: str, reason: str) -> None:
    assert reason in refused(unstrided(kernel(text)))[0]
