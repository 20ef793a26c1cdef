"""Rows that one thread each walks along, up or down, with a recurrence that nobody can share."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import LONG_EXTENTS, Array, Made, axes, program, sizes_of

_UP = (
    "for (int i = 0; i < n; i++)", "for (int i = 0; i < n; ++i)", "for (int i = 1; i < n; i++)",
    "for (int i = 2; i < n - 1; i++)",
)  # fmt: skip
_DOWN = (
    "for (int i = n - 1; i >= 0; i--)", "for (int i = n - 2; i >= 0; --i)",
    "for (int i = n - 1; i > 0; i--)", "for (int i = n; i-- > 0;)",
)  # fmt: skip


def walked(rng: Random) -> Made:
    """A filter, a state machine, a path: what a round leaves depends on the one before."""
    more = rng.choice([0, 0, 0, 1, 2])  # elements that a row of what is stored has besides
    ahead = rng.choice([0, more])
    there, other = "r * n + i", f"r * (n + {more}) + i + {ahead}" if more else "r * n + i"
    element = rng.choice([f"a[{there}]", f"a[{there}]", f"b[{there}]", f"a[{there}] + b[{there}]"])
    target = rng.choice([f"out[{other}]", f"out[{other}]", f"small[{other}]"])
    kind = "unsigned char" if target.startswith("small") else "float"
    beside = rng.choice(["", "", f" + (i > 0 ? a[{there} - 1] : 0.0f)",
                         f" + (i + 1 < n ? a[{there} + 1] : 0.0f)"])  # fmt: skip
    step = rng.choice([
        f"float v = {element}{beside};\ns = 0.5f * s + 0.25f * t + v;\nt = v;\n{target} = ({kind})s;",
        f"s = fabsf(s - {element}{beside});\n{target} = ({kind})s;",
        f"s += {element}{beside};\nif (s > 2.0f) {{ {target} = 1; s = 0.0f; }} else {target} = 0;",
        f"if ({element} > s) {{ t += 1.0f; s = {element}; }} else s -= 0.125f;\n{target} = ({kind})t;",
        f"s = fminf(fmaxf(s + {element}, -1.0f), 1.0f);\n{target} = ({kind})s;\nif (s > 0.5f) t += s;",
        f"s = s * s > 2.0f ? {element} : s + {element};\nt = t > s ? t : s;",
        f"float v = {target};\ns = fabsf(s - v{beside});\n{target} = ({kind})s;",
        f"s = fabsf(s - {element});\nif (s > 1.0f) {target} = ({kind})s;",
        f"if (a[{there}] < 0.0f) continue;\ns = fabsf(s - {element});\n{target} = ({kind})s;",
    ])  # fmt: skip
    loops = "\n".join(
        f"{rng.choice(_UP if rng.choice([0, 1]) else _DOWN)} {{\n{step}\n}}"
        for _ in range(rng.choice([1, 1, 2]))
    )
    before = rng.choice(["", "", f"out[r * (n + {more})] = 1.0f;\n" if more else ""])
    body = f"float s = {rng.choice(['0.0f', 'b[r * n]'])}, t = 1.0f;\n{before}{loops}\nlast[r] = s - t;"
    parameters = (
        "const float* a, const float* b, float* out, unsigned char* small, float* last, "
        "int rows, int n"
    )
    text = program(rng, "walked", parameters, axes(rng, ("r", "rows")), body)
    arrays = {
        "a": Array("f4", ("rows", "n")), "b": Array("f4", ("rows", "n")),
        "out": Array("f4", ("rows", f"n + {more}")),
        "small": Array("u1", ("rows", f"n + {more}")), "last": Array("f4", ("rows",), "zeros"),
    }  # fmt: skip
    sizes = sizes_of(rng, ["rows", "n"], LONG_EXTENTS)
    return Made("walked", text, arrays, *sizes, inout=("out", "small"), exact=False)


FAMILY = (walked,)
