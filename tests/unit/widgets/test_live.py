from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from optiml_magic.model.refusal import NOTHING
from optiml_magic.search.controls import Controls
from optiml_magic.widgets import live, window
from optiml_magic.widgets.line import DisplayLine, Text
from optiml_magic.widgets.live import live_view, watched
from optiml_magic.widgets.plain import PlainView, paced
from optiml_magic.widgets.subject import Subject
from tests.processes import eventually
from tests.unit.widgets.steps import SUBJECT, Outcomes, search, some, summary


class Displayed:
    """Stands for IPython's display: keeps what one output showed, in order."""

    def __init__(self) -> None:
        self.shown: list[object] = []

    def __call__(self, thing: object, *, display_id: bool) -> Displayed:
        assert display_id
        self.shown.append(thing)
        return self

    def update(self, thing: object) -> None:
        self.shown.append(thing)


def shell(*, stdin: bool = True, subshells: bool = True, names: Any = ()) -> Any:
    kernel = SimpleNamespace(_allow_stdin=stdin, _supports_kernel_subshells=subshells)
    return SimpleNamespace(kernel=kernel, user_ns=dict(names))


def nothing(*_: object) -> None:
    pass


def test_a_terminal_gets_a_line() -> None:
    view = live_view(SUBJECT, SimpleNamespace(), Displayed())
    assert isinstance(view, PlainView)
    assert view.why == "in a terminal"
    assert live_view(SUBJECT, None, Displayed()).why == "in a terminal"


def test_nbclient_gets_a_line_and_is_told_why() -> None:
    displayed = Displayed()
    view = live_view(SUBJECT, shell(stdin=False), displayed)
    assert isinstance(view, PlainView)
    view.show()
    assert "executed without a front end" in repr(displayed.shown[0])


@pytest.mark.parametrize("name", ["anywidget", "ipywidgets"])
def test_a_missing_widget_library_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    found = live.find_spec
    monkeypatch.setattr(live, "find_spec", lambda n: None if n == name else found(n))
    view = live_view(SUBJECT, shell(), Displayed())
    assert isinstance(view, PlainView)
    assert view.why == f"no live view: {name} not installed"


def test_text_can_be_asked_for() -> None:
    assert isinstance(live_view(SUBJECT, shell(), Displayed(), mode="text"), PlainView)


@pytest.fixture
def widget() -> Any:
    pytest.importorskip("anywidget", reason="anywidget is not installed")


