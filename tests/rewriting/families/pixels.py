"""Items of several elements: pixels of bytes, every second element, fields that are changed."""

from __future__ import annotations

import re
from random import Random

from tests.rewriting.writing import Array, Made, axes, flat, program, sizes_of

_HIGH = (1, 2, 3, 4, 5, 8, 9, 12)
_WIDE = (1, 4, 8, 12, 16, 24, 32, 33, 48, 64, 96)
_KINDS = {
    "u1": "unsigned char",
    "f4": "float",
    "f2": "__half",
    "f8": "double",
    "i2": "short",
    "i4": "int",
}


def _sizes(rng: Random) -> tuple[dict[str, int], dict[str, int]]:
    one, other = sizes_of(rng, ["h"], _HIGH)
    for sizes in (one, other):
        sizes["w"] = rng.choice(_WIDE)
    return one, other


def _signed(text: str) -> str:
    """Indices that may be compared with what is below zero."""
    return re.sub(r"unsigned (?!char)(int )?", "int ", text)


def coloured(rng: Random) -> Made:
    """Every channel of a pixel: of bytes side by side, or of planes, by a loop or one by one."""
    kind, many = rng.choice(["u1", "u1", "f4", "i2"]), rng.choice([2, 3, 3, 4])
    to, near = rng.choice([kind, "f4"]), rng.choice([0, 0, 1])
    inner, outer = (rng.choice(["beside", "beside", "planes"]) for _ in "ab")

    def at(layout: str, y: str, x: str, c: str) -> str:
        if layout == "planes":
            return f"({c} * h + {y}) * w + {x}"
        return rng.choice([f"({y} * w + {x}) * {many} + {c}", f"{many} * ({y} * w + {x}) + {c}"])

    def one(c: str) -> str:
        if not near:
            return f"out[{at(outer, 'y', 'x', c)}] = a[{at(inner, 'y', 'x', c)}] * 2 + f[{c}];"
        there = at(inner, "min(max(y + dy, 0), h - 1)", "min(max(x + dx, 0), w - 1)", c)
        return (
            f"float s{c} = 0;\nfor (int dy = -1; dy <= 1; dy++)\nfor (int dx = -1; dx <= 1; dx++)"
            f"\ns{c} += a[{there}];\nout[{at(outer, 'y', 'x', c)}] = s{c} * 0.25f;"
        )

    if rng.choice([0, 0, 1]):
        order = rng.sample(range(many), many)
        body = "\n".join(one(str(c)).replace(f"s{c}", f"sum{c}") for c in order)
    else:
        body = f"for (int c = 0; c < {many}; {rng.choice(['c++', '++c'])}) {{\n{one('c')}\n}}"
    over = axes(rng, ("x", "w"), ("y", "h"))
    text = program(rng, "coloured", f"const {_KINDS[kind]}* a, const float* f, {_KINDS[to]}* out, int w, int h", over, body)  # fmt: skip
    shape = ("h", "w", str(many))
    arrays = {
        "a": Array(kind, shape, "positive"), "f": Array("f4", ("4",), "positive"),
        "out": Array(to, shape, "zeros"),
    }  # fmt: skip
    return Made("coloured", _signed(text), arrays, *_sizes(rng))


def pooled(rng: Random) -> Made:
    """Windows that move by two or three: pools, and filters that make an image smaller."""
    kind, step, size = rng.choice(["f4", "f4", "u1"]), rng.choice([2, 2, 3]), rng.choice([1, 2, 3])
    pad = rng.choice([0, 1]) if size > 1 else 0
    y, x = (f"{step} * {p} + {o}" + (f" - {pad}" if pad else "") for p, o in ("yi", "xj"))
    wide, high = f"{step} * w", f"{step} * h"
    if size > step and not pad:
        tests = [f"{y} < {high}", f"{x} < {wide}"]
    else:
        tests = [f"{y} >= 0", f"{y} < {high}", f"{x} >= 0", f"{x} < {wide}"] if pad else []
    value = f"a[({y}) * ({wide}) + {x}]"
    way = rng.choice(["largest", "sum", "sum"])
    inner = f"s += {value};"
    if way == "largest":
        inner = f"{_KINDS[kind]} v = {value};\nif (v > s) s = v;"
    inner = f"if ({' && '.join(tests)}) {{\n{inner}\n}}" if tests else inner
    body = (
        f"{'float' if way == 'sum' else _KINDS[kind]} s = 0;\n"
        f"for (int i = 0; i < {size}; i++) {{\nfor (int j = 0; j < {size}; j++) {{\n{inner}\n}}\n}}\n"
        f"out[{flat(rng, 'y', 'w', 'x')}] = s;"
    )
    over = axes(rng, ("x", "w"), ("y", "h"))
    text = program(rng, "pooled", f"const {_KINDS[kind]}* a, {_KINDS[kind]}* out, int w, int h", over, body)  # fmt: skip
    arrays = {"a": Array(kind, (high, wide), "positive"), "out": Array(kind, ("h", "w"), "zeros")}
    return Made("pooled", _signed(text), arrays, *_sizes(rng))


