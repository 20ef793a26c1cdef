"""Progress on a terminal, through a pseudo-terminal as a person has one, and in a log."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import sys

import pytest

from optiml_magic.llms.spending import Spent
from optiml_magic.model.refusal import NOTHING
from optiml_magic.widgets.bar import Bar
from optiml_magic.widgets.line import LogLine, Now, StageLine, TerminalLine
from optiml_magic.widgets.plain import PlainView
from tests.unit.widgets.test_live import SUBJECT, some, summary

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-7][0-9;]*m|\x1b\[[0-9;]*9[0-7]m")


@pytest.fixture
def terminal(monkeypatch):
    """Runs a function with stderr on a terminal of 120 columns; returns what was written there."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")

    def written(act) -> str:
        ours, theirs = pty.openpty()
        os.set_blocking(ours, False)
        with monkeypatch.context() as patched, os.fdopen(theirs, "w") as stderr:
            patched.setattr(sys, "stderr", stderr)
            act()
            stderr.flush()
            text = b""
            with contextlib.suppress(BlockingIOError):  # a terminal hands out 4 KiB at a time
                while part := os.read(ours, 1 << 16):
                    text += part
        os.close(ours)
        return text.decode()

    return written


def watched(line: TerminalLine) -> None:
    with PlainView(SUBJECT, line, "in a terminal") as view:
        for one in some():
            view(one, NOTHING)
        view.finish(summary(some()))


def test_a_search_is_a_bar_with_its_figures_that_is_gone_at_the_end(terminal):
    written = terminal(lambda: watched(TerminalLine()))
    text = ESCAPES.sub("", written)
    assert "the input kernel  preparing" in text
    assert "4 of 24  best 5x estimated" in text
    assert "in a terminal" not in text
    assert COLOUR.search(written)
    assert written.endswith("\x1b[2K")  # the line is erased, the result follows


def test_what_a_model_costs_stands_in_the_line(terminal):
    def act() -> None:
        with PlainView(SUBJECT, TerminalLine(), "in a terminal") as view:
            view.spend(Spent("llm:toy", "1,2", 2, 1000, 500, estimated=True, under_way=1))
            view(some()[0], NOTHING)

    text = ESCAPES.sub("", terminal(act))
    assert "about 1500 tokens, cost 0.002" in text


def test_no_color_draws_without_colours(terminal, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    written = terminal(lambda: watched(TerminalLine()))
    assert "of 24" in written
    assert not COLOUR.search(written)


def test_a_title_of_a_model_cannot_repaint_the_terminal(terminal):
    def act() -> None:
        bar = Bar()
        bar.write(Now("t", title="[bold]no markup[/bold] \x1b[2J gone", done=1, budget=4))
        bar.end("", None)

    written = terminal(act)
    assert "\x1b[2J" not in written
    assert "[bold]no markup[/bold] \\x1b[2J gone" in ESCAPES.sub("", written)


def test_a_terminal_that_cannot_move_gets_lines(terminal, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in terminal(lambda: watched(TerminalLine()))


def test_a_log_has_a_line_for_each_new_stage_and_each_new_best(capsys):
    line = LogLine()
    for done in range(1, 5):
        for stage in ("compile", "verify", "measure"):
            best = "2x estimated" if done > 2 else ""
            line.write(Now("the input kernel", stage, task="t", done=done, budget=9, best=best))
    line.write(Now("the input kernel", "settle", task="t", done=4, budget=9, best="2x estimated"))
    line.end("9 evaluations in 3.0 s; stopped", None)
    assert capsys.readouterr().err.splitlines() == [
        "t: 1 of 9: compiling",
        "t: 1 of 9: verifying",
        "t: 1 of 9: measuring",
        "t: 3 of 9, best 2x estimated: compiling",
        "t: 4 of 9, best 2x estimated: timing the finalists",
        "9 evaluations in 3.0 s; stopped",
    ]


def test_what_is_not_a_terminal_gets_a_log(capsys):
    with StageLine("check", TerminalLine()) as line:
        line.enter("compile")
        line.enter("compile")
    first, second, last = capsys.readouterr().err.splitlines()
    assert (first, second) == ("check: preparing", "check: compiling")
    assert re.fullmatch(r"check: \d\.\d s", last)


def test_nothing_is_written_where_it_is_quiet(capsys):
    watched(TerminalLine(quiet=True))
    assert capsys.readouterr() == ("", "")
