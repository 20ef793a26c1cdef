"""Products that do not look like one: triangles, masks, mirrored stores, loops over a thread's row."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, program, sizes_of

from .rows import counting

_SIZES = (1, 2, 5, 16, 17, 31, 33, 40)


def _sum(rng: Random, rounds: str, guard: str = "") -> str:
    """A sum over ``rounds`` of what belongs to a row and a column, in a local ``s``."""
    value = rng.choice([
        "a[i * d + k] * b[k * n + j]", "a[i * d + k] * b[k * n + j]",
        "fabsf(a[i * d + k] - b[k * n + j])", "a[i * d + k] * b[k * n + j] + 0.5f",
    ])  # fmt: skip
    norms = rng.choice(["", "", "", "u += a[i * d + k] * a[i * d + k];", "u += b[k * n + j];"])
    inside = f"{guard}s += {value};\n{norms}"
    if guard and rng.choice([0, 1]):
        inside = f"{guard.rstrip()} {{\ns += {value};\n{norms}\n}}"
    begun = "float s = 0.0f, u = 1.0f;" if norms else "float s = 0.0f;"
    return f"{begun}\n{rounds} {{\n{inside}\n}}" + ("\ns = s + u;" if norms else "")


def _rounds(rng: Random) -> tuple[str, str]:
    """The head of a loop, of a triangle or of a square, and a guard in it."""
    kind = rng.choice([0, 0, 0, 1, 1, 2, 2, 3, 4, 5])
    heads = [
        "for (int k = 0; k < d; ++k)",
        "for (int k = 0; k <= i && k < d; ++k)",
        "for (int k = 0; k < d; ++k)",
        "for (int k = 0; k < d; ++k)",
        "for (int k = 0; k < min(i + 1, d); ++k)",
        "for (int k = d - 1; k >= 0; --k)",
    ]
    guard = rng.choice([
        "if (k <= i) ", "if (k >= i) ", "if (k < j) ", "if (k > i && k <= j) ", "if (k <= i + 3) ",
        "if (k > i) continue;\n", "if (k != i) ", "if (2 * k <= i) ", "if (k + j < d) ",
    ])  # fmt: skip
    return heads[kind], guard if kind in (2, 3) else ""


def plane(rng: Random) -> Made:
    """A thread for each output, of which some are left out or only begun."""
    outside = rng.choice([
        "", "if (j > i) { out[i * n + j] = -1.0f; return; }\n", "if (j < i) return;\n",
        "if (j > i || j + 7 < i) return;\n", "if (i == j) return;\n", "if (i + j >= m) return;\n",
        "if (2 * j > i) return;\n",
    ])  # fmt: skip
    head, guard = _rounds(rng)
    end = rng.choice([
        "out[i * n + j] = s;", "out[i * n + j] += s;", "if (j <= i) out[i * n + j] = s;",
        "if (s > 0.0f) out[i * n + j] = s; else out[i * n + j] = -s;",
        "out[i * n + j] = s;\nw[i * n + j] = out[i * n + j] * 2.0f;",
    ])  # fmt: skip
    body = outside + _sum(rng, head, guard) + "\n" + end
    parameters = "const float* a, const float* b, float* out, float* w, int m, int n, int d"
    text = program(rng, "plane", parameters, axes(rng, ("j", "n"), ("i", "m")), body)
    return _made("triangles", text, rng, ("m", "n"))


def row(rng: Random) -> Made:
    """A thread for each row, whose outputs it computes in a loop of its own."""
    head, guard = _rounds(rng)
    over = rng.choice([
        "for (int j = 0; j < n; ++j)", "for (int j = 0; j <= i; ++j)", "for (int j = i; j < n; j++)",
        "for (int j = i + 1; j < n; ++j)", "for (int j = 0; j < i; ++j)",
    ])  # fmt: skip
    whole = over == "for (int j = 0; j < n; ++j)"
    end = rng.choice([
        "out[i * n + j] = s;", "out[i * n + j] = s;\nout[j * n + i] = s;", "out[j * n + i] = s;",
        "out[i * n + j] = s;\nif (j != i) out[j * n + i] = -s;",
        "out[i * n + j] = s;\nout[j * n + i] = out[i * n + j];",
    ])  # fmt: skip
    if whole and "j * n" in end and end != "out[j * n + i] = s;":
        end = "out[i * n + j] = s;"  # threads would meet
    first = "" if whole or over.endswith("i; j++)") or "<= i" in over else rng.choice(
        ["", "out[i * n + i] = 1.0f;\n", "w[i] = a[i * d];\n"])  # fmt: skip
    body = f"{first}{over} {{\n{_sum(rng, head, guard)}\n{end}\n}}"
    parameters = "const float* a, const float* b, float* out, float* w, int n, int d"
    text = program(rng, "row", parameters, axes(rng, ("i", "n")), body)
    return _made("rows of triangles", text, rng, ("n", "n"))


def added(rng: Random) -> Made:
    """A thread that adds to each element of its row in turn, round by round."""
    begun = rng.choice([
        "for (int j = 0; j < n; ++j) { out[i * n + j] = 0.0f; }\n",
        "for (int l = 0; l < n; ++l) out[i * n + l] = a[i * d];\n", "",
    ])  # fmt: skip
    head, guard = rng.choice([
        ("for (int k = 0; k < d; ++k)", ""), ("for (int k = 0; k <= i && k < d; ++k)", ""),
        ("for (int k = 0; k < d; ++k)", "if (k <= i)"), ("for (int k = i; k < d; ++k)", ""),
    ])  # fmt: skip
    let = rng.choice(["const float v = a[i * d + k];", "float v = a[i * d + k] * 2.0f;"])
    inner = rng.choice([
        "out[i * n + j] += v * b[k * n + j];", "out[i * n + j] = fmaxf(out[i * n + j], v);",
        "if (j <= i) out[i * n + j] += v * b[k * n + j];", "out[i * n + n - 1 - j] += v;",
        "out[i * n + j] += v * out[i * n];", "out[i * n + (j + k) % n] += v;",
    ])  # fmt: skip
    body = f"{begun}{head} {guard} {{\n{let}\n{counting(rng, inner, 'j', 'n')}\n}}"
    parameters = "const float* a, const float* b, float* out, float* w, int m, int n, int d"
    text = program(rng, "added", parameters, axes(rng, ("i", "m")), body)
    return _made("added rows", text, rng, ("m", "n"))


def _made(family: str, text: str, rng: Random, shape: tuple[str, str]) -> Made:
    names = ["n", "d"] if shape[0] == "n" else ["m", "n", "d"]
    arrays = {
        "a": Array("f4", (shape[0], "d")), "b": Array("f4", ("d", "n")),
        "out": Array("f4", shape), "w": Array("f4", shape),
    }  # fmt: skip
    first, second = sizes_of(rng, names, _SIZES)
    return Made(family, text, arrays, first, second, inout=("out", "w"))


FAMILY = (plane, plane, row, row, added)
