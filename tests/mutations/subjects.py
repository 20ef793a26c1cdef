"""The correct kernels in which faults are planted: known ones, honest twins, tutorials."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from optiml_magic.model.task import Task
from optiml_magic.testing import cheats
from optiml_magic.testing.cheats.tasks import task as cheat_task
from optiml_magic.testing.kernels import known_task
from tests.tutorials.suite import TASKS

KNOWN = {
    "saxpy": {"n": 5000},
    "transpose_naive": {"rows": 128, "cols": 64},
    "transpose_tiled": {"rows": 128, "cols": 64},
    "matmul_naive": {"m": 64, "n": 48, "k": 40},
    "matmul_tiled": {"m": 70, "n": 45, "k": 33},
    "row_sum": {"rows": 33, "cols": 257},
    "row_sum_naive": {"rows": 300, "cols": 65},
    "histogram": {"n": 10_000},
    "softmax": {"rows": 17, "cols": 100},
}
TWINS = (
    "adds_without_atomics", "assumes_positive", "constant_size", "float_for_double",
    "leaves_out_a_barrier", "reads_one_row", "samples_columns", "short_series",
    "skips_the_tail", "stops_early", "tf32_inputs", "writes_past_the_end",
)  # fmt: skip
TUTORIALS = (
    "basics/grid_stride", "basics/volume_3d", "basics/vector_add", "basics/gather_table",
    "basics/particles_aos", "basics/polynomial_constant",
    "images/convolution_1d", "images/convolution_2d", "images/heat_2d", "images/stencil_1d",
    "images/blur_box", "images/game_of_life", "images/sobel",
    "learning/attention_row", "learning/layernorm", "learning/softmax_online",
    "learning/cross_entropy", "learning/maxpool_2x2", "learning/adamw",
    "matrices/matmul_ragged", "matrices/gemv_warp", "matrices/transpose_padded",
    "matrices/matmul_registers", "matrices/cholesky_batched", "matrices/thomas",
    "modern/tile_ballot", "modern/warp_reduce_intrinsics", "modern/cg_scan",
    "reductions/two_pass_sum", "reductions/last_block_sum", "reductions/mean_variance",
    "reductions/argmax_packed", "reductions/column_min_max", "reductions/dot_kahan",
    "scans/blelloch", "scans/hillis_steele", "scans/warp_scan", "scans/segmented_scan",
    "sequences/edit_distance", "sequences/collatz", "sequences/string_search",
    "simulation/nbody_tiled", "simulation/black_scholes",
    "sorting/bitonic_shared", "sorting/rank_sort", "sorting/histogram_private",
    "sorting/binary_search", "sparse/csr_vector", "sparse/csr_scalar", "sparse/ell",
)  # fmt: skip

LARGER = {"learning/attention_row": {"keys": 100}}  # more keys than a block has threads
_AXES = {"rows": 300, "cols": 270}  # more than one block along each

Subject = Callable[[], Task]
SUBJECTS: dict[str, Subject] = {
    **{f"known/{name}": (lambda n=name: known_task(n, **KNOWN[n])) for name in KNOWN},
    **{f"twins/{name}": (lambda n=name: _twin(n)) for name in TWINS},
    **{name: (lambda n=name: _tutorial(n)) for name in TUTORIALS},
}


def _tutorial(name: str) -> Task:
    task = TASKS[name]
    return replace(task, sizes={**task.sizes, **LARGER.get(name, {})})


def _twin(name: str) -> Task:
    """The task of a cheat, with its honest twin in place of the input kernel."""
    pair = cheats.cheat(name)
    task = cheat_task(pair.task)
    sizes = {axis: _AXES.get(axis, size) for axis, size in task.sizes.items()}
    return replace(task, kernel=pair.twin, sizes=sizes)
