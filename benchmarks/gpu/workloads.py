"""Kernels as people write them first, for the hit rates of the findings: none set a threshold.

Each has a size of real work on a GPU, smaller sizes that it is verified at, and small ones for the
emulated device. Some are good already: there advice can only be wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from optiml_magic.model.task import Task
from optiml_magic.testing.kernels import known_task

Values = dict[str, Any]
f4 = np.float32


@dataclass(frozen=True)
class Workload:
    """A kernel, what it should compute, and at which sizes."""

    text: str
    reference: Callable[..., Any]
    inputs: Callable[..., Values]
    large: dict[str, int]
    checked: dict[str, int]  # on a GPU
    small: dict[str, int]  # on the emulated device

    def task(self, name: str, *, emulated: bool) -> Task:
        sizes = self.small if emulated else self.large
        return Task(
            self.text,
            reference=self.reference,
            inputs=self.inputs,
            sizes=sizes,
            flops=FLOPS[name](**sizes),
            verify_sizes={} if emulated else self.checked,
            name=name,
        )


def uniform(rng: np.random.Generator, *shape: int) -> Any:
    return rng.uniform(-1.0, 1.0, shape).astype(f4)


def matrix(rng: np.random.Generator, rows: int, cols: int) -> Values:
    return {"a": uniform(rng, rows, cols), "rows": rows, "cols": cols}


def matrix_vector(rng: np.random.Generator, rows: int, cols: int) -> Values:
    return {**matrix(rng, rows, cols), "x": uniform(rng, cols)}


def two_matrices(rng: np.random.Generator, rows: int, cols: int) -> Values:
    return {**matrix(rng, rows, cols), "b": uniform(rng, rows, cols)}


def points(rng: np.random.Generator, n: int, m: int, d: int) -> Values:
    return {"p": uniform(rng, n, d), "q": uniform(rng, m, d), "n": n, "m": m, "d": d}


def product(rng: np.random.Generator, n: int) -> Values:
    return {"a": uniform(rng, n, n), "b": uniform(rng, n, n), "n": n}


def signal(rng: np.random.Generator, n: int) -> Values:
    return {"x": uniform(rng, n), "n": n}


def prices(rng: np.random.Generator, n: int) -> Values:
    return {
        "spot": rng.uniform(10, 100, n).astype(f4),
        "strike": rng.uniform(10, 100, n).astype(f4),
        "n": n,
    }


def filtered(rng: np.random.Generator, n: int, taps: int) -> Values:
    return {"x": uniform(rng, n + taps - 1), "w": uniform(rng, taps), "n": n, "taps": taps}


def bodies(rng: np.random.Generator, n: int) -> Values:
    return {"x": uniform(rng, n), "y": uniform(rng, n), "z": uniform(rng, n), "n": n}


def particles(rng: np.random.Generator, n: int) -> Values:
    return {"p": uniform(rng, n, 4), "n": n}


def batches(rng: np.random.Generator, batch: int, d: int) -> Values:
    return {"a": uniform(rng, batch, d, d), "x": uniform(rng, batch, d), "batch": batch, "d": d}


def convolved(x: Any, w: Any) -> Any:
    return np.lib.stride_tricks.sliding_window_view(x, len(w)) @ w


def cooled(a: Any) -> Any:
    out = a.copy()
    inner = a[1:-1, 2:] + a[1:-1, :-2] + a[2:, 1:-1] + a[:-2, 1:-1]
    out[1:-1, 1:-1] = a[1:-1, 1:-1] + 0.1 * (inner - 4 * a[1:-1, 1:-1])
    return out


def distances(p: Any, q: Any) -> Any:
    """Squared, without an array of n by m by d."""
    return (p * p).sum(axis=1)[:, None] + (q * q).sum(axis=1) - 2 * (p @ q.T)


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def payoff(spot: Any, strike: Any) -> Any:
    d = np.log(spot / strike) / (0.3 * np.sqrt(2.0)) + 0.5 * 0.3 * np.sqrt(2.0)
    return spot / (1 + np.exp(-1.702 * d)) + 0.5 * strike * np.exp(-0.04)


def potential(x: Any, y: Any, z: Any) -> Any:
    return sum(
        1 / np.sqrt((x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2 + 0.01)
        for a, b, c in zip(x, y, z, strict=True)
    )


def horner(x: Any) -> Any:
    out = np.zeros_like(x)
    for k in range(64):
        out = out * x + (1.0 / (k + 1) if k % 2 else -0.5)
    return out


ROWS = "#pragma optiml launch {} grid(cdiv(rows, 128)) block(128)\n"
TILES = "#pragma optiml launch {} grid(cdiv(cols, 16), cdiv(rows, 16)) block(16, 16)\n"
LINE = "#pragma optiml launch {} grid(cdiv(n, {})) block({})\n"
WIDE = {"rows": 16384, "cols": 1024}
SQUARE = {"rows": 3072, "cols": 3072}
FEW = {"rows": 96, "cols": 130}
LITTLE = {"rows": 2048, "cols": 256}

WORKLOADS: dict[str, Workload] = {
    "gemv_thread_per_row": Workload(
        ROWS.format("gemv")
        + """\
