"""Bytes of neighbouring items computed two at a time: what is exact, and what is not."""

from __future__ import annotations

from random import Random

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.jammed import Several, jam_in_pairs
from tests.present import sampled

from .running import same
from .shapes import applied, kernel

HEAD = """\
%s
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4)) block(8, 4)
__global__ void k(const unsigned char* a, unsigned char* out, int w, int h, int t) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
    %s
}
"""
SQUARE = "for (int j = -1; j <= 1; ++j) for (int i = -1; i <= 1; ++i) "
AT = "a[(y + j) * w + x + i]"
HERE, LEFT, BELOW = "a[y * w + x]", "a[y * w + x - 1]", "a[(y + 1) * w + x]"
OUT = "out[y * w + x] = "
LEAVES = "for (n = 0; n < 9; ++n) { if (v[n] > 9) continue;"
SHAPES = {"a": ("u1", "h", "w"), "out": ("u1", "h", "w")}
ORDER = """\
__device__ void in_order(unsigned char& p, unsigned char& q) {
    const unsigned char least = min(p, q);
    q = max(p, q);
    p = least;
}
__device__ void led(unsigned char& p, const unsigned char& q) { p = 1; p = p > q ? 0 : 7; }
__device__ void done(unsigned char& p) { if (p > 7) return; p = 7; }
__device__ int told(unsigned char& p) { p = 3; return 1; }
__device__ unsigned char lesser(unsigned char p, unsigned char q) { return p < q ? p : q; }
"""
CLAMP = "__device__ unsigned char clamp8(int v) { if (v < 0) return 0; return v > 255 ? 255 : v; }"


def _made(body: str, helper: str = "", *, tall: bool = False) -> tuple[str, Kernel]:
    text = HEAD % (helper, body)
    counts = {"x": (16,), "y": (2,)} if tall else {"x": (16,)}
    return text, applied(jam_in_pairs(kernel(text), Several(counts)))


@pytest.mark.parametrize(
    ("helper", "body"),
    sampled([
        ("", f"int s = 0; {SQUARE} s += (2 - abs(i)) * (2 - abs(j)) * {AT}; {OUT}(s + 8) >> 4;"),
        ("", (f"const int f[3][3] = {{{{1, 2, 1}}, {{2, 4, 2}}, {{1, 2, 1}}}}; int s = 0; {SQUARE}"
             f" s += f[j + 1][i + 1] * {AT}; {OUT}s / 16;")),
        ("", f"int s = 0; {SQUARE} s += {AT}; {OUT}s / 9;"),
        ("", (f"int s = 0; {SQUARE} {{ int v = {AT}; if (i * i + j * j > 1) continue; s += v; }}"
              f" {OUT}s / 5;")),
        ("", (f"int s = 0; {SQUARE} {{ s += {AT}; if (j > i) continue; s += 1; }} {OUT}s / 16;")),
        ("", (f"int s = 0; {SQUARE} s += {AT}; for (int q = 0; q < 9; ++q) {{ if (q == 4) continue;"
              f" if (s < 0 || q > 6) break; ++s; }} {OUT}s / 16;")),
        ("", (f"int v[9], n = 0, s = 0; {SQUARE} v[n++] = {AT}; for (int q = 0; q < 3; ++q)"
              " for (int r = 0; r < 9; ++r) { if (r > q) break; if (r == 1) continue; s += v[r]; }"
              f" {OUT}s / 8;")),
        ("", f"unsigned char m = 0; {SQUARE} if ({AT} > m) m = {AT}; {OUT}m;"),
        ("", (f"int g = {HERE} - {LEFT}, d = {HERE} - {BELOW}; if (g < 0) g = -g;"
             f" {OUT}min(g + abs(d), 255);")),
        ("", (f"int s = 9 * {HERE}; {SQUARE} if (i != 0 || j != 0) s -= {AT};"
             f" if (s < 0) s = 0; if (s > 255) s = 255; {OUT}s;")),
        (CLAMP, (f"int b = ({LEFT} + {BELOW} + 6 * {HERE}) / 8;"
                f" {OUT}clamp8({HERE} + 2 * ({HERE} - b));")),
        ("", (f"int v[9]; int n = 0; {SQUARE} v[n++] = {AT}; for (int i = 0; i < 5; ++i)"
             " for (int j = i + 1; j < 9; ++j) if (v[j] < v[i])"
             f" {{ int q = v[i]; v[i] = v[j]; v[j] = q; }} {OUT}v[4];")),
        (ORDER, (f"unsigned char v[9]; int n = 0; {SQUARE} v[n++] = {AT};"
                 f" in_order(v[1], v[2]); in_order(v[0], v[1]); in_order(v[4], v[0]); {OUT}v[1];")),
        (ORDER, (f"unsigned char p = {HERE}, q = {LEFT}, r = {BELOW}; in_order(p, q);"
                 f" if (p > r) in_order(r, q); {OUT}lesser(p, lesser(q, r)) / 2 + q / 2;")),
        ("", f"int d = {HERE} - {LEFT}, b = {BELOW}; {OUT}d > 25 ? 255 : d == 3 ? b : 7;"),
        ("", f"{OUT}(179 * {HERE} + 76 * {BELOW} + 128) >> 8;"),
        ("", f"{OUT}255 - ({HERE} > {LEFT} ? {HERE} : {LEFT});"),
        ("", f"{OUT}({HERE} - {LEFT} + 255) / 2;"),
    ], 3),
)  # fmt: skip
def test_pairs_are_exact(helper: str, body: str) -> None:
    for tall in (False, True):
        text, made = _made(body, helper, tall=tall)
        assert "pair_at(a_row" in made.program.text
        for w in (64, 50, 3):
            same(text, made, SHAPES, {"w": w, "h": 7, "t": 256}, given="below t")


