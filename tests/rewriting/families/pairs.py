"""Each item against each of many: what a round loads is the same for all threads."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, program

from .rows import counting

_MANY = (1, 3, 31, 64, 128, 130)
_ITEMS = (1, 2, 5, 31, 32, 33, 63, 64, 65, 129)


def _rounds(rng: Random, step: str) -> str:
    """The loop over all others, some of which a thread may leave out."""
    left = rng.choice(["", "", "", "if (j == i) continue;\n", "if (q[j] > 1.5f) continue;\n"])
    if not left and rng.choice([0, 0, 0, 1]):
        step = f"if ({rng.choice(['j != i', 'i != j'])}) {{\n{step}\n}}"
    if rng.choice([0, 0, 0, 1]):
        return "int j = 0;\nwhile (j < m) {\n" + step + "\n++j;\n}"
    return counting(rng, f"{left}{step}", "j", "m")


def plain(rng: Random) -> Made:
    """Sums, extremes and places, of one field or of two."""
    other = rng.choice(["q[j]", "q[j]", "q[m - 1 - j]", "q[j] + w[2 * j + 1]", "w[2 * j] * q[j]"])
    held = rng.choice(["const float p = x[i];", "float p = x[i] + 1.0f;"])
    begun, step, whole = rng.choice([
        ("float s = 0.0f;", "s += {d};", "s"),
        ("float s = x[0], t = 1.0f;", "float d = {d};\ns += d;\nt = fmaxf(t, d * d);", "s + t"),
        ("float s = 1e30f;\nint at = -1;", "float d = {d};\nif (d < s) { s = d; at = j; }", "at"),
        ("float s[2] = {0.0f, 0.0f};", "s[0] += {d};\ns[1] += q[j];", "s[0] - s[1]"),
        ("int s = 0;", "if ({d} < 0.5f) s += 1;", "s"),
        ("float s = 0.0f;", "float d = {d};\nif (d > -1.0f) s += d; else s -= 0.5f;", "s * 0.5f"),
        ("double s = 0.0;", "const float d = {d};\ns += d * d;", "(float)s"),
    ])  # fmt: skip
    step = step.replace("{d}", f"{other} - {rng.choice(['p', 'p', 'x[i]'])}")
    end = rng.choice(["out[i] = {};", "out[i] = {};", "out[i] += {};", "if (x[i] > 0.0f) return;\nout[i] = {};"])  # fmt: skip
    body = f"{held}\n{begun}\n{_rounds(rng, step)}\n{end.format(whole)}"
    parameters = "const float* x, const float* q, const float* w, float* out, int n, int m"
    text = program(rng, "plain", parameters, axes(rng, ("i", "n")), body)
    arrays = {
        "x": Array("f4", ("n",)), "q": Array("f4", ("m",)), "w": Array("f4", ("2 * m",)),
        "out": Array("f4", ("n",)),
    }  # fmt: skip
    return Made("pairs", text, arrays, *_sizes(rng), inout=("out",))


def nested(rng: Random) -> Made:
    """A loop over others, and for each of them one over its fields, or over those of an item."""
    inner = rng.choice([
        "for (int l = 0; l < 3; ++l) t += w[3 * j + l] * q[l];",
        "for (int l = 0; l < i % 3; ++l) t += w[3 * j + l];",
        "for (int l = 0; l < 3; ++l) { float d = w[3 * j + l] - x[i]; if (d > 0.5f) break; t += d; }",
    ])  # fmt: skip
    body = f"float s = 0.0f;\n{counting(rng, f'float t = q[j];{chr(10)}{inner}{chr(10)}s += t;', 'j', 'm')}\nout[i] = s;"  # fmt: skip
    second = rng.choice(["", f"\nfloat u = 0.0f;\n{_rounds(rng, 'u = fmaxf(u, q[j] * s);')}\nout[i] = u;"])  # fmt: skip
    body = body.replace("\nout[i] = s;", second) if second else body
    parameters = "const float* x, const float* q, const float* w, float* out, int n, int m"
    text = program(rng, "nested", parameters, axes(rng, ("i", "n")), body)
    arrays = {
        "x": Array("f4", ("n",)), "q": Array("f4", ("m + 3",)), "w": Array("f4", ("3 * m",)),
        "out": Array("f4", ("n",), "zeros"),
    }  # fmt: skip
    return Made("nested pairs", text, arrays, *_sizes(rng))


def grid(rng: Random) -> Made:
    """Each point of a plane against each of many charges."""
    step = "float dx = q[2 * k] - col, dy = q[2 * k + 1] - row;\ns += dx * dy;"
    body = f"float s = {rng.choice(['0.0f', 'x[row]'])};\n{counting(rng, step, 'k', 'm')}\nout[row * n + col] = s;"  # fmt: skip
    parameters = "const float* x, const float* q, float* out, int n, int rows, int m"
    over = axes(rng, ("col", "n"), ("row", "rows"))
    text = program(rng, "grid", parameters, over, body)
    first, second = _sizes(rng)
    arrays = {
        "x": Array("f4", ("rows",)), "q": Array("f4", ("2 * m",)),
        "out": Array("f4", ("rows", "n"), "zeros"),
    }  # fmt: skip
    first, second = (
        s | {"rows": rng.choice((1, 3, 7, 8)), "n": min(s["n"], 33), "m": min(s["m"], 64)}
        for s in (first, second)
    )
    return Made("grid of pairs", text, arrays, first, second)


def fields(rng: Random) -> Made:
    """Rows of a few fields each, by rows or by columns, one of a thread's own and one of many."""
    own = rng.choice(["x[i * d + l]", "x[i * d + l]", "x[l * n + i]"])
    other = rng.choice(["q[j * d + l]", "q[j * d + l]", "q[l * m + j]", "q[(m - 1 - j) * d + l]"])
    step = rng.choice([
        f"t += {own} * {other};", f"float e = {own} - {other};\nt += e * e;",
        f"t = fmaxf(t, fabsf({own} - {other}));", f"if ({other} > 0.5f) t += {own};",
    ])  # fmt: skip
    begun, whole, end = rng.choice([
        ("float s = 1e30f;\nint at = -1;", "if (t < s) { s = t; at = j; }", "at"),
        ("float s = 0.0f;", "s += t * q[j];", "s"),
        ("float s = -1e30f, u = 0.0f;", "s = fmaxf(s, t);\nif (t > 0.0f) u += 1.0f;", "s + u"),
        ("float s = 0.0f;", "if (j == i) continue;\ns += t;", "s"),
    ])  # fmt: skip
    inner = counting(rng, step, "l", "d")
    round_ = f"float t = 0.0f;\n{inner}\n{whole}"
    body = f"{begun}\n{counting(rng, round_, 'j', 'm')}\nout[i] = {end};"
    parameters = "const float* x, const float* q, float* out, int n, int m, int d"
    text = program(rng, "fields", parameters, axes(rng, ("i", "n")), body)
    arrays = {
        "x": Array("f4", ("n", "d")), "q": Array("f4", ("m", "d")),
        "out": Array("f4", ("n",), "zeros"),
    }  # fmt: skip
    count = rng.choice((2, 3, 4, 7, 8))
    first, second = (s | {"d": d} for s, d in zip(_sizes(rng), (count, rng.choice((count, 1, 5))), strict=True))  # fmt: skip
    return Made("fields of pairs", text, arrays, first, second)


