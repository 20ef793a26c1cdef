"""What NVML and nvidia-smi answer becomes a reading, or a reason why there is none."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_char_p, c_uint, c_ulonglong
from pathlib import Path
from typing import Any

import pytest

from optiml_magic.devices.nvml import Nvml
from optiml_magic.devices.telemetry import Telemetry, limits, parsed
from optiml_magic.model.codec import from_json, to_json
from optiml_magic.model.condition import Condition, Conditions

BUS = "0000:00:04.0"
READING = Condition(1980, 3201, 41, 312.5, ("the power limit",))


class Driver:
    """Stands for the driver's library, which is nowhere without a card: its names, units, types."""

    def __init__(self, *, reasons: str = "CurrentClocksEventReasons", refuse: str = "") -> None:
        self._refuse = refuse
        self._figures = {
            "Temperature": (c_uint, 41),
            "PowerUsage": (c_uint, 312_500),
            "TotalEnergyConsumption": (c_ulonglong, 5_000_000_000_250),
            reasons: (c_ulonglong, 0x4 | 0x2),
        }
        self.nvmlErrorString = Words()

    def __getattr__(self, name: str) -> Callable[..., int]:
        figure = name.removeprefix("nvmlDeviceGet")
        if name not in KNOWN and figure not in self._figures:
            raise AttributeError(name)

        def call(*given: Any) -> int:
            if name == self._refuse:
                return 3
            if name == "nvmlDeviceGetHandleByPciBusId_v2":
                assert given[0] == BUS.encode()
                given[1]._obj.value = 77
            elif name != "nvmlInit_v2":
                card, *which, into = given
                assert card.value == 77
                kind, value = self._figures.get(figure) or (c_uint, {1: 1980, 2: 3201}[which[0]])
                assert isinstance(into._obj, kind)
                into._obj.value = value
            return 0

        return call


KNOWN = ("nvmlInit_v2", "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetClockInfo")


class Words:
    restype: Any = None

    def __call__(self, status: int) -> bytes:
        assert self.restype is c_char_p
        return {3: b"Not Supported"}[status]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Installs one, or none where ``refuse`` is None."""

    def install(*, refuse: str | None = "", **more: str) -> None:
        def loaded(_: str) -> Driver:
            if refuse is None:
                raise OSError
            return Driver(refuse=refuse, **more)

        monkeypatch.setattr("optiml_magic.devices.nvml.ctypes.CDLL", loaded)

    return install


@pytest.fixture
def no_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.parametrize(
    "reasons",
    ["CurrentClocksEventReasons", "CurrentClocksThrottleReasons"],
)
def test_nvml_is_read_by_either_name(driver, reasons):
    driver(reasons=reasons)
    telemetry = Telemetry(BUS)
    assert telemetry.read() == READING
    assert telemetry.sm_clock() == 1980
    assert telemetry.absent == ""


def test_a_card_that_refuses_is_a_reason(driver, no_tool):
    driver(refuse="nvmlDeviceGetPowerUsage")
    telemetry = Telemetry(BUS)
    assert telemetry.read() is None
    assert telemetry.absent == "NVML refuses: Not Supported"


def test_the_energy_is_in_joules_or_refused(driver):
    driver()
    card = Nvml(BUS)
    assert card.joules() == 5_000_000_000.25
    assert card.refused == ""
    driver(refuse="nvmlDeviceGetTotalEnergyConsumption")
    card = Nvml(BUS)
    assert card.joules() is None
    assert card.sm_clock() == 1980
    assert card.refused == "NVML refuses: Not Supported"
    driver(refuse="nvmlInit_v2")
    assert Nvml(BUS).joules() is None


def test_a_library_without_a_function_says_which(driver, no_tool):
    driver(reasons="none of these")
    telemetry = Telemetry(BUS)
    assert telemetry.read() is None
    assert telemetry.absent == "NVML has no nvmlDeviceGetCurrentClocksEventReasons"


def test_without_either_the_reason_names_both(driver, no_tool):
    driver(refuse=None)
    telemetry = Telemetry(BUS)
    assert telemetry.read() is None
    assert telemetry.sm_clock() == 0
    assert telemetry.absent == "NVML is not installed, and there is no nvidia-smi"


TOOL = """#!/bin/sh
case "$*" in
  *clocks_event_reasons*) {newer};;
  *"-i 0000:00:04.0"*) echo "1980, 3201, 41, 312.50, 0x0000000000000004";;
  *) exit 2;;
esac
"""


def tool(folder: Path, newer: str) -> None:
    path = folder / "nvidia-smi"
    path.write_text(TOOL.format(newer=newer))
    path.chmod(0o755)


@pytest.mark.parametrize("refuse", [None, "nvmlInit_v2", "nvmlDeviceGetHandleByPciBusId_v2"])
def test_nvidia_smi_answers_where_nvml_does_not(driver, monkeypatch, tmp_path, refuse):
    driver(refuse=refuse)
    tool(tmp_path, "echo 'Field is not a valid field to query.'; exit 2")
    monkeypatch.setenv("PATH", str(tmp_path))
    telemetry = Telemetry(BUS)
    assert telemetry.read() == READING
    assert telemetry.sm_clock() == 0
    assert telemetry.absent == ""


def test_a_tool_that_does_not_know_the_card_is_asked_once(driver, monkeypatch, tmp_path):
    driver(refuse=None)
    tool(tmp_path, "exit 2")
    monkeypatch.setenv("PATH", str(tmp_path))
    telemetry = Telemetry("0000:00:05.0")
    assert telemetry.read() is None
    assert telemetry.absent.startswith("nvidia-smi: ")
    tool(tmp_path, "touch asked")
    assert telemetry.read() is None
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize(
    "line",
    ["", "1980, 3201, 41, 312.50", "[N/A], 3201, 41, 312.50, 0x4", "1980, 3201, 41, [N/A], 0x0"],
)
def test_a_line_that_is_no_reading_is_refused(line):
    with pytest.raises(ValueError, match=r"."):
        parsed(line)


def test_only_what_holds_clocks_back_is_a_limit():
    assert limits(0x1 | 0x2 | 0x100) == ()  # idle; clocks that somebody set; a display
    assert len(limits(0x4 | 0x8 | 0x10 | 0x20 | 0x40 | 0x80)) == 6


class TestConditions:
    def test_it_travels_as_json(self):
        conditions = Conditions(READING, None, 1980.0, 1965.0)
        assert from_json(Conditions, to_json(Conditions, conditions)) == conditions

    def test_all_well_needs_no_words(self):
        cool = Condition(1980, 3201, 41, 200.0)
        assert Conditions(cool, cool, 1980.0, 1965.0).remarks == ()

    def test_what_a_reader_has_to_know(self):
        (limited,) = Conditions(None, READING, 1980.0, 1980.0).remarks
        assert "the power limit" in limited
        (moved,) = Conditions(None, None, 1700.0, 1980.0).remarks
        assert "clock" in moved
        (absent,) = Conditions(absent="no reason given").remarks
        assert "no reason given" in absent