@pytest.mark.usefixtures("widget")
class TestWindow:
    def test_a_front_end_gets_the_widget(self) -> None:
        displayed = Displayed()
        view: Any = live_view(SUBJECT, shell(), displayed)
        assert view.why == "a front end is there"
        with view:
            assert displayed.shown == [view.view]
            view.show()
        assert len(displayed.shown) == 2

    def test_it_can_be_forced_where_nobody_seems_to_look(self) -> None:
        assert not isinstance(
            live_view(SUBJECT, shell(stdin=False), Displayed(), mode="widget"), PlainView
        )

    @pytest.mark.parametrize(
        ("subshells", "background", "hint"),
        [(True, False, ""), (False, False, live.UNHEARD), (False, True, ""), (True, True, "")],
    )
    def test_where_the_button_cannot_be_heard_it_says_so(
        self, subshells: bool, background: bool, hint: str
    ) -> None:
        subject = Subject("t", "d", "r", 5, background=background)
        view: Any = live_view(subject, shell(subshells=subshells), Displayed())
        assert view.view.hint == hint

    def test_vs_code_sends_nothing_to_a_cell_that_runs(self) -> None:
        view: Any = live_view(SUBJECT, shell(names={"__vsc_ipynb_file__": "a.ipynb"}), Displayed())
        assert view.view.hint == live.UNHEARD

    def test_at_the_end_text_stands_in_its_place(self) -> None:
        displayed = Displayed()
        view: Any = live_view(SUBJECT, shell(), displayed)
        with view:
            for one in some():
                view(one, NOTHING)
            view.finish(summary(some()))
        assert repr(displayed.shown[-1]).startswith("4 evaluations in ")  # one is a duplicate
        assert repr(displayed.shown[-1]).endswith("budget of 5 evaluations spent")
        assert (view.view.state, view.view.reported) == ("done", True)

    def test_the_last_few_stay_for_pages_that_were_loaded_meanwhile(self) -> None:
        views = []
        for _ in range(window._MOST + 2):
            view: Any = live_view(SUBJECT, shell(), Displayed())
            with view:
                view(some()[0], NOTHING)
                view.finish(summary(some()))
            views.append(view.view)
        assert [view.comm is None for view in views] == [True] * 2 + [False] * window._MOST

    def test_in_the_background_the_result_stands_in_its_place(self) -> None:
        displayed = Displayed()
        view = live_view(SUBJECT, shell(), displayed)
        result = watched(view, search, in_place=True)(nothing, Controls())
        assert displayed.shown[-1] is result

    def test_it_can_be_kept(self) -> None:
        displayed = Displayed()
        view: Any = live_view(SUBJECT, shell(), displayed, keep=True)
        with view:
            view.finish(summary(some()))
        assert displayed.shown == [view.view]
        assert not view.view.reported  # the cell has the result itself
        view.view.close()

    def test_an_error_passes_through_and_fails_the_view(self) -> None:
        view: Any = live_view(SUBJECT, shell(), Displayed())

        def broken(progress: object, stop: object) -> Outcomes:
            raise RuntimeError("no")

        with pytest.raises(RuntimeError, match="no"):
            watched(view, broken)(nothing, Controls())
        assert (view.view.state, view.view.ended) == ("failed", "RuntimeError")

    def test_an_interrupt_outside_the_loop_is_a_stop(self) -> None:
        view: Any = live_view(SUBJECT, shell(), Displayed())
        with pytest.raises(KeyboardInterrupt), view:
            raise KeyboardInterrupt
        assert view.view.state == "stopped"

    def test_the_button_ends_a_search_with_what_it_found(self) -> None:
        view: Any = live_view(SUBJECT, shell(), Displayed())
        seen: list[object] = []

        def progress(step: object, refused: object) -> None:
            seen.append(step)
            if len(seen) == 3:
                view.view._handle_custom_msg({"kind": "stop"}, [])

        result = watched(view, search)(progress, Controls())
        assert result.summary.trajectory.stopped == "stopped"
        assert len(seen) == len(result.summary.trajectory.steps) == 3
        assert view.view.state == "stopped"


def test_the_line_of_a_cell_is_updated_and_ends_as_a_summary() -> None:
    displayed = Displayed()
    view = PlainView(SUBJECT, DisplayLine(displayed), "because")
    with view:
        for one in some():
            view(one, NOTHING)
        view.finish(summary(some()))
    lines = [repr(thing) for thing in displayed.shown]
    assert lines[0] == "the input kernel: preparing (because)"
    assert "2 of 24, best 2x estimated: map threads along rows" in lines
    assert lines[-1].startswith("5 evaluations in ")
    assert lines[-1].endswith("budget of 5 evaluations spent")


def test_a_stage_is_named_beside_the_rate_and_what_is_left() -> None:
    displayed = Displayed()
    view = PlainView(Subject("t", "d", "r", 24, 300.0), DisplayLine(displayed), "because")
    with view:
        view.enter("compile")
        view.enter("verify")  # the last one stands there in the end, however short the other was
        assert eventually(
            lambda: repr(displayed.shown[-1]).startswith("the input kernel, at most ")
        )
        assert repr(displayed.shown[-1]).endswith(" s left: verifying")
    assert paced(1, 24, 2.0, 0.0) == ""
    assert paced(1, 24, 2.0, 60.0) == "at most 58 s left"
    assert paced(9, 24, 6.0, 60.0) == "about 10 s left, 90 a minute"
    assert paced(9, 999, 6.0, 60.0) == "about 54 s left, 90 a minute"


def test_a_search_in_the_background_writes_nothing_where_somebody_types(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    view = live_view(Subject("t", "d", "r", 5, background=True), None, Displayed())
    watched(view, search, in_place=True)(nothing, Controls())
    assert capsys.readouterr() == ("", "")


def test_text_shows_itself_without_quotes() -> None:
    assert repr(Text("it's")) == "it's"
