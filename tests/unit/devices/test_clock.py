"""The CUDA device's timing, as far as it can be told without a card: on one that is simulated."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from optiml_magic.chips import chip
from optiml_magic.devices import clock
from optiml_magic.devices import rounds as rounds_module
from optiml_magic.devices.base import Buffer, Case, Execution, Fault, Job, Sampling, Tolerance
from optiml_magic.devices.ratio import ratio
from optiml_magic.model.build import Build, Resources
from optiml_magic.model.launch import BufferArgument, Launch, LaunchPlan
from optiml_magic.model.measurement import Measurement, speedup_interval
from optiml_magic.model.verdict import Outcome
from optiml_magic.profilers.events import EventsProfiler

from .card import L2_BYTES, Card, FaultOnCard, floats

N = 500
X = np.random.default_rng(0).uniform(-1, 1, N).astype(np.float32)
USUAL = Sampling(10, 40, 60.0)


def double(x: Any, out: Any) -> None:
    floats(out, N)[:] = 2 * floats(x, N)


def build(name: str) -> Build:
    return Build("", b"", {name: name}, {name: Resources(16, 0, 0, 0, 0)}, (), (), name)


def run(name: str) -> tuple[Build, Job]:
    launch = Launch(name, (1, 1, 1), (128, 1, 1), 0, (BufferArgument("x"), BufferArgument("out")))
    return build(name), Job("one", LaunchPlan((launch,)), 1, False, 0)


Opened = Callable[[Card], Any]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Opened:
    def opened(card: Card) -> Any:
        from optiml_magic.devices.cuda import CudaDevice

        for name in ("warm", "sample"):  # by the card's time, not the test's
            timed = partial(getattr(rounds_module, name), now=lambda: card.time)
            monkeypatch.setattr(clock, name, timed)
        monkeypatch.setitem(sys.modules, "cupy", card.module())
        monkeypatch.setattr("optiml_magic.devices.nvml._NAMES", ())
        monkeypatch.setenv("PATH", str(tmp_path))
        device = CudaDevice(0)
        wanted = 2 * X.astype(np.float64)
        out = Buffer("out", "output", np.empty_like(X), wanted, Tolerance(1e-6, 1e-6))
        device.put(Case("one", (Buffer("x", "input", X), out)))
        return device

    return opened


def test_the_samples_are_the_seconds_of_one_launch(opened):
    device = opened(Card({"a": (double, 50e-6), "b": (double, 40e-6)}))
    one, two = device.time([run("a"), run("b")], USUAL)
    assert one.samples == pytest.approx([50e-6] * 20)
    assert two.samples == pytest.approx([40e-6] * 20)
    assert (one.launches, two.launches) == (20, 25)
    assert one.after.checks[0].passed
    assert "NVML" in one.conditions.absent


def test_a_clock_that_drifts_falls_on_both(opened):
    card = Card(
        {"a": (double, 50e-6), "b": (double, 51e-6)},
        speed=lambda t: 1 + 0.1 * np.sin(20 * t),
        noise=0.001,
    )
    one, two = opened(card).time([run("a"), run("b")], Sampling(20, 20, 60.0))
    found = ratio(one.samples, two.samples)
    assert found.low <= 1.02 <= found.high
    assert found.value == pytest.approx(1.02, abs=0.003)
    assert max(one.samples) / min(one.samples) > 1.02


def test_every_launch_finds_other_buffers_fresh_outputs_and_a_cold_cache(opened):
    card = Card({"a": (double, 95e-6), "b": (double, 95e-6)})
    opened(card).time([run("a"), run("b")], Sampling(3, 3, 60.0))
    graphs = [at for at, what in enumerate(card.happened) if what[0] == "graph"]
    batches = [card.happened[a + 1 : a + 11] for a in graphs if card.happened[a] == ("graph", 10)]
    assert len(batches) > 2 * 3 * 2
    for batch in batches:
        assert len({tuple(map(int, what[2])) for what in batch}) == 10
    patterns = []
    for before, at in zip(graphs[-14:], graphs[-13:], strict=False):
        between = card.happened[before:at]
        memsets = [what for what in between if what[0] == "memset"]
        flushes = [what for what in memsets if what[3] == 2 * L2_BYTES]
        assert memsets[-len(flushes) :] == flushes  # last, and nothing but the event behind them
        assert len(flushes) == 2
        assert between[-1] == ("event",)
        outputs = [what for what in memsets if what[3] == X.nbytes]
        assert {what[1] for what in outputs} == {
            int(what[2][1]) for what in card.happened[at + 1 : at + 11]
        }
        patterns.append(tuple(what[2] for what in outputs))
    assert len(set(patterns)) == len(patterns)


def test_only_a_fast_answer_that_is_right_counts(opened):
    runs = 0

    def lazy(x: Any, out: Any) -> None:
        nonlocal runs
        runs += 1
        if runs < 30:
            double(x, out)

    device = opened(Card({"a": (double, 50e-6), "b": (lazy, 10e-6)}))
    one, two = device.time([run("a"), run("b")], USUAL)
    assert one.after.checks[0].passed
    assert not two.after.checks[0].passed


def test_a_kernel_that_writes_its_input_is_seen_afterwards(opened):
    def spoils(x: Any, out: Any) -> None:
        double(x, out)
        floats(x, N)[7] = 0.0

    _, two = opened(Card({"a": (double, 5e-5), "b": (spoils, 5e-5)})).time(
        [run("a"), run("b")], USUAL
    )
    assert two.after.modified_inputs == ("x",)


def test_a_fault_while_timing_is_a_value(opened):
    def faults(x: Any, out: Any) -> None:
        raise FaultOnCard("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access")

    fault = opened(Card({"a": (double, 5e-5), "b": (faults, 5e-5)})).time(
        [run("a"), run("b")], USUAL
    )
    assert isinstance(fault, Fault)
    assert fault.outcome is Outcome.OUT_OF_BOUNDS
    assert fault.sticky


def test_a_slow_kernel_runs_as_seldom_as_can_be(opened):
    card = Card({"a": (double, 1e-3), "b": (double, 10.0)})
    found = opened(card).time([run("a"), run("b")], Sampling(10, 40, 60.0, hopeless=2.0))
    assert [len(one.samples) for one in found] == [2, 2]
    assert sum(what[:2] == ("launch", "b") for what in card.happened) == 5


class TestProfiler:
    """Through the profiler: what a search makes of it."""

    @pytest.fixture
    def profiler(self, opened: Opened) -> EventsProfiler:
        kernels = {"root": 50e-6, "same": 50e-6, "faster": 40e-6, "twin": 52.5e-6, "far": 120e-6}
        card = Card({n: (double, s) for n, s in kernels.items()}, noise=0.003)
        self.card = card
        return EventsProfiler(opened(card), chip("h200"))

    def measured(
        self, profiler: EventsProfiler, name: str, best: float = float("inf")
    ) -> Measurement:
        found = profiler.measure(*run(name), best)
        assert isinstance(found, Measurement), found
        return found

    def test_the_baseline_is_timed_against_itself(self, profiler):
        root = self.measured(profiler, "root")
        assert root.seconds == pytest.approx(50e-6, rel=0.003)
        assert root.ratio_error == pytest.approx(1.01, abs=0.003)
        assert profiler.itself.low <= 1 <= profiler.itself.high
        assert "against itself" in profiler.notes[0]
        assert "nvidia-smi" in profiler.notes[1]
        assert len(profiler.notes) == 2

    def test_a_gain_is_one_beyond_the_interval_alone(self, profiler):
        root = self.measured(profiler, "root")
        for name, speedup, low in (("faster", 1.25, True), ("twin", 1 / 1.05, False)):
            found = speedup_interval(root, self.measured(profiler, name))
            assert found[0] == pytest.approx(speedup, rel=0.005)
            assert (found[1] > 1) is low
            assert found[1] <= speedup <= found[2]
        _, low, high = speedup_interval(root, self.measured(profiler, "same"))
        assert low <= 1 <= high

    @pytest.mark.parametrize(
        ("name", "best", "rounds"),
        [
            ("far", float("inf"), 1),
            ("far", 45e-6, 1),
            ("same", 20e-6, 1),  # no slower than the input, but than what there is already
            ("same", 45e-6, 10),
            ("twin", float("inf"), 10),
        ],
    )
    def test_whoever_is_far_slower_than_the_best_is_cut(
        self, profiler, monkeypatch, name, best, rounds
    ):
        root = self.measured(profiler, "root")
        taken = []
        monkeypatch.setattr(
            rounds_module, "ratio", lambda *pair: taken.append(len(pair[0])) or ratio(*pair)
        )
        found = self.measured(profiler, name, best)
        assert max(taken) // 2 == rounds
        assert found.seconds == pytest.approx(
            1e-6 * {"far": 120, "same": 50, "twin": 52.5}[name], rel=0.02
        )
        assert found.ratio_error >= 1.01
        assert speedup_interval(root, found)[1] < 1.01

    def test_finalists_are_timed_in_turn_with_the_baseline(self, profiler):
        self.measured(profiler, "root")
        root, faster, same = profiler.settle([run("faster"), run("same")])
        assert root.ratio_error == 1.01
        assert speedup_interval(root, faster)[0] == pytest.approx(1.25, rel=0.003)
        assert speedup_interval(root, same)[1] < 1 < speedup_interval(root, same)[2]

    def test_an_offset_of_the_machine_widens_every_interval(self, profiler):
        root = self.measured(profiler, "root")
        honest = self.measured(profiler, "faster").ratio_error
        profiler.itself = ratio([1.0] * 20, [1.02] * 20)
        assert self.measured(profiler, "faster").ratio_error == pytest.approx(
            1.02 * honest, abs=0.02
        )
        assert root.ratio_error < 1.02

    def test_a_wrong_answer_of_the_timed_batch_is_no_measurement(self, opened):
        def wrong(x: Any, out: Any) -> None:
            floats(out, N)[:] = 0

        card = Card({"root": (double, 50e-6), "wrong": (wrong, 10e-6)})
        profiler = EventsProfiler(opened(card), chip("h200"))
        self.measured(profiler, "root")
        assert isinstance(profiler.measure(*run("wrong")), Execution)

    @pytest.mark.parametrize(("root", "spared"), [(20e-3, True), (100e-6, False)])
    def test_a_slow_baseline_is_not_timed_beside_what_is_far_faster(self, opened, root, spared):
        kernels = {"root": root, "fast": 50e-6, "faster": 40e-6}
        card = Card({n: (double, s) for n, s in kernels.items()}, noise=0.003)
        profiler = EventsProfiler(opened(card), chip("h200"))
        self.measured(profiler, "root")
        fast = self.measured(profiler, "fast")
        profiler.follow(*run("fast"), fast)
        card.happened.clear()
        faster = self.measured(profiler, "faster")
        launched = {what[1] for what in card.happened if what[0] == "launch"}
        assert launched == {"faster", "fast" if spared else "root"}
        assert faster.seconds == pytest.approx(40e-6, rel=0.01)
        assert (faster.ratio_error > fast.ratio_error) is spared
        settled = profiler.settle([run("faster")])
        assert settled[1].seconds == pytest.approx(40e-6, rel=0.01)