def edges(rng: Random) -> Made:
    """Each item against the edges between neighbours of a ring, or of a line."""
    head = rng.choice([
        "for (int j = 0, k = m - 1; j < m; k = j++)", "for (int j = 0, k = m - 1; j < m; k = j, ++j)",
        "int j, k;\nfor (j = 0, k = m - 1; j < m; k = j++)", "for (int j = 1, k = 0; j < m; k = j++)",
        "for (int j = m - 1, k = 0; j >= 0; k = j--)", "for (int j = i % 2, k = m - 1; j < m; k = j++)",
        "int k = 0;\nfor (int j = 0; j < m; j++)",
    ])  # fmt: skip
    left = rng.choice(["", "", "if (q[j] > 1.5f) continue;\n"]) if "= j" in head else ""
    step = rng.choice([
        "if ((q[j] > p) != (q[k] > p)) c = !c;", "c += q[j] * p > q[k];",
        "float d = q[j] - q[k] * p;\nif (d > 0.0f) c++;",
    ])  # fmt: skip
    last = "" if "= j" in head else "\nk = j;"
    round_ = f"{head} {{\n{left}{step}{last}\n}}"
    body = f"float p = x[i];\nint c = 0;\n{round_}\nout[i] = c;"
    parameters = "const float* x, const float* q, float* out, int n, int m"
    text = program(rng, "edges", parameters, axes(rng, ("i", "n")), body)
    arrays = {
        "x": Array("f4", ("n",)), "q": Array("f4", ("m",)), "out": Array("f4", ("n",), "zeros"),
    }  # fmt: skip
    return Made("edges of pairs", text, arrays, *_sizes(rng))


def _sizes(rng: Random) -> tuple[dict[str, int], dict[str, int]]:
    first, second = ({"n": rng.choice(_ITEMS), "m": rng.choice(_MANY)} for _ in range(2))
    return first, second


FAMILY = (plain, plain, plain, nested, grid, fields, fields, edges)
