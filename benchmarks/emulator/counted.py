"""Kernels whose counters are compared with ncu's: one kind of access or control flow in each.

An argument is an array (filled from its own seed, so that any machine makes the same one) or a
scalar. What a kernel reads is chosen so that its counts do not depend on the order of the warps.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Array:
    """``size`` elements, uniform in [low, high): integers for an integer dtype."""

    dtype: str
    size: int
    low: float = -1.0
    high: float = 1.0


@dataclass(frozen=True)
class Scalar:
    dtype: str
    value: float


@dataclass(frozen=True)
class Program:
    name: str  # of the kernel, too
    text: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Array | Scalar, ...]

    def described(self) -> dict[str, Any]:
        """As JSON holds it; ``values`` reads it back."""
        return asdict(self)


def values(arguments: list[dict[str, Any]]) -> list[Any]:
    """The arrays and scalars of a described program, in the order of its parameters."""
    made: list[Any] = []
    for seed, argument in enumerate(arguments):
        dtype = np.dtype(argument["dtype"])
        if "value" in argument:
            made.append(dtype.type(argument["value"]))
            continue
        rng, low, high = np.random.default_rng(seed), argument["low"], argument["high"]
        if dtype.kind == "f":
            made.append(rng.uniform(low, high, argument["size"]).astype(dtype))
        else:
            made.append(rng.integers(int(low), int(high), argument["size"]).astype(dtype))
    return made


def _program(
    name: str,
    parameters: str,
    body: str,
    arguments: tuple[Array | Scalar, ...],
    *,
    grid: tuple[int, ...] = (64,),
    block: tuple[int, ...] = (256,),
    head: str = "",
) -> Program:
    text = f'{head}extern "C" __global__ void {name}({parameters}) {{\n{body.strip(chr(10))}\n}}\n'
    return Program(name, text, (*grid, 1, 1)[:3], (*block, 1, 1)[:3], arguments)  # type: ignore[arg-type]


I = "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"  # noqa: E741
K = 64 * 256  # threads of the default launch
M = 1 << 20


def _f32(size: int) -> Array:
    return Array("<f4", size)


def _indices(size: int, below: int) -> Array:
    return Array("<i4", size, 0, below)


def _int(value: int) -> Scalar:
    return Scalar("<i4", value)


GLOBAL = (
    _program(
        "saxpy",
        "const float* x, float* y, float a, int n",
        I + "    if (i < n) y[i] = a * x[i] + y[i];",
        (_f32(M), _f32(M), Scalar("<f4", 1.5), _int(M - 100)),
        grid=(4096,),
    ),
    _program(
        "guarded",
        "const float* x, float* y, int n",
        I + "    if (i % 3 == 0 && i < n) y[i] = x[i] * 2.0f;",
        (_f32(K), _f32(K), _int(K - 37)),
    ),
    _program(
        "copy_vector",
        "const float4* x, float4* y",
        I + "    y[i] = x[i];",
        (_f32(16 * M), _f32(16 * M)),
        grid=(16384,),
    ),
    _program(
        "load_stride_2",
        "const float* x, float* y",
        I + "    y[i] = x[2 * i];",
        (_f32(2 * K), _f32(K)),
    ),
    _program(
        "load_offset_1",
        "const float* x, float* y",
        I + "    y[i] = x[i + 1];",
        (_f32(K + 1), _f32(K)),
    ),
    _program(
        "load_f64_stride_3",
        "const double* x, double* y",
        I + "    y[i] = x[3 * i];",
        (Array("<f8", 3 * K), Array("<f8", K)),
    ),
    _program(
        "broadcast",
        "const float* x, float* y",
        I + "    y[i] = x[blockIdx.x] + x[i / 32];",
        (_f32(K), _f32(K)),
    ),
    _program(
        "bytes",
        "const unsigned char* x, unsigned char* y",
        I + "    y[3 * i] = x[i] + (unsigned char)1;",
        (Array("|u1", K, 0, 255), Array("|u1", 3 * K, 0, 255)),
    ),
    _program(
        "transpose_naive",
        "const float* a, float* out, int n",
        """
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    out[x * n + y] = a[y * n + x];
""",
        (_f32(M), _f32(M), _int(1024)),
        grid=(32, 128),
        block=(32, 8),
    ),
    _program(
        "gather",
        "const float* x, const int* at, float* y",
        I + "    y[i] = x[at[i]];",
        (_f32(M), _indices(4 * K, M), _f32(4 * K)),
        grid=(256,),
    ),
    _program(
        "matmul_naive",
        "const float* a, const float* b, float* c, int n",
        """
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
""",
        (_f32(256 * 256), _f32(256 * 256), _f32(256 * 256), _int(256)),
        grid=(16, 16),
        block=(16, 16),
    ),
)

CACHES = (
    _program(  # 4 MB read by every block in another order: stays in L2
        "l2_resident",
        "const float4* x, float* y, int n",
        I
        + """
    float sum = 0.0f;
    for (int k = 0; k < 32; k++) {
        float4 v = x[(i + k * 7919 * 32) % n];
        sum += v.x + v.y + v.z + v.w;
    }
    y[i] = sum;
