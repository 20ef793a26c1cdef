"""Small tables in which the data say what is read: palettes, parameters, searches."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, program

_ITEMS = (130, 257, 320, 511, 640)
_ROOMS = (2, 3, 4)
_TYPES = {"f4": "float", "f8": "double", "i4": "int", "u1": "unsigned char"}


def looked_up(rng: Random) -> Made:
    """One element of a table or several, by an index that memory holds."""
    dtype = rng.choice(["f4", "f4", "f8", "i4", "u1"])
    kind, at = _TYPES[dtype], rng.choice(["q[i]", "q[i] % 2", "(q[i] + 1) % m"])
    found = rng.choice([
        f"t[{at}]", f"*(t + {at})", f"taken(t, {at})", f"t[{at}] + t[i % m]", f"t[{at}] * t[0]",
    ])  # fmt: skip
    body = rng.choice([
        f"out[i] = {found} + x[i];",
        f"float s = x[i];\nfor (int k = 0; k < 3; ++k) s += {found} * k;\nout[i] = s;",
        f"if (x[i] > 0.5f) out[i] = {found};\nelse out[i] = x[i];",
        f"const {kind}* p = t;\nout[i] = {found} - p[0];",
    ])  # fmt: skip
    parameters = f"const {kind}* t, const int* q, const float* x, float* out, int n, int m"
    text = program(rng, "looked_up", parameters, axes(rng, ("i", "n")), body)
    helper = f"__device__ {kind} taken(const {kind}* all, int at) {{ return all[at]; }}\n"
    text = text.replace("__global__", f"{helper}__global__", 1) if "taken(" in text else text
    return _made(rng, "looked up", text, dtype)


def rows_looked_up(rng: Random) -> Made:
    """Rows of a table, by indices that may count from its end, or that are brought inside."""
    shift = rng.choice([0, 1, 2])
    taken = f"q[i] - {shift}" if shift else "q[i]"
    at = rng.choice([
        "x < 0 ? x + m : x", "x < 0 ? x + m : x", "x >= m ? x - m : x < 0 ? m + x : x",
        "x >= 0 && x < m ? x : 0", "x < 0 || x >= m ? m - 1 : x",
    ])  # fmt: skip
    row = f"int x = {taken};\nint at = {at};\n"
    found = rng.choice(
        ["table[at * w + j]", "table[at * w + j] * b[j]", "b[j] + table[w * at + j]"]
    )
    body = row + rng.choice([
        f"out[i * w + j] = {found};", f"out[i * w + j] += {found};",
        f"if (x < 0) out[i * w + j] = {found};\nelse out[i * w + j] = b[j];",
    ])  # fmt: skip
    if rng.choice([0, 1]):  # by a branch, not by a choice
        body = body.replace(row, f"int x = {taken};\nint at = x;\nif (x < 0) at = x + m;\n")
    parameters = "const float* table, const int* q, const float* b, float* out, int n, int m, int w"
    arrays = {
        "table": Array("f4", ("m * w",)), "q": Array("i4", ("n",), "below m"), "b": Array("f4", ("w",)),
        "out": Array("f4", ("n * w",)),
    }  # fmt: skip
    first, second = (
        {"n": rng.choice([5, 33, 70]), "m": rng.choice([3, 7]), "w": rng.choice([4, 32, 60, 17])}
        for _ in range(2)
    )
    text = program(rng, "rows", parameters, axes(rng, ("i", "n"), ("j", "w")), body)
    return Made("rows looked up", text, arrays, first, second)


def searched(rng: Random) -> Made:
    """The place of a value among sorted ones, by halving, and what belongs to it."""
    half = rng.choice(["(lo + hi) / 2", "lo + (hi - lo) / 2", "(lo + hi) >> 1"])
    step = f"int mid = {half};\nif (t[mid] <= x[i]) lo = mid; else hi = mid;"
    body = f"int lo = 0, hi = m - 1;\nwhile (hi - lo > 1) {{\n{step}\n}}\n"
    body += rng.choice(["out[i] = lo;", "out[i] = t[lo] + x[i];", "out[i] = hi * t[hi] + q[i];"])
    parameters = "const float* t, const int* q, const float* x, float* out, int n, int m"
    text = program(rng, "searched", parameters, axes(rng, ("i", "n")), body)
    return _made(rng, "searched", text, "f4")


def _made(rng: Random, family: str, text: str, dtype: str) -> Made:
    arrays = {
        "t": Array(dtype, ("m",)), "q": Array("i4", ("n",), "below m"), "x": Array("f4", ("n",)),
        "out": Array("f4", ("n",)),
    }  # fmt: skip
    first, second = ({"n": rng.choice(_ITEMS), "m": rng.choice(_ROOMS)} for _ in range(2))
    return Made(family, text, arrays, first, second)


FAMILY = (looked_up, looked_up, searched, rows_looked_up, rows_looked_up)
