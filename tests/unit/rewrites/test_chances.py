"""How likely ideas are, by what the kernel at hand does at its sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.coalescing import apart
from optiml_magic.kernels.primitives.operation_counts import (
    operations,
    operations_outside,
    requests,
)
from optiml_magic.kernels.primitives.rows import stored_in_parts
from optiml_magic.kernels.primitives.sizes import mean_rounds, usual_rounds
from optiml_magic.model.facts import ArrayFacts, Facts, LaunchFacts
from optiml_magic.proposers.rewrites.add_at_once import AddAtOnce
from optiml_magic.proposers.rewrites.block_size import BlockSize
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.load_ahead import LoadAhead
from optiml_magic.proposers.rewrites.look_ahead import LookAhead
from optiml_magic.proposers.rewrites.merge_runs import MergeRuns
from optiml_magic.proposers.rewrites.private_counters import PrivateCounters
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from optiml_magic.proposers.rewrites.scalarise_array import ScalariseArray
from optiml_magic.proposers.rewrites.share_loads import ShareLoads
from optiml_magic.proposers.rewrites.share_sections import ShareSections
from optiml_magic.proposers.rewrites.vectorise_map import VectoriseMap
from tests.unit.primitives.alike import kernel_of

HEAD = "#pragma optiml launch k grid(cdiv(n, 128)) block(128)\n__global__ void k("
ITEM = "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i >= n) return;\n"
ADDED = HEAD + "const int* to, const float* x, float* y, int n) {\n" + ITEM
ADDED += "    atomicAdd(&y[to[i]], x[i]);\n}\n"
MANY = 1 << 20


def array(name: str, count: int = MANY, **more: float | None) -> ArrayFacts:
    whole = "least" in more or "alike" in more
    return replace(
        ArrayFacts(name, "in", "int32" if whole else "float32", (count,), 4 * count, 256),
        **more,  # type: ignore[arg-type]
    )


def known(text: str, *arrays: ArrayFacts, n: int = MANY, **scalars: int) -> Kernel:
    """The kernel on the H200 with these arrays, of ``n`` items in blocks of 128."""
    launch = LaunchFacts(
        "k", 1, (-(-n // 128), 1, 1), (128, 1, 1), {a.buffer: a for a in arrays},
        {"n": n, **scalars},
    )  # fmt: skip
    return kernel_of(text, Facts((launch,), {}, 1e-5, 1e-8, "h200"))


def chances(rule: KernelRule, kernel: Kernel) -> dict[str, float]:
    """The chance of each site of a rule by its key."""
    found = (s for s in rule.sites(rule.shaped(kernel)) if isinstance(s, Site))
    return {site.key: site.prior for site in found}


@pytest.mark.parametrize(
    ("alike", "chance"), [(None, 0.5), (1.0, 0.15), (1.9, 0.15), (2.0, 0.6), (4.0, 0.84), (9.0, 0.84)]
)  # fmt: skip
def test_runs_are_as_likely_as_inputs_have_them(alike: float | None, chance: float) -> None:
    kernel = known(ADDED, array("to", alike=alike), array("x"), array("y"))
    assert chances(MergeRuns(), kernel) == {"x": chance}


def test_what_changes_most_often_ends_a_run() -> None:
    text = ADDED.replace("const int* to", "const int* to, const int* of").replace(
        "to[i]", "to[i] + of[i]"
    )
    long, short = array("to", alike=64.0), array("of", alike=1.0)
    assert chances(MergeRuns(), known(text, long, short, array("x"), array("y"))) == {"x": 0.15}
    assert chances(MergeRuns(), known(text, long, array("x"), array("y"))) == {"x": 0.5}
    assert chances(MergeRuns(), kernel_of(text)) == {"x": 0.5}


LISTS = HEAD + "const int* many, const int* next, const float* x, float* y, int n) {\n" + ITEM
LISTS += "    float s = 0;\n    for (int k = 0; k < many[i]; k++) s += x[next[i * 64 + k]];\n"
LISTS += "    y[i] = s;\n}\n"


@pytest.mark.parametrize(
    ("least", "greatest", "mean"),
    [(0, 64, 32), (64, 64, 64), (0.0, float("inf"), None), (None, None, None), (-9, 3, 0)],
)
def test_a_loop_that_ends_where_an_input_says_has_its_middle(
    least: float | None, greatest: float | None, mean: int | None
) -> None:
    kernel = known(LISTS, array("many", least=least, greatest=greatest))
    (axis,) = kernel.reading.axes
    assert mean_rounds(kernel, axis) == mean
    assert usual_rounds(kernel, axis) == mean
    assert mean_rounds(kernel_of(LISTS), *kernel_of(LISTS).reading.axes) is None


def test_lists_have_as_many_lanes_as_keep_busy() -> None:
    rule, kernel = RowToLanes(), known(LISTS, array("many", least=0, greatest=64))
    sites = [s for s in rule.sites(rule.shaped(kernel)) if isinstance(s, Site)]
    assert {"LANES": 32} not in [site.points[0] for site in sites]


WINDOW = HEAD + "const float* x, float* y, int n, int w, int by) {\n" + ITEM
WINDOW += "    int c = i % w, r = i / w;\n    float s = 0;\n    for (int k = 0; k < 40; k++)\n"
WINDOW += "        s += x[(r * (w + 40) + c) * by + k];\n    y[i] = s;\n}\n"


@pytest.mark.parametrize(("by", "chance"), [(1, 0.2), (2, 0.85), (64, 0.85)])
def test_lanes_bring_no_windows_that_neighbours_load_side_by_side(by: int, chance: float) -> None:
    found = chances(RowToLanes(), known(WINDOW, w=4096, by=by))
    assert {p for key, p in found.items() if key.startswith("warp")} == {chance}


@pytest.mark.parametrize(("by", "chance"), [(1, 0.05), (2, 0.05), (4, 0.05), (8, 0.85)])
def test_short_windows_meet_where_they_lie_a_few_elements_apart(by: int, chance: float) -> None:
    """Strides of a pooled plane: strips longer than a window are not offered at all."""
    found = chances(RowToLanes(), known(WINDOW.replace("k < 40", "k < 5"), w=4096, by=by))
    assert {p for key, p in found.items() if key.startswith("warp")} == {chance}
    assert not any(key.startswith("strips") for key in found)


def test_few_threads_have_no_neighbours_to_load_beside() -> None:
    text = WINDOW.replace("block(128)", "block(8)").replace("cdiv(n, 128)", "cdiv(n, 8)")
    found = chances(RowToLanes(), known(text, w=4096, by=1))
    assert {p for key, p in found.items() if key.startswith("warp")} == {0.85}


SUMS = HEAD + "const float* x, float* y, int n, int m) {\n" + ITEM
SUMS += "    float s = 0;\n    for (int k = 0; k < m; k++) s += x[i * m + k];\n    y[i] = s;\n}\n"


@pytest.mark.parametrize(
    ("n", "m", "block"),
    [(512, 4096, True), (1056, 4096, False), (MANY, 4096, False), (512, 1024, False)],
)
def test_blocks_share_rows_that_are_long_and_few(n: int, m: int, block: bool) -> None:
    found = chances(RowToLanes(), known(SUMS, n=n, m=m))
    shared = {kind: p for key, p in found.items() for kind in ("warp", "block") if kind in key}
    assert (shared["block"] > shared["warp"]) == block


KEPT = HEAD + "const float* x, float* y, float* z, int n, int m, int e) {\n" + ITEM
KEPT += (
    "    float s = 0;\n    for (int k = 0; k < m; k++) {\n        float v = 2.0f * x[i * m + k];\n"
)
KEPT += "        if (i * m + k < e) z[i * m + k] = v;\n        s += v;\n    }\n    y[i] = s;\n}\n"


@pytest.mark.parametrize(
    ("before", "after", "parts"),
    [
        ("", "", True),
        ("if (i * m + k < e)", "if (v > 0)", False),  # nobody knows which lanes go which way
        ("if (i * m + k < e) ", "", False),
        ("if (i * m + k < e)", "if (i < e)", False),
        ("z[i * m + k] = v", "z[i] = v", False),
        ("z[i * m + k] = v", "z[k * n + i] = v", False),
    ],
)
def test_elements_that_each_round_tests_come_one_by_one(
    before: str, after: str, parts: bool
) -> None:
    kernel = known(KEPT.replace(before, after), n=4096, m=1024)
    rule = RowToLanes()
    shaped = rule.shaped(kernel)
    assert stored_in_parts(shaped, shaped.reading.axes) == parts


#: A function of a row that the rounds of a short loop store.
HASHED = HEAD + "const unsigned* x, unsigned* y, int n) {\n" + ITEM
HASHED += (
    "    unsigned a = x[i];\n    for (int r = 0; r < 512; r++) a = (a << 5 ^ a >> 3) + r * 7u;\n"
)
HASHED += "    for (int k = 0; k < 8; k++) y[i * 8 + k] = a + k;\n}\n"


def test_lanes_do_not_each_do_all_of_what_takes_longest() -> None:
    kernel = known(HASHED)
    (first, second) = kernel.axes()
    assert operations_outside(kernel, [first]) < operations_outside(kernel, [second])
    assert operations_outside(kernel, []) == operations(kernel) > 512 * 5
    busy = [p for key, p in chances(RowToLanes(), kernel).items() if key.startswith("warp")]
    idle = chances(RowToLanes(), known(HASHED.replace("r < 512", "r < 2")))
    assert busy
    assert max(busy) < max(p for key, p in idle.items() if key.startswith("warp"))


WAITING = """\
#pragma optiml launch k grid(cdiv(n, 128)) block(128)
__global__ void k(const float* x, float* y, int n, int own) {
    __shared__ float part[128];
    float s = 0;
    for (int k = 0; k < own; k++) s += x[(blockIdx.x * 128 + threadIdx.x) * own + k];
    part[threadIdx.x] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        float t = 0;
        for (int k = 0; k < 128; k++) t += part[k];
        y[blockIdx.x] = t;
    }
}
"""


def test_what_one_thread_does_counts_by_what_all_of_them_do_beside_it() -> None:
    few, many = (known(WAITING, own=own) for own in (8, 100_000))
    assert chances(ShareSections(), few)["alone"] == 0.86
    assert chances(ShareSections(), many)["alone"] < 0.1


PARTS = HEAD + "const float* p, float* y, int n, int c) {\n" + ITEM
PARTS += "    int j = blockIdx.y;\n    y[j * n + i] = p[3 * i] + p[3 * i + 1] + p[3 * i + 2];\n}\n"


def test_all_parts_of_an_element_are_neighbours_but_one_of_them_is_not() -> None:
    assert apart(known(PARTS), "threadIdx.x") == 0
    assert apart(known(PARTS.replace(" + p[3 * i + 1]", "")), "threadIdx.x") == 24
    assert apart(known(PARTS.replace("p[3 * i + 1]", "p[3 * i]")), "threadIdx.x") == 36
    assert apart(known(PARTS.replace("3 *", "300 *")), "threadIdx.x") == 96


def test_atomic_operations_that_are_most_of_all_requests() -> None:
    text = HEAD + "const int* to, const float2* v, float2* y, int n) {\n" + ITEM
    text += "    for (int k = 0; k < 8; k++) {\n        atomicAdd(&y[to[i] + k].x, v[i].x);\n"
    text += "        atomicAdd(&y[to[i] + k].y, v[i].y);\n    }\n}\n"
    assert chances(AddAtOnce(), known(text)) == {"together": 0.87}
    first = "    float s = 0;\n    for (int j = 0; j < 999; j++) s += v[i + j].y;\n    for (int k"
    read = text.replace("    for (int k", first).replace("v[i].x", "s")
    assert requests(known(text))["y"] == 2 * 8 * 8
    assert chances(AddAtOnce(), known(read)) == {"together": 0.72}


HELD = HEAD + "const float* q, const float* x, float* y, int n) {\n" + ITEM
HELD += "    float s = 0;\n    for (int j = 0; j < 64; j++)\n"
HELD += "        for (int k = 0; k < 8; k++) s += q[i * 8 + k] * x[j * 8 + k];\n    y[i] = s;\n}\n"


def test_rows_in_registers_by_the_requests_that_they_save() -> None:
    assert chances(ScalariseArray(), known(HELD))["held rows"] == 0.86
    adding = HELD.replace("s +=", "atomicAdd(&y[k], 1.0f), s +=").replace("    y[i] = s;\n", "")
    found = chances(ScalariseArray(), known(adding))
    assert found.get("held rows", 0.0) < 0.5


def test_few_threads_wait_for_loads_more_than_for_sectors() -> None:
    text = HEAD + "float* x, int n, int m) {\n" + ITEM
    text += "    for (int k = 1; k < m; k++) x[k * n + i] = x[k * n + i] + 0.5f * x[(k - 1) * n + i];\n}\n"
    found = {n: chances(LoadAhead(), known(text, n=n, m=500)) for n in (2048, 8192, MANY)}
    assert [own["ahead"] for own in found.values()] == [0.92, 0.86, 0.5]


NEAREST = HEAD + "const float* x, float* y, int n, int m) {\n" + ITEM
NEAREST += "    float best = 1e30f;\n    int at = 0;\n    int end = min(i + 3, m);\n"
NEAREST += "    for (int k = max(i, 0); k < end; k++) if (x[k] < best) { best = x[k]; at = k; }\n"
NEAREST += "    y[i] = at;\n}\n"


MAP = HEAD + "const float* x, float* y, int n, int m) {\n" + ITEM
MAP += "    float s = x[i];\n    for (int k = 0; k < m; k++) s += x[k * n + i];\n    y[i] = s;\n}\n"


@pytest.mark.parametrize(("m", "blocks"), [(0, [512, 1024]), (3, [256, 512]), (4096, [64, 256])])
def test_blocks_that_do_little_are_large_so_that_they_start_in_time(
    m: int, blocks: list[int]
) -> None:
    rule, kernel = BlockSize(), known(MAP, m=m, n=1 << 25)
    (site,) = (s for s in rule.sites(rule.shaped(kernel)) if isinstance(s, Site))
    assert [point["BLOCK"] for point in site.points][:2] == blocks


ROWS = HEAD + "const float* x, float* y, const float* z, int n) {\n" + ITEM
ROWS += "    float s = 0;\n    for (int k = 0; k < 16; k++) s += x[i * 16 + k];\n"
ROWS += "    for (int k = 0; k < 16; k++) y[i * 16 + k] = s * x[i * 16 + k];\n}\n"


@pytest.mark.parametrize(
    ("more", "chance"),
    [
        ("", 0.945),
        ("    for (int k = 0; k < 16; k++) s += z[k * n + i];\n", 0.84),
        ("    for (int k = 0; k < 999; k++) s += z[k * n + i];\n", 0.6),
    ],
)
def test_rows_that_a_warp_brings_by_how_much_they_are_of_all(more: str, chance: float) -> None:
    text = ROWS.replace(
        "    for (int k = 0; k < 16; k++) y", f"{more}    for (int k = 0; k < 16; k++) y"
    )
    found = chances(ScalariseArray(), known(text))
    assert found["rows all"] == chance


WALKED = """\
#pragma optiml launch k grid(n) block(256)
__global__ void k(const float* x, float* y, int n, int d) {
    for (int k = threadIdx.x; k < d; k += blockDim.x) y[blockIdx.x * d + k] = x[blockIdx.x * d + k];
}
"""


@pytest.mark.parametrize(("rows", "length", "found"), [(64, 4096, True), (9999, 4096, False)])
def test_blocks_of_other_sizes_keep_the_items_of_threads_that_are_many(
    rows: int, length: int, found: bool
) -> None:
    facts = LaunchFacts("k", 1, (rows, 1, 1), (256, 1, 1), {}, {"n": rows, "d": length})
    kernel = kernel_of(WALKED, Facts((facts,), {}, 1e-5, 1e-8, "h200"))
    assert ("block" in chances(BlockSize(), kernel)) == found


LISTED = """\
#pragma optiml launch k grid(n) block(256)
__global__ void k(const int* to, const float* x, float* y, int n, int d) {
    for (int k = threadIdx.x; k < d; k += blockDim.x)
        atomicAdd(&y[to[blockIdx.x] * d + k], x[blockIdx.x * d + k]);
}
"""


@pytest.mark.parametrize(("rows", "kept"), [(1, True), (32000, False)])
def test_copies_of_few_elements_of_many_keep_few_updates(rows: int, kept: bool) -> None:
    facts = LaunchFacts(
        "k", 1, (4096, 1, 1), (256, 1, 1),
        {name: array(name, count) for name, count in
         (("to", 4096), ("x", 4096 * 1024), ("y", rows * 1024))},
        {"n": 4096, "d": 1024},
    )  # fmt: skip
    kernel = kernel_of(LISTED, Facts((facts,), {}, 1e-5, 1e-8, "h200"))
    assert bool(chances(PrivateCounters(), kernel)) == kept


AREA = HEAD + "const float* x, float* y, int n, int w, float s) {\n" + ITEM
AREA += "    int j = blockIdx.y;\n    float a = 0;\n"
AREA += "    for (int k = (int)(i * s); k < (int)((i + 1) * s); k++) a += x[j * w + k];\n"
AREA += "    y[j * n + i] = a;\n}\n"


def test_items_share_no_loads_of_loops_that_each_begins_elsewhere() -> None:
    assert chances(ShareLoads(), known(AREA, w=1 << 22)) == {}
    same = AREA.replace("(int)(i * s)", "0").replace("(int)((i + 1) * s)", "9")
    assert max(chances(ShareLoads(), known(same, w=1 << 22)).values()) > 0.5
    alone = chances(VectoriseMap(), known(AREA, w=1 << 22))
    assert alone
    assert max(alone.values()) < 0.3


def test_nobody_looks_ahead_in_a_window() -> None:
    assert chances(LookAhead(), known(NEAREST, m=MANY)) == {}


def test_few_sums_of_many_rounds_are_left_to_rows_of_threads() -> None:
    text = """\
#pragma optiml launch k grid(r) block(c)
__global__ void k(const float* a, const float* b, float* y, int n, int r, int c) {
    int i = blockIdx.x, j = threadIdx.x;
    float s = 0, t = 0, u = 0;
    for (int k = 0; k < n; k++) {
        float p = a[k * r + i], q = b[k * c + j];
        s += p * q; t += p * q * q; u += p;
    }
    y[i * c + j] = s / u + t;
}
"""

    def chance(rows: int, columns: int) -> float:
        launch = LaunchFacts(
            "k", 1, (rows, 1, 1), (columns, 1, 1), {}, {"n": MANY, "r": rows, "c": columns}
        )
        kernel = kernel_of(text, Facts((launch,), {}, 1e-5, 1e-8, "h200"))
        found = chances(BlockedProduct(), kernel)
        return max(prior for key, prior in found.items() if key.endswith("split"))

    assert chance(8, 8) < 0.94 <= chance(512, 512)
