"""A kernel that goes wrong says what, where in the text, and which thread."""

import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from optiml_magic import emulator
from optiml_magic.ptx.faults import UnsupportedPtx

from .conftest import launch, module_of, ptx_of

SOURCE = r"""extern "C" {
__global__ void beyond(float* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  a[i] = 1;  // beyond
}
__global__ void null(float* a, float* p) {
  a[threadIdx.x] = *p;  // null
}
__global__ void odd(char* a) {
  *(int*)(a + threadIdx.x * 4 + (threadIdx.x == 9)) = 1;  // odd
}
__global__ void odd_vector(float* a) {
  *(float4*)(a + 4 * threadIdx.x + 2) = make_float4(0, 0, 0, 0);  // vector
}
__global__ void past_shared(int* a, int n) {
  extern __shared__ int s[];
  s[threadIdx.x + n] = 1;  // shared
  a[0] = s[0];
}
__global__ void past_local(int* a, int n) {
  int v[4] = {1, 2, 3, 4};
  a[threadIdx.x] = v[n];  // local
}
__global__ void stop(int* a, int n) {
  if (threadIdx.x == 37) __trap();  // trap
  a[threadIdx.x] = n;
}
__global__ void claim(int* a, int n) {
  assert(a[threadIdx.x] < n);  // assert
}
__global__ void forever(volatile int* a) {
  while (a[0] == 0) a[1] += 1;  // forever
}
__global__ void half_barrier(int* a) {
  if (threadIdx.x < 16) __syncthreads();  // divergent
  a[threadIdx.x] = 1;
}
__global__ void early(int* a, int n) {
  if (threadIdx.x >= n) return;
  __syncthreads();
  a[threadIdx.x] = 1;
}
__global__ void two_barriers(int* a) {
  if (threadIdx.x < 32) asm volatile("bar.sync 1;"); else asm volatile("bar.sync 2;");
  a[threadIdx.x] = 1;
}
}
__device__ void set(float* p) {
  *p = 2;  // inlined
}
extern "C" __global__ void caller(float* a) {
  set(a + 1000000);
}
"""


def line_of(mark):
    return 1 + SOURCE[: SOURCE.index(f"// {mark}\n")].count("\n")


def fault_of(run, kernel, grid, block, *arguments, **named):
    fault = run(SOURCE, kernel, grid, block, *arguments, **named).fault
    assert fault is not None
    return fault


def test_store_beyond_an_array(run):
    fault = fault_of(run, "beyond", 4, 256, np.zeros(1000, np.float32), np.int32(1000))
    assert (fault.kind, fault.line) == ("out_of_bounds", line_of("beyond"))
    assert (fault.block, fault.thread) == ((3, 0, 0), (232, 0, 0))
    assert fault.address is not None
    assert "0x" in fault.message


def test_null_pointer(run):
    fault = fault_of(run, "null", 1, 32, np.zeros(32, np.float32), np.int64(0))
    assert (fault.kind, fault.address) == ("out_of_bounds", 0)


def test_freed_memory_is_gone():
    memory = emulator.Memory()
    kept, gone = memory.allocate(64), memory.allocate(64)
    memory.free(gone)
    module = module_of(SOURCE)
    for address, kind in ((kept, None), (gone, "out_of_bounds")):
        run = module.launch(
            "beyond",
            (1, 1, 1),
            (16, 1, 1),
            dynamic_shared=0,
            arguments=[address.to_bytes(8, "little"), b"\0" * 4],
            memory=memory,
            limits=emulator.Limits(10**6, 1),
            count=False,
        )
        assert (run.fault and run.fault.kind) == kind
    with pytest.raises(KeyError):
        memory.view(gone)
    memory.reset()
    assert memory.allocations == ()


def test_misaligned(run):
    fault = fault_of(run, "odd", 1, 32, np.zeros(200, np.int8))
    assert (fault.kind, fault.line, fault.thread) == ("misaligned", line_of("odd"), (9, 0, 0))
    fault = fault_of(run, "odd_vector", 1, 32, np.zeros(200, np.float32))
    assert (fault.kind, fault.line) == ("misaligned", line_of("vector"))


