"""A record of a thread's own that some threads leave alone, as those of the dead among particles."""

from __future__ import annotations

import pytest

from optiml_magic.model.refusal import Refusal
from optiml_magic.proposers.rewrites.scalarise_array import ScalariseArray
from tests.ideas import asked
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of

HEAD = """\
struct Item { float x, y; int k; float u, v, w, m, s; };
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, Item* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
"""
MOVE = "c[i].x += c[i].u * 0.5f; c[i].y = c[i].v - c[i].x;"
ARRAYS = {"a": Array("f4", ("n",)), "c": Array("x:f4 y:f4 k:i4 u:f4 v:f4 w:f4 m:f4 s:f4", ("n",))}
OWN = "hold a thread's elements of c in registers, which the lanes of a warp bring"


def made(text: str) -> str | None:
    """The program whose lanes bring the records together."""
    ideas, _ = asked(ScalariseArray(), text)
    found = next((idea.make() for idea in ideas if idea.title.startswith(OWN)), None)
    assert not isinstance(found, Refusal)
    return found


@pytest.mark.parametrize(
    "body",
    [
        f"if (i < n) {{ if (c[i].x > 0.5f) {{ {MOVE} }} }}",
        f"if (i >= n) return; if (c[i].x <= 0.5f) return; {MOVE}",
        f"if (i < n) {{ if (c[i].x <= 0.5f) return; {MOVE} }}",
        f"if (i < n) {{ if (c[i].x <= 0.5f) return; {MOVE} if (c[i].y > 1.0f) return; c[i].w = 2.0f; }}",
        f"if (i >= n) return; Item& t = c[i]; if (!(t.x > 0.5f)) return; {MOVE.replace('c[i]', 't')}",
        f"if (i >= n) return; if (c[i].k > 0) {{ {MOVE} return; }} c[i].k = 7;",
    ],
)
def test_records_that_some_threads_leave_alone(body: str) -> None:
    text = f"{HEAD}    {body}\n}}\n"
    after = made(text)
    assert after is not None
    assert "Item c_own[1];" in after
    for sizes, others in (({"n": 70}, {"n": 3}), ({"n": 256}, {"n": 33})):
        assert end_of(text, after, ARRAYS, sizes, others, rounds=True) == "same"


@pytest.mark.parametrize(
    "body",
    [
        f"if (i < n) {{ if (c[i ^ 1].x > 0.5f) return; {MOVE} }}",
        f"if (i < n) {{ if (a[i] > 0.5f) return; c[n - 1 - i].x = 1.0f; {MOVE} }}",
        f"if (i < n) {{ for (int j = 0; j < n; j++) if (c[j].x > 0.5f) return; {MOVE} }}",
        "if (i < n) { if (a[i] > 0.5f) return; c[i].x = 1.0f; }",
        f"if (i < n) {{ if (c[i / 2].x > 0.5f) return; {MOVE.replace('c[i]', 'c[i / 2]')} }}",
        f"if (i >= n) return; if (a[i] > 0.5f && c[i].k > 0) {{ {MOVE} return; }} c[i].k = 7;",
        "if (i < n) { if (c[i].x > 0.5f) atomicAdd(&c[i].k, 1); }",
    ],
)
def test_records_that_others_touch_or_that_nobody_loads(body: str) -> None:
    assert made(f"{HEAD}    {body}\n}}\n") is None


@pytest.mark.parametrize("width", [16, 17])
def test_rounds_that_some_lanes_leave_sooner(width: int) -> None:
    """Who makes the next round alone asks for what others have stored for it."""
    text = f"""\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* c, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int k = 0; k <= i % 7; ++k) {{
        for (int j = 0; j < {width}; ++j) c[i * {width} + j] += a[i] * k;
    }}
}}
"""
    after = made(text)
    assert after is not None
    arrays = {"a": Array("f4", ("n",)), "c": Array("f4", (f"{width} * n",))}
    assert end_of(text, after, arrays, {"n": 70}, {"n": 33}, rounds=True) == "same"
