"""Launches of kernels in the spellings that people use."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.launches import infer_launch
from optiml_magic.kernels.unit import lift

HEAD = (
    "__global__ void k(float* out, const float* a, const int* ids, int n, int w, int h,"
    " float alpha, unsigned u, size_t total)"
)
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
XY = "int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;"
LINE = "grid(cdiv(n, 256)) block(256)"
PLANE = "grid(cdiv(w, 32), cdiv(h, 8)) block(32, 8)"


def infer(text: str, tuned: tuple[str, ...] = (), defines: dict[str, int] | None = None) -> str:
    unit = lift(text, defines)
    launch = str(infer_launch(unit, unit.kernels[0], tuned))
    return launch.removeprefix("#pragma optiml launch k").removeprefix("<>").strip()


@pytest.mark.parametrize(
    ("body", "launch"),
    [
        (f"{INDEX} if (i >= n) return; if (i == 0) {{ out[0] = 2; return; }} out[i] = 1;", LINE),
        (f"{INDEX} if (i < n) {{ if (a[i] > alpha) {{ out[i] = 1; }} else {{ out[i] = 0; }} }}", LINE),
        (f"{INDEX} bool inside = i < n; if (inside) out[i] = 1;", LINE),
        (f"{INDEX} const bool outside = !(i < n); if (outside) return; out[i] = 1;", LINE),
        (f"{INDEX} int& j = i; if (j < n) out[j] = 1;", LINE),
        (f"{INDEX} float* p = out + i; if (p < out + n) *p = 1;", LINE),
        (f"{INDEX} if (i < n) atomicAdd(&out[ids[i]], a[i]);", LINE),
        (f"{INDEX} if (i < n) atomicAdd(out, a[i]);", LINE),
        (f"{INDEX} while (true) {{ if (i >= n) break; out[i] = 1; i += blockDim.x * gridDim.x; }}", LINE),
        (f"{INDEX} for (; i < n; i += gridDim.x * blockDim.x) out[i] = 1;", LINE),
        (f"{INDEX} if (i >= n) return; do {{ out[i] = 1; i += gridDim.x * blockDim.x; }} while (i < n);",
         LINE),
        ((f"{INDEX} switch (i % 3) {{ case 0: if (i < n) out[i] = 1; break;"
         " default: if (i < n) out[i] = 2; }"), LINE),
        (f"{INDEX} if (i < n) {{ n = 7; out[i] = 1; }}", LINE),
        (f"{INDEX} if (i < n) {{ if (i < w) out[i] = 1; else out[i] = 2; }}", LINE),
        (f"{INDEX} if (i < n) out[i] = 1; if (i < n - 1) out[i] = 2;", LINE),
        (f"{INDEX} if (i < n && i < w) out[i] = 1;", LINE),
        (f"{INDEX} if (i > n - 1) return; out[i] = i * alpha;", LINE),
        (f"{INDEX} n = n * 2; if (i < n) out[i] = 1;", "grid(cdiv(2 * n, 256)) block(256)"),
        (f"{INDEX} if (i < (n + 3) / 4) out[i] = 1;", "grid(cdiv(cdiv(n, 4), 256)) block(256)"),
        (f"{INDEX} if (i < n / 2) out[i] = 1;", "grid(cdiv(n / 2, 256)) block(256)"),
        (f"{INDEX} if (i < min(n, w)) out[i] = 1;", "grid(cdiv(min(n, w), 256)) block(256)"),
        (f"{INDEX} int m = n < w ? n : w; if (i < m) out[i] = 1;",
         "grid(cdiv(min(n, w), 256)) block(256)"),
        (f"{INDEX} if (i < n + w) out[i] = i < n ? a[i] : 0;", "grid(cdiv(n + w, 256)) block(256)"),
        (f"{INDEX} int r = i / w, c = i % w; if (r < h) out[c * h + r] = a[i];",
         "grid(cdiv(w * h, 256)) block(256)"),
        (f"{INDEX} if (i < w * h * 3) out[i] = 1;", "grid(cdiv(3 * w * h, 256)) block(256)"),
        (f"{INDEX} if (i < u) out[i] = 1;", "grid(cdiv(u, 256)) block(256)"),
        (f"{INDEX} if ((size_t)i < total) out[i] = 1;", "grid(cdiv(total, 256)) block(256)"),
        (f"{INDEX} i <<= 2; if (i + 3 < n) {{ *(float4*)(out + i) = *(const float4*)(a + i); }}",
         "grid(cdiv(n - 3, 1024)) block(256)"),
        (f"{INDEX} if (i < n / 4) reinterpret_cast<float4*>(out)[i] = ((const float4*)a)[i];",
         "grid(cdiv(n / 4, 256)) block(256)"),
        ((f"{INDEX} i *= 4; if (i + 3 < n) {{ out[i] = 1; out[i + 3] = 1; }} else"
         " for (; i < n; ++i) out[i] = 1;"), "grid(cdiv(n, 1024)) block(256)"),
        (("int i = blockIdx.x * blockDim.x * 4 + threadIdx.x;"
         "for (int k = 0; k < 4; ++k, i += blockDim.x) if (i < n) out[i] = 1;"),
         "grid(cdiv(n, 1024)) block(256)"),
        (("int i = blockIdx.x * 1024 + threadIdx.x;"
         "for (int k = 0; k < 4; ++k) { int j = i + k * 256; if (j < n) out[j] = 1; }"),
         "grid(cdiv(n, 1024)) block(256)"),
        ("int i = (blockIdx.x << 7) + threadIdx.x; if (i < n) out[i] = 1;",
         "grid(cdiv(n, 128)) block(128)"),
        ("int i = blockIdx.x; if (i < n) out[i] = a[i];", "grid(n) block(1)"),
        ("if (blockIdx.x == 0 && threadIdx.x == 0) out[0] = a[0];", "grid(1) block(256)"),
        (f"{XY} if (x < w && y < h) for (int k = 0; k < n; ++k) out[y * w + x] += a[k];", PLANE),
        (f"{XY} if (!(x >= w || y >= h)) out[y * w + x] = 1;", PLANE),
        (f"{XY} if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return; out[y * w + x] = 1;",
         "grid(cdiv(w - 1, 32), cdiv(h - 1, 8)) block(32, 8)"),
        ((f"{XY} for (int r = y; r < h; r += gridDim.y * blockDim.y)"
         " for (int c = x; c < w; c += gridDim.x * blockDim.x) out[r * w + c] = 1;"), PLANE),
        (("for (int r = blockIdx.x; r < h; r += gridDim.x)"
         " for (int c = threadIdx.x; c < w; c += blockDim.x) out[r * w + c] = 1;"),
         "grid(h) block(256)"),
        (("int r = blockIdx.y * blockDim.y + threadIdx.y; if (r >= h) return;"
         "for (int c = blockIdx.x * 32 + threadIdx.x; c < w; c += 32 * gridDim.x) out[r * w + c] = 1;"),
         PLANE),
        (("int row = blockIdx.x * blockDim.y + threadIdx.y; if (row < h)"
         " for (int c = threadIdx.x; c < w; c += blockDim.x) out[row * w + c] = 1;"),
         "grid(cdiv(h, 8), 1) block(32, 8)"),
        (("int row = blockIdx.x; if (row >= h) return; float s = 0;"
         "for (int c = threadIdx.x; c < w; c += 32) s += a[row * w + c];"
         "for (int o = 16; o; o >>= 1) s += __shfl_down_sync(~0u, s, o);"
         "if (threadIdx.x == 0) out[row] = s;"), "grid(h) block(32)"),
        (("int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;"
         "if (row >= h) return; float s = 0; for (int c = lane; c < w; c += 32) s += a[row * w + c];"
         "if (lane == 0) out[row] = s;"), "grid(cdiv(32 * h, 256)) block(256)"),
        (("int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x & 31;"
         "if (row < h) for (int c = lane; c < w; c += 32) out[row * w + c] = 1;"),
         "grid(cdiv(h, 8)) block(256)"),
        (("__shared__ float s[256]; int row = blockIdx.x; if (row >= h) return; float v = 0;"
         "for (int c = threadIdx.x; c < w; c += blockDim.x) v += a[row * w + c];"
         "s[threadIdx.x] = v; __syncthreads();"
         "for (int st = blockDim.x / 2; st > 0; st /= 2) {"
         " if (threadIdx.x < st) s[threadIdx.x] += s[threadIdx.x + st]; __syncthreads(); }"
         "if (threadIdx.x == 0) out[row] = s[0];"), "grid(h) block(256)"),
        (("__shared__ float t[32][33]; int x = blockIdx.x * 32 + threadIdx.x;"
         "int y = blockIdx.y * 32 + threadIdx.y; for (int j = 0; j < 32; j += 8)"
         " if (x < w && y + j < h) t[threadIdx.y + j][threadIdx.x] = a[(y + j) * w + x];"
         "__syncthreads(); x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;"
         "for (int j = 0; j < 32; j += 8)"
         " if (x < h && y + j < w) out[(y + j) * h + x] = t[threadIdx.x][threadIdx.y + j];"),
         "grid(cdiv(w, 32), cdiv(h, 32)) block(32, 8)"),
        ((f"__shared__ float t[16][16]; {XY} bool in = x < w && y < h;"
         "t[threadIdx.y][threadIdx.x] = in ? a[y * w + x] : 0; __syncthreads();"
         "if (in) out[y * w + x] = t[threadIdx.y][threadIdx.x];"),
         "grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)"),
        ((f"__shared__ float c[9]; if (threadIdx.x < 9) c[threadIdx.x] = a[threadIdx.x];"
         f"__syncthreads(); {INDEX} if (i < n) out[i] = c[i % 9];"), LINE),
    ],
)  # fmt: skip
def test_spellings(body, launch):
    assert infer(f"{HEAD} {{ {body} }}") == launch


@pytest.mark.parametrize(
    ("text", "launch"),
    [
        (("__device__ int at() {{ return blockIdx.x * blockDim.x + threadIdx.x; }}"
          "{head} {{ int i = at(); if (i < n) out[i] = 1; }}"), LINE),
        (("__device__ bool inside(int i, int n) {{ return i < n; }}"
          "{head} {{ {i} if (inside(i, n)) out[i] = 1; }}"), LINE),
        (("__device__ void put(float* p, int i, int m) {{ if (i < m) p[i] = 1; }}"
          "{head} {{ {i} put(out, i, n); }}"), LINE),
        (("__device__ void put(float* p, int i) {{ p[i] = 1; }}"
          "{head} {{ {i} if (i >= n) return; put(out, i); }}"), LINE),
        (("#define LOOP(i, n) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); "
          "i += blockDim.x * gridDim.x)\n{head} {{ LOOP(j, n) {{ out[j] = 1; }} }}"), LINE),
        ("#define AT (threadIdx.x + blockIdx.x * blockDim.x)\n{head} {{ if (AT < n) out[AT] = 1; }}",
         LINE),
        ("#define CHECK(c) if (!(c)) return\n{head} {{ {i} CHECK(i < n); out[i] = 1; }}", LINE),
        (("#if 1\n#define B 64\n#else\n#define B 32\n#endif\n{head} {{ int i = blockIdx.x * B +"
         " threadIdx.x; if (i < n) out[i] = 1; }}"), "grid(cdiv(n, 64)) block(64)"),
        ("const int ROWS = 100;\n{head} {{ {i} if (i < ROWS * w) out[i] = 1; }}",
         "grid(cdiv(100 * w, 256)) block(256)"),
        (("template <int B = 128> {head} {{ int i = blockIdx.x * B + threadIdx.x; if (i < n)"
         " out[i] = 1; }}"), "grid(cdiv(n, 128)) block(128)"),
        ("__device__ float table[16];\n{head} {{ {i} if (i < n) out[i] = table[i % 16]; }}", LINE),
    ],
)  # fmt: skip
def test_what_a_text_hides_is_seen_through(text, launch):
    assert infer(text.format(head=HEAD, i=INDEX)) == launch


def test_macros_from_outside_and_tuned_names():
    body = "{ int i = blockIdx.x * B + threadIdx.x; if (i < n) out[i] = 1; }"
    assert infer(HEAD + body, defines={"B": 96}) == "grid(cdiv(n, 96)) block(96)"
    assert infer(HEAD + body, tuned=("B",)) == "grid(cdiv(n, B)) block(B)"
    more = body.replace("B + threadIdx.x", "B * 4 + threadIdx.x").replace(
        "if", "for (int k = 0; k < 4; ++k, i += B) if"
    )
    assert infer(HEAD + more, tuned=("B",)) == "grid(cdiv(n, B * 4)) block(B)"
