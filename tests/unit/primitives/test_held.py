"""Rows that a thread walks again in each round, in registers; sizes as numbers; tiles of rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, in_turn
from optiml_magic.kernels.primitives.bunched import Bunch, bunched
from optiml_magic.kernels.primitives.held import hold_rows
from optiml_magic.kernels.primitives.sized import sized
from optiml_magic.kernels.primitives.staged import stage
from tests.present import examples, sampled

from .running import same
from .shapes import applied, kernel, refused

SHAPES = {"p": ("d", "n"), "q": ("d", "m"), "out": ("n",)}
LINE = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* p, const float* q, float* out, int n, int m, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    %s
}
"""
ROUNDS = "for (int j = 0; j < m; ++j)"
BODIES = {
    "least": f"if (i >= n) return; float best = 1e30f; int at = -1; {ROUNDS} {{ float s = 0; "
    "for (int l = 0; l < d; ++l) { float t = p[i * d + l] - q[j * d + l]; s += t * t; } "
    "if (s < best) { best = s; at = j; } } out[i] = at;",
    "columns": f"if (i < n) {{ float s = 0; {ROUNDS} {{ float t = 0; "
    "for (int l = 0; l < d; l++) t += p[l * n + i] * q[l * m + j]; s = fmaxf(s, t); } out[i] = s; }",
    "pointers": f"if (i >= n) return; const float* own = p + i * d; float s = 1; {ROUNDS} {{ "
    "const float* other = q + j * d; float t = 0; for (int l = 0; l < d; ++l) "
    "t += fabsf(own[l] - other[l]); s += expf(-t); } out[i] = s;",
    "two loops": f"if (i < n) {{ float s = 0; {ROUNDS} {{ float a = 0, b = 0; for (int l = 0; l < d; "
    "++l) a += p[i * d + l] * q[j * d + l]; for (int e = 0; e < d; ++e) b += p[i * d + e] - "
    "q[j * d + e]; s += a * b; } out[i] = s; }",
}
LEAST = BODIES["least"]


def steps(body: str, *more: Callable[[Kernel], Kernel | Refused], d: int = 5) -> Kernel | Refused:
    first = (partial(sized, values={"d": d}), partial(hold_rows, at=0))
    return in_turn(kernel(LINE % body), (*first, *more))


@pytest.mark.parametrize("name", sampled(BODIES, every=2))
def test_a_row_is_held_at_odd_sizes_and_others_are_left_to_a_condition(name: str) -> None:
    made = applied(steps(BODIES[name]))
    assert "require d == 5" in made.program.text
    assert made.program.text.count("#pragma unroll") >= 2
    for n, m in ((71, 9), (1, 0), (64, 3))[:: examples(2, 1)]:
        same(LINE % BODIES[name], made, SHAPES, {"n": n, "m": m, "d": 5})


@pytest.mark.parametrize("name", sampled(["least", "pointers", "two loops"], every=3))
def test_items_with_rows_of_their_own_meet_tiles_of_rows(name: str) -> None:
    made = steps(BODIES[name], partial(bunched, how=Bunch()), partial(stage, at=2, rounds=64))
    assert "q_tile[TILE * 5]" in applied(made).program.text
    assert "q_tile[turn * 5 + l]" in applied(made).program.text
    for items, n, m in ((2, 71, 100), (4, 130, 7))[:: examples(2, 1)]:
        values = {"ITEMS": items, "BLOCK": 32, "TILE": 32}
        same(LINE % BODIES[name], made, SHAPES, {"n": n, "m": m, "d": 5}, values, rounds=True)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (LEAST.replace("p[i * d + l]", "p[l]"), "no loop in it walks along a row"),
        (LEAST.replace("p[i * d + l]", "p[i * d + j]"), "no loop in it walks along a row"),
        (LEAST.replace("float s = 0;", "float s = 0; if (s > best) continue;"), "no loop in it"),
        (LEAST.replace("for (int l", "if (j % 2) for (int l"), "no loop in it walks along a row"),
        (LEAST.replace("float t = p", "if (l > i) continue; float t = p"), "no loop in it"),
        (LEAST.replace("float s = 0;", "float s = 0; out[i] = j;").replace("p[i", "out[i"), "no loop"),
    ],
)  # fmt: skip
def test_what_is_not_certain_to_be_loaded_in_every_round_is_not_held(
    body: str, reason: str
) -> None:
    found = steps(body)
    assert isinstance(found, Refused)
    assert reason in found.reason
    assert found.line == 5  # behind what it requires


def test_rows_that_are_too_long_for_registers_stay() -> None:
    assert "no loop in it" in refused(steps(LEAST, d=65))[0]
    both = LEAST.replace("p[i * d + l]", "(p[i * d + l] + p[(i + 1) % n * d + l])")
    assert "no room" in refused(steps(both, d=64))[0]


def test_a_size_that_changes_or_is_passed_otherwise_is_no_number() -> None:
    changed = refused(sized(kernel(LINE % f"d = 2 * d; {LEAST}"), {"d": 5}))
    assert changed[0] == "the parameter `d` changes"
    passed = (LINE % LEAST).replace("block(64)", "block(64) args(p, q, out, n, m, 2 * d)")
    assert "another expression for `d`" in refused(sized(kernel(passed), {"d": 5}))[0]
    assert "is not a size" in refused(sized(kernel(LINE % LEAST), {"p": 5}))[0]


def test_a_tile_of_rows_takes_as_many_as_have_room() -> None:
    wide = LEAST.replace("l < d", "l < 60").replace("* d", "* 60")
    made = applied(in_turn(kernel(LINE % wide), (
        partial(hold_rows, at=0), partial(bunched, how=Bunch(1)), partial(stage, at=2, rounds=256),
    )))  # fmt: skip
    assert made.program.values["TILE"] == 128
