"""Which thread touched what: by hand for small kernels, against the counters for the others."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from present import sampled

from optiml_magic import Task
from optiml_magic.devices.base import Case, Execution, Job
from optiml_magic.devices.emulated import EmulatedDevice
from optiml_magic.errors import KernelFailed, UsageError
from optiml_magic.model.build import Build
from optiml_magic.testing import instrumented, logged_device, traces
from optiml_magic.testing.kernels import NAMES, known_task
from optiml_magic.testing.traces import LaunchTrace, Touch, trace
from tests.tutorials.suite import TASKS

f4, i4 = np.float32, np.int32
SMALL = {
    "saxpy": {"n": 1000},
    "transpose_naive": {"rows": 37, "cols": 45},
    "transpose_tiled": {"rows": 37, "cols": 45},
    "matmul_naive": {"m": 40, "n": 30, "k": 20},
    "matmul_tiled": {"m": 40, "n": 30, "k": 20},
    "row_sum": {"rows": 17, "cols": 100},
    "row_sum_naive": {"rows": 70, "cols": 33},
    "histogram": {"n": 1000},
    "softmax": {"rows": 9, "cols": 77},
}
UNSUPPORTED = "modern/recursion"


def traced(text: str, outputs: dict[str, str], **inputs: Any) -> tuple[LaunchTrace, ...]:
    return trace(Task(text, inputs=inputs, outputs=outputs))


def places(found: LaunchTrace, thread: int, access: str, block: int = 0) -> set[tuple[str, int]]:
    return {(t.array, t.offset) for t in found.touches[block, thread] if t.access == access}


COPY = """\
#pragma optiml launch grid(2) block(4)
__global__ void copy(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i];
}
"""


def test_a_copy_with_its_guard_off() -> None:
    a = np.arange(7, dtype=f4)
    (found,) = traced(COPY, {"out": "f4[n]"}, a=a, n=7)
    assert (found.kernel, found.grid, found.block) == ("copy", (2, 1, 1), (4, 1, 1))
    assert found.touches[1, 2] == {Touch("a", "load", 24, 4, 4), Touch("out", "store", 24, 4, 4)}
    assert found.touches[1, 3] == frozenset()
    assert found.touches.keys() == {(b, t) for b in range(2) for t in range(4)}
    assert found.accesses == {(4, "load", 4): 7, (4, "store", 4): 7}
    assert found.scalars == {"n": 7}
    assert found.buffers == {"a": "a", "out": "out"}
    np.testing.assert_array_equal(found.arrays["a"], a)


def test_an_early_return_and_steps_in_two_dimensions() -> None:
    text = """\
#pragma optiml launch grid(1, 2) block(3, 2)
__global__ void every_other(const float* a, float* out, int rows, int cols) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    out[row * cols + threadIdx.x] = a[2 * (row * cols + threadIdx.x) + 1];
}
"""
    (found,) = traced(text, {"out": "f4[9]"}, a=np.zeros(18, f4), rows=3, cols=3)
    for block in range(2):
        for thread in range(6):
            row, col = 2 * block + thread // 3, thread % 3
            at = 4 * (3 * row + col)
            assert places(found, thread, "load", block) == (
                {("a", 2 * at + 4)} if row < 3 else set()
            )
            assert places(found, thread, "store", block) == ({("out", at)} if row < 3 else set())


def test_a_loop() -> None:
    text = """\
#pragma optiml launch grid(1) block(8)
__global__ void sums(const int* a, int* out, int n) {
    int sum = 0;
    for (int i = threadIdx.x; i < n; i += 8)
        sum += a[i];
    out[threadIdx.x] = sum;
}
"""
    (found,) = traced(text, {"out": "i4[8]"}, a=np.ones(45, i4), n=45)
    for thread in range(8):
        assert places(found, thread, "load") == {("a", 4 * i) for i in range(thread, 45, 8)}
    assert found.accesses[5, "load", 4] == 45


def test_a_vector_is_one_access() -> None:
    text = """\
#pragma optiml launch grid(1) block(5)
__global__ void copy(const float4* a, float* out) {
    float4 x = a[threadIdx.x];
    out[threadIdx.x] = x.x + x.y + x.z + x.w;
}
"""
    (found,) = traced(text, {"out": "f4[5]"}, a=np.ones((5, 4), f4))
    (load,) = (t for t in found.touches[0, 3] if t.access == "load")
    assert load == Touch("a", "load", 48, 16, 3)
    assert load.elements(4) == range(12, 16)


def test_repeats_are_one_touch_and_counted() -> None:
    text = """\
