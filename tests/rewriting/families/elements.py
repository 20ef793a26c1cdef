"""A thread for each element of a row, which goes through all of its row, or through a part of it."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import EXTENTS, Array, Made, axes, flat, program, sizes_of

from .rows import counting

_PARAMETERS = "const float* a, const float* x, float* out, int rows, int cols"


def elements(rng: Random) -> Made:
    """What each element makes of statistics of its row, one after the other."""
    own, other = (flat(rng, "row", "cols", name) for name in ("col", "j"))
    begin = rng.choice(["-1000.0f", "0.0f", f"a[{flat(rng, 'row', 'cols', '0')}]"])
    first = rng.choice(["s = fmaxf(s, a[AT]);", "if (a[AT] > s) s = a[AT];", "s += a[AT];"])
    second = rng.choice(
        ["sum += fmaxf(a[AT] - s, -8.0f);", "sum += a[AT] * x[j];", "if (a[AT] < s) sum += 1.0f;",
         "if (j != col) sum += a[AT];", "sum += out[AT];"]
    )  # fmt: skip
    loops = [counting(rng, first, "j", "cols"), counting(rng, second, "j", "cols")]
    between = rng.choice(["", "s *= 0.5f;", "if (col == 2) s += 1.0f;", "float u = s + x[col];"])
    leaves = rng.choice(["", "", "if (s == 3.0f) return;", "if (col % 3 == 1) return;"])
    store = rng.choice(
        [f"out[{own}] = a[{own}] * 0.5f - s + sum;", f"if (a[{own}] < s) out[{own}] = sum;",
         f"out[{own}] = s; sum += x[col]; out[{own}] += sum;"]
    )  # fmt: skip
    body = f"float s = {begin}, sum = 0.0f;\n{loops[0]}\n{between}\n{leaves}\n{loops[1]}\n{store}"
    body = body.replace("AT", other)
    inout = ("out",) if "out[" + other in body else ()
    if inout:  # nobody writes what others read
        body = body.replace(store, f"if (s > 5000.0f) out[{own}] = sum;")
    text = program(rng, "elements", _PARAMETERS, axes(rng, ("col", "cols"), ("row", "rows")), body)
    arrays = {
        "a": Array("f4", ("rows", "cols")), "x": Array("f4", ("cols",)),
        "out": Array("f4", ("rows", "cols"), "zeros"),
    }  # fmt: skip
    sizes, others = sizes_of(rng, ["rows", "cols"], EXTENTS)
    return Made("elements", text, arrays, sizes, others, inout=inout)


FAMILY = (elements,)
