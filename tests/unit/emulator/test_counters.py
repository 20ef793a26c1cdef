"""Counters whose values follow from the hardware's rules by hand."""

import numpy as np
import pytest

SOURCE = r"""extern "C" {
__global__ void transpose(const float* a, float* out, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  out[x * n + y] = a[y * n + x];
}
__global__ void strided(const float* a, float* out, int stride, int offset) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = a[i * stride + offset];
}
__global__ void column32(float* out) {
  __shared__ float t[32][32];
  t[threadIdx.y][threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.y * 32 + threadIdx.x] = t[threadIdx.x][threadIdx.y];
}
__global__ void column33(float* out) {
  __shared__ float t[32][33];
  t[threadIdx.y][threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.y * 32 + threadIdx.x] = t[threadIdx.x][threadIdx.y];
}
__global__ void wide(float4* io, double* d) {
  __shared__ float4 four[64];
  __shared__ double two[64];
  four[threadIdx.x] = io[threadIdx.x];
  two[threadIdx.x] = d[threadIdx.x];
  __syncthreads();
  io[threadIdx.x] = four[threadIdx.x ^ 1];
  d[threadIdx.x] = two[threadIdx.x ^ 1];
}
__global__ void flops(float* a, double* d, int n) {
  int i = threadIdx.x;
  a[i] = fmaf(a[i], a[i], 1.0f) * a[i];
  if (i < n) d[i] = d[i] + 2.0;
}
__global__ void histogram(unsigned* out) {
  __shared__ unsigned bins[32];
  atomicAdd(&bins[threadIdx.x & 3], 1);
  out[threadIdx.x] = 0;
  atomicAdd(&out[0], 1);
}
__global__ void depot(int* out, int k) {
  int a[8];
  for (int i = 0; i < 8; i++) a[i] = i * k;
  out[threadIdx.x] = a[k & 7];
}
}"""


def line_of(text):
    return 1 + SOURCE[: SOURCE.index(text)].count("\n")


def of(counters, space, access, text=None):
    """The only memory instruction that fits."""
    (found,) = [
        m
        for m in counters.memory
        if (m.space, m.access) == (space, access) and (text is None or m.line == line_of(text))
    ]
    return found


def test_naive_transpose_has_4_sectors_per_load_and_32_per_store(run):
    a, out = np.ones((64, 64), np.float32), np.zeros((64, 64), np.float32)
    counters = run(SOURCE, "transpose", (2, 2), (32, 32), a, out, np.int32(64)).counters
    load, store = of(counters, "global", "load"), of(counters, "global", "store")
    assert (load.requests, load.sectors, load.ideal, load.lanes) == (128, 512, 512, 4096)
    assert (store.requests, store.sectors, store.ideal) == (128, 128 * 32, 512)
    assert load.line == store.line == line_of("out[x * n + y]")
    assert counters.read_sectors_unique == counters.write_sectors_unique == 512
    assert counters.read_sectors_per_block == 512


