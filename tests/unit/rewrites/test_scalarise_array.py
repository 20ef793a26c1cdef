"""Which loops of a thread's own elements are written out."""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.primitives.base import Kernel, Refused, kernels
from optiml_magic.kernels.primitives.expanded import all_expanded
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.proposers.rewrites.scalarise_array import ScalariseArray
from optiml_magic.source.program import parse_program
from tests.ideas import asked
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of

TEXT = """
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v[8];
    for (int j = 0; j < 8; j++) v[j] = a[j * n + i];
    #pragma unroll
    for (int j = 0; j < 8; j++) c[j * n + i] = v[7 - j];
    for (int r = 0; r < 2; r++)
        for (int q = 0; q < 3; q++) c[8 * n + 6 * i + 3 * r + q] = v[r + q];
}"""

HELD = "hold a thread's elements of c in registers"


def test_what_lies_in_memory_and_what_is_local(propose, compiles):
    alone = TEXT.replace("c[j * n + i] = v[7 - j]", "v[j] *= v[7 - j]")
    ideas, refused = asked(ScalariseArray(), alone)
    assert not refused
    assert [(idea.title, idea.prior) for idea in ideas] == [
        ("unroll the loops that index a local array", 0.4),
        (f"{HELD}, which the lanes of a warp bring and store together: BLOCK = 128", 0.82),
        (HELD, 0.78),
    ]
    (_, rows, *_, held) = propose("scalarise_array", alone)
    assert "BLOCK in {64, 128, 256}" in rows.text
    assert ".local" not in compiles(rows.text)
    assert ".local" not in compiles(held.text)
    assert len(asked(ScalariseArray(), TEXT)[0]) == 2  # others are stored to: not held


def test_loops_without_end_are_none():
    ideas, refused = asked(
        ScalariseArray(), TEXT.replace("< 8", "< n").replace("< 2", "< n").replace("< 3", "< n")
    )
    assert (ideas, refused) == ([], [])


def test_searches_come_to_all_places_and_their_arrays_lie_in_registers(propose, compiles):
    sorting = """
    for (int j = 1; j < 8; j++) {
        float key = v[j];
        int at = j - 1;
        while (at >= 0 && v[at] > key) {
            v[at + 1] = v[at];
            at--;
        }
        v[at + 1] = key;
    }
    for (int r = 0; r < 2; r++)"""
    text = TEXT.replace("\n    for (int r = 0; r < 2; r++)", sorting)
    assert ".local" in compiles(text)
    ideas, _ = asked(ScalariseArray(), text)
    assert [(idea.title, idea.arithmetic) for idea in ideas[:2]] == [
        ("sort v by a network of exchanges", ("which of two zeros comes first",)),
        ("look for a place in v with constant indices", ()),
    ]
    order, places, *_ = propose("scalarise_array", text)
    assert ".local" not in compiles(order.text)
    assert ".local" not in compiles(places.text)


MEDIAN = """
__device__ unsigned char median(unsigned char* v) {
    for (int i = 0; i < 5; i++) {
        int least = i;
        for (int j = i + 1; j < 9; j++) if (v[j] < v[least]) least = j;
        unsigned char t = v[least];
        v[least] = v[i];
        v[i] = t;
    }
    return v[4];
}
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const uchar2* a, uchar2* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned char p[9], q[9];
    int count = 0;
    for (int dy = 0; dy < 3; dy++) {
        for (int dx = -1; dx <= 1; dx++) {
            uchar2 e = make_uchar2(0, 0);
            if (i + dx >= 0 && i + dx < n) e = a[dy * n + i + dx];
            p[count] = e.x;
            q[count] = e.y;
            count++;
        }
    }
    out[i] = make_uchar2(median(p), median(q));
}"""


def test_the_middle_of_a_window_is_found_in_registers(compiles):
    text = all_expanded(parse_program(MEDIAN)).text
    assert ".local" in compiles(text)
    order = next(idea for idea in asked(ScalariseArray(), text)[0] if "network" in idea.title)
    assert (order.title, order.prior) == ("sort p, q by a network of exchanges", 0.92)
    made = order.make()
    assert ".local" not in compiles(made)
    arrays = {"a": Array("u1", ("3", "n", "2")), "out": Array("u1", ("n", "2"), "zeros")}
    assert end_of(MEDIAN, made, arrays, {"n": 70}, {"n": 33}) == "same"


