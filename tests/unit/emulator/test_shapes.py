"""Control flow of random shapes: the emulator's stack against threads that run on their own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optiml_magic import emulator
from optiml_magic.kernels.exits import early_returns
from optiml_magic.kernels.unit import lift
from tests.oracle.machine import Module
from tests.present import examples

from .conftest import launch, ptx_of
from .shapes import HEAD, Writer, graph

PER_MODULE = examples(2, 5)  # kernels: compiling them dominates
seeds = st.integers(0, 2**32)


def agree(
    ptx: str, names: list[str], threads: int, words: int, seed: int, source: str = ""
) -> None:
    here, oracle = emulator.load(ptx, early_returns=early_returns(lift(source))), Module(ptx)
    data = np.random.default_rng(seed).integers(0, 2**16, words * threads).astype(np.int32)
    for name in names:
        got, wanted = (np.zeros(threads, np.int32) for _ in range(2))
        run = launch(here, name, 1, threads, data.copy(), got, count=False)
        assert run.fault is None, (name, run.fault)
        oracle.launch(name, (1, 1, 1), (threads, 1, 1), [data.copy(), wanted], seed=seed)
        np.testing.assert_array_equal(got, wanted, err_msg=f"{name} of seed {seed}")


@settings(max_examples=examples(2, 100))
@given(seeds, st.sampled_from([32, 64, 77]))
def test_structured(seed, threads):
    names = [f"k{i}" for i in range(PER_MODULE)]
    source = HEAD + "".join(Writer(seed + i).kernel(n) for i, n in enumerate(names))
    agree(ptx_of(source), names, threads, 3, seed, source)


@settings(max_examples=examples(1, 200))
@given(seeds)
def test_graphs(seed):
    names = [f"k{i}" for i in range(3 * PER_MODULE)]
    text = "".join(graph(seed + i, n) for i, n in enumerate(names))
    head = ".version 8.0\n.target sm_80\n.address_size 64\n"
    agree(head + text, names, 64, 1, seed)


@pytest.mark.parametrize("seed", range(2))
def test_the_oracle_does_not_depend_on_the_order_of_threads(seed):
    source = HEAD + Writer(seed).kernel("k")
    module = Module(ptx_of(source))
    data = np.random.default_rng(0).integers(0, 2**16, 192).astype(np.int32)
    outs = [np.zeros(64, np.int32) for _ in range(2)]
    for order, out in enumerate(outs):
        module.launch("k", (1, 1, 1), (64, 1, 1), [data.copy(), out], seed=order)
    np.testing.assert_array_equal(*outs)
