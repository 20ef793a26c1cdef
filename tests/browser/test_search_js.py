"""search.js in a real browser, with a model that stands for anywidget's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

import optiml_magic
from optiml_magic.model.evaluation import Step
from optiml_magic.model.verdict import Outcome
from optiml_magic.reports import html
from optiml_magic.widgets.frame import Board
from tests.unit.widgets.steps import EVIL, SUBJECT, finding, some, step, summary

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
        "paused": False,
        "reported": False,
        "doing": "",
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
        "4 of 24 evaluations in 3.3 s \u00b7 74 a minute \u00b7 about 16 s left",
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
    assert page.locator(".optiml-node").count() == 5
    assert page.locator(".optiml-branch").get_attribute("d").count("M") == 4
    # A walk through the tree: children below their parent.
    numbers = page.locator(".optiml-number").all_text_contents()
    assert numbers == ["#0", "#1", "#3", "#4", "#2"]
    assert page.locator(".optiml-failed").count() == 1
    assert shown(page, ".optiml-failed").split("\n") == ["#2", "stage a tile", "wrong"]
    assert page.locator(".optiml-failed").get_attribute("title") == "#2 stage a tile\nwrong: why 2"
    assert shown(page, ".optiml-duplicate .optiml-end") == "same as #1"
    assert shown(page, ".optiml-best").split("\n") == ["#3", "pad the tile", "5x estimated"]


def test_every_speed_up_in_the_tree_carries_its_source(start: Start) -> None:
    page = start(some())
    ends = page.locator(".optiml-end").all_text_contents()
    assert [end for end in ends if "x " in end] == ["2x estimated", "5x estimated"]


@pytest.mark.parametrize("width", [600, 1200])
def test_figures_are_seen_however_long_the_titles_and_deep_the_tree(
    page: Any, start: Start, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    long = "interchange the loops over rows and columns and then stage both of the tiles " * 3
    start([step(0)] + [step(n, n - 1, 1e-5 / n, title=long) for n in range(1, 60)])
    tree = page.locator(".optiml-tree").bounding_box()
    for at in (1, 8):
        box = page.locator(".optiml-end").nth(at).bounding_box()
        assert tree["x"] + 100 < box["x"]
        assert box["x"] + box["width"] <= tree["x"] + tree["width"]
    assert page.locator(".optiml-tree").evaluate("e => e.scrollWidth <= e.clientWidth")
    page.set_viewport_size({"width": 1200, "height": 900})


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
        "  [...e.attributes].every(a => !a.name.startsWith('on')))"
    )
    assert page.locator(".optiml-task").text_content() == EVIL
    assert EVIL in page.locator(".optiml-failed").get_attribute("title")
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
    change(page, elapsed=5.0)  # a sign of life is not an answer
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
        ".observe(document.querySelector('.optiml-tree'), {childList: true})"
    )
    after = traits(some())
    change(page, **{name: after[name] for name in ("steps", "best", "evaluations")})
    assert page.evaluate("window.paints") == 1
    change(page, elapsed=4.0)
    assert page.evaluate("window.paints") == 1


def test_tabs_are_reached_by_keys(start: Start) -> None:
    page = start(some())
    tabs = page.get_by_role("tab")
    assert tabs.all_text_contents() == ["Tree", "Best kernel", "Diff", "Findings", "Roofline"]
    tabs.first.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.get_by_role("tab", selected=True).text_content() == "Findings"
    assert page.locator("[data-panel=findings]").is_visible()
    assert "try: stage bank conflicts" in shown(page, "[data-panel=findings]")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert page.get_by_role("tab", selected=True).text_content() == "Tree"


def test_a_long_and_deep_search_stays_in_its_place(start: Start) -> None:
    steps = [step(0)] + [step(n, n - 1 if n < 300 else n // 3, 1e-5 / n) for n in range(1, 1000)]
    page = start(steps)
    assert page.locator(".optiml-node").count() == 1000
    box = page.locator(".optiml-search").bounding_box()
    assert box["width"] <= 1100
    assert box["height"] < 600


STREAM = """async (rows) => {
  const frames = [];
  const paints = [];
  let going = true;
  let last = performance.now();
  requestAnimationFrame(function tick(now) {
    frames.push(now - last);
    last = now;
    if (going) requestAnimationFrame(tick);
  });
  for (let count = 5; count <= rows.length; count += 5) {
    const began = performance.now();
    model.set({ steps: rows.slice(0, count), evaluations: count, elapsed: count / 10 });
    await null;  // the view paints in a microtask
    document.querySelector(".optiml-tree").getBoundingClientRect();
    paints.push(performance.now() - began);
    await new Promise((done) => setTimeout(done, 20));
  }
  going = false;
  const middle = (all) => all.sort((a, b) => a - b)[Math.floor(all.length / 2)];
  return { frame: middle(frames), paint: middle(paints), worst: paints.at(-1) };
}"""


def test_500_nodes_are_fluid_and_leave_nothing_behind(page: Any, start: Start) -> None:
    """Many more frames than the kernel sends: it rests longer, the more rows there are."""
    steps = [step(0)] + [step(n, n // 3, 1e-5 / n) for n in range(1, 500)]
    rows = traits(steps)["steps"]
    start(steps[:1])
    devtools = page.context.new_cdp_session(page)

    def held() -> tuple[float, int]:
        devtools.send("HeapProfiler.collectGarbage")
        used, counted = (
            devtools.send(f) for f in ("Runtime.getHeapUsage", "Memory.getDOMCounters")
        )
        return used["usedSize"], counted["nodes"]

    spent = page.evaluate(STREAM, rows)
    assert page.locator(".optiml-node").count() == 500
    assert spent["frame"] < 50, spent  # ms
    assert spent["paint"] < 50, spent
    before = held()
    page.evaluate(
        "async () => { for (let n = 0; n < 200; n += 1) {"
        " model.set({steps: [...model.get('steps')], elapsed: n}); await null; } }"
    )
    after = held()
    assert after[1] <= before[1] + 50  # nodes of the page
    assert after[0] <= before[0] + 2_000_000  # bytes


def test_a_view_that_is_closed_listens_no_more(start: Start) -> None:
    page = start(some())
    page.evaluate("stopDrawing()")
    assert page.evaluate("model.listeners.length") == 0
    change(page, task="other")
    assert shown(page, ".optiml-task") == "transpose"


def answer(page: Any, steps: Sequence[Step], number: int) -> None:
    """What the kernel says when somebody asks for a node."""
    board = Board(SUBJECT)
    for one in steps:
        board.add(one)
    page.evaluate("node => model.say(node)", {"kind": "node", **(board.node(number) or {})})


def test_a_node_that_is_clicked_shows_all_there_is_to_know_of_it(start: Start) -> None:
    page = start(some())
    page.locator(".optiml-node").nth(2).click()
    assert page.evaluate("model.sent") == [{"kind": "node", "id": 3}]
    assert page.get_by_role("treeitem", selected=True).inner_text().startswith("#3")
    answer(page, some(), 1)  # asked for before; nobody waits for it now
    assert "#3" in shown(page, ".optiml-detail")
    answer(page, some(), 3)
    text = shown(page, ".optiml-detail")
    for part in (
        "#3 pad the tile",
        "passed, 5x estimated, made from #1, by rules",
        "critical bank conflicts",
        "try: stage bank conflicts",
        "Diff against #1",
        "-program 1",
        "+program 3",
        "program 3\nline two",
    ):
        assert part in text
    page.locator(".optiml-failed").click()
    answer(page, some(), 2)
    assert "wrong, made from #0, by rules\nwhy 2" in shown(page, ".optiml-detail")


def test_the_tree_is_walked_by_keys(start: Start) -> None:
    page = start(some())
    page.get_by_role("tab", name="Tree").focus()
    page.keyboard.press("Tab")  # the panel
    page.keyboard.press("Tab")

    def focused() -> str:
        text: str = page.evaluate("document.activeElement.textContent")
        return text[:2]

    assert focused() == "#0"
    seen = []
    for key in ("ArrowDown", "ArrowRight", "ArrowLeft", "End", "ArrowUp", "Home", "ArrowUp"):
        page.keyboard.press(key)
        seen.append(focused())
    assert seen == ["#1", "#3", "#1", "#2", "#4", "#0", "#0"]
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    assert page.evaluate("model.sent") == [{"kind": "node", "id": 2}]
    levels = [row.get_attribute("aria-level") for row in page.get_by_role("treeitem").all()]
    assert levels == ["1", "2", "3", "3", "2"]
    # New steps come, and who reads stays where they are.
    change(page, steps=traits([*some(), step(5, 0, 3e-6)])["steps"])
    assert focused() == "#2"


def test_findings_say_which_step_they_are_of(start: Start) -> None:
    page = start(some()[:2])
    page.get_by_role("tab", name="Findings").click()
    assert shown(page, "[data-panel=findings]").startswith(
        "On step #0, which the best was made from:"
    )
    change(page, **{name: traits(some())[name] for name in ("best", "findings")})
    assert shown(page, "[data-panel=findings]").startswith("On step #3:")


def test_a_program_is_edited_by_hand_and_sent(start: Start) -> None:
    page = start(some())
    page.locator(".optiml-best").click()
    answer(page, some(), 3)
    page.get_by_role("button", name="Edit").click()
    text = page.get_by_role("textbox", name="program of #3")
    assert text.input_value() == "program 3\nline two\n"
    text.fill("mine <b>&")
    # Frames come, other nodes are looked at, and the text is kept.
    change(page, elapsed=9.0)
    page.locator(".optiml-failed").click()
    answer(page, some(), 2)
    page.locator(".optiml-best").click()
    answer(page, some(), 3)
    assert text.input_value() == "mine <b>&"
    page.get_by_role("button", name="Evaluate").click()
    sent = {"kind": "edit", "parent": 3, "program": "mine <b>&"}
    assert page.evaluate("model.sent.at(-1)") == sent
    refused = {"kind": "edit", "parent": 3, "refused": "a kernel is missing (line 2)"}
    page.evaluate("said => model.say(said)", refused)
    assert "Not taken: a kernel is missing (line 2)." in shown(page, ".optiml-detail")
    page.evaluate("said => model.say(said)", {**refused, "refused": ""})
    assert "Taken: it is evaluated next." in shown(page, ".optiml-detail")
    page.get_by_role("button", name="Cancel").click()
    assert not text.is_visible()
    change(page, state="done")
    page.locator(".optiml-best").click()
    answer(page, some(), 3)
    assert not page.get_by_role("button", name="Edit").is_visible()


def test_it_is_paused_and_resumed(start: Start) -> None:
    page = start(some(), doing="verifying")
    assert shown(page, ".optiml-state") == "verifying"
    page.get_by_role("button", name="Pause").click()
    change(page, paused=True)
    assert shown(page, ".optiml-state") == "paused"
    assert "then the search waits" in shown(page, ".optiml-notice")
    page.get_by_role("button", name="Resume").click()
    change(page, paused=False)
    assert shown(page, ".optiml-state") == "verifying"
    assert page.evaluate("model.sent") == [{"kind": "pause"}, {"kind": "resume"}]


def test_the_roofline_is_asked_for_where_it_is_looked_at(start: Start) -> None:
    page = start(some())
    assert page.evaluate("model.sent") == []
    page.get_by_role("tab", name="Roofline").click()
    evil = f"<svg xmlns='http://www.w3.org/2000/svg' onload='window.hacked = 1'>{EVIL}</svg>"
    for told in (evil, SVG):
        said = {"kind": "roofline", "best": 3, "svg": told, "told": "the path"}
        page.evaluate("said => model.say(said)", said)
    change(page, elapsed=9.0)
    assert page.evaluate("model.sent") == [{"kind": "roofline"}]
    picture = page.get_by_role("img", name="the path")
    picture.evaluate("image => image.decode()")
    change(page, best={**traits(some())["best"], "id": 1})
    assert page.evaluate("model.sent.length") == 2
    page.evaluate("said => model.say(said)", {**said, "svg": "", "told": "no limits are known"})
    assert shown(page, "[data-panel=roofline]") == "No roofline: no limits are known."
    assert page.evaluate("window.hacked") is None


SVG = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><path d='M0 0h9'/></svg>"
REPORT = """
<div onclick="window.hacked = 1" style="color:red"><h3>1.5x &lt;b&gt;</h3>
<script>window.hacked = 1</script><img src="x" onerror="window.hacked = 1">
<img src="https://127.0.0.2/seen" alt="far"><img alt="near" src="data:image/svg+xml,%3Csvg%2F%3E">
<svg onload="window.hacked = 1"><script>window.hacked = 1</script></svg>
<iframe srcdoc="<script>parent.hacked = 1</script>"></iframe><object data="x"></object>
<a href="javascript:window.hacked = 1">link</a><form action="x"><input></form>
<p style="background:url(https://127.0.0.2/seen)">text</p><math><mi xlink:href="x"></mi></math>
<details open><summary>Diff</summary><pre style="white-space:pre">-a
+b</pre></details></div>"""


def test_the_report_comes_where_the_cell_cannot_have_it_and_runs_nothing(
    page: Any, start: Start
) -> None:
    page.clock.install()
    start(some(), state="done", ended="budget spent", reported=True)
    assert page.evaluate("model.sent") == []  # the notebook's own output may take the place
    page.clock.run_for(1500)
    change(page, elapsed=9.0)
    page.clock.run_for(1500)
    assert page.evaluate("model.sent") == [{"kind": "report"}]
    page.evaluate("html => model.say({kind: 'report', html})", REPORT)
    assert page.get_by_role("tab", selected=True).text_content() == "Report"
    panel = page.locator("[data-panel=report]")
    assert panel.locator("h3").text_content() == "1.5x <b>"
    page.clock.run_for(1000)
    assert page.evaluate("window.hacked") is None
    left = panel.evaluate("e => [...e.querySelectorAll('*')].map(e => e.localName).join(' ')")
    assert left == "div h3 img img img a p details summary pre"
    attributes = panel.evaluate(
        "e => [...e.querySelectorAll('*')].flatMap(e => [...e.attributes].map(a => a.name)).join(' ')"
    )
    assert attributes == "style alt alt src open style"


def test_the_report_of_texts_that_are_markup_shows_them_as_text(start: Start) -> None:
    evil = [step(0, title=EVIL, findings=(finding(EVIL),)), step(1, 0, 5e-6, title=EVIL)]
    page = start(evil)
    report = html.fragment(replace(summary(evil), task=EVIL))
    page.evaluate("html => model.say({kind: 'report', html})", report)
    assert EVIL in page.locator("[data-panel=report] h3").text_content()
    assert page.locator("[data-panel=report] script").count() == 0
    assert page.evaluate("window.hacked") is None


def test_axe_finds_nothing_serious_before_the_first_step(start: Start) -> None:
    found = Axe().run(start([]), "#view").response["violations"]
    assert [f"{f['id']}: {f['nodes'][0]['html']}" for f in found] == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious(start: Start, dark: bool) -> None:
    page = start(some(), doing="verifying", refused=[{"program": "it", "reasons": ["no loop"]}])
    page.evaluate("dark => document.body.classList.toggle('dark', dark)", dark)
    page.locator(".optiml-best").click()
    answer(page, some(), 3)
    page.locator(".optiml-pause").hover()
    for tab in page.get_by_role("tab").all():
        tab.click()
        found = Axe().run(page, "#view").response["violations"]
        assert [f"{f['id']}: {f['nodes'][0]['html']}" for f in found] == []


def test_it_follows_the_theme(start: Start, picture: Any) -> None:
    page = start(
        [*some(), step(5, 3, None, outcome=Outcome.COMPILE_ERROR, title="unroll the loop")]
    )
    light = page.locator(".optiml-task").evaluate("e => getComputedStyle(e).color")
    page.evaluate("document.body.classList.add('dark')")
    dark = page.locator(".optiml-task").evaluate("e => getComputedStyle(e).color")
    assert light != dark
    assert dark == "rgb(238, 238, 238)"
    picture(page, "dark")
    for name in ("Best kernel", "Diff", "Findings"):
        page.get_by_role("tab", name=name).click()
        picture(page, f"dark-{name.split()[0].lower()}")
