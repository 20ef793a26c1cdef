"""The views in a real ipykernel, spoken to as a front end does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("anywidget", reason="anywidget is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

import ipykernel
from jupyter_client.manager import KernelManager

ROOT = Path(__file__).parents[3]
WIDGET = "application/vnd.jupyter.widget-view+json"
SUBSHELLS = int(ipykernel.__version__.split(".")[0]) >= 7

SETUP = """
from functools import partial
from IPython.display import display
from optiml_magic.background import Handle
from optiml_magic.search.controls import Controls
from optiml_magic.widgets.live import live_view, watched
from optiml_magic.widgets.subject import Subject
from tests.unit.widgets.steps import search

def watch(background=False):
    subject = Subject("toy", "none", "a toy", 40, background=background)
    view = live_view(subject, get_ipython(), display)
    return view, watched(view, partial(search, pause=0.1), in_place=background)
"""
BLOCKING = """
view, run = watch()
result = run(lambda *step: None, Controls())
print(result.summary.trajectory.stopped, len(result.summary.trajectory.steps))
"""
BACKGROUND = """
view, run = watch(background=True)
view.show()
handle = Handle(run, name="toy")
print("returned")
"""


class FrontEnd:
    """The few messages of a front end that a search needs."""

    def __init__(self, manager: KernelManager) -> None:
        self.manager = manager
        self.client = manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        self.seen: list[dict[str, Any]] = []

    def execute(self, code: str) -> str:
        cell: str = self.client.execute(code, allow_stdin=True)
        return cell

    def subshell(self) -> str:
        """As JupyterLab has one for the comms of widgets."""
        message = self.client.session.msg("create_subshell_request", {})
        self.client.control_channel.send(message)
        made: str = self.client.get_control_msg(timeout=10)["content"]["subshell_id"]
        return made

    def press_stop(self, comm: str, subshell: str | None) -> None:
        data = {"method": "custom", "content": {"kind": "stop"}}
        message = self.client.session.msg("comm_msg", {"comm_id": comm, "data": data})
        if subshell:
            message["header"]["subshell_id"] = subshell
        self.client.shell_channel.send(message)

    def until(self, wanted: Callable[[dict[str, Any]], bool], seconds: float = 30) -> Any:
        """The content of the first message on iopub that is wanted."""
        end = time.monotonic() + seconds
        while True:
            message = self.client.get_iopub_msg(timeout=max(0.01, end - time.monotonic()))
            self.seen.append(message)
            if wanted(message):
                return message["content"]

    def until_idle(self, cell: str) -> None:
        self.until(
            lambda m: (
                m["msg_type"] == "status"
                and m["content"]["execution_state"] == "idle"
                and m["parent_header"].get("msg_id") == cell
            )
        )

    def printed(self) -> str:
        return "".join(m["content"]["text"] for m in self.seen if m["msg_type"] == "stream")

    def view(self) -> str:
        """The comm of the view, once three steps are drawn."""
        opened = self.until(is_view)
        self.until(
            lambda m: (
                m["msg_type"] == "comm_msg"
                and m["content"]["data"].get("state", {}).get("evaluations", 0) >= 3
            )
        )
        comm: str = opened["comm_id"]
        return comm


def is_view(message: dict[str, Any]) -> bool:
    if message["msg_type"] != "comm_open":
        return False
    state = message["content"]["data"].get("state", {})
    return state.get("_anywidget_id", "").endswith("SearchView")


@pytest.fixture
def front_end() -> Iterator[FrontEnd]:
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(ROOT))
    made = FrontEnd(manager)
    made.until_idle(made.execute(SETUP))
    yield made
    made.client.stop_channels()
    manager.shutdown_kernel(now=True)
    manager.cleanup_resources()


@pytest.mark.skipif(not SUBSHELLS, reason="ipykernel 6 has no subshells")
def test_stop_is_heard_while_the_cell_runs(front_end: FrontEnd) -> None:
    subshell = front_end.subshell()
    cell = front_end.execute(BLOCKING)
    comm = front_end.view()
    pressed = time.monotonic()
    front_end.press_stop(comm, subshell)
    front_end.until_idle(cell)
    word, count = front_end.printed().split()
    assert word == "stopped"
    assert 3 <= int(count) < 20
    assert time.monotonic() - pressed < 3


def test_the_interrupt_ends_it_too_and_keeps_what_was_found(front_end: FrontEnd) -> None:
    cell = front_end.execute(BLOCKING)
    front_end.view()
    front_end.manager.interrupt_kernel()
    front_end.until_idle(cell)
    word, count = front_end.printed().split()
    assert word == "interrupted"
    assert 2 <= int(count) < 20


def test_what_stays_in_the_cell_at_the_end_is_text(front_end: FrontEnd) -> None:
    cell = front_end.execute(BLOCKING)
    front_end.view()
    front_end.until_idle(cell)
    first, last = [
        next(m for m in messages if m["msg_type"] == kind)
        for messages, kind in (
            (front_end.seen, "display_data"),
            (front_end.seen[::-1], "update_display_data"),
        )
    ]
    assert WIDGET in first["content"]["data"]
    assert last["content"]["data"].keys() == {"text/plain"}
    assert last["content"]["data"]["text/plain"].startswith("40 evaluations in ")
    assert first["content"]["transient"] == last["content"]["transient"]


def test_a_search_in_the_background_hears_the_button_between_cells(front_end: FrontEnd) -> None:
    cell = front_end.execute(BACKGROUND)
    comm = front_end.view()
    front_end.press_stop(comm, None)
    shown = front_end.until(lambda m: m["msg_type"] == "update_display_data")
    assert "Outcomes" in shown["data"]["text/plain"]
    assert "returned" in front_end.printed()
    check = front_end.execute("print(handle.result().summary.trajectory.stopped)")
    front_end.until_idle(check)
    assert front_end.printed().split()[-1] == "stopped"
    assert cell != check


@pytest.mark.slow
def test_executed_by_nbclient_it_is_a_line_of_text() -> None:
    import nbclient
    import nbformat

    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(SETUP), nbformat.v4.new_code_cell(BLOCKING)]
    )
    nbclient.NotebookClient(
        notebook, timeout=60, resources={"metadata": {"path": str(ROOT)}}
    ).execute()
    outputs = notebook.cells[1].outputs
    shown = [o["data"] for o in outputs if o["output_type"] == "display_data"]
    assert [data.keys() for data in shown] == [{"text/plain"}]
    assert shown[0]["text/plain"].startswith("40 evaluations in ")
    assert "widgets" not in notebook.metadata
