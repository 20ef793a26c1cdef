"""Loops in parts: what both launches do, that they are right at odd sizes, and what is refused."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.parts import Sharing, split
from tests.present import examples, sampled

from .running import same
from .shapes import PLANE, applied, kernel, refused

SHARING = Sharing(4, 2, (1, 2, 4, 8), (1, 2, 4, 8))
COLUMN = """\
#pragma optiml launch k grid(cdiv(w, 64)) block(64)
__global__ void k(const float* a, const float* x, float* out, int h, int w) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    %s
}
"""
SHAPES = {"a": ("h", "w"), "x": ("h",), "out": ("w",)}
LOOP = "for (int r = 0; r < h; ++r)"
SUM = f"{LOOP} s += a[r * w + c];"
BODIES = {
    "mean": f"if (c < w) {{ float s = 0; {SUM} out[c] = s / h; }}",
    "return": f"if (c >= w) return; float s = 0; {SUM} out[c] = s;",
    "return, block": f"if (c >= w || h < 2) {{ return; }} float s = x[0]; {SUM} out[c] = s;",
    "else": f"if (c >= w) {{ }} else {{ float s = 0; {SUM} out[c] = s; }}",
    "bias": f"if (c < w) {{ float s = x[c % h]; {SUM} out[c] = s * 0.5f; }}",
    "two": f"if (c < w) {{ float s = 0, q = 1; {LOOP} {{ float v = a[r * w + c]; s += v; "
    "q = fmaxf(q, v); } out[c] = s + q; }",
    "greatest": f"if (c < w) {{ float s = a[c]; {LOOP} {{ if (a[r * w + c] > s) "
    "s = a[r * w + c]; } out[c] = s; }",
    "least": f"if (c < w) {{ float s = INFINITY; {LOOP} s = fminf(s, a[r * w + c]); out[c] = s; }}",
    "every third": "if (c < w) { float s = 0; for (int r = 1; r < h; r += 3) s += a[r * w + c]; "
    "out[c] = s; }",
    "backwards": "if (c < w) { float s = 0; for (int r = h - 1; r >= 0; --r) "
    "s += a[r * w + c] * x[r]; out[c] = s; }",
    "some": f"if (c < w) {{ float s = 0; {LOOP} {{ if (x[r] > 0.0f) s += a[r * w + c]; }} "
    "out[c] = s; }",
    "triangle": "if (c < w) { float s = 0; for (int r = c % h; r < h; ++r) "
    "s += a[r * w + c]; out[c] = s; }",
    "two loops": f"if (c < w) {{ float s = 0, q = 0; {SUM} for (int r = 0; r < h; ++r) "
    "q += (a[r * w + c] - s) * 0.5f; out[c] = q; }",
    "no guard": f"float s = 0; {SUM} out[c] = s;",
}


def parts(body: str, at: int = 0) -> Kernel | Refused:
    return split(kernel(COLUMN % body), at, SHARING)


@pytest.mark.parametrize("name", sampled(BODIES, every=4))
def test_parts_make_the_same_whole_at_odd_sizes(name: str) -> None:
    text = COLUMN % BODIES[name]
    width = 192 if name == "no guard" else 71
    for rows, blocks in ((1, 8), (8, 1), (4, 4))[:: examples(3, 1)]:
        values = {"ROWS": rows, "PARTS": blocks}
        same(text, parts(BODIES[name]), SHAPES, {"h": 45, "w": width}, values)


def test_a_plane_of_threads_is_split_along_the_third_axis() -> None:
    text = PLANE % "for (int k = 0; k < d; ++k) s += a[i * d + k] * b[k * n + j];"
    found = split(kernel(text), 0, SHARING)
    launch = applied(found).program.launches[0]
    assert str(launch).endswith("grid(cdiv(n, 16), cdiv(m, 16), PARTS) block(16, 16, ROWS)")
    shapes = {"a": ("m", "d"), "b": ("d", "n"), "out": ("m", "n")}
    same(text, found, shapes, {"m": 7, "n": 19, "d": 21})


def test_whole_numbers_add_up_in_their_own_type() -> None:
    text = (COLUMN % f"if (c >= w) return; unsigned s = 0; {SUM} out[c] = s;").replace(
        "const float* a", "const unsigned char* a"
    )
    found = split(kernel(text), 0, SHARING)
    assert "#pragma optiml scratch s_parts u4[" in applied(found).program.text
    same(text, found, SHAPES | {"a": ("u1", "h", "w")}, {"h": 37, "w": 65})


def test_the_first_launch_takes_what_it_needs_and_the_second_stores() -> None:
    body = f"if (c >= w) return; float unused = x[0]; float s = 0; {SUM} out[c] = s * unused;"
    found = applied(parts(body))
    first, second = found.unit.kernels
    assert [p.name for p in first.parameters] == ["a", "h", "w", "s_parts"]
    assert [p.name for p in second.parameters] == ["a", "x", "out", "h", "w", "s_parts"]
    assert found.reading.written == {"out"}
    assert [launch.kernel for launch in found.program.launches] == ["k_parts", "k"]


def test_arguments_that_the_launch_names_go_along() -> None:
    text = (COLUMN % BODIES["mean"]).replace("block(64)", "block(64) args(in, x, out, h, w)")
    first, second = applied(split(kernel(text), 0, SHARING)).program.launches
    assert str(first).endswith("args(in, h, w, s_parts)")
    assert str(second).endswith("args(in, x, out, h, w, s_parts)")


def test_a_template_is_split_as_it_is_launched() -> None:
    text = (COLUMN % BODIES["two"]).replace("__global__", "template <typename T>\n__global__")
    text = text.replace("launch k", "launch k<float>").replace("const float* a", "const T* a")
    found = split(kernel(text.replace("float s = 0", "T s = 0")), 0, SHARING)
    names = [launch.kernel for launch in applied(found).program.launches]
    assert names == ["k_parts<float>", "k<float>"]
    same(text, found, SHAPES, {"h": 37, "w": 65})


def test_lanes_may_exchange_what_the_parts_have_become() -> None:
    exchanged = "s += __shfl_xor_sync(~0u, s, 1);"
    body = f"float s = 0; {SUM} {exchanged} if (c < w) out[c] = s;"
    assert applied(parts(body)).program.text.count("__shfl_xor_sync") == 1
    before = f"float s = 0; float v = x[0]; v += __shfl_xor_sync(~0u, v, 1); {LOOP} s += v;"
    assert refused(parts(before))[0] == "lanes exchange values before the loop or in it"


IN = "if (c >= w) return; float s = 0;"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"{IN} out[c] = 1; {SUM} out[c] += s;", "it stores before the loop"),
        (f"{IN} {LOOP} out[r * w + c] = a[r * w + c];", "it stores in the loop"),
        (f"{IN} {LOOP} {{ s += a[r * w + c]; out[r] = s; }}", "`s` goes from round to round"),
        (f"{IN} {LOOP} {{ s += a[r * w + c]; out[r * w + c] = 1; }}", "it stores in the loop"),
        (f"{IN} {LOOP} s = 0.5f * s + a[r * w + c];", "`s` goes from round to round"),
        (f"{IN} {LOOP} {{ if (s > 9) break; s += a[r * w + c]; }}", "the loop has another way out"),
        (f"{IN} if (x[0] > 1) {{ out[c] = 0; return; }} {SUM} out[c] = s;", "the kernel may be"),
        (f"{IN} for (unsigned char r = 0; r < h; ++r) s += a[r * w + c];", "its counter may not"),
        (f"{IN} int at; {LOOP} if (a[r] > s) {{ s = a[r]; at = r; }} out[c] = at;", "what goes"),
        (f"{IN} if (blockIdx.y) return; {SUM} out[c] = s;", "it asks where it stands along y"),
    ],
)  # fmt: skip
def test_what_cannot_be_split_is_refused_with_its_line(body: str, reason: str) -> None:
    found = parts(body)
    said, line = refused(found)
    assert said.startswith(reason)
    assert line == 4


def test_a_loop_in_another_is_refused() -> None:
    body = f"{IN} for (int n = 0; n < 2; ++n) {SUM} out[c] = s;"
    assert refused(parts(body, 1)) == ("the loop is inside of another", 4)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("block(64)", "block(64, 2, 2)", "its launch has three axes"),
        ("block(64)", "block(1024)", ""),
        ("block(64)", "block(64) shared(4)", "it has dynamic shared memory"),
        ("block(64)", "block(w)", "how many threads its blocks have is not known"),
        ("block(64)", "block(64) repeat(2)", "its launch is one of a dispatch"),
    ],
)
def test_launches_without_room_for_more_are_refused(old: str, new: str, reason: str) -> None:
    text = (COLUMN % BODIES["mean"]).replace(old, new)
    found = split(kernel(text), 0, SHARING)
    if not reason:
        assert next(t for t in applied(found).program.tunes if t.name == "ROWS").values == (1,)
    else:
        assert refused(found)[0].startswith(reason)