EDITS = """
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const int* a, const int* b, int* out, int n, int la, int lb) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int row[33];
    for (int j = 0; j <= lb; j++) row[j] = j;
    for (int r = 1; r <= la; r++) {
        int last = row[0];
        row[0] = r;
        for (int j = 1; j <= lb; j++) {
            int own = row[j];
            int cost = a[i * la + r - 1] == b[i * lb + j - 1] ? 0 : 1;
            row[j] = min(min(row[j] + 1, row[j - 1] + 1), last + cost);
            last = own;
        }
    }
    out[i] = row[lb];
}"""
EDITED = {
    "a": Array("i4", ("n", "la"), "below n"), "b": Array("i4", ("n", "lb"), "below n"),
    "out": Array("i4", ("n",), "zeros"),
}  # fmt: skip


def _sized(text: str, scalars: dict[str, int | float]) -> list[Site]:
    facts = LaunchFacts("k", 1, (2, 1, 1), (64, 1, 1), {}, scalars)
    (kernel,) = kernels(parse_program(text), None)
    found = ScalariseArray().sites(replace(kernel, facts=facts, chip="h200"))
    return [one for one in found if isinstance(one, Site) and one.key == "sized"]


def test_rows_as_long_as_a_size_says_lie_in_registers(compiles):
    (site,) = _sized(EDITS, {"n": 70, "la": 200, "lb": 20})
    assert site.title == "walk through local arrays with constant indices, where lb is 20"
    made = site.apply()
    assert isinstance(made, Kernel)
    assert ".local" in compiles(EDITS)
    assert ".local" not in compiles(made.program.text)
    assert "#pragma optiml require lb == 20" in made.program.text
    end = end_of(EDITS, made.program.text, EDITED, {"n": 70, "la": 9, "lb": 20},
                 {"n": 3, "la": 20, "lb": 9})  # fmt: skip
    assert end == "narrowed"


def test_long_rows_and_sizes_that_change_stay():
    assert not _sized(EDITS, {"n": 70, "la": 9, "lb": 200})
    assert not _sized(EDITS.replace("j <= lb", "j <= a[i]"), {"n": 70, "la": 9, "lb": 20})
    moved = EDITS.replace("int row[33];", "int row[33]; lb = min(lb, 32);")
    sites = _sized(moved, {"n": 70, "la": 9, "lb": 20})
    assert all(isinstance(site.apply(), Refused) for site in sites)


