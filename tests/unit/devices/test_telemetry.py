"""What NVML and nvidia-smi answer becomes a reading, or a reason why there is none."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from optiml_magic.devices.telemetry import Telemetry, limits, parsed
from optiml_magic.model.codec import from_json, to_json
from optiml_magic.model.condition import Condition, Conditions

BUS = "0000:00:04.0"
READING = Condition(1980, 3201, 41, 312.5, ("the power limit",))


class Refused(Exception):  # noqa: N818
    pass


def nvml(
    *, reasons: str = "nvmlDeviceGetCurrentClocksEventReasons", refuse: str = ""
) -> ModuleType:
    """A module to stand for ``pynvml``: the names and units of nvidia-ml-py 13."""
    module = ModuleType("pynvml")

    def answering(name: str, answer: object) -> None:
        def call(*given: object) -> object:
            if name == refuse:
                raise Refused("Not Supported")
            if name == "nvmlDeviceGetHandleByPciBusId":
                assert given == (BUS.encode(),)
                return "card"
            if name == "nvmlDeviceGetClockInfo":
                return {1: 1980, 2: 3201}[given[1]]  # type: ignore[index]
            return answer

        setattr(module, name, call)

    module.NVMLError, module.NVML_CLOCK_SM, module.NVML_CLOCK_MEM = Refused, 1, 2  # type: ignore[attr-defined]
    module.NVML_TEMPERATURE_GPU = 0  # type: ignore[attr-defined]
    for name, answer in (
        ("nvmlInit", None),
        ("nvmlDeviceGetHandleByPciBusId", None),
        ("nvmlDeviceGetClockInfo", None),
        ("nvmlDeviceGetTemperature", 41),
        ("nvmlDeviceGetPowerUsage", 312_500),
        (reasons, 0x4 | 0x2),
    ):
        answering(name, answer)
    return module


@pytest.fixture
def no_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.parametrize(
    "reasons",
    ["nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"],
)
def test_nvml_is_read_by_either_name(monkeypatch, reasons):
    monkeypatch.setitem(sys.modules, "pynvml", nvml(reasons=reasons))
    telemetry = Telemetry(BUS)
    assert telemetry.read() == READING
    assert telemetry.sm_clock() == 1980
    assert telemetry.absent == ""


def test_a_card_that_refuses_is_a_reason(monkeypatch, no_tool):
    monkeypatch.setitem(sys.modules, "pynvml", nvml(refuse="nvmlDeviceGetPowerUsage"))
    telemetry = Telemetry(BUS)
    assert telemetry.read() is None
    assert telemetry.absent == "NVML refuses: Not Supported"


def test_without_either_the_reason_names_both(monkeypatch, no_tool):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    telemetry = Telemetry(BUS)
    assert telemetry.read() is None
    assert telemetry.sm_clock() == 0
    assert "nvidia-ml-py" in telemetry.absent
    assert "nvidia-smi" in telemetry.absent


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


@pytest.mark.parametrize("refuse", ["", "nvmlInit", "nvmlDeviceGetHandleByPciBusId"])
def test_nvidia_smi_answers_where_nvml_does_not(monkeypatch, tmp_path, refuse):
    monkeypatch.setitem(sys.modules, "pynvml", nvml(refuse=refuse) if refuse else None)
    tool(tmp_path, "echo 'Field is not a valid field to query.'; exit 2")
    monkeypatch.setenv("PATH", str(tmp_path))
    telemetry = Telemetry(BUS)
    assert telemetry.read() == READING
    assert telemetry.sm_clock() == 0
    assert telemetry.absent == ""


def test_a_tool_that_does_not_know_the_card_is_asked_once(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pynvml", None)
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
