"""Counts weighted by the machine code, on cubins that NVRTC made."""

from __future__ import annotations

import pytest

from optiml_magic.compilers import sass
from optiml_magic.model.measurement import Measurement
from optiml_magic.optimize import evaluate_once
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task
from tests.present import sampled

SIZES = {
    "matmul_tiled": {"m": 64, "n": 64, "k": 64},
    "matmul_naive": {"m": 64, "n": 64, "k": 64},
    "row_sum": {"rows": 16, "cols": 512},
    "transpose_tiled": {"rows": 64, "cols": 64},
    "softmax": {"rows": 8, "cols": 256},
}
needs_nvdisasm = pytest.mark.skipif(sass.nvdisasm() is None, reason="nvdisasm is not installed")


def measured(name: str) -> Measurement:
    settings = resolve({"device": "emulated:h200", "verify_seeds": 1})
    found = evaluate_once(known_task(name, **SIZES[name]), settings).evaluation.measurement
    assert found is not None
    return found


def weighted(found: Measurement, name: str) -> float | None:
    return next((m.value for m in found.metrics if (m.name, m.source) == (name, "sass")), None)


@needs_nvdisasm
@pytest.mark.parametrize("name", sampled(SIZES, 4))
def test_accesses_to_global_memory_stay_as_many(name: str) -> None:
    """ptxas neither merges nor drops them here, however often it unrolls."""
    found = measured(name)
    for short in ("ld", "st"):
        requests = found.get(f"l1tex__t_requests_pipe_lsu_mem_global_op_{short}.sum")
        assert weighted(found, f"smsp__inst_executed_op_global_{short}.sum") == requests


@needs_nvdisasm
def test_merged_loads_from_shared_memory_count_once() -> None:
    """ptxas makes loads of 128 bits of the row that each lane reads along."""
    found = measured("matmul_tiled")
    requests = sum(
        m.requests for m in found.kernels[0].memory if (m.space, m.access) == ("shared", "load")
    )
    executed = weighted(found, "smsp__inst_executed_op_shared_ld.sum")
    assert executed is not None
    assert requests / 4 <= executed < requests


@needs_nvdisasm
def test_lines_add_up_to_the_whole() -> None:
    found = measured("softmax")
    whole = weighted(found, "smsp__inst_executed.sum")
    assert whole is not None
    lines = [line.machine_instructions for line in found.kernels[0].lines]
    assert None not in lines
    assert sum(x or 0 for x in lines) == pytest.approx(whole, rel=1e-3)


@pytest.mark.usefixtures("own_caches")
@pytest.mark.slow
def test_without_nvdisasm_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sass, "nvdisasm", lambda: None)
    found = measured("transpose_tiled")
    assert weighted(found, "smsp__inst_executed.sum") is None
    assert all(line.machine_instructions is None for line in found.kernels[0].lines)
