"""Annotated source on a card: ncu's counters on the lines where the emulated device has its own."""

from __future__ import annotations

import shutil

import pytest

from optiml_magic.annotate import annotate
from optiml_magic.reports import annotation_html, annotation_text
from optiml_magic.reports.annotation import Annotation
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task

pytestmark = pytest.mark.gpu
needs_ncu = pytest.mark.skipif(shutil.which("ncu") is None, reason="ncu is not installed")


def on(device: str) -> Annotation:
    return annotate(known_task("transpose_naive", rows=512, cols=512), resolve({"device": device}))


@needs_ncu
def test_sectors_of_each_line_are_those_of_the_emulated_device() -> None:
    card, emulated = on("cuda"), on("emulated:h200")
    facts = dict(card.facts)
    assert facts["counts"] == "ncu, summed over 1 launch"
    assert facts["check"].startswith("passed")
    for ours, theirs in zip(emulated.lines, card.lines, strict=True):
        requested = ours.counts.requests if ours.counts else 0
        if requested:
            assert ours.counts is not None
            assert theirs.counts is not None
            assert (theirs.counts.requests, theirs.counts.sectors) == (
                requested,
                ours.counts.sectors,
            )
    assert card.sampled
    assert "stalls" in annotation_text.render(card)
    assert "samples of waiting warps" in annotation_html.fragment(card)


def test_without_ncu_it_says_so_and_shows_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "ncu" else which(name))
    found = on("cuda")
    counts = dict(found.facts)["counts"]
    assert counts.startswith("nothing was counted by line: ncu is not on the PATH")
    assert not found.counted
    assert any("st.global.f32" in i.text for line in found.lines for i in line.instructions)
