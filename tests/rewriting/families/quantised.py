"""Products of matrices of bytes, less zero points or as they are, and filters over them."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, program, sizes_of

_KINDS = {"signed char": "i1", "char": "i1", "unsigned char": "u1"}
_WIDTH = 3


def of_bytes(rng: Random) -> Made:
    """Rows by columns or by rows, whose sums are added to, scaled or cut off."""
    kind = rng.choice([*_KINDS])
    other = rng.choice([kind, kind, kind, "unsigned char"])
    one = rng.choice(["x[i * d + k]", "x[i * d + k]", "x[k * n + i]"])
    two = rng.choice(["y[k * m + j]", "y[j * d + k]"])
    if rng.choice([0, 1]):
        one, two = f"(int){one}", f"(int){two}"
    less, also = rng.choice(
        [("", ""), (" - p", " - q"), (" - p", ""), ("", " + q"), (" - 3", " - p")]
    )
    left, right = f"({one}{less})", f"({two}{also})"
    wide = rng.choice(["int", "int", "int", "unsigned int", "long long"])
    step = rng.choice([
        f"s += {left} * {right};", f"s = s + {right} * {left};",
        f"int a = {left}, b = {right};\ns += a * b;", f"{kind} a = {one};\ns += (a{less}) * {right};",
        f"int a = {left};\nint c = a * {right};\ns += c;", f"s += {left} * {right} * w[k];",
        f"int a = {left};\na += 1;\ns += a * {right};", f"s += {left} * {right} + 1;",
        f"if (k < r) s += {left} * {right};", f"s -= {left} * {right};",
    ])  # fmt: skip
    end = rng.choice([
        "out[i * m + j] = (int)s;", "out[i * m + j] += (int)s;", "out[j * n + i] = (int)s;",
        "float f = (int)s * 0.01f;\nout[i * m + j] = (int)rintf(f) + w[j];",
    ])  # fmt: skip
    start = rng.choice(["0", "0", "w[j]"])
    body = f"{wide} s = {start};\nfor (int k = 0; k < d; ++k) {{\n{step}\n}}\n{end}"
    head = f"const {kind}* x, const {other}* y, const int* w, int* out, int n, int m, int d, int p, int q, int r"
    text = program(rng, "of_bytes", head, axes(rng, ("j", "m"), ("i", "n")), body)
    rows = ("d", "n") if "k * n" in one else ("n", "d")
    columns = ("d", "m") if "k * m" in two else ("m", "d")
    arrays = {
        "x": Array(_KINDS[kind], rows, "bits"), "y": Array(_KINDS[other], columns, "bits"),
        "w": Array("i4", ("m + d",)), "out": Array("i4", ("n", "m")),
    }  # fmt: skip
    first, second = sizes_of(rng, ["n", "m", "d"], (1, 2, 5, 16, 31, 33, 64))
    points = {"p": rng.choice([0, 3, -7, 128]), "q": rng.choice([5, -128]), "r": rng.choice([1, 9])}
    return Made("of_bytes", text, arrays, first | points, second | points, inout=("out",))


def filtered(rng: Random) -> Made:
    """A layer of filters over bytes, nothing beyond the edge or zero points there."""
    kind = rng.choice(["signed char", "unsigned char"])
    less = rng.choice(["", " - p"])
    test = "u >= 0 && u < n"
    step = rng.choice([
        f"if ({test}) s += (x[c * n + u]{less}) * f[(o * m + c) * {_WIDTH} + t];",
        f"int v = {test} ? x[c * n + u] : 0;\ns += v * f[(o * m + c) * {_WIDTH} + t];",
    ])  # fmt: skip
    body = (
        f"int s = 0;\nfor (int c = 0; c < m; ++c)\nfor (int t = 0; t < {_WIDTH}; ++t) {{\n"
        f"int u = i + t - 1;\n{step}\n}}\nout[o * n + i] = s;"
    )
    head = f"const {kind}* x, const {kind}* f, int* out, int n, int m, int l, int p"
    text = program(rng, "filtered", head, axes(rng, ("i", "n"), ("o", "l")), body)
    arrays = {
        "x": Array(_KINDS[kind], ("m", "n"), "bits"), "f": Array(_KINDS[kind], ("l", "m", str(_WIDTH)), "bits"),
        "out": Array("i4", ("l", "n")),
    }  # fmt: skip
    first, second = sizes_of(rng, ["n", "m", "l"], (1, 2, 5, 16, 31, 33, 64))
    return Made("filtered", text, arrays, first | {"p": 9}, second | {"p": 9})


def masked(rng: Random) -> Made:
    """Sums of what a mask lets through, each output's or all in one place."""
    one, two = "x[i * d + k]", rng.choice(["y[k * m + j]", "y[j * d + k]"])
    code = rng.choice(["c[i * d + k]", "((c[i * ((d + 7) / 8) + k / 8] >> (4 * (k % 8))) & 3)"])
    step = rng.choice([
        f"if ({code} == 1) s += {two};", f"if ({code} > 1) s += {one} * {two};",
        f"switch ({code}) {{ case 1: s += {two}; break; case 2: s -= {two}; break; default: break; }}",
        f"s += {code} & 1 ? {one} * {two} : 0.0f;", f"if ({one} > 0.0f) s += {one} * {two};",
        f"if ({code} == 1 && {one} < 1.0f) s = fmaxf(s, {two});",
        f"if ({code} == 1) continue;\ns += {one} * {two};",
    ])  # fmt: skip
    end = rng.choice([
        "out[i * m + j] = s;", "out[i * m + j] = s;", "atomicAdd(&all[0], s);",
        "out[i * m + j] = s;\nif (s > 1.0f) atomicAdd(all + 1, 2.0f);", "atomicAdd(&all[i % 2], s);",
    ])  # fmt: skip
    body = f"float s = 0.0f;\nfor (int k = 0; k < d; ++k) {{\n{step}\n}}\n{end}"
    head = (
        "const float* x, const float* y, const int* c, float* out, float* all, int n, int m, int d"
    )
    text = program(rng, "masked", head, axes(rng, ("j", "m"), ("i", "n")), body)
    arrays = {
        "x": Array("f4", ("n", "d")), "y": Array("f4", ("d", "m")), "c": Array("i4", ("n", "d"), "bits"),
        "out": Array("f4", ("n", "m")), "all": Array("f4", ("2",)),
    }  # fmt: skip
    first, second = sizes_of(rng, ["n", "m", "d"], (1, 2, 5, 16, 31, 33, 64))
    return Made("masked", text, arrays, first, second, inout=("out", "all"))


FAMILY = (of_bytes, filtered, masked)
