"""The lexer of cells and programs, by Pygments' own ways and in pages of a real nbconvert."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Error, Keyword, Name, Number, Text

from optiml_magic.kernels.builtins import BUILTINS
from optiml_magic.reports import code
from optiml_magic.reports.lexer import CudaOptimlLexer
from optiml_magic.source.grammar import FORMS
from tests.known_texts import KERNEL_TEXTS

CELL = """\
%%optiml check --ref=add_ref name
// it's a comment
#pragma optiml launch add grid(cdiv(n, 256)) block(256)
#  pragma optiml tune TILE in {8, 16} \\
     = 16  // either
__global__ void add(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __ldg(a + i) + 1.0f;
}
"""
PROSE = "%%optiml synthesize --ref f\nDon't sum the rows: if (any) is int, skip it.\n"
LANGUAGES = "--HighlightMagicsPreprocessor.languages={'%%optiml': 'cuda-optiml'}"


def kinds(text: str) -> dict[str, object]:
    """The token type of each word, as it is first met."""
    found: dict[str, object] = {}
    for token, value in CudaOptimlLexer().get_tokens(text):
        found.setdefault(value, token)
    return found


def test_a_cell_is_coloured_as_what_it_is() -> None:
    found = kinds(CELL)
    assert found["optiml"] is Keyword
    assert found["check"] is Name.Function
    assert found["--ref"] is Name.Attribute
    assert found["name"] is Text
    assert found["// it's a comment\n"] is Comment.Single
    assert found["launch"] is found["grid"] is found["tune"] is found["in"] is Keyword.Pseudo
    assert found["TILE"] is Name
    assert found["16"] is Number.Integer
    assert found["__global__"] is Keyword.Reserved
    assert found["blockIdx"] is found["__ldg"] is Name.Builtin
    assert found["1.0f"] is Number.Float


def test_prose_is_text() -> None:
    found = kinds(PROSE)
    assert found["synthesize"] is Name.Function
    assert found["Don't sum the rows: if (any) is int, skip it.\n"] is Text


@pytest.mark.parametrize(
    "text", [CELL, PROSE, "%%optiml check", "", "%optiml doctor\n", *KERNEL_TEXTS]
)
def test_nothing_is_lost(text: str) -> None:
    lexer = CudaOptimlLexer(stripnl=False, ensurenl=False)
    assert "".join(value for _, value in lexer.get_tokens(text)) == text.replace("\r\n", "\n")


def test_every_directive_and_every_builtin_has_its_colour() -> None:
    for word, form in FORMS.items():
        found = kinds(f"#pragma optiml {form.usage}\n")
        assert found[word] is Keyword.Pseudo
        assert Error not in found.values()
    assert not [name for name in BUILTINS if kinds(f"x = {name};\n")[name] is Name]


def test_pygments_finds_it_by_name_and_reports_use_it() -> None:
    assert isinstance(get_lexer_by_name("cuda-optiml"), CudaOptimlLexer)
    line, *_ = code.lines("#pragma optiml tune TILE in {8} = 8")
    assert re.search(r"<span [^>]*>tune</span>", str(line))


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import nbformat  # for seconds, and on every worker

    cells = [
        nbformat.v4.new_code_cell("x = 1  # it's Python"),
        nbformat.v4.new_code_cell(CELL),
        nbformat.v4.new_code_cell(PROSE),
        nbformat.v4.new_markdown_cell(f"```cuda-optiml\n{CELL.partition(chr(10))[2]}```\n"),
    ]
    info = {"name": "python", "pygments_lexer": "ipython3"}
    book = nbformat.v4.new_notebook(cells=cells, metadata={"language_info": info})
    path = tmp_path_factory.mktemp("pages") / "book.ipynb"
    nbformat.write(book, path)
    return path


def converted(notebook: Path, form: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to", form, "--stdout", *words, str(notebook)],
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    return done.stdout


def sources(page: str) -> list[str]:
    """What stands in the page for each cell's source, tags included."""
    pages = re.findall(r'<div class="\s*highlight[^"]*"><pre>.*?</pre>', page, re.DOTALL)
    return [each.replace("&#39;", "'") for each in pages]


def test_nbconvert_colours_cells_by_one_line_of_configuration(notebook: Path) -> None:
    python, cuda, prose, fence = sources(converted(notebook, "html", LANGUAGES))
    assert '<span class="c1"># it\'s Python</span>' in python
    assert '<span class="c1">// it\'s a comment</span>' in cuda
    assert '<span class="kp">launch</span>' in cuda
    assert '<span class="nb">__ldg</span>' in cuda
    assert '<span class="kr">__global__</span>' in cuda
    assert '<span class="nf">synthesize</span>' in prose
    assert "skip it" in re.sub(r"<[^>]*>", "", prose)
    assert '<span class="k">' not in prose.partition("rows")[2]
    assert '<span class="kp">launch</span>' in fence


@pytest.mark.slow
def test_the_line_of_configuration_works_in_a_file_too(notebook: Path, tmp_path: Path) -> None:
    config = {"HighlightMagicsPreprocessor": {"languages": {"%%optiml": "cuda-optiml"}}}
    file = tmp_path / "jupyter_nbconvert_config.json"
    file.write_text(json.dumps(config))
    page = converted(notebook, "html", f"--config={file}")
    assert '<span class="kp">launch</span>' in sources(page)[1]


@pytest.mark.slow
def test_a_cell_may_say_so_itself(notebook: Path, tmp_path: Path) -> None:
    import nbformat

    book = nbformat.read(notebook, as_version=4)
    book.cells[1].metadata["magics_language"] = "cuda-optiml"
    nbformat.write(book, tmp_path / "book.ipynb")
    found = sources(converted(tmp_path / "book.ipynb", "html"))
    assert '<span class="kp">launch</span>' in found[1]


@pytest.mark.slow
def test_a_fence_needs_no_configuration_and_markdown_gets_one(notebook: Path) -> None:
    plain = sources(converted(notebook, "html"))
    assert '<span class="kp">launch</span>' in plain[3]
    assert '<span class="kp">launch</span>' not in plain[1]
    assert "```cuda-optiml\n%%optiml check" in converted(notebook, "markdown", LANGUAGES)