__global__ void gemv(const float* a, const float* x, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float sum = 0.0f;
        for (int j = 0; j < cols; ++j) {
            sum += a[row * cols + j] * x[j];
        }
        out[row] = sum;
    }
}
""",
        lambda a, x: a @ x, matrix_vector, WIDE, FEW, LITTLE,
    ),
    "row_norms": Workload(
        ROWS.format("norms")
        + """\
__global__ void norms(const float* a, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float sum = 0.0f;
        for (int j = 0; j < cols; ++j) {
            float v = a[row * cols + j];
            sum += v * v;
        }
        out[row] = sqrtf(sum);
    }
}
""",
        lambda a: np.sqrt((a * a).sum(axis=1)), matrix, WIDE, FEW, LITTLE,
    ),
    "row_max": Workload(
        ROWS.format("largest")
        + """\
__global__ void largest(const float* a, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float top = -INFINITY;
        for (int j = 0; j < cols; ++j) {
            top = fmaxf(top, a[row * cols + j]);
        }
        out[row] = top;
    }
}
""",
        lambda a: a.max(axis=1), matrix, WIDE, FEW, LITTLE,
    ),
    "log_sum_exp": Workload(
        ROWS.format("lse")
        + """\
__global__ void lse(const float* a, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float top = -INFINITY;
        for (int j = 0; j < cols; ++j) {
            top = fmaxf(top, a[row * cols + j]);
        }
        float sum = 0.0f;
        for (int j = 0; j < cols; ++j) {
            sum += expf(a[row * cols + j] - top);
        }
        out[row] = top + logf(sum);
    }
}
""",
        lambda a: a.max(axis=1) + np.log(np.exp(a - a.max(axis=1, keepdims=True)).sum(axis=1)),
        matrix, WIDE, FEW, LITTLE,
    ),
    "centre_rows": Workload(
        ROWS.format("centre")
        + """\
__global__ void centre(const float* a, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float mean = 0.0f;
        for (int j = 0; j < cols; ++j) {
            mean += a[row * cols + j];
        }
        mean /= cols;
        for (int j = 0; j < cols; ++j) {
            out[row * cols + j] = a[row * cols + j] - mean;
        }
    }
}
""",
        lambda a: a - a.mean(axis=1, keepdims=True), matrix, WIDE, FEW, LITTLE,
    ),
    "transpose_scaled": Workload(
        TILES.format("turned")
        + """\
__global__ void turned(const float* a, float* out, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) {
        out[col * rows + row] = 2.0f * a[row * cols + col];
    }
}
""",
        lambda a: 2 * a.T, matrix, SQUARE, FEW, LITTLE,
    ),
    "add_with_x_along_rows": Workload(
        "#pragma optiml launch add grid(cdiv(rows, 16), cdiv(cols, 16)) block(16, 16)\n"
        """\
__global__ void add(const float* a, const float* b, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) {
        out[row * cols + col] = a[row * cols + col] + b[row * cols + col];
    }
}
""",
        lambda a, b: a + b, two_matrices, SQUARE, FEW, LITTLE,
    ),
    "heat_with_x_along_rows": Workload(
        "#pragma optiml launch heat grid(cdiv(rows, 16), cdiv(cols, 16)) block(16, 16)\n"
        """\
__global__ void heat(const float* a, float* out, int rows, int cols) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= rows || j >= cols) return;
    float here = a[i * cols + j];
    if (i > 0 && j > 0 && i < rows - 1 && j < cols - 1) {
        float sum = a[i * cols + j + 1] + a[i * cols + j - 1]
                  + a[(i + 1) * cols + j] + a[(i - 1) * cols + j];
        here = here + 0.1f * (sum - 4.0f * here);
    }
    out[i * cols + j] = here;
}
""",
        cooled, matrix, SQUARE, FEW, LITTLE,
    ),
    "matmul_with_x_along_rows": Workload(
        "#pragma optiml launch mm grid(cdiv(n, 16), cdiv(n, 16)) block(16, 16)\n"
        """\
