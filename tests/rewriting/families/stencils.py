"""Stencils, filters and convolutions in one to three dimensions, with borders of every kind."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, flat, program, sizes_of

_SMALL = (1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 17, 21)
_LINES = (1, 2, 5, 16, 31, 40, 64, 65, 100, 128, 130, 256, 259)


def _signed(text: str) -> str:
    """Indices that may be compared with what is below zero."""
    return text.replace("unsigned int ", "int ").replace("unsigned ", "int ")


def _outside(rng: Random, at: str, extent: str) -> tuple[str, str, str]:
    """A test that an index lies inside, or what stands for it: clamped, wrapped or chosen."""
    kind = rng.randrange(5)
    if kind == 0:
        return f"{at} >= 0 && {at} < {extent}", at, "test"
    if kind == 1:
        return "", f"min(max({at}, 0), {extent} - 1)", "clamp"
    if kind == 2:
        return "", f"(({at} + 4 * {extent}) % {extent})", "wrap"
    if kind == 3:
        return "", f"({at} < 0 ? 0 : ({at} >= {extent} ? {extent} - 1 : {at}))", "choose"
    return f"!({at} < 0 || {extent} <= {at})", at, "test"


def _loops(rng: Random, names: list[str], radius: str, body: str) -> str:
    for name in reversed(names):
        step = rng.choice([f"{name}++", f"++{name}", f"{name} += 1"])
        upto = rng.choice([f"{name} <= {radius}", f"{name} < {radius} + 1"])
        body = f"for (int {name} = -{radius}; {name} {upto[len(name) :]}; {step}) {{\n{body}\n}}"
    return body


def window(rng: Random) -> Made:
    """A loop over offsets along each axis, of a number or a parameter, with weights or without."""
    dims = rng.choice([1, 2, 2, 2])
    extents = ["w", "h"][:dims]
    places, offsets = ["x", "y"][:dims], ["dx", "dy"][:dims]
    held = rng.choice(["", "", "const int R = 1;\n", "const int R = 2;\n"])
    radius = "R" if held else "r"
    tests, at = [], []
    for place, offset, extent in zip(places, offsets, extents, strict=True):
        test, spelled, _ = _outside(rng, f"{place} + {offset}", extent)
        tests += [f"({test})"] if test else []
        at.append(spelled)
    if rng.choice([0, 0, 1]):  # kept in locals
        body = "".join(f"int p{n} = {e};\n" for n, e in zip(places, at, strict=True))
        at = [f"p{n}" for n in places]
    else:
        body = ""
    index = at[0] if dims == 1 else flat(rng, at[1], "w", at[0])
    weight = f"f[{'dx' if dims == 1 else f'(dy + {radius}) * (2 * {radius} + 1) + dx'} + {radius}]"
    term = rng.choice([f"a[{index}]", f"a[{index}] * {weight}", f"{weight} * a[{index}]"])
    inner = f"s += {term};"
    if tests and rng.choice([0, 0, 1]):
        body += f"if (!({' && '.join(tests)})) continue;\n{inner}"
    elif tests:
        body += f"if ({' && '.join(tests)}) {{\n{inner}\n}}"
    else:
        body += inner
    order = [*offsets]
    if rng.choice([0, 0, 1]):
        order.reverse()
    here = "x" if dims == 1 else flat(rng, "y", "w", "x")
    whole = f"{held}float s = {rng.choice(['0.0f', 'bias', 'a[0]'])};\n"
    whole += _loops(rng, order, radius, body)
    whole += f"\nout[{here}] = {rng.choice(['s', 's * 0.5f', 's + bias'])};"
    over = axes(rng, *zip(places, extents, strict=True))
    sizes = ", ".join(f"int {name}" for name in [*extents, "r"])
    text = program(
        rng, "window", f"const float* a, const float* f, float* out, float bias, {sizes}", over, whole
    )  # fmt: skip
    plane = ("w",) if dims == 1 else ("h", "w")
    arrays = {
        "a": Array("f4", plane),
        "f": Array("f4", ("25",)),
        "out": Array("f4", plane, "zeros"),
    }
    one, other = sizes_of(rng, extents, _LINES if dims == 1 else _SMALL)
    one["r"], other["r"] = rng.choice([1, 2, 2]), rng.choice([0, 1, 2])
    return Made("window", _signed(text), arrays, one, other, {"bias": 0.5})


def cross(rng: Random) -> Made:
    """Neighbours by name: what is at the border is left, copied, zero or computed otherwise."""
    dims = rng.choice([1, 2, 2, 3, 3])
    places, extents = ["x", "y", "z"][:dims], ["w", "h", "d"][:dims]
    near, far = rng.choice([(1, 1), (1, 1), (1, 2), (2, 1)])
    strides = ["1", "w", "w * h"][:dims]
    here = ["x", flat(rng, "y", "w", "x"), flat(rng, "(z * h + y)", "w", "x")][dims - 1]
    leaves = [f"a[{here}]"] if rng.choice([0, 1, 1]) else []
    for stride in strides:
        leaves += [f"a[{here} - {near} * {stride}]", f"a[{here} + {far} * {stride}]"]
    rng.shuffle(leaves)
    value = " + ".join(leaves)
    value = rng.choice([f"c * ({value})", value, f"0.25f * ({value}) - a[{here}]"])
    tests = []
    for place, extent in zip(places, extents, strict=True):
        low = rng.choice([f"{place} >= {near}", f"{place} > {near} - 1", f"{near} <= {place}"])
        high = rng.choice([f"{place} < {extent} - {far}", f"{place} + {far} < {extent}"])
        tests += [low, high]
    inside = " && ".join(tests)
    store = f"out[{here}] = {value};"
    if rng.choice([0, 0, 1]):
        store = f"float v = {value};\nv = v * c;\nout[{here}] = v;"
    body = rng.choice([
        f"if ({inside}) {{\n{store}\n}}",
        f"if ({inside}) {{\n{store}\n}} else {{\nout[{here}] = a[{here}];\n}}",
        f"if (!({inside})) {{\nout[{here}] = 0.0f;\n}} else {{\n{store}\n}}",
        f"if (!({inside})) {{\nout[{here}] = a[{here}];\nreturn;\n}}\n{store}",
        f"if ({inside}) {{\nif (({' + '.join(places)}) % 2 == 0) {{\n{store}\n}}\n}}",
    ])  # fmt: skip
    over = axes(rng, *zip(places, extents, strict=True))
    sizes = ", ".join(f"int {name}" for name in extents)
    text = program(rng, "cross", f"const float* a, float* out, float c, {sizes}", over, body)
    shape = tuple(reversed(extents))
    arrays = {"a": Array("f4", shape), "out": Array("f4", shape, "zeros")}
    few = (1, 2, 3, 5, 8, 10, 13)
    some = {1: _LINES, 2: _SMALL, 3: few}[dims]
    return Made("cross", _signed(text), arrays, *sizes_of(rng, extents, some), {"c": 0.5})


def ends(rng: Random) -> Made:
    """Neighbours that are chosen where they are loaded: a value, an index, or one of two."""
    left = rng.choice(
        ["(y > 0 ? a[{up}] : 0.0f)", "(y == 0 ? c : a[{up}])", "a[y > 0 ? {up} : {at}]"]
    )
    right = rng.choice(["(y < h - 1 ? a[{down}] : 0.0f)", "(y + 1 >= h ? a[{at}] : a[{down}])"])
    names = {
        "at": flat(rng, "y", "w", "x"), "up": flat(rng, "(y - 1)", "w", "x"),
        "down": flat(rng, "(y + 1)", "w", "x"),
    }  # fmt: skip
    value = f"{left} + {right} * c + a[{{at}}]"
    body = f"out[{names['at']}] = {value};"
    if rng.choice([0, 1]):
        body = (
            f"float s = a[{names['at']}];\nif (y > 0) s += a[{names['up']}];\n"
            f"if (y < h - 1) {{\ns += a[{names['down']}];\n}}\nout[{names['at']}] = s;"
        )
    body = body.format(**names) if "{at}" in body else body
    over = axes(rng, ("x", "w"), ("y", "h"))
    text = program(rng, "ends", "const float* a, float* out, float c, int w, int h", over, body)
    arrays = {"a": Array("f4", ("h", "w")), "out": Array("f4", ("h", "w"), "zeros")}
    return Made("ends", _signed(text), arrays, *sizes_of(rng, ["w", "h"], _SMALL), {"c": 0.5})


def layer(rng: Random) -> Made:
    """A convolution of several channels, by several filters, of several images.

    What lies beyond a border is there, or is asked for and left out; filters take whole steps.
    """
    size = rng.choice([1, 2, 3])
    pad, step = rng.choice([(0, 1), (0, 1), (size // 2, 1), (size // 2, 2), (0, 2)])
    more = f"{size - step - 2 * pad:+d}".replace("+", "+ ").replace("-", "- ")
    high, wide = (f"{step} * {e} {more}" if step > 1 else f"{e} {more}" for e in "hw")
    at = [f"{step} * {p} + {o}" if step > 1 else f"{p} + {o}" for p, o in ("yi", "xj")]
    inner = "s += a[((image * c + q) * (%s) + %s) * (%s) + %s]"
    if pad:
        at = [f"{e} - {pad}" for e in at]
        tests = [f"{at[0]} >= 0 && {at[0]} < {high}", f"{at[1]} >= 0 && {at[1]} < {wide}"]
        rng.shuffle(tests)
        inner = f"if ({' && '.join(tests)}) " + inner
    body = (
        f"float s = {rng.choice(['0.0f', 'f[filter]'])};\n"
        "for (int q = 0; q < c; q++) {\n"
        f"for (int i = 0; i < {size}; i++) {{\nfor (int j = 0; j < {size}; ++j) {{\n"
        f"{inner % (high, at[0], wide, at[1])}"
        f" * f[((filter * c + q) * {size} + i) * {size} + j];\n}}\n}}\n}}\n"
        "out[((image * m + filter) * h + y) * w + x] = s;"
    )
    width, height = rng.choice([(8, 4), (16, 2), (8, 8)])
    guard = rng.choice(["if (x >= w || y >= h) return;\n%s", "if (x < w && y < h) {\n%s\n}"])
    text = (
        f"#pragma optiml launch layer grid(cdiv(w, {width}), cdiv(h, {height}), n * m) "
        f"block({width}, {height})\n"
        "__global__ void layer(const float* a, const float* f, float* out, int n, int m, int c, "
        "int w, int h) {\nint x = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "int y = blockIdx.y * blockDim.y + threadIdx.y;\n"
        f"int image = blockIdx.z / m, filter = blockIdx.z % m;\n{guard % body}\n}}\n"
    )
    arrays = {
        "a": Array("f4", ("n", "c", high, wide)),
        "f": Array("f4", ("m", "c", str(size * size))),
        "out": Array("f4", ("n", "m", "h", "w"), "zeros"),
    }
    one, other = sizes_of(rng, ["w", "h"], _SMALL)
    for sizes in (one, other):
        sizes |= {"n": rng.choice([1, 2]), "m": rng.choice([1, 2, 4]), "c": rng.choice([1, 3, 4])}
    return Made("layer", text, arrays, one, other)


def halo(rng: Random) -> Made:
    """A window over a plane as wide as vectors are, whose border is tested row by row or at once.

    Weights may be those of several filters, along z.
    """
    wide, high, step = rng.choice([2, 3, 3, 5, 7]), rng.choice([1, 2, 3]), rng.choice([1, 1, 2])
    left, above = rng.randrange(wide), rng.randrange(high)
    column, row = f"{step} * x + j - {left}", f"{step} * y + i - {above}"
    across, down = (
        rng.choice([f"{at} >= 0 && {at} < {end}", f"!({at} < 0 || {at} >= {end})"])
        for at, end in (("u", "n"), ("v", "m"))
    )
    body = rng.choice([
        "s += a[v * n + u];", "s += a[v * n + u] * f[(blockIdx.z * 3 + i) * 7 + j];",
        "s = fmaxf(s, a[v * n + u]);", "{\ns += a[v * n + u];\ncount += 1.0f;\n}",
    ])  # fmt: skip
    inner = rng.choice([
        f"int v = {row}, u = {column};\nif ({across} && {down}) {body}",
        f"int v = {row}, u = {column};\nif (!({down})) continue;\nif ({across}) {body}",
        f"const int u = {column}, v = {row};\nif ({down}) if ({across}) {body}",
    ])  # fmt: skip
    loops = f"for (int i = 0; i < {high}; ++i)\nfor (int j = 0; j < {wide}; j++) {{\n{inner}\n}}"
    if rng.choice([0, 0, 1]):
        loops = (
            f"for (int i = 0; i < {high}; ++i) {{\nint v = {row};\nif ({down}) {{\n"
            f"for (int j = 0; j < {wide}; j++) {{\nint u = {column};\nif ({across}) {body}\n}}\n}}\n}}"
        )
    if rng.choice([0, 0, 1]):
        loops = f"for (int q = 0; q < c; ++q) {{\n{loops}\n}}"
    text = (
        "#pragma optiml launch halo grid(cdiv(w, 8), cdiv(h, 4), c) block(8, 4)\n"
        "__global__ void halo(const float* a, const float* f, float* out, int w, int h, int n, int m, int c) {\n"
        "int x = blockIdx.x * blockDim.x + threadIdx.x;\nint y = blockIdx.y * blockDim.y + threadIdx.y;\n"
        f"if (x >= w || y >= h) return;\nfloat s = 0.0f, count = 0.0f;\n{loops}\n"
        "out[(blockIdx.z * h + y) * w + x] = s + count;\n}\n"
    )
    arrays = {
        "a": Array("f4", ("m", "n")), "f": Array("f4", ("c", "21")),
        "out": Array("f4", ("c", "h", "w"), "zeros"),
    }  # fmt: skip
    one, other = sizes_of(rng, ["w", "h"], (4, 8, 12, 16, 20, 36))
    for sizes in (one, other):
        extents = {e: step * sizes[a] + rng.choice([0, 0, 4]) for e, a in (("n", "w"), ("m", "h"))}
        sizes.update(extents, c=rng.choice([1, 2, 4]))
    return Made("halo", text, arrays, one, other)


def weighed(rng: Random) -> Made:
    """A filter whose weights each thread computes: along a row, down a column, of both, of data."""
    radius, start = rng.choice([1, 2, 3]), rng.choice(["-R", "0", "1 - R"])
    helper = rng.choice([
        "__device__ float fade(float v) { return v > 1.5f ? 0.5f : exp2f(-rintf(v)); }\n",
        "__device__ float fade(float v) {\nif (v < 0.5f) return 1.0f - v;\nreturn rintf(4.0f * sinf(v)) / 4.0f;\n}\n",
        "__device__ float fade(float v) {\nfloat s = 0.0f;\nfor (int k = 0; k < 3; ++k) s += rintf(cosf(v + k));\nreturn s / 4.0f;\n}\n",
    ])  # fmt: skip
    along = rng.choice(
        ["fade(fabsf(i * s))", "exp2f(-i * i)", "fade(fabsf(x * s - (x + i)))", "i / s"]
    )
    down = rng.choice(["fade(fabsf(j * s))", "1.0f", "exp2f(-j * j)", "(1 + j * j) / s"])
    value = rng.choice([
        "a[min(max(y + j, 0), h - 1) * w + min(max(x + i, 0), w - 1)]",
        "(y + j >= 0 && y + j < h && x + i >= 0 && x + i < w ? a[(y + j) * w + x + i] : 0.0f)",
    ])  # fmt: skip
    body = rng.choice([
        f"float wx = {along}, v = {value};\nsum += wx * wy * v;\nnorm += wx * wy;",
        f"const float wx = {along};\nsum += wx * wy * {value};\nnorm += wx;",
        f"float d = {along};\nfloat wx = d * exp2f(-rintf(d));\nsum += wx * {value} * wy;",
        f"if (i == j) continue;\nsum += {value} * wy * ({along});",
        f"float v = {value};\nfloat wx = fade(fabsf(v - a[y * w + x]));\nsum += wx * v;\nnorm += wx * ({along});",
    ])  # fmt: skip
    inner = f"for (int i = {start}; i <= R; i++) {{\n{body}\n}}"
    ends = rng.choice(["j <= R", "j <= R", "j < rounds"])
    loops = f"for (int j = -R; {ends}; ++j) {{\nfloat wy = {down};\n{inner}\n}}"
    body = f"float sum = 0.0f, norm = 1.0f;\n{loops}\nout[y * w + x] = sum / norm;"
    text = program(
        rng, "weighed", "const float* a, float* out, float s, int w, int h, int rounds",
        axes(rng, ("x", "w"), ("y", "h")), body, above=f"#define R {radius}\n{helper}",
    )  # fmt: skip
    arrays = {"a": Array("f4", ("h", "w")), "out": Array("f4", ("h", "w"), "zeros")}
    one, other = sizes_of(rng, ["w", "h"], _SMALL)
    for sizes in (one, other):
        sizes["rounds"] = rng.choice([0, 1, 3])
    scalars = {"s": rng.choice([0.5, 2.0, 0.25])}
    return Made("weighed", _signed(text), arrays, one, other, scalars)


FAMILY = (window, window, window, cross, cross, ends, layer, halo, weighed)
