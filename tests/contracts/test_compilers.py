from __future__ import annotations

from collections.abc import Iterator

import pytest

from optiml_magic.compilers.base import Compiler
from optiml_magic.compilers.hosted import HostedCompiler
from optiml_magic.compilers.nvcc import NvccCompiler
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.testing.compiler_contract import CompilerContract
from tests.present import NVCC


class TestNvrtc(CompilerContract):
    @pytest.fixture
    def compiler(self) -> Compiler:
        return NvrtcCompiler()


@pytest.fixture(scope="module")
def hosted() -> Iterator[Compiler]:
    compiler = HostedCompiler("nvrtc")
    yield compiler
    compiler.close()


class TestHostedNvrtc(CompilerContract):
    @pytest.fixture
    def compiler(self, hosted: Compiler) -> Compiler:
        return hosted


@pytest.mark.skipif(not NVCC, reason="no nvcc with a host compiler on this machine")
class TestNvcc(CompilerContract):
    @pytest.fixture
    def compiler(self) -> Compiler:
        return NvccCompiler()
