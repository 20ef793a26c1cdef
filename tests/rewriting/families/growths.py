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


def running(rng: Random) -> Made:
    """What all elements of a row up to each of them, or from it on, come to, each anew."""
    begin, step, end = rng.choice([
        ("0.0f", "s += a[p * m + i];", "s"),
        ("0.0f", "s += a[p * m + i];", "s / (k + 1)"),
        ("0.0f", "s += a[p * m + i] * a[p * m + i];", "sqrtf(s)"),
        ("-99.0f", "s = fmaxf(s, a[p * m + i]);", "a[p * m + k] - s"),
        ("0.0f", "if (a[p * m + i] > 0.0f) s += 1.0f;", "s"),
    ])  # fmt: skip
    head = rng.choice([
        "for (int i = 0; i <= k; i++)", "for (int i = 0; i < k + 1; ++i)",
        "for (int i = 0; i <= k; i += 1)", "for (int i = k; i < m; i++)",
    ])  # fmt: skip
    body = f"float s = {begin};\n{head} {{\n{step}\n}}\nout[p * m + k] = {end};"
    loop = rng.choice([f"for (int k = 0; k < m; k++) {{\n{body}\n}}",
                       f"int k = 0;\nwhile (k < m) {{\n{body}\nk++;\n}}"])  # fmt: skip
    text = program(
        rng, "running", "const float* a, float* out, int n, int m", axes(rng, ("p", "n")), loop
    )
    arrays = {"a": Array("f4", ("n", "m")), "out": Array("f4", ("n", "m"), "zeros")}
    sizes = sizes_of(rng, ["n", "m"], (1, 2, 5, 9, 16, 31, 33))
    return Made("running", text, arrays, *sizes, exact=False)


def around(rng: Random) -> Made:
    """Means of growing windows around each place of a line, added up by some weight."""
    test = rng.choice(["x + i >= 0 && x + i < w", "x + i > -1 && x + i <= w - 1"])
    step = rng.choice(
        ["s += a[x + i]; c++;", "s += fabsf(a[x + i]); ++c;", "s -= a[x + i]; c += 1;"]
    )
    first = rng.choice(["1", "1", "0"])
    end = rng.choice(["r += s / c;", "r += s * q;", "r = fmaxf(r, s / (q + 1));"])
    head = rng.choice(["for (int i = -q; i <= q; i++)", "for (int i = -q; i < q + 1; ++i)"])
    body = f"float s = 0.0f;\nint c = 0;\n{head} {{\nif ({test}) {{ {step} }}\n}}\n{end}"
    text = program(
        rng, "around", "const float* a, float* out, int w, int most", axes(rng, ("x", "w")),
        f"float r = 0.0f;\nfor (int q = {first}; q <= most; q++) {{\n{body}\n}}\nout[x] = r;",
    )  # fmt: skip
    arrays = {"a": Array("f4", ("w",)), "out": Array("f4", ("w",), "zeros")}
    sizes, others = sizes_of(rng, ["w"], (1, 2, 9, 33, 70, 131))
    return Made("around", text, arrays, sizes | {"most": 6}, others | {"most": 3}, exact=False)


FAMILY = (beginnings, boxes, running, around)
