"""Every faulty kernel is caught with the right kind and lines; no twin is accused, in any order."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from optiml_magic import emulator
from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.devices.base import Execution, Order
from optiml_magic.devices.emulated import EmulatedDevice
from optiml_magic.emulator.jit import complete
from optiml_magic.kernels.exits import early_returns
from optiml_magic.kernels.unit import lift
from optiml_magic.model.build import Build
from optiml_magic.model.hazard import Hazard
from optiml_magic.optimize import evaluate_once
from optiml_magic.settings import resolve
from optiml_magic.testing import faulty
from optiml_magic.testing.kernels import NAMES, known_task
from tests.present import sampled

from .conftest import ptx_of

ORDERS: tuple[Order, ...] = ("forward", "reverse", 1)


@cache
def compiler() -> NvrtcCompiler:
    return NvrtcCompiler()


def build(example: faulty.Example) -> Build:
    built = compiler().compile(example.text, example.kernels, chip("h200"), CompileOptions())
    assert isinstance(built, Build), built
    return replace(built, early_returns=early_returns(lift(example.text)))


def checked(example: faulty.Example, *orders: Order) -> list[Execution]:
    device, built = EmulatedDevice("h200"), build(example)
    device.put(example.case())
    return [device.execute(built, example.job(built, checks=True, order=o)) for o in orders]


def lines_by_kind(execution: Execution) -> dict[str, tuple[int, ...]]:
    found: dict[str, set[int]] = {}
    for hazard in execution.hazards:
        found.setdefault(hazard.kind, set()).update(hazard.lines)
    return {kind: tuple(sorted(lines)) for kind, lines in found.items()}


def test_there_are_enough_pairs():
    assert len(faulty.NAMES) >= 30
    for name in faulty.NAMES:
        wrong, right = faulty.faulty(name), faulty.twin(name)
        assert wrong.expected, name
        assert not right.expected
        assert wrong.text != right.text


@pytest.mark.parametrize("name", sampled(faulty.NAMES))
def test_the_fault_is_caught_on_its_lines(name):
    example = faulty.faulty(name)
    (execution,) = checked(example, "forward")
    assert lines_by_kind(execution) == example.expected, execution.hazards
    for hazard in execution.hazards:
        assert hazard.message
        assert hazard.fix
        assert hazard.block is not None
        assert hazard.thread is not None or hazard.kind == "deadlock"


@pytest.mark.parametrize("name", sampled(faulty.NAMES))
def test_the_twin_is_not_accused(name):
    for execution in checked(faulty.twin(name), *ORDERS):
        assert execution.fault is None
        assert execution.hazards == ()


SIZES = {
    "saxpy": {"n": 5000},
    "transpose_naive": {"rows": 70, "cols": 90},
    "transpose_tiled": {"rows": 70, "cols": 90},
    "matmul_naive": {"m": 40, "n": 50, "k": 30},
    "matmul_tiled": {"m": 40, "n": 50, "k": 30},
    "row_sum": {"rows": 20, "cols": 300},
    "row_sum_naive": {"rows": 100, "cols": 30},
    "histogram": {"n": 3000},
    "softmax": {"rows": 10, "cols": 300},
}


@pytest.mark.parametrize("name", sampled(NAMES, 3))
def test_known_kernels_are_not_accused(name):
    settings = resolve({"device": "emulated:h200", "verify_seeds": 1})
    verdict = evaluate_once(
        known_task(name, **SIZES[name]), settings, hazards=True
    ).evaluation.verdict
    assert verdict.passed
    assert verdict.hazards == ()


@pytest.mark.parametrize("order", ORDERS)
def test_a_race_is_found_in_any_order(order):
    example = faulty.faulty("scan_ping_pong")
    (execution,) = checked(example, order)
    assert lines_by_kind(execution) == example.expected


def hazards_of(source: str, kernel: str, block: int, out: int) -> tuple[Hazard, ...]:
    """The hazards of one block that writes ``out`` ints, which nobody cleared."""
    memory = emulator.Memory()
    address = memory.allocate(4 * out, name="out", itemsize=4)
    memory.define(address, defined=False)
    run = emulator.load(ptx_of(source), checks=True).launch(
        kernel,
        (1, 1, 1),
        (block, 1, 1),
        dynamic_shared=0,
        arguments=[address.to_bytes(8, "little")],
        memory=memory,
        limits=emulator.Limits(10**7, 1),
        count=False,
    )
    assert run.fault is None
    return run.hazards


RULES = """
extern "C" {
__global__ void swap_loop(int* out) {
  __shared__ int s;
  if (threadIdx.x == 0) s = 0;
  __syncthreads();
  int seen, want = s;
  do { seen = want; want = atomicCAS(&s, seen, seen + 2); } while (want != seen);
  __syncthreads();
  out[threadIdx.x] = s;
}
__global__ void same_value(int* out) {
  __shared__ int any;
  any = 1;
  __syncthreads();
  out[threadIdx.x] = any;
}
__global__ void thrown_away(int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  __syncwarp();
  int v = s[(threadIdx.x + 1) % 64];  // undefined past the block's 32 threads
  int w = __shfl_down_sync(0xffffffff, v, 1);
  out[threadIdx.x] = threadIdx.x < 30 ? w : 0;
}
__global__ void halves(short* out) {
  __shared__ short s[64];
  s[threadIdx.x] = threadIdx.x;  // neighbours in one word, from two warps where 64 run
  out[threadIdx.x] = s[threadIdx.x];
}
__global__ void kept(int* out) {
  __shared__ int s[64];
  for (int r = 0; r < 3; ++r) {
    s[threadIdx.x] = r;
    __syncthreads();
    int v = s[threadIdx.x ^ 33];
    __syncthreads();
    out[threadIdx.x] = v;
  }
}
}
"""


@pytest.mark.parametrize(
    ("kernel", "block"),
    [("swap_loop", 64), ("same_value", 64), ("thrown_away", 32), ("halves", 64), ("kept", 64)],
)
def test_what_is_no_hazard(kernel, block):
    assert hazards_of(RULES, kernel, block, 64) == ()


def test_ordinary_machine_code_holds_nothing_of_the_checks():
    ptx = ptx_of(RULES)
    for checks in (False, True):
        module = emulator.load(ptx, checks=checks)
        texts = [kernel.lowered.text for kernel in module._kernels.values()]
        worker = "om_worker_checked" if checks else "om_worker"
        assert any("om_watch" in part for part in complete("\n".join(texts), worker)) is checks
