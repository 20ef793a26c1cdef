"""Which rounds lanes share in loops that have to wait: solves, and what only looks like one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import NotLegal, kernels
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.proposers.rewrites.split_reduction import SplitReduction
from optiml_magic.source.program import parse_program
from tests.unit.primitives.running import same

SOLVE = """\
#pragma optiml launch k grid(cdiv(m, 128)) block(128)
__global__ void k(const float* L, const float* b, float* x, int n, int m) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= m) return;
    BODY
}
"""
FORWARD = """\
for (int i = 0; i < n; ++i) {
    float s = b[i * m + j];
    for (int k = 0; k < i; ++k) s -= L[i * n + k] * x[k * m + j] * 0.125f;
    x[i * m + j] = s / (L[i * n + i] + 32.0f);
}"""
BACKWARD = """\
for (int i = n - 1; i >= 0; --i) {
    float s = 0.0f;
    for (int k = i + 1; k < n; k++) s += L[i * n + k] * x[k * m + j] * 0.125f;
    x[i * m + j] = b[i * m + j] - s;
}"""
IN_PLACE = """\
for (int i = 0; i < n; ++i) x[i * m + j] = b[i * m + j];
for (int i = 1; i < n; ++i) {
    float s = x[i * m + j];
    for (int k = 0; k < i; ++k) s -= L[i * n + k] * x[k * m + j] * 0.125f;
    x[i * m + j] = s;
}"""
RIGHT = """\
for (int i = 0; i < n; ++i) x[i * m + j] = b[i * m + j];
for (int i = 0; i < n; ++i) {
    float v = x[i * m + j] / (L[i * n + i] + 32.0f);
    x[i * m + j] = v;
    for (int k = i + 1; k < n; ++k) x[k * m + j] -= L[k * n + i] * v * 0.125f;
}"""
BOTH = f"""{FORWARD}
for (int i = n - 1; i >= 0; --i) {{
    float s = x[i * m + j];
    for (int k = n - 1; k > i; --k) s -= L[k * n + i] * x[k * m + j] * 0.125f;
    x[i * m + j] = s;
}}"""
IN_MEMORY = """\
for (int i = 0; i < n; ++i) x[i * m + j] = b[i * m + j];
for (int i = 0; i < n; ++i)
    for (int k = 0; k < i; ++k) x[i * m + j] -= L[i * n + k] * x[k * m + j] * 0.125f;
