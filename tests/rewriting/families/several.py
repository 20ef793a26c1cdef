"""Programs of more than one function: a helper that has the loop, two kernels one after the other."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import LONG_EXTENTS, Array, Made, axes, flat, program, sizes_of

from .rows import counting


def helped(rng: Random) -> Made:
    """The loop over a row is in a function that is given the row."""
    template = rng.choice([0, 0, 1])
    kind = "T" if template else "float"
    head = "template <typename T>\n" if template else ""
    head += rng.choice(["__device__ ", "__device__ inline ", "static __device__ __forceinline__ "])
    step = rng.choice(["s += p[j] * x[j];", "s += p[j];", "s = fmaxf(s, p[j]);", "if (p[j] > x[j]) s += 1.0f;"])  # fmt: skip
    above = (
        f"{head}{kind} along(const {kind}* p, const {kind}* x, int n) {{\n    {kind} s = 0.0f;\n"
        f"    {counting(rng, step, 'j', 'n')}\n    return s;\n}}\n"
    )
    row = rng.choice(["a + row * cols", "&a[row * cols]", "a + (size_t)row * cols"])
    body = f"out[row] = along({row}, x, cols){rng.choice(['', ' * 0.5f', ' + x[0]'])};"
    parameters = "const float* a, const float* x, float* out, int rows, int cols"
    text = program(rng, "helped", parameters, axes(rng, ("row", "rows")), body, above=above)
    arrays = {
        "a": Array("f4", ("rows", "cols")),
        "x": Array("f4", ("cols",)),
        "out": Array("f4", ("rows",), "zeros"),
    }
    return Made("helped", text, arrays, *sizes_of(rng, ["rows", "cols"], LONG_EXTENTS))


def two(rng: Random) -> Made:
    """A reduction of every row, and a second kernel that uses its results."""
    step = rng.choice(["s += a[row * cols + j];", "s = fmaxf(s, a[row * cols + j]);"])
    body = f"float s = 0.0f;\n{counting(rng, step)}\nsums[row] = s;"
    first = program(
        rng, "reduced", "const float* a, float* sums, int rows, int cols",
        axes(rng, ("row", "rows")), body,
    )  # fmt: skip
    at = flat(rng, "row", "cols", "col")
    target = rng.choice([at, flat(rng, "col", "rows", "row")])
    second = program(
        rng, "spread", "const float* a, const float* sums, float* out, int rows, int cols",
        axes(rng, ("col", "cols"), ("row", "rows")), f"out[{target}] = a[{at}] - sums[row];",
    )  # fmt: skip
    arrays = {
        "a": Array("f4", ("rows", "cols")),
        "sums": Array("f4", ("rows",), "zeros"),
        "out": Array("f4", ("rows * cols",), "zeros"),
    }
    sizes = sizes_of(rng, ["rows", "cols"], (1, 3, 4, 8, 17, 32, 33, 64))
    return Made("two", first + second, arrays, *sizes)


FAMILY = (helped, two)
