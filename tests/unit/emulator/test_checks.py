"""Every faulty kernel is caught with the right kind and lines; no twin is accused, in any order."""

from __future__ import annotations

from functools import cache

import pytest

from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.devices.base import Execution, Order
from optiml_magic.devices.emulated import EmulatedDevice
from optiml_magic.model.build import Build
from optiml_magic.testing import faulty

ORDERS: tuple[Order, ...] = ("forward", "reverse", 1)


@cache
def compiler() -> NvrtcCompiler:
    return NvrtcCompiler()


def build(example: faulty.Example) -> Build:
    built = compiler().compile(example.text, example.kernels, chip("h200"), CompileOptions())
    assert isinstance(built, Build), built
    return built


def checked(example: faulty.Example, *orders: Order) -> list[Execution]:
    device, built = EmulatedDevice("h200"), build(example)
    device.put(example.case())
    return [device.execute(built, example.job(built, checks=True, order=o)) for o in orders]


def lines_by_kind(execution: Execution) -> dict[str, tuple[int, ...]]:
    found: dict[str, set[int]] = {}
    for hazard in execution.hazards:
        found.setdefault(hazard.kind, set()).update(hazard.lines)
    return {kind: tuple(sorted(lines)) for kind, lines in found.items()}


def test_there_are_enough_pairs():
    assert len(faulty.NAMES) >= 30
    for name in faulty.NAMES:
        wrong, right = faulty.faulty(name), faulty.twin(name)
        assert wrong.expected, name
        assert not right.expected
        assert wrong.text != right.text


@pytest.mark.parametrize("name", faulty.NAMES)
def test_the_fault_is_caught_on_its_lines(name):
    example = faulty.faulty(name)
    (execution,) = checked(example, "forward")
    assert lines_by_kind(execution) == example.expected, execution.hazards
    for hazard in execution.hazards:
        assert hazard.message
        assert hazard.fix
        assert hazard.block is not None
        assert hazard.thread is not None or hazard.kind == "deadlock"


@pytest.mark.parametrize("name", faulty.NAMES)
def test_the_twin_is_not_accused(name):
    for execution in checked(faulty.twin(name), *ORDERS):
        assert execution.fault is None
        assert execution.hazards == ()
