"""Attention and its kin by a thread an output: all channels of a query find the same scores."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, program

_WIDE, _LONG = (8, 9, 12, 16), (1, 8, 9, 13, 17)


def _score(rng: Random, at: str) -> str:
    """A local ``s`` with what belongs to a query and a key."""
    term = rng.choice([
        f"q[i * d + e] * x[{at} * d + e]", f"q[i * d + e] * x[{at} * d + e]",
        f"fabsf(q[i * d + e] - x[{at} * d + e])", f"fmaxf(q[i * d + e], x[{at} * d + e])",
    ])  # fmt: skip
    after = rng.choice(["", "", "s *= 0.5f;", "s = s + b[e0];", "if (s < 0.0f) s = -s;"])
    after = after.replace("e0", rng.choice([at, "i", "c"]))
    return f"float s = 0.0f;\nfor (int e = 0; e < d; ++e) s += {term};\n{after}\n"


def _loop(rng: Random, inner: str) -> str:
    """A loop over keys, all or those up to the query."""
    end = rng.choice(["n", "n", "n", "i + 1", "min(i + 1, n)"])
    skip = rng.choice(["", "", "", "if (j == i) continue;\n", "if (b[j] > 2.0f) continue;\n"])
    return f"for (int j = 0; j < {end}; {rng.choice(['j++', '++j'])}) {{\n{skip}{inner}\n}}\n"


def attended(rng: Random) -> Made:
    """The greatest score of a query, a sum around it, and values weighed by scores."""
    score = _score(rng, "j")
    again = score if rng.choice([0, 0, 1]) else _score(rng, "j")
    body = "float top = -1e30f;\n"
    step = rng.choice(["if (s > top) top = s;", "top = fmaxf(top, s);"])
    body += _loop(rng, score + step)
    if rng.choice([0, 1]):
        body += "float sum = 1.0f;\n" + _loop(rng, again + "sum += s > top - 2.0f ? 1.0f : 0.5f;")
        body += "top += sum;\n"
    value = rng.choice(["x[j * d + c]", "x[j * d + c]", "b[j]"])
    body += "float all = 0.0f;\n" + _loop(rng, again + f"all += s * {value};")
    return _made(rng, "attended", body, "all + top")


def totals(rng: Random) -> Made:
    """What each thread finds of a whole array, or of a row, before it does its own."""
    of = rng.choice(["b[j]", "x[j * d]", "q[i * d + j % d]", "x[j * d + c]"])
    start, step = rng.choice(
        [
            ("0.0f", f"whole += {of};"),
            ("-1e30f", f"whole = fmaxf(whole, {of});"),
            ("b[0]", f"whole += {of};"),
        ]
    )
    guard = rng.choice(["", "", "if (b[i] < 0.0f) return;\n", "if (c > i) return;\n"])
    body = f"{guard}float whole = {start};\n{_loop(rng, step)}"
    if rng.choice([0, 1]):
        body += f"float u = 0.5f;\n{_loop(rng, f'u += {of} > whole ? 1.0f : 2.0f;')}whole = whole + u;\n"
    loop = _loop(rng, "all += x[j * d + c];") if rng.choice([0, 1]) else "all = x[i * d + c];\n"
    return _made(rng, "totals", f"{body}float all = 1.0f;\n{loop}", "all + whole")


def _made(rng: Random, family: str, body: str, end: str) -> Made:
    parameters = "const float* q, const float* x, const float* b, float* out, int n, int d"
    text = program(
        rng, family, parameters, axes(rng, ("c", "d"), ("i", "n")), f"{body}out[i * d + c] = {end};"
    )
    arrays = {
        "q": Array("f4", ("n", "d")), "x": Array("f4", ("n", "d")), "b": Array("f4", ("n + d",)),
        "out": Array("f4", ("n", "d"), "zeros"),
    }  # fmt: skip
    first, second = ({"n": rng.choice(_LONG), "d": rng.choice(_WIDE)} for _ in range(2))
    return Made(family, text, arrays, first, second)


FAMILY = (attended, attended, totals)
