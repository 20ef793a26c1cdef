"""The eight kernels of a first course, against NumPy."""

import numpy as np
import pytest

SOURCE = r"""
extern "C" {
__global__ void saxpy(int n, float a, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
__global__ void transpose(const float* a, float* out, int rows, int cols) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < cols && y < rows) out[x * rows + y] = a[y * cols + x];
}
__global__ void transpose_tiled(const float* a, float* out, int rows, int cols) {
  __shared__ float t[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  if (x < cols && y < rows) t[threadIdx.y][threadIdx.x] = a[y * cols + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;
  if (x < rows && y < cols) out[y * rows + x] = t[threadIdx.x][threadIdx.y];
}
__global__ void matmul(const float* a, const float* b, float* c, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n) return;
  float s = 0;
  for (int k = 0; k < n; k++) s += a[y * n + k] * b[k * n + x];
  c[y * n + x] = s;
}
__global__ void matmul_tiled(const float* a, const float* b, float* c, int n) {
  __shared__ float ta[16][16], tb[16][16];
  int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 16 + tx, y = blockIdx.y * 16 + ty;
  float s = 0;
  for (int t = 0; t < n; t += 16) {
    ta[ty][tx] = y < n && t + tx < n ? a[y * n + t + tx] : 0;
    tb[ty][tx] = x < n && t + ty < n ? b[(t + ty) * n + x] : 0;
    __syncthreads();
    for (int k = 0; k < 16; k++) s += ta[ty][k] * tb[k][tx];
    __syncthreads();
  }
  if (x < n && y < n) c[y * n + x] = s;
}
__global__ void row_sum(const float* x, float* out, int cols) {
  __shared__ float partial[32];
  float s = 0;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) s += x[blockIdx.x * cols + c];
  for (int d = 16; d; d >>= 1) s += __shfl_down_sync(~0u, s, d);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x < 32) {
    s = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
    for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x == 0) out[blockIdx.x] = s;
  }
}
__global__ void histogram(const unsigned char* x, unsigned* bins, int n) {
  __shared__ unsigned local[256];
  local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 256 * gridDim.x)
    atomicAdd(&local[x[i]], 1);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
__global__ void softmax(const float* x, float* out, int cols) {
  extern __shared__ float part[];
  const float* row = x + blockIdx.x * cols;
  float m = -3.4e38f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) m = fmaxf(m, row[c]);
  for (int d = 16; d; d >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = m;
  __syncthreads();
  for (int w = 0; w < blockDim.x / 32; w++) m = fmaxf(m, part[w]);
  float s = 0;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) s += expf(row[c] - m);
  for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(~0u, s, d);
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  s = 0;
  for (int w = 0; w < blockDim.x / 32; w++) s += part[w];
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    out[blockIdx.x * cols + c] = expf(row[c] - m) / s;
}
}
"""

i32, f32 = np.int32, np.float32


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def test_saxpy(run, rng):
    n = 1000
    x, y = rng.random((2, n), f32)
    before = y.copy()
    assert run(SOURCE, "saxpy", 4, 256, i32(n), f32(2), x, y).fault is None
    np.testing.assert_allclose(y, 2 * x + before, rtol=1e-6)


@pytest.mark.parametrize("kernel", ["transpose", "transpose_tiled"])
def test_transpose(run, rng, kernel):
    rows, cols = 70, 45
    a, out = rng.random((rows, cols), f32), np.zeros((cols, rows), f32)
    assert run(SOURCE, kernel, (2, 3), (32, 32), a, out, i32(rows), i32(cols)).fault is None
    np.testing.assert_array_equal(out, a.T)


@pytest.mark.parametrize("kernel", ["matmul", "matmul_tiled"])
@pytest.mark.parametrize("n", [64, 50])
def test_matmul(run, rng, kernel, n):
    a, b = rng.random((2, n, n), f32)
    c = np.zeros((n, n), f32)
    blocks = -(-n // 16)
    assert run(SOURCE, kernel, (blocks, blocks), (16, 16), a, b, c, i32(n)).fault is None
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_row_sum(run, rng):
    x, out = rng.random((9, 1000), f32), np.zeros(9, f32)
    assert run(SOURCE, "row_sum", 9, 256, x, out, i32(1000)).fault is None
    np.testing.assert_allclose(out, x.sum(1), rtol=1e-5)


def test_histogram(run, rng):
    x, bins = rng.integers(0, 256, 10_000, np.uint8), np.zeros(256, np.uint32)
    assert run(SOURCE, "histogram", 5, 256, x, bins, i32(x.size)).fault is None
    np.testing.assert_array_equal(bins, np.bincount(x, minlength=256))


def test_softmax(run, rng):
    x = rng.normal(0, 5, (5, 300)).astype(f32)
    out = np.zeros_like(x)
    assert run(SOURCE, "softmax", 5, 128, x, out, i32(300), shared=16).fault is None
    exact = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, exact / exact.sum(1, keepdims=True), rtol=2e-6)
    np.testing.assert_allclose(out.sum(1), 1, rtol=1e-5)
