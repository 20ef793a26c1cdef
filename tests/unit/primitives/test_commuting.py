"""Elements that the data choose, updated atomically: what lanes then share, and what stays."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.commuting import commuting
from optiml_magic.kernels.primitives.lanes import Lanes, share
from tests.present import sampled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

ROWS = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const int* c, const float* x, %s* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    %s
}
"""
LOOP = "for (int j = 0; j < m; ++j)"
PLACE = "out[i * 8 + (c[i * m + j] & 7)]"
ZERO = "for (int l = 0; l < 8; ++l) out[i * 8 + l] = 0;"
BODIES = {
    "counts": ("int", f"{ZERO} {LOOP} {PLACE}++;", "i * m + j] & 7)], 1);"),
    "down": ("unsigned", f"{LOOP} --{PLACE};", "], -1);"),
    "sums": ("float", f"{ZERO} {LOOP} {PLACE} += x[j]; out[i * 8] *= 2;", "], x[j]);"),
    "differences": ("double", f"{LOOP} {PLACE} -= c[j];", "], -(double)(c[j]));"),
    "bits": ("int", f"{LOOP} if (x[j] > 0) {PLACE} |= 1 << (c[j] & 3);", "atomicOr(&out["),
    "several": ("int", f"{LOOP} {{ {PLACE} += 2; out[i * 8] += c[j]; }}", "], 2);"),
}
ARRAYS = {"c": Array("i4", ("n", "m")), "x": Array("f4", ("m",))}
KINDS = {"int": "i4", "unsigned": "u4", "float": "f4", "double": "f8"}
WARP, BLOCK = (Lanes("warp", 8, 64, (8, 32), (64,)), Lanes("block", 64, 64, (64,), (64,)))


@pytest.mark.parametrize("name", sampled(BODIES, every=2))
@pytest.mark.parametrize("lanes", [WARP, BLOCK], ids=["warp", "block"])
def test_lanes_share_what_is_updated_atomically(name: str, lanes: Lanes) -> None:
    kind, body, words = BODIES[name]
    before = ROWS % (kind, body)
    at = [1] if "int l" in body else [0]
    made = commuting(kernel_of(before), at)
    assert words in written(made)
    assert isinstance(made, Kernel)
    arrays = {**ARRAYS, "out": Array(KINDS[kind], ("n * 8",), "zeros")}
    for found in (made, share(made, at, lanes)):
        after = written(found)
        sizes, others = {"n": 9, "m": 70}, {"n": 1, "m": 3}
        assert end_of(before, after, arrays, sizes, others, rounds=True) == "same"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("int", f"{LOOP} out[i * m + j] += 1;"),  # each round has its own
        ("short", f"{LOOP} {PLACE}++;"),
        ("long long", f"{LOOP} {PLACE}++;"),
        ("int", f"{LOOP} {PLACE} += x[j];"),
        ("float", f"{LOOP} {PLACE} += x[j] * 0.1;"),
        ("float", f"{LOOP} {PLACE} *= 2;"),
        ("int", f"int s = 0; {LOOP} s += {PLACE}++; out[i * 8] = s;"),
        ("int", f"{LOOP} {PLACE} += out[i * 8];"),
        ("int", f"{LOOP} {{ {PLACE} += 1; {PLACE} |= 1; }}"),
        ("int", f"{LOOP} {{ {PLACE} += 1; if (out[i * 8] > 3) out[i * 8 + 1] = 0; }}"),
        ("int", f"int l = 0; {LOOP} {PLACE} += l++;"),
    ],
)
def test_updates_that_stay(kind: str, body: str) -> None:
    assert refused(commuting(kernel_of(ROWS % (kind, body)), [0]))
