"""search.js in a real browser, with a model that stands for anywidget's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import optiml_magic
from optiml_magic.model.evaluation import Step
from optiml_magic.model.verdict import Outcome
from optiml_magic.widgets.frame import Board
from tests.unit.widgets.steps import EVIL, SUBJECT, finding, some, step

pytestmark = pytest.mark.browser

WIDGETS = Path(optiml_magic.__file__).parent / "widgets"
FILES = {
    "/": (Path(__file__).with_name("model.html"), "text/html"),
    "/search.js": (WIDGETS / "search.js", "text/javascript"),
    "/search.css": (WIDGETS / "search.css", "text/css"),
}
Start = Callable[..., Any]


class Files(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path, kind = FILES[self.path]
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.end_headers()
        self.wfile.write(path.read_bytes())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def traits(steps: Sequence[Step], **others: Any) -> dict[str, Any]:
    """The state of a SearchView after these steps."""
    board = Board(SUBJECT)
    for one in steps:
        board.add(one)
    state = {
        "task": SUBJECT.task,
        "device": SUBJECT.device,
        "reason": SUBJECT.reason,
        "baseline": SUBJECT.baseline,
        "budget": SUBJECT.budget,
        "seconds": 0.0,
        "hint": "",
        "state": "running",
        "stopping": False,
        "ended": "",
        "elapsed": 3.25,
    }
    return {**state, **asdict(board.frame()), **others}


@pytest.fixture
def start(page: Any, address: str) -> Start:
    """Draws a view of some steps; returns the page."""

    def draw(steps: Sequence[Step], **others: Any) -> Any:
        page.goto(address)
        page.wait_for_function("window.ready")
        page.evaluate("state => window.start(state)", traits(steps, **others))
        return page

    return draw


def change(page: Any, **traits: Any) -> None:
    page.evaluate("changes => model.set(changes)", traits)


def shown(page: Any, selector: str) -> str:
    text: str = page.locator(selector).inner_text()
    return text


def test_it_tells_how_far_the_search_is(start: Start, picture: Any) -> None:
    page = start(some())
    text = shown(page, ".optiml-search")
    for part in (
        "transpose",
        "emulated:h200: auto chose it",
        "running",
        "4 of 24 evaluations in 3.3 s",
        "3 passed, 1 wrong, 1 duplicate",
        "5x estimated (between 3.85x and 6.5x): #3 pad the tile",
    ):
        assert part in text
    assert page.locator(".optiml-fill").evaluate("e => e.style.width") == "17%"
    picture(page.locator(".optiml-search"), "light")


def test_before_the_first_step_it_says_what_happens(start: Start) -> None:
    assert "Evaluating the input kernel." in shown(start([]), ".optiml-search")


def test_a_gain_within_the_interval_is_called_so(start: Start) -> None:
    page = start([step(0), step(1, 0, 0.9e-5)])
    assert "No significant change yet; the fastest is 1.11x estimated" in shown(
        page, ".optiml-lead"
    )


def test_every_step_is_a_node_and_failures_are_seen(start: Start) -> None:
    page = start(some())
    nodes = page.locator(".optiml-node")
    assert nodes.count() == 5
    assert page.locator(".optiml-branch").count() == 4
    # A walk through the tree: children below their parent.
    numbers = page.locator(".optiml-number").all_text_contents()
    assert [n.strip() for n in numbers] == ["#0", "#1", "#3", "#4", "#2"]
    assert page.locator(".optiml-failed").count() == 1
    assert page.locator(".optiml-failed text").text_content() == "#2 stage a tile  wrong"
    assert page.locator(".optiml-failed title").text_content() == "#2 stage a tile\nwrong: why 2"
    assert page.locator(".optiml-failed").is_visible()
    assert "same as #1" in page.locator(".optiml-duplicate text").text_content()
    assert (
        "#3 pad the tile  5x estimated"
        in page.locator(".optiml-node.optiml-best text").text_content()
    )


def test_every_speed_up_in_the_tree_carries_its_source(start: Start) -> None:
    page = start(some())
    ends = page.locator(".optiml-end").all_text_contents()
    assert [end.strip() for end in ends if "x " in end] == ["2x estimated", "5x estimated"]


def test_no_text_becomes_markup(start: Start) -> None:
    evil = [
        step(0, title=EVIL, findings=(finding(EVIL),)),
        step(1, 0, 5e-6, title=f'{EVIL}" onmouseover="window.hacked = true'),
        step(2, 0, None, title=EVIL),
    ]
    page = start(
        evil,
        task=EVIL,
        device=EVIL,
        reason=EVIL,
        ended=EVIL,
        hint=EVIL,
        program=EVIL,
        diff=f"+{EVIL}\n-{EVIL}\n@@ {EVIL}",
        verdicts={EVIL: 1},
    )
    change(page, state=EVIL)
    assert page.locator("#view script").count() == 0
    assert page.evaluate("window.hacked") is None
    assert page.evaluate(
        "[...document.querySelectorAll('#view *')].every(e => "
        "  [...e.attributes].every(a => !a.name.startsWith('on') && !a.value.includes('<')))"
    )
    assert page.locator(".optiml-task").text_content() == EVIL
    assert EVIL in page.locator(".optiml-failed title").text_content()
    assert page.locator("[data-panel=program] pre").text_content() == EVIL
    assert page.locator("[data-panel=findings] li").text_content().count(EVIL) == 2


def test_stop_sends_one_message_however_often_it_is_clicked(start: Start) -> None:
    page = start(some())
    stop = page.locator(".optiml-stop")
    stop.click()
    stop.click(force=True)
    stop.dispatch_event("click")
    assert page.evaluate("model.sent") == [{"kind": "stop"}]
    assert stop.is_disabled()
    change(page, stopping=True)
    assert shown(page, ".optiml-state") == "stopping"
    assert "the evaluation in flight is the last one" in shown(page, ".optiml-notice")
    change(page, stopping=True, state="stopped", ended="stopped")
    assert not stop.is_visible()
    assert shown(page, ".optiml-state") == "stopped"
    assert not page.locator(".optiml-notice").is_visible()
    assert page.locator(".optiml-fill").evaluate("e => e.style.width") == "17%"


def test_a_stop_that_nobody_hears_says_what_else_to_do(page: Any, start: Start) -> None:
    page.clock.install()
    start(some())
    page.locator(".optiml-stop").click()
    page.clock.run_for(2000)
    assert not page.locator(".optiml-notice").is_visible()
    page.clock.run_for(2500)
    assert "interrupt (\u25a0, or Ctrl-C)" in shown(page, ".optiml-notice")


def test_a_kernel_that_is_gone_is_noticed(page: Any, start: Start) -> None:
    page.clock.install()
    start(some())
    page.clock.run_for(12_000)
    assert "Nothing heard from the kernel for 1" in shown(page, ".optiml-notice")
    change(page, elapsed=16.0)
    page.clock.run_for(1000)
    assert not page.locator(".optiml-notice").is_visible()


def test_where_the_button_cannot_be_heard_there_is_none(start: Start) -> None:
    page = start(some(), hint="Interrupt the kernel.")
    assert not page.locator(".optiml-stop").is_visible()
    assert shown(page, ".optiml-notice") == "Interrupt the kernel."


def test_new_steps_are_drawn_and_what_is_read_stays(start: Start) -> None:
    page = start(some()[:2])
    page.get_by_role("tab", name="Diff").click()
    after = traits(some())
    change(page, **{name: after[name] for name in ("evaluations", "best", "steps", "diff")})
    assert page.locator(".optiml-node").count() == 5
    assert page.locator("[data-panel=diff]").is_visible()
    added = page.locator(".optiml-added").all_text_contents()
    assert added == ["+++ transpose (best)\n", "+program 3\n"]


def test_several_traits_are_painted_once(start: Start) -> None:
    page = start(some()[:2])
    page.evaluate(
        "window.paints = 0; new MutationObserver(() => window.paints++)"
        ".observe(document.querySelector('[data-panel=tree]'), {childList: true})"
    )
    after = traits(some())
    change(page, **{name: after[name] for name in ("steps", "best", "evaluations")})
    assert page.evaluate("window.paints") == 1
    change(page, elapsed=4.0)
    assert page.evaluate("window.paints") == 1


def test_tabs_are_reached_by_keys(start: Start) -> None:
    page = start(some())
    tabs = page.get_by_role("tab")
    assert tabs.all_text_contents() == ["Tree", "Best kernel", "Diff", "Findings"]
    tabs.first.focus()
    page.keyboard.press("ArrowLeft")
    assert page.get_by_role("tab", selected=True).text_content() == "Findings"
    assert page.locator("[data-panel=findings]").is_visible()
    assert "try: stage bank conflicts" in shown(page, "[data-panel=findings]")
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("tab", selected=True).text_content() == "Tree"


def test_a_long_and_deep_search_is_drawn_in_time(start: Start) -> None:
    steps = [step(0)] + [step(n, n - 1 if n < 300 else n // 3, 1e-5 / n) for n in range(1, 1000)]
    page = start(steps)
    assert page.locator(".optiml-node").count() == 1000
    spent = page.evaluate(
        "() => { const began = performance.now(); model.set({steps: [...model.get('steps')]});"
        " return new Promise(done => setTimeout(() => done(performance.now() - began))); }"
    )
    assert spent < 1000  # ms; 60 on the machine this was written on
    box = page.locator(".optiml-search").bounding_box()
    assert box["width"] <= 1100
    assert box["height"] < 500


def test_a_view_that_is_closed_listens_no_more(start: Start) -> None:
    page = start(some())
    page.evaluate("stopDrawing()")
    assert page.evaluate("model.listeners.length") == 0
    change(page, task="other")
    assert shown(page, ".optiml-task") == "transpose"


def test_it_follows_the_theme(start: Start, picture: Any) -> None:
    page = start(
        [*some(), step(5, 3, None, outcome=Outcome.COMPILE_ERROR, title="unroll the loop")]
    )
    light = page.locator(".optiml-task").evaluate("e => getComputedStyle(e).color")
    page.evaluate("document.body.classList.add('dark')")
    dark = page.locator(".optiml-task").evaluate("e => getComputedStyle(e).color")
    fill = page.locator(".optiml-node text").first.evaluate("e => getComputedStyle(e).fill")
    assert light != dark
    assert dark == fill == "rgb(238, 238, 238)"
    picture(page, "dark")
    for name in ("Best kernel", "Diff", "Findings"):
        page.get_by_role("tab", name=name).click()
        picture(page, f"dark-{name.split()[0].lower()}")
