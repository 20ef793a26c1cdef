"""Programs and Python as people paste them, run in a real IPython shell and held against NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

SOFTMAX = """\
import cupy as cp

source = r'''
extern "C" {
__global__ void row_max(const float* x, float* m, int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float v = x[r * cols];
    for (int c = 1; c < cols; c++) v = fmaxf(v, x[r * cols + c]);
    m[r] = v;
}
__global__ void less(const float* x, const float* m, float* y, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r < rows && c < cols) y[r * cols + c] = x[r * cols + c] - m[r];
}
}
'''
module = cp.RawModule(code=source)
row_max, less = module.get_function("row_max"), module.get_function("less")
row_max = module.get_function("row_max")
less = module.get_function("less")

def shifted(data):
    rows, cols = data.shape
    m = cp.empty(rows, dtype=cp.float32)
    out = cp.empty_like(data)
    row_max((-(-rows // 64),), (64,), (data, m, rows, cols))
    threads = (32, 4)
    less((-(-cols // threads[0]), -(-rows // threads[1])), threads, (data, m, out, rows, cols))
    return out
"""
DOUBLED = """\
import numpy as np
import pycuda.autoinit
import pycuda.driver as drv
from pycuda.compiler import SourceModule
mod = SourceModule('''
__global__ void doubled(float *dest, const float *a, int n)
{
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) dest[i] = 2 * a[i];
}
''')
n = 500
a = np.random.randn(n).astype(np.float32)
dest = np.zeros_like(a)
doubled = mod.get_function("doubled")
doubled(drv.Out(dest), drv.In(a), np.int32(n), block=(128, 1, 1), grid=((n + 127) // 128, 1))
"""
PROGRAM = """\
#include <cuda_runtime.h>
#include <vector>
template <typename T> class Memory {
 public:
  explicit Memory(size_t count) : count_(count) { cudaMalloc(&begin_, count_ * sizeof(T)); }
  ~Memory() { cudaFree(begin_); }
  T* get() const { return begin_; }
 private:
  T* begin_;
  size_t count_;
};
__constant__ float weights[3];
__global__ void narrow(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 2) y[i] = weights[0] * x[i] + weights[1] * x[i + 1] + weights[2] * x[i + 2];
}
__global__ void wide(const float* x, float* y, int n) {
    for (int i = threadIdx.x; i < n - 2; i += blockDim.x) y[i] = -1.0f;
}
void run(int which, const float* x, float* y, int n) {
    switch (which) {
        case 1: wide<<<1, 64>>>(x, y, n); break;
        case 2: {
            void* args[] = {(void*)&x, &y, &n};
            dim3 grid, block;
            block.x = 64;
            grid.x = (n + block.x - 1) / block.x;
            cudaLaunchKernel((const void*)narrow, grid, block, args, 0, 0);
            break;
        }
    }
}
int main(int argc, char** argv) {
    int n = 1000, which = 2;
    if (argc > 1) which = atoi(argv[1]);
    float h_weights[3] = {0.25f, 0.5f, 0.25f};
    cudaMemcpyToSymbol(weights, h_weights, sizeof(h_weights));
    Memory<float> x(n), y(n - 2);
    run(which, x.get(), y.get(), n);
}
"""


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "optiml_magic")
    yield shell
    InteractiveShell.clear_instance()


def outcome(shell: InteractiveShell, body: str, line: str) -> Any:
    with capture_output():
        found = shell.run_cell(f"%%optiml {line}\n{body}")
    if found.error_in_exec is not None:
        raise found.error_in_exec
    return found.result


def test_two_kernels_of_cupy_run_as_their_function_launches_them(shell: InteractiveShell) -> None:
    data = np.random.default_rng(0).random((77, 45), np.float32)
    shell.user_ns["data"] = data
    m, out = outcome(shell, SOFTMAX, "run")
    assert np.array_equal(m, data.max(1))
    assert np.array_equal(out.reshape(data.shape), data - data.max(1, keepdims=True))


def test_a_script_of_pycuda_brings_its_arrays(shell: InteractiveShell) -> None:
    found = outcome(shell, DOUBLED, "check")
    assert found.passed, found
    assert "`a` is 500 random float32" in repr(found)
    shell.user_ns["a"] = np.arange(500, dtype=np.float32)
    assert np.array_equal(outcome(shell, DOUBLED, "run"), 2 * shell.user_ns["a"])


def test_a_program_with_classes_constants_and_a_choice_of_kernels(shell: InteractiveShell) -> None:
    found = outcome(shell, PROGRAM, "check")
    assert found.passed, found
    told = repr(found)
    assert "`weights` is 3 random float32" in told
    assert "the launch of `wide` on line 23 is left out" in told
    x, weights = np.arange(1000, dtype=np.float32), np.array([1, 2, 4], np.float32)
    shell.user_ns |= {"x": x, "weights": weights, "y": np.zeros(998, np.float32)}
    found = outcome(shell, PROGRAM, "run")
    assert np.array_equal(found, x[:-2] + 2 * x[1:-1] + 4 * x[2:])


FILLED = """\
#include <cuda_runtime.h>
#define LAUNCH(kernel, n, ...) \\
  do { kernel<<<((n) + 127) / 128, 128>>>(__VA_ARGS__); } while (0)
struct Params { int n; float alpha; const float* x; float* y; };
__global__ void axpy(Params p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < p.n) p.y[i] += p.alpha * p.x[i];
}
__global__ void halved(const float* y, float* z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = 0.5f * y[i];
}
int main(int argc, char** argv) {
    int n;
    if (argc > 1) n = atoi(argv[1]); else n = 1001;
    float *x, *y, *z;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    cudaMalloc(&z, n * sizeof(float));
    Params p;
    p.n = n;
    p.alpha = 4.0f;
    p.x = x; p.y = y;
    axpy<<<(n + 255) / 256, 256>>>(p);
    LAUNCH(halved, n, y, z, n);
}
"""


def test_a_program_with_a_struct_a_macro_and_arguments(shell: InteractiveShell) -> None:
    assert outcome(shell, FILLED, "check").passed
    rng = np.random.default_rng(0)
    x, y = (rng.random(1001, np.float32) for _ in range(2))
    shell.user_ns |= {"x": x, "y": y}
    found = outcome(shell, FILLED, "run")
    wanted = np.float32(y + 4 * x)
    assert np.allclose(found[0], wanted)
    assert np.allclose(found[1], wanted / 2)
