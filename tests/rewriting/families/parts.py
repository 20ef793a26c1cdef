"""Rows whose rounds take the parts of a number: complex ones, pixels, two of four bits in a byte."""

from __future__ import annotations

from dataclasses import replace
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


def grouped(rng: Random) -> Made:
    """A row by groups: a scale for each, and a loop over its elements inside of the one over them."""
    of = rng.choice(["g", "8"])
    count = f"cols / {of}"
    first = rng.choice(["", "float q = x[i];\n", "int at = row * cols + i * {of};\n"])
    at = (
        "at + k"
        if "at =" in first
        else rng.choice(["row * cols + i * {of} + k", "k + i * {of} + row * cols"])
    )
    here = rng.choice(["x[i * {of} + k]", "x[k]", "x[i * {of} + k] - x[i]"])
    scale = rng.choice([f"a[row * ({count}) + i]", "x[i]", "0.5f", "(float)(i + 1)"])
    step = rng.choice(["k++", "k++", "++k", "k += 2"])
    term = f"c[{at}] * ({here})" if rng.choice([0, 1]) else f"a[{at}] * ({here})"
    if "q" in first:
        term = f"({term} - q)"
    last = rng.choice(["s += p * {0};", "s += {0} * p;", "s -= p * {0} * 0.25f;", "s += p / 4.0f;"])
    lines = rng.choice([
        ["float p = 0.0f;", "p += " + term + ";", last.format(scale)],
        [f"float z = {scale};", f"s += {term} * z;", ""], ["", f"s += {term} * {scale};", ""],
    ])  # fmt: skip
    inner = (
        f"for (int i = 0; i < {count}; i++) {{\n{first}{lines[0]}\n"
        f"for (int k = 0; k < {{of}}; {step}) {{\n{lines[1]}\n}}\n{lines[2]}\n}}"
    )
    made = _made(rng, "grouped", inner.replace("{of}", of), ", int g")
    sizes, others = (
        {**own, "g": rng.choice([1, 2, 4, 8, 16])} for own in (made.sizes, made.others)
    )
    return replace(made, sizes=sizes, others=others)


def _made(rng: Random, family: str, inner: str, more: str = "") -> Made:
    arrays = {
        "a": Array("f4", ("5 * rows * cols + rows + 8",)), "c": Array("u1", ("5 * rows * cols + rows + 8",)),
        "x": Array("f4", ("2 * cols + 8",)), "out": Array("f4", ("rows",), "zeros"),
    }  # fmt: skip
    body = f"float s = 0.0f;\n{inner}\nout[row] = s;"
    first, second = sizes_of(rng, ["rows", "cols"], LONG_EXTENTS)
    text = program(rng, family, _PARAMETERS + more, axes(rng, ("row", "rows")), body)
    return Made(family, text, arrays, first, second)


FAMILY = (numbers, halves, grouped)