def test_shared_and_local_bounds(run):
    a = np.zeros(64, np.int32)
    assert run(SOURCE, "past_shared", 1, 64, a, np.int32(0), shared=256).fault is None
    fault = fault_of(run, "past_shared", 1, 64, a, np.int32(4), shared=256)
    assert (fault.kind, fault.line, fault.thread) == (
        "out_of_bounds",
        line_of("shared"),
        (60, 0, 0),
    )
    fault = fault_of(run, "past_shared", 1, 64, a, np.int32(-1), shared=256)
    assert (fault.kind, fault.thread) == ("out_of_bounds", (0, 0, 0))
    fault = fault_of(run, "past_shared", 1, 64, a, np.int32(0), shared=0)
    assert fault.kind == "out_of_bounds"
    fault = fault_of(run, "past_local", 1, 32, a, np.int32(70))
    assert (fault.kind, fault.line) == ("out_of_bounds", line_of("local"))


def test_trap_and_assert(run):
    a = np.zeros(64, np.int32)
    fault = fault_of(run, "stop", 1, 64, a, np.int32(1))
    assert (fault.kind, fault.line, fault.thread) == ("trap", line_of("trap"), (37, 0, 0))
    a[50] = 3
    assert run(SOURCE, "claim", 1, 64, a, np.int32(9)).fault is None
    fault = fault_of(run, "claim", 1, 64, a, np.int32(2))
    assert (fault.kind, fault.line, fault.thread) == ("assertion", line_of("assert"), (50, 0, 0))
    assert "a[threadIdx.x] < n" in fault.message


def test_endless_loop(run):
    fault = fault_of(run, "forever", 4, 32, np.zeros(2, np.int32), instructions=10**6)
    assert (fault.kind, fault.line) == ("instruction_limit", line_of("forever"))


def test_barriers(run):
    a = np.zeros(64, np.int32)
    fault = fault_of(run, "half_barrier", 1, 64, a)
    assert (fault.kind, fault.line) == ("barrier_divergence", line_of("divergent"))
    fault = fault_of(run, "two_barriers", 1, 64, a)
    assert fault.kind == "deadlock"
    for n in (0, 5, 32, 50, 64):  # threads that have exited count as arrived
        a[:] = 0
        assert run(SOURCE, "early", 1, 64, a, np.int32(n)).fault is None
        assert a.sum() == n


def test_line_in_an_inlined_function(run):
    fault = fault_of(run, "caller", 1, 1, np.zeros(4, np.float32))
    assert (fault.kind, fault.line) == ("out_of_bounds", line_of("inlined"))


@pytest.mark.parametrize(
    ("grid", "block", "shared"),
    [((1, 70000), 32, 0), (1, (33, 32), 0), (1, (1, 1, 65), 0), (0, 32, 0), (1, 32, 240_000)],
)
def test_impossible_launches(run, grid, block, shared):
    fault = fault_of(run, "stop", grid, block, np.zeros(1, np.int32), np.int32(0), shared=shared)
    assert fault.kind == "invalid_launch"
    assert fault.message


BOUNDED = """extern "C" {
__global__ void __launch_bounds__(64, 2) bounded(int* a) { atomicAdd(a, 1); }
__global__ void __block_size__((32, 2, 1)) exact(int* a) { atomicAdd(a, 1); }
}"""


@pytest.mark.parametrize(
    ("kernel", "block", "message"),
    [
        ("bounded", 64, ""),
        ("bounded", (4, 4, 4), ""),  # PTX ISA: the product of the extents is the limit
        ("bounded", 65, "65 threads; the kernel's __launch_bounds__ (`.maxntid`) allow at most 64"),
        ("bounded", (4, 4, 5), "has 80 threads"),
        ("exact", (32, 2), ""),
        ("exact", 64, "64 x 1 x 1; the kernel's __block_size__ (`.reqntid`) allows 32 x 2 x 1 alone"),
        ("exact", 32, "the block is 32 x 1 x 1"),
    ],
)  # fmt: skip
def test_a_kernel_limits_its_own_launches(run, kernel, block, message):
    a = np.zeros(1, np.int32)
    fault = run(BOUNDED, kernel, 2, block, a).fault
    if message:
        assert fault.kind == "invalid_launch"
        assert message in fault.message
    else:
        assert (fault, a[0]) == (None, 2 * np.prod(block))


