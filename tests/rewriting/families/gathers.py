"""Rows that memory says: embeddings, bags of them, products with sparse rows."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, flat, program

_WIDE, _HIGH = (16, 24, 30, 32, 64), (5, 19, 40)


def gathered(rng: Random) -> Made:
    """One row of a table for each row of the result."""
    at = rng.choice(["at[y]", "at[y]", "at[at[y]]"])
    row = rng.choice([f"table[{flat(rng, at, 'w', 'x')}]", "taken[x]"])
    body = f"out[{flat(rng, 'y', 'w', 'x')}] = {rng.choice(['', 'b[x] + ', '0.5f * '])}{row};"
    if "taken" in row:
        body = f"const float* taken = table + {at} * w;\n{body}"
    return _made(rng, "gathered", body)


def bagged(rng: Random) -> Made:
    """The sum of the rows of a table that a segment of places names, weighed or not."""
    weight = rng.choice(["", "b[k % w] * ", "table[k % w] * "])
    term = f"{weight}table[{flat(rng, 'at[k]', 'w', 'x')}]"
    body = f"s += {term};"
    if rng.choice([0, 0, 0, 1]):
        body = f"if (b[k % w] > 0.0f) {body}"
    ends = rng.choice(
        [("from[y]", "from[y + 1]"), ("from[y]", "from[y + 1]"), ("0", "3"), ("y", "h")]
    )
    loop = f"for (int k = {ends[0]}; k < {ends[1]}; {rng.choice(['k++', '++k', 'k += 1'])}) {body}"
    return _made(rng, "bagged", f"float s = 0.0f;\n{loop}\nout[{flat(rng, 'y', 'w', 'x')}] = s;")


def _made(rng: Random, family: str, body: str) -> Made:
    parameters = "const float* table, const int* at, const int* from, const float* b, float* out, int w, int h"
    text = program(rng, family, parameters, axes(rng, ("x", "w"), ("y", "h")), body)
    arrays = {
        "table": Array("f4", ("h", "w")), "at": Array("i4", ("h",), "below h"),
        "from": Array("i4", ("h + 1",), "starts h"), "b": Array("f4", ("w",)),
        "out": Array("f4", ("h", "w"), "zeros"),
    }  # fmt: skip
    first, second = ({"w": rng.choice(_WIDE), "h": rng.choice(_HIGH)} for _ in range(2))
    return Made(family, text, arrays, first, second)


FAMILY = (gathered, bagged, bagged)
