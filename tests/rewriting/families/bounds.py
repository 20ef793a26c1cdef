"""Loops over all, whose rounds begin with comparisons: bands, borders, full convolutions."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, program

from .rows import counting

_SIZES = (1, 2, 5, 16, 31, 33, 64, 70)


def _turned_away(rng: Random, tests: list[str], inner: str) -> str:
    """What a round does where all tests hold, in one of the ways to write it."""
    kind = rng.choice([0, 0, 1, 2])
    if kind == 0:
        return f"if ({' && '.join(tests)}) {{\n{inner}\n}}"
    if kind == 1:
        return "".join(f"if (!({test})) continue;\n" for test in tests) + inner
    return "".join(f"if ({test}) {{\n" for test in tests) + inner + "\n}" * len(tests)


def _end(rng: Random) -> tuple[str, str, str]:
    """What is begun, what a value of ``at`` adds to it, and what is stored."""
    return rng.choice([
        ("float s = 0.0f;", "s += {at};", "s"),
        ("float s = 0.0f;\nint count = 0;", "s += {at};\n++count;", "count > 0 ? s / count : 0.0f"),
        ("float s = -1e30f;", "s = fmaxf(s, {at});", "s"),
        ("int last = -1;", "if ({at} > 0.5f) last = {k};", "last"),
    ])  # fmt: skip


def line(rng: Random) -> Made:
    """A thread an element, and those of another that lie in its reach."""
    place, tests, other = rng.choice([
        ("int t = i - k;", ["t >= 0", "t < m"], "b[t]"),
        ("int t = i + k - m / 2;", ["t >= 0", "t < n"], "a[t]"),
        ("const int t = k;", ["t >= i - m", "t <= i + m"], "1.0f"),
        ("const int t = k;", ["t < i"], "0.5f"),
        ("const int t = k - i;", ["(t == m || t == -m)"], "2.0f"),
        ("int t = k - i;", ["t >= 0", "a[k] > 0.25f"], "1.0f"),
    ])  # fmt: skip
    begun, step, whole = _end(rng)
    inner = step.format(at=f"a[k] * {other}", k="k")
    body = f"{begun}\n{counting(rng, place + chr(10) + _turned_away(rng, tests, inner), 'k', 'n')}"
    text = program(rng, "line", "const float* a, const float* b, float* out, int n, int m",
                   axes(rng, ("i", "n")), f"{body}\nout[i] = {whole};")  # fmt: skip
    return _made("bands", text, rng, ("n",))


def plane(rng: Random) -> Made:
    """Two loops about a thread's pixel, of which those beyond the border are turned away."""
    tests = rng.choice([
        ["row + q >= 0", "row + q < rows", "col + k >= 0", "col + k < n"],
        ["col + k >= 0", "row + q >= 0", "col + k < n", "row + q < rows"],
        ["row + q >= 0 && row + q < rows", "col + k >= 0 && col + k < n", "k <= q"],
        ["row + q >= 0 && row + q < rows", "col + k >= 0 && col + k < n", "(q == k || q == -k)"],
    ])  # fmt: skip
    begun, step, whole = _end(rng)
    inner = _turned_away(rng, tests, step.format(at="a[(row + q) * n + col + k]", k="q * 10 + k"))
    reach = rng.choice(["m", "m", "2", "q", "b[i] > 0.5f"])
    over = f"for (int k = -({reach}); k <= {reach}; ++k) {{\n{inner}\n}}"
    body = f"int row = y, col = i;\n{begun}\nfor (int q = -m; q <= m; ++q)\n{over}\nout[y * n + i] = {whole};"
    parameters = "const float* a, const float* b, float* out, int n, int m, int rows"
    text = program(rng, "plane", parameters, axes(rng, ("i", "n"), ("y", "rows")), body)
    return _made("borders", text, rng, ("rows", "n"))


def _made(kind: str, text: str, rng: Random, shape: tuple[str, ...]) -> Made:
    arrays = {"a": Array("f4", shape), "b": Array("f4", ("n + m",)), "out": Array("f4", shape, "zeros")}  # fmt: skip
    first, second = ({"n": rng.choice(_SIZES), "m": rng.choice((1, 2, 3, 7))} for _ in "12")
    if len(shape) > 1:
        first, second = (s | {"rows": rng.choice((1, 3, 8)), "n": min(s["n"], 33), "m": s["m"] % 4} for s in (first, second))  # fmt: skip
    return Made(kind, text, arrays, first, second, exact="/ count" not in text)


FAMILY = (line, plane)
