"""Shapes of divergence, blocks and grids of every form, and races that must show."""

import numpy as np
import pytest

from .conftest import ptx_of

SOURCE = r"""extern "C" {
__global__ void nested(int* out, const int* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i], r = 0;
  if (v & 1) { if (v & 2) r += 1; else { r += 2; if (v & 4) r += 8; } } else if (v & 8) r = 16;
  else { r = 32; if (v % 3 == 0) r += v; }
  out[i] = r;
}
__global__ void loops(int* out, const int* in) {
  int i = threadIdx.x, v = in[i], r = 0;
  for (int k = 0; k < 20; k++) {
    if (k == v) break;
    if ((k ^ v) & 1) continue;
    for (int j = 0; j < v; j++) { if (j * k > 30) break; r += j; if (r > 100) goto done; }
    r += k;
  }
done:
  out[i] = r;
}
__global__ void collatz(int* out, const int* in) {
  int i = threadIdx.x, steps = 0;
  unsigned v = in[i] + 1;
  while (v != 1) { v = v & 1 ? 3 * v + 1 : v / 2; steps++; }
  out[i] = steps;
}
__global__ void choose(int* out, const int* in) {
  int v = in[threadIdx.x], r;
  switch (v) {
    case 0: r = v + 5; break;
    case 1: r = v * 77; break;
    case 2: r = __popc(v * 123);
    case 3: r = v - 9; break;
    case 4: case 5: r = v << 4; break;
    case 6: return;
    default: r = -1;
  }
  out[threadIdx.x] = r;
}
__global__ void returns(int* out, const int* in) {
  int v = in[threadIdx.x];
  for (int k = 0; k < 10; k++) {
    if (k == v) { out[threadIdx.x] = 100 + k; return; }
    __syncwarp();
  }
  __syncthreads();
  out[threadIdx.x] = 1;
}
__global__ void coordinates(int* out) {
  int tid = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  int bid = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  int n = blockDim.x * blockDim.y * blockDim.z;
  out[bid * n + tid] = tid + 1000 * bid;
}
__global__ void partial_warps(int* out) {
  __shared__ int s[1024];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x] + __popc(__activemask());
}
__global__ void jump(int* out, const int* in) {
  int v = in[threadIdx.x] & 3, r = 0;
  asm volatile("{ .reg .b32 x; mov.b32 x, %1;\n"
      "T: .branchtargets A, B, C, A;\n brx.idx x, T;\n"
      "A: mov.b32 %0, 10;\n bra D;\n B: mov.b32 %0, 20;\n bra D;\n C: mov.b32 %0, 30;\n D: }"
      : "+r"(r) : "r"(v));
  out[threadIdx.x] = r;
}
}
template <bool second> __device__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float ta[16][16], tb[16][16];
  int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 16 + tx, y = blockIdx.y * 16 + ty;
  float s = 0;
  for (int t = 0; t < n; t += 16) {
    ta[ty][tx] = a[y * n + t + tx];
    tb[ty][tx] = b[(t + ty) * n + x];
    __syncthreads();
    for (int k = 0; k < 16; k++) s += ta[ty][k] * tb[k][tx];
    if (second) __syncthreads();
  }
  c[y * n + x] = s;
}
extern "C" __global__ void racy(const float* a, const float* b, float* c, int n) {
  matmul<false>(a, b, c, n);
}
extern "C" __global__ void clean(const float* a, const float* b, float* c, int n) {
  matmul<true>(a, b, c, n);
}
"""
VALUES = np.random.default_rng(3).integers(0, 12, 96).astype(np.int32)


def nested(v):
    if v & 1:
        return 1 if v & 2 else 2 + (8 if v & 4 else 0)
    return 16 if v & 8 else 32 + (v if v % 3 == 0 else 0)


def loops(v):
    r = 0
    for k in range(20):
        if k == v:
            break
        if (k ^ v) & 1:
            continue
        for j in range(v):
            if j * k > 30:
                break
            r += j
            if r > 100:
                return r
        r += k
    return r


