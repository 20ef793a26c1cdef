"""Lanes that share loops: who does what, what is refused, and why."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.lanes import Lanes, share

from .running import same_of_many as same
from .shapes import ROWS, accesses, applied, kernel, refused

WARP = Lanes("warp", 32, 256, (8, 16, 32), (128, 256))
BLOCK = Lanes("block", 256, 256, (128, 256), (128, 256))
APART = Lanes("apart", 4, 64, (2, 4, 8, 32), (64, 128))
STACKED = Lanes("stacked", 2, 64, (2, 4), (64, 128))
SUM = "float s = 0; for (int c = 0; c < w; ++c) s += a[r * w + c]; out[r] = s;"


def shared(body: str, lanes: Lanes = WARP, at: tuple[int, ...] = (0,)) -> Kernel | Refused:
    return share(kernel(ROWS % body), at, lanes)


@pytest.mark.parametrize("lanes", [WARP, BLOCK])
def test_neighbouring_lanes_read_neighbouring_elements(lanes: Lanes) -> None:
    found = applied(shared(SUM, lanes))
    (load,) = accesses(found, "a")
    (loop,) = found.reading.loops(load)
    assert loop.variable is not None
    assert loop.variable.name == "c"
    step = found.reading.symbols.table["LANES" if lanes is WARP else "THREADS"]
    assert loop.step is not None
    assert loop.step.symbols == {step.name}
    assert loop.start is not None
    assert any(name.startswith(("threadIdx", "%")) for name in loop.start.symbols)


def test_a_tuned_block_that_lanes_were_counted_with_keeps_its_extent() -> None:
    text = (ROWS % SUM).replace("block(256)", "block(WIDE)")
    text = f"#pragma optiml tune WIDE in {{128, 256}} = 256\n{text}"
    values = {t.name: t.values for t in applied(share(kernel(text), (0,), WARP)).program.tunes}
    assert values == {"WIDE": (256,), "LANES": WARP.counts, "BLOCK": WARP.blocks}


def test_the_launch_has_a_group_of_lanes_for_each_thread_that_does_something() -> None:
    found = applied(shared(SUM))
    assert str(found.launch) == "#pragma optiml launch k grid(cdiv(h, BLOCK / LANES)) block(BLOCK)"
    assert found.program.values == {"LANES": 32, "BLOCK": 256}
    unguarded = (ROWS % SUM).replace("if (r >= h) return;", "")
    exact = applied(share(kernel(unguarded), (0,), WARP))
    assert str(exact.launch.grid[0]) == "cdiv(h, 256) * (256 / (BLOCK / LANES))"


@pytest.mark.parametrize(
    ("start", "joined"),
    [
        ("0", "s = lanes_sum<LANES>(s);"),
        ("a[r]", "s += lanes_sum<LANES>(s_part);"),
        ("1.0f", "s += lanes_sum<LANES>(s_part);"),
    ],
)
def test_what_a_sum_begins_with_is_added_once(start: str, joined: str) -> None:
    text = applied(shared(SUM.replace("s = 0", f"s = {start}"))).program.text
    assert joined in text


def test_what_a_loop_around_has_added_up_is_added_once() -> None:
    around = SUM.replace("for (int c", "for (int d = 0; d < 4; ++d) for (int c")
    text = applied(shared(around, at=(1,))).program.text
    assert "s += lanes_sum<LANES>(s_part);" in text
    anew = "for (int d = 0; d < 4; ++d) { float s = 0; for (int c = 0; c < w; ++c) s += a[r * w + c]; out[r] = s; }"
    assert "s = lanes_sum<LANES>(s);" in applied(shared(anew, at=(1,))).program.text


@pytest.mark.parametrize(
    ("start", "first"),
    [
        ("0", "lane"),
        ("r % 3", "r % 3 + lane"),
        ("r & 3", "(r & 3) + lane"),
        ("r > 3 ? 3 : r", "(r > 3 ? 3 : r) + lane"),
    ],
)
def test_each_lane_begins_at_a_round_of_its_own(start: str, first: str) -> None:
    text = applied(shared(SUM.replace("c = 0", f"c = {start}"))).program.text
    assert f"for (int c = {first}; c < w; c += LANES)" in text


def test_one_lane_stores_where_all_do_the_same() -> None:
    text = applied(shared(SUM)).program.text
    assert "if (lane == 0) out[r] = s;" in text


def test_lanes_wait_where_they_meet_what_others_stored() -> None:
    body = (
        "for (int c = 0; c < w; ++c) out[r * w + c] = a[r * w + c];"
        "for (int c = 0; c < w; ++c) out[r * w + c] += out[r * w + w - 1 - c];"
    )
    two = shared(body, at=(0,))
    assert "__syncwarp(group_mask<LANES>());" in applied(two).program.text
    assert refused(shared(body, at=(1,)))[0] == "a round may meet what another has stored"


@pytest.mark.parametrize(
    ("body", "reason", "line"),
    [
        (
            ("float s = 0; for (int c = 0; c < w; ++c) { s += a[r * w + c]; if (s > 9) break; }"
            " out[r] = s;"),
            "what ends the loop depends on rounds before", 5,
        ),
        (
            "float s = 0; for (int c = 0; c < w; ++c) s = s * s + a[r * w + c]; out[r] = s;",
            "`s` goes from round to round", 5,
        ),
        (
            "for (int c = 0; c < w; ++c) out[at[c]] = a[r * w + c];",
            "two rounds may store to one element", 5,
        ),
        (
            "for (int c = 0; c < w; ++c) atomicExch(&out[r], a[r * w + c]);",
            "atomic operations of its rounds do not only add up", 5,
        ),
        (
            "for (int c = 0; c < w; ++c) if (out[r] < 5) atomicAdd(&out[r], a[r * w + c]);",
            "atomic operations of its rounds do not only add up", 5,
        ),
        (
            ("__shared__ float t[256]; t[threadIdx.x] = a[r]; __syncthreads();"
            " float s = 0; for (int c = 0; c < w; ++c) s += t[c]; out[r] = s;"),
            "its threads wait for each other", 5,
        ),
    ],
)  # fmt: skip
def test_what_is_not_certain_is_refused(body: str, reason: str, line: int) -> None:
    found = refused(shared(body))
    assert found[0].startswith(reason), found
    assert found[1] == line


def test_threads_of_a_plane_are_counted_along_x_and_then_along_y() -> None:
    two = "blockIdx.x * 256 + threadIdx.y * 16 + threadIdx.x"
    text = (ROWS % SUM).replace("block(256)", "block(16, 16)")
    text = text.replace("blockIdx.x * blockDim.x + threadIdx.x", two)
    found = applied(share(kernel(text), (0,), WARP))
    assert "(item / 256) * 256 + (item % 256 / 16) * 16 + (item % 256 % 16)" in found.program.text
    assert "256 % (BLOCK / LANES) == 0" in found.program.text
    deep = text.replace("block(16, 16)", "block(8, 8, 4)")
    assert refused(share(kernel(deep), (0,), WARP))[0] == "its blocks have three dimensions"


def test_functions_stand_before_the_template_head_of_the_kernel() -> None:
    text = (ROWS % SUM).replace("__global__", "template <class T>\n__global__")
    text = text.replace("const float* a", "const T* a").replace("launch k", "launch k<float>")
    found = applied(share(kernel(text), (0,), WARP)).program.text
    assert "}\n\ntemplate <class T>\n__global__ void k(" in found


@pytest.mark.parametrize("kind", ["unsigned char", "short"])
def test_a_counter_that_holds_no_longer_step_is_refused(kind: str) -> None:
    body = SUM.replace("int c = 0", f"{kind} c = 0").replace("c < w", "c < 100")
    assert refused(shared(body))[0] == "its counter may not hold a longer step"


@pytest.mark.parametrize(
    "head", ["int c = 2147483640; c < 2147483647; ++c", "int c = 0; c < 2000000000; c += 400000000"]
)
def test_rounds_of_all_lanes_that_end_beyond_the_counter_are_refused(head: str) -> None:
    body = f"float s = 0; for ({head}) s += a[r * w + (c & 7)]; out[r] = s;"
    assert refused(shared(body))[0] == "its counter may not hold a longer step"


@pytest.mark.parametrize("count", [2, 4, 8, 32])
def test_lanes_apart_leave_neighbours_beside_each_other(count: int) -> None:
    body = "float s = 1; for (int c = 0; c < w; ++c) s += a[c * h + r]; for (int c = 0; c < w; ++c) out[c * h + r] = s;"
    made = share(kernel(ROWS % body), (0, 1), APART)
    (load,) = accesses(applied(made), "a")
    assert load.offset is not None
    shapes = {"a": ("w", "h"), "at": ("i4", "1"), "out": ("w", "h")}
    same(ROWS % body, made, shapes, {"w": 7, "h": 45}, {"LANES": count})


COLUMN = (
    "float s = 1; for (int c = 0; c < w; ++c) s += a[c * h + r]; "
    "for (int c = 0; c < w; ++c) out[c * h + r] = s;"
)


@pytest.mark.parametrize(("count", "rows"), [(2, 96), (4, 96)])
def test_stacked_lanes_leave_whole_warps_of_neighbours(count: int, rows: int) -> None:
    made = share(kernel(ROWS % COLUMN), (0, 1), STACKED)
    program = applied(made).program
    assert str(program.requires[0].condition) == "h % (BLOCK / LANES) == 0"
    shapes = {"a": ("w", "h"), "at": ("i4", "1"), "out": ("w", "h")}
    values = {"LANES": count, "BLOCK": 32 * count}
    same(ROWS % COLUMN, made, shapes, {"w": 7, "h": rows}, values, rounds=True)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("float s", "if (at[r] > 3) return; float s", "threads of a block part before they wait"),
        ("r]; for", "r]; if (s > 3) return; for", "threads of a block part before they wait"),
        ("float s", "if (r >= w) return; float s", "threads of a block part before they wait"),
    ],
)
def test_stacked_lanes_all_come_to_where_they_wait(old: str, new: str, reason: str) -> None:
    body = COLUMN.replace(old, new)
    assert refused(share(kernel(ROWS % body), (0, 1), STACKED))[0] == reason


def test_the_place_of_an_extreme_stays_with_neighbours() -> None:
    body = "float s = 0; int p = 0; for (int c = 0; c < w; ++c) if (a[c * h + r] > s) { s = a[c * h + r]; p = c; } out[r] = p;"
    reason = "what goes along with an extreme is not combined apart"
    assert refused(share(kernel(ROWS % body), (0,), APART)) == (reason, 0)


NEST = """\
#pragma optiml launch k grid(cdiv(c, 32)) block(32)
__global__ void k(const float* x, float* out, int n, int c, int p) {
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= c) return;
    float s = 0.5f, m = -9.0f;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < p; j++) s += x[(i * c + k) * p + j];
        for (int j = 0; j < p; j++) m = fmaxf(m, x[(i * c + k) * p + j]);
    }
    out[k] = s + m;
}
"""


@pytest.mark.parametrize("group", ["warp", "block"])
@pytest.mark.parametrize(("old", "new", "late"), [
    ("", "", 2), ("s += x", "s += 2 * x", 2), ("    }\n    out", "        s = s * 0.5f;\n    }\n    out", 1),
])  # fmt: skip
def test_parts_of_a_nest_are_combined_behind_it(group, old: str, new: str, late: int) -> None:
    text = NEST.replace(old, new)
    at = (1, 2)
    lanes = Lanes(
        group, 64 if group == "block" else 8, 64, (64,) if group == "block" else (8,), (64,)
    )
    made = share(kernel(text), at, lanes)
    body = applied(made).program.text
    behind = body.rpartition("\n    }\n")[2]
    assert behind.count("block_" if group == "block" else "lanes_") == late
    same(text, made, {"x": ("n", "c", "p"), "out": ("c",)}, {"n": 3, "c": 37, "p": 19}, rounds=True)
