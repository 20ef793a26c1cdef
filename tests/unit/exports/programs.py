"""Programs that use every directive, and their plans: the oracle of every export."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from optiml_magic import binding
from optiml_magic.chips import chip
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.compilers.options import options_of
from optiml_magic.exports import Exportable
from optiml_magic.kernels.primitives.axes import exchanged
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.dispatched import dispatched
from optiml_magic.model.build import Build
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.task import Task
from optiml_magic.problem import prepare
from optiml_magic.settings import resolve
from optiml_magic.source.program import parse_program
from optiml_magic.testing.kernels import NAMES, known_task

H200 = chip("h200")

#: Two passes over scratch, a template instance, positional arguments, sm_count, a tuned name.
TWO_PASSES = """\
#include <cstdint>
#pragma optiml tune PARTS in {64, 128} = 64
#pragma optiml require n % 4 == 0 && n > 0
#pragma optiml scratch part f4[min(cdiv(n, PARTS), sm_count * 2)]
#pragma optiml zero(part)
#pragma optiml launch partial<float, PARTS> grid(min(cdiv(n, PARTS), sm_count * 2)) block(PARTS) shared(PARTS * sizeof(float)) args(x, part, n)
#pragma optiml launch total grid(1) block(32) args(part, out, min(cdiv(n, PARTS), 2 * sm_count), n * 3)
struct Pair { float a, b; float sum() const { return a + b; } };
template <typename T, int N> __global__ void partial(const T* __restrict__ x, T* part, int n) {
    uint32_t i = blockIdx.x * N + threadIdx.x;
    if (i < n) atomicAdd(&part[blockIdx.x], x[i]);
}
__global__ void total(const float* part, float* out, int parts, long long scale) {
    Pair p = {part[0], 0.0f};
    if (threadIdx.x == 0) { for (int i = 1; i < parts; ++i) p.a += part[i]; out[0] = p.sum() * (scale > 0); }
}
"""

#: Rounds with their buffers swapped, shared memory beyond 48 KB, fills, extents, vector loads.
ROUNDS = """\
#pragma optiml init(out) = 2.5
#pragma optiml repeat(steps) swap(a, b)
#pragma optiml launch ns::smooth grid(shape(a, 0), size(a) / shape(a, 0) / 4) block(32, 2) shared(60000)
#pragma optiml repeat(1)
#pragma optiml launch finish grid(cdiv(size(out), 64)) block(64) args(b, out, weight, size(a))
namespace ns {
__global__ void smooth(float4* a, float4* b) { b[blockIdx.x] = a[blockIdx.x]; a[0].x += b[0].x; }
}
__global__ void finish(const float* b, float* out, float weight, unsigned long long all) {
    if (threadIdx.x < all) out[threadIdx.x] += weight * b[threadIdx.x] + INFINITY * 0;
}
"""

#: An output that starts from an array, a name that Python reserves, a size that follows a shape.
STARTED = """\
#pragma optiml init(sum) = lambda
#pragma optiml size n = shape(in, 0)
#pragma optiml launch add grid((n + 127) / 128) block(128)
__global__ void add(const int* in, int* sum, unsigned char low, int n) {
    int status = blockIdx.x * 128 + threadIdx.x;
    if (status < n) sum[status] += in[status] & low;
}
"""

#: Variables: filled by name, with values of their own, counted up, in namespaces, const.
TABLES = """\
#define R 2
namespace cfg {
constexpr int FIRST = 3;
__constant__ float coef[2 * R + 1];
__device__ int runs{FIRST};
}
__constant__ int bias;
__device__ unsigned arrived;
static __device__ float total[2] = {0.5f, 0.25f};
__device__ const float scale[] = {2.0f};
#pragma optiml launch convolve grid(cdiv(n, 128)) block(128)
#pragma optiml launch finish grid(1) block(32) args(out, n, taps)
__global__ void convolve(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) atomicAdd(&arrived, 1u);
    if (i >= n) return;
    float sum = bias;
    for (int k = -R; k <= R; ++k)
        if (i + k >= 0 && i + k < n) sum += scale[0] * cfg::coef[k + R] * x[i + k];
    out[i] = sum;
}
__global__ void finish(float* out, int n, int taps) {
    if (threadIdx.x != 0) return;
    total[1] += 1;
    cfg::runs += taps;
    out[n] = arrived;
    out[n + 1] = total[0] + total[1];
    out[n + 2] = cfg::runs;
}
"""

#: Headers that include others, macros from outside, bfloat16, a struct as a table.
HEADERS = """\
#include <cuda_bf16.h>
#include "util.cuh"
#ifdef EXTRA
#include "deep/more.cuh"
#endif
#include "deep/more.cuh"
struct Affine { float scale; int shift; };
__constant__ Affine affine;
#pragma optiml tune TILE in {32, 64} = 64
#pragma optiml launch move grid(cdiv(n, TILE * TWO)) block(TILE * TWO)
__global__ void move(const __nv_bfloat16* x, __nv_bfloat16* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = more::half_of(__uint_as_float(__bfloat16_as_ushort(x[i]) << 16)) * affine.scale + affine.shift;
    out[i] = __ushort_as_bfloat16(__float_as_uint(v) >> 16);
}
"""

#: One of three launches, whose extents are out of range where it does not run; one of two in rounds.
DISPATCHED = """\
#pragma optiml tune LEAST in {2, 4} = 4
#pragma optiml launch wide grid(cols / 4) block(64) args(a, out, rows * cols / 4, weight) if (cols % 4 == 0 && cols / 4 >= LEAST)
#pragma optiml launch pairs grid(cdiv(rows, cols / 2)) block(1024 / min(32, cols)) args(a, out, rows * (cols / 2), weight, cols / 2) else if (cols % 2 == 0 && steps != 3)
#pragma optiml launch plain grid(cdiv(rows * cols, 32)) block(32) args(a, out, rows * cols, weight) else
#pragma optiml repeat(steps) swap(out, back)
#pragma optiml launch even grid(rows / 2, 2) block(32) shared(cols * 4) args(out, back, cols) if (rows % 2 == 0)
#pragma optiml launch step grid(rows) block(32) args(out, back, cols) else
__global__ void wide(const float4* a, float4* out, int n, float weight) {
    for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += 64 * gridDim.x)
        out[i] = {weight * a[i].x, weight * a[i].y, weight * a[i].z, weight * a[i].w};
}
__global__ void pairs(const float2* a, float2* out, int n, float weight, unsigned char half) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        out[i] = {weight * a[i].x, weight * a[i].y};
}
__global__ void plain(const float* a, float* out, int n, float weight) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < n) out[i] = weight * a[i];
}
__global__ void even(const float* from, float* to, int cols) {
    long long row = blockIdx.x * 2 + blockIdx.y;
    for (int i = threadIdx.x; i < cols; i += 32) to[row * cols + i] = from[row * cols + i] + 1;
}
__global__ void step(const float* from, float* to, int cols) {
    for (int i = threadIdx.x; i < cols; i += 32) to[blockIdx.x * cols + i] = from[blockIdx.x * cols + i] + 1;
}
"""
#: What a rule makes a dispatch of.
TURNED = """\
#pragma optiml launch scale grid(cdiv(rows, 16), cdiv(cols, 4)) block(16, 4)
__global__ void scale(const float* a, float* out, int rows, int cols, float weight) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) out[row * cols + col] = weight * a[row * cols + col];
}
"""


def _ruled() -> str:
    """What a step that turns the axes makes, with a condition that small sizes break as well."""
    before = parse_program(TURNED)
    made = exchanged(Kernel(before, before.launches[0]), "x", "y")
    assert isinstance(made, Kernel)
    narrow = made.program.with_directive("#pragma optiml require rows % 3 != 1")
    return dispatched(narrow, before, before).text


UTIL = '#pragma once\n#include "deep/more.cuh"\ntypedef float real;\n'
MORE = """\
#pragma once
#include "util.cuh"
namespace more { __device__ inline float half_of(float v) { return v / TWO; } }
"""
AFFINE = np.dtype([("scale", "f4"), ("shift", "i4")])


def _plain(n: int) -> np.ndarray[Any, Any]:
    return np.linspace(-1, 1, n, dtype=np.float32)


EXTRA = {
    "two passes": Task(TWO_PASSES, inputs=lambda rng, n: {"x": _plain(n), "n": n}, sizes={"n": 1000},
                       outputs={"out": "f4[1]"}, name="two passes"),
    "rounds": Task(ROUNDS, inputs=lambda rng, rows, cols, steps: {
        "a": _plain(rows * cols).reshape(rows, cols), "b": _plain(rows * cols).reshape(rows, cols),
        "steps": steps, "weight": np.float32(0.25)}, sizes={"rows": 6, "cols": 16, "steps": 3},
        outputs={"out": "f4[size(a)]"}, inout=("a", "b"), name="rounds"),
    "started": Task(STARTED, inputs=lambda rng, n: {
        "in": np.arange(n, dtype=np.int32), "lambda": np.ones(n, np.int32), "low": 255},
        sizes={"n": 300}, outputs={"sum": "i4[n]"}, name="started"),
    "tables": Task(TABLES, inputs=lambda rng, n: {
        "x": _plain(n), "coef": np.array([1, 2, 4, 8, 0.1], np.float32), "bias": 3, "taps": 5},
        sizes={"n": 1000}, outputs={"out": "f4[n + 3]"}, name="tables"),
    "dispatched": Task(DISPATCHED, inputs=lambda rng, rows, cols, steps: {
        "a": _plain(rows * cols).reshape(rows, cols), "rows": rows, "cols": cols, "steps": steps,
        "weight": np.float32(0.5)}, sizes={"rows": 6, "cols": 20, "steps": 3},
        outputs={"out": "f4[rows, cols]", "back": "f4[rows, cols]"}, name="dispatched"),
    "ruled": Task(_ruled(), inputs=lambda rng, rows, cols: {
        "a": _plain(rows * cols).reshape(rows, cols), "rows": rows, "cols": cols,
        "weight": np.float32(0.5)}, sizes={"rows": 6, "cols": 20},
        outputs={"out": "f4[rows, cols]"}, name="ruled"),
    "headers": Task(HEADERS, inputs=lambda rng, n: {
        "x": np.arange(n).astype(ml_dtypes.bfloat16), "affine": np.array([(3, 1)], AFFINE)},
        sizes={"n": 200}, outputs={"out": "bfloat16[n]"}, name="headers",
        headers={"util.cuh": UTIL, "deep/more.cuh": MORE}, defines={"TWO": "2", "EXTRA": ""}),
}  # fmt: skip

#: Small sizes, all different, so that every scalar follows from a shape.
SIZES = {
    "saxpy": {"n": 1000}, "transpose_naive": {"rows": 40, "cols": 70},
    "transpose_tiled": {"rows": 40, "cols": 70}, "matmul_naive": {"m": 20, "n": 30, "k": 40},
    "matmul_tiled": {"m": 20, "n": 30, "k": 40}, "row_sum": {"rows": 40, "cols": 70},
    "row_sum_naive": {"rows": 40, "cols": 70}, "histogram": {"n": 1000},
    "softmax": {"rows": 40, "cols": 70},
    "two passes": {"n": 1000}, "rounds": {"rows": 6, "cols": 16, "steps": 3}, "started": {"n": 300},
    "tables": {"n": 1000}, "headers": {"n": 200}, "dispatched": {"rows": 6, "cols": 20, "steps": 3},
    "ruled": {"rows": 6, "cols": 20},
}  # fmt: skip
ALL = (*NAMES, *EXTRA)


@dataclass(frozen=True)
class Drawn:
    """A program at some sizes: what it is given and what it must do."""

    values: Mapping[str, Any]
    shapes: Mapping[str, tuple[int, ...]]
    plan: LaunchPlan


def task_of(name: str, **sizes: int) -> Task:
    task = EXTRA.get(name) or known_task(name)
    return replace(task, reference=None, sizes={**SIZES[name], **sizes}, outputs=_outputs(task))


def _outputs(task: Task) -> dict[str, str]:
    known = {"saxpy": "f4[n]", "softmax": "f4[rows, cols]", "histogram": "i4[256]"}
    for prefix, spec in {
        "transpose": "f4[cols, rows]",
        "matmul": "f4[m, n]",
        "row_sum": "f4[rows]",
    }.items():
        if task.name.startswith(prefix):
            known[task.name] = spec
    (name,) = {"histogram": ["bins"], "matmul_naive": ["c"], "matmul_tiled": ["c"]}.get(
        task.name, ["out"]
    )
    return dict(task.outputs) or {name: known[task.name]}


@lru_cache(maxsize=32)
def exportable(name: str) -> Exportable:
    """The program with the shapes of ``SIZES``."""
    problem = prepare(with_scalars(task_of(name)), seeds=1)
    first = problem.instances[0]
    outputs = problem.task.outputs if name in EXTRA or name == "histogram" else {}
    return Exportable(
        problem.name, problem.program, problem.interface, first.shapes, first.values, outputs,
        ("9x faster, estimated.",), options_of(problem.task, resolve({})),
    )  # fmt: skip


def with_scalars(task: Task) -> Task:
    """The sizes are inputs as well, as they are in a notebook."""
    draw = task.inputs
    assert callable(draw)
    return replace(task, inputs=lambda rng, **sizes: {**_used(task, sizes), **draw(rng, **sizes)})


def _used(task: Task, sizes: Mapping[str, int]) -> dict[str, int]:
    return {} if task.name in ("rounds", "started", "dispatched", "ruled") else dict(sizes)


@lru_cache(maxsize=32)
def build(name: str) -> Build:
    program = exportable(name).program
    found = NvrtcCompiler().compile(
        program.compiled_text(),
        binding.name_expressions(program, exportable(name).interface),
        H200,
        exportable(name).options,
    )
    assert isinstance(found, Build), found
    return found


def drawn(name: str, **sizes: int) -> Drawn:
    """The oracle: what ``binding.plan`` makes of these sizes. Raises UsageError where it refuses."""
    known = exportable(name)
    problem = prepare(with_scalars(task_of(name, **sizes)), seeds=1)
    first = problem.instances[0]
    plan = binding.plan(
        known.program, known.interface, build(name), first.values, first.shapes, H200
    )
    return Drawn(first.values, first.shapes, plan)
