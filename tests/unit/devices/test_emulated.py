"""What the emulated device keeps from one build to the next."""

from __future__ import annotations

import numpy as np
import pytest

from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.devices.base import Buffer, Case, Job
from optiml_magic.devices.emulated import EmulatedDevice
from optiml_magic.devices.unfinished import unfinished
from optiml_magic.model.build import Build
from optiml_magic.model.launch import BufferArgument, Launch, LaunchPlan, ScalarArgument, Scratch

TEXT = 'extern "C" __global__ void one(float* out) {\n  out[threadIdx.x] = 1.0f;\n}\n'


def test_builds_of_one_digest_keep_their_own_lines() -> None:
    device = EmulatedDevice("h200")
    device.put(Case("case", (Buffer("out", "output", np.zeros(32, np.float32)),)))
    launch = Launch("one", (1, 1, 1), (32, 1, 1), 0, (BufferArgument("out"),))
    job = Job("case", LaunchPlan((launch,)), 0, count=True, instructions=10**6)
    digests, lines = set(), []
    for text in (TEXT, "\n\n" + TEXT):
        build = NvrtcCompiler().compile(text, ("one",), chip("h200"), CompileOptions())
        assert isinstance(build, Build)
        digests.add(build.digest)
        execution = device.execute(build, job)
        assert execution.fault is None
        (counters,) = execution.counters
        lines += [m.line for m in counters.memory]
    assert len(digests) == 1
    assert lines == [2, 4]


CHAIN = """
extern "C" __global__ void first(const float* x, float* between, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int k = 0; k < n; ++k) s += x[(i + k) % 97];
  between[i] = s;
}
extern "C" __global__ void second(float* between, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  THEN
}
extern "C" __global__ void third(const float* between, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  LAST
}
"""
DATA = "if (between[i] > 3) out[i] = 1;"
PLAIN = "out[i] = fmaxf(between[i], 0);"
BLOCKS = 1000


@pytest.mark.parametrize(
    ("then", "last", "expected"),
    [
        (PLAIN, PLAIN, (True, True, True)),
        (DATA, PLAIN, (False, True, True)),
        (PLAIN, DATA, (False, True, True)),
        ("between[i] *= 2;", DATA, (False, False, True)),
        ("out[i] = sinf(between[i]);", PLAIN, (False, True, True)),
    ],
)
def test_launches_are_left_unfinished_where_nobody_asks_for_values(
    monkeypatch: pytest.MonkeyPatch, then: str, last: str, expected: tuple[bool, ...]
) -> None:
    text = CHAIN.replace("THEN", then).replace("LAST", last)
    names = ("first", "second", "third")
    build = NvrtcCompiler().compile(text, names, chip("h200"), CompileOptions())
    assert isinstance(build, Build)
    x, out, between = (BufferArgument(name) for name in ("x", "out", "between"))
    shape = ((BLOCKS, 1, 1), (32, 1, 1), 0)
    rounds = ScalarArgument((20).to_bytes(4, "little").hex())
    launches = (
        Launch("first", *shape, (x, between, rounds)),
        Launch("second", *shape, (between, out)),
        Launch("third", *shape, (between, out)),
    )
    assert unfinished(build.ptx, launches) == expected
    plan = LaunchPlan(launches, scratch=(Scratch("between", "float32", 32 * BLOCKS),))
    device = EmulatedDevice("h200")
    values = np.random.default_rng(0).standard_normal(97).astype(np.float32)
    device.put(Case("case", (
        Buffer("x", "input", values), Buffer("out", "output", np.zeros(32 * BLOCKS, np.float32)),
    )))  # fmt: skip
    job = Job("case", plan, 0, count=True, instructions=10**8, sample=10**5)
    left = device.execute(build, job)
    monkeypatch.setattr("optiml_magic.devices.emulated.unfinished", lambda *_: (False, False, True))
    whole = device.execute(build, job)
    assert left.fault is whole.fault is None
    assert left.counters[0].sampled
    assert left.counters == whole.counters
