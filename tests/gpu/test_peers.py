"""What runs beside us on a real card."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from optiml_magic.bench.peers import running_on_cupy
from optiml_magic.bench.row import BEST, INPUT
from optiml_magic.bench.run import FILE, Suite
from optiml_magic.bench.suite import chosen
from optiml_magic.settings import resolve

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", ["gelu", "black_scholes"])
def test_cupy_fuses_maps_and_gives_what_it_gives_without(name: str) -> None:
    import cupy

    (entry,) = chosen((name,), None)
    drawn = entry.inputs(np.random.default_rng(0), **entry.sizes("small"))
    values = {n: cupy.asarray(v) if np.ndim(v) else v for n, v in drawn.items()}
    plain, fused = running_on_cupy(entry)
    call = fused.ready(values)
    outputs = fused.arrays(call())
    for one, other in zip(outputs, plain.arrays(plain.ready(values)()), strict=True):
        assert cupy.allclose(one, other, rtol=1e-4, atol=1e-5)

    def run() -> None:
        call()

    stream = cupy.cuda.Stream(non_blocking=True)
    with fused.on(stream):
        fused.capture(stream, run)()
    stream.synchronize()


def test_what_cupy_cannot_fuse_says_so() -> None:
    import cupy

    (entry,) = chosen(("gemv",), None)
    drawn = entry.inputs(np.random.default_rng(0), **entry.sizes("small"))
    values = {n: cupy.asarray(v) if np.ndim(v) else v for n, v in drawn.items()}
    _, fused = running_on_cupy(entry)
    with pytest.raises((TypeError, ValueError, NotImplementedError, AttributeError)):
        fused.ready(values)()


def test_programs_are_timed_again_without_a_search(tmp_path: Path) -> None:
    (entry,) = chosen(("gelu",), None)
    settings = resolve({"device": "cuda:0", "budget": 2, "seconds": 20})
    suite = Suite(
        [replace(entry, torch=None)], "small", settings, tmp_path, peers=True, command="again"
    )
    (row,) = suite.run()
    (again,) = suite.retime()
    assert (row.timed, again.program, again.progress) == (None, row.program, row.progress)
    assert again.timed is not None
    assert {INPUT, BEST, "CuPy"} <= again.samples.keys()
    before = (tmp_path / FILE).read_bytes()
    assert suite.retime() == [again]
    assert (tmp_path / FILE).read_bytes() == before