#pragma optiml launch grid(3) block(4)
#pragma optiml zero(total)
__global__ void add(unsigned* total, const int* bins, unsigned* old) {
    for (int i = 0; i < 5; i++) atomicAdd(&total[bins[threadIdx.x]], 1u);
    old[4 * blockIdx.x + threadIdx.x] = atomicExch(&total[8], threadIdx.x);
}
"""
    bins = np.array([3, 1, 0, 3], i4)
    (found,) = traced(text, {"total": "u4[9]", "old": "u4[12]"}, bins=bins)
    assert places(found, 0, "atomic", 2) == {("total", 12), ("total", 32)}
    assert found.accesses[4, "atomic", 4] == 60
    assert found.accesses[5, "atomic", 4] == 12


def test_launches_know_what_came_before_them() -> None:
    text = """\
#pragma optiml scratch half f4[n]
#pragma optiml launch scale grid(1) block(32) args(a, half, n, 0.5f)
#pragma optiml launch scale grid(1) block(32) args(half, out, n, 3.0f)
__global__ void scale(const float* from, float* to, int n, float factor) {
    if (threadIdx.x < n) to[threadIdx.x] = factor * from[threadIdx.x];
}
"""
    text = text.replace("0.5f", "x").replace("3.0f", "y")
    a = np.arange(11, dtype=f4)
    first, second = traced(text, {"out": "f4[n]"}, a=a, n=11, x=f4(0.5), y=f4(3))
    assert (first.buffers, second.buffers) == (
        {"from": "a", "to": "half"},
        {"from": "half", "to": "out"},
    )
    assert (first.scalars, second.scalars) == ({"n": 11, "factor": 0.5}, {"n": 11, "factor": 3.0})
    assert places(second, 5, "load") == {("half", 20)}
    np.testing.assert_array_equal(second.arrays["from"], a / 2)


def test_an_address_that_names_no_space() -> None:
    text = """\
