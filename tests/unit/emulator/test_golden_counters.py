"""What ncu counted on a GPU beside what the emulated device counts for the very same PTX.

The files come from ``benchmarks/emulator/collect_ncu.py``; docs/emulator/counters.md has the table.
"""

import base64
import json
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from optiml_magic import emulator
from optiml_magic.compilers.sass import disassemble
from optiml_magic.model.counters import KernelCounters
from optiml_magic.profilers.machine import weigh
from tests.present import sampled

from .conftest import launch

FOLDER = Path(__file__).parents[2] / "golden" / "counters"
NAMES = sampled(sorted(path.stem for path in FOLDER.glob("*.json")))
pytestmark = pytest.mark.skipif(not NAMES, reason="no figures of ncu are recorded yet")

SHORT = {"load": "ld", "store": "st"}
# Where ncu and the model differ, and by what factor at most. Everything else has to be equal.
DEVIATIONS: dict[tuple[str, str], float] = {}
# Measured and not modelled: float atomics on shared memory are a loop of compare-and-swap on the
# card; ptxas unrolls, predicates or converges these kernels otherwise than their PTX is written.
NOT_MODELLED = {
    "conflicts": {"shared_atomic_float"},
    "weights": {
        "columns", "loop_by_lane", "shared_atomic_float", "shared_bytes", "shared_random",
        "shared_same", "shared_stride_2", "shared_stride_32", "shared_stride_33", "switch_lanes",
    },
}  # fmt: skip


def known(what: str) -> list:
    """Every kernel, those that are not modelled as failures that are expected and must stay so."""
    reason = f"{what}: the card counts otherwise, see docs/emulator/counters.md"
    mark = pytest.mark.xfail(reason=reason, raises=AssertionError)
    return [pytest.param(n, marks=[mark] if n in NOT_MODELLED[what] else []) for n in NAMES]


def record_of(name: str) -> dict:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def arrays(arguments: list[dict]) -> list:
    """As ``benchmarks/emulator/counted.py`` makes them: each from its own seed."""
    made = []
    for seed, argument in enumerate(arguments):
        dtype = np.dtype(argument["dtype"])
        if "value" in argument:
            made.append(dtype.type(argument["value"]))
            continue
        rng, low, high = np.random.default_rng(seed), argument["low"], argument["high"]
        real = dtype.kind == "f"
        draw = rng.uniform(low, high, argument["size"]) if real else None
        whole = None if real else rng.integers(int(low), int(high), argument["size"])
        made.append((draw if real else whole).astype(dtype))
    return made


@cache
def replayed(name: str) -> KernelCounters:
    record = record_of(name)
    run = launch(
        emulator.load(record["ptx"]), record["lowered"], tuple(record["grid"]),
        tuple(record["block"]), *arrays(record["arguments"]), instructions=10**11,
    )  # fmt: skip
    assert run.fault is None, run.fault
    return run.counters


def compared(name: str, metric: str, got: float) -> None:
    """Equal, or within what is known of this kernel and metric."""
    wanted = record_of(name)["ncu"].get(metric)
    if wanted is None:
        return
    factor = DEVIATIONS.get((name, metric), 1.0)
    assert wanted / factor <= got <= wanted * factor, f"{metric}: ncu {wanted:.0f}, here {got:.0f}"


def total(counters: KernelCounters, space: str, access: str, field: str) -> int:
    return sum(getattr(m, field) for m in counters.memory if (m.space, m.access) == (space, access))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("space", ["global", "local"])
def test_sectors(name: str, space: str) -> None:
    counters = replayed(name)
    for access, short in SHORT.items():
        metric = f"l1tex__t_sectors_pipe_lsu_mem_{space}_op_{short}.sum"
        compared(name, metric, total(counters, space, access, "sectors"))


@pytest.mark.parametrize("name", known("conflicts"))
def test_bank_conflicts(name: str) -> None:
    counters = replayed(name)
    for access, short in SHORT.items():
        waves, ideal = (total(counters, "shared", access, f) for f in ("wavefronts", "ideal"))
        metric = f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{short}.sum"
        compared(name, metric, waves - ideal)


@pytest.mark.parametrize("name", known("weights"))
def test_instructions_weighted_by_the_machine_code(name: str) -> None:
    record, counters = record_of(name), replayed(name)
    code = disassemble(zlib.decompress(base64.b64decode(record["cubin"])))
    if code is None:
        pytest.skip("nvdisasm is not installed")
    found = weigh(record["ptx"], code[record["lowered"]], counters)
    wanted = record["ncu"]["smsp__inst_executed.sum"]
    assert 0.8 < found.total / wanted < 1.25, f"ncu {wanted:.0f}, here {found.total}"
