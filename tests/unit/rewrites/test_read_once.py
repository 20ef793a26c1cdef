"""What is kept of rows and of columns, with which numbers, and where nothing is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, kernels
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.proposers.rewrites.read_once import ReadOnce
from optiml_magic.source.program import parse_program
from tests.present import sampled
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of

SOFTMAX = """\
#pragma optiml launch k grid(cdiv(n, 128)) block(128)
__global__ void k(const float* a, float* out, int n, int m) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n) return;
    float top = a[START];
    for (int i = 1; i < m; i++) if (a[HERE] > top) top = a[HERE];
    float sum = 0.0f;
    for (int i = 0; i < m; i++) { out[HERE] = expf(a[HERE] - top); sum += out[HERE]; }
    for (int i = 0; i < m; i++) out[HERE] /= sum;
}
"""
ROWS = SOFTMAX.replace("HERE", "at * m + i").replace("START", "at * m")
COLUMNS = SOFTMAX.replace("HERE", "i * n + at").replace("START", "at")


def sites(text: str, n: int, m: int) -> list[Site]:
    """Where the rule applies at these sizes, on an H200."""
    (kernel,) = kernels(parse_program(text), None)
    facts = LaunchFacts("k", 1, (-(-n // 128), 1, 1), (128, 1, 1), {}, {"n": n, "m": m})
    found = list(ReadOnce().sites(replace(kernel, facts=facts, chip="h200")))
    assert not any(isinstance(one, Refused) for one in found)
    return [one for one in found if isinstance(one, Site)]


def end(text: str, site: Site, n: int, m: int) -> str:
    made = site.apply()
    assert isinstance(made, Kernel), made
    after = made.program.with_values(site.points[-1]).text
    arrays = {"a": Array("f4", ("n", "m")), "out": Array("f4", ("n", "m"), "zeros")}
    return end_of(text, after, arrays, {"n": n, "m": m}, {"n": 3, "m": m + 1}, rounds=True)


@pytest.mark.parametrize(("n", "m"), sampled([(5, 301), (3, 256)], 2))
def test_lanes_keep_a_row(n: int, m: int) -> None:
    warp, block = sites(ROWS, n, m)
    assert [end(ROWS, site, n, m) for site in (warp, block)] == ["same"] * 2
    assert warp.arithmetic == block.arithmetic == ("the order of additions",)


def test_running_sums_of_what_is_kept_change_the_order() -> None:
    text = ROWS.replace("sum += out[at * m + i];", "").replace("out[at * m + i] /= sum", "{0}")
    text = text.replace("{0}", "{ sum += out[at * m + i]; out[at * m + i] = sum; }")
    found = sites(text, 5, 301)
    assert found
    assert {site.arithmetic for site in found} == {("the order of additions",)}
    assert end(text, found[0], 5, 301) == "same"


@pytest.mark.parametrize(
    ("m", "points"),
    [
        (1024, [{"LANES": 32, "KEEP": 8}, {"THREADS": 64, "KEEP": 4}]),
        (1001, [{"LANES": 32, "KEEP": 32}, {"THREADS": 64, "KEEP": 16}]),
        (64, [{"LANES": 4, "KEEP": 4}]),
        (16384, [{"THREADS": 512, "KEEP": 8}]),
        (1 << 16, [{"THREADS": 512, "KEEP": 8}]),
        (1 << 20, []),
    ],
)
def test_the_fewest_lanes_that_hold_a_row_come_first(m: int, points: list[dict[str, int]]) -> None:
    assert [site.points[0] for site in sites(ROWS, 999, m)] == points


def test_a_thread_keeps_its_column() -> None:
    site, *_ = sites(COLUMNS, 37, 20)
    assert site.title == "keep what 3 loops touch of a, out"
    assert site.points == ({"KEEP": 24}, {"KEEP": 12})
    assert site.arithmetic == ()
    assert end(COLUMNS, site, 37, 20) == "same"
    made = site.apply()
    assert isinstance(made, Kernel)
    assert not list(ReadOnce().sites(made))


@pytest.mark.slow
def test_lanes_that_are_neighbours_keep_long_columns() -> None:
    alone, stacked, shared = sites(COLUMNS, 37, 140)
    assert alone.points[0] == {"KEEP": 64}
    assert stacked.points == (
        {"LANES": 16, "KEEP": 12, "BLOCK": 512}, {"LANES": 32, "KEEP": 6, "BLOCK": 1024}
    )  # fmt: skip
    assert stacked.prior > shared.prior
    assert end(COLUMNS, stacked, 37, 140) == "narrowed"
    assert shared.points == ({"LANES": 8, "KEEP": 24}, {"LANES": 4, "KEEP": 48})
    assert shared.arithmetic == ("the order of additions",)
    assert end(COLUMNS, shared, 37, 140) == "same"


def test_what_lanes_share_already_is_kept_next() -> None:
    strided = ROWS.replace("int at = blockIdx.x * blockDim.x + threadIdx.x", "int at = blockIdx.x")
    strided = strided.replace("int i = 0;", "int i = threadIdx.x;").replace("i++", "i += 128")
    (site,) = sites(strided.replace("for (int i = 1; i < m; i += 128) if", "if (m) if"), 5, 300)
    assert site.title.startswith("keep what 2 loops")


FILLED = """\
#pragma optiml launch k grid(cdiv(n, 128)) block(128)
__global__ void k(const float* a, float* out, int n, int m) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n) return;
    float own[64];
    for (int i = 0; i < m; i++) own[i] = 2.0f * a[HERE];
    for (int i = 0; i < m; i++) out[HERE] = own[m - 1 - i] + a[HERE];
}
"""


def test_lanes_that_cannot_share_what_a_thread_fills_are_no_idea() -> None:
    (kernel,) = kernels(parse_program(FILLED.replace("HERE", "at * m + i")), None)
    (refused,) = ReadOnce().sites(kernel)
    assert refused == Refused("`own` goes from round to round", 6)
    columns = FILLED.replace("HERE", "i * n + at")
    (alone,) = sites(columns, 37, 60)
    assert alone.title == "keep what 2 loops touch of a"
    assert end(columns, alone, 37, 60) == "same"


def test_rows_of_loops_apart_or_read_elsewhere_are_no_idea() -> None:
    assert not sites(ROWS.replace("for (int i = 0;", "if (m > 2) for (int i = 0;"), 5, 301)
    own = ROWS.replace("if (a[", "if (out[").replace("top = a[", "top = out[")
    assert sites(own.replace("float top = out[at * m]", "float top = 0.0f"), 5, 301)
    elsewhere = own.replace("a[at * m + i] - top", "out[at * m + i] - out[at * m + m / 2]")
    assert not sites(
        elsewhere.replace("float sum", "top -= out[at * m + m / 3]; float sum"), 5, 301
    )


def test_one_loop_keeps_nothing() -> None:
    text = ROWS.replace("    for (int i = 0; i < m; i++) out[at * m + i] /= sum;\n", "")
    text = text.replace("for (int i = 1; i < m; i++) if", "if (m) if (int i = 0; true) if")
    assert not sites(text, 99, 99)
    assert not sites(COLUMNS.replace("i < m; i++) {", "i < n; i++) {"), 99, 0)


PLANE = """\
#pragma optiml launch k grid(cdiv(n, 16), cdiv(l, 16)) block(16, 16)
__global__ void k(const float* a, float* out, int l, int m, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < l) {
        float top = -INFINITY, sum = 0.0f;
        for (int i = 0; i < m; i++) top = fmaxf(top, a[(y * m + i) * n + x]);
        for (int i = 0; i < m; i++) sum += expf(a[(y * m + i) * n + x] - top);
        for (int i = 0; i < m; i++) out[(y * m + i) * n + x] = expf(a[(y * m + i) * n + x] - top) / sum;
    }
}
"""


def test_a_plane_of_threads_with_one_test_for_both_axes_keeps_its_columns() -> None:
    (kernel,) = kernels(parse_program(PLANE), None)
    sizes = {"l": 9, "m": 64, "n": 300}
    facts = LaunchFacts("k", 1, (19, 1, 1), (16, 16, 1), {}, sizes)
    found = list(ReadOnce().sites(replace(kernel, facts=facts, chip="h200")))
    assert len(found) >= 3
    ends = {"same"}
    for site in found:
        assert isinstance(site, Site)
        made = site.apply()
        assert isinstance(made, Kernel), made
        after = made.program.with_values(site.points[-1]).text
        arrays = {"a": Array("f4", ("l", "m", "n")), "out": Array("f4", ("l", "m", "n"), "zeros")}
        small = {"l": 3, "m": 65, "n": 32}
        ends.add(end_of(PLANE, after, arrays, {"l": 2, "m": 5, "n": 64}, small, rounds=True))
    assert ends == {"same"}


def test_lanes_keep_what_they_store_until_it_is_final() -> None:
    """What a later loop stores again is stored once, and nothing is loaded that is stored first."""
    (site, *_) = sites(ROWS, 4096, 512)
    made = site.apply()
    assert isinstance(made, Kernel)
    text = made.program.text
    assert "out_kept[turn] = *reinterpret_cast<const float4*>(out_items);" in text
    kept = text[: text.index("i_first_2 = lane * 4 + KEEP * LANES * 4")]
    assert "float4*>(&out[" not in kept
    assert end(ROWS, site, 37, 512) == "same"