""",
        (_f32(M), _f32(M // 4), _int(M // 4)),
        grid=(1024,),
    ),
    _program(  # 96 MB read twice: more than L2 holds
        "stream_twice",
        "const float4* x, float* y, int n",
        I
        + """
    float sum = 0.0f;
    for (int pass = 0; pass < 2; pass++)
        for (int k = i; k < n; k += gridDim.x * blockDim.x) {
            float4 v = x[k];
            sum += v.x + v.y + v.z + v.w + pass;
        }
    y[i] = sum;
""",
        (_f32(24 * M), _f32(264 * 256), _int(6 * M)),
        grid=(264,),
    ),
    _program(  # each block reads its own 16 KB eight times: stays in L1
        "l1_resident",
        "const float* x, float* y",
        """
    float sum = 0.0f;
    for (int pass = 0; pass < 8; pass++)
        for (int k = threadIdx.x; k < 4096; k += 256)
            sum += x[blockIdx.x * 4096 + (k ^ (pass * 32))];
    y[blockIdx.x * 256 + threadIdx.x] = sum;
""",
        (_f32(264 * 4096), _f32(264 * 256)),
        grid=(264,),
    ),
    _program(  # columns of a wide matrix: every line is touched by 32 requests in a row
        "columns",
        "const float* a, float* out, int n",
        I
        + """
    float sum = 0.0f;
    for (int k = 0; k < n; k++) sum += a[i * n + k];
    out[i] = sum;
""",
        (_f32(4 * M), _f32(4096), _int(1024)),
        grid=(32,),
        block=(128,),
    ),
)

_TILE = "    __shared__ {type} s[{size}];\n    int t = threadIdx.x;\n"
_FILL = "    for (int k = t; k < {size}; k += 256) s[k] = x[k];\n    __syncthreads();\n"


def _shared(
    name: str, type_: str, dtype: str, lanes: int, size: int, index: str, plus: str = ""
) -> Program:
    """Fill ``size`` elements, then every thread reads the one at ``index`` of them."""
    body = (_TILE + _FILL).format(type=type_, size=size) + I
    body += f"    y[i] = s[{index}]{plus};"
    arguments = (Array(dtype, lanes * size, 0, 100), _indices(256, size), Array(dtype, lanes * K))
    return _program(name, f"const {type_}* x, const int* at, {type_}* y", body, arguments)


SHARED = (
    _shared("shared_stride_2", "float", "<f4", 1, 1024, "(2 * t) % 1024"),
    _shared("shared_stride_32", "float", "<f4", 1, 1024, "(32 * t + t / 32) % 1024"),
    _shared("shared_stride_33", "float", "<f4", 1, 2048, "(33 * t) % 2048"),
    _shared("shared_random", "float", "<f4", 1, 1024, "at[t]"),
    _shared("shared_same", "float", "<f4", 1, 1024, "t / 32 + at[0]"),
    _shared("shared_bytes", "unsigned char", "|u1", 1, 1024, "(5 * t) % 1024"),
    _shared("shared_64", "double", "<f8", 1, 512, "t"),
    _shared("shared_64_stride_2", "double", "<f8", 1, 512, "(2 * t) % 512"),
    _shared("shared_64_pairs", "double", "<f8", 1, 512, "t / 2"),
    _shared("shared_64_same", "double", "<f8", 1, 512, "at[0]"),
    _shared("shared_64_halves", "double", "<f8", 1, 512, "t % 16"),
    _shared("shared_64_random", "double", "<f8", 1, 512, "at[t]"),
    _shared("shared_128", "float4", "<f4", 4, 512, "t"),
    _shared("shared_128_stride_2", "float4", "<f4", 4, 512, "(2 * t) % 512"),
    _shared("shared_128_stride_8", "float4", "<f4", 4, 512, "(8 * t) % 512"),
    _shared("shared_128_same", "float4", "<f4", 4, 512, "at[0]"),
    _shared("shared_128_quads", "float4", "<f4", 4, 512, "t / 4"),
    _shared("shared_128_octets", "float4", "<f4", 4, 512, "t % 8"),
    _shared("shared_128_random", "float4", "<f4", 4, 512, "at[t]"),
    _program(
        "shared_store_64",
        "double* y, int stride",
        """
    __shared__ double s[1024];
    int t = threadIdx.x;
    s[(t * stride) % 1024] = t;
    __syncthreads();
    y[blockIdx.x * 256 + t] = s[t] + s[1023 - t];
