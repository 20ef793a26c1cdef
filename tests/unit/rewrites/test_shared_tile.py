"""Loops staged in tiles and transposed copies: right on ragged sizes, refused where not certain."""

from __future__ import annotations

import numpy as np
import pytest

MATMULS = {
    "guard": """
#pragma optiml launch mm grid(cdiv(m, 16), cdiv(n, 16)) block(16, 16)
__global__ void mm(const float* a, const float* b, float* c, int m, int n, int k) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < m && col < n) {
        float sum = 0.0f;
        for (int i = 0; i < k; ++i) {
            sum += a[row * k + i] * b[i * n + col];
        }
        c[row * n + col] = sum;
    }
}""",
    "two returns, 64 bits, restrict": """
#pragma optiml launch gemm grid((n + 31) / 32, (m + 7) / 8) block(32, 8)
__global__ void gemm(const float* __restrict__ a, const float* __restrict__ b,
                     float* __restrict__ c, int m, int n, int k)
{
    const size_t y = blockIdx.y * (size_t)blockDim.y + threadIdx.y;
    if (y >= m)
        return;
    // the column
    const size_t x = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (x >= n) { return; }
    float acc = 0.f;
    for (size_t p = 0; p < k; p++)
        acc = fmaf(__ldg(&a[y * k + p]), __ldg(&b[p * n + x]), acc);
    c[y * n + x] = acc;
}""",
    "pointers, nested guards, a body that is no sum of products": """
#pragma optiml launch f grid(cdiv(n, 8), cdiv(m, 8)) block(8, 8)
__global__ void f(const float *a, const float *b, float *c, int m, int n, int k) {
  int tx = threadIdx.x, ty = threadIdx.y;
  int j = blockIdx.x * 8 + tx;
  int i = blockIdx.y * 8 + ty;
  if (i < m) {
    const float *line = a + i * k;
    if (j < n) {
      float best = c[i * n + j];
      for (int q = 0; q < k; q += 1) {
        const float *other = b + q * n;
        float term = line[q] * other[j];
        if (q == 0) best = 0.0f;
        best += term;
      }
      c[i * n + j] = best;
    }
  }
}""",
    "no braces, template": """
#pragma optiml launch mul<float> grid(cdiv(n, 16), cdiv(m, 16)) block(16, 16)
template <typename T>
__global__ void mul(const T* a, const T* b, T* c, int m, int n, int k) {
    int col = threadIdx.x + blockDim.x * blockIdx.x;
    int row = threadIdx.y + blockDim.y * blockIdx.y;
    T sum = T(0);
    if (m > row && n > col)
        for (int i = 0; i <= k - 1; i++)
            sum += a[k * row + i] * b[col + n * i];
    if (col < n && row < m) c[row * n + col] = sum;
}""",
}


@pytest.mark.parametrize("name", MATMULS)
@pytest.mark.parametrize("which", [0, 1])
def test_matmul(name, which, propose, compiles, runs, rng):
    found = propose("shared_tile", MATMULS[name])
    assert len(found) == 2
    text = found[which].text
    compiles(text)
    assert text.count("__shared__") == 2
    m, n, k = 19, 37, 45
    a, b = rng.random((m, k), "f4"), rng.random((k, n), "f4")
    out = runs(text, a=a, b=b, c=np.zeros((m, n), "f4"), m=m, n=n, k=k)
    np.testing.assert_allclose(out["c"], a @ b, rtol=1e-4)


