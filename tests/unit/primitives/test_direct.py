"""References dissolved; loads that functions make; locals that begin anew in each round."""

from __future__ import annotations

import re

import pytest

from optiml_magic.kernels.primitives.counted import all_counted
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.lanes import Lanes, share
from optiml_magic.kernels.primitives.rows import rows
from optiml_magic.kernels.primitives.unpeeled import unpeeled
from optiml_magic.kernels.primitives.vectors import vectorise, vectorised

from .shapes import ROWS, applied, kernel, refused

WARP = Lanes("warp", 8, 64, (8, 32), (64, 128))
LOAD = """\
template <class E> __device__ E load(const E* from, int place) { return from[place]; }
__device__ double wide(const float* from, int place) { return from[place]; }
__device__ float next(float* from, int place) { return from[place]++; }
"""


def test_locals_stand_where_references_to_them_stood() -> None:
    body = """float s = 0; float& t = s; float& u = t; int& n = w;
for (int c = 0; c < n; ++c) u += a[r * n + c]; out[r] = t;"""
    found = applied(direct(kernel(ROWS % body)))
    assert "&" not in found.program.text
    assert "for (int c = 0; c < w; ++c) s += a[r * w + c];" in found.program.text
    assert "s = lanes_sum<LANES>(s);" in applied(share(found, (0,), WARP)).program.text


@pytest.mark.parametrize(
    "body",
    [
        "float s = 0; const double& t = s; s = 1; out[r] = t;",  # of another type: a copy
        "float& t = out[r]; t = a[r];",
        "float s = 0; float& t = s; { int s = 1; t += s; } out[r] = s;",  # another `s` there
        "float s = 0; float& t = s; auto add = [&](float x) { t += x; }; add(1); out[r] = s;",
        "out[r] = 0;",
    ],
)
def test_a_reference_that_is_more_than_a_name_stays(body: str) -> None:
    assert refused(direct(kernel(ROWS % body)))[0] == "no reference stands for a local"


def placed(lets: str, index: str, value: str = "a[r]") -> str:
    """A kernel that says where its thread is by locals."""
    whole = f"{lets}\n    int r = {index};".lstrip()
    text = ROWS % f"out[r] = {value};"
    return text.replace("int r = blockIdx.x * blockDim.x + threadIdx.x;", whole)


@pytest.mark.parametrize(
    ("lets", "index", "spelled"),
    [
        ("int t = threadIdx.x;", "blockIdx.x * 256 + t", "blockIdx.x * 256 + (int)threadIdx.x"),
        (
            "const unsigned t = threadIdx.x, b = blockIdx.x;",
            "t + b * blockDim.x",
            "(unsigned)threadIdx.x + (unsigned)blockIdx.x * blockDim.x",
        ),
        (
            "int n = blockDim.x;\n    int first = blockIdx.x * n;",
            "first + threadIdx.x",
            "(int)(blockIdx.x * (int)blockDim.x) + threadIdx.x",
        ),
        ("", "h + 1 + blockIdx.x * 256 + threadIdx.x", "blockIdx.x * 256 + threadIdx.x + h + 1"),
        ("", "threadIdx.x + h + blockIdx.x * 256", "blockIdx.x * 256 + threadIdx.x + h"),
        ("", "blockIdx.x * 256 - h + threadIdx.x", "blockIdx.x * 256 + threadIdx.x - h"),
        (
            "",
            "blockIdx.x * 256 - (h - (w - 1) - threadIdx.x)",
            "blockIdx.x * 256 + threadIdx.x - h + w - 1",
        ),
        (
            "int t = threadIdx.x;",
            "3 + blockIdx.x * 256 + t",
            "blockIdx.x * 256 + (int)threadIdx.x + 3",
        ),
        (  # in 32 bits the block's first thread wraps as before, and the sum does not
            "",
            "(size_t)h + blockIdx.x * 256 + threadIdx.x",
            "(size_t)(blockIdx.x * 256) + threadIdx.x + (size_t)h",
        ),
        (  # a sum of 32 bits that wraps stays one
            "",
            "(long long)blockIdx.x * 256 + (h + w) + threadIdx.x",
            "(long long)blockIdx.x * 256 + threadIdx.x + (h + w)",
        ),
    ],
)
def test_an_index_is_spelled_out(lets: str, index: str, spelled: str) -> None:
    found = applied(in_full(kernel(placed(lets, index)))).program.text
    assert re.search(rf"h\) {{\s+int r = {re.escape(spelled)};", found)


@pytest.mark.parametrize(
    "lets",
    [
        "int t = threadIdx.x; t = t + 0;",
        "unsigned char t = threadIdx.x;",  # it does not hold them all
        "int t = threadIdx.y;",
        "int t = w;",
    ],
)
def test_what_is_no_part_of_an_index_stays(lets: str) -> None:
    found = in_full(kernel(placed(lets, "blockIdx.x * blockDim.x + t")))
    assert refused(found)[0] == "no index in the grid is split into parts"


