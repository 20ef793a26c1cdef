"""Which nvcc is taken, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.nvcc import NvccCompiler, find_nvcc
from optiml_magic.errors import MachineError, UsageError
from optiml_magic.model.build import Build
from tests.present import NVCC

needs_nvcc = pytest.mark.skipif(not NVCC, reason="no nvcc with a host compiler on this machine")


def program(folder: Path, name: str = "nvcc", prints: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{prints}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """A machine with no CUDA, unless the test needs one."""
    if any("skipif" in mark.name for mark in request.node.iter_markers()):
        return
    for name in ("OPTIML_NVCC", "CUDA_HOME", "NVCC_CCBIN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))


def test_the_one_that_is_named_comes_before_the_toolkit_and_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = program(tmp_path / "path")
    assert find_nvcc() == str(on_path)
    of_toolkit = program(tmp_path / "toolkit" / "bin")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    assert find_nvcc() == str(of_toolkit)
    named = program(tmp_path / "other", "my-nvcc")
    monkeypatch.setenv("OPTIML_NVCC", str(named))
    assert find_nvcc() == str(named)


def test_without_nvcc_the_error_says_where_it_is_looked_for() -> None:
    with pytest.raises(MachineError, match="nvcc was not found") as raised:
        NvccCompiler()
    for place in ("CUDA_HOME", "OPTIML_NVCC", "--compiler nvrtc"):
        assert place in raised.value.fix


def test_a_name_that_is_no_program_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "path")
    monkeypatch.setenv("OPTIML_NVCC", "/nowhere/nvcc")
    with pytest.raises(MachineError, match="OPTIML_NVCC=/nowhere/nvcc is not a program"):
        NvccCompiler()


def test_what_is_no_nvcc_and_a_missing_host_compiler(tmp_path: Path) -> None:
    program(tmp_path / "path", prints="hello")
    with pytest.raises(MachineError, match="does not report its version"):
        NvccCompiler()
    program(tmp_path / "path", prints="Cuda compilation tools, release 13.0, V13.0.88")
    with pytest.raises(MachineError, match=r"there is no g\+\+") as raised:
        NvccCompiler()
    assert "NVCC_CCBIN" in raised.value.fix


@needs_nvcc
def test_arguments_reach_both_compilations(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "__global__ void k(float* p, int n) {\n    float a[48];\n"
        "    for (int i = 0; i < 48; ++i) a[i] = p[i * n];\n    __syncthreads();\n"
        "    for (int i = 0; i < 48; ++i) p[i + n] = a[i] * a[47 - i];\n}\n"
    )
    builds = [
        NvccCompiler().compile(text, ("k",), chip("h200"), CompileOptions(arguments=arguments))
        for arguments in ((), ("--maxrregcount=32",))
    ]
    free, bound = builds
    assert isinstance(free, Build)
    assert isinstance(bound, Build)
    assert free.resources[free.names["k"]].registers > 32
    assert bound.resources[bound.names["k"]].registers <= 32
    assert free.digest != bound.digest
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-lineinfo")
    assert NvccCompiler().version.endswith("NVCC_APPEND_FLAGS=-lineinfo")


@needs_nvcc
def test_an_unknown_argument_is_the_users(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Unknown option '--bogus'"):
        NvccCompiler().compile("", (), chip("h200"), CompileOptions(arguments=("--bogus",)))
