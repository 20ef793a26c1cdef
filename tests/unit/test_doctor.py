"""What the doctor says of timing: a figure, whether it is noise, and the card's state."""

from __future__ import annotations

import platform
import sys

import pytest

from optiml_magic.commands import doctor, parsers, platforms
from optiml_magic.devices.ratio import Ratio
from optiml_magic.errors import MachineError
from optiml_magic.model.condition import Condition, Conditions
from optiml_magic.model.measurement import Bound, Measurement
from optiml_magic.plugins import Plugins
from optiml_magic.settings import resolve

READING = Condition(1980, 3201, 41, 312.0, ("the power limit",))


def measured(conditions: Conditions | None) -> Measurement:
    return Measurement(
        "h200", "events", 5e-5, 1.01, (), (Bound("measured", 5e-5),), (), conditions=conditions
    )


def test_within_noise_with_the_state_of_the_card():
    found = doctor.describe_timing(
        Ratio(1.001, 0.998, 1.004), measured(Conditions(READING, READING))
    )
    assert "50.0 us" in found
    assert "1.0010 (0.9980 to 1.0040), within noise" in found
    assert "1980 MHz, 41 degrees, 312 W, held back by the power limit" in found


def test_what_is_not_known_of_the_card_has_its_reason():
    found = doctor.describe_timing(Ratio(1.0, 0.99, 1.01), measured(Conditions(absent="no tool")))
    assert found.endswith("within noise; no tool")


@pytest.mark.parametrize("itself", [Ratio(1.05, 1.03, 1.07), Ratio(0.95, 0.93, 0.97)])
def test_a_card_that_disagrees_with_itself_is_not_well(itself):
    with pytest.raises(MachineError, match="should include 1"):
        doctor.describe_timing(itself, measured(None))


def test_an_emulated_device_times_nothing_and_says_so():
    (fact,) = [fact for fact in doctor.examine(resolve({})) if fact.what == "timing"]
    assert fact.well
    assert "estimated on emulated" in fact.found


def test_it_tells_of_experience_and_plug_ins(home, monkeypatch):
    settings = resolve({})
    assert "none yet" in doctor._experience(settings).found
    home.mkdir()
    (home / "experience.sqlite").write_text("no database, " * 100)
    broken = doctor._experience(settings)
    assert not broken.well
    assert "not a database" in broken.found
    assert doctor._experience(settings).found == "0 edits of earlier runs"
    assert doctor._experience(resolve({"experience": "none"})).found == "not used, as requested"
    assert doctor._plugins() == doctor.Fact(True, "plug-ins", "none")
    left_out = Plugins(names=("one of two 1.0",), _notes={"plug-in `x` is left out: no": None})
    monkeypatch.setattr(doctor, "load", lambda: left_out)
    found = doctor._plugins()
    assert (found.well, found.found) == (False, "one of two 1.0; plug-in `x` is left out: no")


@pytest.mark.parametrize(
    ("system", "machine", "well", "said", "remedy"),
    [
        ("linux", "x86_64", True, "Linux on x86_64, where this package is tested", ""),
        ("linux", "aarch64", True, "not tested by us", ""),
        ("linux", "riscv64", False, "NVIDIA has no CUDA compiler for it", "container"),
        ("win32", "AMD64", True, "not tested by us; no limit on the memory", ""),
        ("win32", "ARM64", False, "NVIDIA has no CUDA compiler for it", "WSL"),
        ("darwin", "arm64", False, "NVIDIA has no CUDA compiler for it", "remote kernel"),
        ("sunos5", "sparc", False, "sunos5 is not one of Linux, Windows, macOS", "Linux"),
    ],
)
def test_a_platform_is_told_what_it_does_without(system, machine, well, said, remedy):
    fact = platforms.platform_fact(system, machine)
    assert (fact.well, said in fact.found) == (well, True)
    assert remedy in fact.remedy
    assert bool(fact.remedy) == (not well)


@pytest.mark.parametrize("system", [*platforms.PLATFORMS, "sunos5"])
def test_without_a_compiler_it_says_which_commands_work(system):
    known = parsers.line_parser().commands
    assert set(platforms.COMPILING) < set(known)
    fact = platforms.commands_fact(system, ())
    works, fails = fact.found.split(" work; ")
    assert not fact.well
    assert all(verb in (fails if verb in platforms.COMPILING else works) for verb in known)
    assert ("pip install" in fact.remedy) == (system in ("linux", "win32"))
    assert platforms.commands_fact(system, ("nvrtc", "nvcc")).found == "all work"
    assert platforms.commands_fact(system, ("nvcc",)).found == "all work with --compiler nvcc"


def test_this_machine_is_one_of_them():
    facts = {fact.what: fact for fact in doctor.examine(resolve({}))}
    assert facts["platform"] == platforms.platform_fact(sys.platform, platform.machine())
    assert facts["commands"].well
