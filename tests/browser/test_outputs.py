"""Stored outputs in a real JupyterLab: untrusted and trusted, light and dark, narrow and wide."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest

from optiml_magic.annotate import annotate
from optiml_magic.reports import annotation_html, html
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task
from tests.browser.lab import KERNEL, Lab, Notebook
from tests.unit.test_pictures import run

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

STORED = "stored.ipynb"
AGAIN = """\
from IPython.display import HTML
HTML(filename="{}.html")
"""
WIDTHS = (600, 700, 1000, 1400, 2000)
READABLE = 250  # pixels of a line: about 35 characters
LEAST = 3.4  # contrast of coloured text on its tint; of all else it is above 4
# Of every text that can be seen: its contrast with what lies behind it.
CONTRASTS = """root => {
  const parse = c => { const n = c.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n };
  const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3]));
  const light = c => c.slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = e => {
    if (!e) return [255, 255, 255];
    const c = parse(getComputedStyle(e).backgroundColor);
    return c[3] === 1 ? c : over(c, ground(e.parentElement));
  };
  const found = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
    if (!text || !e.checkVisibility()) continue;
    const back = ground(e), front = over(parse(getComputedStyle(e).color), back);
    const [a, b] = [light(front), light(back)];
    found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), text.slice(0, 40)]);
  }
  return found;
}"""
# Of every line of source: what of its text lies inside the page, and how long it is.
SEEN = """() => [...document.querySelectorAll('.jp-OutputArea tbody code')].map(e => {
  const box = e.getBoundingClientRect();
  const clip = e.closest('table').parentElement.getBoundingClientRect();
  return [Math.min(box.right, clip.right) - Math.max(box.left, clip.left), box.width];
})"""


@pytest.fixture(scope="module")
def fragments() -> dict[str, str]:
    """A report in which every text is hostile, and an annotated kernel."""
    found = annotate(
        known_task("matmul_tiled", m=64, n=64, k=64), resolve({"device": "emulated:h200"})
    )
    return {
        "report": html.fragment(run(40, 20, None, 10)),
        "annotate": annotation_html.fragment(found),
    }


@pytest.fixture
def opened(
    page: Any, lab: Lab, fragments: dict[str, str], request: pytest.FixtureRequest
) -> Iterator[Notebook]:
    """Both outputs in a notebook: as somebody else stored them, or by cells that have just run."""
    import nbformat

    cells = []
    for name, text in fragments.items():
        (lab.folder / f"{name}.html").write_text(text)
        bundle = {"text/plain": name, "text/html": text}
        output = nbformat.v4.new_output("execute_result", bundle, execution_count=1)
        cells.append(nbformat.v4.new_code_cell(AGAIN.format(name), outputs=[output]))
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=KERNEL), lab.folder / STORED)
    said: list[str] = []
    page.on("console", lambda message: message.type == "error" and said.append(message.text))
    notebook = lab.open(page, STORED)
    trusted = request.param == "trusted"
    if trusted:
        notebook.run_all()
        notebook.until_ran(1)
        page.locator(".jp-mod-trusted h3").nth(1).wait_for()
    assert page.locator(".jp-mod-trusted h3").count() == 2 * trusted
    yield notebook
    notebook.dark(is_dark=False)
    page.set_viewport_size({"width": 1200, "height": 900})
    assert said == []


both = pytest.mark.parametrize(
    "opened", ["untrusted", pytest.param("trusted", marks=pytest.mark.slow)], indirect=True
)


@both
def test_a_report_shows_its_pictures_in_the_colours_of_the_theme(
    opened: Notebook, picture: Any, request: pytest.FixtureRequest
) -> None:
    from PIL import Image

    page, area = opened.page, opened.outputs(0)
    images = area.locator("img")
    assert images.count() == 4
    assert all(images.evaluate_all("all => all.map(e => e.complete && e.naturalWidth > 400)"))
    assert all(images.evaluate_all("all => all.map(e => e.alt.length > 40)"))
    told = opened.text(0)
    assert "4x faster" in told
    assert "verified" in told
    assert "would need alone" not in told  # words of a picture that lost its lines
    for theme, is_ground in (("light", lambda v: v > 240), ("dark", lambda v: v < 40)):
        opened.dark(theme == "dark")
        for width in (700, 1400):
            page.set_viewport_size({"width": width, "height": 900})
            opened.look_at(0)
            boxes = [images.nth(at).bounding_box() for at in (0, 1)]
            assert (boxes[0]["y"] == boxes[1]["y"]) == (width == 1400)  # two columns or one
            assert all(box["x"] + box["width"] <= width for box in boxes)
            name = request.node.callspec.params["opened"]
            picture(area.first, f"report-{name}-{theme}-{width}")
        shot = Image.open(io.BytesIO(images.first.screenshot())).convert("L")
        assert is_ground(shot.getpixel((shot.width - 12, shot.height - 12)))
        found = area.first.evaluate(CONTRASTS)
        assert len(found) > 50
        assert [one for one in found if one[0] < LEAST] == []


@pytest.mark.parametrize("opened", ["untrusted"], indirect=True)
def test_the_best_program_is_selected_alone(opened: Notebook) -> None:
    page, area = opened.page, opened.outputs(0)
    area.get_by_text("The best program, to copy").click()
    area.locator("textarea").click()
    page.keyboard.press("Control+a")
    chosen = "() => { const e = document.activeElement; return [e.selectionEnd, e.value.length] }"
    end, length = page.evaluate(chosen)
    assert end == length > 10


@both
def test_annotated_source_is_readable_at_every_width(
    opened: Notebook, picture: Any, request: pytest.FixtureRequest
) -> None:
    page, area = opened.page, opened.outputs(1)
    name = request.node.callspec.params["opened"]
    for theme in ("light", "dark"):
        opened.dark(theme == "dark")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            opened.look_at(1)
            lines = page.evaluate(SEEN)
            assert len(lines) == 23
            assert [one for one in lines if one[0] < min(one[1], READABLE) - 1] == [], width
            picture(area.first, f"annotate-{name}-{theme}-{width}")
        assert area.first.evaluate(
            "e => [...e.querySelectorAll('td')].every(d => d.getBoundingClientRect().right < 2000)"
        )
        found = area.first.evaluate(CONTRASTS)
        assert [one for one in found if one[0] < LEAST] == []
    table = area.locator("table").first
    before = table.bounding_box()["width"]
    area.locator("summary", has_text="sum += tile_a").click()
    assembly = area.locator("pre", has_text="fma.rn.f32")
    assert assembly.is_visible()
    assert "FFMA" in assembly.inner_text()
    assert table.bounding_box()["width"] == before  # what opens does not push the figures away
    picture(area.first, f"annotate-{name}-open")
