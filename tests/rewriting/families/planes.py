"""Columns, products, transposes and stencils: a thread for every element of a result."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import (
    EXTENTS,
    LONG_EXTENTS,
    Array,
    Made,
    axes,
    flat,
    indented,
    program,
    sizes_of,
)

from .rows import counting

_SMALL = tuple(e for e in EXTENTS if e < 40)


def columns(rng: Random) -> Made:
    """A thread for every column."""
    element = f"a[{flat(rng, 'i', 'cols', 'col')}]"
    step = rng.choice([f"s += {element};", f"s = fmaxf(s, {element});", f"s += {element} * x[i];", f"if ({element} > s) s = {element};"])  # fmt: skip
    body = f"float s = 0.0f;\n{counting(rng, step, 'i', 'rows')}\nout[col] = s;"
    if rng.choice([0, 0, 0, 0, 0, 1]):
        body = body.replace("out[col] = s;", counting(rng, f"b[{flat(rng, 'i', 'cols', 'col')}] = {element} - s;", "i", "rows"))  # fmt: skip
    over = axes(rng, ("col", "cols"))
    stores = "b[" in body
    parameters = f"const float* a, const float* x, float* {'b' if stores else 'out'}, int rows, int cols"  # fmt: skip
    text = program(rng, "columns", parameters, over, body)
    arrays = {"a": Array("f4", ("rows", "cols")), "x": Array("f4", ("rows",))}
    arrays |= {"b": Array("f4", ("rows", "cols"), "zeros")} if stores else {"out": Array("f4", ("cols",), "zeros")}  # fmt: skip
    return Made("columns", text, arrays, *sizes_of(rng, ["rows", "cols"], LONG_EXTENTS))


def product(rng: Random) -> Made:
    """A matrix times another, either of them transposed, scaled, biased, batched, or A times A^T."""
    across, down = rng.choice([0, 0, 1]), rng.choice([0, 0, 1])
    batched, symmetric = rng.choice([0, 0, 0, 1]), rng.choice([0, 0, 0, 0, 1])
    a = ("k", "m") if across else ("m", "k")
    b = ("n", "k") if down else ("k", "n")
    left = flat(rng, *(("p", "m", "row") if across else ("row", "k", "p")))
    right = flat(rng, *(("col", "k", "p") if down else ("p", "n", "col")))
    names, second = ["m", "n", "k"], "b"
    if symmetric:
        names, second, a, left, right = ["m", "k"], "a", ("m", "k"), "row * k + p", "col * k + p"
    apart = not (across or batched or symmetric) and rng.choice([0, 0, 0, 0, 1])
    if apart:
        names, a, left = [*names, "lda"], ("m", "lda"), flat(rng, "row", "lda", "p")
    wide = "m" if symmetric else "n"
    at = flat(rng, "row", wide, "col")
    ways = {"a": a, "c": ("m", wide)} | ({} if symmetric else {"b": b})
    if batched:
        prefix = {name: f"batch * {x} * {y} + " for name, (x, y) in ways.items()}
        left, at = prefix["a"] + left, prefix["c"] + at
        right = prefix[second] + right
    term = rng.choice([f"a[{left}] * {second}[{right}]"] * 3 + [f"{second}[{right}] * a[{left}]"])
    if rng.choice([0, 0, 0, 0, 1]):
        term = f"alpha * {term}"
    step = rng.choice([f"s += {term};", f"s += {term};", f"s = s + {term};", f"s = fmaf(a[{left}], {second}[{right}], s);"])  # fmt: skip
    start = rng.choice(["0.0f", "0.0f", "0", "alpha"])
    end, inout = f"c[{at}] = {rng.choice(['s', 's', 's', 'alpha * s', 's + bias[col]', 'fmaxf(s, 0.0f)'])};", ()  # fmt: skip
    if rng.choice([0, 0, 0, 1]):
        end, inout = f"c[{at}] = alpha * s + beta * c[{at}];", ("c",)
    body = f"float s = {start};\n{counting(rng, step, 'p', 'k')}\n{end}"
    wanted = [("col", wide), ("row", "m"), *([("batch", "batches")] if batched else [])]
    over = axes(rng, *wanted)
    pointers = "const float* a, " + ("" if symmetric else "const float* b, ")
    names += ["batches"] if batched else []
    sizes = ", ".join(f"int {n}" for n in names)
    parameters = f"{pointers}const float* bias, float* c, float alpha, float beta, {sizes}"
    text = program(rng, "product", parameters, over, body)
    first = ("batches",) if batched else ()
    arrays = {name: Array("f4", (*first, *shape)) for name, shape in ways.items()}
    arrays |= {"bias": Array("f4", (wide,))}
    if not inout:
        arrays["c"] = Array("f4", (*first, "m", wide), "zeros")
    one, other = sizes_of(rng, names, _SMALL)
    if batched:
        one["batches"], other["batches"] = rng.choice([1, 2, 3]), rng.choice([1, 2, 3])
    if rng.choice([0, 0, 0, 0, 0, 1]):
        one["k"] = rng.choice((130, 150))
    if apart:
        one["lda"], other["lda"] = (s["k"] + rng.choice([0, 1, 3, 4]) for s in (one, other))
    return Made("product", text, arrays, one, other, {"alpha": 0.5, "beta": -2.0}, inout)


_PAIRED = (
    "s += ({x} - {y}) * ({x} - {y});", "s += fabsf({x} - {y});", "s = fmaxf(s, {x} + {y});",
    "s = fminf({x} + {y}, s);", "float v = {x} + {y};\nif (v < s) s = v;", "s += {x} == {y};",
    "if ({x} > {y}) s += {x} * {y};", "s += w[p] * {x} * {y};", "s += ({x} - u[row]) * {y};",
    "s += ({x} - u[row]) * ({y} - v[col]);", "float d = {x} - mean;\ns += d * {y};",
    "s += {x} * {y} + scale;", "s += {x} * {y};\nmore += {x} * {x};", "s += ({x} + p) * {y};",
)  # fmt: skip


def paired(rng: Random) -> Made:
    """Rows combined with columns in other ways than a product, with values of theirs alone."""
    left, right = (f"{name}[{flat(rng, *((own, 'k', 'p') if rng.choice([0, 1]) else ('p', wide, own)))}]"
                   for name, own, wide in (("a", "row", "m"), ("b", "col", "n")))  # fmt: skip
    step = rng.choice(_PAIRED).format(x=left, y=right)
    above = "float mean = u[row];\n" * ("mean" in step) + "float scale = alpha * 0.5f;\n" * (
        "scale" in step
    )
    start = rng.choice(["0.0f", "alpha", "u[row]"])
    end = "c[row * n + col] = s + more;" if "more" in step else f"c[row * n + col] = {rng.choice(['s', 's * alpha', 's + v[col]'])};"  # fmt: skip
    extra = ", more = 0.0f" if "more" in step else ""
    body = f"{above}float s = {start}{extra};\n{counting(rng, step, 'p', 'k')}\n{end}"
    if rng.choice([0, 0, 0, 0, 0, 1]):  # a thread computes a row, or a column
        inner, wide, outer, high = rng.choice([("col", "n", "row", "m"), ("row", "m", "col", "n")])
        body = f"for (int {inner} = 0; {inner} < {wide}; ++{inner}) {{\n{body}\n}}"
        over = axes(rng, (outer, high))
    else:
        over = axes(rng, ("col", "n"), ("row", "m"))
    parameters = "const float* a, const float* b, const float* u, const float* v, const float* w, float* c, float alpha, int m, int n, int k"  # fmt: skip
    text = program(rng, "paired", parameters, over, body)
    shapes = {
        "a": ("m", "k") if "row * k" in left or "k * row" in left else ("k", "m"),
        "b": ("n", "k") if "col * k" in right or "k * col" in right else ("k", "n"),
    }
    arrays = {name: Array("f4", shape) for name, shape in shapes.items()}
    arrays |= {"u": Array("f4", ("m",)), "v": Array("f4", ("n",)), "w": Array("f4", ("k",))}
    arrays["c"] = Array("f4", ("m", "n"), "zeros")
    return Made("paired", text, arrays, *sizes_of(rng, ["m", "n", "k"], _SMALL), {"alpha": 0.5})


def layer(rng: Random) -> Made:
    """A layer with channels: each filter over each image, blocks numbered by pairs of these.

    Or threads by all of their outputs; the extents of filters are numbers, or said by sizes.
    """
    taps = {"p": rng.choice([1, 2, 3]), "q": rng.choice([1, 2, 3])}
    given = rng.choice([0, 0, 1])
    high, wide = taps if given else map(str, taps.values())
    block, flat = rng.choice(["16, 4", "8, 8", "32, 2"]), rng.choice([0, 0, 1])
    across, down = block.split(", ")
    here = "((image * filters + filter) * h + row) * w + col"
    numbered = rng.choice(
        ["int image = blockIdx.z / filters, filter = blockIdx.z % filters;",
         "int z = blockIdx.z;\nint filter = z % filters;\nint image = z / filters;"]
    )  # fmt: skip
    places = (
        "int col = blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"int row = blockIdx.y * blockDim.y + threadIdx.y;\n{numbered}\n"
    )
    guard, grid = "col < w && row < h", f"cdiv(w, {across}), cdiv(h, {down}), images * filters"
    if flat:
        places = (
            "int t = blockIdx.x * blockDim.x + threadIdx.x;\n"
            "int col = t % w, row = t / w % h, filter = t / (w * h) % filters, "
            "image = t / (w * h * filters);\n"
        )
        guard, grid, block = (
            "t < images * filters * h * w", "cdiv(images * filters * h * w, 64)", "64",
        )  # fmt: skip
    if flat or "int z" in places:
        here = rng.choice([here, "t" if flat else "(z * h + row) * w + col"])
    tap = f"((filter * channels + c) * {high} + i) * {wide} + j"
    at = f"((image * channels + c) * (h + {high} - 1) + row + i) * (w + {wide} - 1) + col + j"
    inner = f"s += x[{at}] * f[{tap}];"
    for name, extent in (("j", wide), ("i", high), ("c", "channels")):
        braced = rng.choice([0, 1])
        inner = f"for (int {name} = 0; {name} < {extent}; {rng.choice([f'++{name}', f'{name}++'])}) " + (
            f"{{\n{inner}\n}}" if braced else inner
        )  # fmt: skip
    end = rng.choice(["s", "fmaxf(s, 0.0f)", "s + bias[filter]"])
    body = f"{places}if ({guard}) {{\nfloat s = 0.0f;\n{inner}\nout[{here}] = {end};\n}}"
    text = (
        f"#pragma optiml launch layer grid({grid}) block({block})\n"
        "__global__ void layer(const float* x, const float* f, const float* bias, float* out, "
        f"int images, int channels, int filters, int h, int w, int p, int q) {{\n{indented(body)}\n}}\n"
    )  # fmt: skip
    arrays = {
        "x": Array("f4", ("images", "channels", f"h + {high} - 1", f"w + {wide} - 1")),
        "f": Array("f4", ("filters", "channels", high, wide)),
        "bias": Array("f4", ("filters",)),
        "out": Array("f4", ("images", "filters", "h", "w"), "zeros"),
    }
    one, other = sizes_of(rng, ["filters", "w"], _SMALL)
    for sizes in (one, other):
        few = {"images": (1, 2), "channels": (1, 3, 4, 8), "h": (1, 2, 5)}
        drawn = {name: rng.choice(values) for name, values in few.items()}
        sizes.update(drawn, p=rng.choice([1, 2, 3]) if given else taps["p"], q=taps["q"])
    return Made("layer", text, arrays, one, other)


def vector(rng: Random) -> Made:
    """A matrix times a vector, of its columns or of its rows; distances of all pairs."""
    if rng.choice([0, 1]):
        element = f"a[{flat(rng, 'p', 'm', 'row')}]" if rng.choice([0, 1]) else f"a[{flat(rng, 'row', 'k', 'p')}]"  # fmt: skip
        body = f"float s = 0.0f;\n{counting(rng, f's += {element} * x[p];', 'p', 'k')}\ny[row] = s;"
        parameters = "const float* a, const float* x, float* y, int m, int k"
        text = program(rng, "vector", parameters, axes(rng, ("row", "m")), body)
        shape = ("k", "m") if "p * m" in element or "m * p" in element else ("m", "k")
        arrays = {"a": Array("f4", shape), "x": Array("f4", ("k",)), "y": Array("f4", ("m",), "zeros")}  # fmt: skip
        return Made("vector", text, arrays, *sizes_of(rng, ["m", "k"], LONG_EXTENTS))
    step = rng.choice(["float d = x[i] - x[p];\ns += d * d;", "if (p != i) s += x[p] * x[i];", "s += fabsf(x[p] - x[i]);"])  # fmt: skip
    body = f"float s = 0.0f;\n{counting(rng, step, 'p', 'm')}\ny[i] = s;"
    text = program(rng, "pairs", "const float* x, float* y, int m", axes(rng, ("i", "m")), body)
    arrays = {"x": Array("f4", ("m",)), "y": Array("f4", ("m",), "zeros")}
    return Made("pairs", text, arrays, *sizes_of(rng, ["m"], LONG_EXTENTS))


def moved(rng: Random) -> Made:
    """Transposes, permuted volumes, mirrored rows, gathers and scatters through an order."""
    kind = rng.randrange(6)
    scale = rng.choice(["", "", " * 2.0f", " + 1.0f"])
    if kind < 3:
        source, target = flat(rng, "row", "cols", "col"), flat(rng, "col", "rows", "row")
        if rng.choice([0, 0, 0, 0, 0, 1]):
            source, target = target, source
        body = f"out[{target}] = a[{source}]{scale};"
        flipped = source.startswith("col *") or "rows" in source
        if rng.choice([0, 0, 0, 1]):
            body = f"float v = a[{source}];\nif (v > 0.0f) v = v * 0.5f;\nout[{target}] = v;"
        shapes = (("cols", "rows"), ("rows", "cols")) if flipped else (("rows", "cols"), ("cols", "rows"))  # fmt: skip
        over = axes(rng, ("col", "cols"), ("row", "rows"))
        text = program(
            rng, "transpose", "const float* a, float* out, int rows, int cols", over, body
        )
        arrays = {"a": Array("f4", shapes[0]), "out": Array("f4", shapes[1], "zeros")}
        return Made("transpose", text, arrays, *sizes_of(rng, ["rows", "cols"]))
    if kind == 3:
        body = f"out[{rng.choice(['(x * ny + y) * nz + z', '(x * nz + z) * ny + y', '(y * nz + z) * nx + x', '(z * nx + x) * ny + y'])}] = a[(z * ny + y) * nx + x]{scale};"  # fmt: skip
        over = axes(rng, ("x", "nx"), ("y", "ny"), ("z", "nz"))
        text = program(rng, "permuted", "const float* a, float* out, int nx, int ny, int nz", over, body)  # fmt: skip
        arrays = {"a": Array("f4", ("nz", "ny", "nx")), "out": Array("f4", ("nz * ny * nx",), "zeros")}  # fmt: skip
        return Made(
            "permuted", text, arrays, *sizes_of(rng, ["nx", "ny", "nz"], (1, 2, 3, 5, 8, 13))
        )
    if kind == 4:
        body = rng.choice([f"out[i] = a[at[i]]{scale};", f"out[at[i]] = a[i]{scale};", f"int t = at[i];\nout[t] = a[i] + a[t]{scale};"])  # fmt: skip
        text = program(rng, "indexed", "const float* a, const int* at, float* out, int n", axes(rng, ("i", "n")), body)  # fmt: skip
        arrays = {"a": Array("f4", ("n",)), "at": Array("i4", ("n",), "order"), "out": Array("f4", ("n",), "zeros")}  # fmt: skip
        return Made("indexed", text, arrays, *sizes_of(rng, ["n"]))
    body = f"out[{flat(rng, 'row', 'cols', 'cols - 1 - col')}] = a[{flat(rng, 'row', 'cols', 'col')}]{scale};"  # fmt: skip
    over = axes(rng, ("col", "cols"), ("row", "rows"))
    text = program(rng, "mirrored", "const float* a, float* out, int rows, int cols", over, body)
    arrays = {"a": Array("f4", ("rows", "cols")), "out": Array("f4", ("rows", "cols"), "zeros")}
    return Made("mirrored", text, arrays, *sizes_of(rng, ["rows", "cols"]))


def stencil(rng: Random) -> Made:
    """Neighbours: of a line, of a plane, with weights; what is outside is left out or clamped."""
    radius = rng.choice([1, 1, 2, 3])
    weighted = rng.choice([0, 1])
    weight = "w[d + R]" if weighted else "0.5f"
    above = rng.choice([f"#define R {radius}\n", f"constexpr int R = {radius};\n"])
    dims = rng.choice([1, 1, 2])
    if dims == 1:
        inner = rng.choice([
            f"int at = i + d;\nif (at >= 0 && at < n) s += {weight} * a[at];",
            f"int at = min(max(i + d, 0), n - 1);\ns += {weight} * a[at];",
            f"if (i + d >= 0 && i + d < n) {{\ns += a[i + d] * {weight};\n}}",
        ])  # fmt: skip
        body = f"float s = 0.0f;\nfor (int d = -R; d <= R; ++d) {{\n{inner}\n}}\nout[i] = s;"
        over, parameters = (
            axes(rng, ("i", "n")),
            "const float* a, const float* w, float* out, int n",
        )
        text = program(rng, "stencil", parameters, over, body, above=above).replace("unsigned int i ", "int i ").replace("unsigned i ", "int i ")  # fmt: skip
        arrays = {"a": Array("f4", ("n",)), "w": Array("f4", (str(2 * radius + 1),)), "out": Array("f4", ("n",), "zeros")}  # fmt: skip
        return Made("stencil", text, arrays, *sizes_of(rng, ["n"]))
    at = flat(rng, "y + dy", "cols", "x + dx")
    if rng.choice([0, 1]):
        inner = f"if (y + dy >= 0 && y + dy < rows && x + dx >= 0 && x + dx < cols) {{\ns += a[{at}] * w[(dy + R) * (2 * R + 1) + dx + R];\n}}"  # fmt: skip
        body = f"float s = 0.0f;\nfor (int dy = -R; dy <= R; ++dy) {{\nfor (int dx = -R; dx <= R; ++dx) {{\n{inner}\n}}\n}}\nout[y * cols + x] = s;"  # fmt: skip
    else:
        at = "y * cols + x"
        body = f"if (x > 0 && x < cols - 1 && y > 0 && y < rows - 1) {{\nout[{at}] = 0.25f * (a[{at} - 1] + a[{at} + 1] + a[{at} - cols] + a[{at} + cols]) + w[0];\n}} else {{\nout[{at}] = a[{at}];\n}}"  # fmt: skip
    over = axes(rng, ("x", "cols"), ("y", "rows"))
    text = program(rng, "stencil", "const float* a, const float* w, float* out, int rows, int cols", over, body, above=above)  # fmt: skip
    text = text.replace("unsigned int ", "int ").replace("unsigned ", "int ")
    arrays = {"a": Array("f4", ("rows", "cols")), "w": Array("f4", (str((2 * radius + 1) ** 2),)), "out": Array("f4", ("rows", "cols"), "zeros")}  # fmt: skip
    return Made("stencil_2d", text, arrays, *sizes_of(rng, ["rows", "cols"], (1, 2, 3, 5, 8, 13, 17, 31)))  # fmt: skip


FAMILY = (
    columns,
    product,
    product,
    product,
    paired,
    paired,
    layer,
    vector,
    vector,
    moved,
    moved,
    stencil,
)
