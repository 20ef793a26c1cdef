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


FAMILY = (looked_up, looked_up, searched)