ROW_SUMS = {
    "return": """
#pragma optiml launch rs grid(cdiv(rows, 64)) block(64)
__global__ void rs(const float* a, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0;
    for (int col = 0; col < cols; ++col) {
        sum += a[row * cols + col];
    }
    out[row] = sum;
}""",
    "a start that is not zero, a second array, a later return": """
#pragma optiml launch rs grid(cdiv(rows, 32)) block(32)
__global__ void rs(const float *a, float *out, int rows, int cols)
{
	const int r = blockIdx.x * 32 + threadIdx.x;
	if (r < rows)
	{
		float s = a[r * cols];
		for (int c = 1; c < cols; ++c)
		{
			float v = a[r * cols + c]; // one element
			s += v;
		}
		if (s < 0.0f) return;
		out[r] = s;
	}
}""",
    "reversed": """
#pragma optiml launch rs grid(cdiv(rows, 64)) block(64)
__global__ void rs(const float* a, float* out, int rows, int cols) {
    unsigned int row = threadIdx.x + blockIdx.x * blockDim.x;
    const float* mine = &a[(long long)row * cols];
    if (row < rows) {
        float sum = 0.0f;
        for (int col = 0; col < cols; col++) sum = sum + mine[cols - 1 - col];
        out[row] = sum;
    }
}""",
}


@pytest.mark.parametrize("name", ROW_SUMS)
def test_one_thread_per_row(name, propose, compiles, runs, rng):
    found = propose("shared_tile", ROW_SUMS[name])
    assert found
    assert "threadIdx.x" in found[0].text
    compiles(found[0].text)
    a = rng.random((77, 41), "f4")
    out = runs(found[0].text, a=a, out=np.zeros(77, "f4"), rows=77, cols=41)
    np.testing.assert_allclose(out["out"], a.sum(1), rtol=1e-4)


SOFTMAX = """
#pragma optiml launch sm grid(cdiv(rows, 64)) block(64)
__global__ void sm(const float *x, float *y, int rows, int cols) {
    int r = threadIdx.x + blockIdx.x * blockDim.x;
    if (r < rows) {
        float top = -1e30f;
        for (int c = 0; c < cols; c++) top = fmaxf(top, x[r * cols + c]);
        float sum = 0.0f;
        for (int c = 0; c < cols; c++) {
            sum += expf(x[r * cols + c] - top);
        }
        for (int c = 0; c < cols; c++) {
            y[r * cols + c] = expf(x[r * cols + c] - top) / sum;
        }
    }
}"""


def test_each_loop_and_all_loops(propose, compiles, runs, rng):
    found = propose("shared_tile", SOFTMAX)
    most = max(found, key=lambda p: p.text.count("__shared__"))
    assert most.text.count("__shared__") == 3
    assert most.prior == max(p.prior for p in found)
    x = rng.standard_normal((70, 37)).astype("f4")
    expected = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    for one in {p.text for p in (most, found[0], found[2], found[4])}:
        compiles(one)
        out = runs(one, x=x, y=np.zeros_like(x), rows=70, cols=37)
        np.testing.assert_allclose(out["y"], expected, rtol=1e-4)


def test_a_loop_over_what_all_threads_read(propose, compiles, runs, rng):
    text = """
#pragma optiml launch sum_of_distances grid(cdiv(n, 64)) block(64)
__global__ void sum_of_distances(const float* p, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float mine = p[i], total = 0.0f;
    for (int j = 0; j < n; ++j) {
        total += fabsf(mine - p[j]);
    }
    out[i] = total;
}"""
    assert not propose("shared_tile", text)  # two names, one from memory
    text = text.replace(
        "float mine = p[i], total = 0.0f;", "float mine = p[i];\n    float total = 0.0f;"
    )
    found = propose("shared_tile", text)
    assert found
    assert found[0].prior < 0.3
    compiles(found[0].text)
    p = rng.random(101, "f4")
    out = runs(found[0].text, p=p, out=np.zeros(101, "f4"), n=101)
    np.testing.assert_allclose(out["out"], abs(p[:, None] - p).sum(1), rtol=1e-4)


