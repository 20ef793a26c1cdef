"""Loops of each item whose results meet by atomic operations: distances of sets, worst cases."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, sizes_of

_ROUNDS = (
    "float d = x[i] - y[q];\nd = d * d;", "float d = fabsf(x[i] - y[q]);", "float d = x[i] * y[q];",
    "float d = 0.0f;\nfor (int c = 0; c < 3; ++c) d += (x[3 * i + c] - y[3 * q + c]) * w[c];",
)  # fmt: skip
_KEEPS = ("if (d < m) m = d;", "m = fminf(m, d);", "m = fmaxf(m, d);", "m += d;")
_ENDS = (
    "atomicMax((int*)all, __float_as_int({0}));", "atomicMin((int*)all + i % 3, (int){0});",
    "atomicAdd(&all[0], {0});", "atomicAdd(&counts[i % 4], {0} > 4.0f ? 1 : 0);",
    "if ({0} > 2.0f) atomicAdd(counts, 1);", "out[i] = {0};\natomicAdd(&counts[1], 1);",
    "int before = atomicAdd(counts, 1);\nout[i] = {0} + (before < -1000000);",
)  # fmt: skip
_TREES = (
    "for (int h = {1}; h >= 1; h /= 2) {{\nif (t < h) {0};\n__syncthreads();\n}}",
    "for (int h = {1}; h > 0; h >>= 1) {{\nif (t < h) {0};\n__syncthreads();\n}}",
)


def met(rng: Random) -> Made:
    """A thread or a block an item."""
    keeps, rounds = rng.choice(_KEEPS), rng.choice(_ROUNDS)
    end = rng.choice(_ENDS)
    start = "0.0f" if "+=" in keeps else rng.choice(["1e30f", "1e30f", "x[0]"])
    if "max" in keeps:
        start = "-1e30f"
    head = "const float* x, const float* y, const float* w, float* all, int* counts, float* out, int n, int m_"
    body = f"float m = {start};\nfor (int q = {{0}}; q < m_; {{1}}) {{{{\n{rounds}\n{keeps}\n}}}}\n"
    if rng.choice([True, False]):
        block = rng.choice([32, 64])
        op = {
            "m += d;": "part[t] += part[t + h]",
            "m = fmaxf(m, d);": "part[t] = max(part[t], part[t + h])",
        }
        tree = rng.choice(_TREES).format(
            op.get(keeps, "part[t] = min(part[t], part[t + h])"), block // 2
        )
        text = (
            f"#pragma optiml launch met grid(n) block({block})\n__global__ void met({head}) {{\n"
            f"__shared__ float part[{block}];\nconst int i = blockIdx.x, t = threadIdx.x;\n"
            f"{body.format('t', f'q += {block}')}part[t] = m;\n__syncthreads();\n{tree}\n"
            f"if (t == 0) {{\n{end.format('part[0]')}\n}}\n}}\n"
        )
    else:
        text = (
            f"#pragma optiml launch met grid(cdiv(n, 64)) block(64)\n__global__ void met({head}) {{\n"
            f"int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i >= n) return;\n"
            f"{body.format('0', '++q')}{end.format('m')}\n}}\n"
        )
    text = text.replace("1e30f", "1e6f")
    arrays = {
        "x": Array("f4", ("n * 3",)), "y": Array("f4", ("m_ * 3",)), "w": Array("f4", ("3",)),
        "all": Array("f4", ("3",), "positive"), "counts": Array("i4", ("4",)), "out": Array("f4", ("n",)),
    }  # fmt: skip
    first, second = sizes_of(rng, ["n", "m_"], (1, 2, 5, 31, 33, 64, 130))
    return Made(
        "met",
        text,
        arrays,
        first,
        second,
        inout=("all", "counts", "out"),
        exact="w[c]" not in rounds,
    )


FAMILY = (met,)
