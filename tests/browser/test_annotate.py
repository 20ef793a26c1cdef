"""Annotated source in a real browser: under a strict policy, through nbconvert, sanitised."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from optiml_magic.annotate import annotate
from optiml_magic.reports import annotation_html, annotation_text, html
from optiml_magic.reports.annotation import Annotation
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task
from tests.unit.test_pictures import run

pytestmark = pytest.mark.browser

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
Open = Callable[[str], Any]


class Pages(BaseHTTPRequestHandler):
    """Serves one text under the policy."""

    text = ""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(self.text.encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def found() -> Annotation:
    task = known_task("matmul_tiled", m=64, n=64, k=64)
    return annotate(task, resolve({"device": "emulated:h200"}))


@pytest.fixture
def show(page: Any) -> Iterator[Open]:
    """Opens a text under the policy, which nothing in it may have broken."""
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()

        def opened(text: str) -> Any:
            Pages.text = text
            page.goto(f"http://127.0.0.1:{server.server_port}/")
            return page

        yield opened
        server.shutdown()
        thread.join()
    assert [text for text in said if "favicon" not in text] == []


def converted(found: Annotation, **options: Any) -> str:
    """A notebook that holds the output, as nbconvert writes it."""
    bundle = {
        "text/plain": annotation_text.render(found),
        "text/html": annotation_html.fragment(found),
    }
    import nbformat
    from nbconvert import HTMLExporter

    output = nbformat.v4.new_output("execute_result", bundle, execution_count=1)
    cell = nbformat.v4.new_code_cell("%%optiml annotate", outputs=[output])
    body, _ = HTMLExporter(**options).from_notebook_node(nbformat.v4.new_notebook(cells=[cell]))
    return str(body)


def hot(page: Any) -> Any:
    return page.locator("tr", has=page.locator("code", has_text="sum += tile_a"))


def test_it_is_drawn_and_opens_under_a_strict_policy(
    found: Annotation, show: Open, picture: Any
) -> None:
    page = show(annotation_html.page([found], "annotate"))
    assembly = hot(page).locator("pre")
    assert not assembly.is_visible()
    hot(page).locator("summary").click()
    assert assembly.is_visible()
    assert "fma.rn.f32" in assembly.inner_text()
    assert "FFMA" in assembly.inner_text()
    picture(page, "annotate-light")
    heat = "e => getComputedStyle(e).backgroundColor"
    strongest = hot(page).locator("td").nth(1).evaluate(heat)
    assert strongest.startswith("rgba(255, 120, 0, 0.")
    assert (
        page.locator("tr", has_text="__syncthreads").first.locator("td").nth(1).evaluate(heat)
        != strongest
    )
    assert page.locator("script").count() == 0
    left = page.locator("tbody code").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect().x)"
    )
    assert max(left) - min(left) < 1  # what opens and what does not begin at one edge


def test_pictures_are_drawn_under_the_policy(show: Open, picture: Any) -> None:
    page = show(html.page([run(40, 20, None, 10)], "optiml report"))
    drawn = page.locator("img")
    assert drawn.count() == 4
    assert all(drawn.evaluate_all("all => all.map(e => e.naturalWidth > 400)"))
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        picture(page, f"report-page-{scheme}")
    page.set_viewport_size({"width": 400, "height": 800})
    assert drawn.first.bounding_box()["width"] <= 400
    page.set_viewport_size({"width": 1200, "height": 900})
    page.emulate_media(color_scheme="light")


def test_it_follows_the_theme_of_the_system(found: Annotation, show: Open, picture: Any) -> None:
    page = show(annotation_html.page([found], "annotate"))
    page.emulate_media(color_scheme="dark")
    hot(page).locator("summary").click()
    picture(page, "annotate-dark")
    color = "e => getComputedStyle(e).color"
    assert page.locator("h3").evaluate(color) == hot(page).locator("pre").evaluate(color)
    assert page.locator("h3").evaluate(color) == "rgb(255, 255, 255)"
    page.emulate_media(color_scheme="light")


def test_it_survives_nbconvert(found: Annotation, page: Any, tmp_path: Any, picture: Any) -> None:
    # nbconvert's own template loads scripts from elsewhere, so only its text is opened here.
    text = converted(found, template_name="basic")
    assert annotation_html.fragment(found) in text
    assert annotation_html.fragment(found) in converted(found)
    page.set_content(text)
    hot(page).locator("summary").click()
    assert "FFMA" in hot(page).locator("pre").inner_text()
    picture(page, "annotate-nbconvert")


def test_what_a_sanitiser_leaves_can_still_be_read(
    found: Annotation, show: Open, picture: Any
) -> None:
    """As strict as GitHub: no styles; the elements of tables, code and details stay."""
    import bleach

    kept = {"table", "thead", "tbody", "tr", "th", "td", "details", "summary", "pre", "code"}
    text = bleach.clean(annotation_html.fragment(found), tags={*kept, "div", "h3"}, strip=True)
    assert "style=" not in text
    page = show(f"<!doctype html><meta charset='utf-8'>{text}")
    row = hot(page).locator("td").all_inner_texts()
    assert row[:2] == ["16", next(c for c in [row[1]] if c.endswith("%"))]
    hot(page).locator("summary").click()
    assert "fma.rn.f32" in hot(page).locator("pre").inner_text()
    picture(page, "annotate-sanitised")
    # nbconvert's own sanitiser knows no details element and shows its tags; nothing is hidden.
    assert "fma.rn.f32" in converted(found, template_name="basic", sanitize_html=True)
