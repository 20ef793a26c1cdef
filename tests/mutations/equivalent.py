"""Mutants that compile differently and yet are no faults, each with the reason.

By kernel and by the name of the mutant. One that is rejected all the same makes the run fail: then
either the reason is wrong or the verification is.
"""

from __future__ import annotations

_ONE_ROUND = "256 threads for 256 bins: the loop has one round however far it steps"
_ONE_ROUND_OF_64 = "128 threads for 64 bins: an unsigned index is beyond them after one round"
_SPANS = "lanes 17, 8, 4, 2 and 1 apart reach all 32 as well as 16, 8, 4, 2 and 1 apart do"
_FIRST_LANE = "only the first lane's result is used, and it is the same when values move down"
_NO_REST = "the kernel is right for multiples of 128 alone, where the guard always holds"
_SAME_VALUE = "all lanes of the warp store the same value, and the pointer is never null"
_SYMMETRIC = "the matrix is symmetric: its transpose is read"
_OWN_COLUMN = "until the next barrier each thread reads the column alone that it wrote itself"
_WHOLE_QUADS = "n is a multiple of 4, so no group of four has lanes on both sides of the end"
_ROUNDS_OF_8 = "k is a multiple of 8: the same rounds, and the counter is used for nothing else"

EQUIVALENT: dict[str, dict[str, str]] = {
    "known/histogram": {
        "overwritten_sum@5:44": _ONE_ROUND,
        "loop_steps_too_far@5:44": _ONE_ROUND,
        "loop_left_early@5:5": _ONE_ROUND,
        "guard_dropped@14:9": "a count of 0 is added, which changes nothing",
    },
    "known/matmul_tiled": {
        "off_by_one_comparison@9:25": "where k is a multiple of TILE a round more adds zeros",
        "wrong_constant@12:88": "what pads tile_a meets the zeros that pad tile_b, or is in a row "
        "that is not stored",
    },
    "known/row_sum": {
        "array_too_short@3:22": "a block of 128 threads has 4 warps: 4 of 31 elements are used",
    },
    "twins/reads_one_row": {
        "off_by_one_comparison@11:9": "the grid has exactly `rows` blocks along y",
    },
    "twins/skips_the_tail": {
        "half_of_a_condition@9:25": "threads go on to the end and store what others store too: the "
        "same values, and only slower",
    },
    "basics/volume_3d": {
        "operands_exchanged@7:16": "x - c or c - x: it is squared",
    },
    "images/heat_2d": {
        "half_of_a_condition@12:9": "the interior is copied too, and written anew by the next "
        "launch before anybody reads it",
    },
    "learning/attention_row": {
        "wrong_initial_value@13:15": "every score grows by the same, which softmax takes off again",
    },
    "learning/layernorm": {
        "wrong_logic@20:9": _SAME_VALUE,
        "half_of_a_condition@20:9": "the pointer is never null",
    },
    "learning/softmax_online": {
        "off_by_one_comparison@9:21": "of two equal maxima either may be called the bigger",
        "wrong_constant@23:24": "what the first sum starts with is scaled by exp(-huge), so by 0",
    },
    "matrices/cholesky_batched": {
        "indices_exchanged@8:39": _SYMMETRIC,
        "row_and_column_exchanged@8:58": _SYMMETRIC,
        "barrier_dropped@9:5": _OWN_COLUMN,
        "barrier_of_a_warp@9:5": _OWN_COLUMN,
    },
    "matrices/gemv_warp": {
        "loop_starts_late@5:14": _SPANS,
        "wrong_shuffle@5:43": _FIRST_LANE,
    },
    "matrices/matmul_ragged": {
        "off_by_one_comparison@10:21": "a round more adds zeros",
    },
    "matrices/matmul_registers": {
        "tail_skipped@19:25": _ROUNDS_OF_8,
        "loop_cut_short@19:25": _ROUNDS_OF_8,
        "loop_starts_late@19:14": _ROUNDS_OF_8,
    },
    "modern/cg_scan": {
        "wrong_constant@10:29": "lanes beyond the end pad with 1, and a scan passes nothing down",
    },
    "modern/tile_ballot": {
        "wrong_constant@9:28": _WHOLE_QUADS,
        "tail_skipped@9:13": _WHOLE_QUADS,
        "barrier_dropped@13:5": "the group exchanges registers alone; there is no memory to order",
    },
    "modern/warp_reduce_intrinsics": {
        "off_by_one_comparison@6:13": _NO_REST,
        "wrong_constant@6:28": _NO_REST,
        "guard_of_a_value_dropped@6:13": _NO_REST,
        "tail_skipped@6:13": _NO_REST,
        "guard_dropped@12:5": "all lanes of the warp store the same values",
    },
    "reductions/argmax_packed": {
        "wrong_initial_value@13:24": "the key of any element is larger than 1",
        "loop_starts_late@15:14": _SPANS,
        "wrong_shuffle@16:36": _FIRST_LANE,
    },
    "reductions/last_block_sum": {
        "half_of_a_condition@25:9": "all threads of the last block store the same values",
    },
    "scans/blelloch": {
        "array_too_short@9:20": "the largest index is 255 + 7: 263 elements are enough",
        "loop_starts_late@19:14": "the first bound is 129 in place of 128, and there are 128 threads",
    },
    "reductions/two_pass_sum": {
        "array_too_short@15:29": "a block of 256 threads has 8 warps: 8 of 31 elements are used",
        "tail_skipped@21:12": "8 warps are a multiple of 4",
    },
    "scans/hillis_steele": {
        "wrong_constant@8:53": "lanes beyond the end pad with 1, and a scan passes nothing down",
        "wrong_initial_value@7:9": "the two halves of the buffer change places",
        "loop_cut_short@10:26": "offsets are powers of two: none is 255",
    },
    "scans/segmented_scan": {
        "off_by_one_comparison@17:24": "where n is a multiple of 256 a round more stores nothing",
    },
    "scans/warp_scan": {
        "off_by_one_comparison@14:25": "no lane is 32 or more, so the round of 32 adds nothing",
    },
    "simulation/nbody_tiled": {
        "tail_skipped@22:21": "64 threads are a multiple of 4",
    },
    "sorting/binary_search": {
        "tail_skipped@7:13": "a float is divided by 4 and multiplied by 4, which is exact",
    },
    "sorting/bitonic_shared": {
        "off_by_one_comparison@4:10": "equal keys change places",
        "half_of_a_condition@27:51": "pos is below 256, so `pos & 256` is 0 already",
    },
    "sorting/histogram_private": {
        "wrong_update@9:54": _ONE_ROUND_OF_64,
        "overwritten_sum@9:54": _ONE_ROUND_OF_64,
        "loop_steps_too_far@9:54": _ONE_ROUND_OF_64,
        "guard_dropped@15:9": "a count of 0 is added, which changes nothing",
    },
    "sorting/rank_sort": {
        "wrong_constant@7:34": "the value of a thread beyond the end is never stored",
    },
}
