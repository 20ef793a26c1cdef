"""The shape of the house, kept by a machine."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import optiml_magic

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "optiml_magic"


def python(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = ("IPython", "cuda", "llvmlite", "pydantic", "tree_sitter", "numpy", "openai")
    loaded = python(
        "import sys, optiml_magic; print(' '.join(m for m in sys.modules if '.' not in m))"
    ).split()
    assert not set(heavy) & set(loaded)


def test_loading_the_extension_loads_nothing_heavy_until_it_is_used() -> None:
    loaded = python(
        "import sys\n"
        "from IPython.testing.globalipapp import start_ipython\n"
        "shell = start_ipython()\n"
        "before = set(sys.modules)\n"
        "shell.run_line_magic('load_ext', 'optiml_magic')\n"
        "print(' '.join(set(sys.modules) - before))\n"
        "shell.run_line_magic('optiml', 'help')\n"
        "print(' '.join(set(sys.modules) - before))"
    ).splitlines()
    first, used = set(loaded[0].split()), set(loaded[-1].split())
    assert not {name.split(".")[0] for name in first} & {"cuda", "llvmlite", "numpy", "pydantic"}
    assert not {"optiml_magic.early", "optiml_magic.settings", "subprocess"} & first
    assert "optiml_magic.magics.optiml" in used - first
    assert not {name.split(".")[0] for name in used} & {"cuda", "llvmlite", "cupy"}


def test_public_names_are_sorted_importable_and_all_there_are() -> None:
    assert sorted(optiml_magic.__all__) == optiml_magic.__all__
    for name in optiml_magic.__all__:
        assert getattr(optiml_magic, name) is not None
    with pytest.raises(AttributeError):
        _ = optiml_magic.nothing_of_that_name


def test_the_version_stands_once() -> None:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in table["project"]
    source = ROOT / table["tool"]["hatch"]["version"]["path"]
    assert f'__version__ = "{optiml_magic.__version__}"' in source.read_text()


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: p.name)
def test_no_file_is_longer_than_a_reader_can_hold(path: Path) -> None:
    limit = 500 if "emulator" in path.parts else 400
    assert len(path.read_text().splitlines()) <= limit


def test_every_module_can_be_imported() -> None:
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        importlib.import_module(name)


def test_folders_have_no_names_that_say_nothing() -> None:
    names = {path.stem for path in PACKAGE.rglob("*")}
    assert not names & {"utils", "helpers", "common", "manager", "core", "misc"}


def test_nothing_is_pickled() -> None:
    for path in PACKAGE.rglob("*.py"):
        assert "import pickle" not in path.read_text(), path
        assert "eval(" not in path.read_text().replace("_eval(", ""), path
