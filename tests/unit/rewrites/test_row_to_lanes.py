"""Rows that memory says the bounds of: as many lanes as their mean length keeps busy."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, kernels
from optiml_magic.kernels.primitives.lanes import Lanes
from optiml_magic.kernels.primitives.sizes import mean_rounds
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.proposers.rewrites.rounds_of_lanes import cut_evenly
from optiml_magic.proposers.rewrites.row_to_lanes import BLOCKS, COUNTS, RowToLanes
from optiml_magic.source.program import parse_program
from tests.ideas import asked
from tests.rewriting.offers import Offer
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made
from tests.unit.primitives.alike import end_of

TEXT = """\
#pragma optiml launch spmv grid(cdiv(rows, 64)) block(64)
__global__ void spmv(const int* starts, const int* columns, const float* values, const float* x,
                     float* y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    for (int k = starts[row]; k < starts[row + 1]; k++) y[row] += values[k] * x[columns[k]];
}
"""
ARRAYS = {
    "starts": Array("i4", ("rows + 1",), "starts nnz"),
    "columns": Array("i4", ("nnz",), "below cols"),
    "values": Array("f4", ("nnz",)),
    "x": Array("f4", ("cols",)),
    "y": Array("f4", ("rows",), "zeros"),
}


@pytest.mark.parametrize(("mean", "first"), [(3, 2), (18, 8), (70, 32)])
def test_lanes_by_the_mean_length(mean: int, first: int) -> None:
    sizes = {"rows": 64, "cols": 32, "nnz": 64 * mean}
    made = Made("one", TEXT, ARRAYS, sizes, sizes, inout=("y",), hidden=("cols", "nnz"))
    (kernel,) = kernels(parse_program(TEXT), Stand(made).facts(TEXT))
    (axis,) = kernel.reading.axes
    assert mean_rounds(kernel, axis) == mean
    rule = RowToLanes()
    site = next(iter(rule.sites(rule.shaped(kernel))))
    assert site.key.endswith("one by one")
    assert site.points[0] == {"LANES": first, "ROUNDS": 4}
    after = site.apply()
    assert "lanes_sum<LANES>(y_value_part)" in after.program.text


@pytest.mark.parametrize(
    ("update", "changes"),
    [("s += v", ("the order of additions",)), ("s = 0.5f * s + v", ("the order of additions",)),
     ("if (v > s) s = v", ())],
)  # fmt: skip
def test_what_lanes_hand_on_says_whether_it_rounds(update: str, changes: tuple[str, ...]) -> None:
    """Also where a loop is counted before anything else."""
    text = (
        "#pragma optiml launch k grid(cdiv(n, 64)) block(64)\n"
        "__global__ void k(const double* a, double* out, int n, int m) {\n"
        "    int r = blockIdx.x * blockDim.x + threadIdx.x;\n    if (r >= n) return;\n"
        "    double s = 0;\n    int j = 0;\n"
        f"    while (j < m) {{ double v = a[r * m + j]; {update}; out[r * m + j] = s; j += 1; }}\n}}\n"
    )
    (kernel,) = kernels(parse_program(text), None)
    rule = RowToLanes()
    found = [*rule.sites(rule.shaped(kernel))]
    assert found
    assert {site.arithmetic for site in found} == {changes}


def test_rows_that_count_in_elements_of_their_own_are_shared(propose, compiles):
    text = """\
#pragma optiml launch k grid(cdiv(h, 128)) block(128)
__global__ void k(const unsigned char* image, float* sums, int w, int h) {
    int y = blockIdx.x * blockDim.x + threadIdx.x;
    if (y >= h) return;
    for (int b = 0; b < 256; b++) sums[y * 256 + b] = 0;
    for (int x = 0; x < w; x++) sums[y * 256 + image[y * w + x]] += 0.5f;
}
"""
    found = propose("row_to_lanes", text)
    assert found
    for proposal in found:
        assert "atomicAdd(&sums[" in proposal.text
        assert proposal.arithmetic == ("the order of additions",)
    compiles(found[0].text)


def test_places_that_the_kernel_counts_in_64_bits_stay_so(propose):
    text = """\