def test_an_outer_loop(propose, compiles, runs, rng):
    text = """
#pragma optiml launch batched grid(cdiv(n, 16), cdiv(m, 16)) block(16, 16)
__global__ void batched(const double* a, const double* b, double* c, int m, int n, int k, int batch) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < m && col < n) {
        for (int s = 0; s < batch; ++s) {
            double sum = 0.0;
            for (int i = 0; i < k; ++i)
                sum += a[(s * m + row) * k + i] * b[(s * k + i) * n + col];
            c[(s * m + row) * n + col] = sum;
        }
    }
}"""
    found = propose("shared_tile", text)
    assert found
    compiles(found[0].text)
    a, b = rng.random((3, 17, 23)), rng.random((3, 23, 35))
    out = runs(found[0].text, a=a, b=b, c=np.zeros((3, 17, 35)), m=17, n=35, k=23, batch=3)
    np.testing.assert_allclose(out["c"], a @ b, rtol=1e-9)


TRANSPOSES = {
    "guard": """
#pragma optiml launch t grid(cdiv(cols, 32), cdiv(rows, 8)) block(32, 8)
__global__ void t(const float* a, float* out, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) {
        out[col * rows + row] = a[row * cols + col];
    }
}""",
    "the load is strided, returns, literals": """
#pragma optiml launch t grid((rows + 15) / 16, (cols + 15) / 16) block(16, 16)
__global__ void t(const float* __restrict__ src, float* __restrict__ out, int rows, int cols)
{
    const int x = blockIdx.x * 16 + threadIdx.x; // a row of src
    const int y = blockIdx.y * 16 + threadIdx.y;
    if (x >= rows) return;
    if (y >= cols) return;
    const long long from = (long long)x * cols + y;
    float v = __ldg(&src[from]);
    out[y * (size_t)rows + x] = v;
}""",
}


@pytest.mark.parametrize("name", TRANSPOSES)
def test_transposed_copy(name, propose, compiles, runs, rng):
    (found,) = propose("shared_tile", TRANSPOSES[name])
    compiles(found.text)
    assert "[TILE][TILE + 1]" in found.text
    a = rng.random((45, 71), "f4")
    array = "src" if "src" in found.text else "a"
    out = runs(found.text, **{array: a}, out=np.zeros((71, 45), "f4"), rows=45, cols=71)
    np.testing.assert_array_equal(out["out"], a.T)


def test_a_function_of_what_is_transposed(propose, compiles, runs, rng):
    text = """
#pragma optiml launch t grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
__global__ void t(const int* a, const int* bias, int* out, int h, int w) {
    int x = threadIdx.x + blockDim.x * blockIdx.x, y = threadIdx.y + blockDim.y * blockIdx.y;
    if (x < w) {
        if (y < h)
            out[x * h + y] = 2 * a[y * w + x] + bias[x];
    }
}"""
    (found,) = propose("shared_tile", text)
    compiles(found.text)
    a, bias = rng.integers(0, 99, (33, 50), "i4"), rng.integers(0, 9, 50, "i4")
    out = runs(found.text, a=a, bias=bias, out=np.zeros((50, 33), "i4"), h=33, w=50)
    np.testing.assert_array_equal(out["out"], (2 * a + bias).T)


