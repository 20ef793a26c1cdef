"""Where an export may go, and what is refused before anything is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from optiml_magic.errors import UsageError
from optiml_magic.exports import FORMATS, write
from optiml_magic.source.program import parse_program
from tests.unit.exports.programs import exportable


def test_the_suffix_names_the_format(tmp_path: Path) -> None:
    for form in FORMATS:
        path = write(exportable("saxpy"), tmp_path / f"saxpy{form.suffix}")
        assert path.read_text(encoding="utf-8") == form.render(exportable("saxpy"))


@pytest.mark.parametrize(
    ("name", "message", "fix"),
    [
        ("k.ptx", "`.ptx` is not a format", ".cu (a CUDA file with a launcher in C), or .py"),
        ("k", "k has no suffix", ".py (a CuPy module)"),
        ("none/k.cu", "no folder for", "make the folder first"),
        ("there.cu", "exists", "overwrite=True"),
        ("folder.py", "exists", "choose another name"),
    ],
)
def test_where_it_cannot_go_is_said(tmp_path: Path, name: str, message: str, fix: str) -> None:
    (tmp_path / "there.cu").write_text("mine")
    (tmp_path / "folder.py").mkdir()
    with pytest.raises(UsageError, match=message) as raised:
        write(exportable("saxpy"), tmp_path / name)
    assert fix in raised.value.fix
    assert (tmp_path / "there.cu").read_text() == "mine"


def test_a_file_is_replaced_when_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "there.cu"
    path.write_text("mine")
    write(exportable("saxpy"), path, overwrite=True)
    assert "saxpy_launch" in path.read_text()


def test_nothing_is_written_where_a_format_cannot_hold_the_program(tmp_path: Path) -> None:
    text = exportable("saxpy").program.text.replace("cdiv(n, 256)", "shape(x, n)")
    what = replace(exportable("saxpy"), program=parse_program(text))
    for form in FORMATS:
        path = tmp_path / f"k{form.suffix}"
        with pytest.raises(UsageError, match=r"the axis in `shape\(x, n\)` is not constant"):
            write(what, path)
        assert not path.exists()


def test_names_of_the_program_are_left_alone(tmp_path: Path) -> None:
    """A kernel may use the words that a launcher would like to use."""
    text = (
        "#define cdiv(a, b) (((a) + (b) - 1) / (b))\n#define status 3\n"
        "#pragma optiml launch launch grid(cdiv(n, 64)) block(64)\n"
        "__global__ void launch(float alpha, const float* x, const float* y, float* out, int n) {\n"
        "    int grid = cdiv(n, 64) + status; if (grid) out[0] = x[0] + y[0] * alpha; }\n"
    )
    what = replace(exportable("saxpy"), program=parse_program(text))
    source = write(what, tmp_path / "k.cu").read_text()
    for taken in ("launch_(launch, ", "const dim3 grid_(", "cdiv_(", "cudaError_t status_ ="):
        assert taken in source
