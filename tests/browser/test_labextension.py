"""The JupyterLab extension: what a cell of CUDA looks like, and its neighbours as they were."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.browser.cells import BODY, CUDA, LONG_SETUP, PYTHON, SEARCH, SETUP
from tests.browser.lab import EXTENSION, Notebook, serious
from tests.browser.window import Window, comes_to
from tests.present import sampled

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(240),
    pytest.mark.skipif(
        not EXTENSION.is_dir(), reason="the extension is not built: make lab-extension"
    ),
]

PROSE = "%%optiml synthesize --ref double\nIt's twice the input, don't \"round\" if you can"
COLOUR = """
([cell, text]) => {
  const found = document.querySelectorAll('.jp-Notebook .jp-Cell')[cell];
  for (const line of found?.querySelectorAll('.cm-line') ?? []) {
    const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const words = walker.currentNode.data.split(/(?<![\\w-])(?=[\\w-])|(?<=[\\w-])(?![\\w-])/);
      if (walker.currentNode.data.includes(text) && (words.includes(text) || /\\W/.test(text))) {
        const {color, fontWeight} = getComputedStyle(walker.currentNode.parentElement);
        return `${color} ${fontWeight}`;
      }
    }
  }
  return null;
}
"""


def colours(notebook: Notebook, cell: int) -> Callable[[str], str | None]:
    """The colour of a piece of text in that cell, None until the text is there."""
    return lambda text: notebook.page.evaluate(COLOUR, [cell, text])


def are(read: Callable[[str], str | None], wanted: Mapping[str, str | None]) -> None:
    """These texts have, or come to have, these colours."""
    comes_to(lambda: {text: read(text) for text in wanted}, dict(wanted))


def distinct(read: Callable[[str], str | None], *texts: str) -> list[str]:
    """The colours of these texts, each another."""
    comes_to(lambda: len({read(text) for text in texts} - {None}), len(texts))
    return [read(text) or "" for text in texts]


def test_a_cell_of_cuda_has_its_colours_and_python_beside_it_keeps_its(
    opened: Any, picture: Any
) -> None:
    notebook = opened(CUDA, PYTHON, PROSE, BODY, ready=False)
    for dark in (False, True):
        notebook.dark(dark)
        cuda, python, prose = (colours(notebook, cell) for cell in range(3))
        keyword, comment, number, builtin = distinct(python, "def", "# a remark", "2.0", "len")
        words = {
            "__global__": keyword,
            "if": keyword,
            "launch": keyword,
            "check": keyword,
            "// don't stop": comment,
            "/* a comment": comment,
            "of two lines */": comment,
            "2.0f": number,
            "float": builtin,
            "cdiv": builtin,
        }
        are(cuda, words)
        magic, *_ = distinct(cuda, "%%optiml", "--ref", "double", "threadIdx")
        are(cuda, {"#pragma optiml": magic})
        are(prose, {"%%optiml": magic, "synthesize": keyword})
        plain = prose("twice the input")
        assert plain == prose("round") == prose("if")
        # Without the magic it is Python still: the same text, its comment none.
        assert distinct(colours(notebook, 3), "__global__", "if")[0] != keyword
        picture(notebook.page, f"extension-{'dark' if dark else 'light'}")


def test_the_language_follows_the_magic_as_it_is_typed_and_deleted(opened: Any) -> None:
    notebook = opened(f"{BODY}# len\n", PYTHON, ready=False)
    page = notebook.page
    cuda, python = colours(notebook, 0), colours(notebook, 1)
    keyword = distinct(python, "def", "len")[0]
    plain, _ = distinct(cuda, "__global__", "# len")
    assert plain != keyword
    notebook.cell(0).locator(".cm-content").click()
    page.keyboard.press("Control+Home")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowUp")
    page.keyboard.type("%%optim")
    are(cuda, {"%%optim": cuda("%%optim"), "__global__": plain})
    page.keyboard.type("l check")
    are(cuda, {"__global__": keyword})
    page.keyboard.press("Home")
    page.keyboard.press("Shift+End")
    page.keyboard.press("Delete")
    are(cuda, {"__global__": plain})
    are(python, {"def": keyword})


def typed(notebook: Notebook, cell: int, *keys: str) -> str:
    """The text of a cell after its end got these keys, words or names of keys."""
    notebook.cell(cell).locator(".cm-content").click()
    notebook.page.keyboard.press("Control+End")
    for key in keys:
        if key in ("Enter", "Control+/", "ArrowUp"):
            notebook.page.keyboard.press(key)
        else:
            notebook.page.keyboard.type(key)
    found: str = notebook.page.evaluate(
        "at => jupyterapp.shell.currentWidget.content.widgets[at].model.sharedModel.getSource()",
        cell,
    )
    return found


def test_enter_indents_as_c_and_comments_toggle_as_in_each_language(opened: Any) -> None:
    notebook = opened("%%optiml check", "%%optiml check\nint x;", "x = 1", ready=False)
    written = typed(
        notebook, 0, "Enter", "__global__ void k(int n) {", "Enter", "if (n)", "Enter", "n = 0;",
        "Enter", "n++;",
    )  # fmt: skip
    assert written.splitlines()[1:5] == [
        "__global__ void k(int n) {", "    if (n)", "        n = 0;", "    n++;",
    ]  # fmt: skip
    assert typed(notebook, 1, "Control+/") == "%%optiml check\n// int x;"
    assert typed(notebook, 2, "Control+/") == "# x = 1"


def test_brackets_match_in_cuda(opened: Any) -> None:
    notebook = opened("%%optiml check\nvoid f(int* a) { a[0] = (1); }", ready=False)
    notebook.cell(0).locator(".cm-content").click()
    notebook.page.keyboard.press("Control+End")
    matched = notebook.cell(0).locator(".cm-matchingBracket")
    matched.first.wait_for(timeout=5000)
    comes_to(matched.all_text_contents, ["{", "}"])


def test_cu_files_are_cuda(window: Window) -> None:
    for name in ("scale.cu", "scale.cuh"):
        Path(window.lab.folder, name).write_text(BODY)
        window.show(name)
        spans = window.page.locator(".jp-FileEditor:visible .cm-line span")
        for whole in ("__global__", "// don't stop"):
            comes_to(spans.filter(has_text=whole).first.inner_text, whole)


def test_no_other_cell_is_touched(opened: Any) -> None:
    """The same cells with the extension's magic one letter off have the colours of Python."""
    notebook = opened(CUDA.replace("%%optiml", "%%optimlx"), f"# x\n{CUDA}", PYTHON, ready=False)
    keyword, comment = distinct(colours(notebook, 2), "def", "# a remark")
    for cell in (0, 1):
        comes_to(lambda cell=cell: colours(notebook, cell)("__global__") in (keyword, None), False)
        assert colours(notebook, cell)("comment") != comment