""",
        (Array("<f8", K), _int(4)),
    ),
    _program(
        "shared_half_warp",
        "const float* x, float* y",
        """
    __shared__ double s[512];
    int t = threadIdx.x;
    s[t] = x[t]; s[t + 256] = x[t] + 1.0f;
    __syncthreads();
    float r = 0.0f;
    if ((t & 31) < 16) r = (float)s[2 * t];
    y[blockIdx.x * 256 + t] = r;
""",
        (_f32(256), _f32(K)),
    ),
    _program(
        "matmul_tiled",
        "const float* a, const float* b, float* c, int n",
        """
    __shared__ float ta[16][16], tb[16][16];
    int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 16 + tx, y = blockIdx.y * 16 + ty;
    float sum = 0.0f;
    for (int t = 0; t < n; t += 16) {
        ta[ty][tx] = a[y * n + t + tx];
        tb[ty][tx] = b[(t + ty) * n + x];
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += ta[ty][k] * tb[k][tx];
        __syncthreads();
    }
    c[y * n + x] = sum;
""",
        (_f32(256 * 256), _f32(256 * 256), _f32(256 * 256), _int(256)),
        grid=(16, 16),
        block=(16, 16),
    ),
    _program(
        "transpose_tiled",
        "const float* a, float* out, int n",
        """
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = a[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
""",
        (_f32(M), _f32(M), _int(1024)),
        grid=(32, 32),
        block=(32, 8),
    ),
)

_BINS = """
    __shared__ unsigned bins[256];
    int t = threadIdx.x;
    bins[t] = 0;
    __syncthreads();
"""

ATOMICS = (
    _program(
        "shared_atomic_same",
        "const int* at, unsigned* y",
        _BINS + I + "    atomicAdd(&bins[at[0]], 1u);\n    __syncthreads();\n    y[i] = bins[t];",
        (_indices(K, 256), Array("<u4", K, 0, 9)),
    ),
    _program(
        "shared_atomic_spread",
        "const int* at, unsigned* y",
        _BINS + I + "    atomicAdd(&bins[at[i]], 1u);\n    __syncthreads();\n    y[i] = bins[t];",
        (_indices(K, 256), Array("<u4", K, 0, 9)),
    ),
    _program(
        "shared_atomic_float",
        "const int* at, float* y",
        """
    __shared__ float bins[256];
    int t = threadIdx.x;
    bins[t] = 0.0f;
    __syncthreads();
"""
        + I
        + "    atomicAdd(&bins[at[i]], 1.0f);\n    __syncthreads();\n    y[i] = bins[t];",
        (_indices(K, 256), _f32(K)),
    ),
    _program(
        "global_reduction_same",
        "unsigned* y",
        I + "    atomicAdd(&y[blockIdx.x], (unsigned)i);",
        (Array("<u4", 64, 0, 9),),
    ),
    _program(
        "global_reduction_spread",
        "const int* at, float* y",
        I + "    atomicAdd(&y[at[i]], 1.5f);",
        (_indices(K, 4096), _f32(4096)),
    ),
    _program(
        "global_atomic_result",
        "unsigned* y, unsigned* out",
        I + "    out[i] = atomicMax(&y[i % 1024], (unsigned)i) > 5u;",
        (Array("<u4", 1024, 0, 9), Array("<u4", K, 0, 9)),
    ),
    _program(
        "global_cas",
        "unsigned* y, unsigned* out",
        I + "    out[i] = atomicCAS(&y[i], 3u, 7u);",
        (Array("<u4", K, 0, 9), Array("<u4", K, 0, 9)),
    ),
)

CONTROL = (
    _program(
        "local_array",
        "const int* at, int* y, int k",
        I
        + """
    int a[16];
    for (int j = 0; j < 16; j++) a[j] = i * j + k;
    int sum = 0;
    for (int j = 0; j < 8; j++) { sum += a[at[(i + j) % 256]]; a[j + (k & 7)] = sum; }
    y[i] = sum + a[k & 15];
""",
        (_indices(256, 16), Array("<i4", K, 0, 9), _int(5)),
    ),
    _program(
        "local_array_64",
        "const int* at, double* y, int k",
        I
        + """
    double a[16];
    for (int j = 0; j < 16; j++) a[j] = (double)(i + j);
    double sum = 0.0;
    for (int j = 0; j < 8; j++) sum += a[at[(i + j) % 256]];
    a[k & 15] = sum;
    y[i] = sum + a[at[i % 256]];
""",
        (_indices(256, 16), Array("<f8", K), _int(5)),
    ),
    _program(
        "half2_axpy",
        "const half2* x, half2* y, int n",
        I + "    if (i < n) y[i] = __hfma2(x[i], __float2half2_rn(1.5f), y[i]);",
        (Array("<f2", 2 * K), Array("<f2", 2 * K), _int(K)),
        head="#include <cuda_fp16.h>\n",
    ),
    _program(
        "switch_lanes",
        "const int* at, float* y",
        I
        + """
    float v = (float)i;
    switch (at[i]) {
        case 0: for (int j = 0; j < 9; j++) v = v * 1.5f + 1.0f; break;
        case 1: for (int j = 0; j < 17; j++) v = v / (v + 2.0f); break;
        case 2: v = sqrtf(v) + expf(-v * 1e-3f); break;
        default: v = -v;
    }
    y[i] = v;
""",
        (_indices(K, 4), _f32(K)),
    ),
    _program(
        "loop_by_lane",
        "const int* at, unsigned* y",
        I
        + """
    unsigned x = (unsigned)i + 1u;
    for (int j = 0; j < at[i]; j++) x = x * 1664525u + 1013904223u;
    y[i] = x;
""",
        (_indices(K, 100), Array("<u4", K, 0, 9)),
    ),
    _program(
        "row_sum",
        "const float* a, float* out, int cols",
        """
    __shared__ float partial[32];
    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += a[blockIdx.x * cols + c];
    for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0.0f;
        for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
        if (threadIdx.x == 0) out[blockIdx.x] = sum;
    }
""",
        (_f32(M), _f32(1024), _int(1024)),
        grid=(1024,),
        block=(128,),
    ),
    _program(
        "doubles",
        "const double* x, double* y",
        I + "    double v = x[i];\n    for (int j = 0; j < 8; j++) v = v * v + 0.25 / (v + 3.0);"
        "\n    y[i] = v;",
        (Array("<f8", K), Array("<f8", K)),
    ),
    _program(
        "odd_block",
        "const float* x, float* y, int n",
        "    int i = (blockIdx.y * gridDim.x + blockIdx.x) * 77 + threadIdx.y * 11 + threadIdx.x;\n"
        "    if (i < n) y[i] = x[n - 1 - i];",
        (_f32(5000), _f32(5000), _int(5000)),
        grid=(13, 5),
        block=(11, 7),
    ),
)

PROGRAMS = (*GLOBAL, *CACHES, *SHARED, *ATOMICS, *CONTROL)