def test_a_thread_has_only_so_much_local_memory(run):
    text = """extern "C" __global__ void k(int* a, int i) {
    int own[%d] = {};
    for (int j = 0; j < i; ++j) own[a[j]] = j;
    a[0] = own[i];
}"""
    assert run(text % 1000, "k", 1, 1, np.zeros(9, np.int32), np.int32(2)).fault is None
    fault = run(text % 140_000, "k", 1, 1, np.zeros(9, np.int32), np.int32(2)).fault
    assert fault.kind == "invalid_launch"
    assert "560000 bytes of local memory; at most 524288" in fault.message


@pytest.mark.parametrize(
    ("attribute", "word"),
    [
        ("__cluster_dims__(3, 1, 1)", ".reqnctapercluster 3, 1, 1"),
        ("__block_size__((32, 1, 1), (2, 1, 1))", ".reqnctapercluster 2, 1, 1"),
        ("__cluster_dims__()", ".explicitcluster"),
    ],
)
def test_clusters_are_refused(attribute, word):
    with pytest.raises(UnsupportedPtx, match="has no clusters") as caught:
        module_of(f'extern "C" __global__ void {attribute} k(int* a) {{ *a = 1; }}')
    assert caught.value.instruction == word


def test_a_cluster_of_one_block_is_none(run):
    a = np.zeros(1, np.int32)
    source = 'extern "C" __global__ void __cluster_dims__(1) k(int* a) { atomicAdd(a, 1); }'
    assert run(source, "k", 8, 32, a).fault is None
    assert a[0] == 8 * 32


def test_arguments_are_checked():
    module = module_of(SOURCE)
    with pytest.raises(ValueError, match="takes 2 arguments, 1"):
        launch(module, "stop", 1, 32, np.zeros(1, np.int32))
    with pytest.raises(ValueError, match="parameter 1 of stop has 4 bytes, 8"):
        launch(module, "stop", 1, 32, np.zeros(1, np.int32), np.int64(0))
    with pytest.raises(ValueError, match="no kernel 'nothing'"):
        launch(module, "nothing", 1, 32)


UNSUPPORTED = r"""
__device__ __noinline__ int ackermann(int m, int n) {
  return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1)
    : ackermann(m - 1, ackermann(m, n - 1));
}
extern "C" __global__ void k(int* a) { a[0] = ackermann(a[1], a[2]); }
"""
ASSEMBLY = r"""
extern "C" __global__ void k(float* a) {
  asm volatile("cp.async.bulk.commit_group;");
}
"""


@pytest.mark.parametrize(
    ("source", "word", "line"),
    [(UNSUPPORTED, "ackermann", 3), (ASSEMBLY, "cp.async.bulk.commit_group", 3)],
)
def test_unsupported_ptx_names_instruction_and_line(source, word, line):
    with pytest.raises(UnsupportedPtx) as caught:
        emulator.load(ptx_of(source))
    assert caught.value.line in (line, line + 1)
    assert word in caught.value.message
    assert word in caught.value.instruction


def test_an_interrupt_stops_the_kernel():
    main = threading.main_thread().ident
    timer = threading.Timer(0.5, signal.pthread_kill, (main, signal.SIGINT))
    module = module_of(SOURCE)
    # A kernel of Jupyter that an earlier test ran in this process leaves the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            launch(module, "forever", 4, 32, np.zeros(2, np.int32), instructions=10**15)
    finally:
        signal.signal(signal.SIGINT, before)


def test_llvm_loads_with_the_first_module():
    code = (
        "import sys; from optiml_magic import emulator as e; "
        "e.Memory, e.Module, e.Limits, e.Fault; "
        "assert not any(m.startswith('llvmlite') for m in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
