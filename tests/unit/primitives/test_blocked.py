"""Loops that combine rows with columns, computed by tiles."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.blocked import block_outputs
from optiml_magic.kernels.primitives.chunks import chunk, front
from optiml_magic.kernels.primitives.collapsed import collapse
from optiml_magic.kernels.primitives.exchanged import exchange_rows
from optiml_magic.kernels.primitives.spread import spread_rounds
from optiml_magic.kernels.primitives.tile_layout import Tile
from tests.present import sampled

from .running import same
from .shapes import PLANE, applied, kernel, refused

TILE = Tile(16, 32, 8, 4, 4, 1)
LOOP = "for (int k = 0; k < d; ++k) s += %s;"


def blocked(inside: str) -> Kernel | Refused:
    return block_outputs(kernel(PLANE % inside), 0, TILE)


PLACE = "(int)threadIdx.x {0} ({1}) + turn * THREADS {0} ({1})"
DEPTH, SIDE = f"({PLACE.format('%', 'BK / 4')}) * 4", PLACE.replace("({1})", "({1} / 4)")


@pytest.mark.parametrize(
    ("value", "along"),
    [
        ("a[i * d + k] * b[k * n + j]", (DEPTH, SIDE.format("/", "BN"))),
        ("a[k * m + i] * b[j * d + k]", (SIDE.format("/", "BM"), DEPTH)),
        ("fabsf(a[i * d + k] - b[j * d + k])", (DEPTH, DEPTH)),
        (
            "a[2 * (i * d + k)] * b[k * n + n - 1 - j]",
            tuple(f"(int)threadIdx.x / {b} + turn * THREADS / {b}" for b in ("BM", "BN")),
        ),
    ],
)
def test_neighbouring_threads_bring_neighbouring_elements(
    value: str, along: tuple[str, str]
) -> None:
    text = applied(blocked(LOOP % value)).program.text
    fetch = text[text.index("fetch = ") : text.index("put = ")]
    found = [line.split("tile_from + ", 1)[1].split(",")[0].removesuffix(" + element")
             for line in fetch.splitlines() if "const int deep" in line]  # fmt: skip
    assert tuple(dict.fromkeys(found)) == tuple(dict.fromkeys(along))


FORMS = (
    "a[i * d + k] * b[k * n + j]",
    "a[k * m + i] * b[j * d + k]",
    "(a[i * d + k] - b[j * d + k]) * (a[i * d + k] - b[j * d + k])",
    "a[i * d + k] * b[k * n + j] + 1.0f",
    "expf(-fabsf(a[i * d + k] - b[j * d + k]))",
    "fmaxf(a[k * m + i], b[k * n + j])",
)


@pytest.mark.parametrize(
    ("value", "sizes", "tile"),
    sampled(((value, sizes, tile) for value, (sizes, tile) in zip(
        FORMS, [((33, 35, 9), {}), ((36, 40, 12), {}), ((5, 68, 20), {"BK": 16}),
                ((37, 36, 11), {"TM": 2, "TN": 2, "BK": 32}), ((32, 32, 16), {"BN": 64, "BK": 16}),
                ((36, 33, 7), {"BM": 64, "BK": 16})], strict=True)), 3),
)  # fmt: skip
def test_products_of_any_kind_and_size_are_right(
    value: str, sizes: tuple[int, int, int], tile: dict[str, int]
) -> None:
    text = PLANE % (LOOP % value)
    m, n, d = sizes
    a, b = (
        (("d", "m") if "a[k" in value else ("m", "d")),
        (("d", "n") if "b[k" in value else ("n", "d")),
    )
    known = {"m": m, "n": n, "d": d}
    same(
        text, block_outputs(kernel(text), 0, TILE), {"a": a, "b": b, "out": ("m", "n")}, known, tile
    )


@pytest.mark.parametrize(
    ("update", "start"),
    sampled([("s = fmaxf(s, {0})", "-1.0f"), ("s *= {0}", "1.0f")], 2),
)
def test_what_is_not_added_begins_with_what_changes_nothing(update: str, start: str) -> None:
    text = (PLANE % f"for (int k = 0; k < d; ++k) {update};").replace("s = 0.0f", f"s = {start}")
    text = text.replace("{0}", "(a[i * d + k] + b[j * d + k])")
    shapes = {"a": ("m", "d"), "b": ("n", "d"), "out": ("m", "n")}
    same(text, block_outputs(kernel(text), 0, TILE), shapes, {"m": 6, "n": 34, "d": 5})


@pytest.mark.parametrize(
    "body",
    [
        "if (a[i * d + k] <= b[j * d + k]) s++;",
        "s += a[i * d + k] * b[j * d + k]; if (a[i * d + k] >= b[j * d + k]) s--;",
    ],
)
def test_what_is_counted_counts_no_rounds_behind_the_last(body: str) -> None:
    text = PLANE % f"for (int k = 0; k < d; ++k) {{ {body} }}"
    shapes = {"a": ("m", "d"), "b": ("n", "d"), "out": ("m", "n")}
    same(text, block_outputs(kernel(text), 0, TILE), shapes, {"m": 6, "n": 34, "d": 5})


CENTRED = """\
#pragma optiml launch k grid(cdiv(m, 16), cdiv(n, 16)) block(16, 16)
__global__ void k(const float* a, const float* b, const float* u, const float* v, const float* w,
                  const float* t, float* out, int m, int n, int d, int lim) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= m || j >= n) return;
    const float mean = u[i], half = 0.5f * t[0];
    float s = 0.0f, most = -1.0f;
    for (int k = 0; k < d; ++k) {
        float x = (a[i * d + k] - mean) * w[k] * half, y = b[j * d + k] - v[j] + (k < lim ? 1 : 0);
        if (x > y) s += x * y;
        if (x * y > most) most = x * y;
    }
    out[i * n + j] = s + most;
}
"""


def test_what_belongs_to_a_row_a_column_or_a_round_alone_is_had_as_well() -> None:
    found = block_outputs(kernel(CENTRED), 0, TILE)
    text = applied(found).program.text
    assert "mean_own[own_row]" in text
    assert "v_own[own_col]" in text
    assert "const float w_own = tile_from + deep < d ? w[(tile_from + deep)]" in text
    assert "const int k = tile_from + deep;" in text
    shapes = {"a": ("m", "d"), "b": ("n", "d"), "u": ("m",), "v": ("n",), "w": ("d",), "t": ("1",),
              "out": ("m", "n")}  # fmt: skip
    same(CENTRED, found, shapes, {"m": 35, "n": 34, "d": 11, "lim": 4})


def test_tiles_that_a_block_has_no_room_for_are_no_values_of_it() -> None:
    program = applied(blocked(LOOP % "a[i * d + k] * b[k * n + j]")).program
    points = list(program.legal_values())
    bytes_ = [8 * p["BK"] * (p["BM"] + 4 + p["BN"] + 4) for p in points]
    assert 40 * 1024 < max(bytes_) <= 48 * 1024


def test_a_flat_index_is_cut_into_rows_and_columns() -> None:
    text = (
        "#pragma optiml launch k grid(cdiv(m * n, 256)) block(256)\n"
        "__global__ void k(const float* a, const float* b, float* out, int m, int n, int d) {\n"
        "    int t = blockIdx.x * blockDim.x + threadIdx.x; if (t >= m * n) return;\n"
        "    int i = t / n, j = t % n; float s = 0.0f;\n"
        "    for (int k = 0; k < d; ++k) s += a[i * d + k] * b[k * n + j];\n    out[t] = s;\n}\n"
    )
    found = applied(block_outputs(kernel(text), 0, TILE)).program.text
    assert "grid(cdiv(n, BN), cdiv(m, BM))" in found
    assert "if (out_col >= n) continue;" in found


def test_indices_with_names_are_not_asked_for_again() -> None:
    body = "{ int at = i * d + k; const int to = at - i * d; s += a[at] * b[to * n + j]; }"
    found = applied(blocked(f"for (int k = 0; k < d; ++k) {body}")).program.text
    assert "sum_tile" not in found
    assert "s_tile[own_row][own_col] += a_now[own_row] * b_now[own_col];" in found
    assert "int to" not in found


@pytest.mark.parametrize(
    ("inside", "reason"),
    [
        (LOOP % "a[i * d + k] * a[i * d + k]", "it combines no rows with columns"),
        (LOOP % "a[i * d + k] * b[i * n + j] * b[k * n + j]", "a load"),
        ("for (int k = 1; k < d; ++k) s += a[i * d + k] * b[k * n + j] * k;",
         "a round asks for its number"),
        ("for (int k = 0; k < d; ++k) if (a[i * d + k] > 0) s += a[i * d + k] * b[k * n + j];",
         "a guard is not a comparison of whole numbers"),
        ("float f = 1; for (int k = 0; k < d; ++k) { s += f * a[i * d + k] * b[k * n + j]; } f = 2;",
         "its rounds ask for `f`"),
        (LOOP.replace("s += %s", "if (%s <= s) s = %s") % (("a[i * d + k] + b[k * n + j]",) * 2),
         "which of equals"),
        ("for (int k = 0; k < d; ++k) { s += a[i * d + k] * b[k * n + j]; if (s > 9) break; }",
         ""),
        ("for (int q = 0; q < 2; ++q) for (int k = 0; k < d; ++k) s += a[i * d + k] * b[k * n + j];",
         ""),
    ],
)  # fmt: skip
def test_what_is_no_such_product_is_refused(inside: str, reason: str) -> None:
    assert refused(blocked(inside))[0].startswith(reason)


def test_outputs_that_no_guard_bounds_are_refused() -> None:
    text = (PLANE % (LOOP % "a[i * d + k] * b[k * n + j]")).replace(
        "if (i >= m || j >= n)", "if (0)"
    )
    assert "do not bound the outputs" in refused(block_outputs(kernel(text), 0, TILE))[0]


def test_a_kernel_that_changes_a_parameter_is_refused() -> None:
    text = PLANE % ("d /= 2; " + LOOP % "a[i * d + k] * b[k * n + j]")
    assert refused(block_outputs(kernel(text), 0, TILE))[0] == "it changes its parameter `d`"


LAYER = """\
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 4), images * filters) block(16, 4)
__global__ void k(const float* x, const float* f, float* out, int images, int channels,
                  int filters, int h, int w) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    int image = blockIdx.z / filters, filter = blockIdx.z % filters;
    if (col >= w || row >= h) return;
    float s = 0.0f;
    for (int c = 0; c < channels; c++)
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 2; j++)
                s += x[((image * channels + c) * (h + 2) + row + i) * (w + 1) + col + j]
                     * f[((filter * channels + c) * 3 + i) * 2 + j];
        }
    out[((image * filters + filter) * h + row) * w + col] = s;
}
"""


@pytest.mark.parametrize(
    ("body", "tested"),
    [
        ("if (k % 3 != 1) s += a[i * d + k] * b[j * d + k];", False),
        ("int q = k % 3; if (q < 2 && q > 0) s += a[i * d + k] * b[j * d + k];", False),
        ("if (i + k % 3 < m) s += a[i * d + k] * b[j * d + k];", False),
        ("if (k % 3 != 1) s += a[i * d + k] * b[j * d + k] + 1.0f;", True),
        ("if (i + k % 3 < m) s += fabsf(a[i * d + k] - b[j * d + k]);", True),
        ("if (k % 3 != 1) { s += a[i * d + k] * b[j * d + k]; s++; }", True),
    ],
)
def test_rounds_that_are_left_out_add_nothing(body: str, tested: bool) -> None:
    text = PLANE % f"for (int k = 0; k < d; ++k) {{ {body} }}"
    made = applied(block_outputs(kernel(text), 0, Tile(16, 32, 32, 2, 2, 1)))
    rounds = made.program.text.partition("deep < BK; ++deep")[2]
    assert (" % 3" in rounds.partition("put(")[0]) == tested
    shapes = {"a": ("m", "d"), "b": ("n", "d"), "out": ("m", "n")}
    same(text, made, shapes, {"m": 19, "n": 34, "d": 40})


def test_a_layer_is_a_product_of_filters_with_what_lies_beside_each_other() -> None:
    one = applied(exchange_rows(applied(collapse(kernel(LAYER), 0))))
    found = applied(block_outputs(one, 0, TILE))
    text = found.program.text
    assert "grid(cdiv(w, BN), cdiv(filters, BM), images * h)" in text
    assert "f[channels * own_row * 6 + deep]" in text
    assert "x[own_col + x_from + x_steps_now]" in text
    assert "+ ((deep / 2) % 3) * w + " in text[: text.index("fetch = ")]
    shapes = {"x": ("images", "channels", "h + 2", "w + 1"), "f": ("filters", "channels", "3", "2"),
              "out": ("images", "filters", "h", "w")}  # fmt: skip
    sizes = {"images": 2, "channels": 3, "filters": 5, "h": 3, "w": 34}
    same(LAYER, found, shapes, sizes)


@pytest.mark.slow
@pytest.mark.parametrize(
    "inner",
    [
        "if (y >= 0 && y < h && z >= 0 && z < w) s += %s;",
        "if (!(y < 0 || h <= y) && z >= 0 && z < w) s += %s;",
        "if (y - 0 >= 0 && y < h && z < w) if (z > -1) s += %s;",
    ],
)
def test_a_layer_with_a_border_tests_every_element_of_a_vector_in_its_own_round(inner: str) -> None:
    element = ("x[((image * channels + c) * h + y) * w + z] "
               "* f[((filter * channels + c) * 3 + i) * 2 + j]")  # fmt: skip
    start = LAYER.index("                s += x")
    text = LAYER[:start] + (
        f"            {{ int y = row + i - 1, z = col + j - 1;\n {inner % element} }}\n        }}\n"
        "    out[((image * filters + filter) * h + row) * w + col] = s;\n}\n"
    )
    one = applied(exchange_rows(applied(collapse(kernel(text), 0))))
    found = applied(block_outputs(one, 0, TILE))
    fetch = found.program.text.partition("fetch = ")[2].partition("};\n    const auto put")[0]
    assert "deep /" not in fetch
    assert "deep %" not in fetch
    shapes = {"x": ("images", "channels", "h", "w"), "f": ("filters", "channels", "3", "2"),
              "out": ("images", "filters", "h", "w")}  # fmt: skip
    same(text, found, shapes, {"images": 2, "channels": 4, "filters": 5, "h": 3, "w": 34})


def test_loops_that_are_one_keep_the_types_of_their_counters() -> None:
    text = PLANE % (
        "for (unsigned k = 0; k < 3; ++k) for (unsigned l = 0; l < 2; ++l)"
        " if (i + k - 1 < m) s += a[(i + k - 1) * d] * b[j] * ((l - 1) / 2 % 7);"
    )
    shapes = {"a": ("m", "d"), "b": ("d", "n"), "out": ("m", "n")}
    same(text, collapse(kernel(text), 0), shapes, {"m": 9, "n": 5, "d": 2})


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("i < 3", "i < c", "the number of rounds of an inner loop is not a constant"),
        ("for (int i = 0", "s += 1; for (int i = 0", "no loop alone is inside of it"),
        ("int j = 0", "int j = 1", "a loop does not count from 0 in its head"),
    ],
)
def test_loops_that_are_not_one_stay(old: str, new: str, reason: str) -> None:
    text = LAYER.replace(
        "for (int c = 0; c < channels; c++)\n", "for (int c = 0; c < channels; c++) {\n"
    )
    text = text.replace("        }\n    out", "        } }\n    out").replace(old, new)
    assert refused(collapse(kernel(text), 0))[0] == reason


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("row >= h", "row > h", "its launch and its guards do not bound the outputs alike"),
        ("blockIdx.z % filters", "blockIdx.z % channels",
         "its threads do not take their index apart in one way"),
        ("float s = 0.0f", "float s = gridDim.z", "its blocks are counted"),
        ("images * filters)", "images)",
         "the index has more values, or fewer, than its digits"),
    ],
)  # fmt: skip
def test_blocks_that_are_not_numbered_by_digits_keep_their_rows(
    old: str, new: str, reason: str
) -> None:
    assert refused(exchange_rows(kernel(LAYER.replace(old, new))))[0] == reason


@pytest.mark.parametrize("number", ["int z = blockIdx.z;", "unsigned z = blockIdx.z;"])
def test_a_number_that_is_taken_apart_may_be_asked_for_whole(number: str) -> None:
    """As one of its own type, below 0 where that is signed."""
    text = LAYER.replace("blockIdx.z %", "z %").replace("blockIdx.z /", "z /")
    start = text.index("    int ", text.index("{"))
    text = f"{text[:start]}    {number}\n{text[start:]}"
    text = text.replace("float s = 0.0f", "float s = z - 4 < 0 ? 1.0f : 0.5f")
    found = applied(exchange_rows(applied(collapse(kernel(text), 0))))
    shapes = {"x": ("images", "channels", "h + 2", "w + 1"), "f": ("filters", "channels", "3", "2"),
              "out": ("images", "filters", "h", "w")}  # fmt: skip
    same(text, found, shapes, {"images": 2, "channels": 3, "filters": 5, "h": 3, "w": 34})


SOLID = """#pragma optiml launch solid grid(cdiv(w, 32), cdiv(h - r + 1, 4), {blocks}) block(32, 4)
__global__ void solid(const float* x, const float* f, float* y, int n, int m, int d, int h, int w,
                      int r) {{
    int high = h - r + 1, deep = d - r + 1;
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    {digits}
    if (i >= high || j >= w) return;
    float s = 0.0f;
    for (int a = 0; a < r; ++a)
        s += x[((image * d + z + a) * h + i + a) * w + j] * f[filter * r + a];
    y[(((image * m + filter) * deep + z) * high + i) * w + j] = s;
}}
"""


@pytest.mark.parametrize(
    ("blocks", "digits", "at"),
    [
        ("n * m * (d - r + 1)",
         "int z = blockIdx.z % deep, filter = blockIdx.z / deep % m, image = blockIdx.z / deep / m;", 1),
        ("n * m * (d - r + 1)",
         "int z = blockIdx.z / n % deep, filter = blockIdx.z / (n * deep), image = blockIdx.z % n;", 2),
        ("m * (d - r + 1)",
         "int t = blockIdx.z; int z = t % deep, filter = t / deep, image = n - 1;", 1),
        ("(d - r + 1) * m * n",
         "int z = blockIdx.z / (m * n), filter = blockIdx.z % m, image = blockIdx.z / m % n;", 0),
    ],
)  # fmt: skip
def test_any_digit_of_a_block_becomes_a_row(blocks: str, digits: str, at: int) -> None:
    text = SOLID.format(blocks=blocks, digits=digits)
    found = applied(exchange_rows(kernel(text), at))
    made = applied(block_outputs(found, 0, TILE))
    assert "cdiv(m, BM)" in made.program.text
    shapes = {"x": ("n", "d", "h", "w"), "f": ("m", "r"),
              "y": ("n", "m", "d - r + 1", "h - r + 1", "w")}  # fmt: skip
    sizes = {"n": 2, "m": 5, "d": 4, "h": 3, "w": 37, "r": 2}
    same(text, found, shapes, sizes)
    same(text, made, shapes, sizes)
    assert refused(exchange_rows(kernel(text), 3))[0] == "the number of a block has fewer digits"


def test_a_counter_that_was_cut_by_hand_is_one_again() -> None:
    cut = "for (int t = 0; t < d / 8; ++t) for (int k = 0; k < 8; ++k) s += "
    one = applied(
        collapse(kernel(PLANE % f"{cut}a[i * d + t * 8 + k] * b[(t * 8 + k) * n + j];"), 0)
    )
    text = applied(block_outputs(one, 0, TILE)).program.text
    assert "a[own_row * d + deep]" in text
    assert "b[deep * n + own_col]" in text


ROWS_OF = """\
#pragma optiml launch k grid(cdiv(m, 64)) block(64)
__global__ void k(const float* a, const float* b, float* out, int m, int n, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m) return;
    for (int j = 0; j < n; ++j) {
        if (j == 3) continue;
        float s = 0.0f;
        for (int k = 0; k < d; ++k) s += a[i * d + k] * b[k * n + j];
        out[i * n + j] = s;
    }
}
"""


def test_a_thread_that_computes_a_row_shares_it_with_others() -> None:
    one = applied(spread_rounds(kernel(ROWS_OF), 0))
    assert "grid(cdiv(m, 64), n) block(64)" in one.program.text
    assert "const int j = blockIdx.y;" in one.program.text
    found = block_outputs(one, 0, TILE)
    assert "grid(cdiv(n, BN), cdiv(m, BM))" in applied(found).program.text
    shapes = {"a": ("m", "d"), "b": ("d", "n"), "out": ("m", "n")}
    same(ROWS_OF, found, shapes, {"m": 19, "n": 34, "d": 9})


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("out[i * n + j] = s", "out[i * n] += s", "two rounds may store to one element"),
        ("if (j == 3) continue", "if (j == 3) return", "the loop does not count from 0"),
        ("    for (int j", "    out[i * n] = 1.0f;\n    for (int j",
         "what is around the loop meets what it stores"),
        ("float s = 0.0f", "float s = blockIdx.y + blockIdx.z", "no axis of its launch is free"),
        ("int j = 0", "int j = i", "the loop does not count from 0 in its head"),
    ],
)  # fmt: skip
def test_rounds_that_meet_stay_with_their_thread(old: str, new: str, reason: str) -> None:
    assert refused(spread_rounds(kernel(ROWS_OF.replace(old, new)), 0))[0].startswith(reason)


@pytest.mark.parametrize(("d", "parts"), sampled([(70, 4), (5, 8), (3, 2)], 2))
def test_blocks_share_the_rounds_of_a_product(d: int, parts: int) -> None:
    text = PLANE % (LOOP % "a[k * m + i] * (b[k * n + j] - a[k])")
    made = block_outputs(front(applied(chunk(kernel(text), 0, 4, (1, 2, 4, 8)))), 0, TILE)
    shapes = {"a": ("d", "m"), "b": ("d", "n"), "out": ("m", "n")}
    same(text, made, shapes, {"m": 37, "n": 36, "d": d}, {"PARTS": parts}, rounds=True)


BATCHES = """\
#pragma optiml launch k grid(cdiv(n, 16), cdiv(n, 16), 4) block(16, 16)
__global__ void k(const float* a, float* out, int n, int d) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || j >= n) return;
    const float* own = a + (size_t)(blockIdx.z / 2) * n * d;
    float s = 0.0f;
    for (int k = 0; k < d; ++k) s += own[i * d + k] * own[j * d + k];
    out[((size_t)blockIdx.z * n + i) * n + j] = s;
}
"""


def test_both_operands_of_one_array_begin_where_their_batch_does_in_64_bits() -> None:
    made = applied(block_outputs(kernel(BATCHES), 0, TILE))
    assert made.program.text.count("const auto a0_from = (size_t)") == 1
    assert made.program.text.count("const auto a1_from = (size_t)") == 1
    assert "out[(size_t)blockIdx.z * n * n" in made.program.text
    same(BATCHES, made, {"a": ("2", "n", "d"), "out": ("4", "n", "n")}, {"n": 21, "d": 6})


def test_bytes_come_four_at_a_time() -> None:
    text = (PLANE % (LOOP % "a[i * d + k] * b[k * n + j]")).replace("const float*", "const char*")
    text = text.replace("float* out", "int* out").replace("float s = 0.0f", "int s = 0")
    made = block_outputs(kernel(text), 0, TILE)
    assert "(unsigned int)0" in applied(made).program.text
    shapes = {"a": ("i1", "m", "d"), "b": ("i1", "d", "n"), "out": ("i4", "m", "n")}
    same(text, made, shapes, {"m": 20, "n": 36, "d": 24})


@pytest.mark.parametrize(
    ("stores", "at_once"),
    [
        ("out[i * n + j] = s; out[i * n + j] = out[i * n + j] * s + 1.0f;", True),
        ("if (s > 0.0f) out[i * n + j] = s; out[i * n + j] = out[i * n + j] + 1.0f;", False),
        ("if (d > 2) out[i * n + j] = s; else out[i * n + j] = out[i * n + j] + s;", True),
        ("if (s > 0.0f && d > 2) out[i * n + j] = s; else out[i * n + j] += s; out[i * n + j] *= 2.0f;", False),
        ("float t = out[i * n + j]; out[i * n + j] = s + t; out[i * n + j] = t * s;", True),
    ],
)  # fmt: skip
def test_an_output_that_is_stored_and_asked_for_again(stores: str, at_once: bool) -> None:
    text = (PLANE % (LOOP % "a[i * d + k] * b[k * n + j]")).replace("out[i * n + j] = s;", stores)
    made = block_outputs(kernel(text), 0, TILE)
    assert ("out_items[" in applied(made).program.text) == at_once
    shapes = {"a": ("m", "d"), "b": ("d", "n"), "out": ("m", "n")}
    same(text, made, shapes, {"m": 19, "n": 35, "d": 7}, rounds=True)


@pytest.mark.parametrize("width", ["3", "n / w"])
def test_columns_that_are_parted_to_be_stored_are_columns(width: str) -> None:
    text = (PLANE % (LOOP % "a[i * d + k] * b[j * d + k]")).replace(
        "out[i * n + j]", f"out[(j / ({width}) * m + i) * ({width}) + j % ({width})]"
    )
    text = text.replace("int d)", "int d, int w)")
    made = block_outputs(kernel(text), 0, TILE)
    shapes = {"a": ("m", "d"), "b": ("n", "d"), "out": ("m", "n")}
    same(text, made, shapes, {"m": 19, "n": 36, "d": 7, "w": 9}, rounds=True)