#pragma optiml launch grid(1) block(8)
__device__ __noinline__ float first(const float* from) { return *(volatile const float*)from; }
__global__ void pick(const float* a, float* out) {
    __shared__ float tile[8];
    tile[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = first(threadIdx.x % 2 ? a + 2 * threadIdx.x : tile + 7 - threadIdx.x);
}
"""
    (found,) = trace(
        Task(text, inputs={"a": np.ones(16, f4)}, outputs={"out": "f4[8]"}), shared=True
    )
    assert {t for t in found.touches[0, 4] if t.line == 2} == set()
    assert {t for t in found.touches[0, 5] if t.line == 2} == {Touch("a", "load", 40, 4, 2)}
    assert found.shared[0, 4] == {Touch("", "store", 16, 4, 5), Touch("", "load", 12, 4, 2)}
    assert found.shared[0, 5] == {Touch("", "store", 20, 4, 5)}


def test_variables_of_the_module() -> None:
    text = """\
#pragma optiml launch turn grid(1) block(4)
#pragma optiml launch turn grid(1) block(4)
__device__ int state[4] = {5, 6, 7, 8};
__constant__ int steps[2] = {1, 3};
__global__ void turn(int* out, int which) {
    int old = state[threadIdx.x];
    state[threadIdx.x] = old + steps[which];
    out[threadIdx.x] = old;
}
"""
    first, second = traced(text, {"out": "i4[4]"}, which=1)
    assert first.variables["state"].tolist() == [5, 6, 7, 8]
    assert second.variables["state"].tolist() == [8, 9, 10, 11]
    assert first.variables["steps"].tolist() == [1, 3]
    assert second.touches[0, 2] == {
        Touch("state", "load", 8, 4, 6), Touch("state", "store", 8, 4, 7), Touch("out", "store", 8, 4, 8),
    }  # fmt: skip


def test_only_lanes_whose_predicate_holds() -> None:
    text = """\
#pragma optiml launch grid(1) block(32)
__global__ void odd(int* out, const int* a) {
    asm volatile("{ .reg .pred p; .reg .b32 r; .reg .b32 t; mov.u32 t, %tid.x; and.b32 t, t, 1;"
                 "setp.eq.u32 p, t, 1; mov.b32 r, 7; @p ld.global.b32 r, [%1];"
                 "@!p st.global.b32 [%0+4], r; }"
                 :: "l"(out + threadIdx.x), "l"(a + threadIdx.x) : "memory");
}
"""
    (found,) = traced(text, {"out": "i4[33]"}, a=np.zeros(32, i4))
    for thread in range(32):
        assert places(found, thread, "load") == ({("a", 4 * thread)} if thread % 2 else set())
        stored = set() if thread % 2 else {("out", 4 * thread + 4)}
        assert places(found, thread, "store") == stored


def test_an_asynchronous_copy_reads_unless_it_is_empty() -> None:
    text = """\
#pragma optiml launch grid(1) block(4)
__global__ void stage(const float4* a, float4* out, int n) {
    __shared__ float4 tile[4];
    unsigned to = (unsigned)__cvta_generic_to_shared(tile + threadIdx.x);
    int size = threadIdx.x < n ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(a + threadIdx.x), "r"(size) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[threadIdx.x] = tile[threadIdx.x];
}
"""
    inputs = {"a": np.ones((4, 4), f4), "n": 3}
    (found,) = trace(Task(text, inputs=inputs, outputs={"out": "f4[4, 4]"}), shared=True)
    assert [len(places(found, thread, "load")) for thread in range(4)] == [1, 1, 1, 0]
    assert Touch("a", "load", 32, 16, 6) in found.touches[0, 2]
    assert {(t.access, t.offset, t.width) for t in found.shared[0, 3]} == {
        ("store", 48, 16),
        ("load", 48, 16),
    }


def test_what_cannot_be_traced_is_said() -> None:
    beyond = COPY.replace("i < n", "i < n + 1")
    with pytest.raises(KernelFailed, match="out_of_bounds"):
        traced(beyond, {"out": "f4[n]"}, a=np.zeros(7, f4), n=7)
    with pytest.raises(KernelFailed, match="undefined"):
        traced(COPY.replace("a[i]", "b[i]"), {"out": "f4[n]"}, a=np.zeros(7, f4), n=7)
    with pytest.raises(UsageError, match="given arrays"):
        trace(Task(COPY, inputs={"a": np.zeros(7, f4), "n": 7}, outputs={"out": "f4[n]"}), n=5)


def test_a_launch_with_too_many_accesses_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (instrumented, logged_device):
        monkeypatch.setattr(module, "MOST_NOTES", 13)
    with pytest.raises(UsageError, match="14 accesses"):
        traced(COPY, {"out": "f4[n]"}, a=np.zeros(7, f4), n=7)


class Compared(logged_device.LoggedDevice):
    """Every run twice: as it is and counted, then logged."""

    counted: Execution

    def __init__(self, chip: str) -> None:
        super().__init__(chip)
        self._plain = EmulatedDevice(chip)

    def put(self, case: Case) -> None:
        super().put(case)
        self._plain.put(case)
        self._names = [buffer.name for buffer in case.buffers]

    def execute(self, build: Build, job: Job) -> Execution:
        Compared.counted = self._plain.execute(build, replace(job, count=True))
        logged = super().execute(build, job)
        for name in self._names:  # the log changes nothing
            left, right = self.read(job.case, name), self._plain.read(job.case, name)
            assert left.tobytes() == right.tobytes(), name
        return logged


def matches_the_counters(task: Task, **sizes: int) -> None:
    found = trace(task, **sizes)
    assert len(found) == len(Compared.counted.counters)
    for launch, counters in zip(found, Compared.counted.counters, strict=True):
        lanes: Counter[tuple[int, str, int]] = Counter()
        for m in counters.memory:
            if m.space == "global":
                lanes[m.line, m.access, m.width] += m.lanes
        assert launch.accesses == lanes
        touched = {t.array for touches in launch.touches.values() for t in touches}
        assert "" not in touched
        for name, buffer in launch.buffers.items():
            last = launch.arrays[name].nbytes
            for touch in {t for every in launch.touches.values() for t in every}:
                assert touch.array != buffer or touch.offset + touch.width <= last


@pytest.mark.parametrize("name", NAMES)
def test_known_kernels_as_the_counters_have_them(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "LoggedDevice", Compared)
    matches_the_counters(known_task(name), **SMALL[name])


@pytest.mark.parametrize("name", sampled((n for n in TASKS if n != UNSUPPORTED), 76))
def test_tutorial_kernels_as_the_counters_have_them(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "LoggedDevice", Compared)
    matches_the_counters(TASKS[name])


def test_a_matrix_product_element_by_element() -> None:
    m, n, k = 40, 30, 20
    (found,) = trace(known_task("matmul_naive"), m=m, n=n, k=k)
    (gx, _, _), (bx, by, _) = found.grid, found.block
    for (block, thread), touches in found.touches.items():
        row, col = block % gx * bx + thread % bx, block // gx * by + thread // bx
        wanted = {("a", row * k + i) for i in range(k)} | {("b", i * n + col) for i in range(k)}
        wanted |= {("c", row * n + col)}
        inside = row < m and col < n
        assert {(t.array, t.offset // 4) for t in touches} == (wanted if inside else set())
