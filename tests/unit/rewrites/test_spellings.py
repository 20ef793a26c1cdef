"""The same kernel in the spellings that people use: the rule that is for it sees it in all of them."""

from __future__ import annotations

import pytest

from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from optiml_magic.proposers.rewrites.share_loads import ShareLoads
from optiml_magic.proposers.rewrites.vectorise_map import VectoriseMap
from optiml_magic.proposers.rules import plain
from optiml_magic.source.program import parse_program
from tests.ideas import asked
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of

HERE = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
MAP = "if (i < n) y[i] = 2 * x[i];"
ELEMENTS = "const float* x, float* y, int n"


def elements(
    body: str, grid: str = "cdiv(n, 256)", parameters: str = ELEMENTS, above: str = ""
) -> str:
    launch = f"#pragma optiml launch k grid({grid}) block(256)"
    return f"{above}\n{launch}\n__global__ void k({parameters}) {{ {body} }}\n"


GRIDS = [
    "(n + 255) / 256", "n / 256 + 1", "1 + n / 256", "(n - 1) / 256 + 1", "n / 256 + (n % 256 != 0)",
    "(n + 256) / 256", "n / 256 + (n % 256 ? 1 : 0)", "(n + 255) >> 8", "max(1, (n + 255) / 256)",
    "n % 256 == 0 ? n / 256 : n / 256 + 1", "(255 + n) / 256", "cdiv(n, 256) + 1", "(n + 511) / 256",
]  # fmt: skip
MAPS = {
    "a function": elements(f"int i = at(); {MAP}", above="__device__ int at() { return blockIdx.x * blockDim.x + threadIdx.x; }"),
    "names": elements(f"int bx = blockIdx.x, tx = threadIdx.x, bs = blockDim.x; int i = bx * bs + tx; {MAP}"),
    "two names": elements(f"int bid = blockIdx.x; int tid = threadIdx.x; int i = bid * blockDim.x + tid; {MAP}"),
    "a named test": elements(f"{HERE} bool inside = i < n; if (inside) y[i] = 2 * x[i];"),
    "__umul24": elements(f"int i = __umul24(blockIdx.x, blockDim.x) + threadIdx.x; {MAP}"),
    "not": elements(f"{HERE} if (!(i < n)) return; y[i] = 2 * x[i];"),
    "from the other side": elements(f"{HERE} if (n <= i) return; y[i] = 2 * x[i];"),
    "the last": elements(f"{HERE} if (i > n - 1) return; y[i] = 2 * x[i];"),
    "else": elements(f"{HERE} if (i >= n) {{ return; }} else {{ y[i] = 2 * x[i]; }}"),
    "while": elements(f"{HERE} while (i < n) {{ y[i] = 2 * x[i]; i += blockDim.x * gridDim.x; }}"),
    "size_t": elements(f"size_t i = blockIdx.x * blockDim.x + threadIdx.x; {MAP}", parameters="const float* x, float* y, size_t n"),
    "a macro": elements("EACH(i, n) { y[i] = 2 * x[i]; }", above="#define EACH(i, n) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)"),
    "a functor": elements(f"Twice f; {HERE} if (i < n) y[i] = f(x[i]);", above="struct Twice { __device__ float operator()(float v) const { return 2 * v; } };"),
    "a lambda": elements(f"auto f = [](float v) {{ return 2 * v; }}; {HERE} if (i < n) y[i] = f(x[i]);"),
    "no guard": elements(f"{HERE} y[i] = 2 * x[i];"),
    "numbers": elements(f"{HERE} if (i < 1000) y[i] = 2 * x[i];", "4"),
    "__ldg": elements(f"{HERE} if (i < n) {{ const float v = __ldg(x + i); y[i] = 2 * v; }}"),
    "several a thread": elements("int base = blockIdx.x * blockDim.x * 4 + threadIdx.x; for (int k = 0; k < 4; k++) { "
                                 "int i = base + k * blockDim.x; if (i < n) y[i] = 2 * x[i]; }", "cdiv(n, 1024)"),
    "several, till the end": elements("const int tid = threadIdx.x; int base = blockIdx.x * (256 * 16) + tid; "
                                      "for (int k = 0; k < 16; k++) { int i = base + k * 256; if (i >= n) break; float v = x[i]; y[i] = v * v; }",
                                      "cdiv(n, 256 * 16)"),
    "twice in the text": elements("int i = blockIdx.x * (blockDim.x * 2) + threadIdx.x; if (i < n) y[i] = 2 * x[i]; "
                                  "if (i + blockDim.x < n) y[i + blockDim.x] = 2 * x[i + blockDim.x];", "cdiv(n, 512)"),
    "blocks in a plane": elements(f"int i = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x; {MAP}", "1024, cdiv(n, 256 * 1024)"),
    "blocks by columns": elements(f"int bx = blockIdx.x, by = blockIdx.y; int b = bx * gridDim.y + by; int i = b * blockDim.x + threadIdx.x; {MAP}",
                                  "64, cdiv(n, 256 * 64)"),
    "an axis of one block": elements(f"int b = blockIdx.y * gridDim.x + blockIdx.x; int i = b * blockDim.x * blockDim.y + threadIdx.x; {MAP}"),
    "blocks of one row": elements(f"int i = blockDim.x * (gridDim.x * blockIdx.y + blockIdx.x) + threadIdx.x; {MAP}", "cdiv(n, 256), 1"),
    "a template": elements(f"{HERE} if (i < n) y[i] = twice(x, i);",
                           above="template <typename T> __device__ T twice(const T* a, int i) { T v = a[i]; return v + v; }"),
    "std": elements(f"{HERE} if (i < n) y[i] = 2 * std::max(x[i], 0.0f);", above="#include <algorithm>"),
}  # fmt: skip
PLACE = "int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;"


