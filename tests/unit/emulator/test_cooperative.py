"""What headers of CUDA make of groups, pipelines, barriers, pointers to functions and printf."""

from __future__ import annotations

import numpy as np
import pytest

from optiml_magic import emulator
from optiml_magic.ptx.faults import UnsupportedPtx
from tests.oracle.machine import Module
from tests.present import SOAK

from .conftest import launch, ptx_of

SOURCE = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/pipeline>
#include <cuda/barrier>
#include <cuda/atomic>
namespace cg = cooperative_groups;
extern "C" {
__global__ void tiles(const int* in, int* out) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  int v = in[threadIdx.x];
  out[threadIdx.x] = cg::reduce(tile, v, cg::plus<int>()) + tile.shfl_xor(v, 3)
                     + tile.meta_group_rank() + cg::inclusive_scan(tile, v);
}
__global__ void labels(const int* in, int* out) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto same = cg::labeled_partition(warp, in[threadIdx.x] % 5);
  auto half = cg::binary_partition(warp, threadIdx.x & 1);
  out[threadIdx.x] = same.size() * 1000 + same.thread_rank() * 10 + half.num_threads();
}
__global__ void once(const int* in, int* out) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  cg::invoke_one(warp, [&] { out[threadIdx.x / 32] = in[5]; });
}
__global__ void copies(const int* in, int* out) {
  __shared__ int s[128];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, s, in, sizeof(s));
  cg::wait(block);
  out[threadIdx.x] = s[127 - threadIdx.x];
}
__global__ void stages(const int* in, int* out) {
  __shared__ int s[2][128];
  auto pipe = cuda::make_pipeline();
  for (int k = 0; k < 2; k++) {
    pipe.producer_acquire();
    cuda::memcpy_async(&s[k][threadIdx.x], in + k * 64 + threadIdx.x, cuda::aligned_size_t<4>(4), pipe);
    pipe.producer_commit();
  }
  cuda::pipeline_consumer_wait_prior<1>(pipe);
  __syncthreads();
  int r = s[0][threadIdx.x ^ 1];
  cuda::pipeline_consumer_wait_prior<0>(pipe);
  __syncthreads();
  out[threadIdx.x] = r * 3 + s[1][threadIdx.x ^ 2];
}
__global__ void shared_pipeline(const int* in, int* out) {
  __shared__ int s[2][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  for (int k = 0; k < 2; k++) {
    pipe.producer_acquire();
    cuda::memcpy_async(block, s[k], in + k, sizeof(int) * 128, pipe);
    pipe.producer_commit();
  }
  int r = 0;
  for (int k = 0; k < 2; k++) {
    pipe.consumer_wait(); r += s[k][threadIdx.x ^ 1]; pipe.consumer_release();
  }
  out[threadIdx.x] = r;
}
__global__ void phases(const int* in, int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ int s[128];
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  int v = in[threadIdx.x];
  for (int k = 0; k < 3; k++) {
    s[threadIdx.x] = v;
    bar.wait(bar.arrive());
    v += s[(threadIdx.x + 33) % 128];
    bar.arrive_and_wait();
  }
  out[threadIdx.x] = v;
}
__global__ void atomics(const int* in, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_device> sum(out[0]);
  sum.fetch_add(in[threadIdx.x]);
  sum.fetch_max(in[threadIdx.x], cuda::memory_order_relaxed);
  cuda::atomic_ref<int, cuda::thread_scope_block> flag(out[1]);
  flag.store(5, cuda::memory_order_release);
  if (flag.load(cuda::memory_order_acquire) == 5) out[2] = 1;
}
__global__ void producer(const int* in, int* out) {
  __shared__ int s[128];
  if (threadIdx.x < 64) {
    s[threadIdx.x] = in[threadIdx.x];
    asm volatile("bar.arrive 1, 128;" ::: "memory");
  } else {
    int number = 1, threads = 2 * 64;
    asm volatile("bar.sync %0, %1;" :: "r"(number), "r"(threads) : "memory");
    out[threadIdx.x] = s[threadIdx.x - 64];
  }
  bool lower = threadIdx.x < 64;
  asm volatile("{ .reg .pred p; setp.ne.s32 p, %0, 0; @p bar.sync 2, 64; }" :: "r"((int)lower));
}
}
typedef int (*function)(int);
__device__ int twice(int x) { return x * 2; }
__device__ int more(int x) { return x + 3; }
__device__ function table[2] = {twice, more};
extern "C" __global__ void pointers(const int* in, int* out) {
  out[threadIdx.x] = table[in[threadIdx.x] & 1](threadIdx.x);
}
struct Shape { __device__ virtual int area(int x) = 0; };
struct Square : Shape { __device__ int area(int x) override { return x * x; } };
struct Line : Shape { __device__ int area(int) override { return 1; } };
extern "C" __global__ void virtuals(const int* in, int* out) {
  Square square; Line line;
  Shape* shape = in[threadIdx.x] & 1 ? (Shape*)&square : (Shape*)&line;
  out[threadIdx.x] = shape->area(threadIdx.x);
}
"""
KERNELS = ["tiles", "labels", "once", "copies", "stages", "shared_pipeline", "phases", "atomics"]
KERNELS += ["producer", "pointers", "virtuals"]
BY_ACTIVE_LANES = {"shared_pipeline", "phases"}  # they ask for the active mask on some chips


@pytest.fixture(scope="module", params=[75, 80, 86, 90] if SOAK else [90])
def ptx(request):
    return ptx_of(SOURCE, f"--gpu-architecture=sm_{request.param}", "-diag-suppress=47")


def test_groups_pipelines_and_pointers(ptx):
    here, oracle = emulator.load(ptx), Module(ptx)
    data = np.random.default_rng(2).integers(0, 1000, 256).astype(np.int32)
    for name in KERNELS:
        got, wanted = (np.zeros(128, np.int32) for _ in range(2))
        run = launch(here, name, 1, 128, data.copy(), got, count=False)
        assert run.fault is None, (name, run.fault)
        if name in BY_ACTIVE_LANES:
            wanted = by_hand(name, data)
        else:
            oracle.launch(name, (1, 1, 1), (128, 1, 1), [data.copy(), wanted])
        np.testing.assert_array_equal(got, wanted, err_msg=name)


def by_hand(name, data):
    i = np.arange(128)
    if name == "shared_pipeline":
        return data[i ^ 1] + data[(i ^ 1) + 1]
    v = data[:128].copy()
    for _ in range(3):
        v = v + v[(i + 33) % 128]
    return v


PRINTS = r"""
#include <cstdio>
extern "C" __global__ void k(float x) {
  if (threadIdx.x < 2)
    printf("block %d thread %3u %s: %6.2f|%-5d|%c %lld %x %%\n", blockIdx.x, threadIdx.x, "says", x * threadIdx.x,
           -7, 'z', 1LL << 40, 255);
  if (blockIdx.x == 1 && threadIdx.x == 40) printf("no arguments\n");
}
"""


def test_printf_comes_back_block_by_block():
    module = emulator.load(ptx_of(PRINTS))
    run = launch(module, "k", 3, 64, np.float32(1.25))
    line = "block {} thread {:3} says: {:6.2f}|-7   |z 1099511627776 ff %\n"
    wanted = []
    for block in range(3):
        wanted += [line.format(block, t, 1.25 * t) for t in range(2)]
        wanted += ["no arguments\n"] * (block == 1)
    assert run.printed == "".join(wanted)


def test_printf_agrees_with_the_oracle():
    ptx = ptx_of(PRINTS)
    run = launch(emulator.load(ptx), "k", 2, 32, np.float32(-3.5))
    printed = Module(ptx).launch("k", (2, 1, 1), (32, 1, 1), [np.float32(-3.5).tobytes()])
    assert sorted(run.printed.splitlines()) == sorted(printed.splitlines())


def test_printf_without_room_says_so():
    source = '#include <cstdio>\nextern "C" __global__ void k() { printf("%d\\n", threadIdx.x); }'
    run = launch(emulator.load(ptx_of(source)), "k", 8, 1024, threads=1)
    assert "more calls of printf had no room" in run.printed.splitlines()[-1]


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("wgmma.fence.sync.aligned;", "wgmma.fence.sync.aligned"),
        ("cp.async.bulk.commit_group;", "cp.async.bulk.commit_group"),
        ("barrier.cluster.arrive;", "barrier.cluster.arrive"),
        ("{ .reg .b32 d; mov.u32 d, %cluster_ctarank; }", "mov.u32"),
        ("{ .reg .b32 d; mov.b32 d, 0; cvt.pack.sat.u8.s32.b32 d, d, d, d; }", "cvt.pack"),
    ],
)
def test_what_is_refused_is_named_with_its_line(statement, word):
    text = statement.replace("%", "%%")
    source = f'extern "C" __global__ void k() {{\n\n  asm volatile("{text}");\n}}'
    with pytest.raises(UnsupportedPtx) as caught:
        emulator.load(ptx_of(source, "--gpu-architecture=compute_90a"))
    assert word in caught.value.message
    assert caught.value.line == 3


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("int* p = (int*)malloc(8); *p = 1; out[0] = *p;", "malloc"),
        ("out[0] = depth(out[1]);", "recursive"),
    ],
)
def test_calls_that_are_refused(body, word):
    source = f"""
__device__ __noinline__ int depth(int n) {{ return n < 2 ? 1 : depth(n - 1) + n * depth(n - 2); }}
extern "C" __global__ void k(int* out) {{ {body} }}"""
    with pytest.raises(UnsupportedPtx, match=word) as caught:
        emulator.load(ptx_of(source))
    assert caught.value.line in (2, 3)
