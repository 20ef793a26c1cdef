"""Atomic operations of many threads on few places: sums, extremes, histograms, votes."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import LONG_EXTENTS, Array, Made, axes, program, sizes_of

_SIZES = (*LONG_EXTENTS, 200, 256, 300, 511, 640)
_TYPES = {"f4": "float", "f8": "double", "i4": "int", "u4": "unsigned int"}
_OPS = {
    "f4": ("Add",), "f8": ("Add",),
    "i4": ("Add", "Add", "Sub", "Min", "Max", "And", "Or", "Xor"),
    "u4": ("Add", "Add", "Min", "Max", "Or"),
}  # fmt: skip


def _address(rng: Random, array: str, index: str) -> str:
    if index == "0":
        return rng.choice([array, f"&{array}[0]", f"{array} + 0"])
    return rng.choice([f"&{array}[{index}]", f"&{array}[{index}]", f"{array} + ({index})", f"&({array}[{index}])"])  # fmt: skip


def _value(rng: Random, dtype: str) -> str:
    if dtype in ("i4", "u4"):
        return rng.choice(["1", "c[i]", "c[i] * 2 + 1", "i % 5", "x[i] > 0.0f", "(c[i] & 3)"])
    return rng.choice(["x[i]", "x[i] * y[i]", "x[i] - y[i]", "1.0f", "fabsf(x[i])", "c[i]", "0.5 * x[i]"])  # fmt: skip


def _conditional(rng: Random, body: str) -> str:
    match rng.randrange(5):
        case 0:
            return f"if (x[i] > 0.0f) {body}"
        case 1:
            return f"if (c[i] <= 0) return;\n{body}"
        case 2:
            return f"for (int k = 0; k < 3; ++k) {{\n{body}\n}}"
    return body


_PARAMETERS = "const float* x, const float* y, const int* c, {0}* out, int n"


def _made(rng: Random, family: str, text: str, out: Array, **more: Array) -> Made:
    arrays = {
        "x": Array("f4", ("n",)), "y": Array("f4", ("n",)), "c": Array("i4", ("n",)), **more,
        "out": out,
    }  # fmt: skip
    return Made(family, text, arrays, *sizes_of(rng, ["n"], _SIZES))


def added(rng: Random) -> Made:
    """All threads update one place, or one of two."""
    dtype = rng.choice(["f4", "f4", "i4", "i4", "u4", "f8"])
    op = rng.choice(_OPS[dtype])
    body = f"atomic{op}({_address(rng, 'out', rng.choice(['0', '0', '1']))}, {_value(rng, dtype)});"
    body = _conditional(rng, body)
    if rng.choice([0, 0, 1]):
        body = f"atomic{op}({_address(rng, 'out', '2')}, {_value(rng, dtype)});\n{body}"
    text = program(
        rng, "added", _PARAMETERS.format(_TYPES[dtype]), axes(rng, ("i", "n")), body,
        directives="#pragma optiml zero(out)\n",
    )  # fmt: skip
    return _made(rng, "added", text, Array(dtype, ("3",), "zeros"))


def counted(rng: Random) -> Made:
    """Data say which of a few places a thread updates."""
    dtype, bins = rng.choice(["i4", "i4", "u4", "f4"]), rng.choice([2, 3, 8, 16, 17])
    key, index = rng.choice(
        [
            ("u1", "key[i] % {0}"), ("u1", "(key[i] & 15)"), ("u4", "key[i] % {0}u"),
            ("i4", "key[i]"), ("i4", "(key[i] + 1) % {0}"), ("u1", "key[i]"),
            ("i4", "bin"), ("u1", "bin"),
        ]
    )  # fmt: skip
    kind = {"u1": "unsigned char", "i4": "int", "u4": "unsigned int"}[key]
    count = 256 if (key, index) in (("u1", "key[i]"), ("u1", "bin")) else max(bins, 16)
    first = ""
    if index == "bin":
        first = rng.choice(["int bin = key[i];\n", "const auto bin = key[i];\n"])
    op = rng.choice(_OPS[dtype])
    address = _address(rng, "out", index.format(bins))
    body = _conditional(rng, f"atomic{op}({address}, {_value(rng, dtype)});")
    if index == "bin" and rng.choice([0, 1]):
        body = f"if (bin >= 0 && bin < {bins}) {{\n{body}\n}}"
    parameters = f"const {kind}* key, {_PARAMETERS.format(_TYPES[dtype])}"
    text = program(
        rng, "counted", parameters, axes(rng, ("i", "n")), first + body,
        directives="#pragma optiml zero(out)\n",
    )  # fmt: skip
    content = "numbers" if key == "u1" else "positive"
    keys = Array(key, ("n",), content)
    return _made(rng, "counted", text, Array(dtype, (str(count + 1),), "zeros"), key=keys)


def voted(rng: Random) -> Made:
    """The elements of a plane, each of which updates one of a few places."""
    index = rng.choice(["0", "1", "((int)fabsf(a[at]) & 3)", "(col % 3)", "(row & 3)"])
    dtype = rng.choice(["i4", "f4"])
    value = rng.choice(["1", "a[at]", "row"])
    body = f"int at = row * cols + col;\natomicAdd({_address(rng, 'out', index)}, {value});"
    text = program(
        rng, "voted", f"const float* a, {_TYPES[dtype]}* out, int rows, int cols",
        axes(rng, ("col", "cols"), ("row", "rows")), body, directives="#pragma optiml zero(out)\n",
    )  # fmt: skip
    arrays = {"a": Array("f4", ("rows", "cols")), "out": Array(dtype, ("4",), "zeros")}
    return Made("voted", text, arrays, *sizes_of(rng, ["rows", "cols"]))


def masked(rng: Random) -> Made:
    """Every thread adds: those beyond the last item what their local begins with, mostly zero."""
    dtype = rng.choice(["f4", "i4", "i4", "u4"])
    kind = _TYPES[dtype]
    value = (
        rng.choice(["1.0f", "c[i]"]) if dtype == "f4" else _value(rng, dtype)
    )  # exact in any order
    begins = rng.choice(["0", "0", "0", "0", "1"])
    test = rng.choice(["i < n", "i < n", "n > i", "i < n && i >= 0", "i < n - 1"])
    first = f"{kind} v = {begins};\n" + rng.choice(
        [f"if ({test}) v = {value};", f"if ({test}) {{\nint e = c[i];\nv = {value};\nv += e;\n}}"]
    )
    if rng.choice([0, 0, 1]):
        first = f"{kind} v = {test} ? ({kind})({value}) : {begins};"
    then = rng.choice(
        ["", "", f"{kind} w = v * 2;", "v = v * 3;", "v = -v;", "v += 1;", "int e = 2;"]
    )
    share = "v" if dtype == "f4" else "v / n"
    what = "w" if "w =" in then else rng.choice(["v", "v", "-v", "v * 2", "v + v", "v / 2", share])
    more = rng.choice(
        ["", "", f"if ({test}) atomicAdd(out + 1, 1);", "if (i < 9) atomicAdd(out, 1);"]
    )
    address = _address(rng, "out", rng.choice(["0", "1", "i % 3"]))
    lines = [
        "#pragma optiml zero(out)", "#pragma optiml launch masked grid(cdiv(n, 64)) block(64)",
        f"__global__ void masked({_PARAMETERS.format(kind)}) {{",
        "int i = blockIdx.x * blockDim.x + threadIdx.x;", first, then,
        f"atomicAdd({address}, {what});", more, "}",
    ]  # fmt: skip
    return _made(rng, "masked", "\n".join(lines) + "\n", Array(dtype, ("3",), "zeros"))


def paired(rng: Random) -> Made:
    """Each item with many others, and each pair updates one of a few places."""
    head = rng.choice([
        "for (int j = i + 1; j < n; j++)", "for (int j = 0; j < n; ++j)",
        "for (int j = n - 1; j > i; --j)", "for (int j = i % 4; j < n; j += 4)",
        "for (int j = 0; j <= i; j++)",
    ])  # fmt: skip
    dtype = rng.choice(["i4", "i4", "u4"])
    index = rng.choice(["(c[i] + c[j]) % 16", "c[j] % 7", "j % 16", "i % 5", "(c[j] & 15)"])
    value = rng.choice(["1", "c[j]", "i + j", "x[i] > x[j]"])
    update = f"atomic{rng.choice(_OPS[dtype])}({_address(rng, 'out', index)}, {value});"
    left = rng.choice(["", "", "if (j == i) continue;\n", "if (x[j] > 0.0f) "])
    body = f"{head} {{\n{left}{update}\n}}"
    body = rng.choice(["", "", "if (c[i] % 3 == 0) return;\n"]) + body
    body += rng.choice(["", "", "\ny[i] = x[i] + 1.0f;"])
    text = program(
        rng, "paired", f"const float* x, float* y, const int* c, {_TYPES[dtype]}* out, int n",
        axes(rng, ("i", "n")), body, directives="#pragma optiml zero(out)\n",
    )  # fmt: skip
    arrays = {
        "x": Array("f4", ("n",)), "y": Array("f4", ("n",), "zeros"),
        "c": Array("i4", ("n",), "positive"), "out": Array(dtype, ("16",), "zeros"),
    }  # fmt: skip
    return Made("paired", text, arrays, *sizes_of(rng, ["n"], (1, 33, 64, 130, 200)))


FAMILY = (added, counted, voted, paired, masked)
