"""Every level of measurement on a real card: vocabulary, lines, rules, roofs, energy, refusals."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path

import pytest

from optiml_magic.commands.views import ProfileView
from optiml_magic.devices.base import Job
from optiml_magic.evaluation import Evaluator, stages
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.vocabulary import VOCABULARY
from optiml_magic.optimize import evaluate_once
from optiml_magic.preparation import Prepared
from optiml_magic.problem import prepare
from optiml_magic.profilers import ncu
from optiml_magic.profilers.ncu import NcuCounters
from optiml_magic.profilers.permission import permission
from optiml_magic.session import roofs_of, session
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import NAMES, known_task

pytestmark = pytest.mark.gpu
needs_ncu = pytest.mark.skipif(shutil.which("ncu") is None, reason="no ncu on this machine")


def profiled(name: str, device: str = "cuda") -> Measurement:
    settings = resolve({"device": device, "verify_seeds": 1})
    evaluation = evaluate_once(known_task(name), settings).evaluation
    assert evaluation.measurement is not None, evaluation.verdict
    return evaluation.measurement


@needs_ncu
def test_ncu_knows_every_name_of_the_vocabulary() -> None:
    """Asked for all of them at once, it refuses none, and gives nearly all a value."""
    problem = prepare(known_task("row_sum"), seeds=1)
    settings = resolve({"device": "cuda", "verify_seeds": 1})
    cases = [instance.case for instance in problem.instances]
    with session(settings) as members:
        evaluator = Evaluator(problem, members.tools)
        prepared = stages.prepare(problem.program.text, evaluator._context)
        assert isinstance(prepared, Prepared)
        (instance, plan) = prepared.plans[0]
        job = Job(instance.case.key, plan, 0, False, 10**10)
        names = tuple(n for n, entry in VOCABULARY.items() if "ncu" in entry.sources)
        counters = NcuCounters(members.choice.name, cases, metrics=names)
        found = counters.count([(prepared.build, job)])
    assert isinstance(found, tuple), found
    unknown = [m.name for m in found[0].missing if "does not know" in m.reason]
    assert not unknown
    # A share of nothing is not a number: this kernel has no branches that diverge, no atomics.
    empty = [m.name for m in found[0].missing if "gave no value" in m.reason]
    assert all(VOCABULARY[name].combine == "mean" for name in empty), empty
    assert not [m for m in found[0].missing if m.name == "lines"]
    assert not counters._manners.by_section  # it takes those by line by their names


@needs_ncu
def test_a_process_that_counted_before_tells_of_its_own_runs_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ncu, "_SOON", math.inf)  # however busy the machine is
    problem = prepare(known_task("transpose_naive"), seeds=1)
    settings = resolve({"device": "cuda", "verify_seeds": 1})
    cases = [instance.case for instance in problem.instances]
    with session(settings) as members:
        context = Evaluator(problem, members.tools)._context
        prepared = stages.prepare(problem.program.text, context)
        assert isinstance(prepared, Prepared)
        run = (prepared.build, context.job(prepared))
        counters = NcuCounters(members.choice.name, cases)
        first = counters.count([run])
        counters.warm(count=2)
        for process in counters._waiting:
            assert process._priming is not None
            assert process._priming.result() == ""
        assert [process.primed for process in counters._waiting] == [1, 1]
        second, third = counters.count([run, run]), counters.count([run])
    assert isinstance(first, tuple)
    assert isinstance(second, tuple)
    assert isinstance(third, tuple)
    assert [len(found) for found in (first, second, third)] == [1, 2, 1]
    sectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
    values = {m.value for one in (*first, *second, *third) for m in one.metrics
              if m.name == sectors}  # fmt: skip
    assert len(values) == 1


@needs_ncu
@pytest.mark.parametrize("name", NAMES)
def test_accesses_by_line_are_those_of_the_emulated_device(name: str) -> None:
    found = {}
    for device in ("cuda", "emulated:h200"):
        sums: dict[tuple[int, str], list[int]] = {}
        for kernel in profiled(name, device).kernels:
            assert kernel.source == ("ncu" if device == "cuda" else "emulated")
            for m in kernel.memory:
                if m.space == "global":
                    line = sums.setdefault((m.line, m.access), [0, 0, 0])
                    for at, value in enumerate((m.sectors, m.ideal, m.lanes)):
                        line[at] += value
        found[device] = sums
    assert found["cuda"] == found["emulated:h200"]
    assert found["cuda"]


@needs_ncu
def test_samples_and_rules_come_with_the_profile() -> None:
    measured = profiled("transpose_naive")
    waits = [line for k in measured.kernels for line in k.lines if line.stalls]
    assert waits
    assert all(line.line for line in waits if sum(line.stalls.values()) > 100)
    rules = {rule.rule: rule for rule in measured.rules}
    assert "UncoalescedGlobalAccess" in rules
    speedup = rules["UncoalescedGlobalAccess"].speedup
    assert speedup is not None
    assert speedup > 1.5
    assert "@" not in rules["UncoalescedGlobalAccess"].message


@needs_ncu
def test_the_static_mix_and_the_counters_agree() -> None:
    measured = profiled("matmul_tiled")
    assert (measured.get("code__instructions_fp32") or 0) > 0
    assert measured.get("flop_count.sum") == pytest.approx(2 * 256**3, rel=0.2)


def test_roofs_are_plausible_and_kept(tmp_path: Path) -> None:
    settings = resolve({"device": "cuda", "home": tmp_path})
    with session(settings) as members:
        found = members.tools.roofs()
        chip = members.choice.chip
        again = roofs_of(members.choice, members.tools.compiler, members.tools.device, settings)()  # type: ignore[arg-type]
    assert again == found
    assert found.source == "measured"
    assert 0.6 < found.memory / chip.dram_bandwidth < 1.05
    assert 0.6 < found.fp32 / chip.fp32_flops < 1.05
    assert 0.6 < found.fp64 / chip.fp64_flops < 1.05
    assert 2e-7 < found.launch < 2e-5
    if chip.name == "h200":
        assert found.memory > 3e12


def test_energy_is_measured_on_request() -> None:
    settings = resolve({"device": "cuda", "verify_seeds": 1, "energy": True})
    checked = evaluate_once(known_task("saxpy"), settings)
    measured = checked.evaluation.measurement
    assert measured is not None
    joules, watts = measured.get("nvml__energy.sum"), measured.get("nvml__power.avg")
    assert joules is not None, measured.why("nvml__energy.sum")
    assert joules > 0
    assert watts is not None
    assert 20 < watts < 2000
    assert (measured.get("nvml__clock_sm.avg") or 0) > 1e8
    assert "nvml__energy.sum" in repr(ProfileView(checked))


def test_without_ncu_everything_works_and_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folders = os.environ["PATH"].split(os.pathsep)
    kept = [folder for folder in folders if not shutil.which("ncu", path=folder)]
    monkeypatch.setenv("PATH", os.pathsep.join(kept))
    assert shutil.which("ncu") is None
    settings = resolve({"device": "cuda", "verify_seeds": 1})
    checked = evaluate_once(known_task("transpose_naive"), settings)
    evaluation = checked.evaluation
    assert evaluation.verdict.passed
    assert evaluation.measurement is not None
    assert evaluation.standing is not None
    assert evaluation.standing.kind == "memory"
    assert evaluation.standing.distance is not None
    assert "ncu is not on the PATH" in evaluation.measurement.why("dram__bytes.sum")
    assert evaluation.measurement.get("code__instructions") is not None
    assert "missing counters: ncu is not on the PATH" in repr(ProfileView(checked))
    assert any(note.startswith("no hardware counters: ") for note in checked.notes)
    assert "install Nsight Compute" in permission(checked.notes, emulated=False).remedy


@needs_ncu
def test_without_the_reader_the_counters_come_and_the_lines_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from optiml_magic.profilers.report import Unreadable

    monkeypatch.setattr(ncu, "load", lambda *_: Unreadable("there is no reader"))
    measured = profiled("transpose_naive")
    sectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
    assert measured.get(sectors) == 131072
    assert not measured.kernels
    assert "there is no reader" in " ".join(m.reason for m in measured.missing)
