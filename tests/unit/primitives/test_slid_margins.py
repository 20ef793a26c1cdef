"""Windows that items near a border do not have: what the others still share."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.bounded import bounded
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.effects import is_simple
from optiml_magic.kernels.primitives.slid import slid
from optiml_magic.kernels.primitives.slid_planes import slid_planes

from .running import same
from .shapes import kernel, refused

BEFORE = "float s = 0.0f;"
LOOPS = "for (int e = -r; e <= r; e++) for (int d = -r; d <= r; d++) s += a[(y + e) * w + x + d];"
AFTER = "out[y * w + x] = s;"
OUTSIDE = "x < r || x >= w - r || y < r || y >= h - r"
INSIDE = "x >= r && x < w - r && y >= r && y < h - r"
BEYOND = "if (x >= w || y >= h) return;"
WHOLE = f"{BEFORE} {LOOPS} {AFTER}"
HEAD = """\
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 8)) block(16, 8)
__global__ void k(const float* a, float* out, int w, int h, int r) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    """
MORE = "a guard says more of an item than that it is far from the borders"
OWN = "each item has its own distance from the border"
SHAPES = {"a": ("h", "w"), "out": ("h", "w")}
PLANES = {"ITEMS": 5, "ROWS": 2, "TALL": 3}
FORMS = {
    "returns": f"if ({OUTSIDE}) return; {WHOLE}",
    "returns_later": f"{BEFORE} if ({OUTSIDE}) return; {LOOPS} {AFTER}",
    "twice": f"if (x < r || x >= w - r) return; if (y < r || y >= h - r) return; {WHOLE}",
    "branch": f"if ({INSIDE}) {{ {WHOLE} }}",
    "not_all": f"if (!({INSIDE})) return; {WHOLE}",
    "one_side": f"{BEYOND} if (x < r || y < r || y + r >= h || x + r >= w) return; {WHOLE}",
    "left_alone": f"{BEYOND} if (x < 3 || x > w - 1 - r || y >= h - r || y < r || x < r) return; {WHOLE}",
    "other": f"{BEYOND} if ({OUTSIDE}) {{ out[y * w + x] = a[y * w + x]; return; }} {WHOLE}",
    "else": f"{BEYOND} if ({INSIDE}) {{ {WHOLE} }} else out[y * w + x] = -1.0f;",
    "behind": f"{BEYOND} {BEFORE} if ({INSIDE}) {{ {LOOPS} s *= 2.0f; }} else {{ s = 7.0f; }} {AFTER}",
    "own": f"{BEYOND} if ({OUTSIDE}) {{ out[y * w + x] = 0.0f; return; }}"
           f" float up = a[(y - r) * w + x - r]; {BEFORE} {LOOPS} out[y * w + x] = s - up;",
    "nested": f"{BEYOND} {BEFORE} if (y >= r && y < h - r) {{ if (x >= r && x < w - r) {{ {LOOPS} }}"
              f" else {{ s = 2.0f; }} s += 1.0f; }} {AFTER}",
    "size": f"int k = 2 * r; if (x < k / 2 || x >= w - k / 2 || y < r || y >= h - r) return; {WHOLE}",
    "backwards": f"if ({OUTSIDE}) return; {WHOLE}".replace("x + d", "x - d"),
    "upwards": f"{BEYOND} if ({OUTSIDE}) {{ out[y * w + x] = 5.0f; return; }} {WHOLE}".replace(
        "(y + e)", "(y - e)").replace("x + d", "x - d"),
    "greatest": f"if ({OUTSIDE}) return; {WHOLE}".replace("s += a[(y + e) * w + x + d]", "s = fmaxf(s, a[(y + e) * w + x + d])"),
    "none": f"{BEYOND} if (x < w || y < r) {{ out[y * w + x] = 4.0f; return; }} {WHOLE}",
    "two_lows": f"{BEYOND} if (x < r || x < 2 * r || x >= w - r || y < r || y >= h - r)"
                f" {{ out[y * w + x] = 1.0f; return; }} {WHOLE}",
    "hidden": f"{BEYOND} float t = 1.0f; if ({INSIDE}) {{ float t = 2.0f; {BEFORE} {LOOPS}"
              " out[y * w + x] = s + t; } else out[y * w + x] = t;",
    "begun": f"{BEYOND} float s = 5.0f; if ({INSIDE}) {{ {LOOPS} }} {AFTER}",
    "left_of": f"if (x < 2 * r || x >= w || y < 2 * r || y >= h) return; {WHOLE}".replace(
        "(y + e)", "(y + e - r)").replace("x + d", "x + d - r"),
}  # fmt: skip


def made(text: str, *, plane: bool) -> Kernel | Refused:
    one = as_counted(where_legal(bounded, kernel(text)), 1, is_simple)
    if isinstance(one, Refused):
        return one
    two = as_counted(one, 0, is_simple)
    if isinstance(two, Refused):
        return two
    return slid_planes(two, 1, 0) if plane else slid(two, 1)


@pytest.mark.parametrize("plane", [True, False], ids=["plane", "row"])
@pytest.mark.parametrize("form", FORMS)
def test_items_near_a_border_do_what_they_did(form: str, plane: bool) -> None:
    text = f"{HEAD}{FORMS[form]}\n}}\n"
    after = made(text, plane=plane)
    tuned = PLANES if plane else {"ITEMS": 5, "ROWS": 4}
    rounds = form != "greatest"
    for sizes in (
        {"w": 190, "h": 14, "r": 4}, {"w": 171, "h": 9, "r": 1}, {"w": 33, "h": 6, "r": 3},
        {"w": 9, "h": 19, "r": 4}, {"w": 8, "h": 21, "r": 4}, {"w": 40, "h": 3, "r": 2}, {"w": 5, "h": 4, "r": 0},
    ):  # fmt: skip
        if form == "left_alone" and sizes["w"] < 9:
            continue
        same(text, after, SHAPES, sizes, tuned, rounds=rounds)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"{BEYOND} if (x < r || x % 3 == 0) return; {WHOLE}", MORE),
        (f"{BEYOND} if (x + y < r) return; {WHOLE}", OWN),
        (f"{BEYOND} if (2 * x < r) return; {WHOLE}", MORE),
        (f"{BEYOND} if (a[x] < 1.0f) return; {WHOLE}", MORE),
        (f"{BEYOND} if (x < r && y < r) return; {WHOLE}", MORE),
        (f"{BEYOND} if (x < (unsigned)r || x >= w - r) return; {WHOLE}", "a test around the loop compares unsigned numbers"),
        (f"{BEYOND} if (x < min(y, r)) return; {WHOLE}", "a test around the loop does more than to compare"),
        (f"{BEYOND} int q = x; if (q++ < r) return; {WHOLE}", "a test around the loop does more than to compare"),
        (f"{BEYOND} if (x < r || x >= w - r) {{ if (y == 0) return; out[x] = 1.0f; return; }} {WHOLE}", "an item leaves the kernel by itself"),
        (f"{BEYOND} if (x >= r) {{ {BEFORE} {LOOPS} if (y == 2) return; {AFTER} }}", "an item leaves the kernel by itself"),
        (f"{BEYOND} if (x == r) return; {WHOLE}", MORE),
        (f"{BEYOND} out[y * w + x] = 1.0f; if ({OUTSIDE}) return; {WHOLE}", "`out` is written as well"),
        (f"{BEYOND} if (x < r) out[y * w + x] = 1.0f; {WHOLE}", "items do more before the loop than to begin"),
        (f"{BEYOND} if (x >= r) {{ }} else {{ {WHOLE} }}", "the loop stands in a branch of its own"),
        (f"{BEYOND} if ({OUTSIDE}) return; float f = a[y * w + x]; {WHOLE}".replace("s += a", "s += f * a"), "a round depends on more than where it stands"),
        (f"{BEYOND} if ({OUTSIDE}) return; {WHOLE}".replace("s += a", "s += x * a"), "a round depends on more than where it stands"),
        (f"{BEYOND} if ({OUTSIDE}) return; {WHOLE}".replace("s += a", "s += out"), "`out` is written as well"),
        (f"{BEYOND} int z = r; if (y > 3) z = 2; if (x < z) return; {WHOLE}", OWN),
        (f"{BEYOND} r = 1; if ({OUTSIDE}) return; {WHOLE}", "the parameter `r` changes"),
        (f"{BEYOND} if (x < threadIdx.x) return; {WHOLE}", "a thread asks for more than its index along x"),
        (f"{BEYOND} if (x < int(blockIdx.x)) return; {WHOLE}", "a thread asks for more than its index along x"),
    ],
)  # fmt: skip
def test_other_tests_are_no_margin(body: str, reason: str) -> None:
    for plane in (True, False):
        assert refused(made(f"{HEAD}{body}\n}}\n", plane=plane))[0] == reason
