"""Sums, counts and extremes of ranges that grow from round to round, and begin anew in each."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, program, sizes_of

_LOW = ["0", "0", "at", "at - k", "-k", "max(0, at - k)", "1 - k", "3 - 2 * k", "k"]
_HIGH = ["k", "k + 1", "at + k", "2 * k", "k / 2 + 1", "min(m, k + 2)", "m", "m - k", "k - at"]
_STEPS = ["s += v;", "s += v;", "s = fmaxf(s, v);", "if (v > 0.5f) s += 1.0f;", "s -= v * v;",
          "if (v < 0.0f) continue;\ns += v;", "s = s * 0.5f + v;"]  # fmt: skip


def beginnings(rng: Random) -> Made:
    """What each item makes of ranges of its row, one for each round."""
    low, high, step = rng.choice(_LOW), rng.choice(_HIGH), rng.choice(_STEPS)
    place = rng.choice(["i", "i", "i", "i + 1", "abs(i - at)", "i + k"])
    head = f"for (int i = {low}; i {rng.choice(['<', '<='])} {high}; i++)"
    if rng.random() < 0.2:
        head = f"for (int i = {high}; i >= {low}; --i)"
    value = f"const float v = a[p * m + (({place}) % m + m) % m];"
    inner = f"{head} {{\n{value}\n{step}\n}}\n"
    begin = rng.choice(["0.0f", "0.0f", "-8.0f", "a[p * m]"])
    behind = rng.choice(["", "", "s *= 0.5f;\n", "if (s > 4.0f) break;\n", "s += k;\n"])
    end = rng.choice(["r += s * (k + 1);", "r = fmaxf(r, s);", "r = s;"])
    if rng.random() < 0.5:
        own, body = "", f"float s = {begin};\n{inner}{behind}{end}"
    else:
        own, body = (
            f"float s = {rng.choice([begin, '1.0f'])};\n",
            f"s = {begin};\n{inner}{behind}{end}",
        )
    loop = rng.choice([
        f"for (int k = 0; k < m; k++) {{\n{body}\n}}",
        f"for (int k = m - 1; k >= 0; k--) {{\n{body}\n}}",
        f"for (int k = 1; k <= m; k += 2) {{\n{body}\n}}",
        f"int k = at - 2;\nwhile (k < m && r < 99.0f) {{\nk++;\n{body}\n}}",
        f"int k = 0;\ndo {{\n{body}\nk++;\n}} while (k < m);",
    ])  # fmt: skip
    text = program(
        rng, "beginnings", "const float* a, float* out, int n, int m", axes(rng, ("p", "n")),
        f"const int at = p % 4;\nfloat r = 0.0f;\n{own}{loop}\nout[p] = r;",
    )  # fmt: skip
    arrays = {"a": Array("f4", ("n", "m")), "out": Array("f4", ("n",), "zeros")}
    sizes = sizes_of(rng, ["n", "m"], (1, 2, 5, 9, 16, 31, 33))
    return Made("beginnings", text, arrays, *sizes, exact=False)


def boxes(rng: Random) -> Made:
    """The mean of the smallest box around a pixel that holds enough."""
    inside = "y + i >= 0 && y + i < h && x + j >= 0 && x + j < w"
    add = rng.choice(
        ["s += a[(y + i) * w + x + j]; c++;", "s = fmaxf(s, a[(y + i) * w + x + j]); c += 2;"]
    )
    heads = rng.choice([
        ("for (int i = -q; i <= q; i++)", "for (int j = -q; j <= q; j++)"),
        ("for (int i = q; i >= -q; i--)", "for (int j = -q; j < q + 1; ++j)"),
        ("for (int i = -q; i <= q; i++)", "for (int j = 0; j <= 2 * q; j++)"),
        ("for (int i = max(-q, -y); i <= min(q, h - 1 - y); i++)", "for (int j = -q; j <= q; j++)"),
        ("for (int i = -q; i <= q; i++)", "for (int j = -1; j <= q; j++)"),
    ])  # fmt: skip
    test = rng.choice([f"if ({inside}) {{ {add} }}", f"if (!({inside})) continue;\n{add}"])
    box = f"{heads[0]} {{\n{heads[1]} {{\n{test}\n}}\n}}"
    loop = rng.choice([
        f"while (s < 9.0f && q < most) {{\nq++;\ns = 0.0f;\nc = 0;\n{box}\n}}",
        f"for (q = 0; q < most; q++) {{\ns = 0.0f;\nc = 0;\n{box}\nif (s > 9.0f) break;\n}}",
        f"do {{\ns = 0.0f;\nc = 0;\n{box}\nq += 2;\n}} while (s < 9.0f && q < most);",
    ])  # fmt: skip
    text = program(
        rng, "boxes", "const float* a, float* out, int w, int h, int most",
        axes(rng, ("x", "w"), ("y", "h")),
        f"float s = 0.0f;\nint c = 0, q = 0;\n{loop}\nout[y * w + x] = s + 100.0f * c + 10000.0f * q;",
    )  # fmt: skip
    arrays = {"a": Array("f4", ("h", "w"), "positive"), "out": Array("f4", ("h", "w"), "zeros")}
    sizes, others = sizes_of(rng, ["w", "h"], (1, 2, 5, 9, 17, 20))
    far = {"most": rng.randint(0, 4)}, {"most": rng.randint(0, 4)}
    return Made("boxes", text, arrays, sizes | far[0], others | far[1], exact=False)


FAMILY = (beginnings, boxes)
