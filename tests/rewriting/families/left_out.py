"""What data or the end of an array leave out: neighbours, elements of rows, the last of few."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made

_TYPES = {"float": "f4", "unsigned char": "u1", "int": "i4"}


def neighbours(rng: Random) -> Made:
    """A stencil whose branch says which neighbours it takes, borders kept or mirrored."""
    kind = rng.choice([*_TYPES])
    at = rng.choice(["y * w + x", "x + y * w"])
    near = ["a[at - 1]", "a[at + 1]", "a[at - w]", "a[at + w]", "a[at + w - 1]", "a[at - w + 1]"]
    if rng.choice([0, 1]):
        near = ["get(a, y, x - 1, h, w)", "get(a, y - 1, x, h, w)", "get(a, y + 1, x + 1, h, w)",
                "(get(a, y, x + 1, h, w) + get(a, y + 1, x, h, w))"]  # fmt: skip
        border = ""
    else:
        border = "if (x == 0 || y == 0 || x == w - 1 || y == h - 1) { out[at] = 0; return; }\n"
    one, two, three = (rng.choice(near) for _ in "123")
    test = rng.choice(["c[at] & 1", "c[at] > 2", "(x + y) % 2", "a[at] > 1"])
    body = rng.choice([
        f"if ({test}) s = {one} + {two}; else s = {three};",
        f"if ({test}) s += {one}; if (c[at] & 2) s += {two} - {three};",
        f"s = ({test}) ? {one} : {two};",
        f"switch (c[at] & 3) {{ case 0: s = {one}; break; case 1: s = {two}; break; default: s = {three}; }}",
    ])  # fmt: skip
    mirrored = (
        f"__device__ int get(const {kind}* a, int y, int x, int h, int w) {{\n"
        "    if (x < 0) x = -x;\n    if (y < 0) y = -y;\n    if (x >= w) x = 2 * w - 2 - x;\n"
        "    if (y >= h) y = 2 * h - 2 - y;\n    return a[y * w + x];\n}\n"
    )
    text = (
        f"{'' if border else mirrored}"
        "#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 4)) block(16, 4)\n"
        f"__global__ void k(const {kind}* a, const unsigned char* c, float* out, int w, int h) {{\n"
        "    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n"
        f"    if (x >= w || y >= h) return;\n    int at = {at};\n{border}    float s = 0;\n"
        f"    {body}\n    out[at] = s;\n}}\n"
    )
    rows = rng.choice(["h", "h", "h + 1"])
    arrays = {
        "a": Array(_TYPES[kind], (rows, "w")), "c": Array("u1", ("h", "w")),
        "out": Array("f4", ("h", "w"), "zeros"),
    }  # fmt: skip
    first, second = ({"w": rng.choice((16, 32, 37)), "h": rng.choice((5, 8, 13))} for _ in "12")
    return Made("neighbours", text, arrays, first, second)


def short_rows(rng: Random) -> Made:
    """A few elements for each thread, as far as the array goes."""
    many = rng.choice([2, 4, 6, 8, 16])
    kind = rng.choice([*_TYPES])
    place = rng.choice(["base + k", "k + base"])
    does = rng.choice([f"out[{place}] = a[{place}] * 2;", f"float v = a[{place}]; if (v > 1) v -= 1; out[{place}] = v;",
                       f"if (a[{place}] > 1) out[{place}] = a[{place}];"])  # fmt: skip
    loop = rng.choice([
        f"for (int k = 0; k < {many} && {place} < n; k++) {{ {does} }}",
        f"for (int k = 0; {place} < n && k < {many}; ++k) {{ {does} }}",
        f"int k = 0;\n    while (k < {many} && {place} < n) {{ {does} k++; }}",
        f"for (int k = 0; k < {many}; k++) {{ if ({place} >= n) break; {does} }}",
        f"for (int k = 0; k < {many}; k++) if ({place} < n) {{ {does} }}",
        f"int few = n - base < {many} ? n - base : {many};\n    for (int k = 0; k < few; k++) {{ {does} }}",
        f"for (int i = base; i < min(base + {many}, n); i++) out[i] = a[i] + 1;",
    ])  # fmt: skip
    before = rng.choice(["", "", "if (base >= n) return;\n    "])
    text = (
        f"#pragma optiml launch k grid(cdiv(n, {32 * many})) block(32)\n"
        f"__global__ void k(const {kind}* a, {kind}* out, int n) {{\n"
        f"    int base = (blockIdx.x * blockDim.x + threadIdx.x) * {many};\n    {before}{loop}\n}}\n"
    )
    arrays = {"a": Array(_TYPES[kind], ("n",)), "out": Array(_TYPES[kind], ("n",), "zeros")}
    first, second = ({"n": rng.choice((1, 64, 256, 300, 1000))} for _ in "12")
    return Made("short_rows", text, arrays, first, second)


def by_table(rng: Random) -> Made:
    """Rows that begin where a table says, of which some elements are left out."""
    row = rng.choice(["const float* row = a + t[r] * w;", "const float* row = &a[(long long)t[r] * w];",
                      "int page = t[r]; while (page >= h) page -= h; const float* row = a + page * w;"])  # fmt: skip
    element = rng.choice(["row[i]", "*(row + i)", "a[t[r] * w + i]"])
    body = rng.choice([
        f"s += {element};", f"if (i != r) s += {element};", f"s = fmaxf(s, {element});",
        f"if ({element} > 1) s += {element} * b[r * w + i];", f"s += {element} * b[i];",
        f"if (i == t[r]) continue; s += b[r * w + i] - {element};",
    ])  # fmt: skip
    end = rng.choice(["w", "w", "w - 1"])
    text = (
        "#pragma optiml launch k grid(cdiv(h, 32)) block(32)\n"
        "__global__ void k(const float* a, const float* b, const int* t, float* out, int w, int h) {\n"
        "    int r = blockIdx.x * blockDim.x + threadIdx.x;\n    if (r >= h) return;\n"
        f"    {row}\n    float s = 0.0f;\n    for (int i = 0; i < {end}; ++i) {{ {body} }}\n"
        "    out[r] = s;\n}\n"
    )
    arrays = {
        "a": Array("f4", ("h", "w")), "b": Array("f4", ("h", "w")),
        "t": Array("i4", ("h",), "below h"), "out": Array("f4", ("h",), "zeros"),
    }  # fmt: skip
    first, second = ({"w": rng.choice((16, 33, 64)), "h": rng.choice((5, 33, 40))} for _ in "12")
    return Made("by_table", text, arrays, first, second)


FAMILY = (neighbours, short_rows, by_table)
