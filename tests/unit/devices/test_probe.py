"""A card is asked once, and sooner where somebody says that it will be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from optiml_magic.devices import probe


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    probe.properties.cache_clear()
    yield
    probe.properties.cache_clear()


def test_what_was_begun_is_not_asked_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log = tmp_path / "asked"
    said = f"open({str(log)!r}, 'a').write('x'); print('{{{{}}}}')"
    monkeypatch.setattr(probe, "_ASK", said)
    monkeypatch.setattr(probe, "has_driver", lambda: True)
    probe.begin(3)
    probe.begin(3)
    for _ in range(2):
        assert probe.properties(3) == ("{}\n", "")
    assert log.read_text() == "x"


def test_without_a_driver_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "has_driver", lambda: False)
    probe.begin(4)
    assert 4 not in probe._BEGUN


def test_why_a_card_does_not_answer_is_the_last_that_it_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probe, "_ASK", "raise SystemExit('one\\nno such card')")
    assert probe.properties(5) == ("", "no such card")
