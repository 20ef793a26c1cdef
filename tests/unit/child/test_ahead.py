"""A child that starts before its owner is there goes to who would start the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from optiml_magic import early
from optiml_magic.child import ahead
from optiml_magic.compilers import wire
from optiml_magic.devices import probe
from optiml_magic.verifiers.sanitizer import SanitizerInspector

HOST = "optiml_magic.compilers.host"


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    early.end()


def test_whoever_would_start_the_same_gets_it() -> None:
    ahead.begin(HOST, ["nvrtc"])
    begun = ahead._BEGUN[HOST]
    found = ahead.child(HOST, ["nvrtc"], wire.KINDS)
    assert found is begun
    assert isinstance(found.ask(wire.Describe(), 60.0)[0], wire.Described)
    other = ahead.child(HOST, ["nvrtc"], wire.KINDS)
    assert other is not begun
    for one in (found, other):
        one.kill()


@pytest.mark.parametrize("wanted", [["nvrtc", "/tmp"], ["nvcc"]])
def test_one_that_would_be_started_otherwise_is_ended(wanted: list[str]) -> None:
    ahead.begin(HOST, ["nvrtc"])
    begun = ahead._BEGUN[HOST]
    other = ahead.child(HOST, wanted, wire.KINDS)
    assert other is not begun
    assert not begun.alive
    other.kill()


def test_what_nobody_asks_for_is_ended() -> None:
    ahead.begin(HOST, ["nvrtc"])
    begun = ahead._BEGUN[HOST]
    early.end()
    assert not begun.alive


@pytest.mark.parametrize(
    ("words", "device"),
    [
        ("check task.py", "cuda:0"),
        ("check task.py --device cuda", "cuda:0"),
        ("check task.py --device=cuda:1", "cuda:1"),
        ("check task.py --device emulated", None),
        ("check task.py --device emulated:h200", None),
        ("check task.py --device cuda:x", None),
    ],
)
def test_a_command_begins_on_the_card_that_it_will_choose(
    monkeypatch: pytest.MonkeyPatch, words: str, device: str | None
) -> None:
    begun: list[str] = []
    monkeypatch.delenv("OPTIML_DEVICE", raising=False)
    monkeypatch.setattr(probe, "has_driver", lambda: True)
    monkeypatch.setattr(probe, "begin", lambda _: None)
    monkeypatch.setattr(ahead, "begin", lambda _, arguments: begun.extend(arguments))
    monkeypatch.setattr(SanitizerInspector, "warm", lambda _: None)
    early.begin(words.split())
    assert begun == ([device, "nvrtc"] if device else [])
    assert (early.inspector(device or "") is not None) is (device is not None)


def test_without_a_driver_nothing_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "has_driver", lambda: False)
    monkeypatch.setattr(ahead, "begin", lambda *_: pytest.fail("begun"))
    early.begin(["check", "task.py", "--device", "cuda"])
