"""Transforms of small blocks by their definition, each thread an output of its own."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, sizes_of

_ANGLE = {"cosf": "0.19634954f", "sinf": "0.39269908f", "expf": "-0.01f"}


def _factor(rng: Random, at: str, of: str) -> str:
    function = rng.choice(["cosf", "cosf", "cosf", "sinf", "expf"])
    inside = rng.choice([f"(2 * {at} + 1) * {of}", f"({at} + 1) * {of}", f"{at} * {of}"])
    return f"{function}({inside} * {_ANGLE[function]})"


def transforms(rng: Random) -> Made:
    """A block of threads for a block of the image, as JPEG has them, with or without bounds."""
    line, staged, bound = (rng.random() < chance for chance in (0.3, 0.3, 0.3))
    b = rng.choice([4, 4, 8])
    u, v = (f"t % {b}", f"t / {b}") if line else ("threadIdx.x", "threadIdx.y")
    column = _factor(rng, "x", "u")
    row = rng.choice([_factor(rng, "y", "v"), _factor(rng, "y", "v"), f"weights[v * {b} + y]"])
    source = "tile[y][x]" if staged else "image[(by + y) * w + bx + x]"
    head = "int t = threadIdx.x;\n    " if line else ""
    tile = (
        f"    __shared__ float tile[{b}][{b}];\n    tile[v][u] = image[(by + v) * w + bx + u];\n"
        "    __syncthreads();\n"
        if staged
        else ""
    )
    test = "    if (bx + u >= w || by + v >= h) return;\n" if bound and not staged else ""
    product = rng.choice([f"{source} * {column} * {row}", f"{column} * {row} * {source}"])
    text = f"""\
#pragma optiml launch transforms grid(w / {b}, h / {b}) block({b * b if line else f"{b}, {b}"})
__global__ void transforms(const float* image, const float* weights, float* out, int w, int h) {{
    {head}int u = {u}, v = {v};
    int bx = blockIdx.x * {b}, by = blockIdx.y * {b};
{tile}{test}    float sum = 0.0f;
    for (int y = 0; y < {b}; y++)
        for (int x = 0; x < {b}; x++)
            sum += {product};
    out[(by + v) * w + bx + u] = {rng.choice(["sum", "0.25f * sum", "sum + 1.0f"])};
}}
"""
    arrays = {
        "image": Array("f4", ("h", "w")), "weights": Array("f4", ("64",)),
        "out": Array("f4", ("h", "w"), "zeros"),
    }  # fmt: skip
    one, other = sizes_of(rng, ["w", "h"], (8, 16, 24))
    return Made("transforms", text, arrays, one, other, exact=False)


FAMILY = (transforms,)
