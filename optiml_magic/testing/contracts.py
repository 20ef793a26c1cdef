"""Contract suites: a member of a family is done when it passes the suite of its family.

A test subclasses the suite and gives the fixture that the suite asks for.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.devices.base import Buffer, Case, Device, Job, Tolerance, is_emulated
from optiml_magic.devices.maps import Kind, Map, digest, mapped
from optiml_magic.errors import MachineError
from optiml_magic.model.build import Build
from optiml_magic.model.launch import (
    Argument,
    BufferArgument,
    Launch,
    LaunchPlan,
    ScalarArgument,
)
from optiml_magic.model.verdict import Outcome

_AXPY = """\
__global__ void axpy(const float* x, float* out, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a * x[i] + 1.0f;
}
"""
_N = 1000
_KINDS: tuple[Kind, ...] = ("times", "signs", "magnitudes", "thirds", "steps")


@cache
def _compiled(text: str) -> Build:
    made = NvrtcCompiler().compile(text, ("axpy",), chip("h200"), CompileOptions())
    assert isinstance(made, Build), made
    return made


class DeviceContract:
    """What every device must do; the fixture ``device`` gives one for ``sm_90`` code."""

    def build(self, text: str = _AXPY) -> Build:
        """The text compiled for the device's chip."""
        return _compiled(text)

    def case(self, key: str = "one", seed: int = 0) -> Case:
        """Inputs and the answer for a = 2."""
        x = np.random.default_rng(seed).uniform(-1, 1, _N).astype(np.float32)
        wanted = 2.0 * x.astype(np.float64) + 1.0
        return Case(
            key,
            (
                Buffer("x", "input", x),
                Buffer("out", "output", np.empty_like(x), wanted, Tolerance(1e-6, 1e-6)),
            ),
        )

    def job(self, build: Build, key: str = "one", *, poison: int = 1, count: bool = False) -> Job:
        """One launch of the only kernel."""
        scalars = [ScalarArgument(v.tobytes().hex()) for v in (np.float32(2), np.int32(_N))]
        arguments: tuple[Argument, ...] = (BufferArgument("x"), BufferArgument("out"), *scalars)
        launch = Launch(build.names["axpy"], (8, 1, 1), (128, 1, 1), 0, arguments)
        return Job(key, LaunchPlan((launch,)), poison, count, 50_000_000)

    def test_a_right_kernel_passes_and_its_output_can_be_read(self, device: Device) -> None:
        build, case = self.build(), self.case()
        device.put(case)
        execution = device.execute(build, self.job(build))
        assert execution.fault is None
        assert [check.passed for check in execution.checks] == [True]
        assert execution.modified_inputs == ()
        wanted = case.buffers[1].expected
        assert wanted is not None
        assert np.allclose(device.read("one", "out"), wanted.astype(np.float64))
        assert np.array_equal(device.read("one", "x"), case.buffers[0].array)

    def test_cases_are_kept_apart_and_replaced_by_key(self, device: Device) -> None:
        build = self.build()
        device.put(self.case("one", 1))
        device.put(self.case("two", 2))
        device.put(self.case("one", 3))
        for key in ("one", "two"):
            assert device.execute(build, self.job(build, key)).checks[0].passed
        assert not np.array_equal(device.read("one", "out"), device.read("two", "out"))

    def test_an_output_left_alone_still_holds_the_poison(self, device: Device) -> None:
        build = self.build(_AXPY.replace("i < n", "i < n && i != 7"))
        device.put(self.case())
        check = device.execute(build, self.job(build)).checks[0]
        assert (check.wrong, check.unwritten, check.first_index) == (1, 1, (7,))
        first = device.read("one", "out")[7]
        device.execute(build, self.job(build, poison=2))
        second = device.read("one", "out")[7]
        assert first.tobytes() != second.tobytes()

    def changed(self, case: Case, change: Map, key: str) -> Case:
        """The same arrays, the input changed, with the answer to that."""
        x, out = case.buffers
        content = mapped(change, x.array)
        wanted = 2.0 * content.astype(np.float64) + 1.0
        return Case(
            key,
            (replace(x, map=change, digest=digest(content)), replace(out, expected=wanted)),
        )

    def test_an_input_is_a_map_of_one_that_is_there(self, device: Device) -> None:
        build, case = self.build(), self.case()
        device.put(case)
        assert device.execute(build, self.job(build)).checks[0].passed
        for kind in _KINDS:
            change = Map(kind, 0.01, seed=5)
            device.put(self.changed(case, change, "other"))
            assert device.execute(build, self.job(build, "other")).checks[0].passed
            assert np.array_equal(device.read("other", "x"), mapped(change, case.buffers[0].array))
        assert device.execute(build, self.job(build)).checks[0].passed

    def test_an_input_that_is_not_what_it_should_be_is_refused(self, device: Device) -> None:
        build, case = self.build(), self.case()
        device.put(case)
        device.execute(build, self.job(build))
        x, out = self.changed(case, Map("times", 3.0), "other").buffers
        refused = False
        try:
            device.put(Case("other", (replace(x, digest=1), out)))
        except MachineError:
            refused = True
        assert refused
        assert device.execute(build, self.job(build)).checks[0].passed

    def test_a_written_input_is_seen_and_mended_for_the_next_run(self, device: Device) -> None:
        good = self.build()
        bad = self.build(_AXPY.replace("if (", "if (i < n) ((float*)x)[i] = 9.0f;\n    if ("))
        device.put(self.case())
        assert device.execute(bad, self.job(bad)).modified_inputs == ("x",)
        assert device.execute(good, self.job(good)).checks[0].passed

    def test_zeroed_and_filled_outputs(self, device: Device) -> None:
        build = self.build(_AXPY.replace("i < n", "i < 0"))
        device.put(self.case())
        job = self.job(build)
        for plan, value in (
            (LaunchPlan(job.plan.launches, zeros=("out",)), 0.0),
            (LaunchPlan(job.plan.launches, fills=(("out", "2.5"),)), 2.5),
        ):
            device.execute(build, Job("one", plan, 1, False, job.instructions))
            assert np.all(device.read("one", "out") == value)

    def test_a_fault_is_a_value_on_its_line_and_the_device_lives_on(self, device: Device) -> None:
        bad = self.build(_AXPY.replace("i < n", "i <= n + 100000"))
        good = self.build()
        device.put(self.case())
        fault = device.execute(bad, self.job(bad)).fault
        assert fault is not None
        assert fault.outcome is Outcome.OUT_OF_BOUNDS
        assert device.execute(good, self.job(good)).checks[0].passed

    def test_counts_are_given_when_asked_for(self, device: Device) -> None:
        if not is_emulated(device.name):
            return  # a card is counted from outside, by ncu
        build = self.build()
        device.put(self.case())
        assert device.execute(build, self.job(build)).counters == ()
        (counters,) = device.execute(build, self.job(build, count=True)).counters
        assert counters.kernel == build.names["axpy"]
        assert counters.warp_instructions > 0