FACTORS = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(float* a, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float* own = a + i * m * m;
    for (int k = 0; k < m; k++)
        for (int r = k + 1; r < m; r++) {
            own[r * m + k] *= own[k * m + k];
            for (int q = k + 1; q < m; q++) own[r * m + q] -= own[r * m + k] * own[k * m + q];
        }
}
"""


def test_matrices_as_large_as_a_size_says_lie_in_registers(compiles):
    facts = LaunchFacts("k", 1, (2, 1, 1), (64, 1, 1), {}, {"n": 70, "m": 4})
    (kernel,) = kernels(parse_program(FACTORS), None)
    rule = ScalariseArray()
    shaped = rule.shaped(replace(kernel, facts=facts, chip="h200"))
    sites = [one for one in rule.sites(shaped) if isinstance(one, Site)]
    first, second = (site.title for site in sites)
    assert first.endswith("which the lanes of a warp bring and store together, where m is 4")
    assert second == "hold a thread's elements of a in registers, where m is 4"
    arrays = {"a": Array("f4", ("m * m * n",))}
    for site in sites:
        made = site.apply()
        assert isinstance(made, Kernel)
        text = made.program.with_values(dict(site.points[0])).text
        assert ".local" not in compiles(text)
        sizes, others = {"n": 70, "m": 4}, {"n": 3, "m": 3}
        assert end_of(FACTORS, text, arrays, sizes, others, rounds=True) == "narrowed"


CELLS = """\
#pragma optiml launch k grid(cdiv(w, 32), cdiv(h, 4)) block(32, 4)
__global__ void k(const float* f, float* g, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float sum = 0.0f;
    for (int q = 0; q < 9; q++) sum += f[(y * w + (x + q) % w) * 9 + q];
    for (int q = 0; q < 9; q++) g[(y * w + x) * 9 + q] = sum * q;
}
"""


def test_cells_of_a_plane_are_stored_by_the_warps_of_its_rows(propose):
    rows = propose("scalarise_array", CELLS)[0].text
    assert "block(BLOCK_X, 1)" in rows
    assert "store_units<9>" in rows
    arrays = {"f": Array("f4", ("h", "w", "9")), "g": Array("f4", ("h", "w", "9"), "zeros")}
    for columns in (128, 64):
        after = parse_program(rows).with_values({"BLOCK_X": columns}).text
        assert end_of(CELLS, after, arrays, {"w": 97, "h": 5}, {"w": 3, "h": 1}) == "same"


def test_counters_of_a_thread_have_a_column_of_a_block_that_they_fit(compiles):
    text = """
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const unsigned char* a, int* c, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int count[64] = {0};
    for (int j = 0; j < m; j++) count[a[i * m + j] & 63]++;
    int most = 0;
    for (int q = 1; q < 64; q++) if (count[q] > count[most]) most = q;
    c[i] = most;
}"""
    title = "hold each thread's count in a column of shared memory"
    (idea,) = (i for i in asked(ScalariseArray(), text)[0] if i.title == title)
    made = idea.make()
    assert "__shared__ int count[64][128];" in made
    assert [str(launch.block[0]) for launch in parse_program(made).launches] == ["128"]
    arrays = {"a": Array("u1", ("n", "m")), "c": Array("i4", ("n",), "zeros")}
    assert end_of(text, made, arrays, {"n": 300, "m": 50}, {"n": 3, "m": 2}) == "same"
    compiles(made)


def test_a_row_that_each_round_updates_lies_in_registers(compiles):
    text = """
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, const float* w, float* c, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int q = 0; q < 12; q++) c[i * 12 + q] = 3.0f;
    for (int j = 0; j < m; j++)
        for (int q = 0; q < 12; q++) {
            float d = fabsf(a[i * m + j] - w[q]);
            if (d < c[i * 12 + q]) c[i * 12 + q] = d;
        }
}"""
    title = "hold the row that a thread updates in memory in registers"
    (idea,) = (i for i in asked(ScalariseArray(), text)[0] if i.title == title)
    made = idea.make()
    assert "float c_row[12];" in made
    assert made.count("#pragma unroll") == 3
    arrays = {"a": Array("f4", ("n", "m")), "w": Array("f4", ("12",)),
              "c": Array("f4", ("n", "12"), "zeros")}  # fmt: skip
    assert end_of(text, made, arrays, {"n": 70, "m": 5}, {"n": 3, "m": 2}) == "same"
    compiles(made)
    assert not [i for i in asked(ScalariseArray(), made)[0] if i.title == title]
    long = text.replace("q < 12", "q < 100").replace("i * 12", "i * 100")
    assert not [i for i in asked(ScalariseArray(), long)[0] if i.title == title]


METHODS = """
struct Body { float at, speed, mass, age, kind;
    __device__ float ahead(float t) const { return at + speed * t; }
    __device__ void put(float x, float v) { at = x; speed = v; age += 1.0f; }
};
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const Body* from, Body* to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = from[i].ahead(0.5f), v = from[i].ahead(2.0f);
    to[i].put(x, v);
}"""


def test_what_methods_store_to_elements_is_stored():
    ideas, _ = asked(ScalariseArray(), METHODS)
    assert ideas
    kind = "at:f4 speed:f4 mass:f4 age:f4 kind:f4"
    arrays = {"from": Array(kind, ("n",)), "to": Array(kind, ("n",))}
    for idea in ideas:
        after = idea.make()
        assert isinstance(after, str)
        assert end_of(METHODS, after, arrays, {"n": 150}, {"n": 64}) == "same"
