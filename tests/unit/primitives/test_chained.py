"""Rounds that end with one branch: lanes look ahead to them, and the bits stay the same."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.chained import chained
from optiml_magic.kernels.primitives.lanes import Lanes, share

from .alike import end_of, kernel_of, refused, written
from .test_ahead import ARRAYS, LIST, LOOP, OUT, PUT, ROWS

WARP = Lanes("warp", 8, 64, (2, 4, 8, 16, 32), (32, 64, 128))
TWO = "float a = -9, b = -9; int at = 0;"
BODIES = {
    "passes over": f"{LIST} {LOOP} {{ float v = x[i * m + j]; if (v <= best[2]) continue; "
    f"{PUT % ('v', 'v')} }} {OUT}",
    "passes over two": f"{LIST} {LOOP} {{ if (j == i) continue; float v = y[j]; "
    f"if (!(v > best[2])) {{ continue; }} {PUT % ('v', 'v')} }} {OUT}",
    "first or second": f"{TWO} {LOOP} {{ float v = x[i * m + j]; if (v > a) {{ b = a; a = v; at = j; "
    "} else if (v > b) { b = v; } } out[i * 3] = a; out[i * 3 + 1] = b; out[i * 3 + 2] = at;",
    "one of three": f"{TWO} {LOOP} {{ float v = y[j] * y[i]; if (v > a) a = v; else if (v == a) {{ "
    "at = j; } else { if (v + 1 < b) b = v; } } out[i * 3] = a + b + at;",
}


@pytest.mark.parametrize("name", BODIES)
def test_lanes_look_ahead_to_what_changes_something(name: str) -> None:
    before = ROWS % BODIES[name]
    made = kernel_of(before)
    while refused_by_lanes(made):
        more = chained(made, 0)
        assert isinstance(more, Kernel)
        made = more
    after = written(share(made, [0], WARP, far=True))
    assert "__ballot_sync" in after
    assert end_of(before, written(made), ARRAYS, {"n": 13, "m": 70}, {"n": 1, "m": 3}) == "same"
    assert end_of(before, after, ARRAYS, {"n": 13, "m": 70}, {"n": 1, "m": 3}) == "same"


def refused_by_lanes(kernel: Kernel) -> bool:
    return not isinstance(share(kernel, [0], WARP, far=True), Kernel)


@pytest.mark.parametrize(
    "body",
    [
        "float s = 0; LOOP s += y[j]; out[i] = s;",
        "float s = 0; LOOP if (y[j] > s) s = y[j]; out[i] = s;",
        "float s = 0; LOOP if (y[j] > s) s = y[j]; else s -= 1; out[i] = s;",
        "float s = 0; LOOP if (y[j] > s) s = y[j]; else if (s++ > 3) s = 1; out[i] = s;",
    ],
)
def test_others_stay(body: str) -> None:
    kernel = kernel_of(ROWS % body.replace("LOOP", LOOP))
    assert refused(chained(kernel, 0)) == "its rounds do not end with several branches, line 5"