def updated(rng: Random) -> Made:
    """A field that is changed where it is, by neighbours in another: once, or some of the time."""
    kind = rng.choice(["f4", "f4", "f8"])
    here = flat(rng, "y", "w", "x")
    beside = [f"b[{here} + 1]", f"b[{here} + w]", f"b[{here}]"]
    rng.shuffle(beside)
    change = f"0.5f * ({beside[0]} - {beside[1]}) + {beside[2]}"
    store = rng.choice([
        f"u[{here}] += {change};",
        f"u[{here}] = u[{here}] * 0.5f - ({change});",
        f"float v = u[{here}];\nu[{here}] = v + {change};",
        f"u[{here}] -= {beside[0]};\nu[{here}] += {beside[1]};",
        f"if (b[{here}] > 0) u[{here}] += {change};",
        f"u[{here}] += {change};\nif (u[{here}] > 1) u[{here}] = 1;",
    ])  # fmt: skip
    body = f"if (x < w - 1 && y < h - 1) {{\n{store}\n}}"
    over = axes(rng, ("x", "w"), ("y", "h"))
    text = program(rng, "updated", f"const {_KINDS[kind]}* b, {_KINDS[kind]}* u, int w, int h", over, body)  # fmt: skip
    arrays = {"b": Array(kind, ("h", "w")), "u": Array(kind, ("h", "w"))}
    return Made("updated", _signed(text), arrays, *_sizes(rng), inout=("u",))


def around(rng: Random) -> Made:
    """Neighbours in a square without the middle, or without others; a sorted one of them."""
    kind, extent = rng.choice(["f4", "f4", "u1", "i2"]), rng.choice([1, 1, 2])
    test = rng.choice(["dx != 0 || dy != 0", "!(dx == 0 && dy == 0)", "dx == 0 || dy == 0",
                       "dx + dy != 0", "dy < 1"])  # fmt: skip
    value = f"a[(y + dy) * w + x + dx]{rng.choice(['', ' * f[(dx + dy) * (dx + dy)]'])}"
    inner = rng.choice([
        f"if ({test}) s += {value};",
        f"if ({test}) {{\ns += {value};\n}} else {{\nt += {value};\n}}",
        f"if (!({test})) continue;\ns += {value};",
    ])  # fmt: skip
    loops = "".join(f"for (int {d} = -{extent}; {d} <= {extent}; {d}++) {{\n" for d in ("dy", "dx"))
    body = f"{_KINDS[kind]} s = 0, t = 1;\n{loops}{inner}\n}}\n}}\nout[y * w + x] = s - t;"
    if kind == "f4" and rng.choice([0, 0, 1]):
        body = (
            f"float v[{(2 * extent + 1) ** 2}];\nint n = 0;\n{loops}v[n++] = {value};\n}}\n}}\n"
            "for (int i = 0; i < 4; i++)\nfor (int j = i + 1; j < 9; j++)\n"
            "if (v[j] < v[i]) {\nfloat t = v[i];\nv[i] = v[j];\nv[j] = t;\n}\n"
            "out[y * w + x] = v[3];"
        )
    inside = " && ".join(f"{p} >= {extent} && {p} < {e} - {extent}" for p, e in ("xw", "yh"))
    body = f"if ({inside}) {{\n{body}\n}}"
    over = axes(rng, ("x", "w"), ("y", "h"))
    text = program(rng, "around", f"const {_KINDS[kind]}* a, const float* f, {_KINDS[kind]}* out, int w, int h", over, body)  # fmt: skip
    arrays = {
        "a": Array(kind, ("h", "w")), "f": Array("f4", ("17",)), "out": Array(kind, ("h", "w"), "zeros"),
    }  # fmt: skip
    return Made("around", _signed(text), arrays, *_sizes(rng))


