"""The rules that put tiles into shared memory: where they see a site, and what they say of others."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, kernels
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.stage_tile import StageTile
from optiml_magic.proposers.rewrites.transpose_tile import TransposeTile
from optiml_magic.source.program import parse_program
from tests.ideas import asked
from tests.rewriting.offers import Offer, offers
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made
from tests.unit.primitives.alike import end_of
from tests.unit.primitives.shapes import PLANE

TURNED = """\
#pragma optiml launch k grid(cdiv(cols, 32), cdiv(rows, 8)) block(32, 8)
__global__ void k(const {kind}* a, {kind}* out, int rows, int cols) {{
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) {store};
}}
"""
ROW, COLUMN = "row * cols + col", "col * rows + row"
PAIRS = """\
#pragma optiml launch k grid(cdiv(n, 128)) block(128)
__global__ void k(const float4* p, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0.0f;
    for (int j = 0; j < n; ++j) s += fabsf(p[i].x - p[j].x) * p[j].w;
    out[i] = s;
}
"""


def found(rule: KernelRule, text: str) -> list[Site | Refused | str]:
    (kernel,) = kernels(parse_program(text), None)
    made: list[Site | Refused | str] = []
    try:
        made += rule.sites(kernel)
    except NotLegal as reason:
        made.append(reason.reason)
    return made


@pytest.mark.parametrize(
    ("kind", "pad", "side", "threads"),
    [("char", 4, 64, 128), ("float", 1, 64, 256), ("double2", 1, 32, 128)],
)
def test_a_copy_that_turns_is_a_site_whatever_its_elements_are(
    kind: str, pad: int, side: int, threads: int
) -> None:
    text = TURNED.format(kind=kind, store=f"out[{COLUMN}] = a[{ROW}]")
    (site,) = found(TransposeTile(), text)
    assert isinstance(site, Site)
    wanted = {"TILE_ROWS": side, "TILE_COLS": side, "THREADS": threads, "PAD": pad}
    assert site.points[0] == wanted
    assert site.hypothesis.metric.endswith("op_st.sum")
    assert not isinstance(site.apply(), Refused)


@pytest.mark.parametrize(
    ("rows", "cols", "wanted"),
    [
        (3, 4096, (4, 256, 128)),
        (3, 4095, (4, 128, 128)),
        (4096, 8, (256, 8, 128)),
        (4096, 16, (128, 16, 128)),
        (4096, 32, (64, 32, 128)),
        (24, 8, (32, 32, 128)),
        (4096, 4095, (64, 64, 256)),
        (4095, 4095, (64, 64, 256)),
    ],
)
def test_tiles_are_as_wide_as_what_they_turn(
    rows: int, cols: int, wanted: tuple[int, int, int]
) -> None:
    text = TURNED.format(kind="float", store=f"out[{COLUMN}] = a[{ROW}]")
    facts = LaunchFacts("k", 1, (1, 1, 1), (32, 8, 1), {}, {"rows": rows, "cols": cols})
    (one,) = kernels(parse_program(text), None)
    (site,) = TransposeTile().sites(replace(one, facts=facts))
    assert isinstance(site, Site)
    high, wide, threads = wanted
    found = {"TILE_ROWS": high, "TILE_COLS": wide, "THREADS": threads, "PAD": 1}
    assert site.points[0] == found
    made = site.apply()
    assert isinstance(made, Kernel)
    for point in site.points:
        assert made.program.with_values(point).values == point


def test_two_elements_are_no_side_of_a_tile() -> None:
    text = TURNED.format(kind="float", store=f"out[{COLUMN}] = a[{ROW}]")
    facts = LaunchFacts("k", 1, (1, 1, 1), (32, 8, 1), {}, {"rows": 2, "cols": 4096})
    (one,) = kernels(parse_program(text), None)
    (refused,) = TransposeTile().sites(replace(one, facts=facts))
    assert isinstance(refused, Refused)
    assert refused.reason == "one side of its tiles would have 2 elements"


def test_the_side_that_strode_is_the_one_that_is_promised_to_change() -> None:
    text = TURNED.format(kind="float", store=f"out[{ROW}] = a[{COLUMN}]")
    (site,) = found(TransposeTile(), text)
    assert isinstance(site, Site)
    assert site.hypothesis.metric.endswith("op_ld.sum")


@pytest.mark.parametrize(
    "store", [f"out[{ROW}] = a[{ROW}]", f"out[{COLUMN}] = a[{COLUMN}]", f"out[{COLUMN}] = row"]
)
def test_what_does_not_turn_is_passed_over(store: str) -> None:
    assert found(TransposeTile(), TURNED.format(kind="float", store=store)) == []


def test_what_all_threads_read_is_a_site_with_a_tile_for_a_block() -> None:
    (site,) = found(StageTile(), PAIRS)
    assert isinstance(site, Site)
    assert site.points == ({"TILE": 128}, {"TILE": 512})
    assert not isinstance(site.apply(), Refused)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("s +=", "if (j != i) s +=", "what all threads read alike they read in some rounds only"),
        ("++j) s", "++j) if (s > 9.0f) break; else s", "it is left early"),
        ("j < n;", "j < 2 * i;", "threads of a block make different numbers of rounds"),
        ("float s", "__syncthreads(); float s", "its threads wait for each other"),
    ],
)
def test_what_nearly_is_one_says_why_not(old: str, new: str, reason: str) -> None:
    (refused,) = found(StageTile(), PAIRS.replace(old, new))
    assert (refused.reason if isinstance(refused, Refused) else refused) == reason


def test_rows_of_their_own_are_no_business_of_tiles() -> None:
    rows = PAIRS.replace("p[j].x) * p[j].w", "p[i * n + j].x)")
    assert found(StageTile(), rows) == []


PRODUCT = """\
#pragma optiml launch k grid(cdiv(n, 16), cdiv(m, 16)) block(16, 16)
__global__ void k(const {kind}* a, const {kind}* b, {kind}* out, int m, int n, int d) {{
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m || j >= n) return;
    {kind} s = 0, t = 0, u = 0;
    for (int k = 0; k < d; ++k) {{ {kind} x = a[i * d + k], y = b[j * d + k]; {inside} }}
    out[i * n + j] = s / (t + u);
}}
"""


@pytest.mark.parametrize("kind", ["float", "double", "int"])
@pytest.mark.parametrize("inside", ["s += x * y;", "s += x * y; t += x * x; u += y * y;"])
def test_tiles_of_products_have_room(kind: str, inside: str) -> None:
    text = PRODUCT.format(kind=kind, inside=inside)
    (site,) = found(BlockedProduct(), text)
    assert isinstance(site, Site)
    made = site.apply()
    assert not isinstance(made, Refused)
    for point in site.points:
        assert made.program.with_values(point).values == point
    assert len(site.points) == 2


def products(m: int, n: int, d: int) -> list[Site]:
    (kernel,) = kernels(parse_program(PLANE % "for (int k = 0; k < d; ++k) s += a[k * m + i] * b[k * n + j];"), None)  # fmt: skip
    facts = LaunchFacts("k", 1, (-(-n // 16), -(-m // 16), 1), (16, 16, 1), {}, {"m": m, "n": n, "d": d})  # fmt: skip
    known = replace(kernel, facts=facts, chip="h200")
    return [s for s in BlockedProduct().sites(known) if isinstance(s, Site)]


def test_deep_products_of_few_tiles_share_their_rounds_first() -> None:
    split, alone = products(512, 512, 65536)
    assert split.prior > 0.9 > alone.prior
    assert split.points[0]["PARTS"] > 1
    assert split.points[0]["BM"] * split.points[0]["BN"] >= 64 * 128
    assert split.arithmetic == ("the order of additions",)
    assert isinstance(split.apply(), Kernel)
    for sizes in ((2048, 2048, 2048), (512, 512, 64)):
        (whole,) = products(*sizes)
        assert whole.prior == 0.94


LAYER = """\
#pragma optiml launch k grid(cdiv(n * m * h * w, 128)) block(128)
__global__ void k(const float* x, const float* f, float* out, int n, int c, int m, int h, int w, int r) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int total = n * m * h * w;
    if (t < total) {
        int col = t % w, row = t / w % h, filter = t / (w * h) % m, image = t / (w * h * m);
        float s = 0.0f;
        for (int q = 0; q < c; q++)
            for (int i = 0; i < r; i++)
                for (int j = 0; j < r; j++) {
                    int y = row + i - 1, z = col + j - 1;
                    if (y >= 0 && y < h && z >= 0 && z < w)
                        s += x[((image * c + q) * h + y) * w + z] * f[((filter * c + q) * r + i) * r + j];
                }
        out[t] = s;
    }
}
"""
SIZES = {"n": 2, "c": 3, "m": 5, "h": 9, "w": 34, "r": 3}


# Its launch says by the length of a filter how many outputs there are.
SIGNALS = """\
#pragma optiml launch k grid(cdiv(w - r + 1, 128), m, n) block(128)
__global__ void k(const float* x, const float* f, float* out, int n, int c, int m, int w, int r) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, filter = blockIdx.y, image = blockIdx.z;
    int length = w - r + 1;
    if (col >= length) return;
    float s = 0.0f;
    for (int q = 0; q < c; q++)
        for (int i = 0; i < r; i++) s += x[(image * c + q) * w + col + i] * f[(filter * c + q) * r + i];
    out[(image * m + filter) * length + col] = s;
}
"""


def layers(text: str = LAYER, **sizes: int) -> list[Site | Refused]:
    (kernel,) = kernels(parse_program(text), None)
    facts = LaunchFacts("k", 1, (11, 1, 1), (128, 1, 1), {}, SIZES | sizes)
    rule = BlockedProduct()
    return [*rule.sites(rule.shaped(replace(kernel, facts=facts)))]


def test_a_layer_of_one_index_whose_filters_are_as_large_as_a_size_says() -> None:
    (site,) = layers()
    assert isinstance(site, Site)
    assert site.title.endswith("the loop over round, where r is 3")
    made = site.apply()
    assert isinstance(made, Kernel)
    assert "#pragma optiml require r == 3" in made.program.text
    arrays = {
        "x": Array("f4", ("n", "c", "h", "w")), "f": Array("f4", ("m", "c", "r", "r")),
        "out": Array("f4", ("n", "m", "h", "w"), "zeros"),
    }  # fmt: skip
    point = {"BM": 16, "BN": 32, "BK": 8, "TM": 2, "TN": 2, "BLOCKS": 1}
    text = made.program.with_values(point).text
    assert end_of(LAYER, text, arrays, SIZES, SIZES | {"r": 1}, rounds=True) == "narrowed"


def test_a_layer_whose_launch_says_by_its_filters_how_many_outputs_there_are() -> None:
    (site,) = layers(SIGNALS)
    assert isinstance(site, Site)
    made = site.apply()
    assert isinstance(made, Kernel)
    arrays = {
        "x": Array("f4", ("n", "c", "w")), "f": Array("f4", ("m", "c", "r")),
        "out": Array("f4", ("n", "m", "w - r + 1"), "zeros"),
    }  # fmt: skip
    sizes = {name: size for name, size in SIZES.items() if name != "h"}
    point = {"BM": 16, "BN": 32, "BK": 32, "TM": 2, "TN": 2, "BLOCKS": 1}
    text = made.program.with_values(point).text
    assert end_of(SIGNALS, text, arrays, sizes, sizes | {"r": 1}, rounds=True) == "narrowed"


def test_a_layer_of_large_filters_says_why_it_is_no_product() -> None:
    found, *_ = layers(r=300)
    assert isinstance(found, Refused)
    assert found.reason == "the number of rounds of an inner loop is not a constant"


SMALL = """\
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* A, const float* B, float* C, int n, int m) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++) {
            float s = 0;
            for (int k = 0; k < m; k++) s += A[(t * m + i) * m + k] * B[(t * m + k) * m + j];
            C[(t * m + i) * m + j] = s;
        }
}
"""


@pytest.mark.parametrize(
    ("count", "side", "reason"),
    [
        (300, 4, "its products are too small for tiles"),
        (70_000, 16, "it has more products than a grid has blocks along z"),
        (300, 16, ""),
    ],
)
def test_many_small_products(count: int, side: int, reason: str) -> None:
    arrays = {name: Array("f4", ("n * m * m",)) for name in "ABC"}
    stand = Stand(Made("small", SMALL, arrays, {"n": count, "m": side}, {"n": 3, "m": 2}))
    made = offers(
        SMALL, SMALL, lambda: stand.facts(SMALL), Random(0), each=2, rules=("blocked_product",)
    )
    told = {o.reason for o in made if not isinstance(o, Offer)}
    assert told == ({reason} if reason else set())


PADDED = """\
#pragma optiml launch conv grid(cdiv(n * f * h * w, 64)) block(64)
__global__ void conv(const float* x, const float* k, float* y, int n, int c, int h, int w, int f) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * f * h * w) return;
    int ox = i % w, oy = i / w % h, of = i / (w * h) % f, on = i / (w * h * f);
    float s = 0.0f;
    for (int ic = 0; ic < c; ic++) {
        const float* plane = x + (on * c + ic) * h * w;
        for (int a = 0; a < 3; a++) {
            int iy = oy + a - 1;
            if (iy < 0 || iy >= h) continue;
            for (int b = 0; b < 3; b++) {
                int ix = ox + b - 1;
                if (ix < 0 || ix >= w) continue;
                s += plane[iy * w + ix] * k[((of * c + ic) * 3 + a) * 3 + b];
            }
        }
    }
    y[i] = s;
}
"""


def test_a_layer_whose_rows_are_tested_around_its_columns() -> None:
    arrays = {
        "x": Array("f4", ("n", "c", "h", "w")), "k": Array("f4", ("f", "c", "9")),
        "y": Array("f4", ("n", "f", "h", "w"), "zeros"),
    }  # fmt: skip
    sizes = {"n": 2, "c": 3, "h": 9, "w": 34, "f": 17}, {"n": 1, "c": 2, "h": 3, "w": 4, "f": 3}
    stand = Stand(Made("layer", PADDED, arrays, *sizes, exact=False))
    made = offers(
        PADDED, PADDED, lambda: stand.facts(PADDED), Random(0), each=2, rules=("blocked_product",)
    )
    found = [one for one in made if isinstance(one, Offer)]
    assert found
    for one in found:
        applied = stand.applied(one, PADDED)
        assert applied.sound, f"{applied.end}: {applied.detail}\n{one.text}"


PUSHED = """\
#pragma optiml launch k grid(cdiv(m, 16), cdiv(n, 16)) block(16, 16)
__global__ void k(const float* dy, const float* x, float* dw, int n, int m, int w) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r >= n || c >= m) return;
    float g = dy[r * m + c];
    for (int i = 0; i < w; i++) atomicAdd(&dw[c * w + i], g * x[r * w + i]);
}
"""


def test_a_product_that_threads_push_to_its_elements_has_tiles() -> None:
    ideas, _ = asked(BlockedProduct(), PUSHED)
    tiles = [idea for idea in ideas if "tiles in shared memory" in idea.title]
    assert tiles
    arrays = {
        "dy": Array("f4", ("n", "m"), "any"),
        "x": Array("f4", ("n", "w"), "any"),
        "dw": Array("f4", ("m", "w"), "any"),
    }
    sizes = {"n": 41, "m": 37, "w": 35}
    for idea in tiles:
        assert "the order of additions" in idea.arithmetic
        text = idea.make()
        assert isinstance(text, str)
        assert "__shared__" in text
        assert end_of(PUSHED, text, arrays, sizes, {"n": 1, "m": 1, "w": 1}, rounds=True) == "same"
