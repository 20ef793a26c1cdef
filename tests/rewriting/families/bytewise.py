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


FAMILY = (of_byte,)
