"""Sums by key, of which each thread or block looks through all rows for its own."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, program, sizes_of

_SIZES = (1, 2, 3, 5, 8, 16, 17, 33, 64)


def _round(rng: Random, own: str, key: str) -> tuple[str, bool]:
    """What a round does for its key, and whether it counts beside its sum."""
    value = rng.choice(["x[j]", "x[j] * 2.0f", "x[j] * w[j % 4]", "1.0f"])
    test = rng.choice([f"{key} == {own}", f"{own} == {key}"])
    form = rng.randrange(6)
    if form == 0:
        return f"if ({test}) s += {value};", False
    if form == 1:
        return f"if ({test}) {{\ns += {value};\nc++;\n}}", True
    if form == 2:
        return f"if ({key} != {own}) continue;\ns += {value};", False
    if form == 3:
        return f"s += {test} ? {value} : 0.0f;", False
    if form == 4:
        return f"int own = {key};\nif (own == {own}) s += {value};", False
    return f"if ({test} && x[j] > 0.0f) {{ s += {value}; c += 1; }}", True


def _loop(rng: Random, inside: str) -> str:
    head = rng.choice([
        "for (int j = 0; j < n; ++j)", "for (int j = 0; j < n; j++)", "for (int j = n - 1; j >= 0; --j)",
    ])  # fmt: skip
    return f"{head} {{\n{inside}\n}}"


def keyed(rng: Random) -> Made:
    """A thread a group."""
    inside, counts = _round(rng, "i", rng.choice(["key[j]", "key[j]", "key[2 * j]"]))
    left = rng.choice(["out[i] = s;", "out[i] = s * 0.5f;", "out[i] += s;"])
    left += " number[i] = c;" if counts else ""
    text = program(
        rng, "keyed",
        "const int* key, const float* x, const float* w, float* out, int* number, int n, int m",
        axes(rng, ("i", "m")),
        f"float s = 0.0f;\nint c = 0;\n{_loop(rng, inside)}\n{left}",
    )  # fmt: skip
    arrays = {
        "key": Array("i4", ("2 * n",), "below m"), "x": Array("f4", ("n",)),
        "w": Array("f4", ("4",)), "out": Array("f4", ("m",), "zeros"),
        "number": Array("i4", ("m",), "zeros"),
    }  # fmt: skip
    return Made("keyed", text, arrays, *sizes_of(rng, ["n", "m"], _SIZES), inout=("out",))


def ordered(rng: Random) -> Made:
    """The last of a group, or all up to a number: left as they are."""
    inside = rng.choice([
        "if (key[j] == i) s = x[j];",
        "if (key[j] == i && c < 3) { s += x[j]; c++; }",
        "if (key[j] == i) s = s * 0.5f + x[j];",
        "if (key[j] <= i) s += x[j];",
        "if (key[j] == i) s += x[j]; else c++;",
    ])  # fmt: skip
    text = program(
        rng, "ordered", "const int* key, const float* x, float* out, int n, int m",
        axes(rng, ("i", "m")),
        f"float s = 0.0f;\nint c = 0;\nfor (int j = 0; j < n; ++j) {{\n{inside}\n}}\nout[i] = s + c;",
    )  # fmt: skip
    arrays = {
        "key": Array("i4", ("n",), "below m"), "x": Array("f4", ("n",)),
        "out": Array("f4", ("m",), "zeros"),
    }  # fmt: skip
    return Made("ordered", text, arrays, *sizes_of(rng, ["n", "m"], _SIZES), exact=False)


FAMILY = (keyed, ordered)
