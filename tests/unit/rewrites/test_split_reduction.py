"""Where long loops of few threads are split: by how many threads there are, and how many rounds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, kernels
from optiml_magic.model.facts import ArrayFacts, LaunchFacts
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.proposers.rewrites.reuse_broadcast import ReuseBroadcast
from optiml_magic.proposers.rewrites.split_reduction import SplitReduction
from optiml_magic.source.program import parse_program
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of, written
from tests.unit.primitives.running import same

COLUMNS = """\
#pragma optiml launch k grid(cdiv(cols, 256)) block(256)
__global__ void k(const float* a, const int* ends, float* out, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= cols) return;
    float s = 0.0f;
    for (int r = 0; r < rows; ++r) s += a[r * cols + c];
    out[c] = s / rows;
}
"""


def at(text: str, rows: int, cols: int) -> Kernel:
    """The kernel with what is known of its launch at these sizes, on an H200."""
    (kernel,) = kernels(parse_program(text), None)
    scalars: dict[str, int | float] = {"rows": rows, "cols": cols}
    facts = LaunchFacts("k", 1, (-(-cols // 256), 1, 1), (256, 1, 1), {}, scalars)
    return replace(kernel, facts=facts, chip="h200")


def found(kernel: Kernel) -> list[Site | Refused]:
    return list(SplitReduction().sites(kernel))


def said(kernel: Kernel) -> list[Site | Refused]:
    try:
        return found(kernel)
    except NotLegal as reason:
        return [Refused(reason.reason, reason.line)]


@pytest.mark.parametrize(
    ("rows", "cols", "parts"), [(100_000, 4096, 8), (100_000, 256, 64), (1000, 2048, 16)]
)
def test_as_many_parts_as_fill_the_chip_come_first(rows: int, cols: int, parts: int) -> None:
    (site,) = found(at(COLUMNS, rows, cols))
    assert isinstance(site, Site)
    assert site.points[0] == {"PARTS": parts}
    assert site.arithmetic == ("the order of additions",)
    made = site.apply()
    assert isinstance(made, Kernel)
    assert all(made.program.with_values(point).values["ROWS"] == 8 for point in site.points)
    first, second = made.program.launches
    assert str(first).endswith("grid(cdiv(cols, 64), PARTS) block(64, ROWS)")
    assert str(second).endswith("grid(cdiv(cols, 64)) block(64)")


def test_extremes_are_the_same_in_any_order() -> None:
    (site,) = found(at(COLUMNS.replace("s += a[r * cols + c]", "s = fmaxf(s, a[r])"), 999, 999))
    assert isinstance(site, Site)
    assert site.arithmetic == ()


@pytest.mark.parametrize(("rows", "cols"), [(100_000, 1 << 20), (100, 4096)])
def test_many_threads_and_few_rounds_are_left_alone(rows: int, cols: int) -> None:
    assert not found(at(COLUMNS, rows, cols))


@pytest.mark.parametrize(
    ("end", "greatest", "sites"),
    [("ends[0]", 5000, 1), ("ends[rows - 1] / 2", 5000, 1), ("ends[0]", 100, 0),
     ("ends[0] + ends[1]", None, 1)],
)  # fmt: skip
def test_memory_may_say_how_many_rounds_all_threads_make(
    end: str, greatest: int | None, sites: int
) -> None:
    text = COLUMNS.replace("r < rows", f"r < {end}")
    kernel = at(text, 5000, 4096)
    arrays = {
        "a": ArrayFacts("a", "input", "f4", (5000, 4096), 5000 * 4096 * 4, 256),
        "ends": ArrayFacts("ends", "input", "i4", (2,), 8, 256, 1, greatest),
    }
    assert kernel.facts is not None
    made = found(replace(kernel, facts=replace(kernel.facts, arrays=arrays)))
    assert [isinstance(site, Site) for site in made] == [True] * sites


@pytest.mark.parametrize("end", ["ends[0]", "ends[1] - ends[0]"])
def test_parts_of_rounds_that_memory_says(end: str) -> None:
    before = COLUMNS.replace("r < rows", f"r < {end}")
    (site,) = found(replace(at(before, 5000, 4096), facts=None))
    assert isinstance(site, Site)
    arrays = {"a": Array("f4", ("rows", "cols")), "ends": Array("i4", ("3",), "starts rows"),
              "out": Array("f4", ("cols",))}  # fmt: skip
    sizes, small = {"rows": 301, "cols": 70}, {"rows": 1, "cols": 1}
    assert end_of(before, written(site.apply()), arrays, sizes, small, rounds=True) == "same"


def test_rows_are_not_split_since_lanes_share_them_better() -> None:
    assert not found(at(COLUMNS.replace("a[r * cols + c]", "a[c * rows + r]"), 9999, 512))


CHANNELS = """\
#pragma optiml launch k grid(cdiv(cols, 256)) block(256)
__global__ void k(const float* a, float* out, int rows, int cols, int p) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= cols) return;
    float s = 0.0f;
    for (int n = 0; n < rows; ++n)
        for (int i = 0; i < p; ++i) s += a[(n * cols + c) * p + i];
    out[c] = s / rows;
}
"""


def test_blocks_share_what_is_around_the_rows_of_few_channels() -> None:
    (site,) = found(at(CHANNELS, 64, 100))
    assert isinstance(site, Site)
    assert site.points[0] == {"PARTS": 8, "THREADS": 256}
    made = site.apply()
    assert isinstance(made, Kernel)
    first, second = made.program.launches
    assert str(first).endswith("grid(cols, PARTS) block(THREADS)")
    assert str(second).endswith("grid(cdiv(cols, 256)) block(256)")
    sizes = {"rows": 9, "cols": 5, "p": 70}
    same(CHANNELS, made, {"a": ("rows", "cols", "p"), "out": ("cols",)}, sizes, rounds=True)


def test_the_greatest_of_sums_is_not_the_same_in_any_order() -> None:
    text = CHANNELS.replace("for (int i", "{ float row = 0.0f; for (int i").replace(
        "s +=", "row +="
    )
    text = text.replace("* p + i];", "* p + i]; s = fmaxf(s, row); }")
    (site,) = found(at(text, 64, 100))
    assert isinstance(site, Site)
    assert site.arithmetic == ("the order of additions",)


def test_few_rows_are_shared_by_blocks_and_their_threads() -> None:
    text = COLUMNS.replace("a[r * cols + c]", "a[c * rows + r]")
    (site,) = found(at(text, 99_999, 50))
    assert isinstance(site, Site)
    made = site.apply()
    assert isinstance(made, Kernel)
    shapes = {"a": ("cols", "rows"), "ends": ("i4", "cols"), "out": ("cols",)}
    same(text, made, shapes, {"rows": 301, "cols": 5}, {"PARTS": 8, "THREADS": 64}, rounds=True)


WHERE = """\
#pragma optiml launch k grid(cdiv(cols, 256)) block(256)
__global__ void k(const float* a, float* out, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= cols) return;
    float best = floorf(2.0f * a[c]);
    int at = 0;
    for (int r = 1; r < rows; ++r) {
        float v = floorf(2.0f * a[r * cols + c]);
        if (v > best) { best = v; at = r; }
    }
    out[c] = best + 100.0f * at;
}
"""


@pytest.mark.parametrize("parts", [1, 4, 64])
def test_of_equal_extremes_the_parts_keep_the_first(parts: int) -> None:
    text = WHERE.replace("floorf(2.0f * a[c])", "-9.0f").replace("r = 1", "r = 0")
    (site,) = found(at(text, 4096, 700))
    assert isinstance(site, Site)
    assert site.arithmetic == ()
    assert site.points[0] == {"PARTS": 64}
    made = site.apply()
    shapes = {"a": ("rows", "cols"), "out": ("cols",)}
    same(text, made, shapes, {"rows": 71, "cols": 33}, {"PARTS": parts})


def test_an_extreme_that_begins_with_the_first_row_is_split_as_well() -> None:
    text = WHERE.replace("floorf(2.0f * a[c])", "a[c]").replace(
        "floorf(2.0f * a[r * cols + c])", "a[r * cols + c]"
    )
    (site,) = found(at(text, 4096, 700))
    assert isinstance(site, Site)
    shapes = {"a": ("rows", "cols"), "out": ("cols",)}
    same(text, site.apply(), shapes, {"rows": 71, "cols": 33}, {"PARTS": 8})


def test_of_equal_extremes_the_last_is_not_kept_by_parts() -> None:
    text = WHERE.replace("floorf(2.0f * a[c])", "-9.0f").replace("r = 1", "r = 0")
    (site,) = found(at(text.replace("v > best", "v >= best"), 4096, 700))
    assert isinstance(site, Site)
    assert "of equals it keeps the last one" in str(site.apply())


ALONE = """\
#pragma optiml launch k grid(1) block(1)
__global__ void k(const float* a, float* out, int rows, int cols) {
    float s = 0.0f;
    for (int i = 0; i < rows * cols; ++i) s += a[i];
    out[0] = s / rows;
}
"""


@pytest.mark.parametrize(("grid", "out"), [("1", "out[0]"), ("1, cols", "out[blockIdx.y]")])
def test_a_thread_without_neighbours_walks_along_a_row(grid: str, out: str) -> None:
    text = ALONE.replace("grid(1)", f"grid({grid})").replace("out[0]", out)
    launched = at(text, 400, 300)
    assert launched.facts is not None
    few = tuple(int(n) for n in grid.replace("cols", "3").split(", "))
    facts = replace(launched.facts, grid=(*few, *(1,) * (3 - len(few))), block=(1, 1, 1))
    (site,) = said(replace(launched, facts=facts))
    assert isinstance(site, Site)
    assert site.points[0]["PARTS"] >= 64
    made = site.apply()
    assert isinstance(made, Kernel)
    shapes = {"a": ("rows", "cols"), "out": ("cols",)}
    for parts in (2, 256):
        values = {"PARTS": parts, "THREADS": 64}
        for sizes in ({"rows": 30, "cols": 7}, {"rows": 1, "cols": 1}):
            same(text, made, shapes, sizes, values, rounds=True)


def test_what_puts_the_parts_together_is_not_split_again() -> None:
    (site,) = found(at(COLUMNS, 100_000, 256))
    assert isinstance(site, Site)
    made = site.apply()
    assert isinstance(made, Kernel)
    assert not found(made)


AGAIN = COLUMNS.replace(
    "    out[c] = s / rows",
    "    float q = 0.0f;\n    for (int r = 0; r < ROUNDS; ++r) q += fabsf(a[r * cols + c] - s);\n    out[c] = q",
)


@pytest.mark.parametrize(
    ("first", "arithmetic"),
    [("s += a[r", True), ("s = fmaxf(s, a[r", True), ("q = fmaxf(q,", False)],
)
@pytest.mark.parametrize(("rows", "cols"), [(301, 70), (7, 64), (1, 1)])
def test_the_long_loops_of_a_kernel_are_split_together(
    first: str, rows: int, cols: int, *, arithmetic: bool
) -> None:
    text = AGAIN.replace("ROUNDS", "rows")
    if "fmaxf" in first:
        text = text.replace("s += a[r * cols + c]", "s = fmaxf(s, a[r * cols + c])")
    if not arithmetic:
        text = text.replace("q += fabsf(a[r * cols + c] - s)", "q = fmaxf(q, a[r * cols + c] - s)")
    (site,) = found(at(text, 9999, 512))
    assert isinstance(site, Site)
    assert "and those behind it" in site.title
    assert bool(site.arithmetic) == arithmetic
    made = site.apply()
    assert isinstance(made, Kernel)
    assert [d.kernel for d in made.program.launches] == ["k_parts", "k_parts_2", "k"]
    assert made.program.values["PARTS_2"] == site.points[0]["PARTS"] == 64
    assert not made.program.requires
    shapes = {"a": ("rows", "cols"), "ends": ("i4", "cols"), "out": ("cols",)}
    values = {"PARTS": 4, "PARTS_2": 2, "ROWS": 2, "ROWS_2": 8}
    same(text, made, shapes, {"rows": rows, "cols": cols}, values, rounds=True)


@pytest.mark.parametrize(
    ("old", "new", "title"),
    [
        ("ROUNDS", "64", False),  # no long one
        ("q += ", "out[c] = q += ", False),  # somebody asks for each sum so far
    ],
)
def test_a_loop_behind_that_stays_as_it_was(old: str, new: str, *, title: bool) -> None:
    text = AGAIN.replace(old, new).replace("ROUNDS", "rows")
    (site,) = found(at(text, 9999, 512))
    assert isinstance(site, Site)
    assert ("and those behind it" in site.title) == title
    made = site.apply()
    assert isinstance(made, Kernel)
    assert [d.kernel for d in made.program.launches] == ["k_parts", "k"]
    shapes = {"a": ("rows", "cols"), "ends": ("i4", "cols"), "out": ("cols",)}
    same(text, made, shapes, {"rows": 301, "cols": 70}, {"PARTS": 4}, rounds=True)


@pytest.mark.parametrize(
    ("old", "new", "reason", "line"),
    [
        ("r < rows", "r < ends[c]", "each thread may make another number of rounds", 6),
        ("r < rows", "r < ends[blockIdx.x]", "each thread may make another number of rounds", 6),
        ("r < rows", "r < ends[ends[c]]", "each thread may make another number of rounds", 6),
        ("out[c] =", "__syncthreads(); out[c] =", "its threads wait for each other", 7),
        ("block(256)", "block(256) shared(64)", "it has dynamic shared memory", 0),
    ],
)
def test_what_is_no_site_says_why(old: str, new: str, reason: str, line: int) -> None:
    kernel = at(COLUMNS.replace(old, new), 9999, 512)
    assert said(kernel) == [Refused(reason, line)]


MOVED = """\
#pragma optiml launch k grid(cdiv(cols, 256)) block(256)
__global__ void k(const float* a, const float* v, float* out, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < cols) {
        for (int r = 0; r < rows; ++r) out[r * cols + c] = a[r * cols + c] - v[r];
    }
}
"""


def test_rounds_that_do_not_meet_become_blocks_where_there_are_few_threads() -> None:
    (site,) = found(at(MOVED, 1000, 2048))
    assert isinstance(site, Site)
    assert site.arithmetic == ()
    made = site.apply()
    assert isinstance(made, Kernel)
    assert "grid(cdiv(cols, 256), rows) block(256)" in str(made.launch)
    shapes = {"a": ("rows", "cols"), "v": ("rows",), "out": ("rows", "cols")}
    same(MOVED, made, shapes, {"rows": 130, "cols": 70})


@pytest.mark.parametrize(
    ("old", "new", "cols"),
    [
        ("r * cols + c] = ", "r * cols + c] = ", 1_000_000),
        ("out[r * cols + c] = a[r * cols + c]", "out[c] = a[r * cols + c]", 2048),
        ("a[r * cols + c]", "out[(r > 0 ? r - 1 : 0) * cols + c]", 2048),
        ("[r * cols + c]", "[c * rows + r]", 2048),
    ],
    ids=["threads enough", "one element", "the round before", "rows"],
)
def test_rounds_that_stay_where_they_are(old: str, new: str, cols: int) -> None:
    assert not [s for s in said(at(MOVED.replace(old, new), 1000, cols)) if isinstance(s, Site)]


SOFTMAX = """\
#pragma optiml launch k grid(cdiv(cols, 256)) block(256)
__global__ void k(const float* a, float* out, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= cols) return;
    float m = -INFINITY, s = 0.0f;
    for (int r = 0; r < rows; ++r) m = fmaxf(m, a[r * cols + c]);
    for (int r = 0; r < rows; ++r) s += expf(a[r * cols + c] - m);
    for (COUNTER r = 0; r < rows; ++r) {
        if (a[r * cols + c] == m) continue;
        out[r * cols + c] = expf(a[r * cols + c] - m) / s;
    }
}
"""


@pytest.mark.parametrize(("rows", "cols"), [(301, 70), (5, 64), (1, 1)])
@pytest.mark.parametrize("counter", ["int", "long long", "unsigned int"])
def test_blocks_take_several_rounds_of_what_stands_behind_other_loops(
    counter: str, rows: int, cols: int
) -> None:
    text = SOFTMAX.replace("COUNTER", counter)
    (site,) = found(at(text, 4096, 2048))
    assert isinstance(site, Site)
    made = site.apply()
    assert isinstance(made, Kernel)
    several = counter == "int"
    assert ("cdiv(rows, ROUNDS)" in str(made.launch)) == several
    values = {"PARTS": 4, "PARTS_2": 2} | ({"ROUNDS": 4} if several else {})
    shapes = {"a": ("rows", "cols"), "out": ("rows", "cols")}
    same(text, made, shapes, {"rows": rows, "cols": cols}, values, rounds=True)
    at_first = {"rows": rows, "cols": cols}
    same(text, made, shapes, at_first, rounds=True)


@pytest.mark.parametrize("end", ["rows - 1", "rows / 2", "2 * rows - 1"])
def test_blocks_of_several_rounds_by_what_the_loop_ends_with(end: str) -> None:
    text = SOFTMAX.replace("COUNTER", "int").replace(
        "r = 0; r < rows; ++r) {", f"r = 0; r < {end}; ++r) {{ if (r >= rows) continue;"
    )
    (site,) = found(at(text, 4096, 2048))
    assert isinstance(site, Site)
    shapes = {"a": ("rows", "cols"), "out": ("rows", "cols")}
    same(text, site.apply(), shapes, {"rows": 130, "cols": 70}, rounds=True)


GROUPS = """\
#pragma optiml launch k grid(cdiv(cols, 256)) block(256)
__global__ void k(const int* key, const float* a, float* out, int rows, int cols) {
    int g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g >= cols) return;
    float s = 0.0f;
    int n = 0;
    for (int r = 0; r < rows; ++r) {
        if (key[r] != g + 3) continue;
        s += a[r];
        ++n;
    }
    out[2 * g] = s;
    out[2 * g + 1] = n;
}
"""


def test_of_a_few_groups_threads_of_blocks_share_the_rounds() -> None:
    """Rows of threads would have idle lanes: a warp has as many that work as there are groups."""
    (site,) = found(at(GROUPS, 1_000_000, 6))
    assert isinstance(site, Site)
    assert site.points[0] == {"PARTS": 128, "THREADS": 256}
    made = site.apply()
    assert isinstance(made, Kernel)
    shapes = {"key": ("i4", "rows"), "a": ("rows",), "out": ("cols", "2")}
    sizes = {"rows": 1033, "cols": 6}
    values = {"PARTS": 4, "THREADS": 64}
    same(GROUPS, made, shapes, sizes, values, rounds=True)
    (site,) = found(at(GROUPS, 1_000_000, 64))
    assert isinstance(site, Site)
    assert site.title.startswith("rows of threads")


@pytest.mark.parametrize(("cols", "sites"), [(6, 0), (31, 0), (32, 1)])
def test_a_thread_takes_no_items_of_so_few(cols: int, sites: int) -> None:
    assert bool([*ReuseBroadcast().sites(at(GROUPS, 1_000_000, cols))]) == bool(sites)


def test_of_two_long_rows_blocks_share_both_or_none() -> None:
    behind = "for (int c = 0; c < cols; ++c) o[r * cols + c] /= s;"
    (alone,) = (s for s in said(at(ROWS_OF_FEW.replace("BEHIND", ""), 200, 1 << 17))
                if isinstance(s, Site))  # fmt: skip
    assert alone.key.startswith("chunks")
    left = ["a loop beside it is as long, and left to as few threads"]
    three = ROWS_OF_FEW.replace("out[r] = s;", behind).replace("BEHIND", behind)
    assert [s.reason for s in said(at(three, 200, 1 << 17)) if isinstance(s, Refused)] == left
    stored = ROWS_OF_FEW.replace("BEHIND", behind)  # where a row is empty, too
    for text in (stored, stored.replace("out[r] = s;", "")):
        (site,) = said(at(text, 200, 1 << 17))
        assert isinstance(site, Site)
        assert site.key == "whole"
        made = site.apply()
        assert isinstance(made, Kernel)
        shapes = {"a": ("rows", "cols"), "o": ("rows", "cols"), "out": ("rows",)}
        for rows, cols in ((7, 1033), (1, 1), (3, 2050)):
            same(text, made, shapes, {"rows": rows, "cols": cols}, rounds=True)


ROWS_OF_FEW = """\
#pragma optiml launch k grid(cdiv(rows, 256)) block(256)
__global__ void k(const float* a, float* o, float* out, int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float s = 0.0f;
    for (int c = 0; c < cols; ++c) s += a[r * cols + c];
    out[r] = s;
    BEHIND
}
"""


def test_what_the_sum_of_a_column_changes_is_shared_as_well() -> None:
    text = COLUMNS.replace("const float* a, const int* ends", "float* a").replace(
        "float s = 0.0f;\n    for (int r = 0; r < rows; ++r) s += a[r * cols + c];\n"
        "    out[c] = s / rows;",
        "out[c] = 0.0f;\n    for (int r = 0; r < rows; ++r) out[c] += a[r * cols + c];\n"
        "    for (int r = 0; r < rows; ++r) a[r * cols + c] -= out[c];",
    )
    kernel = at(text, 8192, 4096).shaped(SplitReduction.before)
    (site,) = found(kernel)
    assert isinstance(site, Site)
    after = written(site.apply())
    assert "a[r * cols + c] -= out_here;" in after
    assert "max(cdiv(rows, ROUNDS), 1)" in after
    arrays = {"a": Array("f4", ("rows", "cols")), "out": Array("f4", ("cols",))}
    assert end_of(text, after, arrays, {"rows": 70, "cols": 33}, {"rows": 1, "cols": 5},
                  rounds=True) == "same"  # fmt: skip


def test_a_list_of_the_best_is_kept_by_blocks() -> None:
    text = COLUMNS.replace(
        "float s = 0.0f;\n    for (int r = 0; r < rows; ++r) s += a[r * cols + c];\n"
        "    out[c] = s / rows;",
        "float best[3];\n    for (int p = 0; p < 3; ++p) best[p] = -1e30f;\n"
        "    for (int r = 0; r < rows; ++r) {\n        float v = a[r * cols + c];\n"
        "        if (v > best[2]) {\n            int p = 2;\n"
        "            while (p > 0 && v > best[p - 1]) { best[p] = best[p - 1]; p--; }\n"
        "            best[p] = v;\n        }\n    }\n"
        "    for (int p = 0; p < 3; ++p) out[c * 3 + p] = best[p];",
    )
    (site,) = found(at(text, 100_000, 4096))
    assert isinstance(site, Site)
    assert not site.arithmetic
    assert site.points[0] == {"PARTS": 64}
    after = written(site.apply())
    assert "best_parts f4[PARTS * cols * 3]" in after
    assert found(at(text, 100_000, 300_000)) == []


WHOLE = """\
#pragma optiml launch k grid(1) block(THREADS)
__global__ void k(const float* a, float* o, int rows, int cols) {
    BODY
}
"""
OF_ALL = """\
    if (threadIdx.x == 0) {
        float m = a[0];
        for (int i = 1; i < cols; i++) if (a[i] > m) m = a[i];
        float s = 0.0f;
        for (int i = 0; i < cols; i++) s += expf(a[i] - m);
        for (int i = 0; i < cols; i++) o[i] = expf(a[i] - m) / s;
    }
