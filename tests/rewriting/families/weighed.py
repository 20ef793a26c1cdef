"""A thread a row that goes through keys and adds up rows of theirs by weights: attention."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, program

_ROWS, _KEYS, _DEPTHS, _COLUMNS = (
    (1, 5, 17, 33, 40),
    (1, 7, 16, 33, 70),
    (1, 3, 4, 8, 18),
    (1, 4, 9, 16),
)
_ONLINE = (
    "float best = fmaxf(top, s);\nfloat c = expf(top - best);\nfloat p = expf(s - best);\n"
    "sum = sum * c + p;\ntop = best;\n"
)
_BRANCHED = (
    "float c = 1.0f;\nif (s > top) {\nc = expf(top - s);\ntop = s;\n}\n"
    "float p = expf(s - top);\nsum *= c;\nsum += p;\n"
)


def weighed(rng: Random) -> Made:
    """Scores of a row with keys, a recurrence over them, and an array that takes the keys' rows."""
    depth, columns = rng.choice(_DEPTHS), rng.choice(_COLUMNS)
    term = rng.choice([
        "s += x[i * {0} + d] * k[j * {0} + d];", "s -= k[j * {0} + d] * own[d];",
        "float apart = own[d] - k[j * {0} + d]; s += apart * apart;",
        "s = fmaxf(s, x[i * {0} + d] + 2.0f * k[j * {0} + d]);",
    ]).format(depth)  # fmt: skip
    update = rng.choice([
        "a[e] += p * v[j * {0} + e];", "a[e] = a[e] * c + p * v[j * {0} + e];",
        "a[e] = fmaf(p, v[j * {0} + e], c * a[e]);", "a[e] *= c; a[e] += v[j * {0} + e] * p;",
        "a[e] = c * (a[e] - v[j * {0} + e] * p);", "a[e] -= p * (v[j * {0} + e] + 0.5f);",
    ]).format(columns)  # fmt: skip
    scalars = rng.choice([
        _ONLINE, _ONLINE, _BRANCHED, "float c = 0.5f;\nfloat p = s;\nsum += p;\n",
        "float c = s > 0.0f ? 1.0f : 0.25f;\nfloat p = 1.0f / (1.0f + s * s);\nsum = sum * c + p;\n",
    ])  # fmt: skip
    skip = rng.choice(
        [
            "",
            "",
            "",
            "if (few[j] & 1) s = -4.0f;\n",
            "if (few[j]) continue;\n",
            "if (few[j]) break;\n",
        ]
    )
    head, before = rng.choice([
        ("int j = 0; j < m; ++j", ""), ("int j = 0; j <= i && j < m; ++j", ""),
        ("int j = first; j < min(m, i + 3); ++j", "int first = max(0, i - 5);\n"),
        ("int j = 0; j < m; ++j", "@if (j > i) continue;\n"),
        ("int j = 0; j < m; ++j", "@if (j > i) break;\n"),
        ("int j = 0; j < m; j += 2", ""),
    ])  # fmt: skip
    opening, before = (before[1:], "") if before[:1] == "@" else ("", before)
    start = rng.choice(["0.0f", "few[j] % 8"])
    body = (
        f"float own[{depth}];\nfor (int d = 0; d < {depth}; ++d) own[d] = x[i * {depth} + d];\n"
        f"float a[{columns}];\nfor (int e = 0; e < {columns}; ++e) a[e] = {rng.choice(['0.0f', '1.0f'])};\n"
        f"float top = -1e30f, sum = 0.0f;\n{before}for ({head}) {{\n{opening}float s = {start};\n"
        f"for (int d = 0; d < {depth}; ++d) {{ {term} }}\ns *= 0.125f;\n{skip}{scalars}"
        f"for (int e = 0; e < {columns}; ++e) {{ {update} }}\n}}\n"
        f"for (int e = 0; e < {columns}; ++e) out[i * {columns} + e] = a[e] / (fabsf(sum) + 1.0f);\n"
    )
    parameters = (
        "const float* x, const float* k, const float* v, const int* few, float* out, int n, int m"
    )
    text = program(rng, "weighed", parameters, axes(rng, ("i", "n")), body)
    arrays = {
        "x": Array("f4", ("n", str(depth)), "positive"), "k": Array("f4", ("m", str(depth)), "positive"),
        "v": Array("f4", ("m", str(columns))), "few": Array("i4", ("m",), "few bits"),
        "out": Array("f4", ("n", str(columns)), "zeros"),
    }  # fmt: skip
    first, second = ({"n": rng.choice(_ROWS), "m": rng.choice(_KEYS)} for _ in range(2))
    return Made("weighed", text, arrays, first, second, exact=False)


FAMILY = (weighed,)