#pragma optiml launch k grid(cdiv(rows, 128)) block(128)
__global__ void k(const float* a, float* out, int rows, int cols, int pitch) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    const float* row = a + (size_t)r * pitch;
    float s = 0.0f;
    for (int c = 0; c < cols; c++) s += row[c];
    out[r] = s;
}
"""
    found = propose("row_to_lanes", text)
    assert found
    assert all("&a[(size_t)pitch * r + c_first]" in one.text for one in found)


TAPS = """\
#pragma optiml launch taps grid(c) block(3, 3)
__global__ void taps(const float* x, const float* d, float* w, int c, int m, int n) {
    int k = blockIdx.x, i = threadIdx.y, j = threadIdx.x;
    float s = 0.0f;
    for (int r = 0; r < m; r++)
        for (int q = 0; q < n; q++) {
            int y = r + i - 1, z = q + j - 1;
            if (y >= 0 && y < m && z >= 0 && z < n) s += x[(k * m + y) * n + z] * d[(k * m + r) * n + q];
        }
    w[(k * 3 + i) * 3 + j] = s;
}
"""


def test_few_threads_of_a_block_have_no_neighbours_to_load_beside() -> None:
    arrays = {"x": Array("f4", ("c", "m", "n")), "d": Array("f4", ("c", "m", "n")),
              "w": Array("f4", ("c", "9"), "zeros")}  # fmt: skip
    sizes = {"c": 3, "m": 19, "n": 17}
    stand = Stand(Made("taps", TAPS, arrays, sizes, {"c": 2, "m": 1, "n": 5}))
    rule = RowToLanes()
    (kernel,) = kernels(parse_program(TAPS), stand.facts(TAPS))
    sites = [site for site in rule.sites(rule.shaped(kernel)) if isinstance(site, Site)]
    (made,) = [found for site in sites if isinstance(found := site.apply(), Kernel)]
    assert "grid(c * 9)" in made.program.text
    after = made.program.with_values({"THREADS": 64}).text
    found = stand.applied(Offer("row_to_lanes", "", after, rounds=True), TAPS)
    assert found.sound, f"{found.end}: {found.detail}"
    wider = TAPS.replace("block(3, 3)", "block(3, 9)").replace("3 + i) * 3", "9 + i) * 3")
    assert not [*rule.sites(rule.shaped(kernels(parse_program(wider), None)[0]))]


def test_lanes_add_to_neighbours_one_by_one() -> None:
    """By vectors each lane would add four elements away from the next."""
    text = """\
#pragma optiml launch add grid(cdiv(n, 64)) block(64)
__global__ void add(const int* ids, const float* g, float* w, int n, int m) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    for (int d = 0; d < m; d++) atomicAdd(&w[ids[t] * m + d], g[t * m + d]);
}
"""
    (kernel,) = kernels(parse_program(text), None)
    sites = [site for site in RowToLanes().sites(kernel) if isinstance(site, Site)]
    assert len(sites) == 2
    for site in sites:
        made = site.apply()
        assert isinstance(made, Kernel)
        assert "float4" not in made.program.text


PADDED = """\
#pragma optiml launch ell grid(cdiv(rows, 64)) block(64)
__global__ void ell(const int* columns, const float* values, const float* x, float* y, int rows, int most) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float dot = 0;
    for (int n = 0; n < most; n++) {
        int col = columns[row * most + n];
        if (col < 0) break;
        dot += values[row * most + n] * x[col];
    }
    y[row] = dot;
}
"""


@pytest.mark.parametrize(
    ("update", "changes"),
    [("dot += values[row * most + n] * x[col];", ("the order of additions",)),
     ("dot = fmaxf(dot, values[row * most + n]);", ())],
)  # fmt: skip
def test_rows_that_end_with_padding_are_shared(update: str, changes: tuple[str, ...]) -> None:
    text = PADDED.replace("dot += values[row * most + n] * x[col];", update)
    arrays = {"columns": Array("i4", ("rows", "most")), "values": Array("f4", ("rows", "most")),
              "x": Array("f4", ("17",)), "y": Array("f4", ("rows",), "zeros")}  # fmt: skip
    stand = Stand(Made("ell", text, arrays, {"rows": 33, "most": 40}, {"rows": 2, "most": 3}))
    rule = RowToLanes()
    (kernel,) = kernels(parse_program(text), stand.facts(text))
    sites = [site for site in rule.sites(rule.shaped(kernel)) if isinstance(site, Site)]
    assert {site.arithmetic for site in sites} == {changes}
    for site in sites:
        made = site.apply()
        assert isinstance(made, Kernel)
        assert "require size(columns) >= most * rows" in made.program.text
        found = stand.applied(Offer("row_to_lanes", "", made.program.text, bool(changes)), text)
        assert found.sound, f"{found.end}: {found.detail}"


def test_rows_whose_sum_ends_them_are_left_alone() -> None:
    text = PADDED.replace("col < 0", "dot > 9.0f")
    rule = RowToLanes()
    (found,) = rule.sites(rule.shaped(kernels(parse_program(text), None)[0]))
    assert isinstance(found, Refused)
    assert found.reason == "what ends the loop depends on rounds before"


SYMMETRIC = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0;
    for (int j = 0; j < n; ++j) s += (%s) * x[j];
    y[i] = s;
}
"""
HALVES = {
    "a packed half": ("i >= j ? a[i * (i + 1) / 2 + j] : a[j * (j + 1) / 2 + i]", True),
    "a half": ("i >= j ? a[i * n + j] : a[j * n + i]", True),
    "rows and columns": ("a[i * n + j] - a[j * n + i]", True),
    "rows": ("a[i * n + j]", False),
    "rows and an element": ("a[i * n + j] - a[i]", False),
    "rows and neighbours": ("a[i * n + j] - a[i + j]", False),
}


