"""Timings on one card take turns."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from optiml_magic.devices import hosted, turns, wire
from optiml_magic.devices.base import Draw, Job, Sampling, Timing
from optiml_magic.devices.hosted import HostedDevice
from optiml_magic.devices.turns import turn
from optiml_magic.model.build import Build
from optiml_magic.model.launch import LaunchPlan

HOLDER = """
from optiml_magic.devices.turns import turn
with turn("cuda:77"):
    print("mine", flush=True)
    input()
"""
BUILD = Build("", b"", {}, {}, (), (), "digest")
JOB = Job("case", LaunchPlan(()), 0, count=False, instructions=1)


@contextmanager
def holder() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "mine\n"
        yield first
        first.kill()


def test_who_comes_second_waits_until_the_first_is_gone() -> None:
    came = threading.Event()

    def second() -> None:
        with turn("cuda:77"):
            came.set()

    with holder() as first:
        threading.Thread(target=second, daemon=True).start()
        with turn("cuda:78"):  # another card
            assert not came.wait(0.2)
        first.kill()  # the lock goes with its holder
        assert came.wait(30)


def test_those_who_do_not_time_share_a_turn_and_who_times_does_not() -> None:
    with turn("cuda:79", shared=True), turn("cuda:79", longest=0.05, shared=True) as crowded:
        assert crowded == ""
        with turn("cuda:79", longest=0.05) as alone:
            assert "held it" in alone
    with turn("cuda:79") as crowded, turn("cuda:79", longest=0.05, shared=True) as late:
        assert (crowded, bool(late)) == ("", True)


def test_nobody_waits_for_ever() -> None:
    with holder(), turn("cuda:77", longest=0.05) as crowded:
        assert crowded == "another process has held it for 0.05 s"
    with turn("cuda:77") as crowded:
        assert crowded == ""


def test_a_card_has_one_lock_whatever_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    names = set()
    for visible, device in (("", "cuda:1"), ("0,1", "cuda:1"), ("1", "cuda:0"), ("2,1", "cuda:1")):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        names.add(turns._path(device))
    assert len(names) == 1
    assert turns._path("cuda:0") not in names


def test_a_lock_that_cannot_be_made_keeps_nobody(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "nowhere"))
    with turn("cuda:77") as crowded:
        assert "no lock" in crowded


def test_a_host_times_and_draws_in_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    device, held, asked = HostedDevice("cuda:0"), [], []

    @contextmanager
    def watched(name: str) -> Iterator[str]:
        held.append(name)
        yield "somebody stays"
        held.pop()

    def ask(request: object) -> object:
        asked.append((type(request), list(held)))
        timed = wire.Timings((Timing((1.0,), 1, None),))
        return timed if isinstance(request, wire.Time) else Draw(1, 1.0, 1.0)

    monkeypatch.setattr(hosted, "turn", watched)
    monkeypatch.setattr(device, "_running", lambda: None)
    monkeypatch.setattr(device, "_ask", ask)
    timings = device.time([(BUILD, JOB)], Sampling(1, 1, 1.0))
    assert isinstance(timings, tuple)
    assert timings[0].conditions is not None
    assert any("somebody stays" in remark for remark in timings[0].conditions.remarks)
    device.draw(BUILD, JOB, 1.0)
    assert asked == [(wire.Time, ["cuda:0"]), (wire.Repeat, ["cuda:0"])]