for (int i = n - 1; i >= 0; --i) {
    for (int k = i + 1; k < n; ++k) x[i * m + j] -= L[i * n + k] * x[k * m + j] * 0.125f;
    x[i * m + j] *= L[i * n + i];
}"""
GREATEST = """\
for (int i = 0; i < n; ++i) {
    float s = b[i * m + j];
    for (int k = 0; k < i; ++k) s = fmaxf(s, x[k * m + j] - L[i * n + k]);
    x[i * m + j] = s;
}"""
UNSIGNED = FORWARD.replace("int i", "unsigned int i").replace("int k", "unsigned int k")
MASKED = FORWARD.replace("s -= L", "if (L[i * n + k] != 0.0f) s -= L")
DOUBLE = FORWARD.replace("float s", "double s")
LEFT = FORWARD.replace("float s", "if (b[i * m + j] == 3.0f) break;\n    float s")
PASSED_OVER = FORWARD.replace("float s", "if (b[i * m + j] == 3.0f) continue;\n    float s")
OLDER = FORWARD.replace("k < i;", "k < i - 2;")
SOLVES = {
    "forward": FORWARD, "backward": BACKWARD, "in place": IN_PLACE, "right": RIGHT, "both": BOTH,
    "in memory": IN_MEMORY, "greatest": GREATEST, "unsigned": UNSIGNED, "masked": MASKED, "double": DOUBLE, "left": LEFT,
    "passed over": PASSED_OVER, "older": OLDER,
}  # fmt: skip
HELD_ON = """\
float s = 0.0f;
for (int i = 0; i < n; ++i) {
    for (int k = 0; k < i; ++k) s += L[i * n + k] * x[k * m + j] * 0.125f;
    x[i * m + j] = b[i * m + j] - s * 0.03125f;
}"""
PERHAPS_ANEW = FORWARD.replace("for (int k", "if (L[i * n] > 0.0f) s = 0.0f;\n    for (int k")
WAVED = FORWARD.replace("x[k", "x[(i - 1 - k)")
HIDDEN = """\
for (int i = 0; i < n; ++i) {
    float t = b[i * m + j];
    for (int k = 0; k < i; ++k) { float j = L[i * n + k]; t -= j * 0.125f * x[k * m + J]; }
    x[i * m + j] = t;
}""".replace("float t", "int J = j;\n    float t", 1)
ALIAS = f"float* y = x + j;\n{FORWARD}".replace("x[k * m + j]", "y[k * m]")
SOLVES |= {
    "held on": HELD_ON, "perhaps anew": PERHAPS_ANEW, "waved": WAVED,
    "hidden": HIDDEN, "alias": ALIAS,
}  # fmt: skip
APART_ALONE = {"left", "passed over"}  # lanes of several warps would wait for some of them
SHAPES = {"L": ("n", "n"), "b": ("n", "m"), "x": ("n", "m")}


def at(body: str, n: int = 256, m: int = 4096) -> list[Site]:
    """What the rule offers at these sizes on an H200."""
    (kernel,) = kernels(parse_program(SOLVE.replace("BODY", body)), None)
    facts = LaunchFacts("k", 1, (-(-m // 128), 1, 1), (128, 1, 1), {}, {"n": n, "m": m})
    rule = SplitReduction()
    try:
        found = [*rule.sites(rule.shaped(replace(kernel, facts=facts, chip="h200")))]
    except NotLegal:
        return []
    return [site for site in found if isinstance(site, Site) and "in each round" in site.title]


@pytest.mark.parametrize("name", SOLVES)
@pytest.mark.parametrize("n", [1, 2, 13])
def test_lanes_share_what_each_round_adds_up(name: str, n: int) -> None:
    text = SOLVE.replace("BODY", SOLVES[name])
    made = {site.key.split()[0]: site.apply() for site in at(SOLVES[name])}
    same(text, made["apart"], SHAPES, {"n": n, "m": 37}, {"LANES": 8, "BLOCK": 64}, rounds=True)
    if name not in APART_ALONE:
        whole = {"LANES": 8, "BLOCK": 256}
        same(text, made["stacked"], SHAPES, {"n": n, "m": 96}, whole, rounds=True)
    assert ("stacked" in made) == (name not in APART_ALONE)


def test_an_extreme_is_the_same_in_any_order() -> None:
    assert all(site.arithmetic == () for site in at(GREATEST))
    assert all(site.arithmetic == ("the order of additions",) for site in at(FORWARD))


@pytest.mark.parametrize("given", ["odd", "numbers"])
def test_extremes_of_odd_numbers(given: str) -> None:
    (_, apart) = at(GREATEST)
    text = SOLVE.replace("BODY", GREATEST)
    same(text, apart.apply(), SHAPES, {"n": 9, "m": 21}, given=given)


def test_as_many_lanes_as_have_rounds_and_fill_the_chip() -> None:
    assert [site.points[0]["LANES"] for site in at(FORWARD)] == [16, 8]
    assert [site.points[0]["LANES"] for site in at(FORWARD, 256, 1 << 15)] == [8, 2]
    assert [site.points[0]["LANES"] for site in at(FORWARD, 32, 512)] == [4]


@pytest.mark.parametrize(("n", "m"), [(256, 1 << 18), (6, 4096)])
def test_many_threads_and_short_rounds_are_left_alone(n: int, m: int) -> None:
    assert not at(FORWARD, n, m)


REFUSED = {
    "a counter that wraps around": """\
for (unsigned int i = n - 1; i < (unsigned int)n; --i) {
    float s = b[i * m + j];
    for (unsigned int k = i + 1; k < n; ++k) s -= L[i * n + k] * x[k * m + j] * 0.125f;
    x[i * m + j] = s;
}""",
    "the next needs what a round has just stored": """\
for (int i = 1; i < n; ++i) {
    x[i * m + j] = b[i * m + j];
    for (int k = 0; k < i; ++k) x[(k + 1) * m + j] -= L[i * n + k] * x[k * m + j];
}""",
    "a sum that all rounds go on with": """\
float s = 0.0f;
for (int i = 0; i < n; ++i)
    for (int k = 0; k < i; ++k) { s = s * 0.5f + L[i * n + k] * x[k * m + j]; x[k * m + j] = s; }
""",
    "a loop that is left where data say": """\
for (int i = 0; i < n; ++i) {
    float s = b[i * m + j];
    for (int k = 0; k < i; ++k) { if (s < x[k * m + j]) return; s -= L[i * n + k] * x[k * m + j]; }
    x[i * m + j] = s;
}""",
    "a counter that moves in a round": """\
for (int i = 0; i < n; ++i) {
    float s = b[i * m + j];
    for (int k = 0; k < i; ++k) { if (L[i * n + k] > 2.0f) ++k; s -= x[k * m + j]; }
    x[i * m + j] = s;
}""",
    "atomic operations whose results are used": """\
for (int i = 0; i < n; ++i) {
    float s = b[i * m + j];
    for (int k = 0; k < i; ++k) s -= atomicAdd(&x[k * m + j], 1.0f);
    x[i * m + j] = s;
}""",
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_lanes_may_not_share(why: str) -> None:
    assert not at(REFUSED[why])


def test_what_lanes_would_repeat_is_not_much() -> None:
    behind = "for (int i = 0; i < n; ++i) for (int k = 1; k < n; ++k) "
    behind += "x[k * m + j] = x[(k - 1) * m + j] * 0.5f + x[k * m + j];"
    assert not at(f"{FORWARD}\n{behind}")
