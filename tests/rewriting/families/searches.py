"""Searches from the first element on that end with what they find, in rows and in tables."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, program, sizes_of

_TESTS = {
    "row": ["a[i * m + j] > 1.5f", "a[i * m + j] == b[j]", "fabsf(a[i * m + j] - b[0]) < 0.25f",
            "a[i * m + j] > 0.5f && b[j] > a[i * m]"],
    "column": ["a[j * n + i] > 1.5f", "a[j * n + i] == b[j]"],
    "table": ["b[j] == a[i]", "a[i] >= b[j] && a[i] < b[j] + 0.25f", "!(b[j] < a[i] + 1.0f)"],
}  # fmt: skip


def searched(rng: Random) -> Made:
    """Where each item finds something, whether it does, or what lies there."""
    kind = rng.choice(["row", "row", "column", "table", "table"])
    test = rng.choice(_TESTS[kind])
    counter = rng.choice(["int", "int", "unsigned", "long long"])
    end = "m" if counter != "unsigned" else "(unsigned)m"
    begun = rng.choice(["-1", "m", "0"])
    given = rng.choice(["at = j;", "at = (int)j;", "at = 1;", "at = (int)(b[j] * 8.0f);"])
    head = f"for ({counter} j = {rng.choice(['0', '0', '0', '1'])}; j < {end}; {rng.choice(['j++', '++j', 'j += 1'])})"
    left = rng.choice(["break", "break", "break", "return"])
    local = rng.choice(["", "", "float d = b[j];\n"])
    if local:
        test = test.replace("b[j]", "d")
    found = given if left == "break" else f"out[i] = {begun.replace('m', 'i')} + 2; return;"
    found = f"{found} break;" if left == "break" else found
    search = f"{head} {{\n{local}if ({test}) {{ {found} }}\n}}\n"
    form = rng.choice(["break", "break", "walked", "flag"])
    if form == "walked":
        test = test.replace("d", "b[j]") if local else test
        search = f"{counter} j = 0;\nwhile (j < {end} && !({test})) j++;\nat = (int)j;\n"
    elif form == "flag":
        met = head.replace(f"j < {end}", f"j < {end} && !met")
        search = f"bool met = false;\n{met} {{\n{local}if ({test}) {{ {given} met = true; }}\n}}\n"
    body = f"int at = {begun};\n{search}out[i] = {rng.choice(['at', 'at', 'at + 1'])};"
    text = program(
        rng,
        "searched",
        "const float* a, const float* b, int* out, int n, int m",
        axes(rng, ("i", "n")),
        body,
    )
    shape = {"row": ("n", "m"), "column": ("m", "n"), "table": ("n",)}[kind]
    arrays = {
        "a": Array("f4", shape),
        "b": Array("f4", ("m",)),
        "out": Array("i4", ("n",), "zeros"),
    }
    return Made(
        "searched", text, arrays, *sizes_of(rng, ["n", "m"], (1, 2, 5, 31, 33, 65, 130, 300))
    )


FAMILY = (searched,)