def boxes(rng: Random) -> Made:
    """The sum, the number, the least or the greatest of a square of whole numbers."""
    kind, extent = rng.choice(["u1", "u1", "i2", "i4"]), rng.choice([1, 1, 2])
    outside = rng.choice(["clamp", "test", "continue"])
    at = [f"{p} + {o}" for p, o in (("y", "dy"), ("x", "dx"))]
    before, test = "", ""
    if outside == "clamp":
        at = [f"min(max({a}, 0), {e} - 1)" for a, e in zip(at, "hw", strict=True)]
    else:
        before = f"int p = {at[0]}, q = {at[1]};\n"
        at = ["p", "q"]
        test = "p >= 0 && p < h && q >= 0 && q < w"
    value = f"a[{at[0]} * w + {at[1]}]"
    one = rng.choice([
        ("int s = 0;", f"s += {value};"), ("int s = 0, n = 0;", f"s += 2 * {value} + 1;\nn++;"),
        ("int s = 100;", f"int v = {value};\nif (v < s) s = v;"),
        ("int s = -1;", f"s = max(s, (int){value});"),
        ("int s = 0;", f"s += {value} * dx;"), ("int s = 3;", f"s -= {value};"),
        (f"{_KINDS[kind]} s = 9;", f"{_KINDS[kind]} v = {value};\nif (s < v) s = v;"),
    ])  # fmt: skip
    inner = before + one[1]
    if outside == "test":
        inner = f"{before}if ({test}) {{\n{one[1]}\n}}"
    elif outside == "continue":
        inner = f"{before}if (!({test})) continue;\n{one[1]}"
    order = rng.choice([("dy", "dx"), ("dy", "dx"), ("dx", "dy")])
    loops = "".join(f"for (int {d} = -{extent}; {d} <= {extent}; {d}++) {{\n" for d in order)
    result = "s / n" if "n++" in one[1] else "s"
    body = f"{one[0]}\n{loops}{inner}\n}}\n}}\nout[y * w + x] = {result};"
    over = axes(rng, ("x", "w"), ("y", "h"))
    text = program(rng, "boxes", f"const {_KINDS[kind]}* a, {_KINDS[kind]}* out, int w, int h", over, body)  # fmt: skip
    arrays = {"a": Array(kind, ("h", "w")), "out": Array(kind, ("h", "w"), "zeros")}
    return Made("boxes", _signed(text), arrays, *_sizes(rng))


def cells(rng: Random) -> Made:
    """A thread for each of neighbouring cells, which numbers the first of their elements itself."""
    kind, wide, high = (
        rng.choice(["u1", "u1", "i2", "f4"]),
        rng.choice([2, 2, 3, 4]),
        rng.choice([1, 2]),
    )
    parts = rng.choice([1, 1, 3])
    begin = "\n".join(
        f"int {p} = {rng.choice([f'{many} * ({at})', f'({at}) * {many}']) if many > 1 else at};"
        for p, a, many in (("x", "x", wide), ("y", "y", high))
        for at in [f"blockIdx.{a} * blockDim.{a} + threadIdx.{a}"]
    )
    tests = [(p, e, rng.choice([1, many])) for p, e, many in (("x", "w", wide), ("y", "h", high))]
    left = [f"{p} + {last - 1} >= {e}" if last > 1 else f"{p} >= {e}" for p, e, last in tests]
    value = f"a[((y + j) * w + x + i) * {parts}{rng.choice([f' + {parts - 1}', ''])}]"
    inner = rng.choice([f"s += {value};", f"s += {value};\nb[(y + j) * w + x + i] = {value} * 2;"])
    body = (
        f"{begin}\nif ({' || '.join(left)}) return;\n{_KINDS[kind]} s = 0;\n"
        f"for (int j = 0; j < {high}; j++)\nfor (int i = 0; i < {wide}; i++) {{\n{inner}\n}}\n"
        f"b[h * w + (y / {high}) * (w / {wide}) + x / {wide}] = s;"
    )
    columns, rows = rng.choice([8, 16, 32]), rng.choice([1, 4])
    grid = rng.choice([
        f"cdiv(w / {wide}, {columns}), cdiv(h / {high}, {rows})",
        f"cdiv(w, {wide * columns}), cdiv(h, {high * rows})",
        f"cdiv(cdiv(w, {wide}), {columns}), cdiv(cdiv(h, {high}), {rows})",
    ])  # fmt: skip
    text = (
        f"#pragma optiml launch cells grid({grid}) block({columns}, {rows})\n"
        f"__global__ void cells(const {_KINDS[kind]}* a, {_KINDS[kind]}* b, int w, int h) {{\n"
        f"{body}\n}}\n"
    )
    odd = rng.choice([0, 0, 1]) if tests[0][2] == wide else 0  # columns that no cell has
    sizes = [
        {"w": wide * n + odd, "h": high * rng.choice([1, 3, 4])}
        for n in (rng.choice([1, 2, 7, 8, 16, 32, 33, 64, 128]) for _ in "ab")
    ]
    arrays = {"a": Array(kind, ("h", "w", str(parts))), "b": Array(kind, ("2 * h * w",))}
    return Made("cells", text, arrays, sizes[0], sizes[1], inout=("b",))