def product(
    body: str, above: str = "", grid: str = "cdiv(N, 16), cdiv(M, 16)", args: str = ""
) -> str:
    launch = f"#pragma optiml launch k grid({grid}) block(16, 16){args}"
    head = "__global__ void k(const float* A, const float* B, float* C, int M, int N, int K)"
    return f"{above}\n{launch}\n{head} {{ {PLACE} {body} }}\n"


SUM = "float s = 0; for (int k = 0; k < K; ++k) s += {}; C[i * N + j] = s;"
TILES = """\
__shared__ float a[16][16], b[16][16];
float s = 0;
for (int t = 0; t < (K + 15) / 16; ++t) {
    a[threadIdx.y][threadIdx.x] = i < M && t * 16 + threadIdx.x < K ? A[i * K + t * 16 + threadIdx.x] : 0.0f;
    b[threadIdx.y][threadIdx.x] = j < N && t * 16 + threadIdx.y < K ? B[(t * 16 + threadIdx.y) * N + j] : 0.0f;
    WAIT
    for (int k = 0; k < 16; ++k) s += a[threadIdx.y][k] * b[k][threadIdx.x];
    WAIT
}
if (i < M && j < N) C[i * N + j] = s;
"""
PRODUCTS = {
    "plain": product(f"if (i < M && j < N) {{ {SUM.format('A[i * K + k] * B[k * N + j]')} }}"),
    "whole blocks": product(SUM.format("A[i * K + k] * B[k * N + j]"), grid="N / 16, M / 16"),
    "numbers": product(SUM.format("A[i * K + k] * B[k * N + j]").replace("K", "512").replace("N", "256"), "#define R 256\n#define B_ 16", "R / B_, R / B_"),
    "a block more": product(f"if (i < M && j < N) {{ {SUM.format('A[i * K + k] * B[k * N + j]')} }}", grid="N / 16 + 1, M / 16 + 1"),
    "a lambda": product("auto a = [&](int r, int c) { return A[r * K + c]; }; "
                        f"if (i < M && j < N) {{ {SUM.format('a(i, k) * B[k * N + j]')} }}"),
    "views": product(f"View a{{A, K}}, b{{B, N}}; if (i < M && j < N) {{ {SUM.format('a.at(i, k) * b(k, j)')} }}",
                     "struct View { const float* p; int ld; __device__ float at(int r, int c) const { return p[r * ld + c]; } "
                     "__device__ float operator()(int r, int c) const { return p[r * ld + c]; } };"),
    "other names": product(f"if (i < M && j < N) {{ {SUM.format('A[i * K + k] * B[k * N + j]')} }}",
                           grid="cdiv(cols, 16), cdiv(rows, 16)", args=" args(x, w, y, rows, cols, deep)"),
    "tiles": product(TILES.replace("WAIT", "__syncthreads();")),
    "groups": product("cg::thread_block block = cg::this_thread_block();\n" + TILES.replace("WAIT", "cg::sync(block);"),
                      "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;"),
    "added up": product(f"if (i < M && j < N) {{ {SUM.format('A[i * K + k] * B[k * N + j]').split(' C[')[0]} atomicAdd(C, tanhf(s)); }}"),
}  # fmt: skip
PIXELS = [
    "return x < 0 || y < 0 || x >= w || y >= h ? 0.0f : a[y * w + x];",
    "if (x < 0 || y < 0 || x >= w || y >= h) return 0.0f;\n    return a[y * w + x];",
    "if (x < 0) x = 0;\n    if (y < 0) y = 0;\n    if (x >= w) x = w - 1;\n    if (y >= h) y = h - 1;\n    return a[y * w + x];",
    "x = min(max(x, 0), w - 1);\n    y = min(max(y, 0), h - 1);\n    return a[y * w + x];",
    "int at = y * w + x;\n    if (x >= 0 && y >= 0 && x < w && y < h) { return a[at]; } else { return 1.0f; }",
]  # fmt: skip
EDGES = """\
__device__ float pixel(const float* a, int x, int y, int w, int h) {{
    {0}
}}
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
__global__ void k(const float* a, float* out, int w, int h) {{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0.0f;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) s += pixel(a, x + dx, y + dy, w, h) * (dx + 2 * dy);
    out[y * w + x] = fabsf(s);
}}
"""
BLOCK_SUMS = """\
#pragma optiml launch k grid(n) block(256)
__global__ void k(const float* a, float* out, int n, int d) {{
    __shared__ float s[256], q[256];
    int row = blockIdx.x, t = threadIdx.x;
    {0}
    for (int i = t; i < d; i += blockDim.x) {{ s[t] += a[row * d + i]; q[t] += a[row * d + i] * a[row * d + i]; }}
    __syncthreads();
    for (int apart = 1; apart < blockDim.x; apart *= 2) {{
        if (t % (2 * apart) == 0) {{ s[t] += s[t + apart]; q[t] += q[t + apart]; }}
        __syncthreads();
    }}
    if (t == 0) out[row] = s[0] / q[0];
}}
"""


