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


def behind(rng: Random) -> Made:
    """Rounds that load what the ones before stored, now and then only, or nearly so."""
    column, back = rng.choice([0, 0, 1]), rng.choice([0, 0, 1])
    one = 1 if back else -1

    def at(ago: int) -> str:
        place = "j" if not ago else f"j {'+' if ago * one > 0 else '-'} {ago}"
        if column:
            return f"({place}) * rows + r" if ago else "j * rows + r"
        return f"r * cols + {place}"

    last, far = f"out[{at(1)}]", f"out[{at(2)}]"
    step = rng.choice([
        f"out[{at(0)}] = {last} + a[{at(0)}];", f"out[{at(0)}] += {last};",
        f"out[{at(0)}] = fmaxf({last}, a[{at(0)}]);\n",
        f"float v = a[{at(0)}];\nout[{at(0)}] = v - 0.5f * {last} + 0.25f * {far};",
        f"float v = {far};\nif (x[j] > 0.0f) v = {last};\nout[{at(0)}] = v + 1.0f;",
        f"out[{at(0)}] = x[j] * {last};\nlast[r] += out[{at(0)}];",
        f"out[{at(0)}] = a[{at(0)}];\nlast[r] += {last};",
        f"if (a[{at(0)}] > 0.5f) out[{at(0)}] = {last};",
        f"out[{at(0)}] = {far} + {last} - out[{at(0)}];\nif (x[j] > 1.0f) out[{at(1)}] = 0.0f;",
    ])  # fmt: skip
    head = "for (int j = cols - 3; j >= 0; --j)" if back else "for (int j = 2; j < cols; j++)"
    body = rng.choice(["", "if (x[0] > 1.0f) return;\n"]) + f"{head} {{\n{step}\n}}"
    text = program(rng, "behind", _PARAMETERS, axes(rng, ("r", "rows")), body)
    shape = ("cols", "rows") if column else ("rows", "cols")
    arrays = {
        "a": Array("f4", shape), "x": Array("f4", ("cols",)), "out": Array("f4", shape),
        "last": Array("f4", ("rows",), "zeros"),
    }  # fmt: skip
    sizes = sizes_of(rng, ["rows", "cols"], LONG_EXTENTS)
    return Made("carried", text, arrays, *sizes, inout=("out",), exact="x[j] *" not in step)


FAMILY = (carried, behind)