def triple_windows(rng: Random) -> Made:
    """Windows of elements of three numbers, as a whole or member by member."""
    kind = rng.choice(["u1", "u1", "f4", "i2"])
    name = {"u1": "uchar3", "f4": "float3", "i2": "short3"}[kind]
    number = "float" if kind == "f4" else "int"
    outside = rng.choice(["clamp", "test", "continue", "inside", "here"])
    at = ["y + j", "x + i"]
    test = "y + j >= 0 && y + j < h && x + i >= 0 && x + i < w"
    if outside == "clamp":
        at = [f"min(max({a}, 0), {e} - 1)" for a, e in zip(at, "hw", strict=True)]
    if outside == "here":
        at = ["y", "x"]
    place = f"({at[0]}) * w + {at[1]}"
    inner = rng.choice([
        f"{name} p = a[{place}];\nr += p.x; g += p.y * 2; b += p.z - i;",
        f"r += a[{place}].x; g += a[{place}].y; b = max(b, ({number})a[{place}].z);",
        f"const {name} p = a[{place}], q = a[y * w + x];\nr += p.x - q.x; g += q.y; b += p.z;",
        f"const {name}& p = a[{place}];\nr += p.x; g += p.y; b += p.z;",
    ])  # fmt: skip
    inner = {
        "test": f"if ({test}) {{\n{inner}\n}}",
        "continue": f"if (!({test})) continue;\n{inner}",
    }.get(outside, inner)
    far = rng.choice([1, 1, 2])
    store = rng.choice([
        f"out[y * w + x] = make_{name}(r, g, b);",
        f"{name} v;\nv.x = g; v.y = r; v.z = b;\nout[y * w + x] = v;",
        "out[y * w + x].x = r;\nout[y * w + x].z = b;\nout[y * w + x].y = g;",
        f"out[y * w + x] = make_{name}(r, g, b);\nif (r > 9) out[y * w + x].x = 9;",
    ])  # fmt: skip
    body = (
        f"{number} r = 0, g = 0, b = 0;\nfor (int j = -{far}; j <= {far}; j++)\n"
        f"for (int i = -{far}; i <= {far}; i++) {{\n{inner}\n}}\n{store}"
    )
    if outside == "inside":
        within = " && ".join(f"{p} >= {far} && {p} < {e} - {far}" for p, e in ("xw", "yh"))
        body = f"if ({within}) {{\n{body}\n}}"
    over = axes(rng, ("x", "w"), ("y", "h"))
    text = program(rng, "triple_windows", f"const {name}* a, {name}* out, int w, int h", over, body)
    arrays = {"a": Array(kind, ("h", "w", "3")), "out": Array(kind, ("h", "w", "3"), "zeros")}
    return Made("triple_windows", _signed(text), arrays, *_sizes(rng), inout=("out",))


FAMILY = (coloured, coloured, pooled, updated, around, boxes, cells, triple_windows)
