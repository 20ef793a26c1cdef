"""The names that a user imports."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import optiml_magic


def test_every_public_name_is_there_and_none_is_a_module() -> None:
    for name in optiml_magic.__all__:
        assert getattr(optiml_magic, name).__name__ == name
        assert not hasattr(getattr(optiml_magic, name), "__path__")


def test_optimize_is_the_function_whatever_was_imported_before() -> None:
    module = import_module("optiml_magic.optimize")
    assert module is sys.modules["optiml_magic.optimize"]
    assert optiml_magic.optimize is module.optimize


def test_a_kernel_that_is_named_as_a_file_is_read_from_it(tmp_path: Path) -> None:
    text = "// as in other.cu\n__global__ void f() {}  // and .cu"
    assert optiml_magic.Task(text).text == text
    (tmp_path / "f.cu").write_text(text)
    named = optiml_magic.Task(str(tmp_path / "f.cu"))
    assert (named.text, named.kernel) == (text, tmp_path / "f.cu")


def test_a_check_loads_no_rules_which_are_half_of_everything() -> None:
    source = "import sys; from optiml_magic.magics import optiml; from optiml_magic import terminal"
    said = f"{source}; print([m for m in sys.modules if 'rewrites' in m or 'synthesis' in m])"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
