"""Naive kernels of many fields, at sizes between those that are real work and those of a quick try.

They are open tasks of the suite. Each size lies halfway, by powers of two, between ``small`` and
``full``: large enough that a launch is not all that a run costs, small enough for a program to be
evaluated on the emulated device within a second or so. Programs are verified at ``checked``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from optiml_magic.bench.entry import Entry
from optiml_magic.bench.suite import chosen
from optiml_magic.model.task import Task

#: Each family has its first task before any has its second: whoever stops early has all families.
NAMES = (
    "black_scholes", "transpose", "grey", "row_norms", "layer_norm", "cross_entropy", "matmul",
    "gemv", "laplace_3d", "filter_2d", "byte_histogram", "spmv", "gravity", "cholesky",
    "standardise", "add_rms_norm",
    "arrays_to_structs", "column_means", "softmax_channels", "gemv_transposed", "heat_2d",
    "layer_3x3", "distances", "dot",
    "merge_states", "batched_matmul", "segment_sums", "linear_relu", "small_products", "blend",
    "gelu", "embedding", "moving_average", "bias_relu_scale", "silu_and_mul",
)  # fmt: skip


def tasks() -> dict[str, Callable[[], Task]]:
    """How to make each task, by name."""
    entries = {entry.name: entry for entry in chosen(NAMES, "open")}
    return {name: partial(halfway, entries[name]) for name in NAMES}


def halfway(entry: Entry) -> Task:
    """A task of the suite at sizes between ``small`` and ``full``."""
    sizes = {
        name: small * 2 ** round(math.log2(entry.full[name] / small) / 2)
        for name, small in entry.small.items()
    }
    return replace(entry.task("full"), sizes=sizes, bytes=None, flops=None)
