from __future__ import annotations

from collections.abc import Iterator

import pytest

from optiml_magic.compilers.base import Compiler
from optiml_magic.compilers.hosted import HostedCompiler
from optiml_magic.compilers.nvcc import NvccCompiler
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.testing.compiler_contract import CompilerContract
from tests.present import NVCC, SOAK

QUICK = (
    "test_the_version_names_a_release",
    "test_every_kind_of_name_has_its_lowered_name_and_resources",
    "test_errors_stand_on_the_lines_of_the_text",
    "test_a_header_that_is_nowhere_is_named_on_its_line",
    "test_macros_reach_the_text_as_they_are",
)


class TestNvrtc(CompilerContract):
    @pytest.fixture
    def compiler(self, request: pytest.FixtureRequest) -> Compiler:
        if not SOAK and request.node.name not in QUICK:
            pytest.skip("the hosted one, which is the same in a child, has them all")
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
    def compiler(self, request: pytest.FixtureRequest) -> Compiler:
        if not SOAK and request.node.name not in QUICK:
            pytest.skip("each call of nvcc takes a second or two: make soak has them all")
        return NvccCompiler()
