"""Threads that share loads: along which axes items are offered, with which numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, kernels
from optiml_magic.kernels.primitives.costs import long_calls
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.model.idea import Idea
from optiml_magic.proposers.rewrites import share_loads
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.proposers.rewrites.share_loads import ShareLoads
from optiml_magic.source.program import parse_program
from tests.ideas import asked, view_of
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made
from tests.unit.primitives.alike import end_of
from tests.unit.primitives.running import same

PLANE = """
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
__global__ void k(const float* a, const float* f, float* o, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && y > 0 && x < w - 1 && y < h - 1)
        o[y * w + x] = a[y * w + x - 1] + a[y * w + x + 1] + a[y * w + x - w] + a[y * w + x + w];
}"""


def test_rows_are_shared_along_the_columns(propose, compiles):
    found = propose("share_loads", PLANE)
    values = [parse_program(p.text).values for p in found]
    assert {("ITEMS_X" in v, "ITEMS_Y" in v) for v in values} == {
        (False, True), (True, False), (True, True),
    }  # fmt: skip
    assert [v for v in values if "ITEMS_X" not in v] == [
        {"ITEMS_Y": 4, "BLOCK_X": 64, "BLOCK_Y": 4, "BLOCKS": 4},
        {"ITEMS_Y": 4, "BLOCK_X": 64, "BLOCK_Y": 4, "BLOCKS": 1},
        {"ITEMS_Y": 8, "BLOCK_X": 64, "BLOCK_Y": 4, "BLOCKS": 1},
    ]
    compiles(found[0].text)


def test_blocks_of_short_rows_have_no_more_threads_than_are_worth_their_registers():
    (kernel,) = kernels(parse_program(PLANE), None)
    facts = LaunchFacts("k", 1, (3, 3, 1), (16, 16, 1), {}, {"w": 48, "h": 48})
    sites = ShareLoads().sites(replace(kernel, facts=facts))
    (rows,) = [s for s in sites if isinstance(s, Site) and s.key == "along x"]
    first = rows.points[0]
    assert (first["BLOCK_X"], first["BLOCK_Y"], first["BLOCKS"]) == (16, 16, 4)


def test_a_line_of_threads_is_no_longer_than_a_short_row():
    text = PLANE.replace("cdiv(w, 16), cdiv(h, 16)) block(16, 16)", "cdiv(w, 64), h) block(64)")
    text = text.replace("blockIdx.y * blockDim.y + threadIdx", "blockIdx")
    (kernel,) = kernels(parse_program(text), None)
    for width, block in ((4096, 256), (256, 64), (60, 32)):
        facts = LaunchFacts("k", 1, (-(-width // 64), 8, 1), (64, 1, 1), {}, {"w": width, "h": 8})
        sites = ShareLoads().sites(replace(kernel, facts=facts))
        (rows,) = [s for s in sites if isinstance(s, Site) and s.key == "along x"]
        assert rows.points[0]["BLOCK"] == block


def test_filters_share_the_image_and_pixels_the_filter(propose):
    text = """
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 16), m) block(16, 16)
__global__ void k(const float* a, const float* f, float* o, int w, int h, int m) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0.0f;
    for (int i = 0; i < 9; ++i) s += a[(y + i) * w + x] * f[blockIdx.z * 9 + i];
    o[(blockIdx.z * h + y) * w + x] = s;
}"""
    found = propose("share_loads", text)
    names = [{*parse_program(p.text).values} for p in found]
    assert {"ITEMS_Y", "ITEMS_Z", "BLOCK_X", "BLOCK_Y", "BLOCKS"} in names


def test_more_items_where_a_loop_stands_around_them(propose):
    text = """
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 16), m) block(16, 16)
__global__ void k(const float* a, const float* f, float* o, int w, int h, int c, int m) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0.0f;
    for (int q = 0; q < c; ++q)
        for (int i = 0; i < 3; ++i) s += a[(q * (h + 2) + y + i) * w + x] * f[(blockIdx.z * c + q) * 3 + i];
    o[(blockIdx.z * h + y) * w + x] = s;
}"""
    found = [parse_program(p.text).values for p in propose("share_loads", text)]
    both = [(v["ITEMS_Y"], v["ITEMS_Z"]) for v in found if {"ITEMS_Y", "ITEMS_Z"} <= v.keys()]
    assert both == [(8, 8), (4, 8), (4, 4)]


def test_nothing_is_offered_where_nothing_is_shared(propose):
    text = PLANE.replace("a[y * w + x - 1] + a[y * w + x + 1] + a[y * w + x - w] + ", "")
    assert propose("share_loads", text) == []


def test_a_loop_of_a_function_that_is_called_says_nothing_of_the_work(propose):
    """It is no loop of the kernel's own text, and its rounds are not counted."""
    text = """
__device__ float sum(const float* a, int n) {
    float s = 0.0f;
    for (int k = 0; k < n; ++k) s += a[k];
    return s;
}
#pragma optiml launch k grid(cdiv(w, 16), h) block(16)
__global__ void k(const float* a, const float* f, float* o, int w, int h, int m) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < w) o[y * w + x] = sum(a + x * m, m) + sum(f + y * m, m);
}"""
    propose("share_loads", text)


