"""Long loops of few threads: columns, planes and pairs, whose rounds are worth to be shared."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, flat, program

from .rows import counting

_LONG = (128, 129, 131, 160, 192, 200, 257)
_WIDE = (1, 2, 3, 5, 17, 31, 32, 33, 47, 64, 65)
_STARTS = ("0.0f", "0.0f", "0", "0.5f", "x[0]", "bias[col]")
_ENDS = ("s", "s", "s / rows", "sqrtf(fabsf(s))", "s + bias[col]", "fmaxf(s, 0.0f)")


def _sizes(rng: Random, *names: str) -> tuple[dict[str, int], dict[str, int]]:
    """Sizes at which the axis is long, and others at which it may be empty of work for most."""
    first, second = ({n: rng.choice(_WIDE) for n in names} for _ in range(2))
    return first | {"rows": rng.choice(_LONG)}, second | {"rows": rng.choice((1, 2, 7, 33, 130))}


def _step(rng: Random, element: str) -> tuple[str, str, str]:
    """A declaration, what a round does, and what is left: exact in any order."""
    term = rng.choice([element, element, f"{element} * x[i]", f"fabsf({element})"])
    kind = rng.randrange(8)
    if kind < 4:
        step = rng.choice([f"s += {term};", f"s = s + {term};", f"s -= {term};", f"if (x[i] > 0.0f) s += {term};"])  # fmt: skip
        return f"float s = {rng.choice(_STARTS)};", step, rng.choice(_ENDS[:2])
    if kind == 4:
        step = rng.choice([f"s = fmaxf(s, {element});", f"if ({element} > s) s = {element};"])
        return "float s = -1e30f;", step, rng.choice(_ENDS)
    if kind == 5:
        return "double s = 0.0;", f"s += {term};", "(float)s"
    if kind == 6:
        return "int s = 0;", f"s += (int)(8.0f * {element});", "s * 0.125f"
    step = f"float v = {element};\ns += v;\nt = fminf(t, v);\nu += v * v;"
    return "float s = 0.0f, t = bias[col], u = 0.0f;", step, "s + t - u"


def column(rng: Random) -> Made:
    """A thread a column of a few, with what begins and what ends it."""
    element = f"a[{flat(rng, 'i', 'cols', 'col')}]"
    declared, step, whole = _step(rng, element)
    loop = counting(rng, step, "i", "rows")
    target = rng.choice(["out[col] = {};", "out[col] = {};", "out[col] += {};", "if (x[0] > 0.0f) out[col] = {};\nelse out[col] = 1.0f;"])  # fmt: skip
    body = f"{declared}\n{loop}\n{target.format(whole)}"
    if rng.choice([0, 0, 0, 1]):
        loop = counting(rng, f"q += ({element} - s) * 0.5f;", "i", "rows")
        body = f"{declared}\n{counting(rng, step, 'i', 'rows')}\nfloat q = 0.0f;\n{loop}\nout[col] = q;"  # fmt: skip
    if rng.choice([0, 0, 0, 1]):
        body = f"if (bias[col] > 1.5f) return;\n{body}"
    parameters = "const float* a, const float* x, const float* bias, float* out, int rows, int cols"
    text = program(rng, "column", parameters, axes(rng, ("col", "cols")), body)
    arrays = {
        "a": Array("f4", ("rows", "cols")),
        "x": Array("f4", ("rows",)),
        "bias": Array("f4", ("cols",)),
        "out": Array("f4", ("cols",)),
    }
    return Made("column", text, arrays, *_sizes(rng, "cols"), inout=("out",))


def few(rng: Random) -> Made:
    """A plane of few outputs, each a sum over what is long: products, images on one another."""
    left = rng.choice([flat(rng, "i", "m", "row"), flat(rng, "row", "rows", "i")])
    right = f"b[{flat(rng, 'i', 'n', 'col')}]"
    step = rng.choice([f"s += a[{left}] * {right};", f"s = fmaxf(s, a[{left}] + {right});"])
    body = f"float s = {rng.choice(['0.0f', '0.5f'])};\n{counting(rng, step, 'i', 'rows')}\nc[{flat(rng, 'row', 'n', 'col')}] = {rng.choice(['s', '2.0f * s'])};"  # fmt: skip
    over = axes(rng, ("col", "n"), ("row", "m"))
    text = program(rng, "few", "const float* a, const float* b, float* c, int rows, int m, int n", over, body)  # fmt: skip
    arrays = {
        "a": Array("f4", ("rows * m",)),
        "b": Array("f4", ("rows", "n")),
        "c": Array("f4", ("m", "n"), "zeros"),
    }
    return Made("few", text, arrays, *_sizes(rng, "m", "n"))


def against(rng: Random) -> Made:
    """Each of a few points against each of many, in one or two sums."""
    second = rng.choice(["", "t += d;", "t = fmaxf(t, d);"])
    step = f"float d = y[i] - p;\ns += d * d;\n{second}".rstrip()
    whole = "s + t" if second else "s"
    body = f"float p = x[col], s = 0.0f, t = 0.0f;\n{counting(rng, step, 'i', 'rows')}\nout[col] = {whole};"  # fmt: skip
    parameters = "const float* x, const float* y, float* out, int rows, int cols"
    text = program(rng, "against", parameters, axes(rng, ("col", "cols")), body)
    arrays = {
        "x": Array("f4", ("cols",)),
        "y": Array("f4", ("rows",)),
        "out": Array("f4", ("cols",), "zeros"),
    }
    return Made("against", text, arrays, *_sizes(rng, "cols"))


FAMILY = (column, column, column, few, against)
