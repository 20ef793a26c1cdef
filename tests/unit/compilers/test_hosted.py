"""What a compilation may take: the input kernel's all the seconds, a candidate's fewer."""

from __future__ import annotations

import pytest

from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.hosted import HostedCompiler
from optiml_magic.model.build import Build, CompileFailure
from optiml_magic.settings import Settings

TEXT = "__global__ void k(float* out) { out[threadIdx.x] = 1; }"


def test_compilations_after_the_first_have_fewer_seconds() -> None:
    compiler = HostedCompiler("nvrtc", others=1e-6)
    options = CompileOptions()
    assert isinstance(compiler.compile(TEXT, ("k",), chip("h200"), options), Build)
    found = compiler.compile(TEXT.replace("= 1", "= 2"), ("k",), chip("h200"), options)
    compiler.close()
    assert isinstance(found, CompileFailure)
    assert "did not end within 1e-06 s and was killed" in found.log
    assert "a quarter of the search's seconds" in found.log


@pytest.mark.parametrize(
    ("seconds", "most"), [(300.0, 60.0), (60.0, 15.0), (20.0, 10.0), (1e9, 60.0)]
)
def test_they_have_a_quarter_of_the_search(seconds: float, most: float) -> None:
    assert Settings(seconds=seconds).for_candidates == most


def test_what_the_machine_is_given_is_the_limit_of_all() -> None:
    assert Settings(seconds=300.0, compile_seconds=5.0).for_candidates == 5.0