@pytest.mark.parametrize(
    "index",
    [
        "blockIdx.x * 256 + threadIdx.x + h",  # it stands alone already
        "h + (blockIdx.x * 256 + threadIdx.x)",
        "h - blockIdx.x * 256 - threadIdx.x",
        "blockIdx.x * 256 + h - threadIdx.x",
        "blockIdx.x * 128 + h + threadIdx.x",  # of other blocks
        "blockIdx.x * 256 + h + 2 * threadIdx.x",
        "blockIdx.x * 256 + h + threadIdx.y",
        "blockIdx.x * 256 + h + (unsigned char)threadIdx.x",
        "(int)(blockIdx.x * 256 + (float)threadIdx.x)",
        "(h + blockIdx.x * 256) * 2 + threadIdx.x",
        "(int)((float)h + blockIdx.x * 256 + threadIdx.x)",
    ],
)
def test_sums_that_are_no_index_stay(index: str) -> None:
    assert (
        refused(in_full(kernel(placed("", index))))[0] == "no index in the grid is split into parts"
    )


def test_a_local_that_is_asked_for_otherwise_stays() -> None:
    text = placed("int t = threadIdx.x;", "blockIdx.x * blockDim.x + t", "a[r] + t")
    found = applied(in_full(kernel(text))).program.text
    assert "int t = threadIdx.x;" in found
    assert "+ (int)threadIdx.x;" in found
    assert "a[r] + t;" in found


def test_loads_of_functions_are_loads_of_the_loop() -> None:
    body = "float s = 0; for (int c = 0; c < w; ++c) s += load(a, r * w + c); out[r] = s;"
    text = LOAD + ROWS % body
    (axis,) = rows(kernel(text))
    assert axis.line == text[: text.index("for (")].count("\n") + 1
    assert "s += a_items[c_item];" in applied(vectorise(kernel(text), 0)).program.text
    most = body.replace("0;", "load(a, r * w);", 1).replace("c = 0", "c = 1")
    most = LOAD + ROWS % most.replace("s += load(a, r * w + c)", "s = fmaxf(s, load(a, r * w + c))")
    assert "c = 0" in applied(unpeeled(kernel(most), 0)).program.text
    # It is a double that this one returns, and nobody may take a float in its place.
    found = vectorise(kernel(text.replace("load(a, r", "wide(a, r")), 0)
    assert refused(found)[0].startswith("it reads no consecutive elements")


def test_what_a_function_loads_may_be_what_another_round_stores() -> None:
    body = "for (int c = 0; c < w; ++c) out[r * w + c] = load(out, r * w + w - 1 - c);"
    found = share(kernel(LOAD + ROWS % body), (0,), WARP)
    assert refused(found)[0] == "a round may meet what another has stored"
    stores = "float s = 0; for (int c = 0; c < w; ++c) s += next(out, r * w + c); out[r] = s;"
    assert refused(share(kernel(LOAD + ROWS % stores), (0,), WARP))[0] == "a function stores for it"


FIRST = """float v, s = 0;
for (int c = 0; c < w; ++c) { v = a[r * w + c]; s += v * v; }
%s
out[r] = s;"""


@pytest.mark.parametrize(
    ("more", "fine"),
    [
        ("", True),
        ("for (int c = 0; c < w; ++c) { v = a[c]; if (v > 0) s += v; }", True),
        ("for (int c = 0; c < w; ++c) { for (int d = 0; d < 2; ++d) { v = a[d]; s += v; } }", True),
        ("s += v;", False),
        ("for (int c = 0; c < w; ++c) { s += v; v = a[c]; }", False),
        (
            "for (int c = 0; c < w; ++c) { for (int d = 0; d < c; ++d) { v = a[d]; } s += v; }",
            False,
        ),
    ],
)
def test_a_local_that_every_round_begins_anew(more: str, fine: bool) -> None:
    one = kernel(ROWS % (FIRST % more))
    effects, loop = Effects(one), one.reading.axes[0].node
    (local,) = [v for v in effects.changed(loop.body) if v.name == "v"]
    assert effects.begun_anew(local, loop) is fine


def test_a_local_of_the_round_around_a_loop_is_not_of_its_rounds() -> None:
    body = """float v, s = 0;
for (int c = 0; c < w; ++c) {
    v = 0;
    for (int d = 0; d < 4; ++d) { v = a[r * w + d]; s += v; }
    s += v;
}
out[r] = s;"""
    one = kernel(ROWS % body)
    outer, inner = (axis.node for axis in one.reading.axes)
    effects = Effects(one)
    (local,) = [v for v in effects.changed(inner.body) if v.name == "v"]
    assert effects.begun_anew(local, outer)
    assert not effects.begun_anew(local, inner)


def test_loops_are_found_again_after_they_have_become_several() -> None:
    loops = "".join(
        f"for (int c = {start}; c < w; ++c) s += {array}[r * w + c];"
        for start, array in ((0, "a"), (3, "out"), (0, "a"))
    )
    one = applied(all_counted(kernel(ROWS % f"float s = 0; {loops} out[r + h * w] = s;"), (0, 2)))
    found, numbers = vectorised(one, (0, 2))
    assert numbers == (0, 2, 4, 6)  # those of the rounds in a vector are within these
    _, all_of_them = vectorised(one, (0, 1, 2))
    assert len(all_of_them) == 7
    assert len({axis.name for axis in found.reading.axes}) == 7
