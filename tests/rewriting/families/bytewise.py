"""Functions of one byte: powers of pixels, codes of letters, classes that a switch tells."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, sizes_of

_KINDS = {"unsigned char": "u1", "char": "i1", "signed char": "i1"}
_FUNCTIONS = {
    "code": "switch (c) { case 'A': return 0; case 'C': return 1; case 'G': return 2; case 70: return 3; default: return -1; }",
    "class_of": "if (c < 10) return 1;\n    if (c > 100) return 7;\n    if (c == 50) return 7;\n    int v = c;\n    v += 3;\n    return v * 2;",
    "ones": "int found = 0;\n    for (int k = 0; k < 8; ++k) { if (c >> k & 1) found++; }\n    return found;",
    "ever": "int v = 1;\n    while (v < c) v *= 3;\n    return v;",
}


def of_byte(rng: Random) -> Made:
    """Some of what an element becomes is a function of one byte alone."""
    kind = rng.choice([*_KINDS])
    name = rng.choice([*_FUNCTIONS])
    own = f"__device__ int {name}({kind} c) {{\n    {_FUNCTIONS[name]}\n}}\n"
    source = rng.choice(["x[i]", "x[i]", "x[n - 1 - i]", "b", "x[i + p]"])
    value = rng.choice([
        f"{name}({source})", f"{name}({source}) * 0.5f", f"powf(fabsf({source} / 4.0f), 2.0f)",
        f"expf({source} * -0.03125f) * 0.0f + {name}({source})", f"{name}({source}) + y[i]",
        f"({source} > 3 && {source} < 90 || {source} == -4 ? 4 : {source} > 99 ? 2 : 1)",
        f"(float){name}({source} + p)", f"{name}({source}) - {name}(x[i])",
        f"logf(1.0f + {source} * {source}) * 0.0f",
    ])  # fmt: skip
    does = rng.choice([
        f"out[i] = {value};", f"float v = {value};\nout[i] += v;", f"if (y[i] > 0.0f) out[i] = {value};",
        f"for (int k = 0; k < 3; ++k) out[i] += {value} + k;",
        f"int at = (int)({value}) & 7;\natomicAdd(&counts[at], 1);",
    ])  # fmt: skip
    begin = f"{kind} b = x[i];\n" if "b" in source.replace("blockIdx", "") else ""
    head = f"const {kind}* x, const float* y, float* out, int* counts, int n, int p"
    text = (
        f"{own}#pragma optiml launch of_byte grid(cdiv(n, 64)) block(64)\n__global__ void of_byte({head}) {{\n"
        f"int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i >= n) return;\n{begin}{does}\n}}\n"
    )
    arrays = {
        "x": Array(_KINDS[kind], ("n + 3",), "bits"), "y": Array("f4", ("n",)), "out": Array("f4", ("n",)),
        "counts": Array("i4", ("8",)),
    }  # fmt: skip
    first, second = sizes_of(rng, ["n"], (1, 2, 31, 64, 257, 700))
    given = {"p": rng.choice([0, 1, 3])}
    return Made("of_byte", text, arrays, first | given, second | given, inout=("out", "counts"))


def toned(rng: Random) -> Made:
    """Pixels of one, three or four bytes through a curve, such as a gamma, to bytes or floats."""
    pixel = rng.choice(["unsigned char", "uchar3", "uchar4"])
    members = {"unsigned char": [""], "uchar3": [".x", ".y", ".z"], "uchar4": [".x", ".y", ".z"]}[
        pixel
    ]
    curve = rng.choice([
        "v <= 0.04f ? v / 12.9f : powf((v + 0.05f) / 1.05f, 2.4f)", "powf(v, 1.0f / gain)",
        "1.0f / (1.0f + expf(-gain * (v - 0.5f)))", "logf(1.0f + gain * v) / logf(1.0f + gain)",
    ])  # fmt: skip
    scaled = rng.choice(["{0} / 255.0f", "(float){0} / 255", "{0} * (1.0f / 255.0f)"])
    called = [f"curve({scaled.format(f'image[i]{m}')}, gain)" for m in members]
    does = rng.choice([
        f"out[i] = {' + '.join(called)};", f"float sum = 0.0f;\nsum += {called[0]};\nout[i] = sum * 0.5f;",
        f"out[i] = fminf(fmaxf(255.0f * {called[-1]}, 0.0f), 255.0f);",
    ])  # fmt: skip
    text = (
        f"__device__ float curve(float v, float gain) {{\n    return {curve};\n}}\n"
        f"#pragma optiml launch toned grid(cdiv(n, 128)) block(128)\n"
        f"__global__ void toned(const {pixel}* image, float* out, int n, float gain) {{\n"
        f"int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i < n) {{\n{does}\n}}\n}}\n"
    )
    lanes = {"unsigned char": "n", "uchar3": "n * 3", "uchar4": "n * 4"}[pixel]
    arrays = {"image": Array("u1", (lanes,), "bits"), "out": Array("f4", ("n",))}
    first, second = sizes_of(rng, ["n"], (1, 2, 31, 64, 257, 700))
    scalars = {"gain": rng.choice([2.2, 1.5])}
    return Made("toned", text, arrays, first, second, scalars, inout=("out",), exact=False)


def letters(rng: Random) -> Made:
    """Letters as codes, counted, packed or turned into others."""
    code = (
        "__device__ int code(char c) {\n    switch (c) {\n    case 0: case 'a': return 0;\n    case 1: case 'c': return 1;\n"
        "    case 2: case 'g': return 2;\n    case 3: case 't': return 3;\n    }\n    return -1;\n}\n"
    )
    does = rng.choice([
        "int c = code(text[i]);\nif (c >= 0) atomicAdd(&counts[c], 1);", "out[i] = code(text[i]) == 2 ? 1.0f : 0.0f;",
        "int word = 0;\nfor (int k = 0; k < 3; ++k) word = word * 4 + (code(text[i + k]) & 3);\nout[i] = word;",
        "out[i] += code(text[n - 1 - i]);", "if (code(text[i]) == code(text[i + 1])) atomicAdd(counts, 1);",
    ])  # fmt: skip
    text = (
        f"{code}#pragma optiml launch letters grid(cdiv(n, 64)) block(64)\n"
        f"__global__ void letters(const char* text, int* counts, float* out, int n) {{\n"
        f"int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i >= n) return;\n{does}\n}}\n"
    )
    arrays = {
        "text": Array("i1", ("n + 3",), "bits"), "counts": Array("i4", ("4",)), "out": Array("f4", ("n",)),
    }  # fmt: skip
    first, second = sizes_of(rng, ["n"], (1, 2, 31, 64, 257, 700))
    return Made("letters", text, arrays, first, second, inout=("counts", "out"))


def decoded(rng: Random) -> Made:
    """Text of digits, to the numbers that they stand for: hexadecimal, or base 64."""
    hexadecimal = (
        "if (c >= '0' && c <= '9') return c - '0';\n    if (c >= 'a' && c <= 'f') return c - 'a' + 10;\n"
        "    if (c >= 'A' && c <= 'F') return c - 'A' + 10;\n    return 0;"
    )
    of_64 = (
        "if (c >= 'A' && c <= 'Z') return c - 'A';\n    if (c >= 'a' && c <= 'z') return c - 'a' + 26;\n"
        "    if (c >= '0' && c <= '9') return c - '0' + 52;\n    return c == '+' ? 62 : 63;"
    )
    value = rng.choice([hexadecimal, of_64])
    does = rng.choice([
        "out[i] = digit(text[2 * i]) * 16 + digit(text[2 * i + 1]);", "out[i] = digit(text[i]);",
        "int high = digit(text[2 * i]);\nint low = digit(text[2 * i + 1]);\nout[i] = high << 6 | low;",
    ])  # fmt: skip
    text = (
        f"__device__ int digit(char c) {{\n    {value}\n}}\n"
        f"#pragma optiml launch decoded grid(cdiv(n, 64)) block(64)\n"
        f"__global__ void decoded(const char* text, int* out, int n) {{\n"
        f"int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i < n) {{\n{does}\n}}\n}}\n"
    )
    arrays = {"text": Array("i1", ("n * 2",), "bits"), "out": Array("i4", ("n",))}
    first, second = sizes_of(rng, ["n"], (1, 2, 31, 64, 257, 700))
    return Made("decoded", text, arrays, first, second, inout=("out",))


FAMILY = (of_byte, toned, letters, decoded)
