"""Cells of the tests of the JupyterLab extension."""

from __future__ import annotations

BODY = """\
#pragma optiml launch scale grid(cdiv(n, 256)) block(256)
__global__ void scale(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;  // don't stop
    /* a comment
       of two lines */
    if (i < n) out[i] = 2.0f * x[i];
}
"""
CUDA = f"%%optiml check --ref double\n{BODY}"
PYTHON = 'def twice(x):  # a remark\n    return x * 2.0 + len("text")'
SETUP = """\
%load_ext optiml_magic
import numpy as np
n = 1024
x = np.arange(n, dtype=np.float32)
def double(x): return 2 * x
"""


LONG = """\
__global__ void product(const float* a, const float* b, float* out, int m) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || col >= m) return;
    float sum = 0.0f;
    for (int k = 0; k < m; ++k) sum += a[row * m + k] * b[k * m + col];
    out[row * m + col] = sum;
}
"""
LONG_SETUP = f"""\
{SETUP}m = 128
a = b = np.ones((m, m), dtype=np.float32)
def matmul(a, b): return a @ b
"""
SEARCH = f"--ref matmul --budget 500 --llm none\n{LONG}"
