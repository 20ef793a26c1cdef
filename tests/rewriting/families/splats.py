"""Parts of cells to which many threads add: complex numbers, colours, charges and momenta."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, program

_MANY = (1, 5, 31, 33, 64, 100, 130)
_WIDE = (5, 6, 8, 13, 16, 33)
_COMPLEX = "struct Complex {\n    float re, im;\n};\n"
_CELL = "struct __align__(16) Cell {\n    float mass, px, py, pz;\n};\n"
_DEPOSIT = """\
__device__ void deposit(float2* cell, float w, float2 v) {
    atomicAdd(&cell->x, w * v.x);
    atomicAdd(&cell->y, w * v.y);
}
"""


def _added(rng: Random, places: list[str], values: list[str]) -> str:
    """An atomic addition for each part, some orders of them."""
    parts = [f"atomicAdd({p}, {v});" for p, v in zip(places, values, strict=True)]
    if rng.choice([0, 0, 0, 1]):
        parts.reverse()
    return "\n".join(parts)


def _made(
    rng: Random, name: str, text: str, arrays: dict[str, Array], inout: tuple[str, ...]
) -> Made:
    first, others = ({"n": rng.choice(_MANY), "w": rng.choice(_WIDE)} for _ in range(2))
    return Made(name, text, arrays, first, others, inout=inout)


def visibilities(rng: Random) -> Made:
    """Complex values on a grid around the cell of each, by the taps of a kernel."""
    kind = rng.choice(["float2", "float2", "Complex", "float"])
    cell = rng.choice(["(y + j) * w + x + i", "(y + j) * w + (x + i)", "x + i + w * (y + j)"])
    taps = rng.choice(["f[j] * f[i]", "f[3 * j + i]", "f[i] * 0.5f"])
    parts = ["v.x", "v.y"] if kind != "Complex" else ["v.re", "v.im"]
    values = [f"t * {part}" for part in parts]
    match rng.randrange(4) if kind != "float" else 4:
        case 0:
            before = f"{kind}* cell = &g[{cell}];\n"
            places = [f"&cell->{part[2:]}" for part in parts]
        case 1:
            before = f"int at = {cell};\n"
            places = [f"&g[at].{part[2:]}" for part in parts]
        case 2:
            before, places = "", [f"&g[{cell}].{part[2:]}" for part in parts]
        case 3:
            before = f"float* cell = (float*)&g[{cell}];\n"
            places = rng.choice([["cell", "cell + 1"], ["&cell[0]", "&cell[1]"]])
        case _:
            before = f"int at = {cell};\n"
            places = rng.choice(
                [["&g[2 * at]", "&g[2 * at + 1]"], ["g + at * 2", "g + at * 2 + 1"]]
            )
    above = _COMPLEX if kind == "Complex" else ""
    added = _added(rng, places, values)
    if kind == "float2" and rng.choice([0, 0, 0, 1]):
        above, before, added = _DEPOSIT, "", f"deposit(&g[{cell}], t, v);"
    held = {"float": "float2 v = make_float2(s[2 * p], s[2 * p + 1]);"}.get(kind, f"const {kind} v = s[p];")  # fmt: skip
    guard = rng.choice(["", "if (x < 1 && y > 2) return;\n", "if (v.RE == 0.0f) return;\n"])
    guard = guard.replace("v.RE", parts[0])
    body = (
        f"int x = at_x[p], y = at_y[p];\n{held}\n{guard}for (int j = 0; j < 3; j++) {{\n"
        f"for (int i = 0; i < 3; i++) {{\nfloat t = {taps};\n{before}{added}\n}}\n}}"
    )
    parameters = f"const int* at_x, const int* at_y, const {kind}* s, const float* f, {kind}* g, int n, int w"  # fmt: skip
    text = program(rng, "visibilities", parameters, axes(rng, ("p", "n")), body, above=above)

    def whole(*shape: str) -> Array:
        return Array("re:f4 im:f4", shape) if kind == "Complex" else Array("f4", (*shape, "2"))

    arrays = {
        "at_x": Array("i4", ("n",), "below w"), "at_y": Array("i4", ("n",), "below w"),
        "s": whole("n"), "f": Array("f4", ("9",)), "g": whole("w + 3", "w"),
    }  # fmt: skip
    return _made(rng, "visibilities", text, arrays, ("g",))


def colours(rng: Random) -> Made:
    """Colours of points on an image, with how much of them there is beside."""
    three = rng.choice([0, 0, 1])
    kind = rng.choice(["float4", "float"])
    at = rng.choice(["y * w + x", "x + y * w", "(w - 1 - y) * w + x"])
    names = "xyzw"[: 3 if three else 4]
    weight = rng.choice(["1.0f", "a", "0.5f * a"])
    values = [f"a * c[3 * p + {k}]" for k in range(3)] + [weight]
    if kind == "float4":
        before = rng.choice(
            [f"float4* pixel = &image[{at}];\n", f"float4* pixel = image + ({at});\n"]
        )
        places = [f"&pixel->{name}" for name in names]
    else:
        base = rng.choice(["4 * ({})", "({}) * 4"]).format(at)
        before = f"int o = {base};\n"
        shown = rng.choice(["&image[o + {}]", "image + o + {}"])
        places = [shown.format(k) for k in range(len(names))]
        if rng.choice([0, 0, 1]):
            before, places = "", [f"&image[{base} + {k}]" for k in range(len(names))]
    added = _added(rng, places, values[: len(names)])
    test = rng.choice(["", "if (a > 0.25f) {{\n{}\n}}", "if (a <= 0.0f) return;\n{}"])
    added = test.format(f"{before}{added}") if test else f"{before}{added}"
    body = f"int x = at_x[p], y = at_y[p];\nfloat a = c[3 * n + p];\n{added}"
    parameters = f"const int* at_x, const int* at_y, const float* c, {kind}* image, int n, int w"
    text = program(rng, "colours", parameters, axes(rng, ("p", "n")), body)
    arrays = {
        "at_x": Array("i4", ("n",), "below w"), "at_y": Array("i4", ("n",), "below w"),
        "c": Array("f4", ("4 * n",)), "image": Array("f4", ("w", "w", "4")),
    }  # fmt: skip
    return _made(rng, "colours", text, arrays, ("image",))


def momenta(rng: Random) -> Made:
    """Masses and momenta of particles on the nodes around each."""
    around = rng.choice([2, 3])
    kind = rng.choice(["Cell", "float4"])
    names = ["mass", "px", "py", "pz"] if kind == "Cell" else [*"wxyz"]
    order = names if kind == "Cell" else ["x", "y", "z", "w"]
    values = dict(zip(names, ["k", "k * v.x", "k * v.y", "k * v.z"], strict=True))
    shown = rng.choice(["&grid[node].{}", "&(grid[node].{})", "&(grid + node)->{}"])
    some = order[: rng.choice([4, 4, 4, 2])]
    added = _added(rng, [shown.format(name) for name in some], [values[name] for name in some])
    node = rng.choice(["(y + b) * w + x + a", "x + a + (y + b) * w"])
    outside = rng.choice(["", "if (x + a >= w) continue;\n"])
    loops = (
        f"for (int b = 0; b < {around}; ++b) {{\nfor (int a = 0; a < {around}; ++a) {{\n{outside}"
        f"const float k = v.w * (a + 0.5f) * (b + 0.25f);\nint node = {node};\n{added}\n}}\n}}"
    )
    if rng.choice([0, 0, 1]):
        loops = (
            f"for (int q = 0; q < {around * around}; q++) {{\n"
            f"int a = q % {around}, b = q / {around};\n{outside}const float k = v.w * (a + 0.5f);\n"
            f"int node = {node};\n{added}\n}}"
        )
    body = f"int x = at_x[p], y = at_y[p];\nfloat4 v = s[p];\n{loops}"
    parameters = f"const int* at_x, const int* at_y, const float4* s, {kind}* grid, int n, int w"
    above = _CELL if kind == "Cell" else ""
    text = program(rng, "momenta", parameters, axes(rng, ("p", "n")), body, above=above)
    cells = Array("mass:f4 px:f4 py:f4 pz:f4", ("w + 3", "w"))
    arrays = {
        "at_x": Array("i4", ("n",), "below w"), "at_y": Array("i4", ("n",), "below w"),
        "s": Array("f4", ("n", "4")),
        "grid": cells if kind == "Cell" else Array("f4", ("w + 3", "w", "4")),
    }  # fmt: skip
    return _made(rng, "momenta", text, arrays, ("grid",))


def moments(rng: Random) -> Made:
    """Sums of each bin: how many there are, of what, and of its square."""
    count = rng.choice([2, 2, 4])
    values = rng.choice([["1.0f", "v", "v * v", "fabsf(v)"], ["v", "v * v", "1.0f", "-v"]])
    index = rng.choice(["bin[p]", "(bin[p] + 1) % w", "w - 1 - bin[p]"])
    base = rng.choice([f"{count} * b", f"b * {count}"])
    match rng.randrange(4):
        case 0:
            before, shown = f"float* own = sums + {base};\n", "own + {}"
        case 1:
            before, shown = f"float* own = &sums[{base}];\n", "&own[{}]"
        case 2:
            before, shown = "", f"&sums[{base} + {{}}]"
        case _:
            before, shown = f"const int o = {base};\n", "&sums[o + {}]"
    places = [shown.format(k) for k in range(count)]
    added = before + _added(rng, places, values[:count])
    counted = rng.choice(["", "\natomicAdd(&counts[b], 1);"])
    if rng.choice([0, 0, 1]):
        added = f"if (v > -1.0f) {{\n{added}\n}} else {{\n{added.replace('v', '(v + 1.0f)')}\n}}"
    body = f"int b = {index};\nfloat v = x[p];\n{added}{counted}"
    parameters = "const float* x, const int* bin, float* sums, int* counts, int n, int w"
    text = program(rng, "moments_of_bins", parameters, axes(rng, ("p", "n")), body)
    arrays = {
        "x": Array("f4", ("n",)), "bin": Array("i4", ("n",), "below w"),
        "sums": Array("f4", ("w", str(count))), "counts": Array("i4", ("w",)),
    }  # fmt: skip
    return _made(rng, "moments of bins", text, arrays, ("sums", "counts"))


def bonds(rng: Random) -> Made:
    """Forces between the two ends of each bond, on both of them."""
    flat = rng.choice([0, 1])
    names = "xy" if flat else rng.choice(["xyz", "xyz", "xyzw"])
    kind = "float2" if flat else "float4"
    held = "".join(f"float d{a} = u.{a} - v.{a};\n" for a in names)
    ends = [("i", ""), ("j", "-")]
    added = "\n".join(
        _added(
            rng, [f"&force[{end}].{a}" for a in names], [f"{sign}(s * d{a})" for a in names]
        ) for end, sign in ends
    )  # fmt: skip
    if rng.choice([0, 0, 1]):  # those of both ends in turn
        added = "\n".join(
            f"atomicAdd(&force[i].{a}, s * d{a});\natomicAdd(&force[j].{a}, -s * d{a});"
            for a in names
        )
    left = rng.choice(["", "if (i == j) return;\n", "if (s < 0.0f) return;\n"])
    body = (
        f"int i = from[p], j = to[p];\nfloat s = k[p];\n{left}"
        f"{kind} u = at[i], v = at[j];\n{held}{added}"
    )
    parameters = f"const int* from, const int* to, const float* k, const {kind}* at, {kind}* force, int n, int w"  # fmt: skip
    text = program(rng, "bonds", parameters, axes(rng, ("p", "n")), body)
    lanes = kind[-1]
    arrays = {
        "from": Array("i4", ("n",), "below w"), "to": Array("i4", ("n",), "below w"),
        "k": Array("f4", ("n",)), "at": Array("f4", ("w", lanes)), "force": Array("f4", ("w", lanes)),
    }  # fmt: skip
    return _made(rng, "bonds", text, arrays, ("force",))


def apart(rng: Random) -> Made:
    """Additions that are not beside each other, or of which something is asked."""
    body = rng.choice([
        "atomicAdd(&g[3 * b], v);\natomicAdd(&g[3 * b + 1], v * v);\natomicAdd(&g[3 * b + 2], 1.0f);",
        "atomicAdd(&g[2 * b], v);\natomicAdd(&g[2 * b + w], v);",
        "atomicAdd(&g[b], v);\natomicAdd(&g[b + 1], 1.0f - v);",
        "atomicAdd(&g[2 * b + 1], v);\natomicAdd(&g[2 * b + 2], v);",
        "atomicAdd(&g[b], v);\natomicAdd(&g[b + 2 * w], v);",
        "if (v > 0.0f) atomicAdd(&g[2 * b], v);\natomicAdd(&g[2 * b + 1], v);",
        "atomicAdd(&g[2 * b], v);\natomicMax(&h[b], p);\natomicAdd(&g[2 * b + 1], v);",
        "atomicAdd((double*)g + b, (double)v);\natomicAdd((double*)g + b + 1, 1.0);",
        "atomicAdd(&h[2 * b], 1);\natomicAdd(&h[2 * b + 1], p);",
        "float u = v;\natomicAdd(&g[2 * b], u++);\natomicAdd(&g[2 * b + 1], u);",
        "int o = 2 * b;\natomicAdd(&g[o++], v);\natomicAdd(&g[o], v);",
        "atomicAdd(&g[2 * b], v);\natomicAdd(&g[2 * b], v);\natomicAdd(&g[2 * b + 1], v);",
        "atomicAdd(&g[2 * (b / 2)], v);\natomicAdd(&g[2 * (b / 2) + 1 + b % 2], v);",
        "atomicAdd(g, v);\natomicAdd(g + 1, 1.0f);",
    ])  # fmt: skip
    parameters = "const float* x, const int* bin, float* g, int* h, int n, int w"
    text = program(
        rng, "apart", parameters, axes(rng, ("p", "n")), f"int b = bin[p];\nfloat v = x[p];\n{body}"
    )
    if "double" in body:
        text = text.replace("float* g,", "double* g,").replace("(double*)g", "g")
    letter = "f8" if "double* g," in text else "f4"
    arrays = {
        "x": Array("f4", ("n",)), "bin": Array("i4", ("n",), "below w"),
        "g": Array(letter, ("4 * w + 4",)), "h": Array("i4", ("2 * w",)),
    }  # fmt: skip
    return _made(rng, "apart splats", text, arrays, ("g", "h"))


FAMILY = (visibilities, colours, momenta, moments, bonds, apart)