def button(notebook: Notebook, cell: int, name: str) -> Any:
    return notebook.cell(cell).get_by_role("button", name=re.compile(f"^{name}: "))


def source(notebook: Notebook, cell: int) -> str:
    found: str = notebook.page.evaluate(
        "at => jupyterapp.shell.currentWidget.content.widgets[at].model.sharedModel.getSource()",
        cell,
    )
    return found


def test_the_toolbar_runs_a_cell_with_another_command(opened: Any, picture: Any) -> None:
    notebook = opened(SETUP, f"%%optiml optimize --ref double --budget 2\n{BODY}", PYTHON)
    notebook.run(0)
    notebook.until_ran(0)
    notebook.cell(1).locator(".cm-content").click()
    picture(notebook.page, "extension-toolbar")
    button(notebook, 1, "Check").click()
    notebook.outputs(1).get_by_text("1024 output elements right").first.wait_for(timeout=60_000)
    comes_to(lambda: source(notebook, 1), f"%%optiml check --ref double\n{BODY}")
    button(notebook, 1, "Annotate").click()
    notebook.outputs(1).get_by_text("machine code").first.wait_for(timeout=60_000)
    assert source(notebook, 1).startswith("%%optiml annotate --ref double\n")
    button(notebook, 1, "Optimise").click()
    notebook.outputs(1).get_by_text("The tree of all").wait_for(timeout=60_000)
    assert source(notebook, 1).startswith("%%optiml optimize --ref double --budget 2\n")


