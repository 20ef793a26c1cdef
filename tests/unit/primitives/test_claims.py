"""Exchanges of which one alone goes on, whichever, and those that all leave the same."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.counted import all_counted
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.lanes import Lanes, share
from optiml_magic.kernels.primitives.rounds import shareable
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const int* to, int* seen, int* any, int* count, int n, int m, int level) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n) return;
    for (int j = 0; j < m; j++) {
        int v = to[i * m + j];
        BODY
    }
    REST
}
"""
CLAIM = "if (atomicCAS(&seen[v], 0, level + 1) == 0) atomicExch(any, 1);"
ARRAYS = {
    "to": Array("i4", ("n", "m"), "below n"), "seen": Array("i4", ("n",), "below m"),
    "any": Array("i4", ("n",), "zeros"), "count": Array("i4", ("n",), "zeros"),
}  # fmt: skip
SIZES, SMALL = {"n": 71, "m": 13, "level": 4}, {"n": 3, "m": 1, "level": 1}


def text_of(body: str, rest: str = "") -> str:
    return TEXT.replace("BODY", body).replace("REST", rest)


@pytest.mark.parametrize(
    "body",
    [
        CLAIM,
        "if (atomicCAS(&seen[v], 0, level) == 0) { atomicAdd(&count[0], 1); atomicExch(any, 1); }",
        "if (v % 3 == 1 && j > 1) { if (atomicCAS(seen + v, 1, 0) == 1) atomicAdd(count + 1, 2); }",
        "atomicExch(&any[v], level);",
        "atomicExch(&any[v], 3); " + CLAIM.replace("atomicExch(any, 1)", "atomicOr(&count[2], 4)"),
    ],
)
def test_lanes_share_rounds_that_claim(body: str) -> None:
    before = text_of(body)
    after = share(kernel_of(before), (0,), Lanes("warp", 8, 64, (8,), (64,)))
    assert end_of(before, written(after), ARRAYS, SIZES, SMALL) == "same"


@pytest.mark.parametrize(
    ("body", "rest"),
    [
        (CLAIM.replace("any, 1", "any, v"), ""),
        (CLAIM.replace("any, 1", "any, j"), ""),
        (CLAIM.replace("any, 1", "any + v, 1"), ""),
        (CLAIM.replace("any, 1", "&any[i], 1"), ""),
        (CLAIM.replace("any, 1", "&any[to[0]], 1"), ""),
        (CLAIM.replace("level + 1", "i"), ""),
        (CLAIM.replace("level + 1", "j"), ""),
        (CLAIM.replace("level + 1", "to[j]"), ""),
        (CLAIM.replace("0, level", "j, level"), ""),
        (CLAIM.replace("== 0", "== 1"), ""),
        (CLAIM.replace("== 0", "!= 0"), ""),
        (CLAIM + " else atomicExch(any, 2);", ""),
        (CLAIM + " if (v == 3) atomicExch(any, 2);", ""),
        (CLAIM + " if (v == 3) atomicCAS(&seen[v], 0, 1);", ""),
        (CLAIM + " if (seen[v] == 3) atomicAdd(count, 1);", ""),
        (CLAIM, "count[i] = seen[i];"),
        (CLAIM, "any[i] = 7;"),
        (CLAIM, "atomicExch(&seen[i], 0);"),
        (
            "if (atomicCAS(&seen[v], 0, 1) == 0) { atomicExch(any, 1); atomicExch(&seen[v], 0); }",
            "",
        ),
        ("if (atomicCAS(&seen[v], 0, 1) == 0) { any[atomicAdd(count, 1)] = v; }", ""),
        ("int old = atomicCAS(&seen[v], 0, 1); if (old == 0) atomicAdd(&count[j], 1);", ""),
        ("while (atomicCAS(&seen[v], 0, 1) == 0) atomicExch(any, 1);", ""),
        ("if (atomicExch(&seen[v], 1) == 0) atomicAdd(count, v);", ""),
        ("atomicExch(any, v);", ""),
        ("level += 1; " + CLAIM, ""),
    ],
)
def test_not_where_it_matters_who_goes_on(body: str, rest: str) -> None:
    kernel = kernel_of(text_of(body, rest))
    made = all_counted(kernel, (0,))
    assert isinstance(made, Kernel)
    with pytest.raises(NotLegal):
        shareable(made, loops_in(made.function.body)[0], Effects(made))