"""
NORM = """\
    __shared__ float all;
    if (threadIdx.x == 0) all = 0.0f;
    __syncthreads();
    float own = 0.0f;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) own += a[i] * a[i];
    atomicAdd(&all, own);
    __syncthreads();
    for (int i = threadIdx.x; i < cols; i += blockDim.x) o[i] = a[i] / sqrtf(all);
"""


def whole(text: str) -> list[Site | Refused]:
    """What is said of the only block of a kernel, at a million elements."""
    (kernel,) = kernels(parse_program(text), None)
    facts = LaunchFacts("k", 1, (1, 1, 1), (1, 1, 1), {}, {"rows": 1, "cols": 1 << 20})
    return said(SplitReduction().shaped(replace(kernel, facts=facts, chip="h200")))


@pytest.mark.parametrize(
    ("threads", "body", "launches"),
    [(1, OF_ALL, 3), (128, OF_ALL, 3), (256, NORM, 2)],
)
def test_a_whole_array_is_done_by_the_whole_chip(threads: int, body: str, launches: int) -> None:
    text = WHOLE.replace("THREADS", str(threads)).replace("BODY", body)
    (site,) = (s for s in whole(text) if isinstance(s, Site))
    assert site.key == "whole"
    made = site.apply()
    assert isinstance(made, Kernel)
    program = made.program
    assert len(program.launches) == launches
    assert str(program.launches[-1]).endswith(", cdiv(cols, ROUNDS)) block(THREADS)")
    values = {tune.name: min(tune.values) for tune in program.tunes}
    for cols in (1, 5, 3070):
        same(text, made, {"a": ("cols",), "o": ("cols",)}, {"rows": 1, "cols": cols}, values,
             rounds=True)  # fmt: skip


IMAGES = COLUMNS.replace("const int* ends, ", "").replace(
    "for (int r = 0; r < rows; ++r) s += a[r * cols + c];",
    "for (int r = 0; r < rows; ++r)\n"
    "        for (int h = 0; h < 16; ++h)\n"
    "            for (int w = 0; w < 16; ++w) s += a[((r * 16 + h) * 16 + w) * cols + c];",
)


@pytest.mark.parametrize(("rows", "parts"), [(16, 2), (100, 8)])
def test_few_rounds_of_many_are_as_long_as_many(rows: int, parts: int) -> None:
    (site,) = found(at(IMAGES, rows, 4096))
    assert isinstance(site, Site)
    assert site.points[0] == {"PARTS": parts}
    shapes = {"a": ("rows", "256", "cols"), "out": ("cols",)}
    same(IMAGES, site.apply(), shapes, {"rows": 5, "cols": 70}, site.points[0], rounds=True)
    few = found(at(IMAGES, 2, 4096))
    assert not any(isinstance(s, Site) and s.key.startswith("split") for s in few)
