"""Sums and extremes that a loop keeps in memory: ``out[i] += ...`` in every round."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import LONG_EXTENTS, Array, Made, axes, flat, program, sizes_of

from .rows import counting


def row(rng: Random) -> Made:
    """A thread a row, or a column; what it begins with stands before the loop, or in memory."""
    element, shape = rng.choice(
        [
            (f"a[{flat(rng, 'row', 'cols', 'j')}]", ("rows", "cols")),
            (f"a[{flat(rng, 'j', 'rows', 'row')}]", ("cols", "rows")),
        ]
    )
    place = rng.choice(["out[row]", "out[row]", "*o"])
    update = rng.choice(
        [
            f"{place} += {element} * x[j];",
            f"{place} += {element};",
            f"{place} = {place} + {element};",
            f"{place} = fmaxf({place}, {element});",
            f"{place} = {place} * 0.5f + {element};",
            f"if ({element} > 0.0f) {place} += {element};",
            f"{place} -= {element};\n{place} += x[j];",
        ]
    )
    start = rng.choice(
        ["", f"{place} = 0;", f"{place} = 0.5f;", f"{place} = x[0];", f"{place} *= 2.0f;"]
    )
    end = rng.choice(["", "", f"{place} *= 0.5f;", f"if ({place} < 0.0f) {place} = 0.0f;"])
    pointer = "float* o = out + row;" if place == "*o" else ""
    loop = counting(rng, update)
    if rng.choice([0, 0, 0, 1]):
        loop = f"for (int r = 0; r < 2; ++r) {{\n{loop}\n}}"
    body = "\n".join(part for part in (pointer, start, loop, end) if part)
    parameters = "const float* a, const float* x, float* out, int rows, int cols"
    over = axes(rng, ("row", "rows"))
    text = program(rng, "kept", parameters, over, body)
    arrays = {"a": Array("f4", shape), "x": Array("f4", ("cols",)), "out": Array("f4", ("rows",))}
    sizes, others = sizes_of(rng, ["rows", "cols"], LONG_EXTENTS)
    exact = "0.5f +" not in update
    return Made("kept_row", text, arrays, sizes, others, inout=("out",), exact=exact)


def plane(rng: Random) -> Made:
    """A thread an output of a product, which is added to in memory."""
    at = flat(rng, "i", "m", "j")
    update = f"c[{at}] += a[{flat(rng, 'i', 'd', 'k')}] * b[{flat(rng, 'k', 'm', 'j')}];"
    start = rng.choice(["", "", f"c[{at}] = 0.0f;\n"])
    body = start + counting(rng, update, "k", "d")
    over = axes(rng, ("j", "m"), ("i", "n"))
    parameters = "const float* a, const float* b, float* c, int n, int m, int d"
    text = program(rng, "added", parameters, over, body)
    arrays = {name: Array("f4", shape) for name, shape in
              (("a", ("n", "d")), ("b", ("d", "m")), ("c", ("n", "m")))}  # fmt: skip
    sizes, others = sizes_of(rng, ["n", "m", "d"], (1, 2, 3, 5, 8, 17, 33, 40))
    return Made("kept_plane", text, arrays, sizes, others, inout=("c",))


FAMILY = (row, row, plane)
