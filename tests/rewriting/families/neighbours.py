"""Items of neighbouring elements, in blocks that are small enough for whole tiles of them."""

from __future__ import annotations

from random import Random

from tests.rewriting.families.maps import value, with_square
from tests.rewriting.writing import Array, Made

_KINDS = {"f4": "float", "i4": "int", "u1": "unsigned char", "f2": "__half", "f8": "double"}
_LONG = (64, 100, 128, 255, 256, 257, 384, 512, 640)


def _read(dtype: str, place: str) -> str:
    return f"__half2float({place})" if dtype == "f2" else f"(float){place}"


def _guarded(rng: Random, name: str, count: str, body: str) -> str:
    if rng.choice([0, 1]):
        return f"if ({name} >= {count}) return;\n{body}"
    return f"if ({name} < {count}) {{\n{body}\n}}"


def _one(rng: Random, parameters: str, count: str, body: str, half: bool) -> str:
    width = rng.choice([8, 16, 32])
    kind = rng.choice(["int", "const int", "unsigned int"])
    return (
        f"{'#include <cuda_fp16.h>' if half else ''}\n{with_square(rng, body)}"
        f"#pragma optiml launch k grid(cdiv({count}, {width})) block({width})\n"
        f"__global__ void k({parameters}) {{\n"
        f"{kind} i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"{_guarded(rng, 'i', count, body)}\n}}\n"
    )


def fields(rng: Random) -> Made:
    """So many elements an item, loaded, stored or both; an offset that may leave vectors out."""
    dtype, apart = rng.choice([*_KINDS]), rng.choice([1, 1, 2, 3, 4])
    behind = rng.choice([0, 0, 0, 1, 4, 16])
    place = "i" if apart == 1 else rng.choice([f"{apart} * i", f"i * {apart}"])
    leaves = [_read(dtype, f"x[{place} + {at + behind}]") for at in range(apart)]
    whole = " + ".join([*leaves, value(rng, ["a", "1.0f"], 1)])
    body = rng.choice(
        [
            f"out[i] = {whole};",
            f"float v = {whole};\nif (v > a) v = a;\nout[i] = v;",
            f"float v = {whole};\nout[i] = v;\nif (v > a) out[i] = out[i] * 0.5f;",
            f"if (y[i] < 0.0f) return;\nout[i] = {whole};" if apart == 1 else f"out[i] = {whole};",
        ]
    )
    out = ("n",)
    if rng.choice([0, 0, 1]):
        out, some = (f"{apart} * n",), value(rng, leaves, 1)
        body = "\n".join(f"out[{apart} * i + {at}] = {some};" for at in range(apart))
    parameters = f"const {_KINDS[dtype]}* x, const float* y, float* out, float a, int n"
    arrays = {
        "x": Array(dtype, (f"{apart} * n + {behind}",)),
        "y": Array("f4", ("n",)),
        "out": Array("f4", out, "zeros"),
    }
    text = _one(rng, parameters, "n", body, dtype == "f2")
    sizes = [{"n": rng.choice(_LONG)} for _ in "12"]
    return Made("fields", text, arrays, *sizes, {"a": rng.choice([0.5, 2.0])})


def halves(rng: Random) -> Made:
    """An index taken apart into a row and a column, of which some elements follow."""
    dtype = rng.choice(["f4", "f2", "u1"])
    read = [
        _read(dtype, "x[row * 2 * w + col]"),
        _read(dtype, "x[row * 2 * w + w + col]"),
        rng.choice(["b[col]", "b[i % w]", "b[row]", "b[i / w]"]),
    ]
    body = f"int row = i / w, col = i % w;\nout[i] = {' + '.join(read)};"
    if rng.choice([0, 1]):
        body = f"int row = i / w;\nint col = i - row * w;\nout[i] = {value(rng, read)};"
    parameters = f"const {_KINDS[dtype]}* x, const float* b, float* out, int h, int w"
    text = _one(rng, parameters, "h * w", body, dtype == "f2")
    arrays = {
        "x": Array(dtype, ("h", "2 * w")),
        "b": Array("f4", ("h + w",)),
        "out": Array("f4", ("h", "w"), "zeros"),
    }
    sizes = [{"h": rng.choice([5, 17, 32]), "w": rng.choice([8, 12, 16, 31, 32])} for _ in "12"]
    return Made("halves", text, arrays, *sizes)


