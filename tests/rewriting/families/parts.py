"""Rows whose rounds take the parts of a number: complex ones, pixels, two of four bits in a byte."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import LONG_EXTENTS, Array, Made, axes, program, sizes_of

_PARAMETERS = (
    "const float* a, const unsigned char* c, const float* x, float* out, int rows, int cols"
)


def numbers(rng: Random) -> Made:
    """A sum over a row of numbers of two to five parts, not all of which every round may take."""
    parts = rng.choice([2, 2, 3, 3, 4, 5])
    array = rng.choice(["a", "a", "c"])
    shift = rng.choice(["", "", "", " + 1", " + rows"])
    number = rng.choice(["(row * cols + j)", "(j + row * cols)", "(cols * row + j)"])
    start = rng.choice([f"{parts} * {number}", f"{number} * {parts}"])
    terms = [f"{array}[{start}{f' + {part}' if part else ''}{shift}]" for part in range(parts)]
    rng.shuffle(terms)
    taken = terms[: rng.choice([parts, parts, parts, parts - 1])]
    signs = rng.choice([["+", "-"], ["+"], ["*", "+"]])
    term = taken[0] + "".join(f" {signs[n % len(signs)]} {one}" for n, one in enumerate(taken[1:]))
    term = rng.choice([term, f"({term}) * x[j]", f"x[2 * j] * ({term}) + x[2 * j + 1]"])
    some = rng.choice(["", "", "", f"if ({terms[0]} > 0.5f) ", "if (j > 2) "])
    head = rng.choice(["for (int j = 0; j < cols; ++j)", "for (int j = cols - 1; j >= 0; j--)"])
    return _made(rng, "numbers", f"{head} {some}s += {term};")


def halves(rng: Random) -> Made:
    """Rounds that step by several, and a quotient of their counter by as many."""
    step = rng.choice([2, 2, 4, 8, 3])
    power = step.bit_length() - 1
    head = rng.choice([
        f"for (int j = 0; j < cols; j += {step})", f"for (int j = 0; j + {step - 1} < cols; j += {step})",
        f"for (int j = {step}; j < cols; j += {step})", f"for (int j = 1; j < cols; j += {step})",
        f"for (int j = 0; j <= cols - {step}; j += {step})",
    ])  # fmt: skip
    number = rng.choice(
        ["row * cols + j", "j + row * cols", "row + j", "j + row * 8", "j + rows - row"]
    )
    place = f"({number}) / {step}" if step == 3 or rng.choice([0, 1]) else f"({number}) >> {power}"
    if rng.choice([0, 0, 1]):
        place = f"row * (cols / {step}) + j / {step}"
    rest = rng.choice(
        ["x[j]", "x[j] - x[j + 1]", f"((j + row) % {step}) * x[j]", f"((row * cols + j) % {step})"]
    )
    inner = rng.choice([
        f"s += c[{place}] * {rest};",
        f"unsigned char v = c[{place}];\ns += (v & 15) * x[j];\ns += (v >> 4) * x[j + 1];",
        f"s += a[{place}] + {rest};",
    ])  # fmt: skip
    return _made(rng, "halves", f"{head} {{\n{inner}\n}}")


def _made(rng: Random, family: str, inner: str) -> Made:
    arrays = {
        "a": Array("f4", ("5 * rows * cols + rows + 8",)), "c": Array("u1", ("5 * rows * cols + rows + 8",)),
        "x": Array("f4", ("2 * cols + 8",)), "out": Array("f4", ("rows",), "zeros"),
    }  # fmt: skip
    body = f"float s = 0.0f;\n{inner}\nout[row] = s;"
    first, second = sizes_of(rng, ["rows", "cols"], LONG_EXTENTS)
    text = program(rng, family, _PARAMETERS, axes(rng, ("row", "rows")), body)
    return Made(family, text, arrays, first, second)


FAMILY = (numbers, halves)
