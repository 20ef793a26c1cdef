"""Blocks of one working thread, as threads."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.threaded import threaded
from tests.present import sampled

from .running import same
from .shapes import applied, kernel, refused

BLOCKS = """\
#pragma optiml launch k grid(m) block(%s)
__global__ void k(const float* a, const float* b, float* out, int n, int m) {
    %s
}
"""
SHAPES = {"a": ("n", "m"), "b": ("m",), "out": ("n", "m")}
SUM = "int r = blockIdx.x; float s = 0; for (int c = 0; c < n; c++) s += a[r * n + c]; out[r] = s;"
PLANE = """\
#pragma optiml launch k grid(m, n) block(1)
__global__ void k(const float* a, const float* b, float* out, int n, int m) {
    int at = blockIdx.x + blockIdx.y * gridDim.x;
    out[at] = a[at] * b[blockIdx.x] + blockDim.x + threadIdx.x;
}
"""


@pytest.mark.parametrize(
    ("width", "body"),
    sampled([
        ("1", SUM),
        ("1", "out[blockIdx.x * blockDim.x + threadIdx.x] = b[blockIdx.x];"),
        ("1", "if (blockIdx.x < m / 2) out[blockIdx.x] = gridDim.x;"),
        ("64", f"if (threadIdx.x == 0) {{ {SUM} }}"),
        ("64", f"if (threadIdx.x) return; {SUM}"),
        ("64", f"int t = threadIdx.x; if (t > 0) return; {SUM}"),
        ("64", f"if (threadIdx.x != 0) {{ }} else {{ {SUM} }}"),
        ("64", "if (threadIdx.x < 1 && b[blockIdx.x] > 0) out[blockIdx.x] = blockDim.x;"),
    ], 3),
)  # fmt: skip
def test_blocks_become_threads(width: str, body: str) -> None:
    text = BLOCKS % (width, body)
    made = threaded(kernel(text))
    assert "grid(cdiv(m, 256)) block(256)" in str(applied(made).launch)
    for m in (1, 9, 300):
        same(text, made, SHAPES, {"n": 7, "m": m})


@pytest.mark.parametrize("width", ["1", "64"])
def test_one_that_works_alone_stays_alone(width: str) -> None:
    body = "if (threadIdx.x == 0 && blockIdx.x == 0) for (int r = 0; r < m; ++r) out[r] = b[r];"
    text = (BLOCKS % (width, body)).replace("grid(m)", "grid(1)")
    made = threaded(kernel(text))
    assert "grid(1) block(1)" in str(applied(made).launch)
    same(text, made, SHAPES, {"n": 7, "m": 9})
    assert refused(threaded(applied(made)))[0] == "there is one thread in all"


def test_a_plane_of_blocks() -> None:
    made = threaded(kernel(PLANE))
    assert "grid(cdiv(m, 32), cdiv(n, 8)) block(32, 8)" in str(applied(made).launch)
    same(PLANE, made, SHAPES, {"n": 9, "m": 70})


@pytest.mark.parametrize(
    ("width", "body", "reason"),
    [
        ("64", "out[blockIdx.x * n + threadIdx.x] = a[0];", "more than one thread"),
        ("64", "if (threadIdx.x < 2) out[blockIdx.x] = a[0];", "more than one thread"),
        ("64", "if (threadIdx.x == 1) out[blockIdx.x] = a[0];", "more than one thread"),
        ("64", "__shared__ float s; if (threadIdx.x == 0) { s = a[0]; out[blockIdx.x] = s; }",
         "share memory"),
        ("1", 'printf("%d", blockIdx.x); out[blockIdx.x] = a[0];', "prints"),
        ("1", "for (int i = blockIdx.x; i < m; i += gridDim.x) out[i] = a[0];", "a grid apart"),
    ],
)  # fmt: skip
def test_refused(width: str, body: str, reason: str) -> None:
    assert reason in refused(threaded(kernel(BLOCKS % (width, body.replace("%", "%%")))))[0]


def test_blocks_that_the_kernel_cannot_count() -> None:
    text = (BLOCKS % ("1", SUM)).replace("grid(m)", "grid(size(b))")
    assert "no words for" in refused(threaded(kernel(text)))[0]


def test_launch_bounds() -> None:
    text = (BLOCKS % ("1", SUM)).replace("void k", "void __launch_bounds__(32) k")
    assert "launch bounds" in refused(threaded(kernel(text)))[0]