@pytest.mark.parametrize("name", HALVES)
def test_lanes_lie_beside_neighbours_that_load_beside_each_other(name: str) -> None:
    value, beside = HALVES[name]
    text = SYMMETRIC % value
    arrays = {
        "a": Array("f4", ("n", "n")),
        "x": Array("f4", ("n",)),
        "y": Array("f4", ("n",), "zeros"),
    }
    stand = Stand(Made("k", text, arrays, {"n": 70}, {"n": 3}))
    rule = RowToLanes()
    (kernel,) = kernels(parse_program(text), stand.facts(text))
    sites = [site for site in rule.sites(rule.shaped(kernel)) if isinstance(site, Site)]
    assert any(site.key.startswith("apart") for site in sites) == beside
    if not beside:
        return
    made = sites[0].apply()
    assert isinstance(made, Kernel)
    assert "apart_sum<LANES>" in made.program.text
    found = stand.applied(Offer("row_to_lanes", "", made.program.text, rounds=True), text)
    assert found.sound, f"{found.end}: {found.detail}"


BYTES = """\
#pragma optiml launch k grid(cdiv(w * h, 256)) block(256)
__global__ void k(const unsigned char* in, unsigned char* out, int w, int h, int r) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, y = i / w, x = i % w;
    if (y >= h) return;
    unsigned char best = 0;
    for (int dy = -r; dy <= r; dy++)
        for (int dx = -r; dx <= r; dx++) {
            int ny = y + dy, nx = x + dx;
            if (ny >= 0 && ny < h && nx >= 0 && nx < w)
                if (in[ny * w + nx] > best) best = in[ny * w + nx];
        }
    out[i] = best;
}
"""


@pytest.mark.parametrize(
    ("kind", "values", "offered"),
    [
        ("unsigned char", "unsigned char", True), ("int", "int", True), ("short", "char", True),
        ("unsigned char", "int", False), ("short", "unsigned short", False),
        ("unsigned short", "char", False),
    ],
)  # fmt: skip
def test_lanes_hand_on_extremes_of_bytes_that_hold_all_values(
    kind: str, values: str, offered: bool
) -> None:
    text, rule, titles, why = (
        BYTES.replace("unsigned char best", f"{kind} best"),
        RowToLanes(),
        [],
        "",
    )
    text = text.replace("const unsigned char*", f"const {values}*")
    facts = LaunchFacts("k", 1, (256, 1, 1), (256, 1, 1), {}, {"w": 256, "h": 256, "r": 3})
    kernel = replace(kernels(parse_program(text), None)[0], facts=facts)
    found = rule.sites(rule.shaped(kernel))
    with suppress(StopIteration):
        while True:
            try:
                one = next(found)
            except NotLegal as reason:
                why = reason.reason
                break
            titles.append(one.title if isinstance(one, Site) else "")
            why = one.reason if isinstance(one, Refused) else why
    assert any("share the loop" in title for title in titles) is offered
    assert why == ("" if offered else "`best` cuts off what it is the extreme of")


