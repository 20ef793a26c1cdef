"""Moving sums, counts and extremes over wide windows, what only looks like one, and upsampling."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, flat, program, sizes_of

_LINES = (1, 2, 5, 16, 31, 40, 64, 65, 100, 128, 130, 256, 259, 300)
_SMALL = (1, 3, 5, 8, 13, 21, 33, 40)
_WIDE = (4, 4, 5, 6, 8, 11, 17)


def _combined(rng: Random, element: str) -> tuple[str, str, str]:
    """What a round does, how it begins, and what is stored."""
    return rng.choice([
        (f"s += {element};", "float s = 0.0f;", "s"),
        (f"s += {element};", "float s = bias;", "s * 0.5f"),
        (f"s = s + {element} * {element};", "double s = 0;", "(float)s"),
        (f"s -= {element};", "float s = a[{here}];", "s"),
        (f"s = fmaxf(s, {element});", "float s = -1e30f;", "s"),
        (f"s = fminf({element}, s);", "float s = a[{here}];", "s"),
        (f"if ({element} > s) s = {element};", "float s = -3.0f;", "s"),
        (f"float v = {element};\ns = v < s ? v : s;", "float s = a[{here}];", "s"),
        (f"s += {element}; c++;", "float s = 0.0f; int c = 0;", "s + c"),
        (f"s += {element} > 0.5f ? 1 : 0;", "int s = 0;", "s"),
        (f"if ({element} < 0.0f) continue;\ns += {element};", "float s = 0.0f;", "s"),
        (f"s |= 1u << ((int)(8 * {element}) & 31);", "unsigned s = 0;", "(float)(s & 0xffff)"),
        # What is no window, or one that only looks like it.
        (f"s += {element} * f[k0];", "float s = 0.0f;", "s"),
        (f"s += {element} - a[{{here}}];", "float s = 0.0f;", "s"),
        (f"s += fabsf({element} - centre);", "float s = 0.0f; float centre = a[{here}];", "s"),
        (f"if ({element} > s) {{ s = {element}; at = k0; }}", "float s = -9.0f; int at = 0;", "at"),
        (f"s = 0.5f * s + {element};", "float s = 0.0f;", "s"),
        (f"if ({element} > 1.5f) break;\ns += {element};", "float s = 0.0f;", "s"),
        (f"s += {element}; out[{{here}}] = s;", "float s = 0.0f;", "s"),
    ])  # fmt: skip


def _line(rng: Random, place: str, extent: str) -> tuple[str, str, str, str]:
    """The head of a loop over a window, what stands before it, in each round, and its place."""
    test = rng.choice(
        [f"if (p >= 0 && p < {extent}) {{\n@\n}}", f"if (p < 0 || p >= {extent}) continue;\n@"]
    )
    near = rng.choice([
        f"int p = {place} + d;", f"int p = d + {place};", f"int p; p = {place} + d;",
        f"int at = {place}; int p = at + d;", f"long p = {place} + d;",
    ])  # fmt: skip
    inside = rng.choice([
        f"int p = min(max({place} + d, 0), {extent} - 1);",
        f"int p = {place} + d;\nif (p < 0) p = 0;\nif (p >= {extent}) p = {extent} - 1;",
        f"int p = ({place} + d + 64 * {extent}) % {extent};",
    ])  # fmt: skip
    first = rng.choice([f"max({place} - r, 0)", f"({place} > r ? {place} - r : 0)"])
    last = f"min({place} + r, {extent} - 1)"
    over = rng.choice(["for (int d = -r; d <= r; d++)", "for (int d = -r; d < r + 1; ++d)"])
    return rng.choice([
        ("", over, f"{near}\n{test}", "d + r"),
        ("", over, f"{inside}\n@", "d + r"),
        ("", "for (int d = r; d >= -r; d--)", f"{near}\n{test}", "d + r"),
        ("", "for (int d = 0; d < r; d++)", f"int p = {place} - d;\n{test}", "d"),
        ("", "for (int d = 0; d < r; d++)", f"int p = {place} - r + 1 + d;\n{test}", "d"),
        ("", "for (int d = 0; d < 2 * r; d += 2)", f"{near}\n{test}", "d"),
        ("", f"for (int p = {place} - r; p <= {place} + r; p++)", test, f"p - {place} + r"),
        ("", f"for (int p = {first}; p <= {last}; p++)", "@", f"p - {place} + r"),
        (f"int lo = {first}, hi = {last};", "for (int p = lo; p <= hi; ++p)", "@", "p - lo"),
        ("", "for (int d = 0; d < r; d++)", f"int p = 2 * {place} + d;\n{test}", "d"),
        ("", f"for (int d = 0; d <= {place} % (r + 1); d++)", f"int p = {place} + d;\n{test}", "d"),
    ])  # fmt: skip


def moving(rng: Random) -> Made:
    """A window along a line, or along the rows of a plane."""
    dims = rng.choice([1, 1, 2])
    here = "x" if dims == 1 else flat(rng, "y", "w", "x")
    element = "a[p]" if dims == 1 else f"a[{flat(rng, 'y', 'w', 'p')}]"
    update, begin, stored = _combined(rng, element)
    above, head, body, number = _line(rng, "x", "w")
    inner = body.replace("@", update.replace("k0", number))
    whole = f"{begin}\n{above}\n{head} {{\n{inner}\n}}\nout[here] = {stored};"
    whole = whole.replace("{here}", "here").replace("here", here)
    return _made(rng, "moving", dims, whole)


def plane(rng: Random) -> Made:
    """A window in two directions, in either order."""
    here = flat(rng, "y", "w", "x")
    update, begin, stored = _combined(rng, "a[q * w + p]")
    above, head, body, number = _line(rng, "x", "w")
    over = "for (int e = -r; e <= r; ++e)"
    down = rng.choice([
        "int q = y + e;\nif (q >= 0 && q < h) {\n@\n}", "int q = min(max(y + e, 0), h - 1);\n@",
    ])  # fmt: skip
    if "continue" not in f"{update}{body}" and rng.choice([0, 1]):
        loops = f"{head} {{\n{body.replace('@', over + ' {@}')}\n}}".replace("@", down)
    else:
        loops = f"{over} {{\n{down.replace('@', head + ' {@}')}\n}}".replace("@", body)
    loops = loops.replace("@", update)
    whole = f"{begin}\n{above}\n{loops}\nout[here] = {stored};".replace("k0", number)
    whole = whole.replace("{here}", "here").replace("here", here)
    return _made(rng, "plane_window", 2, whole)


def upsampled(rng: Random) -> Made:
    """A transposed convolution: the rounds whose place is a multiple of the stride."""
    stride = rng.choice(["by", "by", "2", "3"])
    down, right = rng.choice([("y + pad - e", "x + pad - d"), ("y - e + pad", "pad + (x - d)")])
    inside = f"u / {stride} < h && v / {stride} < w && u >= 0 && v >= 0"
    element = f"a[(u / {stride}) * w + v / {stride}] * f[e * r + d]"
    locals_ = f"int u = {down}, v = {right};"
    multiples = [f"u % {stride} == 0", f"v % {stride} == 0"]
    rng.shuffle(multiples)
    stays = " && ".join(multiples)
    update = rng.choice([f"if ({inside}) s += {element};", f"s += {inside} ? {element} : 0.0f;"])
    over, across = "for (int e = 0; e < r; e++)", "for (int d = 0; d < r; ++d)"
    test, other = multiples
    body = rng.choice([
        f"{over} {across} {{\n{locals_}\nif ({stays}) {{\n{update}\n}}\n}}",
        f"{over} {across} {{\n{locals_}\nif ({stays} && {inside}) s += {element};\n}}",
        f"{across} {over} {{\n{locals_}\nif (!({test}) || !({other})) continue;\n{update}\n}}",
        f"{over} {{\nint u = {down};\nif (u % {stride}) continue;\n{across} {{\nint v = {right};\n@}}\n}}",
        f"{over} {across} {{\n{locals_}\nif (u % {stride} == 0) {{\n{update}\n}}\n}}",
        f"{over} {{\n{across} {{\n{locals_}\nif ({stays}) {{\n{update}\n}}\n}}\ns += 1.0f;\n}}",
    ])  # fmt: skip
    body = body.replace("@", f"if (v < 0) continue;\nif (v % {stride} != 0) continue;\n{update}\n")
    body = f"float s = 0.0f;\n{body}\nout[y * w + x] = s;"
    parameters = "const float* a, const float* f, float* out, int w, int h, int r, int by, int pad"
    text = program(rng, "upsampled", parameters, axes(rng, ("x", "w"), ("y", "h")), body)
    arrays = {
        "a": Array("f4", ("h", "w")),
        "f": Array("f4", ("36",)),
        "out": Array("f4", ("h", "w")),
    }
    one, other = sizes_of(rng, ["w", "h"], (1, 3, 5, 8, 13, 21))
    for sizes in (one, other):
        pad = rng.choice([0, 1, 2])
        sizes |= {"r": rng.choice([1, 2, 3, 4, 5]), "by": rng.choice([1, 2, 2, 3]), "pad": pad}
    text = text.replace("unsigned int ", "int ").replace("unsigned ", "int ")
    return Made("upsampled", text, arrays, one, other, inout=("out",))


def _made(rng: Random, name: str, dims: int, body: str) -> Made:
    extents = ["w", "h"][:dims]
    over = axes(rng, *zip(["x", "y"], extents, strict=False))
    sizes = ", ".join(f"int {e}" for e in [*extents, "r"])
    parameters = f"const float* a, const float* f, float* out, float bias, {sizes}"
    text = program(rng, name, parameters, over, body)
    text = text.replace("unsigned int ", "int ")
    if "max(" not in body and "min(" not in body and rng.choice([0, 0, 0, 1]):
        text = text.replace("int x = ", rng.choice(["long x = ", "long long x = "]))
    else:
        text = text.replace("unsigned x = ", "int x = ").replace("unsigned y = ", "int y = ")
    shape = ("w",) if dims == 1 else ("h", "w")
    arrays = {"a": Array("f4", shape), "f": Array("f4", ("80",)), "out": Array("f4", shape)}
    one, other = sizes_of(rng, extents, _LINES if dims == 1 else _SMALL)
    wide = _WIDE if name == "moving" else _WIDE[:4]
    one["r"], other["r"] = rng.choice(wide), rng.choice([0, 1, *wide])
    inout = ("out",)
    return Made(name, text, arrays, one, other, {"bias": 0.5}, inout=inout)


FAMILY = (moving, moving, plane, upsampled)
