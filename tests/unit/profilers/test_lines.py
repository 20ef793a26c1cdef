"""ncu's figures by instruction, from an H200, against the emulated device's counts by line."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from optiml_magic.compilers import sass
from optiml_magic.model.counters import KernelCounters
from optiml_magic.optimize import evaluate_once
from optiml_magic.profilers import lines, opcodes
from optiml_magic.profilers.report import Instruction
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task
from tests.present import sampled

GOLDEN = Path(__file__).parents[2] / "golden" / "ncu"
NAMES = [path.stem for path in sorted(GOLDEN.glob("*.json"))]
needs_nvdisasm = pytest.mark.skipif(sass.nvdisasm() is None, reason="nvdisasm is not installed")


def recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())
    return found


def by_ncu(name: str, *, code: bool = True, sass_text: bool = True) -> KernelCounters:
    record = recorded(name)
    disassembled = sass.disassemble(base64.b64decode(record["cubin"])) if code else None
    instructions = [Instruction(**one) for one in record["instructions"]]
    if not sass_text:
        instructions = [replace(one, sass="") for one in instructions]
    kernel = record["kernel"]
    found = lines.counters(kernel, instructions, (disassembled or {}).get(kernel), record["ptx"])
    assert found is not None
    return found


def accesses(counters: KernelCounters) -> dict[tuple[int, str, str], list[int]]:
    found: dict[tuple[int, str, str], list[int]] = {}
    for m in counters.memory:
        sums = found.setdefault((m.line, m.space, m.access), [0] * 5)
        for at, value in enumerate((m.sectors, m.wavefronts, m.ideal, m.lanes, m.lines)):
            sums[at] += value
    return found


@needs_nvdisasm
@pytest.mark.parametrize("name", sampled(NAMES, 3))
def test_every_access_counts_what_the_emulated_device_does(name: str) -> None:
    settings = resolve({"device": "emulated:h200", "verify_seeds": 1})
    measured = evaluate_once(known_task(name), settings).evaluation.measurement
    assert measured is not None
    assert accesses(by_ncu(name)) == accesses(measured.kernels[0])


@needs_nvdisasm
@pytest.mark.parametrize("name", NAMES)
def test_the_report_and_our_own_table_name_the_same_lines(name: str) -> None:
    ours, theirs = by_ncu(name), by_ncu(name, code=False)
    assert accesses(ours) == accesses(theirs)
    assert ours.warp_instructions == sum(line.warp_instructions for line in ours.lines)


@needs_nvdisasm
def test_the_code_of_nvdisasm_will_do_where_the_report_has_none() -> None:
    assert accesses(by_ncu("histogram", sass_text=False)) == accesses(by_ncu("histogram"))


def test_samples_say_on_which_line_warps_wait() -> None:
    waits = {line.line: line.stalls for line in by_ncu("transpose_naive", code=False).lines}
    assert max(waits[6], key=lambda why: waits[6][why]) == "long_scoreboard"
    assert sum(n for stalls in waits.values() for n in stalls.values()) > 100


def test_no_figures_by_instruction_are_no_counters() -> None:
    assert lines.counters("k", [], None, "") is None


@pytest.mark.parametrize(
    ("text", "opcode", "kind", "flops"),
    [
        ("@!P0 LDG.E.128.CONSTANT R4, desc[UR4][R2.64]", "LDG.E.128.CONSTANT", "memory", 0),
        ("FFMA R9, R2, UR6, R5", "FFMA", "fp32", 2),
        ("DADD R2, R2, R4", "DADD", "fp64", 1),
        ("HFMA2.BF16_V2 R2, R3, R4, R5", "HFMA2.BF16_V2", "fp16", 4),
        ("HFMA2.MMA R9, -RZ, RZ, 0, 0", "MOV", "other", 0),
        ("MUFU.RCP R0, R3", "MUFU.RCP", "sfu", 0),
        ("UIADD3 UR4, UR4, 0x1, URZ", "UIADD3", "int", 0),
        ("HMMA.16816.F32 R4, R4, R12, R8", "HMMA.16816.F32", "tensor", 2 * 16 * 8 * 16 / 32),
        ("HGMMA.64x256x16.F32 R24, gdesc[UR8]", "HGMMA.64x256x16.F32", "tensor",
         2 * 64 * 256 * 16 / 128),
        ("BAR.SYNC.DEFER_BLOCKING 0x0", "BAR.SYNC.DEFER_BLOCKING", "barrier", 0),
        ("@P0 EXIT", "EXIT", "control", 0),
    ],
)  # fmt: skip
def test_opcodes(text: str, opcode: str, kind: str, flops: float) -> None:
    found = opcodes.opcode_of(text)
    assert (found, opcodes.kind(found), opcodes.flops(found)[1]) == (opcode, kind, flops)


@pytest.mark.parametrize(
    ("opcode", "wanted"),
    [
        ("LDG.E", ("global", "load", 4)),
        ("LDG.E.128", ("global", "load", 16)),
        ("STS.U8", ("shared", "store", 1)),
        ("ATOMG.E.ADD.F32.FTZ.RN.STRONG.GPU", ("global", "atomic", 4)),
        ("LDL.64", ("local", "load", 8)),
        ("LDC.64", None),
    ],
)
def test_widths_of_accesses(opcode: str, wanted: Any) -> None:
    found = opcodes.access(opcode)
    assert (tuple(found) if found else None) == wanted
