"""Rows along which something is combined, and asked for in each round: scans and what is near."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import LONG_EXTENTS, Array, Made, axes, flat, program, sizes_of

from .rows import counting

_SUMS = ("{0} += {1};", "{0} = {0} + {1};", "{0} = {1} + {0};", "{0} -= {1};", "{0} = {0} - {1} + x[j];",
         "if ({1} > 0) {0} += {1};", "if (x[j] > 0) {0} += 1; else {0} -= 2;", "if ({1} < 0) {0}++;",
         "{0} += {1} > x[j] ? 1 : 0;", "for (int q = 0; q < 3; ++q) {0} += {1} * q;",
         "if (x[j] < 0) {{\nfor (int q = 0; q < 2; ++q) {{\n{0} += x[j];\n{0} -= {1};\n}}\n}}")  # fmt: skip
_EXTREMES = ("if ({1} > {0}) {0} = {1};", "if ({0} <= {1}) {0} = {1};", "{0} = {1} > {0} ? {1} : {0};",
             "if ({1} < {0}) {{ {0} = {1}; }}", "{0} = {0} > {1} ? {1} : {0};",
             "{0} = {0} > {1} ? {0} : {1};")  # fmt: skip
_FLOATS = ("{0} = fmaxf({0}, {1});", "{0} = fminf({1}, {0});", "if (x[j] > 0) {0} = fmaxf({0}, {1});",
           "{0} = fmaf({1}, x[j], {0});")  # fmt: skip
_WHOLE = ("{0} = max({0}, {1});", "{0} = min({1}, {0});", "{0} ^= {1};", "{0} |= {1};",
          "{0} &= {1};", "{0} *= {1};", "{0} = {0} ^ {1};")  # fmt: skip
_LINEAR = (
    "{0} = 0.5f * {0} + {1};",
    "{0} = {1} - {0};",
    "{0} *= 0.25f;\n{0} += {1};",
    "{0} += 0.5f * ({1} - {0});",
    "{0} = x[j] * {0} * 0.25f + {1} * 0.5f;",
    "{0} = fmaf(x[j] * 0.25f, {0}, {1});",
    "if (x[j] > 1) {0} = 0;\n{0} += {1};",
    "if ({1} > 0) {{\n{0} = {1};\n}} else {{\n{0} += x[j];\n}}",
    "{0} = x[j] > 0 ? {0} + {1} : 0;",
    "if (x[j] > 0) {0} = -{0};",
    "{0} = ({0} + {1}) / 2.0f;",
)
_HASHES = (
    "{0} = {0} * 31 + {1};",
    "{0} = {1} - {0};",
    "{0} *= {1};\n{0} += x[j];",
    "if ({1} > 3) {0} = 1;\n{0} = {0} * x[j] - {1};",
    "{0} = x[j] > 0 ? 5 - {0} : {1};",
    "if (x[j] > 1) {0} = 0;\n{0}++;",
    "{0} -= {1} * {0} + 2;",
)
_OTHER = ("{0} = {1} - {0};", "{0} = {0} * 2 + {1};", "if ({0} > 3) {0} = 0;\n{0} += {1};",
          "if ({0} > 1) {0} += {1};", "{0} += {1};\nif (x[j] > 1) {0} = x[j];",
          "{0} += {1} * {0};", "{0} += {1};\n{0} *= 2;")  # fmt: skip


_ROUNDED = ("0.5f", "0.25f", "2.0f", "fmaf", "= -", "1.5f", " - s", " - t", "/", "s * s", "t * t")


def _combining(rng: Random, kind: str, place: str, element: str) -> str:
    """How a round changes a local; one in eight not as a scan does."""
    own = _FLOATS if kind in ("float", "double") else _WHOLE
    linear = _LINEAR if kind in ("float", "double") else _HASHES
    forms = rng.choice([_SUMS, _SUMS, _EXTREMES, own, own, linear, linear, _OTHER])
    return rng.choice(forms).format(place, element)


def scan(rng: Random) -> Made:
    """One or two locals, in place or not, before or behind what they combine, forth or back."""
    kind, dtype = rng.choice([("float", "f4"), ("float", "f4"), ("int", "i4"), ("unsigned", "u4"),
                              ("double", "f8"), ("long long", "i8")])  # fmt: skip
    column = rng.choice([0] * 7 + [1])
    at = flat(rng, "j", "rows", "r") if column else flat(rng, "r", "cols", "j")
    element = rng.choice([f"a[{at}]", f"a[{at}]", f"a[{at}]", f"out[{at}]", "v", "v"])
    update = _combining(rng, kind, "s", element)
    store = rng.choice([f"out[{at}] = s;", f"out[{at}] = s;", f"out[{at}] += s;",
                        f"if (x[j] > 0) out[{at}] = s;", f"out[{at}] = s * 2 - x[j];",
                        f"out[{at}] = old;", f"if (s > 2) out[{at}] = s;"])  # fmt: skip
    lines = [update, store] if rng.choice([0, 0, 1]) else [store, update]
    start = ""
    if rng.choice([0, 0, 1]):
        start = f"{kind} t = {rng.choice(['0', 'x[0]'])};\n"
        more = _combining(rng, kind, "t", rng.choice(["s", "s", "x[j]", element]))
        lines.insert(rng.randrange(3), more)
        lines.append(f"more[{at}] = t;" if rng.choice([0, 1]) else f"more[{at}] = t - s;")
    if rng.choice([0, 0, 0, 1]):
        start += f"{kind} top = 0;\n"
        lines.append("if (s > top) top = s;")
    lines.insert(0, f"const {kind} old = s;" if "old" in store else "")
    lines.insert(0, f"{kind} v = a[{at}];" if "v" in (element, *element.split()) else "")
    inner = "\n".join(line for line in lines if line)
    body = f"{kind} s = {rng.choice(['0', 'x[0]'])};\n{start}{counting(rng, inner)}\nlast[r] = s"
    body += " + top;" if "top" in start else ";"
    if rng.choice([0, 0, 0, 1]):
        body = body.replace("int j = 0;", "int j = 1;")
    parameters = f"const {kind}* a, const {kind}* x, {kind}* out, {kind}* more, {kind}* last, int rows, int cols"  # fmt: skip
    text = program(rng, "scan", parameters, axes(rng, ("r", "rows")), body)
    shape = ("cols", "rows") if column else ("rows", "cols")
    content = rng.choice(["numbers", "numbers", "odd"]) if dtype[0] == "f" else "numbers"
    if content == "odd" and update not in {f.format("s", element) for f in _EXTREMES}:
        content = "numbers"
    arrays = {
        "a": Array(dtype, shape, content), "x": Array(dtype, ("cols",)), "out": Array(dtype, shape),
        "more": Array(dtype, shape), "last": Array(dtype, ("rows",), "zeros"),
    }  # fmt: skip
    sizes = sizes_of(rng, ["rows", "cols"], LONG_EXTENTS)
    exact = dtype[0] != "f" or not any(mark in body for mark in _ROUNDED)
    return Made("scan", text, arrays, *sizes, inout=("out", "more"), exact=exact)


def going_on(rng: Random) -> Made:
    """Running values by memory, or by a local that the round declares."""
    at = flat(rng, "r", "cols", "j")
    body = rng.choice([
        f"out[r * cols] = a[r * cols];\nfor (int j = 1; j < cols; ++j) out[{at}] = out[r * cols + j - 1] + a[{at}];",
        f"for (int j = 1; j < cols; ++j) {{\nout[{at}] = fmaxf(out[{at} - 1], a[{at}]);\n}}",
        f"for (int j = cols - 2; j >= 0; --j) out[{at}] += out[r * cols + j + 1];",
        f"float s = 1.0f;\nfor (int j = 0; j < cols; ++j) {{\nconst float now = s + a[{at}];\nout[{at}] = now - s;\ns = now;\n}}",
        f"float s = 1.0f;\nfor (int j = 0; j < cols; ++j) {{\nfloat now = fminf(s, a[{at}]);\ns = now;\nout[{at}] = s + now;\n}}",
        f"float s = 1.0f;\nfor (int j = 0; j < cols; ++j) {{\nfloat now = s + a[{at}];\nif (x[j] > 0.0f) now = 1.0f;\nout[{at}] = now;\ns = now;\n}}",
        f"float s = 0.0f, p = 0.0f;\nfor (int j = 0; j < cols; ++j) {{\nfloat now = s + p;\np += a[{at}];\nout[{at}] = now;\ns = now;\n}}",
    ])  # fmt: skip
    parameters = "const float* a, const float* x, float* out, int rows, int cols"
    text = program(rng, "going_on", parameters, axes(rng, ("r", "rows")), body)
    arrays = {
        "a": Array("f4", ("rows", "cols")), "x": Array("f4", ("cols",)),
        "out": Array("f4", ("rows", "cols")),
    }  # fmt: skip
    sizes = sizes_of(rng, ["rows", "cols"], LONG_EXTENTS)
    return Made("going_on", text, arrays, *sizes, inout=("out",))


FAMILY = (scan, scan, going_on)