__global__ void mm(const float* a, const float* b, float* c, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < n && col < n) {
        float sum = 0.0f;
        for (int k = 0; k < n; ++k) {
            sum += a[row * n + k] * b[k * n + col];
        }
        c[row * n + col] = sum;
    }
}
""",
        lambda a, b: a @ b, product, {"n": 1024}, {"n": 70}, {"n": 160},
    ),
    "matmul_transposed_b": Workload(
        "#pragma optiml launch mm grid(cdiv(n, 16), cdiv(n, 16)) block(16, 16)\n"
        """\
__global__ void mm(const float* a, const float* b, float* c, int n) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < n && col < n) {
        float sum = 0.0f;
        for (int k = 0; k < n; ++k) {
            sum += a[row * n + k] * b[col * n + k];
        }
        c[row * n + col] = sum;
    }
}
""",
        lambda a, b: a @ b.T, product, {"n": 1024}, {"n": 70}, {"n": 160},
    ),
    "gram": Workload(
        "#pragma optiml launch gram grid(cdiv(cols, 16), cdiv(cols, 16)) block(16, 16)\n"
        """\
__global__ void gram(const float* a, float* out, int rows, int cols) {
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < cols && j < cols) {
        float sum = 0.0f;
        for (int r = 0; r < rows; ++r) {
            sum += a[r * cols + i] * a[r * cols + j];
        }
        out[i * cols + j] = sum;
    }
}
""",
        lambda a: a.T @ a, matrix, {"rows": 2048, "cols": 1024}, {"rows": 96, "cols": 70},
        {"rows": 64, "cols": 96},
    ),
    "pairwise_distances": Workload(
        "#pragma optiml launch pairs grid(cdiv(m, 32), cdiv(n, 8)) block(32, 8)\n"
        """\
__global__ void pairs(const float* p, const float* q, float* out, int n, int m, int d) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) {
        float sum = 0.0f;
        for (int k = 0; k < d; ++k) {
            float t = p[i * d + k] - q[j * d + k];
            sum += t * t;
        }
        out[i * m + j] = sum;
    }
}
""",
        distances, points,
        {"n": 3072, "m": 3072, "d": 64}, {"n": 66, "m": 90, "d": 24}, {"n": 64, "m": 96, "d": 32},
    ),
    "gelu_in_double": Workload(
        LINE.format("gelu", 256, 256)
        + """\
__global__ void gelu(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i];
        out[i] = 0.5 * v * (1.0 + tanhf(0.7978845608 * (v + 0.044715 * v * v * v)));
    }
}
""",
        gelu, signal, {"n": 1 << 23}, {"n": 3000}, {"n": 1 << 19},
    ),
    "option_in_double": Workload(
        LINE.format("option", 256, 256)
        + """\
__global__ void option(const float* spot, const float* strike, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float d = logf(spot[i] / strike[i]) / (0.3 * sqrtf(2.0)) + 0.5 * 0.3 * sqrtf(2.0);
        float held = spot[i] / (1.0 + expf(-1.702 * d));
        out[i] = held + 0.5 * strike[i] * expf(-0.04);
    }
}
""",
        payoff, prices, {"n": 1 << 23}, {"n": 3000}, {"n": 1 << 19},
    ),
    "potential": Workload(
        LINE.format("potential", 64, 64)
        + """\
__global__ void potential(const float* x, const float* y, const float* z, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float sum = 0.0f;
        for (int j = 0; j < n; ++j) {
            float dx = x[i] - x[j];
            float dy = y[i] - y[j];
            float dz = z[i] - z[j];
            sum += 1.0 / sqrtf(dx * dx + dy * dy + dz * dz + 0.01);
        }
        out[i] = sum;
    }
}
""",
        potential, bodies, {"n": 8192}, {"n": 300}, {"n": 1024},
    ),
    "convolution_33_taps": Workload(
        LINE.format("convolve", 128, 128)
        + """\
__global__ void convolve(const float* x, const float* w, float* out, int n, int taps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float sum = 0.0f;
        for (int k = 0; k < taps; ++k) {
            sum += x[i + k] * w[k];
        }
        out[i] = sum;
    }
}
""",
        convolved, filtered, {"n": 1 << 23, "taps": 33}, {"n": 3000, "taps": 17},
        {"n": 1 << 17, "taps": 33},
    ),
    "axpy_in_blocks_of_32": Workload(
        LINE.format("axpy", 32, 32)
        + """\
