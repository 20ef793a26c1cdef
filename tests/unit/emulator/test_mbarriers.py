"""What waiting at an mbarrier orders: lanes, warps, phases; and lanes that wait for their own warp."""

from __future__ import annotations

import numpy as np
import pytest

from optiml_magic import emulator
from optiml_magic.model.hazard import Hazard
from tests.present import SOAK

from .conftest import launch, ptx_of

SWAP = """
#include <cuda/barrier>
extern "C" __global__ void swap(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ int s[32];
  int t = threadIdx.x;
  if (t == 0) init(&bar, 32);
  __syncthreads();
  s[t] = 3 * t;
  bar.arrive_and_wait();
  out[t] = s[t ^ 1];
}
"""
RULES = r"""
struct Bar { unsigned long long word; };
__device__ unsigned at(Bar* b) { return (unsigned)__cvta_generic_to_shared(&b->word); }
__device__ void init(Bar* b, int n) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory");
}
__device__ void arrive(Bar* b) {
  unsigned long long state;
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(at(b)) : "memory");
}
__device__ bool over(Bar* b, int parity) {
  int yes;
  asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.s32 %0, 1, 0, p; }"
               : "=r"(yes) : "r"(at(b)), "r"(parity) : "memory");
  return yes;
}
extern "C" {
__global__ void through_another_warp(int* out) {
  __shared__ Bar a, b;
  __shared__ int s;
  int t = threadIdx.x;
  if (t == 0) { init(&a, 1); init(&b, 1); }
  __syncthreads();
  if (t == 0) { s = 7; arrive(&a); }
  if (t == 32) { while (!over(&a, 0)) {} arrive(&b); }
  if (t == 1) { while (!over(&b, 0)) {} out[0] = s; }
}
__global__ void all_wait(int* out) {
  __shared__ Bar a;
  __shared__ int s[32];
  int t = threadIdx.x;
  if (t == 0) init(&a, 32);
  __syncthreads();
  s[t] = t;
  arrive(&a);
  while (!over(&a, 0)) {}
  out[t] = s[t ^ 1];
}
__global__ void one_lane_waits(int* out) {
  __shared__ Bar a;
  __shared__ int s[32];
  int t = threadIdx.x;
  if (t == 0) init(&a, 32);
  __syncthreads();
  s[t] = t;
  arrive(&a);
  if (t == 0) while (!over(&a, 0)) {}
  out[t] = s[t ^ 1];
}
__global__ void one_lane_waits_for_all(int* out) {
  __shared__ Bar a;
  __shared__ int s[32];
  int t = threadIdx.x;
  if (t == 0) init(&a, 32);
  __syncthreads();
  s[t] = t;
  arrive(&a);
  if (t == 0) while (!over(&a, 0)) {}
  __syncwarp();
  out[t] = s[t ^ 1];
}
__global__ void written_after_arriving(int* out) {
  __shared__ Bar a;
  __shared__ int s[32];
  int t = threadIdx.x;
  if (t == 0) init(&a, 32);
  __syncthreads();
  arrive(&a);
  s[t] = t;
  while (!over(&a, 0)) {}
  out[t] = s[t ^ 1];
}
__global__ void the_phase_before(int* out) {
  __shared__ Bar a;
  __shared__ int s[32];
  int t = threadIdx.x;
  if (t == 0) init(&a, 33);
  __syncthreads();
  s[t] = t;
  arrive(&a);
  bool early = over(&a, 1);  // that of before the first phase
  if (early) out[t] = s[t ^ 1];
}
__global__ void more_than_are_followed(int* out) {
  __shared__ Bar many[80];
  __shared__ int s[32];
  int t = threadIdx.x, sum = 0;
  for (int i = t; i < 80; i += 32) init(&many[i], 32);
  __syncthreads();
  for (int i = 0; i < 80; i += 2) {
    s[t] = i + t;
    arrive(&many[i]);
    while (!over(&many[i], 0)) {}
    sum += s[t ^ 1];
    arrive(&many[i + 1]);
    while (!over(&many[i + 1], 0)) {}
  }
  out[t] = sum;
}
__global__ void of_its_own_warp(int* out, int half) {
  __shared__ int flag;
  int t = threadIdx.x;
  flag = 0;
  __syncthreads();
  if (t / 16 == half) {
    while (atomicAdd(&flag, 0) < 16) {}
    out[t] = 1;
  } else {
    atomicAdd(&flag, 1);
    out[t] = 2;
  }
}
}
"""


def hazards(source: str, kernel: str, block: int, arch: int = 90) -> tuple[Hazard, ...]:
    """What is found in one block, whose results are not looked at."""
    memory = emulator.Memory()
    address = memory.allocate(4 * 32, name="out", itemsize=4)
    module = emulator.load(ptx_of(source, f"--gpu-architecture=sm_{arch}"), checks=True)
    run = module.launch(
        kernel,
        (1, 1, 1),
        (block, 1, 1),
        dynamic_shared=0,
        arguments=[address.to_bytes(8, "little")],
        memory=memory,
        limits=emulator.Limits(10**8, 1),
        count=False,
    )
    assert run.fault is None
    return run.hazards


@pytest.mark.slow
@pytest.mark.parametrize("arch", [80, 90])
def test_lanes_of_a_warp_meet_at_a_barrier_of_the_library(arch):
    assert hazards(SWAP, "swap", 32, arch) == ()


@pytest.mark.parametrize("arch", [80, 90] if SOAK else [80])
def test_lanes_of_a_warp_meet_at_a_barrier(arch):
    assert hazards(RULES, "all_wait", 32, arch) == ()


@pytest.mark.parametrize(
    ("kernel", "block"),
    [
        ("through_another_warp", 64),
        ("one_lane_waits_for_all", 32),
        ("more_than_are_followed", 32),
    ],
)
def test_what_is_ordered_is_not_accused(kernel, block):
    assert hazards(RULES, kernel, block) == ()


@pytest.mark.parametrize("kernel", ["one_lane_waits", "written_after_arriving", "the_phase_before"])
def test_what_is_not_waited_for_is_a_race(kernel):
    (race,) = hazards(RULES, kernel, 32)
    assert race.kind == "race"
    written, read = (RULES.splitlines()[line - 1] for line in race.lines)
    assert "s[t] = t" in written
    assert "s[t ^ 1]" in read


@pytest.mark.parametrize("half", [0, 1])
def test_lanes_that_wait_for_others_of_their_warp_do_not_starve_them(half):
    out = np.zeros(32, np.int32)
    run = launch(emulator.load(ptx_of(RULES)), "of_its_own_warp", 1, 32, out, np.int32(half))
    assert run.fault is None
    assert out.tolist() == [1 + (t // 16 != half) for t in range(32)]
