"""Classes, floors, and roofs that are kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from optiml_magic.chips import CHIPS, chip
from optiml_magic.compilers import sass
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.devices.base import Case, Draw, Fault, Job
from optiml_magic.model.build import Build, CompileFailure
from optiml_magic.model.measurement import Bound, Measurement, Metric
from optiml_magic.model.roofline import Standing, Work
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome
from optiml_magic.optimize import evaluate_once
from optiml_magic.profilers import roofs
from optiml_magic.profilers.roofline import stand
from optiml_magic.profilers.roofs import Card, published
from optiml_magic.reports.standing import above_floor
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task
from tests.present import sampled

H200 = published(chip("h200"))
STREAM = Work(1e6, 48e6, "traced", "traced")  # 10 us of device memory
PRODUCT = Work(67e9, 1e6, "traced", "traced")  # 1 ms of arithmetic
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
L2 = "lts__throughput.avg.pct_of_peak_sustained_elapsed"


def timed(seconds: float = 1e-3, **percent: float) -> Measurement:
    names = {"sm": SM, "dram": DRAM, "l2": L2}
    metrics = tuple(Metric(names[name], value, "%", "ncu") for name, value in percent.items())
    return Measurement("h200", "events", seconds, 1.01, metrics, (Bound("measured", seconds),), ())


@pytest.mark.parametrize(
    ("measured", "work", "kind", "because"),
    [
        (timed(sm=20, dram=85), STREAM, "memory", "compute 20 %, memory 85 %"),
        (timed(sm=85, dram=20), PRODUCT, "compute", "compute 85 %, memory 20 %"),
        (timed(sm=85, dram=20), STREAM, "memory", "intensity says so, though ncu saw"),
        (timed(sm=10, dram=70), PRODUCT, "compute", "intensity says so, though ncu saw"),
        (timed(sm=9, dram=6, l2=79), STREAM, "memory", "memory 79 %"),
        (timed(sm=30, dram=33), STREAM, "latency", "nothing is busy"),
        (timed(sm=80, dram=82), Work(None, None, "unknown", "unknown"), "mixed", "both are busy"),
        (timed(3e-6, sm=1, dram=1), STREAM, "launch", "an empty launch takes 2.5 us"),
        (timed(), STREAM, "memory", "no counters"),
        (timed(), Work(None, None, "unknown", "unknown"), "mixed", "neither counters"),
        (timed(), Work(48e6 * 14, 48e6, "traced", "traced"), "mixed", "near the ridge"),
    ],
)
def test_classes_on_a_card(measured: Measurement, work: Work, kind: str, because: str) -> None:
    found = stand(measured, work, H200)
    assert found.kind == kind
    assert because in found.because


@pytest.mark.parametrize(
    ("work", "floor"),
    [
        (STREAM, 10e-6),
        (PRODUCT, 67e9 / chip("h200").fp32_flops),
        (replace(PRODUCT, precision="fp64"), 67e9 / chip("h200").fp64_flops),
        (Work(10, 10, "traced", "traced"), 2.5e-6),  # nothing is faster than a launch
        (Work(None, None, "unknown", "unknown"), None),
    ],
)
def test_floors(work: Work, floor: float | None) -> None:
    found = Standing("mixed", "", work, H200, 1e-3)
    assert found.floor == (None if floor is None else pytest.approx(floor))
    assert found.distance == (None if floor is None else pytest.approx(1e-3 / floor))


def test_an_emulated_profile_says_where_its_work_comes_from() -> None:
    settings = resolve({"device": "emulated:h200", "verify_seeds": 1})
    task = known_task("matmul_naive", m=64, n=64, k=64)
    found = evaluate_once(task, settings).evaluation.standing
    assert found is not None
    assert (found.work.flops, found.work.flops_basis) == (2 * 64**3, "traced")
    assert (found.work.bytes, found.work.bytes_basis) == (3 * 64 * 64 * 4, "traced")
    assert found.roofs.source == "published"
    declared = evaluate_once(replace(task, flops=77, bytes=99), settings).evaluation.standing
    assert declared is not None
    assert declared.work == Work(77, 99, "declared", "declared")
    counted = evaluate_once(replace(task, reference=None, outputs={"c": "f4[m, n]"}), settings)
    assert counted.evaluation.standing is not None
    assert counted.evaluation.standing.work.flops_basis == "counted"
    assert counted.evaluation.standing.work.flops == 2 * 64**3


def test_a_reference_that_does_more_than_the_task_needs_sets_no_floor() -> None:
    def reference(a: np.ndarray, rows: int, cols: int) -> np.ndarray:
        return a.sum(1) if (a @ a.T).any() else a[:, 0]

    task = replace(known_task("row_sum_naive", rows=64, cols=64), reference=reference)
    settings = resolve({"device": "emulated:h200", "verify_seeds": 1})
    found = evaluate_once(task, settings).evaluation.standing
    assert found is not None
    assert (found.work.flops, found.work.flops_basis) == (64 * 64, "counted")


def test_what_is_below_its_floor_is_told_why() -> None:
    assert "stayed in the caches" in above_floor(stand(timed(5e-6), STREAM, H200))
    assert "declare its flops" in above_floor(stand(timed(5e-6), PRODUCT, H200))


@pytest.mark.parametrize("shift", sampled([1, 3], 2))
def test_a_misaligned_copy_is_not_estimated_to_be_faster(shift: int) -> None:
    text = (
        "#pragma optiml launch copy grid(cdiv(n, 256)) block(256)\n"
        "__global__ void copy(const float* x, float* out, int n) {\n"
        "    int i = blockIdx.x * 256 + threadIdx.x;\n"
        "    if (i < n) out[i] = x[i + SHIFT];\n}\n"
    )
    n = 1 << 16
    x = np.arange(n + shift, dtype=np.float32)
    settings = resolve({"device": "emulated:h200", "verify_seeds": 1})
    aligned, misaligned = (
        evaluate_once(
            Task(text.replace("SHIFT", str(s)), inputs={"x": x, "n": n}, outputs={"out": "f4[n]"}),
            settings,
            counters=False,
        ).evaluation.measurement
        for s in (0, shift)
    )
    assert aligned is not None
    assert misaligned is not None
    assert misaligned.seconds > 0.99 * aligned.seconds


def compiled(text: str, names: tuple[str, ...]) -> Build | CompileFailure:
    return NvrtcCompiler().compile(text, names, chip("h200"), CompileOptions())


class Card0:
    """A card on which each kernel takes as long as it is told, and twice that beside others."""

    def __init__(self, seconds: dict[str, float], fault: str = "") -> None:
        self.seconds, self.fault = seconds, fault
        self.ran: list[str] = []

    def put(self, case: Case) -> None:
        self.case = case

    def draw(self, build: Build, job: Job, seconds: float) -> Draw | Fault:
        kernel = job.plan.launches[0].kernel
        self.ran.append(kernel)
        if kernel == self.fault:
            return Fault(Outcome.TRAP, "the kernel trapped")
        crowded = self.ran.count(kernel) % 2
        return Draw(1000, 1.0, (1 + crowded) * 1000 * self.seconds[kernel])


TIMES = {"copy": 0.25e-3, "fma32": 0.6e-3, "fma64": 1.2e-3, "mma": 3e-3, "nothing": 2e-6}


def test_roofs_are_measured_once_for_a_card_and_its_driver(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(roofs, "_BYTES", 1 << 20)
    device, card = Card0(TIMES), Card("uuid", "580")
    found = roofs.roofs(chip("h200"), card, tmp_path, device, compiled)  # type: ignore[arg-type]
    assert found.source == "measured"
    assert found.memory == pytest.approx(2 * (1 << 20) / 0.25e-3)
    threads = 132 * roofs._BLOCKS_PER_SM * roofs._THREADS
    assert found.fp32 == pytest.approx(2 * threads * roofs._STEPS * roofs._CHAINS / 0.6e-3)
    assert found.tensor == chip("h200").tensor_flops  # mma.sync is slower: the published one
    assert set(device.ran) == set(TIMES)
    once = len(device.ran)
    again = roofs.roofs(chip("h200"), card, tmp_path, device, compiled)  # type: ignore[arg-type]
    assert again == found
    assert len(device.ran) == once
    roofs.roofs(chip("h200"), Card("uuid", "590"), tmp_path, device, compiled)  # type: ignore[arg-type]
    assert len(device.ran) == 2 * once


def test_a_card_that_does_not_measure_has_the_published_roofs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(roofs, "_BYTES", 1 << 20)
    device = Card0(TIMES, fault="fma64")
    found = roofs.roofs(chip("h200"), Card("u", "d"), tmp_path, device, compiled)  # type: ignore[arg-type]
    assert found.source == "published"
    assert "fma64 did not run: the kernel trapped" in found.note
    assert not list(tmp_path.iterdir())  # tried again the next time


@pytest.mark.skipif(sass.nvdisasm() is None, reason="nvdisasm is not installed")
def test_the_kernels_do_what_they_are_counted_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The inner loop is unrolled and holds nothing but the chains."""
    builds: list[Build] = []

    def keep(text: str, names: tuple[str, ...]) -> Build | CompileFailure:
        build = compiled(text, names)
        assert isinstance(build, Build), build
        builds.append(build)
        return build

    monkeypatch.setattr(roofs, "_BYTES", 1 << 20)
    roofs.measure(chip("h200"), Card0(TIMES), keep)  # type: ignore[arg-type]
    code = sass.disassemble(builds[0].cubin)
    assert code is not None
    for kernel, opcode in (("fma32", "FFMA"), ("fma64", "DFMA"), ("mma", "HMMA")):
        words = Counter(i.opcode.split(".")[0] for i in code[kernel])
        assert words[opcode] >= roofs._CHAINS, words
        assert words[opcode] > 0.5 * words.total(), words
        assert not words["LDL"] + words["STL"], words
    assert any(i.opcode == "LDG.E.128" for i in code["copy"])


def test_published_tensor_rates() -> None:
    """Of the datasheets, dense half precision with float32 sums, at boost clocks, in TFLOP/s."""
    for name, tflops in (("a100", 312), ("t4", 65), ("l4", 121), ("rtx4090", 165)):
        assert CHIPS[name].tensor_flops == pytest.approx(tflops * 1e12, rel=0.02)
