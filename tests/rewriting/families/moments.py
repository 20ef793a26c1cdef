"""Means, and then what lies around them: in one kernel or in two, of rows, columns and nests."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import EXTENTS, Array, Made, axes, flat, program, sizes_of

from .rows import counting


def _squares(rng: Random, element: str, mean: str) -> str:
    """What a round of the second loop does, into ``v``."""
    return rng.choice([
        f"float d = {element} - {mean};\nv += d * d;",
        f"v += ({element} - {mean}) * ({element} - {mean});",
        f"float d = {mean} - {element};\nv = v + d * d;",
        f"float t = {element};\nfloat d = t - {mean};\nv += d * d;",
        f"v += powf({element} - {mean}, 2.0f);",
        f"float d = {element} - {mean};\nv += d * fabsf(d);",
        f"float d = fabsf({element}) - {mean};\nv += d * d;",
        f"float d = {element} - {mean};\nif (d > 0.0f) v += d * d;",
    ])  # fmt: skip


def spread(rng: Random) -> Made:
    """A thread a row or a column, and two loops over it."""
    element = rng.choice([f"a[{flat(rng, 'i', 'm', 'k')}]", f"a[{flat(rng, 'k', 'n', 'i')}]"])
    kind = rng.choice(["float", "float", "double"])
    begin = rng.choice(["0", "0", "0.5f", "a[k]"])
    between = rng.choice(["", "", "if (k % 2) mean = -mean;\n", "mean += bias[k];\n"])
    body = (
        f"{kind} mean = 0;\n{counting(rng, f'mean += {element};', 'i', 'n')}\nmean /= n;\n{between}"
        f"{kind} v = {begin};\n{counting(rng, _squares(rng, element, 'mean'), 'i', 'n')}\n"
        f"out[k] = {rng.choice(['v', 'v / n', 'mean + sqrtf(fabsf(v))'])};"
    )
    parameters = "const float* a, const float* bias, float* out, int n, int m"
    text = program(rng, "spread", parameters, axes(rng, ("k", "m")), body)
    arrays = {"a": Array("f4", ("n", "m")), "bias": Array("f4", ("m",)), "out": Array("f4", ("m",))}
    return Made("spread", text, arrays, *sizes_of(rng, ["n", "m"], EXTENTS), exact=False)


def two_kernels(rng: Random) -> Made:
    """Means of columns or rows by one launch, the spread around them by the next."""
    element = rng.choice([f"a[{flat(rng, 'i', 'm', 'k')}]", f"a[{flat(rng, 'k', 'n', 'i')}]"])
    over = axes(rng, ("k", "m"))
    first = f"float s = 0.0f;\n{counting(rng, f's += {element};', 'i', 'n')}\nmeans[k] = s / n;"
    mean = rng.choice(["means[k]", "means[k]", "c"])
    above = "float c = means[k];\n" if mean == "c" else ""
    second = (
        f"{above}float v = 0.0f;\n{counting(rng, _squares(rng, element, mean), 'i', 'n')}\n"
        "out[k] = sqrtf(v / n);"
    )
    text = program(rng, "mean_of", "const float* a, float* means, int n, int m", over, first)
    text += program(rng, "spread_of", "const float* a, const float* means, float* out, int n, int m",
                    over, second)  # fmt: skip
    arrays = {"a": Array("f4", ("n", "m")), "out": Array("f4", ("m",))}
    directive = "#pragma optiml scratch means f4[m]\n"
    return Made(
        "two_moments", directive + text, arrays, *sizes_of(rng, ["n", "m"], EXTENTS), exact=False
    )


def nest(rng: Random) -> Made:
    """A thread a channel, and two nests of loops over images and pixels."""
    element = "a[(i * m + k) * p + j]"
    inner = counting(rng, f"s += {element};", "j", "p")
    again = counting(rng, _squares(rng, element, "s"), "j", "p")
    body = (
        f"float s = 0.0f;\n{counting(rng, inner, 'i', 'n')}\ns /= n * p;\nfloat v = 0.0f;\n"
        f"{counting(rng, again, 'i', 'n')}\nout[k] = v;"
    )
    text = program(rng, "channels", "const float* a, float* out, int n, int m, int p",
                   axes(rng, ("k", "m")), body)  # fmt: skip
    arrays = {"a": Array("f4", ("n", "m", "p")), "out": Array("f4", ("m",))}
    few = (1, 2, 3, 5, 8, 17)
    return Made("channel_spread", text, arrays, *sizes_of(rng, ["n", "m", "p"], few), exact=False)


def runs(rng: Random) -> Made:
    """A thread a channel or a group of them, over rows of pixels that lie one behind the other."""
    grouped = rng.choice([True, False])
    at = "((k * n + i) * h + j) * p + q" if grouped else "((i * m + k) * h + j) * p + q"
    element, inner = f"a[{at}]", "float v = s + q;\n" if rng.choice([0, 0, 1]) else ""
    step = rng.choice([f"s += {element};", f"s = fmaxf(s, {element});", f"s += {element} * b[i];",
                       f"if (j % 2 == 0) s += {element};", f"s += {element} * q;"])  # fmt: skip
    rows_of = counting(rng, counting(rng, step, "q", "p"), "j", "h")
    body = f"float s = 0.0f;\n{counting(rng, rows_of, 'i', 'n')}\n"
    kinds = ["", f"out[{at}] = {element} - s;", f"int w = {at};\n{inner}out[w] = s * a[w] + b[i];"]
    last = rng.choice(kinds)
    if last:
        rows_of = counting(rng, counting(rng, last, "q", "p"), "j", "h")
        body += counting(rng, rows_of, "i", "n") + "\n"
    parameters = (
        "const float* a, const float* b, float* sums, float* out, int n, int m, int h, int p"
    )
    text = program(rng, "runs", parameters, axes(rng, ("k", "m")), f"{body}sums[k] = s;")
    shape = ("m", "n", "h", "p") if grouped else ("n", "m", "h", "p")
    arrays = {"a": Array("f4", shape), "b": Array("f4", ("n",)), "sums": Array("f4", ("m",)),
              "out": Array("f4", shape)}  # fmt: skip
    few = (1, 2, 3, 5, 9)
    return Made("runs", text, arrays, *sizes_of(rng, ["n", "m", "h", "p"], few), exact=False)


def running(rng: Random) -> Made:
    """A mean that moves towards each element by its share, and mostly what varies around it."""
    element = rng.choice([f"a[{flat(rng, 'i', 'm', 'k')}]", f"a[{flat(rng, 'k', 'n', 'i')}]"])
    kind, count = rng.choice(["float", "float", "double"]), rng.choice(["(i + 1)", "(i + 1)", "c"])
    share = rng.choice([f"/ {count}", f"/ (float){count}", f"* (1.0f / {count})", "/ (i + 2)"])
    step = rng.choice([
        f"float d = {element} - mean;\nmean += d {share};\nv += d * ({element} - mean);",
        f"float x = {element};\n{kind} d = x - mean;\nmean = mean + d {share};\nv += d * (x - mean);",
        f"{kind} o = mean;\nmean += ({element} - o) {share};\nv += ({element} - o) * ({element} - mean);",
        f"float d = {element} - mean;\nmean += d {share};\nv += d * d;",
        f"float d = {element} - mean;\nmean += d {share};",
        f"float d = {element} - mean;\nmean += d {share};\nv = fmaxf(v, d);",
    ])  # fmt: skip
    ahead = "c++;\n" if count == "c" else ""
    body = (
        f"{kind} mean = {rng.choice(['0', '0.5f'])}, v = {rng.choice(['0', '1'])};\nint c = 0;\n"
        f"{counting(rng, ahead + step, 'i', 'n')}\nout[k] = mean + 0.5f * v + c;"
    )
    text = program(rng, "running", "const float* a, float* out, int n, int m",
                   axes(rng, ("k", "m")), body)  # fmt: skip
    arrays = {"a": Array("f4", ("n", "m")), "out": Array("f4", ("m",))}
    return Made("running", text, arrays, *sizes_of(rng, ["n", "m"], EXTENTS), exact=False)


FAMILY = (spread, two_kernels, nest, runs, running)