@pytest.mark.parametrize(
    ("stride", "offset", "sectors", "lines"),
    [(1, 0, 4, 1), (2, 0, 8, 2), (1, 1, 5, 2), (0, 3, 1, 1), (8, 0, 32, 8)],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_sectors_and_lines_of_strided_loads(run, stride, offset, sectors, lines, threads):
    a, out = np.ones(2100, np.float32), np.zeros(256, np.float32)
    arguments = (a, out, np.int32(stride), np.int32(offset))
    counters = run(SOURCE, "strided", 4, 64, *arguments, threads=threads).counters
    load = of(counters, "global", "load")
    assert (load.requests, load.sectors, load.lines) == (8, 8 * sectors, 8 * lines)
    assert load.ideal == min(8 * sectors, 32)
    touched = {(4 * (i * stride + offset)) // 32 for i in range(256)}
    assert counters.read_sectors_unique == len(touched)
    per_block = [
        {(4 * (i * stride + offset)) // 32 for i in range(b, b + 64)} for b in range(0, 256, 64)
    ]
    assert counters.read_sectors_per_block == sum(map(len, per_block))
    assert counters.write_sectors_unique == 32


@pytest.mark.parametrize(("kernel", "wavefronts"), [("column32", 32), ("column33", 1)])
def test_bank_conflicts(run, kernel, wavefronts):
    out = np.zeros((32, 32), np.float32)
    counters = run(SOURCE, kernel, 1, (32, 32), out).counters
    load, store = of(counters, "shared", "load"), of(counters, "shared", "store")
    assert (load.requests, load.wavefronts, load.ideal) == (32, 32 * wavefronts, 32)
    assert store.wavefronts == 32
    assert counters.barriers == 32
    np.testing.assert_array_equal(out, np.arange(32)[:, None] + np.zeros((32, 32)))


def test_wide_shared_accesses_go_in_phases(run):
    io, d = np.arange(256, dtype=np.float32), np.arange(64.0)
    counters = run(SOURCE, "wide", 1, 64, io, d).counters
    by_width = {(m.access, m.width): m for m in counters.memory if m.space == "shared"}
    for access in ("load", "store"):
        assert by_width[access, 16].wavefronts == by_width[access, 16].ideal == 2 * 4
        assert by_width[access, 8].wavefronts == by_width[access, 8].ideal == 2 * 2
    quad = next(m for m in counters.memory if m.space == "global" and m.width == 16)
    assert (quad.requests, quad.sectors, quad.ideal) == (2, 32, 32)
    np.testing.assert_array_equal(d, np.arange(64) ^ 1)


def test_instructions_and_flops(run):
    a, d = np.ones(64, np.float32), np.ones(64)
    counters = run(SOURCE, "flops", 3, 64, a, d, np.int32(40), threads=1).counters
    assert counters.flops == {"f32": 3 * 64 * 3, "f64": 3 * 40}
    assert counters.by_class["fp32"] == 3 * 2 * 2
    assert counters.warp_instructions == sum(counters.by_class.values())
    assert counters.warp_instructions == sum(x.warp_instructions for x in counters.lines)
    assert counters.thread_instructions == sum(x.thread_instructions for x in counters.lines)
    assert counters.thread_instructions < 32 * counters.warp_instructions
    guarded = next(m for m in counters.memory if m.width == 8 and m.access == "load")
    assert (guarded.requests, guarded.lanes) == (6, 120)
    assert of(counters, "global", "store", "d[i] + 2.0").sectors == 3 * 10
    assert {x.line for x in counters.lines} >= {line_of("fmaf("), line_of("d[i] + 2.0")}


def test_atomics_count_contention(run):
    out = np.zeros(32, np.uint32)
    counters = run(SOURCE, "histogram", 1, 32, out).counters
    shared, global_ = (of(counters, space, "atomic") for space in ("shared", "global"))
    # 8 lanes at each of 4 addresses in as many banks
    assert (shared.requests, shared.wavefronts, shared.ideal, shared.contention) == (1, 1, 1, 7)
    assert (global_.requests, global_.sectors, global_.lanes) == (1, 1, 32)
    assert global_.contention == 31
    assert all(m.contention == 0 for m in counters.memory if m.access != "atomic")
    assert out[0] == 32


def test_local_memory_is_interleaved(run):
    out = np.zeros(32, np.int32)
    counters = run(SOURCE, "depot", 1, 32, out, np.int32(5)).counters
    local = [m for m in counters.memory if m.space == "local"]
    assert local
    assert all(m.sectors == m.requests * m.width for m in local)  # width / 4 words of 4 sectors
    assert (out == 25).all()


def test_without_counting_there_are_none(run):
    a, d = np.ones(64, np.float32), np.ones(64)
    outcome = run(SOURCE, "flops", 1, 64, a, d, np.int32(0), count=False)
    assert outcome.fault is None
    assert outcome.counters is None
