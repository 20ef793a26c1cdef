"""Items that update what data say, sorted by it or not: edges into nodes, sparse triples, votes."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, flat, program

_WIDE, _HIGH = (1, 2, 7, 16, 30, 33, 64), (3, 8, 19, 40, 65)
_TYPES = {"f4": "float", "f8": "double", "i4": "int"}
_OPS = {"f4": ("Add",), "f8": ("Add",), "i4": ("Add", "Add", "Sub", "Min", "Max", "Or")}


def _body(rng: Random, item: str, row: str, place: str, dtype: str) -> str:
    op, key = rng.choice(_OPS[dtype]), rng.choice(["sorted", "sorted", "any"])
    value = rng.choice([f"x[{item}]", f"x[{item}] * b[{row} % 3]", "1", f"x[{item}] - 0.5f"])
    kind = "(int)" if dtype == "i4" else ""
    where, begun = f"{key}[{row}]", ""
    if rng.choice([0, 1]):
        begun, where = f"const int to = {where};\n", "to"
    update = f"atomic{op}(&out[{place.format(where)}], {kind}({value}));"
    if rng.choice([0, 0, 1]):
        update = f"if (x[{item}] > 0.0f) {{ {update} }}"
    return begun + update


def _made(rng: Random, family: str, text: str, dtype: str, out: tuple[str, ...], wide: bool) -> Made:  # fmt: skip
    arrays = {
        "x": Array("f4", ("h", "w") if wide else ("h",)), "b": Array("f4", ("3",)),
        "sorted": Array("i4", ("h + 1",), "starts h"), "any": Array("i4", ("h",), "below h"),
        "out": Array(dtype, out, "zeros"),
    }  # fmt: skip
    first, second = ({"w": rng.choice(_WIDE), "h": rng.choice(_HIGH)} for _ in range(2))
    return Made(family, text, arrays, first, second)


def _parameters(dtype: str) -> str:
    given = "const float* x, const float* b, const int* sorted, const int* any"
    return f"{given}, {_TYPES[dtype]}* out, int w, int h"


def merged_line(rng: Random) -> Made:
    """An element for each item."""
    dtype = rng.choice(["f4", "f4", "i4", "f8"])
    text = program(
        rng, "merged_line", _parameters(dtype), axes(rng, ("y", "h")),
        _body(rng, "y", "y", "{}", dtype), directives="#pragma optiml zero(out)\n",
    )  # fmt: skip
    return _made(rng, "merged_line", text, dtype, ("h + 1",), wide=False)


def merged_rows(rng: Random) -> Made:
    """A row for each item."""
    dtype = rng.choice(["f4", "f4", "i4"])
    text = program(
        rng, "merged_rows", _parameters(dtype), axes(rng, ("x_", "w"), ("y", "h")),
        _body(rng, flat(rng, "y", "w", "x_"), "y", "{} * w + x_", dtype),
        directives="#pragma optiml zero(out)\n",
    )  # fmt: skip
    return _made(rng, "merged_rows", text, dtype, ("h + 1", "w"), wide=True)


def merged_columns(rng: Random) -> Made:
    """All rows of a column to one element, or to one of two by what they hold."""
    dtype = rng.choice(["f4", "f4", "i4", "f8"])
    place = rng.choice(
        ["x_", "x_", "w - 1 - x_", "x_ + (sorted[x_ % h] & 1) * w", "x_ + y % 2 * w"]
    )
    text = program(
        rng, "merged_columns", _parameters(dtype), axes(rng, ("x_", "w"), ("y", "h")),
        _body(rng, flat(rng, "y", "w", "x_"), "y", place, dtype),
        directives="#pragma optiml zero(out)\n",
    )  # fmt: skip
    return _made(rng, "merged_columns", text, dtype, ("2", "w"), wide=True)


FAMILY = (merged_line, merged_rows, merged_columns)