def test_blocks_follow_where_lanes_must_cut_those_that_there_were(propose):
    """A launch that counts elements, of which a thread has 32: its blocks stay whole."""
    text = """
#pragma optiml launch k grid(cdiv(n, 2048)) block(64)
__global__ void k(const float* a, float* o, int n) {
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * 32;
    if (i >= n) return;
    float m = 0.0f;
    for (int j = 0; j < 32; ++j) m = fmaxf(m, fabsf(a[i + j]));
    o[i / 32] = m;
}"""
    found = [parse_program(p.text).values for p in propose("row_to_lanes", text)]
    few = [values for values in found if values.get("LANES") == 2]
    assert few
    assert all(64 % (values["BLOCK"] // 2) == 0 for values in few)


@pytest.mark.parametrize(
    ("width", "counts"), [(48, {4, 8, 16, 32}), (56, {8, 16, 32}), (28, set())]
)
def test_lanes_that_no_block_has_room_for_are_not_begun_with(width: int, counts: set[int]) -> None:
    """Blocks that have to stay whole are cut where a block of so many lanes has whole parts."""
    text = f"""
#pragma optiml launch k grid(cdiv(n, {width * 32})) block({width})
__global__ void k(const float* a, float* o, int n) {{
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * 32;
    if (i >= n) return;
    float m = 0.0f;
    for (int j = 0; j < 32; ++j) m = fmaxf(m, fabsf(a[i + j]));
    o[i / 32] = m;
}}"""
    (kernel,) = kernels(parse_program(text), None)
    points = tuple({"LANES": n} for n in COUNTS)
    every = Site("", "", lambda: kernel, 0.9, Hypothesis("time", "lower"), points)
    lanes = Lanes("warp", 32, 256, COUNTS, BLOCKS)
    found = cut_evenly(kernel, every, lanes)
    if isinstance(found, Refused):
        assert not counts
        assert found.reason == "its blocks cannot be cut into groups of lanes"
        return
    assert {point["LANES"] for point in found.points} == counts
    assert found.prior < 0.5
    whole = replace(every, points=({"LANES": 32},))
    assert cut_evenly(kernel, whole, lanes) == whole


def test_short_rows_into_an_array_of_the_thread_are_no_idea() -> None:
    """Nothing is left to offer: too short for strips, and lanes would have parts of the array."""
    text = """
#pragma optiml launch k grid(cdiv(n, 128)) block(128)
__global__ void k(const float* a, const int* at, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float own[4];
    for (int j = 0; j < 4; ++j) own[j] = a[at[i * 4 + j]];
    o[i] = own[0] * own[3] - own[1] * own[2];
}"""
    (kernel,) = kernels(parse_program(text), None)
    rule = RowToLanes()
    found = [*rule.sites(rule.shaped(kernel))]
    assert Refused("`own` goes from round to round", 7) in found
    assert not any(isinstance(one, Site) and "share" in one.title for one in found)


#: A block adds up its products, which it stores as well, where there are any.
KEPT = """\
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, const float* y, float* out, float* z, int n) {
    __shared__ float part[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = 0;
    if (i < n) { v = x[i] * y[i]; z[i] = v; }
    part[t] = v;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s) part[t] += part[t + s];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}
"""


@pytest.mark.parametrize("n", [1, 255, 256, 3001])
def test_lanes_store_side_by_side_what_rounds_test(n: int) -> None:
    arrays = {name: Array("f4", ("n",)) for name in "xy"}
    arrays |= {"out": Array("f4", ("cdiv(n, 256)",), "zeros"), "z": Array("f4", ("n",), "zeros")}
    sizes, others, rule = {"n": n}, {"n": 513}, RowToLanes()
    facts = Stand(Made("one", KEPT, arrays, sizes, sizes)).facts(KEPT)
    (kernel,) = kernels(parse_program(KEPT), facts)
    found = [site for site in rule.sites(rule.shaped(kernel)) if isinstance(site, Site)]
    shared = [site for site in found if site.key.split()[0] in ("warp", "block")]
    assert shared
    for site in shared:
        made = site.apply()
        assert isinstance(made, Kernel)
        text = made.program.text
        assert "float4" not in text or "float4*>(&z[" in text
        assert end_of(KEPT, text, arrays, sizes, others, rounds=True) in ("same", "narrowed")


def test_rows_that_are_none_any_more_in_another_order() -> None:
    """Their sums go on from row to row by elements, each of which is a sum of its own then."""
    text = (
        "#pragma optiml launch k grid(cdiv(n, 48)) block(48)\n"
        "__global__ void k(const float* b, float* out, int n, int m) {\n"
        "    unsigned c = blockIdx.x * blockDim.x + threadIdx.x;\n    if (c < n) {\n"
        "        float h[8];\n        for (int e = 0; e < 8; ++e) h[e] = b[e];\n"
        "        for (int t = 0; t < m; ++t) {\n            float s = 0.0f;\n"
        "            for (int e = 0; e < 8; ++e) { h[e] += b[t * 8 + e]; }\n"
        "            for (int e = 0; e < 8; ++e) { s += h[e]; }\n            out[t * n + c] = s;\n"
        "        }\n    }\n}\n"
    )
    sizes = {"n": 5, "m": 1}
    arrays = {"b": Array("f4", ("m * 8 + 8",)), "out": Array("f4", ("m", "n"), "zeros")}
    (kernel,) = kernels(
        parse_program(text), Stand(Made("one", text, arrays, sizes, sizes)).facts(text)
    )
    rule = RowToLanes()
    with suppress(NotLegal):
        assert all(isinstance(site, Site | Refused) for site in rule.sites(rule.shaped(kernel)))


def test_paths_of_several_numbers_a_step_are_stored_by_vectors():
    text = """
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* a, float* path, int n, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], y = 0.0f;
    for (int t = 0; t < steps; t++) {
        y += x * x; x -= y;
        path[(i * steps + t) * 2] = x;
        path[(i * steps + t) * 2 + 1] = y;
    }
}"""
    titles = [idea.title for idea in asked(RowToLanes(), text)[0]]
    assert titles == ["each thread takes several vectors of its row at once over t: STRIP = 16"]
    near = text.replace("(i * steps + t) * 2", "(t * n + i) * 2")
    assert not asked(RowToLanes(), near)[0]