@pytest.mark.parametrize(
    "body",
    [
        f"{OUT}{HERE};",  # nothing is computed
        f"{OUT}{HERE} + {LEFT};",  # it may be beyond a byte
        f"{OUT}min({HERE} * {LEFT}, 255);",  # a product of bytes
        f"{OUT}min({HERE} + t, 255);",  # nobody knows how great it is
        f"{OUT}{HERE} * 0.5f;",
        f"{OUT}({HERE} - {LEFT}) / 2 + 128;",  # towards zero
        f"{OUT}min(abs(20 * {HERE} - 19 * {LEFT}), 255);",  # beyond what halves hold
        f"{OUT}max({HERE} - 300u, 20u) & 255;",  # without a sign
        f"int s = 0; for (int i = 0; i < {HERE}; ++i) s += 1; {OUT}s & 255;",
        f"int v[9], n = 0, s = 0; {SQUARE} v[n++] = {AT}; {LEAVES} s += v[n]; }} {OUT}s / 16;",
    ],
)
def test_what_is_not_certain_stays(body: str) -> None:
    _text, made = _made(body)
    assert "pair_at" not in made.program.text


@pytest.mark.parametrize(
    "call",
    ["led(v, v);", "done(v);", "told(v);", "v = told(v);", "in_order(v, out[0]);"],
)
def test_functions_that_may_change_something_else_stay(call: str) -> None:
    _text, made = _made(f"unsigned char v = {HERE}; {call} {OUT}max(v, {LEFT});", ORDER)
    assert "pair_at" not in made.program.text


@pytest.mark.parametrize("seed", sampled([*range(40)], 4))
def test_drawn_expressions(seed: int) -> None:
    rng = Random(seed)

    def drawn(deep: int) -> str:
        if deep == 0:
            j, i = rng.randint(-1, 1), rng.randint(-1, 1)
            return rng.choice([f"a[(y + {j}) * w + x + {i}]"] * 4 + [str(rng.randint(0, 255))])
        one, two = drawn(deep - 1), drawn(rng.randint(0, deep - 1))
        return rng.choice([
            f"({one} + {two})", f"({one} - {two})", f"({one} + {rng.randint(2, 4)} * {two})",
            f"abs({one} - {two})", f"min({one}, {two})", f"max({one}, {two})",
            f"({one} > {two} ? {two} : {one})", f"({one} == {two} ? {one} : {two})",
            f"(min(max({one}, 0), 255) >> {rng.randint(1, 3)})", f"(abs({one}) / 5)",
        ])  # fmt: skip

    text, made = _made(f"int v = {drawn(3)}; {OUT}min(max(v, 0), 255);", tall=bool(seed % 2))
    same(text, made, SHAPES, {"w": 48, "h": 6, "t": 256}, given="below t")
