from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("anywidget", reason="anywidget is not installed")

import comm
from comm.base_comm import BaseComm

from optiml_magic.llms.spending import Spent
from optiml_magic.model.refusal import Refusal
from optiml_magic.search.controls import Controls
from optiml_magic.widgets.search import SearchView
from tests.unit.widgets.steps import SUBJECT, some, step, summary


class RecordedComm(BaseComm):
    """Keeps what a kernel would send."""

    sent: list[tuple[str, Any]]

    def publish_msg(self, msg_type: str, data: Any = None, **_: Any) -> None:
        if not hasattr(self, "sent"):
            self.sent = []
        self.sent.append((msg_type, data))

    def updates(self) -> list[dict[str, Any]]:
        return [data["state"] for kind, data in self.sent if "state" in data and kind == "comm_msg"]

    def said(self) -> list[dict[str, Any]]:
        return [data["content"] for _, data in self.sent if data.get("method") == "custom"]


@pytest.fixture
def view(monkeypatch: pytest.MonkeyPatch) -> Iterator[SearchView]:
    # What ipykernel does when it is imported, and what it may have done before in this process.
    monkeypatch.setattr(comm, "create_comm", RecordedComm)
    made = SearchView(SUBJECT)
    made.start()
    yield made
    made._pace.close()
    made.close()


def soon(said: Callable[[], bool], seconds: float = 5.0) -> None:
    until = time.monotonic() + seconds
    while not said():
        assert time.monotonic() < until
        time.sleep(0.01)


def press(view: SearchView, kind: str = "stop", **more: Any) -> None:
    view._handle_custom_msg({"kind": kind, **more}, [])


def test_it_says_what_is_searched_from_the_start(view: SearchView) -> None:
    (_, opened) = view.comm.sent[0]
    state = opened["state"]
    assert state["task"] == "transpose"
    assert state["device"] == "emulated:h200"
    assert state["reason"] == "auto chose it"
    assert (state["budget"], state["seconds"], state["state"]) == (24, 300.0, "running")
    assert "textContent" in state["_esm"]
    assert ".optiml-search" in state["_css"]


def test_steps_become_traits_soon(view: SearchView) -> None:
    for one in some():
        view.update(one)
    soon(lambda: view.evaluations == 4)  # one had come before
    assert view.best["id"] == 3
    assert [row["id"] for row in view.steps] == [0, 1, 2, 3, 4]
    assert "+program 3" in view.diff


def test_what_a_model_costs_is_drawn_while_it_is_asked(view: SearchView) -> None:
    view.spend(Spent("llm:toy", "", 1, 30, 20, estimated=True, under_way=1))
    view._draw()
    assert view.spent == "llm:toy: about 30 + 20 tokens in 1 request, 1 under way, 0 s"
    view.spend(Spent("llm:toy", "", 1, 31, 22, 2.0))
    view.finish("done", "budget spent")
    assert view.spent == "llm:toy: 31 + 22 tokens in 1 request, 2 s"


def test_a_thousand_steps_do_not_flood_the_comm(view: SearchView) -> None:
    for number in range(1000):
        view.update(step(number))
    view.finish("done", "budget spent")
    updates = view.comm.updates()
    assert len(updates) <= 4
    assert len(updates[-1]["steps"]) == 1000


def test_one_frame_is_one_message(view: SearchView) -> None:
    view._pace.close()
    for one in some():
        view.update(one)
    before = len(view.comm.updates())
    view._draw()
    assert len(view.comm.updates()) == before + 1
    assert {"evaluations", "best", "steps", "diff"} <= view.comm.updates()[-1].keys()


def test_the_last_frame_is_complete_however_late_the_last_step_came(view: SearchView) -> None:
    for one in some():
        view.update(one)
    view.finish("stopped", "stopped")
    assert (view.evaluations, view.state, view.ended) == (4, "stopped", "stopped")
    assert view.comm.updates()[-1]["state"] == "stopped"


def test_stop_reaches_the_controls_and_is_acknowledged(view: SearchView) -> None:
    assert not view.controls.stopped
    press(view)
    assert view.controls.stopped
    assert view.stopping
    assert view.comm.updates()[-1] == {"stopping": True}


def test_it_pauses_and_resumes(view: SearchView) -> None:
    press(view, "pause")
    assert view.controls.paused
    assert view.comm.updates()[-1] == {"paused": True}
    press(view, "resume")
    assert not view.controls.paused
    assert view.comm.updates()[-1] == {"paused": False}
    view.controls.pause()  # by the handle's own method
    soon(lambda: view.paused)


