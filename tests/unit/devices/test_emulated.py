"""What the emulated device keeps from one build to the next."""

from __future__ import annotations

import numpy as np

from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.devices.base import Buffer, Case, Job
from optiml_magic.devices.emulated import EmulatedDevice
from optiml_magic.model.build import Build
from optiml_magic.model.launch import BufferArgument, Launch, LaunchPlan

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