def test_the_toolbar_is_only_where_a_kernel_is(opened: Any) -> None:
    notebook = opened(CUDA, PYTHON, "%%optiml synthesize --ref double\nwords", BODY, ready=False)
    buttons = ("Check", "Optimise", "Annotate", "Stop")
    for cell, shown in enumerate((buttons, (), ("Stop",), ())):
        notebook.cell(cell).locator(".cm-content").click()
        notebook.cell(cell).locator("jp-toolbar, .jp-cell-toolbar").first.wait_for(timeout=5000)
        comes_to(
            lambda cell=cell: tuple(n for n in buttons if button(notebook, cell, n).count()), shown
        )
    notebook.page.keyboard.press("Control+Home")
    notebook.page.keyboard.type("%%optiml check\n")
    button(notebook, 3, "Check").wait_for(timeout=5000)


@pytest.mark.slow
def test_stop_ends_the_search_of_the_cell(opened: Any) -> None:
    notebook = opened(LONG_SETUP, f"%%optiml optimize beside --background {SEARCH}")
    notebook.run(0)
    notebook.run(1)
    notebook.until_steps(2)
    notebook.cell(1).locator(".cm-content").click()
    button(notebook, 1, "Stop").click()
    notebook.page.get_by_text("beside: stopping after the evaluation").wait_for(timeout=20_000)
    notebook.outputs(1).get_by_text("The tree of all").wait_for(timeout=60_000)
    button(notebook, 1, "Stop").click()
    notebook.page.get_by_text("no search of this cell runs").wait_for(timeout=20_000)


@pytest.mark.slow
def test_stop_interrupts_a_search_that_runs_in_its_cell(opened: Any) -> None:
    notebook = opened(LONG_SETUP, f"%%optiml optimize {SEARCH}")
    notebook.run(0)
    notebook.run(1)
    notebook.until_steps(2)
    notebook.cell(1).locator(".cm-content").click()
    button(notebook, 1, "Stop").click()
    notebook.outputs(1).get_by_text("The tree of all").wait_for(timeout=60_000)
    assert "stopped" in notebook.text(1) or "interrupted" in notebook.text(1)


def mark(notebook: Notebook, cell: int) -> Any:
    return notebook.cell(cell).locator(".optiml-mark")


# Where the mark and the lines are is read at one instant: a page that scrolls or lays itself out
# between two questions has no line beside its mark.
LINE_OF_MARK = """cell => {
  const marks = cell.querySelectorAll(".optiml-mark");
  if (marks.length !== 1) return `${marks.length} marks`;
  const at = marks[0].getBoundingClientRect();
  const middle = (at.top + at.bottom) / 2;
  for (const line of cell.querySelectorAll(".cm-line")) {
    const box = line.getBoundingClientRect();
    if (box.top <= middle && middle < box.bottom) return line.innerText.trim();
  }
  return "no line beside the mark";
}"""


def is_beside(notebook: Notebook, cell: int, line: str) -> None:
    """The only mark of a cell is, or comes to be, beside this line."""
    comes_to(lambda: notebook.cell(cell).evaluate(LINE_OF_MARK), line)