def test_seconds_do_not_run_on_in_a_pause(view: SearchView) -> None:
    view._pace.close()
    view._draw()
    press(view, "pause")
    before = view.elapsed
    time.sleep(0.5)
    view._draw()
    assert view.elapsed < before + 0.3
    press(view, "resume")
    time.sleep(0.5)
    view._draw()
    assert view.elapsed >= before + 0.4


def test_a_stop_before_the_search_begins_is_not_lost(view: SearchView) -> None:
    press(view)
    search = Controls()
    view.steer(search)
    assert search.stopped
    assert view.controls is search


def test_a_program_by_hand_reaches_the_search_or_is_refused(view: SearchView) -> None:
    class Refusing(Controls):
        def suggest(self, parent: int | None, program: str) -> Refusal | None:
            return Refusal("hand", f"{program} is not a kernel", 3) if parent else None

    view.steer(Refusing())
    press(view, "edit", parent=0, program="mine")
    press(view, "edit", parent=2, program="mine")
    said = [(each["kind"], each["parent"], each["refused"]) for each in view.comm.said()]
    assert said == [("edit", 0, ""), ("edit", 2, "mine is not a kernel (line 3)")]
    for wrong in ({}, {"parent": "0", "program": "x"}, {"parent": 0, "program": ["x"]}):
        press(view, "edit", **wrong)
    assert len(view.comm.said()) == 2


def test_a_node_is_sent_to_whoever_asks(view: SearchView) -> None:
    for one in some():
        view.update(one)
    for number in (3, 99, None, "3"):
        press(view, "node", id=number)
    (said,) = view.comm.said()
    assert (said["kind"], said["id"], said["program"]) == ("node", 3, step(3).candidate.text)


def test_the_roofline_is_drawn_for_whoever_asks(view: SearchView) -> None:
    press(view, "roofline")
    assert view.comm.said() == []
    for one in some():
        view.update(one)
    press(view, "roofline")
    soon(lambda: len(view.comm.said()) == 1, 20)
    (said,) = view.comm.said()
    assert (said["kind"], said["best"]) == ("roofline", 3)
    assert said["svg"] == ""  # toy measurements have no counts
    assert "were counted" in said["told"]


def test_the_report_is_sent_once_there_is_one(view: SearchView) -> None:
    press(view, "report")
    for one in some():
        view.update(one)
    view.finish("done", "budget spent", summary(some()))
    assert view.comm.updates()[-1]["reported"]
    assert view.comm.said() == []
    press(view, "report")
    soon(lambda: len(view.comm.said()) == 1, 20)
    assert "<h3" in view.comm.said()[0]["html"]


@pytest.mark.parametrize(
    "content", [{"kind": "other"}, {"kind": ["stop"]}, {}, "stop", None, ["kind", "stop"]]
)
def test_other_messages_mean_nothing(view: SearchView, content: Any) -> None:
    view._handle_custom_msg(content, [])
    assert not view.controls.stopped


def test_steps_and_the_button_may_come_from_many_threads(view: SearchView) -> None:
    def work(numbers: range) -> None:
        for number in numbers:
            view.update(step(number))
            press(view)

    view.update(step(0))
    threads = [threading.Thread(target=work, args=(range(n, 400, 4),)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    view.finish("stopped", "stopped")
    assert view.evaluations == 400
    steps = [update["steps"] for update in view.comm.updates() if "steps" in update]
    assert sorted(row["id"] for row in steps[-1]) == list(range(400))
    # Frames never shrink: no message carries less than an earlier one.
    counts = [u["evaluations"] for u in view.comm.updates() if "evaluations" in u]
    assert counts == sorted(counts)


def test_a_comm_that_would_route_to_the_busy_shell_is_told_not_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Routing(RecordedComm):
        def _reply_subshell_for(self, data: Any, default: Any) -> Any:
            return None  # the main shell, as ipykernel 7.4 does after a send from it

    monkeypatch.setattr(comm, "create_comm", Routing)
    view = SearchView(SUBJECT)
    assert view.comm._reply_subshell_for({}, "the front end's") == "the front end's"
    view.close()


def test_without_a_front_end_for_widgets_it_is_text_and_html(view: SearchView) -> None:
    data, _ = view._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["text/plain"].startswith("transpose: a search of at most 24 evaluations began")
    assert data["text/html"] == f"<pre>{data['text/plain']}</pre>"
