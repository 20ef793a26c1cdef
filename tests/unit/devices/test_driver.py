"""A compiler that is newer than the driver is named early, with what to install."""

from __future__ import annotations

from importlib import import_module

import pytest

from optiml_magic import session
from optiml_magic.chips import chip
from optiml_magic.commands import doctor
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.devices import choice, driver
from optiml_magic.devices.choice import Choice
from optiml_magic.errors import MachineError
from optiml_magic.optimize import evaluate_once
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task


@pytest.mark.parametrize(
    ("release", "fix"), [(11, "install a driver"), (12, "[gpu12]"), (13, "[gpu13]"), (0, "[gpu13]")]
)
def test_what_to_install_follows_the_driver(release: int, fix: str) -> None:
    assert fix in driver.advice(release)


@pytest.mark.parametrize(("major", "release"), [(13, 13), (12, 13), (13, 0)])
def test_a_driver_takes_its_own_cubins_and_older_ones(major: int, release: int) -> None:
    driver.require_release("nvrtc", major, release)


def test_a_card_with_an_older_driver_is_refused_before_anything_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    major = NvrtcCompiler().major
    old = Choice("cuda:0", chip("h200"), "as asked", major - 1)
    for module in (import_module("optiml_magic.optimize"), session):
        monkeypatch.setattr(module, "choose", lambda _: old)
    with pytest.raises(MachineError, match=f"makes cubins of CUDA {major}") as raised:
        evaluate_once(known_task("saxpy", n=10), resolve({"device": "cuda"}))
    assert "pip install" in raised.value.fix or "driver" in raised.value.fix


def test_the_doctor_names_the_mismatch(monkeypatch: pytest.MonkeyPatch) -> None:
    major = NvrtcCompiler().major
    for release, well in ((major - 1, False), (major, True)):
        monkeypatch.setattr(doctor, "driver_release", lambda release=release: release)
        (fact,) = [fact for fact in doctor.examine(resolve({})) if fact.what == "CUDA"]
        assert fact.well is well
        assert bool(fact.remedy) is not well


def test_a_machine_without_a_driver_knows_no_release(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(driver.ctypes, "CDLL", absent)
    assert driver.driver_release() == 0
    assert choice.choose("emulated").driver == 0