@pytest.mark.parametrize("command", sampled(["check", "optimize --budget 2"]))
def test_a_compile_error_is_marked_on_its_line_until_that_changes(
    opened: Any, window: Window, picture: Any, command: str
) -> None:
    cell = f"%%optiml {command} --ref double\n{BODY}".replace("x[i];", "y[i];")
    notebook = opened(SETUP, cell, PYTHON)
    notebook.run(0)
    notebook.run(1)
    mark(notebook, 1).wait_for(timeout=60_000)
    is_beside(notebook, 1, "if (i < n) out[i] = 2.0f * y[i];")
    told = mark(notebook, 1).get_attribute("title")
    assert told.startswith("error: ")
    assert 'identifier "y" is undefined' in told
    assert mark(notebook, 2).count() == 0
    picture(notebook.page, "extension-mark")
    assert serious(notebook.page, ".optiml-line-error") == []
    # It moves with its line, and is there again when the notebook is opened again.
    notebook.cell(1).locator(".cm-line").nth(4).click()
    notebook.page.keyboard.press("Home")
    notebook.page.keyboard.press("Enter")
    is_beside(notebook, 1, "if (i < n) out[i] = 2.0f * y[i];")
    notebook.page.keyboard.press("Control+z")
    notebook.save()
    notebook.close()
    notebook = window.open(notebook.path.name)
    mark(notebook, 1).wait_for(timeout=60_000)
    is_beside(notebook, 1, "if (i < n) out[i] = 2.0f * y[i];")
    notebook.cell(1).locator(".cm-line", has_text="y[i]").click()
    notebook.page.keyboard.type("z")
    comes_to(mark(notebook, 1).count, 0)


def test_wrong_elements_and_findings_are_marked(opened: Any, picture: Any) -> None:
    wrong = CUDA.replace("2.0f", "3.0f")
    strided = (
        "%%optiml profile --out out:float32[n]\n__global__ void gather(const float* x, float* out, int n) {\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < n) out[i] = x[i * 33 % n];\n}"
    )
    notebook = opened(SETUP.replace("1024", "65536"), wrong, strided)
    for cell in range(3):
        notebook.run(cell)
    mark(notebook, 1).wait_for(timeout=60_000)
    is_beside(notebook, 1, "if (i < n) out[i] = 3.0f * x[i];")
    assert "elements of `out` are wrong" in mark(notebook, 1).get_attribute("title")
    mark(notebook, 2).wait_for(timeout=60_000)
    is_beside(notebook, 2, "if (i < n) out[i] = x[i * 33 % n];")
    assert "warning: uncoalesced access" in mark(notebook, 2).get_attribute("title")
    picture(notebook.page, "extension-findings")


def test_a_mark_is_text_whatever_a_kernel_says(opened: Any) -> None:
    script = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>"
    cell = f'%%optiml check\n#error "{script}"\n__global__ void k(float* out) {{ out[0] = 1; }}'
    notebook = opened(SETUP, cell)
    notebook.run(0)
    notebook.run(1)
    mark(notebook, 1).wait_for(timeout=60_000)
    assert script in mark(notebook, 1).get_attribute("title")
    assert notebook.page.evaluate("document.title") != "owned"


def test_colours_and_marks_are_switched_in_the_settings(opened: Any) -> None:
    notebook = opened(CUDA, PYTHON, ready=False)
    page = notebook.page
    keyword, _ = distinct(colours(notebook, 1), "def", "# a remark")
    are(colours(notebook, 0), {"__global__": keyword})
    notebook.command("settingeditor:open", query="OptiML cells")
    switch = page.get_by_role("checkbox", name="CUDA in colour")
    switch.wait_for(timeout=20_000)
    assert switch.is_checked()
    for on in (False, True):
        switch.click()
        page.get_by_role("tab", name=notebook.path.name).click()
        comes_to(lambda: colours(notebook, 0)("__global__") == keyword, on)
        page.get_by_role("tab", name="Settings", exact=True).click()


def test_at_700_pixels_the_commands_are_in_the_palette(opened: Any, picture: Any) -> None:
    """JupyterLab has no toolbars in cells so narrow."""
    notebook = opened(SETUP, f"%%optiml check --ref double\n{BODY}")
    page = notebook.page
    page.set_viewport_size({"width": 700, "height": 900})
    notebook.run(0)
    notebook.until_ran(0)
    notebook.cell(1).locator(".cm-content").click()
    picture(page, "extension-700")
    page.keyboard.press("Control+Shift+C")
    page.keyboard.type("annotate the cuda")
    page.get_by_text("Annotate the CUDA Cell").first.wait_for(timeout=5000)
    page.keyboard.press("Enter")
    notebook.outputs(1).get_by_text("machine code").first.wait_for(timeout=60_000)
    assert source(notebook, 1).startswith("%%optiml annotate --ref double\n")
