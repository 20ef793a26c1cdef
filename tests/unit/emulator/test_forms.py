"""Every form of every computing instruction, as ptxas accepts it, against the oracle."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optiml_magic import emulator
from tests.oracle.machine import Module
from tests.oracle.numbers import FORMATS, decode
from tests.present import SOAK, examples, sampled

from .conftest import launch, ptx_of
from .forms import FAMILIES, Form, size, source

ARCHITECTURES = (75, 80, 86, 90)
SPECIAL = [0, 1, 2, 31, 32, 33, 63, 64, 0x7F, 0x80, 0x7FFF, 0x8000, 0x7FFFFFFF, 0x80000000]
SPECIAL += [0xFFFFFFFF, 1 << 63, (1 << 63) - 1, (1 << 64) - 1, 0x7F800000, 0xFF800000, 0x7FC00000]
SPECIAL += [0x3F800000, 0xBF800000, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x4F000000, 0xCF000000]
SPECIAL += [0x3C003C00, 0x7C00FC00, 0x7E000001, 0x7BFF0400, 0x3F803F80, 0x7F80FF80, 0x40490FDB]
SPECIAL += [0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48, 0x3FF << 52, 0xBFE << 52, (1 << 52) - 1]
SPECIAL += [1 << 52, (0x7FF << 52) - 1, 0x43E << 52, 0xC3E << 52, 0x41DFFFFFFFC00000, 0x3810 << 48]
word = st.one_of(
    st.sampled_from(SPECIAL),
    st.integers(0, 2**64 - 1),
    st.integers(0, 300),
    st.floats(width=32).map(lambda x: int(np.float32(x).view(np.uint32))),
    st.floats(-100, 100, width=32).map(lambda x: int(np.float32(x).view(np.uint32)) * 0x100000001),
    st.floats().map(lambda x: int(np.float64(x).view(np.uint64))),
    st.floats(width=16).map(lambda x: int(np.float16(x).view(np.uint16)) * 0x1000100010001),
)
triples = st.lists(st.tuples(word, word, word), min_size=32, max_size=32)


def agrees(form: Form, got: int, wanted: int) -> bool:
    """The same bits; any NaN for a NaN; approximations within the error that the ISA states."""
    mask = (1 << size(form.type)) - 1
    got, wanted = got & mask, wanted & mask
    kind = "f32" if form.type == "tf32" else form.type.removesuffix("x2")
    if got == wanted or kind not in FORMATS:
        return got == wanted
    fmt = FORMATS[kind]
    for at in range(0, size(form.type), fmt.width):
        x, y = (decode(v >> at & (1 << fmt.width) - 1, fmt) for v in (got, wanted))
        x, y = float(x), float(y)
        same = x == y and math.copysign(1, x) == math.copysign(1, y)
        close = form.error and abs(x - y) <= form.error * max(1.0 if abs(y) < 1 else abs(y), abs(y))
        if not (same or (math.isnan(x) and math.isnan(y)) or close):
            return False
    return True


class Both:
    """One family of forms, compiled for one architecture, for both interpreters."""

    def __init__(self, family: str, sm: int) -> None:
        # Their machine code costs the time; the sample of other architectures below has them all.
        self.forms = [f for f in FAMILIES[family]() if f.sm <= sm][:: 1 if SOAK else 6]
        ptx = ptx_of(source(self.forms), f"--gpu-architecture=sm_{sm}")
        self.here, self.oracle = emulator.load(ptx), Module(ptx)

    def check(self, operands: list[tuple[int, int, int]]) -> None:
        n = len(operands)
        data = np.array(operands, np.uint64).T.copy()
        got, wanted = (np.zeros((len(self.forms), n), np.uint64) for _ in range(2))
        run = launch(self.here, "k", 1, n, data, got, count=False)
        assert run.fault is None, run.fault
        self.oracle.launch("k", (1, 1, 1), (n, 1, 1), [data, wanted])
        for form, here, there in zip(self.forms, got.tolist(), wanted.tolist(), strict=True):
            for triple, x, y in zip(operands, here, there, strict=True):
                case = (
                    f"{form.text} of {', '.join(map(hex, triple))}: {x:#x}, the oracle says {y:#x}"
                )
                assert agrees(form, x, y), case


@pytest.fixture(scope="module")
def both():
    made = {}

    def of(family: str, sm: int) -> Both:
        if (family, sm) not in made:
            made[family, sm] = Both(family, sm)
        return made[family, sm]

    yield of
    made.clear()


@pytest.mark.parametrize("sm", ARCHITECTURES if SOAK else (90,))
@pytest.mark.parametrize("family", FAMILIES)
def test_forms(both, family, sm):
    pair = both(family, sm)
    pick = np.random.default_rng(sum(map(ord, family)))
    for _ in range(examples(1, 20)):
        a, b, c = (pick.permutation(len(SPECIAL))[:32] for _ in range(3))
        pair.check([(SPECIAL[i], SPECIAL[j], SPECIAL[k]) for i, j, k in zip(a, b, c, strict=True)])

    @settings(max_examples=30)
    @given(triples)
    def drawn(operands):
        pair.check(operands)

    if SOAK:
        drawn()


@pytest.mark.parametrize("sm", ARCHITECTURES if SOAK else (86,))
def test_every_architecture_has_the_forms_that_it_should(sm):
    """NVRTC and ptxas accept them all, and the emulator takes what they make of them."""
    for family in FAMILIES:
        forms = [f for f in FAMILIES[family]() if f.sm <= sm]
        assert len(forms) > 20
        forms = sampled(forms, 3)
        if sm != 90:
            lowered(ptx_of(source(forms), f"--gpu-architecture=sm_{sm}"))


def lowered(ptx: str) -> None:
    """Everything but the machine code, which is what costs time."""
    from optiml_magic.emulator import calls
    from optiml_magic.emulator.instructions.table import lower
    from optiml_magic.emulator.ir import Code
    from optiml_magic.emulator.lanes import Lanes
    from optiml_magic.emulator.sites import Tables
    from optiml_magic.ptx import cfg
    from optiml_magic.ptx.parser import parse

    module = parse(ptx)
    graph = cfg.build(calls.inline(module, module.functions["k"]))
    names = {p.name: 0 for p in module.functions["k"].params}
    lanes = Lanes(Code(), {}, names | {f"param:{n}": 0 for n in names}, "%mask", Tables())
    for block in graph.blocks:
        for instruction in block.instructions:
            lower(lanes, instruction)
