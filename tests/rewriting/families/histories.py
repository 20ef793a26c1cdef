"""A thread that goes through its steps and keeps them in scratch, and goes back through these."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, program

_WIDE, _LONG = (1, 5, 16, 33, 64), (2, 3, 8, 12)

_UP = (
    "for (int step = 0; step < m; step++) {{\n{0}\n}}",
    "for (int step = 0; step <= m - 1; ++step) {{\n{0}\n}}",
    "int step = 0;\nwhile (step < m) {{\n{0}\nstep++;\n}}",
    "for (int step = -1; ++step < m;) {{\n{0}\n}}",
)
_DOWN = (
    "for (int step = m - 1; step >= 0; step--) {{\n{0}\n}}",
    "for (int k = 0; k < m; k++) {{\nint step = m - 1 - k;\n{0}\n}}",
    "for (int step = m; step-- > 0;) {{\n{0}\n}}",
    "int step = m - 1;\nwhile (step >= 0) {{\n{0}\n--step;\n}}",
)


def _forward(rng: Random, at: str, before: str, first: str) -> str:
    """What is kept of each step."""
    up = rng.choice(_UP)
    state = rng.choice([
        f"s = s + x[{at}];\nkept[{at}] = s;", f"s = 0.5f * s + x[{at}];\nkept[{at}] = s;",
        f"kept[{at}] = s;\ns = fmaxf(s, x[{at}]);", f"kept[{at}] = x[{at}] * b[step];\ns += 1.0f;",
        f"kept[{at}] = x[{at}];\nkept[{at}] += s;\ns = x[{at}];",
    ])  # fmt: skip
    whole = f"float s = {rng.choice(['0.0f', 'b[0]'])};\n{up.format(state)}"
    from_first = (
        f"kept[{first}] = x[{first}];\nfor (int step = 1; step < m; ++step)\n"
        f"kept[{at}] = 0.5f * kept[{before}] + x[{at}];"
    )
    return rng.choice([whole, whole, from_first])


def _backward(rng: Random, at: str, last: str) -> str:
    """What is made of the steps, from the last one or from the first."""
    state = rng.choice([
        f"q = 0.5f * q + kept[{at}];\nout[{at}] = q;", f"q = fmaxf(q, kept[{at}]);\nout[{at}] = q;",
        f"float v = kept[{at}];\nif (v > q) q = v - b[step];\nout[{at}] = q + v;",
        f"out[{at}] = kept[{at}] * q;\nq = q + x[{at}];",
    ])  # fmt: skip
    begun = rng.choice(["0.0f", "0.0f", f"kept[{last}]", f"b[0] - kept[{last}]"])
    return f"float q = {begun};\n{rng.choice([*_DOWN, *_DOWN, *_UP]).format(state)}"


def _histories(rng: Random, *, plane: bool) -> Made:
    place = rng.choice(
        ["(step * n + c) * w + r", "(step * n + c) * w + r", "(c * w + r) * m + step"]
    )
    if not plane:
        place = rng.choice(["step * n + c", "step * n + c", "c * m + step"])
    at, before, first, last = (
        place.replace("step ", f"{step} ").replace("+ step", f"+ {step}")
        for step in ("step", "(step - 1)", "0", "(m - 1)")
    )
    over = axes(rng, ("r", "w"), ("c", "n")) if plane else axes(rng, ("c", "n"))
    sizes = "int n, int m, int w" if plane else "int n, int m"
    scratch = f"#pragma optiml scratch kept f4[n * m{' * w' if plane else ''}]\n"
    given = "const float* x, const float* b"
    forward, backward = _forward(rng, at, before, first), _backward(rng, at, last)
    if rng.choice([0, 0, 1]):
        text = program(
            rng, "histories", f"{given}, float* kept, float* out, {sizes}", over,
            f"{{\n{forward}\n}}\n{backward}", directives=scratch,
        )  # fmt: skip
    else:
        text = scratch
        text += program(rng, "onward", f"{given}, float* kept, {sizes}", over, forward)
        kept = rng.choice(["const float* kept", "const float* __restrict__ kept"])
        text += program(rng, "back", f"{given}, {kept}, float* out, {sizes}", over, backward)
    shape = ("n", "m", "w") if plane else ("n", "m")
    arrays = {
        "x": Array("f4", shape), "b": Array("f4", ("m",)), "out": Array("f4", shape, "zeros"),
    }  # fmt: skip
    first_sizes, others = ({"n": rng.choice(_WIDE), "m": rng.choice(_LONG)} for _ in range(2))
    if plane:
        first_sizes["w"], others["w"] = rng.choice(_WIDE), rng.choice(_WIDE)
    return Made("histories", text, arrays, first_sizes, others, exact=False)


def histories(rng: Random) -> Made:
    """A thread an item."""
    return _histories(rng, plane=False)


def histories_of_planes(rng: Random) -> Made:
    """A thread an element of a plane."""
    return _histories(rng, plane=True)


FAMILY = (histories, histories_of_planes)
