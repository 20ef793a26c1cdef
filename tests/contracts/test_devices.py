from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from optiml_magic.devices import wire
from optiml_magic.devices.base import Buffer, Case, Device
from optiml_magic.devices.emulated import EmulatedDevice
from optiml_magic.devices.hosted import HostedDevice
from optiml_magic.devices.maps import Map
from optiml_magic.model.verdict import Outcome
from optiml_magic.testing.contracts import DeviceContract


class TestEmulatedDevice(DeviceContract):
    @pytest.fixture
    def device(self) -> Iterator[Device]:
        device = EmulatedDevice("h200")
        yield device
        device.close()


class TestHostedDevice(DeviceContract):
    @pytest.fixture
    def device(self) -> Iterator[HostedDevice]:
        device = HostedDevice("emulated:h200", seconds=20)
        yield device
        device.close()

    def test_a_killed_host_is_a_crash_and_the_next_one_has_the_cases(
        self, device: HostedDevice
    ) -> None:
        build = self.build()
        device.put(self.case())
        assert device.execute(build, self.job(build)).checks[0].passed
        assert device._child is not None
        os.kill(device._child._process.pid, signal.SIGKILL)
        fault = device.execute(build, self.job(build)).fault
        assert fault is None or fault.outcome is Outcome.CRASHED
        assert device.execute(build, self.job(build)).checks[0].passed

    def test_a_restarted_host_gets_what_is_asked_for(
        self, device: HostedDevice, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        build, sent = self.build(), []
        put = HostedDevice._put
        monkeypatch.setattr(
            HostedDevice,
            "_put",
            lambda own, child, case: (sent.append(case.key), put(own, child, case)),
        )
        device.put(self.case())
        device.put(replace(self.case(), key="another"))
        device._kill()
        assert device.execute(build, self.job(build)).checks[0].passed
        assert sent == [self.case().key]

    def test_a_large_buffer_comes_back_whole(self, device: HostedDevice) -> None:
        array = np.random.default_rng(0).integers(0, 1 << 30, (3, 1 << 18), np.int32)
        device.put(Case("large", (Buffer("x", "input", array),)))
        found = device.read("large", "x")
        assert np.array_equal(found, array)
        found[0, 0] = 1  # it is the caller's own

    def test_an_array_is_sent_once(
        self, device: HostedDevice, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        case = self.case()
        device.put(case)
        device.execute(self.build(), self.job(self.build()))
        assert device._child is not None
        sent: list[wire.Put] = []
        ask = device._child.ask
        monkeypatch.setattr(
            device._child, "ask", lambda put, limit: (sent.append(put), ask(put, limit))[1]
        )
        other = self.changed(case, Map("times", 3.0), "other")
        device.put(other)
        device.put(other)
        (put,) = sent
        assert [(b.held, b.offset) for b in put.buffers] == [(("one", "x"), -1), (None, -1)]

    def test_a_hang_is_a_timeout_and_costs_one_host(self) -> None:
        device = HostedDevice("emulated:h200", seconds=1.5)
        build = self.build(
            "__global__ void axpy(const float* x, float* out, float a, int n) {\n"
            "    while (*(volatile float*)x != 12345.0f) {}\n    out[0] = a;\n}\n"
        )
        good = self.build()
        device.put(self.case())
        device.execute(good, self.job(good))
        job = self.job(build)
        endless = type(job)(job.case, job.plan, job.poison, job.count, 1 << 60)
        fault = device.execute(build, endless).fault
        assert fault is not None
        assert fault.outcome is Outcome.TIMEOUT
        assert device.restarts == 1
        assert device.execute(good, self.job(good)).checks[0].passed
        device.close()

    def test_an_interrupt_does_not_put_the_pipe_out_of_step(
        self, device: HostedDevice, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        build = self.build()
        device.put(self.case())
        device.execute(build, self.job(build))
        assert device._child is not None
        with monkeypatch.context() as patch:

            def interrupted(timeout: float) -> None:
                raise KeyboardInterrupt

            patch.setattr(device._child._answers, "get", interrupted)
            with pytest.raises(KeyboardInterrupt):
                device.execute(build, self.job(build, count=True))
        device.put(replace(self.case(), key="meanwhile"))  # nobody is there to take it yet
        assert device.execute(build, self.job(build)).counters == ()
        assert device.execute(build, self.job(build, count=True)).counters != ()
