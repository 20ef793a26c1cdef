"""Rows in groups, each with factors of its own; items that are scored by several rows."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, flat, program

_PARAMETERS = "const float* a, const float* x, const float* f, float* out, int w, int g, int h"
_WIDE, _GROUPS, _HIGH = (16, 32, 37, 64, 100), (1, 2, 3, 5), (5, 19, 40)


def _counting(rng: Random, name: str, end: str, step: str) -> str:
    head = rng.choice(
        [f"int {name} = 0; {name} < {end}; {name}++", f"int {name} = 0; {name} < {end}; ++{name}"]
    )
    return f"for ({head}) {{\n{step}\n}}"


def grouped(rng: Random) -> Made:
    """A row's groups summed up, each times factors of its own, or used in some other way."""
    place = flat(rng, f"({flat(rng, 'y', 'g', 'i')})", "w", "c")
    term = rng.choice([f"a[{place}] * x[i * w + c]", f"a[{place}]", f"a[{place}] - x[i * w + c]"])
    factor = f"f[{flat(rng, 'y', 'g', 'i')}]"
    after = rng.choice([
        f"acc += part * {factor};", f"acc += {factor} * part;", f"acc -= part * {factor} * f[0];",
        "acc += part;", f"float t = part * {factor};\nacc += t - part;",
        f"if ({factor} > 0.0f) acc += part * f[i];", f"acc += part * {factor};\nacc += part * f[0];",
        f"if (i % 3 == 1) continue;\nacc += part * {factor};", f"acc += part + {factor};",
        f"acc += fmaxf(part, {factor});", f"acc += part * {factor};\nif (part > 2.0f) acc += 1.0f;",
        f"acc += part * {factor};\nacc = acc * 0.5f;", f"acc = acc + part * {factor};",
    ])  # fmt: skip
    begin = rng.choice(["0.0f", "0.0f", "0.0f", "1.0f", f"{factor}"])
    inner = _counting(rng, "c", "w", f"part += {term};")
    more = "\n" + _counting(rng, "c", "w", "part += x[c];") if rng.choice([0, 0, 0, 1]) else ""
    start = rng.choice(["0.0f", "f[y * g]"])
    body = f"float acc = {start};\n" + _counting(
        rng, "i", "g", f"float part = {begin};\n{inner}{more}\n{after}"
    )
    return _made(rng, "grouped", f"{body}\nout[y] = acc;")


def scored(rng: Random) -> Made:
    """The best of some rows by a product or a distance, or what all of them come to."""
    one, other = f"a[{flat(rng, 'y', 'w', 'c')}]", f"x[{flat(rng, 'i', 'w', 'c')}]"
    step = rng.choice(
        [
            f"s += {one} * {other};",
            f"float t = {one} - {other};\ns += t * t;",
            f"s += fabsf({one} - {other});",
        ]
    )
    use = rng.choice([
        "if (s > best) {\nbest = s;\nat = i;\n}", "best = fmaxf(best, s);", "best += s * f[i];",
        "if (s > best) best = s;\nat += s > 2.0f;", "if (i > 1) best += s;",
    ])  # fmt: skip
    inner = f"float s = 0.0f;\n{_counting(rng, 'c', 'w', step)}\n{use}"
    body = (
        f"float best = -50.0f;\nint at = 0;\n{_counting(rng, 'i', 'g', inner)}\nout[y] = best + at;"
    )
    return _made(rng, "scored", body)


def gradient(rng: Random) -> Made:
    """What each item adds to all elements of a row, beside what it stores."""
    one = f"x[{flat(rng, 'y', 'w', 'c')}]"
    value = rng.choice([f"e * {one}", "e", f"{one} - e", f"e * {one} + f[c]", f"{one} * row[c]"])
    place = rng.choice(
        ["&sums[c]", "sums + c", "&sums[w - 1 - c]", "&sums[(c + 1) % w]", "&sums[(c + y) % w]"]
    )
    update = rng.choice([
        f"atomicAdd({place}, {value});", f"float v = {value};\natomicAdd({place}, v);",
        f"out[y * w + c] = {one} * e;\natomicAdd({place}, {value});",
        f"if ({one} > 0.0f) atomicAdd({place}, {value});",
        f"atomicAdd({place}, {value});\ne += 1.0f;", f"if (e > 1.0f) continue;\natomicAdd({place}, {value});",
        f"atomicAdd({place}, {value});\natomicAdd(&sums[c], 1.0f);",
    ])  # fmt: skip
    end = rng.choice(["w", "w", "w", "w / 2", "min(w, y + 1)"])
    between = rng.choice(["", "", "if (e > 3.0f) return;\n", "e = e * 0.5f;\n"])
    body = (
        "const float* row = x + y * w;\nfloat e = 0.0f;\n"
        f"{_counting(rng, 'c', 'w', f'e += {one};')}\n{between}{_counting(rng, 'c', end, update)}\n"
        + rng.choice(["left[y] = e;", "left[y] = 1.0f;", ""])
    )
    parameters = (
        "const float* x, const float* f, float* out, float* left, float* sums, int w, int h"
    )
    text = program(rng, "gradient", parameters, axes(rng, ("y", "h")), body, directives="#pragma optiml zero(sums)\n")  # fmt: skip
    arrays = {
        "x": Array("f4", ("h", "w")), "f": Array("f4", ("w",)), "out": Array("f4", ("h", "w"), "zeros"),
        "left": Array("f4", ("h",), "zeros"), "sums": Array("f4", ("w",), "zeros"),
    }  # fmt: skip
    first, second = ({"w": rng.choice(_WIDE), "h": rng.choice(_HIGH)} for _ in range(2))
    return Made("gradient", text, arrays, first, second)


def _made(rng: Random, family: str, body: str) -> Made:
    text = program(rng, family, _PARAMETERS, axes(rng, ("y", "h")), body)
    arrays = {
        "a": Array("f4", ("h", "g", "w")), "x": Array("f4", ("g", "w")), "f": Array("f4", ("h", "g")),
        "out": Array("f4", ("h",), "zeros"),
    }  # fmt: skip
    first, second = (
        {"w": rng.choice(_WIDE), "g": rng.choice(_GROUPS), "h": rng.choice(_HIGH)} for _ in range(2)
    )
    return Made(family, text, arrays, first, second)


FAMILY = (grouped, scored, gradient)
