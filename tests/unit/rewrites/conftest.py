"""Proposals of one rule, and NVRTC to compile them."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest

from optiml_magic.compilers.nvrtc import _bindings
from optiml_magic.model.candidate import Proposal
from optiml_magic.proposers.rewrites import REWRITES
from optiml_magic.source.program import parse_program
from tests.ideas import asked, made


@pytest.fixture(scope="session")
def compiles() -> Callable[[str], str]:
    """Compiles a program's text with NVRTC to PTX; an AssertionError holds the log."""
    import nvidia

    nvrtc = _bindings()
    roots = [pathlib.Path(p) for p in nvidia.__path__]
    options = [b"--gpu-architecture=compute_80", b"--std=c++17", b"-diag-suppress=161,177"]
    options += [f"-I{x}".encode() for r in roots for x in r.glob("*/include")]

    def compile_text(text: str) -> str:
        source = parse_program(text).compiled_text().encode()
        _, program = nvrtc.nvrtcCreateProgram(source, b"cell.cu", 0, [], [])
        for launch in parse_program(text).launches:
            if launch.kernel and "<" in launch.kernel:
                nvrtc.nvrtcAddNameExpression(program, launch.kernel.encode())
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = bytes(size + 8)  # written to in place: never a cached one-byte object
        nvrtc.nvrtcGetProgramLog(program, log)
        assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, log.decode() + "\n" + text
        _, size = nvrtc.nvrtcGetPTXSize(program)
        ptx = bytes(size + 8)
        nvrtc.nvrtcGetPTX(program, ptx)
        return ptx.decode().rstrip("\0")

    return compile_text


@pytest.fixture
def propose() -> Callable[..., list[Proposal]]:
    """All proposals of one rule for a text."""

    def of(rule: str, text: str, findings=()) -> list[Proposal]:
        (member,) = [r for r in REWRITES if r.name == rule]
        return made(asked(member, text, findings)[0])

    return of
