"""Element by element: one to three axes, several arrays, strides, structs, small and large types."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import LINE_EXTENTS, Array, Made, axes, flat, program, sizes_of

_C_TYPES = {"f4": "float", "f8": "double", "i4": "int", "u1": "unsigned char", "f2": "__half"}


def value(rng: Random, leaves: list[str], depth: int = 2) -> str:
    """An expression of floats that is exact, and whose magnitude stays in the hundreds."""
    if depth == 0 or rng.choice([0, 0, 1]):
        return rng.choice([*leaves, *leaves, *leaves, "0.5f", "1.0f", "2.0f", "0.5", "2.0", "3"])
    one, other = value(rng, leaves, depth - 1), value(rng, leaves, depth - 1)
    return rng.choice(
        [
            f"{one} + {other}",
            f"({one} - {other})",
            f"({one}) * ({other})",
            f"fmaxf({one}, (float)({other}))",
            f"fminf({other}, {one})",
            f"fabsf({one})",
            f"(({one}) > ({other}) ? {one} : 0.0f)",
            f"square({one})",
        ]
    )


SQUARE = "__device__ float square(float v) { return v * v; }\n"


def with_square(rng: Random, body: str) -> str:
    """The helper, where the body calls it."""
    if "square(" not in body:
        return ""
    return rng.choice([SQUARE, "#define square(v) ((v) * (v))\n", SQUARE.replace("__device__", "__device__ __forceinline__")])  # fmt: skip


def line(rng: Random) -> Made:
    """One axis; arrays of other types, in place, an offset."""
    dtype = rng.choice(["f4", "f4", "f4", "f8", "i4", "u1", "f2"])
    read = {"f2": "__half2float(x[i])", "f4": "x[i]"}.get(dtype, "(float)x[i]")
    expression = value(rng, [read, "y[i]", "a"])
    inplace = rng.choice([0, 0, 1])
    stored = f"y[i] = {expression};" if inplace else f"out[i] = {expression};"
    if rng.choice([0, 0, 1]):
        shown = rng.choice(["v", "v * 0.5f", "v > 0.0f ? v : 0.0f"])
        stored = f"float v = {expression};\n{'y' if inplace else 'out'}[i] = {shown};"
    if rng.choice([0, 0, 0, 1]):
        stored = f"if (y[i] > {rng.choice(['0.0f', 'a', '-1.0f'])}) {{\n{stored}\n}}"
    if dtype == "f4" and not inplace and rng.choice([0, 0, 1]):
        factor = rng.choice(["0.5", "2.0", "1.25", "-1.5"])
        stored = stored.replace("= ", f"= {factor} * ", 1)
    spare = "" if inplace else ", float* out"
    held = "const " if not inplace else ""
    parameters = f"const {_C_TYPES[dtype]}* x, {held}float* y{spare}, float a, int n"
    above = "#include <cuda_fp16.h>\n" if dtype == "f2" else ""
    text = program(
        rng,
        "line",
        parameters,
        axes(rng, ("i", "n")),
        stored,
        above=above + with_square(rng, stored),
    )
    arrays = {"x": Array(dtype, ("n",)), "y": Array("f4", ("n",))}
    if not inplace:
        arrays["out"] = Array("f4", ("n",), "zeros")
    sizes, others = sizes_of(rng, ["n"], LINE_EXTENTS)
    scalars = {"a": rng.choice([0.5, -1.25, 2.0])}
    found = Made("map", text, arrays, sizes, others, scalars, ("y",) if inplace else ())
    return found if inplace or rng.choice([0, 0, 1]) else found.aliased("y", "out")


def strided(rng: Random) -> Made:
    """Every so many elements, or groups of a few that lie together."""
    group = rng.choice([2, 3, 4])
    lanes = [f"x[{group} * i + {at}]" if at else f"x[i * {group}]" for at in range(group)]
    expression = value(rng, lanes)
    body = f"out[i] = {expression};"
    if rng.choice([0, 1]):
        body = "\n".join(
            f"out[{group} * i + {at}] = {value(rng, lanes, 1)};" for at in range(group)
        )
    elif rng.choice([0, 0, 1]):
        body = f"out[n - 1 - i] = {expression};"
    text = program(
        rng, "strided", "const float* x, float* out, int n", axes(rng, ("i", "n")), body,
        above=with_square(rng, body),
    )  # fmt: skip
    count = f"{group} * n" if f"out[{group}" in body else "n"
    arrays = {"x": Array("f4", (f"{group} * n",)), "out": Array("f4", (count,), "zeros")}
    return Made("strided", text, arrays, *sizes_of(rng, ["n"], LINE_EXTENTS))


def vectors(rng: Random) -> Made:
    """Elements of a built-in vector type."""
    lanes = rng.choice([2, 4])
    fields = "xyzw"[:lanes]
    parts = [value(rng, [f"v.{f}" for f in fields], 1) for _ in fields]
    if rng.choice([0, 1]):
        kind, stored = "float", f"out[i] = {value(rng, [f'v.{f}' for f in fields])};"
        out = ("n",)
    else:
        kind, out = f"float{lanes}", ("n", str(lanes))
        stored = f"out[i] = make_float{lanes}({', '.join(parts)});"
    body = f"float{lanes} v = p[i];\n{stored}"
    text = program(
        rng, "vectors", f"const float{lanes}* p, {kind}* out, int n", axes(rng, ("i", "n")), body,
        above=with_square(rng, body),
    )  # fmt: skip
    arrays = {"p": Array("f4", ("n", str(lanes))), "out": Array("f4", out, "zeros")}
    return Made("vectors", text, arrays, *sizes_of(rng, ["n"], LINE_EXTENTS))


def structs(rng: Random) -> Made:
    """An array of structs."""
    fields = "xyzw"[: rng.choice([2, 3, 4])]
    body = f"out[i] = {value(rng, [f'p[i].{f}' for f in fields])};"
    inplace = rng.choice([0, 0, 1])
    if inplace:
        body = f"p[i].{fields[0]} = {value(rng, [f'p[i].{f}' for f in fields[1:]])};"
    members = " ".join(f"float {f};" for f in fields)
    if rng.choice([0, 1]):
        members = f"float {', '.join(fields)};"
    dtype = " ".join(f"{f}:f4" for f in fields)
    parameters = "Item* p, int n" if inplace else "const Item* p, float* out, int n"
    text = program(
        rng, "structs", parameters, axes(rng, ("i", "n")), body,
        above=f"struct Item {{ {members} }};\n" + with_square(rng, body),
    )  # fmt: skip
    arrays = {"p": Array(dtype, ("n",))}
    if not inplace:
        arrays["out"] = Array("f4", ("n",), "zeros")
    sizes, others = sizes_of(rng, ["n"], LINE_EXTENTS)
    return Made("structs", text, arrays, sizes, others, {}, ("p",) if inplace else ())


def plane(rng: Random) -> Made:
    """Two axes: rows and columns, a bias, either in place or not."""
    at = flat(rng, "row", "cols", "col")
    bias = rng.choice(["bias[col]", "bias[row]"])
    inplace = rng.choice([0, 0, 1])
    target = "a" if inplace else "out"
    body = f"{target}[{at}] = {value(rng, [f'a[{at}]', bias])};"
    if rng.choice([0, 1]):
        body = f"int at = {at};\n" + body.replace(f"[{at}]", "[at]")
    over = axes(rng, ("col", "cols"), ("row", "rows"))
    held, spare = ("", "") if inplace else ("const ", ", float* out")
    text = program(
        rng, "plane", f"{held}float* a, const float* bias{spare}, int rows, int cols", over, body,
        above=with_square(rng, body),
    )  # fmt: skip
    arrays = {
        "a": Array("f4", ("rows", "cols")),
        "bias": Array("f4", ("cols" if "col]" in bias else "rows",)),
    }
    if not inplace:
        arrays["out"] = Array("f4", ("rows", "cols"), "zeros")
    sizes, others = sizes_of(rng, ["rows", "cols"])
    found = Made("plane", text, arrays, sizes, others, {}, ("a",) if inplace else ())
    return found if inplace or rng.choice([0, 0, 1]) else found.aliased("a", "out")


def flattened(rng: Random) -> Made:
    """One axis over a plane: rows and columns are its quotient and rest."""
    across, along = flat(rng, "col", "rows", "row"), flat(rng, "row", "cols", "col")
    at = rng.choice(["i", along, along, across, across])
    bias = rng.choice(["bias[col]", "bias[row]"])
    source = f"a[{rng.choice(['i', along, along, across, across])}]"
    slow, fast, count = rng.choice([("row", "col", "cols"), ("col", "row", "rows")])
    rest = rng.choice(["% {1}", "% {1}", "- {0} * {1}"]).format(slow, count)
    body = (
        f"int {slow} = i / {count};\nint {fast} = i {rest};\n"
        f"out[{at}] = {value(rng, [source, bias])};"
    )
    text = program(
        rng, "flattened", "const float* a, const float* bias, float* out, int rows, int cols",
        axes(rng, ("i", "rows * cols")), body, above=with_square(rng, body),
    )  # fmt: skip
    arrays = {
        "a": Array("f4", ("rows", "cols")),
        "bias": Array("f4", ("cols" if "col]" in bias else "rows",)),
        "out": Array("f4", ("rows * cols",), "zeros"),
    }
    return Made("flattened", text, arrays, *sizes_of(rng, ["rows", "cols"], (1, 3, 5, 8, 13, 31)))


def coarse(rng: Random) -> Made:
    """Some elements a thread: those that lie together, or a block apart."""
    per = rng.choice([2, 4])
    apart = rng.choice([0, 1])
    place = (
        f"int at = i + d * {rng.choice(['parts', '((n + P - 1) / P)'])};"
        if apart
        else "int at = i * P + d;"
    )
    place = place.replace("parts", "((n + P - 1) / P)")
    body = (
        f"for (int d = 0; d < P; ++d) {{\n{place}\n"
        f"if (at < n) out[at] = {value(rng, ['x[at]', '0.5f'])};\n}}"
    )
    text = program(
        rng, "coarse", "const float* x, float* out, int n", axes(rng, ("i", f"(n + {per - 1}) / {per}")),
        body, above=f"#define P {per}\n" + with_square(rng, body),
    )  # fmt: skip
    arrays = {"x": Array("f4", ("n",)), "out": Array("f4", ("n",), "zeros")}
    return Made("coarse", text, arrays, *sizes_of(rng, ["n"], LINE_EXTENTS))


def volume(rng: Random) -> Made:
    """Three axes."""
    at = rng.choice(["(z * ny + y) * nx + x", "z * ny * nx + y * nx + x", "x + nx * (y + ny * z)"])
    leaves = [f"a[{at}]", rng.choice(["scale[z]", "scale[z]", "0.5f"])]
    body = f"out[{at}] = {value(rng, leaves)};"
    over = axes(rng, ("x", "nx"), ("y", "ny"), ("z", "nz"))
    text = program(
        rng, "volume", "const float* a, const float* scale, float* out, int nx, int ny, int nz",
        over, body, above=with_square(rng, body),
    )  # fmt: skip
    arrays = {
        "a": Array("f4", ("nz", "ny", "nx")),
        "scale": Array("f4", ("nz",)),
        "out": Array("f4", ("nz", "ny", "nx"), "zeros"),
    }
    return Made(
        "volume", text, arrays, *sizes_of(rng, ["nx", "ny", "nz"], (1, 2, 3, 5, 7, 8, 13, 17))
    )


def rough(rng: Random) -> Made:
    """Arithmetic that rounds: functions, divisions, double constants."""
    expression = rng.choice(
        [
            "expf(x[i]) / (1.0f + y[i] * y[i])",
            "1.0 / (1.0 + exp(-x[i]))",
            "sqrt(y[i]) * 0.7978845608 + x[i]",
            "x[i] * 0.1 + 0.3",
            "tanhf(x[i]) * a",
            "0.5 * x[i] * (1.0 + tanh(0.7978845608 * (x[i] + 0.044715 * x[i] * x[i] * x[i])))",
            "powf(y[i], 2.0) + 1e-3",
            "logf(y[i]) / 3.0",
            "x[i] / 3 + a / 7.0",
            "x[i] / sqrtf(y[i]) + powf(y[i], 1.5f)",
            "powf(x[i] - y[i], 2) / (float)n",
            "log2f(y[i]) * exp10f(x[i]) - tanhf(x[i] / y[i])",
        ]
    )
    body = f"out[i] = {expression};"
    text = program(
        rng, "rough", "const float* x, const float* y, float* out, float a, int n",
        axes(rng, ("i", "n")), body,
    )  # fmt: skip
    arrays = {
        "x": Array("f4", ("n",)),
        "y": Array("f4", ("n",), "positive"),
        "out": Array("f4", ("n",), "zeros"),
    }
    sizes, others = sizes_of(rng, ["n"], LINE_EXTENTS)
    return Made("rough", text, arrays, sizes, others, {"a": 0.75}, exact=False)


def folded(rng: Random) -> Made:
    """An element and the one a half, or a third, of the array behind it: a size divided is a place."""
    parts = rng.choice([2, 2, 3])
    own, far = rng.choice([("x[i]", f"x[i + n / {parts}]"), ("x[i]", "x[i + part]")])
    body = f"out[i] = {value(rng, [own, far])};"
    if rng.choice([0, 1]):
        body += f"\nout[i + n / {parts}] = {value(rng, [own, far], 1)};"
    if "part]" in body:
        body = f"int part = n / {parts};\n{body}"
    text = program(
        rng, "folded", "const float* x, float* out, int n", axes(rng, ("i", f"n / {parts}")), body,
        above=with_square(rng, body),
    )  # fmt: skip
    arrays = {"x": Array("f4", ("n",)), "out": Array("f4", ("n",), "zeros")}
    sizes, others = sizes_of(rng, ["n"], [parts * n + rng.choice([0, 0, 1]) for n in LINE_EXTENTS])
    return Made("folded", text, arrays, sizes, others, {}, ("out",))  # the last stays, of odd ones


FAMILY = (
    line,
    line,
    folded,
    strided,
    vectors,
    structs,
    plane,
    flattened,
    flattened,
    coarse,
    volume,
    rough,
    rough,
)