def lines(rng: Random) -> Made:
    """Rows of a plane, each of which may begin anywhere; threads of two axes."""
    dtype = rng.choice(["f4", "u1", "f2"])
    wide, high = rng.choice([(4, 8), (8, 4), (16, 2)])
    guard = rng.choice(["if (x < w && y < h) {0}", "if (y < h) if (x < w) {0}",
                        "if (x >= w || y >= h) return;\n{0}", "if (y >= h) return;\nif (x >= w) return;\n{0}"])  # fmt: skip
    read = [_read(dtype, "a[y * w + x]"), "b[y]", "s"]
    if rng.choice([0, 1]):
        read[1] = "b[x]"
    body = guard.format("{ out[y * w + x] = " + value(rng, read) + "; }")
    text = (
        f"{'#include <cuda_fp16.h>' if dtype == 'f2' else ''}\n{with_square(rng, body)}"
        f"#pragma optiml launch k grid(cdiv(w, {wide}), cdiv(h, {high})) block({wide}, {high})\n"
        f"__global__ void k(const {_KINDS[dtype]}* a, const float* b, float* out, float s, int w, int h) {{\n"
        f"int x = blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"int y = blockIdx.y * blockDim.y + threadIdx.y;\n{body}\n}}\n"
    )
    arrays = {
        "a": Array(dtype, ("h", "w")),
        "b": Array("f4", ("h + w",)),
        "out": Array("f4", ("h", "w"), "zeros"),
    }
    sizes = [{"w": rng.choice([32, 48, 65, 128, 130]), "h": rng.choice([1, 3, 7])} for _ in "12"]
    return Made("lines", text, arrays, *sizes, {"s": 0.5})


def gathered(rng: Random) -> Made:
    """Rows that memory chooses, whole or from some element on."""
    dtype = rng.choice(["f4", "f4", "f2", "u1"])
    place = rng.choice(["at[row] * w + col", "at[i / w] * w + col", "(at[row]) * w + i % w",
                        "at[row] * w + i - row * w", "at[row] + col", "at[i] * w + col"])  # fmt: skip
    read = [_read(dtype, f"x[{place}]"), rng.choice(["b[col]", "b[row]", "1.0f", "b[at[row]]"])]
    body = f"int row = i / w;\nint col = i % w;\nout[i] = {value(rng, read)};"
    if rng.choice([0, 0, 1]):
        body += "\nif (col == 0) first[row] = b[row] + 1.0f;"
    parameters = f"const int* at, const {_KINDS[dtype]}* x, const float* b, float* first, float* out, int h, int w"  # fmt: skip
    text = _one(rng, parameters, "h * w", body, dtype == "f2")
    arrays = {
        "at": Array("i4", ("h * w",), "below h"),
        "x": Array(dtype, ("h", "w")),
        "b": Array("f4", ("h + w",)),
        "first": Array("f4", ("h",), "zeros"),
        "out": Array("f4", ("h", "w"), "zeros"),
    }
    sizes = [{"h": rng.choice([5, 17, 32]), "w": rng.choice([8, 12, 16, 31, 32])} for _ in "12"]
    return Made("gathered", text, arrays, *sizes)


def some(rng: Random) -> Made:
    """Elements that some items leave alone: of arrays that have them all, or as many as asked."""
    dtype = rng.choice(["f4", "u1", "f2"])
    enough = rng.choice(["n", "n + 5", "n / 2 + 1"])
    taken = [_read(dtype, "x[i]") if enough[:3] != "n /" else _read(dtype, "x[i / 2]"), "y[i]"]
    other = rng.choice([taken[0], "0.0f", value(rng, ["a", "z[i]"], 1)])
    test = rng.choice(["y[i] > a", "y[i] > 0.0f && i > 3", "i % 3 == 0", "y[i] > a || i < 40"])
    body = rng.choice(
        [
            f"if ({test}) out[i] = {value(rng, taken)};\nelse out[i] = {other};",
            f"out[i] = {test} ? {value(rng, taken)} : {other};",
            f"float v = {other};\nif ({test}) v = {value(rng, taken)};\nout[i] = v;",
            f"if ({test}) {{ out[i] = {other}; return; }}\nout[i] = {value(rng, taken)};",
            f"if ({test}) out[i] = {value(rng, taken)};",
        ]
    )
    parameters = f"const {_KINDS[dtype]}* x, const float* y, const float* z, float* out, float a, int n"  # fmt: skip
    arrays = {
        "x": Array(dtype, (enough,)),
        "y": Array("f4", ("n",)),
        "z": Array("f4", ("n",)),
        "out": Array("f4", ("n",), "zeros"),
    }
    text = _one(rng, parameters, "n", body, dtype == "f2")
    sizes = [{"n": rng.choice(_LONG)} for _ in "12"]
    return Made("some", text, arrays, *sizes, {"a": rng.choice([0.5, 2.0])})


