"""Sweeps along a thread's own array, and tables that are filled row by row."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import LONG_EXTENTS, Array, Made, axes, program, sizes_of

_LENGTH = 24  # elements of the array, of which sweeps leave some to those beside them
_PARAMETERS = "const float* x, float* y, int n, int m"


def _finished(rng: Random, name: str, body: str) -> Made:
    text = program(rng, name, _PARAMETERS, axes(rng, ("i", "n")), body)
    arrays = {"x": Array("f4", ("n", "m")), "y": Array("f4", ("n", str(_LENGTH)), "zeros")}
    sizes, others = sizes_of(rng, ["n"], LONG_EXTENTS)
    sizes["m"], others["m"] = rng.choice([1, 2, 7, 15, 20]), rng.choice([1, 3, 8, 16, 20])
    return Made(f"swept_{name}", text, arrays, sizes, others, exact=False)


def sweeps(rng: Random) -> Made:
    """Rounds that go along an array up or down, each as far as the one before or not."""
    low, high = rng.choice([0, 0, 1, 2]), rng.choice([0, 0, 1, 2])
    ends = rng.choice(["20", "m", "20 - t", "m - t", "m - 2 * t", "t", "min(m, 20) - t"])
    down = rng.choice([0, 0, 1])
    a, b = (f"v[j - {low}]" if low else "v[j]", f"v[j + {high}]" if high else "v[j]")
    rounds = f"int j = {low}; j < {ends}; ++j"
    if down:
        rounds = f"int j = 21; j > 21 - ({ends}); --j"
    elif rng.choice([0, 0, 1]):
        rounds = f"int j = {low}; j <= {ends} - 1; j++"
    first = rng.choice(["", "", f"v[{low - 1}] = 0.25f * t;" if low and not down else ""])
    carried = rng.choice([0, 0, 1])
    value = rng.choice([
        f"v[j] = 0.5f * {a} + 0.25f * {b};", f"v[j] += 0.5f * {b} - 0.125f * {a};",
        f"float u = {b}; v[j] = fmaxf(u, {a}) - 0.0625f * t;",
        f"v[j] = 0.5f * v[j] + x[i * m + t % m] * {a};",
        f"if ({a} > {b}) v[j] = {a} * 0.5f; else v[j] = {b};",
        f"if ({b} < {a}) {{ float c = {a}; {a} = {b}; {b} = c; }}",
        f"v[j] = {a} + (x[i * m + j % m] < 0.5f ? 0.5f : {b} * 0.25f);",
    ])  # fmt: skip
    if carried:
        value, first = f"float was = v[j]; {value} v[j] += last * 0.125f; last = was;", (
            f"float last = 0.5f * t; {first}"
        )  # fmt: skip
    other = rng.choice([0, 0, 1])
    if other:
        value = f"e[j] = 0.5f * e[j] + 0.25f * v[j]; {value} v[j] -= 0.125f * e[j + {high}];"
    best = rng.choice([0, 0, 1])
    value += " best = fmaxf(best, v[j]);" if best else ""
    outer = rng.choice([
        "int t = 0; t < 9; ++t", "int t = 0; t < m; t++", "int t = 1; t <= m; ++t",
        "int t = m - 1; t >= 0; --t", "int t = 0; t < 18; t += 2", "int t = 8; t > 0; t -= 3",
    ])  # fmt: skip
    body = (
        f"float v[{_LENGTH}];\nfloat best = -1.0f;\n"
        f"for (int j = 0; j < {_LENGTH}; j++) v[j] = j < m ? x[i * m + j] : 0.5f - 0.03125f * j;\n"
        f"float e[{_LENGTH}];\nfor (int j = 0; j < {_LENGTH}; j++) e[j] = 0.25f * j;\n"
        f"for ({outer}) {{\n{first}\nfor ({rounds}) {{\n{value}\n}}\n}}\n"
        f"for (int j = 0; j < {_LENGTH}; j++) y[i * {_LENGTH} + j] = v[j] + best + e[j];"
    )
    return _finished(rng, "sweeps", body)


def filled(rng: Random) -> Made:
    """Rows that are made from the one before: of a table, two in turn, or copied."""
    kind = rng.choice(["table", "turn", "copied", "pointers", "flips"])
    new, old, last = {
        "table": ("d[a]", "d[a - 1]", "d[m]"), "turn": ("d[a & 1]", "d[(a - 1) & 1]", "d[m & 1]"),
        "copied": ("c", "d", "d"), "pointers": ("now", "was", "was"),
        "flips": ("d[at]", "d[1 - at]", "d[1 - at]"),
    }[kind]  # fmt: skip
    held = {"table": f"d[{_LENGTH}][{_LENGTH}]", "turn": f"d[2][{_LENGTH}]"}
    held["copied"] = f"d[{_LENGTH}], c[{_LENGTH}]"
    held["pointers"] = f"d[{_LENGTH}], c[{_LENGTH}], *was = d, *now = c"
    held["flips"] = f"{held['turn']}; int at = 1"
    row = "d" if kind in ("copied", "pointers") else "d[0]"
    begun = f"for (int b = 0; b <= m; ++b) {row}[b] = 0.125f * b;"
    column = f"{new}[0] = 0.5f * a;"
    if kind == "table" and rng.choice([0, 1]):
        begun, column = f"for (int a = 0; a <= m; ++a) d[a][0] = 0.5f * a;\n{begun}", ""
    one = rng.choice([f"{old}[b - 1] + cost", f"{old}[b]", f"{old}[b] - {old}[b - 1]"])
    value = rng.choice([
        f"{new}[b] = fminf({one}, {new}[b - 1] + 1.0f);",
        f"float up = {one}; {new}[b] = up < {new}[b - 1] ? up : 0.5f * {new}[b - 1];",
        f"if (cost < 0.5f) {new}[b] = {one} + 1.0f; else {new}[b] = fmaxf({one}, {new}[b - 1]);",
        f"{new}[b] = 0.5f * ({one}); {new}[b] += cost;",
    ])  # fmt: skip
    value += rng.choice(["", "", f" best = fmaxf(best, {new}[b]);"])
    copy = {
        "copied": "for (int b = 0; b <= m; ++b) d[b] = c[b];",
        "pointers": "float* other = was; was = now; now = other;",
        "flips": rng.choice(["at = 1 - at;", "at ^= 1;", "at = !at;"]),
    }.get(kind, "")
    wanted = rng.choice([f"{last}[m] + best", f"{last}[m / 2] - best"])
    body = (
        f"float {held[kind]};\nfloat best = -9.0f;\n{begun}\n"
        f"for (int a = 1; a <= m; ++a) {{\n{column}\nfor (int b = 1; b <= m; ++b) {{\n"
        f"float cost = x[i * m + a - 1] < x[i * m + b - 1] ? 0.25f : 1.0f;\n{value}\n}}\n{copy}\n}}\n"
        f"y[i * {_LENGTH}] = {wanted};"
    )
    return _finished(rng, "filled", body)


def bordered(rng: Random) -> Made:
    """A table whose rounds ask whether they are at its border."""
    value = rng.choice([
        "fminf(d[a - 1][b - 1] + cost, fminf(d[a - 1][b], d[a][b - 1]) + 0.5f)",
        "d[a - 1][b] > d[a][b - 1] ? d[a - 1][b] : 0.5f * d[a][b - 1] + cost",
        "cost < 0.5f ? d[a - 1][b - 1] + 1.0f : fmaxf(d[a - 1][b], d[a][b - 1])",
    ])  # fmt: skip
    cost = "float cost = x[i * m + max(a, 1) - 1] < x[i * m + max(b, 1) - 1] ? 0.25f : 1.0f;"
    rounds = rng.choice([
        f"if (a == 0 || b == 0) d[a][b] = 0.125f * (a + b); else d[a][b] = {value};",
        f"if (a == 0) d[a][b] = b; else if (b == 0) d[a][b] = 0.5f * a; else d[a][b] = {value};",
        f"if (a > 0 && b > 0) d[a][b] = {value}; else d[a][b] = 0.25f * a;",
        f"if (!a) d[0][b] = b; else if (!b) d[a][0] = a; else d[a][b] = {value};",
        f"d[a][b] = a == 0 || b < 1 ? 0.0f : {value};",
    ])  # fmt: skip
    last = rng.choice(["m", "m", "20"])
    if last == "20":
        cost = "float cost = x[i * m + (a + b) % m];"
    body = (
        f"float d[{_LENGTH}][{_LENGTH}];\nfor (int a = 0; a <= {last}; ++a) {{\n"
        f"for (int b = 0; b <= {last}; b++) {{\n{cost}\n"
        f"{rounds}\n}}\n}}\ny[i * {_LENGTH}] = d[{last}][{rng.choice([last, last, '0'])}];"
    )
    return _finished(rng, "bordered", body)


FAMILY = (sweeps, filled, bordered)
