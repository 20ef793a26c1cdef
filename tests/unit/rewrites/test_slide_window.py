"""Moving sums and extremes: which loops are offered, in which blocks."""

from __future__ import annotations

from optiml_magic.source.program import parse_program
from tests.ideas import asked
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of

LINE = """
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* a, float* o, int n, int r) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0.0f;
    for (int j = i - r; j <= i + r; j++) if (j >= 0 && j < n) s += a[j];
    o[i] = s / (2 * r + 1);
}"""
PLANE = """
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
__global__ void k(const float* a, float* o, int w, int h, int r) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float m = a[y * w + x];
    for (int dy = -r; dy <= r; dy++)
        for (int dx = -r; dx <= r; dx++) {
            int q = min(max(y + dy, 0), h - 1), p = min(max(x + dx, 0), w - 1);
            m = fmaxf(m, a[q * w + p]);
        }
    o[y * w + x] = m;
}"""


def test_a_line_slides_in_blocks_of_one_row(propose, compiles):
    found = propose("slide_window", LINE)
    assert [parse_program(p.text).values for p in found] == [
        {"ITEMS": 9, "BLOCK": 256}, {"ITEMS": 7, "BLOCK": 256}, {"ITEMS": 9, "BLOCK": 128},
    ]  # fmt: skip
    assert "__launch_bounds__" not in found[0].text
    compiles(found[0].text)


def test_a_plane_slides_in_both_directions_or_along_its_rows(propose, compiles):
    found = propose("slide_window", PLANE)
    assert [parse_program(p.text).values for p in found] == [
        {"ITEMS": 9, "ROWS": 8, "TALL": 4}, {"ITEMS": 9, "ROWS": 4, "TALL": 8},
        {"ITEMS": 7, "ROWS": 8, "TALL": 4}, {"ITEMS": 9, "ROWS": 8}, {"ITEMS": 7, "ROWS": 8},
        {"ITEMS": 9, "ROWS": 4},
    ]  # fmt: skip
    along = next(p.text for p in found if "TALL" not in p.text)
    assert "for (int dy = -r; dy <= r; dy++)" in along
    compiles(found[0].text)
    compiles(along)


def test_windows_whose_ends_are_chosen_slide_in_the_other_order_of_loops(propose):
    turned = PLANE.replace("dy = -r; dy <= r; dy++", "dx = -r; dx <= r; dx++", 1)
    turned = turned.replace(
        "        for (int dx = -r; dx <= r; dx++)", "        for (int dy = -r; dy <= r; dy++)"
    )
    first = next(p for p in propose("slide_window", turned) if "TALL" not in p.text)
    assert "for (int dy = -r; dy <= r; dy++)" in first.text
    assert "for (int dx = -r" not in first.text.partition("slot < span")[2].partition("__sync")[0]


def test_short_windows_and_weights_are_refused(propose):
    from optiml_magic.proposers.rewrites.slide_window import SlideWindow

    short = LINE.replace("i + r", "i + 2").replace("i - r", "i - 2")
    (refusal,) = asked(SlideWindow(), short)[1]
    assert refusal.reason == "windows of 5 places have little in common"
    (refusal,) = asked(SlideWindow(), LINE.replace("s += a[j]", "s += a[j] * a[j - i + r]"))[1]
    assert refusal.reason == "a round depends on more than where it stands"


def test_windows_that_items_near_a_border_do_not_have_slide_as_well(propose, compiles):
    border = "if (x < r || y < r || x >= w - r || y >= h - r)"
    for guard in (
        f"{border} return;",
        f"if (x >= w || y >= h) return; {border} {{ o[y * w + x] = a[y * w + x]; return; }}",
    ):
        found = propose("slide_window", PLANE.replace("if (x >= w || y >= h) return;", guard))
        assert "TALL" in parse_program(found[0].text).values
        compiles(found[0].text)


def test_windows_of_seven_slide_in_both_directions_alone(propose):
    seven = PLANE.replace("= -r", "= -3").replace("<= r", "<= 3")
    assert all("TALL" in p.text for p in propose("slide_window", seven))
    assert not propose("slide_window", seven.replace("3", "2"))


def test_many_sums_have_fewer_rows_so_that_other_warps_have_room(propose):
    many = PLANE.replace("float m = a[y * w + x];", "float m = 0, b = 0, c = 0, d = 0, e = 0;")
    summed = "float v = a[q * w + p]; m += v; b += v * v; c += 2 * v; d += 3 * v; e += v + 1;"
    many = many.replace("m = fmaxf(m, a[q * w + p]);", summed).replace(
        "] = m;", "] = m + b * c + d - e;"
    )
    values = parse_program(propose("slide_window", many)[0].text).values
    assert (values["ITEMS"], values["TALL"]) == (5, 2)


FRAMES = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, float* out, int n, int len) {
    int f = blockIdx.x * blockDim.x + threadIdx.x;
    if (f >= n) return;
    float s = 0;
    for (int i = f * 4; i < f * 4 + 96 && i < len; i++) s += x[i] * x[i];
    out[f] = s;
}
"""


def test_frames_that_go_on_by_several_elements_slide_by_pieces(propose):
    made = propose("slide_window", FRAMES)[0]
    assert "piece * 4 + element" in made.text
    arrays = {"x": Array("f4", ("len",)), "out": Array("f4", ("n",), "zeros")}
    sizes = {"n": 70, "len": 300}, {"n": 33, "len": 90}
    assert end_of(FRAMES, made.text, arrays, *sizes, rounds=True) == "same"