def planes(rng: Random) -> Made:
    """A short loop over the planes or the fields of an item."""
    count = rng.choice([2, 3, 4, 5])
    place = rng.choice(["k * n + i", "i + n * k", f"i * {count} + k"])
    begin, test, step = rng.choice(
        [("0", f"k < {count}", "++k"), (f"{count - 1}", "k >= 0", "k--"), ("1", f"k < {count}", "k += 2")]
    )  # fmt: skip
    head = f"for (int k = {begin}; {test}; {step})"
    body = rng.choice(
        [
            f"float s = 0.0f;\n{head} s += x[{place}] * w[k];\nout[i] = s;",
            f"{head} out[{place}] = {value(rng, [f'x[{place}]', 'y[i]', 'w[k]'])};",
            (
                f"float v[{count}] = {{}};\n{head} v[k] = x[{place}];\n"
                f"{head} out[{place}] = v[k] * v[{count - 1} - k] + y[i];"
            ),
            f"float s = y[i];\n{head} {{ if (x[{place}] > s) s = x[{place}]; }}\nout[i] = s;",
        ]
    )
    parameters = "const float* x, const float* y, const float* w, float* out, int n"
    arrays = {
        "x": Array("f4", (f"{count} * n",)),
        "y": Array("f4", ("n",)),
        "w": Array("f4", (f"{count}",)),
        "out": Array("f4", (f"{count} * n",), "zeros"),
    }
    sizes = [{"n": rng.choice(_LONG)} for _ in "12"]
    return Made("planes", _one(rng, parameters, "n", body, False), arrays, *sizes, {})


def beside(rng: Random) -> Made:
    """Elements and those beside them: of a row for each thread, or counted by all threads."""
    dtype = rng.choice(["f4", "u1", "i4"])
    by = rng.choice([1, 1, 2, 5])
    if rng.choice([0, 1]):
        place, edges, scope = "i * w + c", "c", "w"
        pattern = "float s = 0.0f;\nfor (int c = 0; c < w; ++c) {{ {0} }}\nout[i] = s;"
        update, count = "s += {0};", "n"
    else:
        place, edges, scope = "i", "i", "n"
        pattern, update, count = "{0}", "atomicAdd(&out[w & 3], {0});", "n"
    own, before, after = (_read(dtype, f"x[{place}{p}]") for p in ("", f" - {by}", f" + {by}"))
    body = rng.choice(
        [
            f"if ({own} > a && ({edges} < {by} || {before} <= a)) {update.format('1.0f')}",
            f"if ({edges} >= {by} && {own} > {before}) {update.format('2.0f')}",
            f"if ({own} < a && {edges} + {by} < {scope} && {after} >= a) {update.format(own)}",
            f"if ({edges} >= {by} && {edges} + {by} < {scope}) "
            + update.format(f"{before} - {own} + {after}"),
        ]
    )
    parameters = f"const {_KINDS[dtype]}* x, float* out, float a, int n, int w"
    arrays = {"x": Array(dtype, ("n", "w")), "out": Array("f4", ("n + 4",), "zeros")}
    text = _one(rng, parameters, count, pattern.format(body), False)
    sizes = [{"n": rng.choice(_LONG), "w": rng.choice([16, 33, 64])} for _ in "12"]
    return Made("beside", text, arrays, *sizes, {"a": rng.choice([0.5, 2.0])})


FAMILY = (fields, fields, halves, lines, gathered, some, planes, beside)
