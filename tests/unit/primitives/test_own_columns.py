"""Local arrays at places that data choose, in columns of shared memory."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.own_columns import own_columns
from tests.present import sampled

from .running import same
from .shapes import PLANE, ROWS, applied, kernel, refused

COUNTS = "for (int j = 0; j < w; ++j) c[(int)(a[r * w + j] * 8.0f) & 15]++;"
SHAPES = {"a": ("h", "w"), "at": ("i4", "h"), "out": ("h",)}
STACK = """int st[32], sp = 0;
    st[sp++] = r;
    float s = 0.0f;
    while (sp > 0) {
        int n = st[--sp];
        s += a[n * w];
        if (n * 2 + 2 < h) { st[sp++] = 2 * n + 1; st[sp++] = 2 * n + 2; }
    }
    out[r] = s;"""


@pytest.mark.parametrize(
    "body",
    sampled([
        f"int c[16]; for (int k = 0; k < 16; ++k) c[k] = 0; {COUNTS} out[r] = c[3] + 2 * c[5];",
        f"unsigned char c[16] = {{0}}, more = c[1] + 2; {COUNTS} out[r] = c[3] + more;",
        f"for (int q = 0; q < 2; ++q) {{ int c[16] = {{}}; {COUNTS} out[r] = c[q]; }}",
        f"int c[16] = {{}}; {COUNTS} out[r] = c[c[c[1] & 15] & 15];",
        STACK,
    ], 2),
)  # fmt: skip
def test_each_thread_has_a_column(body: str) -> None:
    text = ROWS % body
    made = applied(own_columns(kernel(text)))
    assert "__shared__" in made.program.text
    same(text, made, SHAPES, {"h": 300, "w": 7})


def test_threads_of_several_axes_are_numbered() -> None:
    text = PLANE % (
        "float c[4][4] = {}; for (int k = 0; k < d; ++k) "
        "c[(int)(a[i * d + k] * 3.0f) & 3][(int)(b[j * d + k] * 4.0f) & 3] += 1.0f; s = c[1][2];"
    )
    with_less = text.replace("block(16, 16)", "block(16, 4)").replace("m, 16)", "m, 4)")
    made = applied(own_columns(kernel(with_less)))
    assert "float c[4][4][64];" in made.program.text
    assert "const int column = threadIdx.y * 16 + threadIdx.x;" in made.program.text
    same(with_less, made, {"a": ("m", "d"), "b": ("n", "d"), "out": ("m", "n")},
         {"m": 6, "n": 34, "d": 5})  # fmt: skip


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("float c[16]; for (int k = 0; k < 16; ++k) c[k] = a[k]; out[r] = c[3];", "no place"),
        (f"int c[16] = {{1}}; {COUNTS} out[r] = c[3];", "no place"),
        (f"int c[16] = {{}}; {COUNTS} int* p = c; out[r] = p[3];", "no place"),
        (f"int c[16] = {{}}; {COUNTS} out[r] = *(&c[at[r] & 15]);", "no place"),
        (f"int c[400] = {{}}; {COUNTS} out[r] = c[3];", "no place"),
        (f"int c[64] = {{}}; {COUNTS} out[r] = c[3];", "does not fit"),
        (f"__shared__ float t[256]; t[threadIdx.x] = a[r]; int c[16] = {{}}; {COUNTS} out[r] = c[3];",
         "no place"),
    ],
)  # fmt: skip
def test_those_that_stay(body: str, reason: str) -> None:
    assert reason in refused(own_columns(kernel(ROWS % body)))[0]