def collatz(v):
    v, steps = v + 1, 0
    while v != 1:
        v, steps = (3 * v + 1 if v & 1 else v // 2), steps + 1
    return steps


def choose(v):
    return {0: 5, 1: 77, 2: -7, 3: -6, 4: 64, 5: 80, 6: -5}.get(v, -1)


def returns(v):
    return 100 + v if v < 10 else 1


def jump(v):
    return [10, 20, 30, 10][v & 3]


@pytest.mark.parametrize("oracle", [nested, loops, collatz, choose, returns, jump])
def test_divergence(run, oracle):
    out = np.full(96, -5, np.int32)
    outcome = run(SOURCE, oracle.__name__, 1, 96, out, VALUES)
    assert outcome.fault is None
    np.testing.assert_array_equal(out, [oracle(int(v)) for v in VALUES])
    assert outcome.counters.thread_instructions < 32 * outcome.counters.warp_instructions


@pytest.mark.parametrize("block", [(7,), (33,), (5, 7), (4, 3, 5), (1, 1, 1), (32, 32)])
@pytest.mark.parametrize("grid", [(3,), (2, 3), (2, 1, 4)])
def test_coordinates(run, grid, block):
    threads, blocks = np.prod(block), np.prod(grid)
    out = np.zeros((blocks, threads), np.int32)
    assert run(SOURCE, "coordinates", grid, block, out).fault is None
    np.testing.assert_array_equal(out, np.arange(threads) + 1000 * np.arange(blocks)[:, None])


@pytest.mark.parametrize("threads", [1, 31, 45, 64, 1000])
def test_partial_warps(run, threads):
    out = np.zeros(threads, np.int32)
    assert run(SOURCE, "partial_warps", 1, threads, out).fault is None
    lanes = [min(32, threads - i // 32 * 32) for i in range(threads)]
    np.testing.assert_array_equal(out, np.arange(threads)[::-1] + lanes)


def test_a_missing_barrier_shows(run):
    a, b = np.random.default_rng(1).random((2, 64, 64), np.float32)
    results = {}
    for kernel in ("clean", "racy"):
        c = np.zeros((64, 64), np.float32)
        assert run(SOURCE, kernel, (4, 4), (16, 16), a, b, c, np.int32(64)).fault is None
        results[kernel] = np.allclose(c, a @ b, rtol=1e-5)
    assert results == {"clean": True, "racy": False}


RETURNS = r"""
extern "C" __global__ void shuffles(const int* in, int* out) {
  int t = threadIdx.x, v = in[t];
  switch (v & 3) {
    case 0: v += 5; break;
    case 1: if (t & 1) { out[t] = v; return; } break;
    case 2: v *= 3; break;
    default: if (t & 2) { out[t] = v; return; } v = -v;
  }
  int first = __ffs(__ballot_sync(~0u, 1)) - 1;
  out[t] = v + __shfl_sync(~0u, v, first);
}
extern "C" __global__ void meets(const int* in, int* out) {
  __shared__ int s[32];
  int t = threadIdx.x, v = in[t];
  s[t] = v;
  if (v & 1) {
    if (v & 2) { out[t] = v; return; }
    v += 100;
  }
  __syncthreads();
  out[t] = v + s[31 - t];
}
"""


@pytest.mark.parametrize("seed", range(3))
def test_lanes_that_return_early_do_not_keep_others_apart(run, seed):
    v = np.random.default_rng(seed).integers(0, 1000, 32).astype(np.int32)
    t, out = np.arange(32), np.zeros(32, np.int32)
    assert run(RETURNS, "shuffles", 1, 32, v, out).fault is None
    kind = v & 3
    gone = (kind == 1) & (t % 2 == 1) | (kind == 3) & (t & 2 != 0)
    w = np.select([kind == 0, kind == 2, kind == 3], [v + 5, v * 3, -v], v)
    np.testing.assert_array_equal(out, np.where(gone, v, w + w[~gone][0]))
    assert run(RETURNS, "meets", 1, 32, v, out).fault is None
    np.testing.assert_array_equal(out, np.where(kind == 3, v, v + 100 * (v & 1) + v[::-1]))


EARLY = r"""
extern "C" __global__ void early(const int* in, int* out, int n) {
  __shared__ int s[64];
  int t = threadIdx.x, v = in[t];
  s[t] = v;
  if (v < n) { out[t] = v; return; }
  __syncthreads();
  out[t] = v + s[t ^ 1];
}
extern "C" __global__ void in_a_loop(const int* in, int* out, int n) {
  __shared__ int s[64];
  int t = threadIdx.x, v = in[t];
  for (int k = 0; k < n; k++) {
    s[t] = v;
    __syncthreads();
    if (v == 9 * k) { out[t] = v; return; }
    v += 8;
  }
  out[t] = v;
}
extern "C" __global__ void in_a_branch_of_others(const int* in, int* out, int n) {
  __shared__ int s[64];
  int t = threadIdx.x, v = in[t];
  s[t] = v;
  if (v >= n && (t & 7) != 0) {
    if ((v & 8) == 0) { out[t] = v; return; }
    v = min(v, v);
  }
  __syncthreads();
  out[t] = v + s[t ^ 1];
}
extern "C" __global__ void in_a_switch(const int* in, int* out, int n) {
  __shared__ int s[64];
  int t = threadIdx.x, v = in[t];
  s[t] = v;
  switch (v & 1) {
    case 1: out[t] = v; return;
    default: v *= 2;
  }
  __syncthreads();
  out[t] = v + s[t ^ 1];
}
extern "C" __global__ void without_end(const int* in, int* out, int n) {
  __shared__ int s[64];
  int t = threadIdx.x, v = in[t];
  for (int k = 0;; k++) {
    s[t] = v;
    __syncthreads();
    if (v <= 9 * k + n) { out[t] = v; return; }
    if (t & k) v += 1;
    v += 7;
    __syncthreads();
  }
}
"""
MISSED = r"""
__device__ void meet() { __syncthreads(); }
extern "C" __global__ void in_a_branch(const int* in, int* out, int n) {
  int t = threadIdx.x, v = in[t];
  if (v >= n) { __syncthreads(); v += 1; }
  out[t] = v;
}
extern "C" __global__ void in_a_helper(const int* in, int* out, int n) {
  int t = threadIdx.x, v = in[t];
  if (v >= n) { meet(); v += 1; }
  out[t] = v;
}
extern "C" __global__ void in_a_lambda(const int* in, int* out, int n) {
  int t = threadIdx.x, v = in[t];
  auto f = [&] { __syncthreads(); v += 1; };
  if (v >= n) f();
  out[t] = v;
}
extern "C" __global__ void behind_a_jump(const int* in, int* out, int n) {
  int t = threadIdx.x, v = in[t];
  if (v < n) goto skip;
  __syncthreads();
  v += 1;
skip:
  out[t] = v;
}
extern "C" __global__ void in_a_condition(const int* in, int* out, int n) {
  int t = threadIdx.x, v = in[t];
  bool b = v >= n && __syncthreads_or(v == 3);
  out[t] = v + b;
}
extern "C" __global__ void in_a_loop_of_no_turn(const int* in, int* out, int n) {
  __shared__ int s[64];
  int t = threadIdx.x, v = in[t];
  for (int i = 0; i < v - n; i++) { s[t] = i; __syncthreads(); v += s[t ^ 1]; break; }
  out[t] = v;
}
"""
SPLIT = np.random.default_rng(0).integers(0, 100, 64).astype(np.int32)


@pytest.mark.parametrize("n", [0, 50, 100])
def test_lanes_that_return_early_may_share_their_last_store_with_those_behind_a_barrier(run, n):
    """The compiler makes one store of both; it is the text that tells of a return."""
    assert ptx_of(EARLY).count("st.global") == 5
    v, out = SPLIT, np.zeros(64, np.int32)
    assert run(EARLY, "early", 1, 64, v, out, np.int32(n)).fault is None
    np.testing.assert_array_equal(out, np.where(v < n, v, v + v[np.arange(64) ^ 1]))
    assert run(EARLY, "in_a_loop", 1, 64, v, out, np.int32(n)).fault is None
    turns = np.where(v < n, v, n)  # in as many turns 9 * k has come up with v
    np.testing.assert_array_equal(out, v + 8 * turns)
    assert run(EARLY, "in_a_branch_of_others", 1, 64, v, out, np.int32(n)).fault is None
    t = np.arange(64)
    chosen = (v >= n) & (t & 7 != 0)
    np.testing.assert_array_equal(out, np.where(chosen & (v & 8 == 0), v, v + v[t ^ 1]))
    assert run(EARLY, "in_a_switch", 1, 64, v, out, np.int32(n)).fault is None
    np.testing.assert_array_equal(out, np.where(v & 1, v, 2 * v + v[np.arange(64) ^ 1]))
    assert run(EARLY, "without_end", 1, 64, v, out, np.int32(n)).fault is None
    v, gone = v.copy(), np.zeros(64, bool)
    for k in range(120):
        gone |= v <= 9 * k + n
        v += np.where(gone, 0, 7 + (np.arange(64) & k != 0))
    assert gone.all()
    np.testing.assert_array_equal(out, v)


@pytest.mark.parametrize(
    "kernel",
    ["in_a_branch", "in_a_helper", "in_a_lambda", "behind_a_jump", "in_a_condition",
     "in_a_loop_of_no_turn"],
)  # fmt: skip
def test_nobody_may_go_around_a_barrier(run, kernel):
    out = np.zeros(64, np.int32)
    fault = run(MISSED, kernel, 1, 64, SPLIT, out, np.int32(50)).fault
    assert fault is not None
    assert fault.kind == "barrier_divergence"
    if kernel != "in_a_loop_of_no_turn":  # which takes every lane into a turn
        assert run(MISSED, kernel, 1, 64, SPLIT, out, np.int32(0)).fault is None