HEAD = "#pragma optiml launch f grid(cdiv(n, 64)) block(64)\n__global__ void f(const float* a, float* o, const int* q, int n, int w) {\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
REFUSED = {
    "rounds differ between threads": "if (i < n) { float s = 0;\n for (int k = 0; k < i; ++k) {\n s += a[i * w + k];\n }\n o[i] = s;\n }",
    "rounds from memory": "if (i < n) { float s = 0;\n for (int k = 0; k < q[i]; ++k) {\n s += a[i * w + k];\n }\n o[i] = s;\n }",
    "left early": "if (i >= n) return;\n float s = 0;\n for (int k = 0; k < w; ++k) {\n if (s > 9) break;\n s += a[i * w + k];\n }\n o[i] = s;",
    "skipped rounds": "if (i >= n) return;\n float s = 0;\n for (int k = 0; k < w; ++k) {\n if (k % 3) continue;\n s += a[i * w + k];\n }\n o[i] = s;",
    "read in some rounds only": "if (i >= n) return;\n float s = 0;\n for (int k = 0; k < w; ++k) {\n if (k > q[0]) s += a[i * w + k];\n }\n o[i] = s;",
    "an index from memory": "if (i >= n) return;\n float s = 0;\n for (int k = 0; k < w; ++k) {\n s += a[q[i] * w + k];\n }\n o[i] = s;",
    "written in the loop": "if (i >= n) return;\n for (int k = 0; k < w; ++k) {\n o[i * w + k] = 2 * o[i * w + k];\n }",
    "an else": "if (i >= n) { o[0] = 1; } else {\n float s = 0;\n for (int k = 0; k < w; ++k) {\n s += a[i * w + k];\n }\n o[i] = s;\n }",
    "a guard that reads memory": "if (i >= n || q[i] > 0) return;\n float s = 0;\n for (int k = 0; k < w; ++k) {\n s += a[i * w + k];\n }\n o[i] = s;",
    "already coalesced": "if (i >= n) return;\n float s = 0;\n for (int k = 0; k < w; ++k) {\n s += a[k * n + i];\n }\n o[i] = s;",
    "a counter that changes": "if (i >= n) return;\n float s = 0;\n for (int k = 0; k < w; ++k) {\n s += a[i * w + k];\n if (s < 0) ++k;\n }\n o[i] = s;",
    "a return in a branch": "if (i < n) {\n if (a[i] > 0) {\n o[i] = 0;\n return;\n }\n float s = 0;\n for (int k = 0; k < w; ++k) {\n s += a[i * w + k];\n }\n o[i] = s;\n }",
    "barriers under a guard": "if (i < n) {\n float s = 0;\n for (int k = 0; k < w; ++k) {\n s += a[i * w + k];\n __syncwarp();\n }\n o[i] = s;\n }",
    "a condition that the grammar reads as a template": "if (i < n && w > -1) {\n float s = 0;\n for (int k = 0; k < w; ++k) {\n s += a[i * w + k];\n }\n o[i] = s;\n }",
    "few rounds": "if (i >= n) return;\n float s = 0;\n for (int k = 0; k < 3; ++k) {\n s += a[i * 3 + k];\n }\n o[i] = s;",
    "an index that changes": "if (i >= n) return;\n int at = i * w;\n float s = 0;\n for (int k = 0; k < w; ++k) {\n s += a[at + k];\n at += 2;\n }\n o[i] = s;",
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, propose):
    assert propose("shared_tile", HEAD + REFUSED[name] + "\n}") == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if (row < rows && col < cols) {", "{"),  # no guard: a larger tile would reach outside
        ("a[row * cols + col];", "a[row * cols + col] + out[0];"),
        ("cdiv(rows, 8)", "rows"),
        ("const float* a", "float* a"),
        ("int col =", "if (threadIdx.x > 3) return;\n    int col ="),
    ],
)
def test_copies_refused(old, new, propose):
    text = TRANSPOSES["guard"].replace(old, new)
    allowed = new == "float* a"  # not const, yet never written: it stays certain
    assert len(propose("shared_tile", text)) == allowed


def test_the_rest_of_the_text_stays(propose):
    text = "// mine\n#include <cuda_fp16.h>\n" + MATMULS["guard"] + "\n\n/* the\n   end */\n"
    after = propose("shared_tile", text)[0].text
    assert after.startswith("// mine\n#include <cuda_fp16.h>\n")
    assert after.endswith("\n}\n\n/* the\n   end */\n")
    assert "    int row = blockIdx.x * blockDim.x + threadIdx.x;\n" in after


def test_a_pragma_stays_with_its_loop(propose, compiles):
    text = ROW_SUMS["return"].replace("    for (", "    #pragma unroll 4\n    for (")
    compiles(propose("shared_tile", text)[0].text)


def test_names_do_not_collide(propose, compiles):
    text = (
        MATMULS["guard"]
        .replace("sum", "tile_a")
        .replace("int row", "int start = 3, TILE = 2, slot = 1;\n    int row")
    )
    for found in propose("shared_tile", text):
        compiles(found.text)