__global__ void axpy(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = 3.0f * x[i] + 1.0f;
    }
}
""",
        lambda x: 3 * x + 1, signal, {"n": 1 << 23}, {"n": 3000}, {"n": 1 << 20},
    ),
    "distances_of_particles": Workload(
        LINE.format("radius", 96, 96)
        + """\
__global__ void radius(const float* p, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float x = p[i * 4], y = p[i * 4 + 1], z = p[i * 4 + 2];
        out[i] = sqrtf(x * x + y * y + z * z);
    }
}
""",
        lambda p: np.sqrt((p[:, :3] ** 2).sum(axis=1)), particles, {"n": 1 << 22}, {"n": 3000},
        {"n": 1 << 19},
    ),
    "many_small_products": Workload(
        "#pragma optiml launch products grid(cdiv(batch * d, 256)) block(256)\n"
        """\
__global__ void products(const float* a, const float* x, float* out, int batch, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < batch * d) {
        float sum = 0.0f;
        for (int k = 0; k < d; ++k) {
            sum += a[i * d + k] * x[i / d * d + k];
        }
        out[i] = sum;
    }
}
""",
        lambda a, x: np.einsum("bij,bj->bi", a, x), batches, {"batch": 16384, "d": 32},
        {"batch": 33, "d": 24}, {"batch": 64, "d": 32},
    ),
    "polynomial_of_degree_64": Workload(
        LINE.format("horner", 256, 256)
        + """\
__global__ void horner(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i], sum = 0.0f;
        for (int k = 0; k < 64; ++k) {
            sum = sum * v + (k % 2 ? 1.0f / (k + 1) : -0.5f);
        }
        out[i] = sum;
    }
}
""",
        horner, signal, {"n": 1 << 21}, {"n": 3000}, {"n": 1 << 18},
    ),
    "column_sums": Workload(
        "#pragma optiml launch sums grid(cdiv(cols, 256)) block(256)\n"
        """\
__global__ void sums(const float* a, float* out, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col < cols) {
        float sum = 0.0f;
        for (int row = 0; row < rows; ++row) {
            sum += a[row * cols + col];
        }
        out[col] = sum;
    }
}
""",
        lambda a: a.sum(axis=0), matrix, {"rows": 2048, "cols": 8192}, FEW,
        {"rows": 64, "cols": 512},
    ),
}  # fmt: skip

# Of the sizes: some references are too slow to be counted at the large ones.
FLOPS: dict[str, Callable[..., int]] = {
    "gemv_thread_per_row": lambda rows, cols: 2 * rows * cols,
    "row_norms": lambda rows, cols: 2 * rows * cols,
    "row_max": lambda rows, cols: rows * cols,
    "log_sum_exp": lambda rows, cols: 4 * rows * cols,
    "centre_rows": lambda rows, cols: 2 * rows * cols,
    "transpose_scaled": lambda rows, cols: rows * cols,
    "add_with_x_along_rows": lambda rows, cols: rows * cols,
    "heat_with_x_along_rows": lambda rows, cols: 6 * rows * cols,
    "matmul_with_x_along_rows": lambda n: 2 * n**3,
    "matmul_transposed_b": lambda n: 2 * n**3,
    "gram": lambda rows, cols: 2 * rows * cols**2,
    "pairwise_distances": lambda n, m, d: 3 * n * m * d,
    "gelu_in_double": lambda n: 9 * n,
    "option_in_double": lambda n: 12 * n,
    "potential": lambda n: 10 * n**2,
    "convolution_33_taps": lambda n, taps: 2 * n * taps,
    "axpy_in_blocks_of_32": lambda n: 2 * n,
    "distances_of_particles": lambda n: 6 * n,
    "many_small_products": lambda batch, d: 2 * batch * d * d,
    "polynomial_of_degree_64": lambda n: 128 * n,
    "column_sums": lambda rows, cols: rows * cols,
}

# Known kernels beside them; the tools' pairs in the tests are others.
KNOWN: dict[str, tuple[dict[str, int], dict[str, int]]] = {
    "row_sum_naive": ({"rows": 16384, "cols": 1024}, {"rows": 256, "cols": 64}),
    "softmax": ({"rows": 4096, "cols": 2000}, {"rows": 64, "cols": 200}),
    "histogram": ({"n": 1 << 23}, {"n": 1 << 14}),
}
NAMES = (*WORKLOADS, *KNOWN)


def task(name: str, *, emulated: bool) -> Task:
    """The task of that name at the sizes for a device."""
    if name in WORKLOADS:
        return WORKLOADS[name].task(name, emulated=emulated)
    large, small = KNOWN[name]
    return known_task(name, **(small if emulated else large))
