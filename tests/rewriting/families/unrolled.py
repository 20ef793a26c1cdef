"""What is written by hand to be fast or tidy: unrolled loops, tests with names, small classes."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, program, sizes_of

_TERMS = ["a[i * m + {k}]", "a[i * m + {k}] * b[{k}]", "b[c[{k}]] * (float)({k})", "a[i * m + {k}] * s0",
          "(float)c[{k}]", "b[{k}] * (float)({k} % 3)"]  # fmt: skip
_POINT = """\
struct Point {
    float x, y;
    __device__ Point(float p, float q) : x(p), y(q) {}
    __device__ float dot(const Point& o) const { return x * o.x + y * o.y; }
    __device__ void move(float d) { x += d; y -= d; }
};
struct Sum {
    float& to;
    __device__ Sum(float& given) : to(given) {}
    __device__ void add(float d) { to += d; }
};
"""


def unrolled(rng: Random) -> Made:
    """Rows that are added up several elements a round, into one sum or several side by side."""
    step, sums = rng.choice([2, 2, 3, 4]), rng.choice([1, 1, 2])
    kinds = rng.choice([["float", "float"]] * 4 + [["double", "float"], ["int", "float"]])
    term = rng.choice(_TERMS)
    if sums == 1 and "s0" in term:
        term = "a[i * m + {k}] * 0.5f + s0 * 0.25f"

    def added(k: str, at: int) -> str:
        own = f"s{at % sums if sums == 1 else min(at, 1)}"
        return f"{own} += {term.format(k=k)};"

    places = ["k", *(rng.choice([f"k + {n}", f"k + {n}", f"{n} + k"]) for n in range(1, step))]
    parts = [added(place, at) for at, place in enumerate(places)]
    if rng.random() < 0.15:
        parts[-1] = parts[-1].replace("+=", "-=")
    end = rng.choice(["behind", "behind", "elsewhere", "guards", "whole"])
    step_of = f"k += {step}"
    if end == "guards":
        parts[1:] = [f"if ({k} < m) {p}" for k, p in zip(places[1:], parts[1:], strict=True)]
        loop = f"for (int k = 0; k < m; {step_of}) {{\n" + "\n".join(parts) + "\n}"
    elif end == "whole":
        loop = (
            f"for (int k = 0; k < m / {step} * {step}; {step_of}) {{\n" + "\n".join(parts) + "\n}"
        )
    else:
        rest = added("k", rng.choice([0, 1])) if end == "behind" else f"t += {term.format(k='k')};"
        loop = (
            f"int k = 0;\nfor (; k + {step - 1} < m; {step_of}) {{\n" + "\n".join(parts)
            + f"\n}}\nfor (; k < m; {rng.choice(['k++', '++k'])}) {rest}"
        )  # fmt: skip
    if rng.random() < 0.2:
        loop = (
            f"for (int r = 0; r < 2; ++r) {{\n{'float u = 0.0f;' if sums > 1 else ''}\n{loop}\n}}"
        )
    body = (
        f"{kinds[0]} s0 = 0;\n{kinds[1]} s1 = 0;\nfloat t = {rng.choice(['0.0f', 'b[0]'])};\n{loop}\n"
        f"out[i] = {rng.choice(['s0 + s1', 's0 + s1', '(s1 + s0) * 0.5f', 's0 - s1'])} + t;"
    )
    given = "const float* a, const float* b, const int* c, float* out, int n0, int m"
    text = program(rng, "unrolled", given, axes(rng, ("i", "n0")), body)
    return Made(
        "unrolled", text, _arrays(), *sizes_of(rng, ["n0", "m"], (1, 2, 3, 4, 7, 12, 33, 64)),
        exact=False,
    )  # fmt: skip


def named_tests(rng: Random) -> Made:
    """Guards that have names, which branches ask for."""
    tests = rng.sample(
        ["i > 0 && j > 0", "i + 1 < n0", "j + 1 < m", "(i + j) % 2 == 0", "!(j == 3)", "i >= j || j > 4"],
        rng.choice([1, 2, 3]),
    )  # fmt: skip
    kind = rng.choice(["const bool", "bool", "const int", "auto"])
    named = [f"{kind} t{n} = {test};" for n, test in enumerate(tests)]
    asked = [rng.choice([f"t{n}", f"!t{n}", f"t{n} && i < 20"]) for n in range(len(tests))]
    body = [*named, "float v = a[i * m + j];"]
    body += [
        rng.choice([
            f"if ({test}) v = v * 0.5f + b[j];", f"if ({test}) {{ v += (float)i; }} else v -= 1.0f;",
            f"if ({test}) {{ int j = 1; v += (float)j; }}",
        ])
        for test in asked
    ]  # fmt: skip
    given = "const float* a, const float* b, const int* c, float* out, int n0, int m"
    text = program(
        rng, "named", given, axes(rng, ("i", "n0"), ("j", "m")),
        "\n".join([*body, "out[i * m + j] = v;"]),
    )  # fmt: skip
    arrays = {**_arrays(), "out": Array("f4", ("n0", "m"), "zeros")}
    return Made("named_tests", text, arrays, *sizes_of(rng, ["n0", "m"], (1, 2, 5, 31, 33, 65)))


def objects(rng: Random) -> Made:
    """Rows that small classes go through, of which one keeps a reference to a sum."""
    made, used = rng.choice([
        ("Sum sum(s);", "sum.add(a[i * m + k]);"),
        ("auto sum = Sum(s);", "sum.add(a[i * m + k] * b[k]);"),
        ("Point own(s, t);", "own.move(a[i * m + k]); s += own.x;"),
        ("Point own(s, t);", "Point other(b[k], t); s += own.dot(other);"),
        ("", "float p = a[i * m + k], q = b[k]; Point own(p, q); own.move(1.0f); s += own.dot(own);"),
        ("", "Sum(s).add(b[k]);"),
    ])  # fmt: skip
    body = f"float s = 0.0f, t = 0.5f;\n{made}\nfor (int k = 0; k < m; ++k) {{ {used} }}\nout[i] = s + t;"
    given = "const float* a, const float* b, const int* c, float* out, int n0, int m"
    text = _POINT + program(rng, "objects", given, axes(rng, ("i", "n0")), body)
    return Made(
        "objects", text, _arrays(), *sizes_of(rng, ["n0", "m"], (1, 2, 5, 31, 33, 65)), exact=False
    )


def _arrays() -> dict[str, Array]:
    return {
        "a": Array("f4", ("n0", "m")),
        "b": Array("f4", ("m",)),
        "c": Array("i4", ("m",), "below m"),
        "out": Array("f4", ("n0",), "zeros"),
    }


FAMILY = (unrolled, named_tests, objects)