def seen(rule: BlockedProduct | RowToLanes | ShareLoads | VectoriseMap, text: str) -> None:
    ideas, refused = asked(rule, plain(parse_program(text), {}).text)
    assert ideas, refused


@pytest.mark.parametrize("grid", GRIDS)
def test_a_map_by_its_launch(grid: str) -> None:
    seen(VectoriseMap(), elements(f"{HERE} {MAP}", grid))


@pytest.mark.parametrize("text", MAPS.values(), ids=MAPS)
def test_a_map(text: str) -> None:
    seen(VectoriseMap(), text)


@pytest.mark.parametrize("text", PRODUCTS.values(), ids=PRODUCTS)
def test_a_product(text: str) -> None:
    seen(BlockedProduct(), text)


@pytest.mark.parametrize("body", PIXELS)
def test_a_window_by_a_function(body: str) -> None:
    seen(ShareLoads(), EDGES.format(body))


@pytest.mark.parametrize("begin", ["s[t] = 0; q[t] = 0;", "s[t] = q[t] = 0;"])
def test_sums_in_shared_memory_by_what_they_begin_with(begin: str) -> None:
    seen(RowToLanes(), BLOCK_SUMS.format(begin))


LAGS = """\
#pragma optiml launch k grid(cdiv(m, 32), n) block(32)
__global__ void k(const float* __restrict__ x, const {kind}* __restrict__ ends,
                  float* __restrict__ out, int n, int m, int len) {{
    int lag = blockIdx.x * blockDim.x + threadIdx.x, p = blockIdx.y;
    if (lag >= m) return;
    const float* a = x + {first} * len;
    float s = 0.0f;
    for (int t = 0; t < len; t++) s += a[t];
    out[p * m + lag] = s * lag;
}}
"""


@pytest.mark.parametrize(
    ("kind", "first"),
    [("int2", "ends[p].y"), ("int", "((const short*)ends)[p]"), ("int", "ends[p]")],
)
def test_rows_that_a_member_of_a_vector_says_are_spelled_as_it_is_loaded(
    propose, compiles, kind, first
):
    text = LAGS.format(kind=kind, first=first)
    made = [p.text for p in propose("row_to_lanes", text) if "ends" in p.text]
    assert made
    for one in made[:2]:
        compiles(one)
    arrays = {
        "x": Array("f4", ("n * len",)),
        "ends": Array("i4", ("n", "2"), "below n"),
        "out": Array("f4", ("n", "m"), "zeros"),
    }
    if kind == "int":
        arrays["ends"] = Array("i4", ("n",), "below n")
    sizes = {"n": 6, "m": 40, "len": 70}, {"n": 3, "m": 33, "len": 5}
    assert end_of(text, made[0], arrays, *sizes, rounds=True) == "same"
