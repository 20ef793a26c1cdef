"""Rows that a thread walks along with something that goes from round to round: scans, filters."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import LONG_EXTENTS, Array, Made, axes, flat, program, sizes_of

from .rows import counting

_PARAMETERS = "const float* a, const float* x, float* out, float* last, int rows, int cols"


def carried(rng: Random) -> Made:
    """A running sum or extreme, a recurrence by a local or by memory, in place or not."""
    column = rng.choice([0, 0, 0, 1])
    at = flat(rng, "j", "rows", "r") if column else flat(rng, "r", "cols", "j")
    element, target = rng.choice([f"a[{at}]", f"a[{at}]", f"out[{at}]"]), f"out[{at}]"
    step = rng.choice([
        f"s += {element};\n{target} = s;",
        f"{target} = s;\ns += {element};",
        f"s = fmaxf(s, {element});\n{target} = s;",
        f"float v = {element} + x[j];\n{target} = v - s;\ns = v;",
        f"if ({element} > 0.5f) s += 1.0f;\n{target} = s;",
        f"if (s > 3.0f) s -= {element};\nelse s += 1.0f;\n{target} = s;",
        f"s += {element};\nif (s > 2.0f) {target} = s;",
        f"s += {element};\n{target} += s;",
        f"s += {element} * x[j];\n{target} = s;\nif (j > 0) {target} -= x[j - 1];",
    ])  # fmt: skip
    behind = "".join(
        [f"\n{counting(rng, f'{target} -= s;')}" for _ in range(rng.choice([0, 0, 1]))]
    )
    body = f"float s = {rng.choice(['0.0f', 'x[0]'])};\n{counting(rng, step)}{behind}\nlast[r] = s;"
    text = program(rng, "carried", _PARAMETERS, axes(rng, ("r", "rows")), body)
    shape = ("cols", "rows") if column else ("rows", "cols")
    arrays = {
        "a": Array("f4", shape),
        "x": Array("f4", ("cols",)),
        "out": Array("f4", shape),
        "last": Array("f4", ("rows",), "zeros"),
    }
    sizes = sizes_of(rng, ["rows", "cols"], LONG_EXTENTS)
    return Made("carried", text, arrays, *sizes, inout=("out",))


FAMILY = (carried,)
