"""A thread a channel that carries a small array through time: scans, linear attention, filters."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, program

_WIDE, _LONG = (1, 5, 16, 17, 33), (1, 4, 32, 40)


def carried(rng: Random) -> Made:
    """A state that each element of changes by itself, and what is asked of all of them."""
    count = rng.choice([2, 4, 4, 8, 6])
    own = rng.choice(["b[t * 8 + e]", "b[e]", "x[t * n + c] * b[e]", "x[t * n + c]"])
    begun = rng.choice(["h[e] = 0.0f;", "h[e] = b[e];", "h[e] = 1.0f;"])
    change = rng.choice([
        f"h[e] += {own};", f"h[e] = 0.5f * h[e] + {own};", f"h[e] = fmaxf(h[e], {own});",
        f"if ({own} > 0.0f) h[e] = h[e] + {own};", f"h[e] = {own} - h[e];",
    ])  # fmt: skip
    start, asked = rng.choice([
        ("0.0f", "s += h[e];"), ("0.0f", "s += h[e] * b[e];"), ("b[t]", "s -= h[e];"),
        ("-1e30f", "s = fmaxf(s, h[e]);"), ("0.0f", "if (h[e] > 0.0f) s += 1.0f;"),
    ])  # fmt: skip
    inner = f"for (int e = 0; e < {count}; ++e) {{\n{change}\n{asked}\n}}"
    if rng.choice([0, 1]):
        head = f"for (int e = 0; e < {count}; ++e) "
        inner = f"{head}{{ {change} }}\n{head}{{ {asked} }}"
    spread = f"for (int e = 0; e < {count}; ++e) h[e] = h[e] * 0.5f + s;\n"
    after = rng.choice(["", "", spread, "s = s * 0.5f;\n"])
    end = rng.choice(["", f"for (int e = 0; e < {count}; ++e) last[c * 8 + e] = h[e];\n"])
    body = (
        f"float h[{count}];\nfor (int e = 0; e < {count}; ++e) {begun}\n"
        f"for (int t = 0; t < m; ++t) {{\nfloat s = {start};\n{inner}\n{after}"
        f"out[t * n + c] = s;\n}}\n{end}"
    )
    parameters = "const float* x, const float* b, float* out, float* last, int n, int m"
    text = program(rng, "carried", parameters, axes(rng, ("c", "n")), body)
    arrays = {
        "x": Array("f4", ("m", "n")), "b": Array("f4", ("m + 1", "8")),
        "out": Array("f4", ("m", "n"), "zeros"), "last": Array("f4", ("n", "8"), "zeros"),
    }  # fmt: skip
    first, second = ({"n": rng.choice(_WIDE), "m": rng.choice(_LONG)} for _ in range(2))
    return Made("carried", text, arrays, first, second, exact=False)


FAMILY = (carried,)
