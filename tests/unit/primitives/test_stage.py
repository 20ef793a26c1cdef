"""Threads that stay behind a flag, and tiles of what a block reads alike."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.flagged import flagged
from optiml_magic.kernels.primitives.flow import Flow
from optiml_magic.kernels.primitives.staged import stage
from optiml_magic.kernels.tree import If, Loop, walk
from tests.present import sampled

from .running import same
from .shapes import applied, kernel, refused

LINE = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, const float* x, float* out, int n, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    %s
}
"""
_ALIKE = "its rounds read nothing that is the same"
_IN = "if (i >= n) return; float s = 0;"
SUM = "for (int j = 0; j < w; ++j) s += x[j] * v;"
BODIES = {
    "return": f"if (i >= n) return; float v = a[i], s = 0; {SUM} out[i] = s;",
    "guard": f"float s = 0; if (i < n) {{ const float v = a[i]; {SUM} out[i] = s; }}",
    "other branch": f"if (i < n) {{ float v = a[i], s = 0; {SUM} out[i] = s; }} "
    "else if (i == n + 5) return;",
    "two ways out": f"if (i >= n) return; float v = a[i]; if (v < 0.0f) {{ out[i] = v; return; }} "
    f"float s = 0; {SUM} if (s > 9.0f) return; out[i] = s;",
    "a loop around it": "if (i >= n) return; for (int r = 0; r < 3; ++r) { float s = r; "
    f"if (a[i] < r) continue; float v = a[i]; {SUM} out[i] = s + out[i]; }}",
    "neighbours": "if (i >= n) return; float s = a[i]; "
    "for (int j = 0; j < w - 2; ++j) { s += x[j] * x[j + 2]; if (s > 4.0f) s -= x[j + 1]; } "
    "out[i] = s;",
    "every third": "if (i < n) { float s = a[i]; "
    "for (int j = 0; j < w / 3; ++j) s += x[3 * j] * x[3 * j + 1]; out[i] = s; }",
}
# Ways out from within a branch, with something behind it that they leave out as well.
WITHIN = {
    "a return": "if (i >= n) return; out[i] = 1; if (a[i] > 0.3f) { float s = 0, v = a[i]; "
    f"if (v > 0.6f) {{ out[i] = 2; return; }} if (v > 0.5f) return; {SUM} out[i] = s; }} "
    "out[i] += 5;",
    "a continue": "if (i >= n) return; for (int r = 0; r < 3; ++r) { out[i] += r; "
    f"if (a[i] > 0.3f) {{ float s = 0, v = a[i]; if (v > 0.6f) continue; {SUM} out[i] = s; }} "
    "out[i] += 5; }",
}
BODIES |= WITHIN
SHAPES = {"a": ("n",), "x": ("w",), "out": ("n",)}


def staged(text: str) -> Kernel | Refused:
    found = flagged(kernel(text), [len(loops_in(kernel(text).function.body)) - 1])
    if isinstance(found, Refused):
        return found
    return stage(found, len(loops_in(found.function.body)) - 1, 32)


@pytest.mark.parametrize("name", dict.fromkeys([*sampled(BODIES), *WITHIN]))
def test_threads_without_work_come_along_and_nothing_changes(name: str) -> None:
    text = LINE % BODIES[name]
    same(text, staged(text), SHAPES, {"n": 71, "w": 45})


@pytest.mark.parametrize("name", BODIES)
def test_every_wait_stands_where_all_threads_come(name: str) -> None:
    found = applied(staged(LINE % BODIES[name]))
    assert len(found.reading.barriers) == 3  # the vote, and both ends of a tile
    flow = Flow(found)
    waits = [s for s in walk(found.function.body) if "__syncthreads" in str(s.expressions)]
    assert len(waits) == 3
    for wait in waits:
        around = [s for s in flow.around(wait) if s is not wait]
        assert all("_or" in str(s.test) for s in around if isinstance(s, If))
        assert all(found.reading.uniform(flow.axes[s].test) for s in around if isinstance(s, Loop))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("for (int j = 0; j < w; ++j) { if (s > 9) break; s += x[j]; }", "it is left early"),
        ("for (int j = 0; j < i; ++j) s += x[j];", "threads of a block make different numbers"),
        ("for (int j = 0; j < w; ++j) if (j != i) s += x[j];", _ALIKE),
        ("for (int j = 0; j < w; ++j) s += a[i * w + j];", _ALIKE),
        ("for (int j = 0; j < w; ++j) s += out[j];", _ALIKE),
        (
            f"for (int r = 0; r < 3; ++r) {{ if (a[i] > r) return; float v = 1; {SUM} }}",
            "the kernel may",
        ),
    ],
)
def test_what_cannot_be_staged_is_refused(body: str, reason: str) -> None:
    found = staged(LINE % f"{_IN} {body} out[i] = s;")
    assert refused(found)[0].startswith(reason)


def test_a_parameter_that_moves_is_not_called_by_its_name() -> None:
    text = LINE % f"x += 2; {_IN} for (int j = 0; j < w; ++j) s += x[j]; out[i] = s;"
    assert refused(staged(text))[0] == "`x` is another one in the loop"


def test_a_loop_that_not_all_threads_come_to_is_refused_without_a_flag() -> None:
    text = LINE % BODIES["return"]
    assert refused(stage(kernel(text), 0, 32))[0] == "threads of a block diverge before the loop"
    text = LINE % BODIES["guard"]
    assert refused(stage(kernel(text), 0, 32))[0] == "not all threads of a block come to the loop"


def test_what_all_threads_come_to_already_needs_no_flag() -> None:
    text = LINE % f"float v = i, s = 0; if (w > 7) {{ {SUM} }} if (i < n) out[i] = s;"
    one = kernel(text)
    assert flagged(one, [0]) is one
    found = applied(stage(one, 0, 32))
    assert "__syncthreads_or" not in found.program.text
    same(text, found, SHAPES, {"n": 71, "w": 45})


@pytest.mark.parametrize(("counter", "most"), [("unsigned char", 250), ("signed char", 125)])
def test_the_end_of_a_tile_may_be_more_than_a_counter_holds(counter: str, most: int) -> None:
    body = BODIES["return"].replace("int j", f"{counter} j")
    same(LINE % body, staged(LINE % body), SHAPES, {"n": 71, "w": most})


def test_fields_of_a_struct_come_with_the_whole_of_it() -> None:
    text = (LINE % f"if (i >= n) return; float v = a[i], s = 0; {SUM} out[i] = s;").replace(
        "x[j] * v", "reinterpret_cast<const float2*>(x)[j].y * v"
    )
    assert "float x_tile[TILE * 2];" in applied(staged(text)).program.text
    pairs = text.replace("const float* x", "const float2* x").replace(
        "reinterpret_cast<const float2*>(x)[j].y", "x[j].y"
    )
    assert "float2 x_tile[TILE];" in applied(staged(pairs)).program.text
    assert "x_tile[turn].y" in applied(staged(pairs)).program.text
