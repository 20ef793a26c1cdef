"""Loops that end where their thread stands, and blocks that bring what these read."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.levelled import levelled
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.proposers.rewrites.stage_tile import StageTile
from tests.present import sampled

from .running import same
from .shapes import applied, kernel, refused

CAUSAL = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* q, const float* keys, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float best = -1e30f, sum = 0.0f;
    for (int j = 0; j <= i; ++j) {
        float s = 0.0f;
        for (int c = 0; c < 4; ++c) s += q[i * 4 + c] * keys[j * 4 + c];
        best = fmaxf(best, s);
        sum += s;
    }
    out[i] = best + sum;
}
"""
SHAPES = {"q": ("n", "4"), "keys": ("n + 3", "4"), "out": ("n",)}


def staged(found: Kernel) -> list[Site]:
    return [s for s in StageTile().sites(found) if isinstance(s, Site)]


@pytest.mark.parametrize("n", sampled([200, 64, 5], 3))
@pytest.mark.parametrize(
    ("old", "new", "ends"),
    [
        ("j <= i", "j <= i", "min((int)blockIdx.x * 64 + 64, n)"),
        ("j <= i", "j < i", "min((int)blockIdx.x * 64 + 63, n - 1)"),
        ("j <= i", "j < i + 3", "min((int)blockIdx.x * 64 + 66, n + 2)"),
        ("int j = 0; j <= i", "unsigned j = 1; j <= i", "min((unsigned)("),
        ("if (i >= n) return;", "if (n <= i) return;", "min((int)blockIdx.x * 64 + 64, n)"),
    ],
)
def test_all_threads_of_a_block_make_the_same_rounds(old: str, new: str, ends: str, n: int) -> None:
    text = CAUSAL.replace(old, new)
    made = levelled(kernel(text))
    assert ends in applied(made).program.text
    same(text, made, SHAPES, {"n": n})
    sites = staged(kernel(text))
    rows = "hold a thread's row of q in registers, and stage keys"
    assert sites[0].title.startswith(rows)
    for site in sites:
        same(text, site.apply(), SHAPES, {"n": n}, rounds=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("j <= i", "j < n"),
        ("j <= i", "j <= 2 * i"),
        ("j <= i", "j <= n - i"),
        ("++j", "j += 2"),
        ("int j = 0", "int j = i / 2"),
        ("if (i >= n) return;", "if (i >= n || q[i] < 0.0f) return;"),
        ("if (i >= n) return;", ""),
        ("sum += s;", "sum += s; if (s > 9.0f) break;"),
        ("best = fmaxf", "if (s > 9.0f) continue; best = fmaxf"),
        ("block(64)", "block(8, 8)"),
    ],
)
def test_loops_that_stay(old: str, new: str) -> None:
    assert old in CAUSAL
    reason, _ = refused(levelled(kernel(CAUSAL.replace(old, new))))
    assert reason == "no loop ends where its thread stands"


def test_what_is_read_in_some_rounds_only_is_not_brought() -> None:
    text = CAUSAL.replace("best = fmaxf(best, s);", "if (j % 3 == 0) best = fmaxf(best, keys[j]);")
    made = where_legal(levelled, kernel(text))
    assert made is not kernel(text)
    (held, *_) = staged(kernel(text))
    assert "keys_tile[turn]" not in applied(held.apply()).program.text
    found = list(StageTile().sites(kernel(CAUSAL.replace("j <= i", "j <= 2 * i"))))
    assert any(isinstance(s, Refused) and "different numbers of rounds" in s.reason for s in found)


TWICE = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* q, const float* keys, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float best = -1e30f, sum = 0.0f;
    for (int j = 0; j < n; ++j) for (int c = 0; c < 64; ++c) best = fmaxf(best, keys[j * 64 + c]);
    for (int j = 0; j < n; ++j)
        for (int c = 0; c < 64; ++c) sum += (q[i] - best) * keys[j * 64 + c] * keys[c];
    out[i] = sum;
}
"""


def test_loops_share_the_room_of_a_block() -> None:
    (site,) = staged(kernel(TWICE))
    made = applied(site.apply())
    rounds = [tune.value for tune in made.program.tunes]
    assert [*rounds] == [64, 64]  # of 256 bytes each, of the 49,152 that there are
    last = made.program.tunes[0]
    assert "TILE * 64 * 4" in str(last.condition) or "64 * TILE" in str(last.condition)
    shapes = {"q": ("n",), "keys": ("n", "64"), "out": ("n",)}
    same(TWICE, made, shapes, {"n": 70}, rounds=True)