LAYER = """
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 16), m) block(16, 16)
__global__ void k(const float* a, const float* f, float* o, int w, int h, int c, int m) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0.0f;
    for (int q = 0; q < c; ++q)
        for (int i = -1; i <= 1; ++i)
            for (int j = -1; j <= 1; ++j)
                if (x + j >= 0 && x + j < w && y + i >= 0 && y + i < h)
                    s += a[(q * h + y + i) * w + x + j] * f[(blockIdx.z * c + q) * 9 + i * 3 + j + 4];
    o[(blockIdx.z * h + y) * w + x] = s;
}"""


@pytest.mark.parametrize(("side", "stay"), [(64, True), (1024, False)])
def test_tests_of_borders_stay_where_many_threads_are_near_one(side, stay):
    (kernel,) = kernels(parse_program(LAYER), None)
    grid = (side // 16, side // 16, 32)
    sizes = {"w": side, "h": side, "c": 16, "m": 32}
    facts = LaunchFacts("k", 1, grid, (16, 16, 1), {}, sizes)
    sites = [s for s in ShareLoads().sites(replace(kernel, facts=facts)) if isinstance(s, Site)]
    found = {s.key: s for s in sites if "those at borders as well" in s.title}
    assert bool(found) is stay
    if stay:
        assert found["along x and z"].prior > found["along x"].prior > found["along x and y"].prior
        assert found["along x and z"].points[0] == {
            "ITEMS_X": 4, "ITEMS_Z": 4, "BLOCK_X": 16, "BLOCK_Y": 16, "BLOCKS": 3,
        }  # fmt: skip


def test_long_windows_are_taken_in_strips_and_by_several_blocks(propose):
    text = """
#pragma optiml launch k grid(cdiv(n, 128)) block(128)
__global__ void k(const float* a, const float* f, float* o, int n, int t) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0.0f;
    for (int k = 0; k < t; ++k) s += a[i + k] * f[k];
    o[i] = s;
}"""
    titles = {"n": [], "few": []}
    for name, n in (("n", 1 << 24), ("few", 1 << 12)):
        (kernel,) = kernels(parse_program(text), None)
        facts = LaunchFacts("k", 1, (n // 128, 1, 1), (128, 1, 1), {}, {"n": n, "t": 1000})
        sites = ShareLoads().sites(replace(kernel, facts=facts, chip="h200"))
        titles[name] = [s.title for s in sites if isinstance(s, Site)]
    whole = "take several items along x together, 16 rounds at a time"
    assert titles == {"n": [whole], "few": [f"{whole}, and share the rounds among blocks"]}


def test_all_loops_along_a_long_window_are_in_strips(propose):
    text = """
#pragma optiml launch k grid(cdiv(n, 128)) block(128)
__global__ void k(const float* a, const float* f, float* o, int n, int t) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float m = 0.0f, s = 0.0f;
    for (int k = 0; k < t; ++k) m += a[i + k];
    for (int k = 0; k < t; ++k) { float d = a[i + k] - m; s += d * f[k]; }
    o[i] = s;
}"""
    found = [p.text for p in propose("share_loads", text) if "at a time" in p.title]
    inside = {made.partition("#pragma unroll 1")[0].count("for (int k_first") for made in found}
    assert inside == {2}


ENLARGED = """
#pragma optiml launch k grid(cdiv(w * s, 16), cdiv(h * s, 16)) block(16, 16)
__global__ void k(const float* a, const float* f, const float* g, float* o, int w, int h, int s) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w * s || y >= h * s) return;
    int from = floorf((float)y / s);
    float t = 0.0f;
    for (int k = 0; k < 6; ++k)
        t += a[min(max(from + k - 2, 0), h - 1) * (w * s) + x] * f[k * (w * s) + x] * g[y * 6 + k];
    o[y * (w * s) + x] = t;
}"""


def _enlarged() -> list[Site]:
    (kernel,) = kernels(parse_program(ENLARGED), None)
    facts = LaunchFacts("k", 1, (128, 64, 1), (16, 16, 1), {}, {"w": 1024, "h": 512, "s": 2})
    rule = ShareLoads()
    found = rule.sites(rule.shaped(replace(kernel, facts=facts)))
    return [site for site in found if isinstance(site, Site)]


def test_rows_between_which_an_image_is_enlarged_are_shared(compiles):
    sites = {site.key: site for site in _enlarged()}
    assert sites.keys() == {"along y", "along x", "along x and y"}
    made = sites["along x and y"].apply()
    assert isinstance(made, Kernel)
    assert "a_row[k * 2 + (y_item / 2) * 2][x_item]" in made.program.text
    assert "#pragma optiml require h * s + s <= 16777216" in made.program.text
    assert "st.global.v4.f32" in compiles(made.program.text)


def test_what_lies_along_one_axis_alone_does_not_crowd_the_registers_of_both():
    # A window of 7 rows, and 6 weights a column that all rows have: 4 items along both axes.
    (both,) = (site for site in _enlarged() if site.key == "along x and y")
    assert both.prior > 0.6


def test_items_are_not_written_out_with_many_calls_of_long_functions(monkeypatch):
    text = """
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
__global__ void k(const float* a, float* out, int w, int h, float s) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 3 || y < 3 || x >= w - 3 || y >= h - 3) return;
    float sum = 0.0f;
    for (int j = -3; j <= 3; j++)
        for (int i = -3; i <= 3; i++) sum += sinf(s * i) * sinf(s * j) * a[(y + j) * w + x + i];
    out[y * w + x] = sum;
}
"""
    (kernel,) = kernels(parse_program(text), None)
    kernel = kernel.shaped(ShareLoads.before)
    assert long_calls(kernel) == 2 * 7 * 7
    assert all(isinstance(one, Site) for one in ShareLoads().sites(kernel))
    monkeypatch.setattr(share_loads, "_CALLS", 300)
    (why,) = ShareLoads().sites(kernel)
    assert "392 calls of long functions" in why.reason


@pytest.mark.parametrize(
    ("place", "alone"), [("(d * h + y) * w + x", True), ("(y + d) * w + x", False)]
)
def test_rounds_that_share_nothing_are_taken_one_at_a_time(place: str, alone: bool) -> None:
    text = """\
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
__global__ void k(const unsigned char* a, unsigned char* out, int w, int h, int t) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int s = 0;
    for (int d = 0; d < t; ++d) s = max(s, a[%s]);
    out[y * w + x] = s;
}
"""
    (kernel,) = kernels(parse_program(text % place), None)
    facts = LaunchFacts("k", 1, (32, 32, 1), (16, 16, 1), {}, {"w": 512, "h": 512, "t": 12})
    sites = [s for s in ShareLoads().sites(replace(kernel, facts=facts)) if isinstance(s, Site)]
    along = [s for s in sites if s.key == "along x"]
    assert [", where t is 12" not in s.title for s in along] == ([True] if alone else [])
    for site in along:
        text = site.apply().program.text  # type: ignore[union-attr]
        assert "for (int d = 0; d < t; ++d) {" in text


@pytest.mark.parametrize(("planes", "out"), [(200, False), (30, True)])
def test_rounds_that_take_more_than_registers_hold_are_not_written_out(planes: int, out: bool):
    text = """\
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
__global__ void k(const double* a, double* out, int w, int h, int d) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
    for (int z = 1; z < d - 1; z++) {
        int i = (z * h + y) * w + x;
        out[i] = a[i] + a[i - 1] + a[i + 1] + a[i - w] + a[i + w] + a[i - w * h] + a[i + w * h];
    }
}
"""
    (kernel,) = kernels(parse_program(text), None)
    facts = LaunchFacts("k", 1, (32, 32, 1), (16, 16, 1), {}, {"w": 512, "h": 512, "d": planes})
    kernel = replace(kernel, facts=facts).shaped(ShareLoads.before)
    sites = [site for site in ShareLoads().sites(kernel) if isinstance(site, Site)]
    assert sites
    assert {f", where d is {planes}" in site.title for site in sites} == {out}


@pytest.mark.parametrize(
    ("kind", "chip", "both"),
    [
        ("short", "h200", True),
        ("signed char", "h200", True),
        ("unsigned char", "h200", False),
        ("float", "h200", False),
        ("short", "a100", False),
    ],
)
def test_integers_in_pairs_are_an_idea_beside_those_one_at_a_time(
    kind: str, chip: str, *, both: bool
) -> None:
    text = PLANE.replace("float", kind).replace("a[y * w + x - 1] +", "max(a[y * w + x - 1],")
    text = text.replace("a[y * w + x + 1] +", "max(a[y * w + x + 1], max(")
    text = text.replace(" + a[y * w + x + w];", ", a[y * w + x + w])));")
    made = _along_x(text, chip)
    assert {*made} == {"along x", "along x, apart"} if both else {"along x"}
    paired = [key for key, one in made.items() if "pair_ending" in one]
    assert paired == (["along x"] if both else [])


def test_integers_one_at_a_time_are_no_idea_where_none_are_in_pairs() -> None:
    text = PLANE.replace("float", "short")
    assert {*_along_x(text, "h200")} == {"along x"}


def _along_x(text: str, chip: str) -> dict[str, str]:
    """What the sites along rows alone make of a kernel, by their keys; those that are refused not."""
    (kernel,) = kernels(parse_program(text), None)
    sites = [s for s in ShareLoads().sites(replace(kernel, chip=chip)) if isinstance(s, Site)]
    made = {s.key: s.apply() for s in sites if s.key in ("along x", "along x, apart")}
    return {key: one.program.text for key, one in made.items() if isinstance(one, Kernel)}


def test_rows_of_a_ring_that_go_around_by_elements_are_shared():
    """``% (w * h)`` of where a row begins is ``% h`` of the row."""
    text = """
#pragma optiml launch k grid(cdiv(w * h, 256)) block(256)
__global__ void k(const unsigned char* a, unsigned char* o, int w, int h) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= w * h) return;
    int x = i % w, row = i - x, left = (x + w - 1) % w, right = (x + 1) % w;
    int up = (row + w * h - w) % (w * h), down = (row + w) % (w * h);
    o[i] = a[left + up] + a[x + up] + a[right + up] + a[left + row] + a[right + row] + a[x + down];
}"""
    (kernel,) = kernels(parse_program(text), None)
    assert "down = ((rest + 1) % h * w)" in ShareLoads().shaped(kernel).program.text


MATCHED = """
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 8)) block(16, 8)
__global__ void k(const unsigned char* a, const unsigned char* b, int* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 9 || y < 2 || x >= w - 2 || y >= h - 2) return;
    int best = 1 << 30, at = 0;
    for (int d = 0; d < 7; ++d) {
        int s = 0;
        for (int i = -2; i <= 2; ++i)
            for (int j = -2; j <= 2; ++j)
                s += abs(a[(y + i) * w + x + j] - b[(y + i) * w + x + j - d]);
        if (s < best) { best = s; at = d; }
    }
    out[y * w + x] = at;
}"""


@pytest.mark.parametrize("kind", ["unsigned char", "float"])
def test_windows_below_each_other_have_sums_of_rows_in_common(kind, compiles):
    text = MATCHED if kind != "float" else MATCHED.replace("unsigned char", kind).replace(
        "int s =", "float s =").replace("int best", "float best").replace(", at = 0", "; int at = 0")  # fmt: skip
    found, _ = asked(ShareLoads(), text)
    made = {idea.title.partition(":")[0]: idea for idea in found}
    along = "take several items along y together"
    idea = made.pop(f"{along}, with sums of rows")
    assert (along in made) == (kind == "float")
    assert idea.arithmetic == (() if kind != "float" else (
        "the order of additions", "the rounding of products"))  # fmt: skip
    after = idea.make()
    assert isinstance(after, str)
    assert "s_part" in after
    compiles(after)
    if kind != "float":
        arrays = {n: Array("u1", ("w * h",), "bits") for n in "ab"}
        arrays["out"] = Array("i4", ("w * h",), "zeros")
        sizes = {"w": 77, "h": 39}, {"w": 13, "h": 6}
        assert end_of(text, after, arrays, *sizes) == "same"


FILTER = """\
#pragma optiml launch k grid(cdiv(n - m + 1, 256)) block(256)
__global__ void k(const short2* iq, const float2* code, float* o, int n, int m) {
    int lag = blockIdx.x * blockDim.x + threadIdx.x;
    if (lag > n - m) return;
    float re = 0, im = 0;
    ROUNDS
    o[lag] = re * re + im * im;
}
"""
TERMS = "re += p->x * c->x + p->y * c->y; im += p->y * c->x - p->x * c->y;"
BEGUN = "const short2* p = iq + lag; const float2* c = code;"
BY_PLACE = TERMS.replace("p->", "iq[lag + k].").replace("c->", "code[k].")
WALKS = (
    f"{BEGUN} for (int k = m; k > 0; --k, ++p, ++c) {{ {TERMS} }}",
    f"{BEGUN} for (int k = 0; k < m; ++k) {{ {TERMS} p++; c++; }}",
    f"for (int k = 0; k < m; ++k) {{ {BY_PLACE} }}",
)


@pytest.mark.parametrize("rounds", WALKS)
def test_a_long_filter_of_pairs_keeps_them_in_registers(rounds: str) -> None:
    """In each spelling, as members of elements or of what a pointer walks along."""
    text = FILTER.replace("ROUNDS", rounds)
    (kernel,) = kernels(parse_program(text), None)
    facts = LaunchFacts("k", 1, (15624, 1, 1), (256, 1, 1), {}, {"n": 4_000_000, "m": 512})
    sites = ShareLoads().sites(replace(kernel, facts=facts, chip="h200"))
    (site,) = (s for s in sites if isinstance(s, Site))
    assert site.key.startswith("strips")
    made = site.apply()
    assert isinstance(made, Kernel)
    shapes = {"iq": ("i2", "n", "2"), "code": ("m", "2"), "o": ("n",)}
    same(text, made, shapes, {"n": 403, "m": 37}, rounds=True)


def test_rows_are_shared_where_planes_that_share_nothing_are_free_as_well() -> None:
    """Items along both axes would be too many for a window of 11 x 11 to be written out."""
    text = """
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 16), m) block(16, 16)
__global__ void k(const float* a, float* o, int w, int h, int m) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    const float* p = a + blockIdx.z * (h + 10) * (w + 10);
    float s = 0.0f;
    for (int i = 0; i < 11; ++i)
        for (int j = 0; j < 11; ++j) s += (i + j) * p[(y + i) * (w + 10) + x + j];
    o[(blockIdx.z * h + y) * w + x] = s;
}"""
    (kernel,) = kernels(parse_program(text), None)
    rule = ShareLoads()
    found = [s for s in rule.sites(rule.shaped(kernel)) if isinstance(s, Site)]
    site = next(s for s in found if s.key.startswith("along y"))
    assert all("ITEMS_Z" not in point for point in site.points)
    sizes = {"w": 21, "h": 13, "m": 2}
    shapes = {"a": ("m", "h + 10", "w + 10"), "o": ("m", "h", "w")}
    same(text, site.apply(), shapes, sizes, dict(site.points[0]), rounds=True)


@pytest.mark.parametrize("axes", ["along y", "along x"])
@pytest.mark.parametrize(
    "test",
    [
        "(unsigned)r < (unsigned)h && (unsigned)c < (unsigned)w",
        "inside(r, h) && inside(c, w)",
    ],
)
def test_borders_whose_places_wrap_around_are_tested_at_both_ends(test: str, axes: str) -> None:
    text = f"""
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
__device__ bool inside(int i, int n) {{ return (unsigned)i < (unsigned)n; }}
__global__ void k(const float* a, float* o, int w, int h) {{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0.0f;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {{
            int r = y + 2 * (i - 1), c = x + 2 * (j - 1);
            if ({test}) s += (i + j) * a[r * w + c];
        }}
    o[y * w + x] = s;
}}"""
    (kernel,) = kernels(parse_program(text), None)
    rule = ShareLoads()
    found = [s for s in rule.sites(rule.shaped(kernel)) if isinstance(s, Site)]
    site = next(s for s in found if s.key.startswith(axes))
    for sizes in ({"w": 21, "h": 13}, {"w": 2, "h": 1}):
        same(
            text, site.apply(), {"a": ("h", "w"), "o": ("h", "w")}, sizes, dict(site.points[0]),
            rounds=True,
        )  # fmt: skip


def test_axes_along_which_items_are_vectors_only_alone_are_not_taken_together() -> None:
    """Of pixels of three words, whose places are known along each of both axes alone."""
    text = """
struct Pixel { float r, g, b; };
#pragma optiml launch k grid(cdiv(w - 4, 32), cdiv(h - 4, 8)) block(32, 8)
__global__ void k(const Pixel* a, const float* f, float* o, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w - 4 || y >= h - 4) return;
    float s = 0.0f;
    for (int j = 0; j < 5; ++j)
        for (int i = 0; i < 5; ++i)
            s += (a[(y + j) * w + x + i].r + a[(y + j) * w + x + i].g) * f[j * 5 + i];
    o[y * (w - 4) + x] = s;
}"""
    (kernel,) = kernels(parse_program(text), None)
    rule = ShareLoads()
    found = [*rule.sites(rule.shaped(kernel))]
    alone = [site for site in found if isinstance(site, Site)]
    assert [site.key for site in alone] == ["along y", "along x"]
    assert all(isinstance(site.apply(), Kernel) for site in alone)
    assert Refused("items are not neighbours in `o`", 11) in found


def test_rounds_that_a_flag_ends_are_shared():
    text = """
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, const float* p, int* met, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int ok = i + m <= n;
        for (int k = 0; ok && k < m; k++) if (x[i + k] != p[k]) ok = 0;
        met[i] = ok;
    }
}"""
    arrays = {"x": Array("f4", ("n",)), "p": Array("f4", ("m",)), "met": Array("i4", ("n",))}
    sizes = {"n": 700, "m": 8}, {"n": 5, "m": 8}
    stand = Stand(Made("one", text, arrays, *sizes))
    view = replace(view_of(text), find_facts=lambda: stand.facts(text))
    found = [*ShareLoads().propose(parse_program(text), view)]
    (made,) = [one.make() for one in found if isinstance(one, Idea) and "along x" in one.title]
    assert isinstance(made, str)
    assert end_of(text, made, arrays, *sizes) == "same"


@pytest.mark.parametrize(("far", "block"), [(1, (64, 4)), (4, (16, 16))])
def test_blocks_are_as_tall_as_windows_ask(far: int, block: tuple[int, int]) -> None:
    text = PLANE.replace("a[y * w + x - w]", f"a[(y - {far}) * w + x]").replace(
        "a[y * w + x + w];", f"a[(y + {far}) * w + x];"
    )
    text = text.replace(
        "y > 0 && x < w - 1 && y < h - 1", f"y >= {far} && x < w - 1 && y < h - {far}"
    )
    text = text.replace("cdiv(h, 16)) block(16, 16)", "cdiv(h, 4)) block(32, 4)")
    text = text.replace("cdiv(w, 16)", "cdiv(w, 32)")
    (kernel,) = kernels(parse_program(text), None)
    facts = LaunchFacts("k", 1, (128, 1024, 1), (32, 4, 1), {}, {"w": 4096, "h": 4096})
    sites = ShareLoads().sites(replace(kernel, facts=facts, chip="h200"))
    (rows,) = [s for s in sites if isinstance(s, Site) and s.key == "along x"]
    assert (rows.points[0]["BLOCK_X"], rows.points[0]["BLOCK_Y"]) == block
