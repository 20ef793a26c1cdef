"""What goes from round to round of a row, handed on from lane to lane."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.carried import carried
from optiml_magic.kernels.primitives.lanes import Lanes, share
from optiml_magic.kernels.primitives.vectors import vectorised
from tests.rewriting.writing import Array

from .alike import end_of
from .shapes import applied, kernel, refused

HEAD = "#pragma optiml launch k grid(cdiv(h, 32)) block(32)\n"
ROW = (
    HEAD + "__global__ void k(const {kind}* a, {kind}* out, {kind}* last, int h, int w) {{\n"
    "    int r = blockIdx.x * blockDim.x + threadIdx.x;\n    if (r >= h) return;\n"
    "    {start}\n    for ({head}) {{\n{body}\n    }}\n    last[r] = s;\n}}\n"
)
UP, DOWN = "int c = 0; c < w; ++c", "int c = w - 1; c >= 0; --c"
WARP = Lanes("warp", 8, 32, (8, 32), (32, 64))
BLOCK = Lanes("block", 64, 64, (64, 256), (64, 256))
A, OUT = "a[r * w + c]", "out[r * w + c]"


def row(body: str, head: str = UP, start: str = "float s = 0;", kind: str = "float") -> str:
    return ROW.format(kind=kind, head=head, start=start, body=body)


def shared(text: str, lanes: Lanes = WARP) -> Kernel | Refused:
    return share(kernel(text), (0,), lanes)


def end(
    text: str, made: Kernel | Refused, dtype: str = "f4", content: str = "numbers",
    *, rounds: bool = False, **values: int,
) -> str:  # fmt: skip
    """What became of it with rows of several lengths, one beside the lanes' multiples."""
    program = applied(made).program
    after = (program.with_values(values) if values else program).text
    arrays = {
        "a": Array(dtype, ("h", "w"), content), "out": Array(dtype, ("h", "w"), "zeros"),
        "last": Array(dtype, ("h",), "zeros"),
    }  # fmt: skip
    return end_of(text, after, arrays, {"h": 5, "w": 77}, {"h": 3, "w": 8}, rounds=rounds)


@pytest.mark.parametrize("lanes", [WARP, BLOCK], ids=["warp", "block"])
@pytest.mark.parametrize("head", [UP, DOWN], ids=["up", "down"])
@pytest.mark.parametrize(
    "body", [f"s += {A}; {OUT} = s;", f"{OUT} = s; s = {A} + s;"], ids=["with", "without"]
)
def test_sums_with_and_without_their_own_element_forth_and_back(
    body: str, head: str, lanes: Lanes
) -> None:
    text = row(body, head)
    assert end(text, shared(text, lanes)) == "same"


def test_several_warps_of_a_block_hand_on_from_round_to_round() -> None:
    text = row(f"s += {A}; {OUT} = s;")
    made = shared(text, BLOCK)
    arrays = {
        "a": Array("f4", ("h", "w")), "out": Array("f4", ("h", "w"), "zeros"),
        "last": Array("f4", ("h",), "zeros"),
    }  # fmt: skip
    after = applied(made).program.with_values({"THREADS": 256}).text
    assert end_of(text, after, arrays, {"h": 2, "w": 700}, {"h": 1, "w": 257}) == "same"


@pytest.mark.parametrize(
    ("update", "word"),
    [
        (f"if ({A} > s) s = {A};", "greatest"),
        (f"if ({A} >= s) s = {A};", "greatest_last"),
        (f"s = {A} < s ? {A} : s;", "least"),
        (f"s = fmaxf(s, {A});", "fmax"),
    ],
)
def test_extremes_among_nan_infinities_and_zeros_of_both_signs(update: str, word: str) -> None:
    """The bits are compared: which zero it is, and that no NaN hides what came before it."""
    text = row(f"{update} {OUT} = 1.0f / s;", start="float s = a[r * w];")
    made = shared(text)
    assert f"lanes_before_{word}<LANES>(s, s_part)" in applied(made).program.text
    assert end(text, made, content="odd") == "same"


@pytest.mark.parametrize("store", [f"{OUT} = (float)((far - near) * 1e9);", ""])
def test_extremes_of_two_types_are_combined_by_functions_of_their_own(store: str) -> None:
    body = f"far = fmax(far, {A} * 1.0000001); near = fmaxf(near, {A}); {store}"
    text = row(body, start="double far = 0; float near = 0, s = 0;")
    text = text.replace("= s;\n}", "= (float)((far - near) * 1e9);\n}")
    assert end(text, shared(text)) == "same"


@pytest.mark.parametrize("op", ["^", "|", "&", "*", "+"])
def test_whole_numbers_are_the_same_in_any_order(op: str) -> None:
    text = row(f"s {op}= {A}; {OUT} = s;", start="long long s = 1;", kind="long long")
    assert end(text, shared(text), "i8") == "same"


def test_a_scan_of_a_scan_and_a_reduction_of_both() -> None:
    body = (
        f"s += {A};\nif (s > top) top = s;\nworst = fmaxf(worst, top - s);\n"
        f"if (c % 3 == 0) {OUT} = top - s;"
    )
    text = row(body, start="float s = 0, top = 0, worst = 0;").replace("= s;\n}", "= s + worst;\n}")
    assert end(text, shared(text)) == "same"


def test_rounds_by_vectors_and_values_that_went_by_memory() -> None:
    """The rounds of a vector are scanned by the lane itself, in a loop within."""
    text = row("out[r * w + c] = out[r * w + c - 1] + a[r * w + c];", "int c = 1; c < w; ++c")
    text = text.replace("float s = 0;", "out[r * w] = a[r * w];").replace("= s;", "= 0;")
    made = applied(carried(kernel(text)))
    wide, at = vectorised(made, (0,))
    found = share(wide, at, WARP)
    assert "float4" in applied(found).program.text
    assert end(text, found) == "same"


def test_the_part_of_a_branch_and_of_a_loop_within() -> None:
    body = (
        f"float v = {A};\n{OUT} = s - v;\n"
        f"if (v > 0) {{\nfor (int q = 0; q < 3; ++q) {{\ns += q;\n}}\n}} else s -= v;"
    )
    text = row(body)
    assert end(text, shared(text)) == "same"


def test_a_local_of_a_type_that_the_launch_gives() -> None:
    text = row(f"s += {A}; {OUT} = s;", start="T s = 0;", kind="T")
    text = text.replace("launch k", "launch k<double>")
    text = text.replace("__global__", "template <class T> __global__")
    assert end(text, shared(text), "f8") == "same"


def test_how_many_came_before() -> None:
    text = row(f"if ({A} > 0) n++; {OUT} = n;", start="float s = 0; int n = 0;")
    assert end(text, shared(text)) == "same"


@pytest.mark.parametrize("wide", [False, True], ids=["one by one", "vectors"])
def test_elements_that_are_changed_where_they_are(wide: bool) -> None:
    text = row(f"s += {OUT} + {A};\n{OUT} = s;")
    made, at = vectorised(kernel(text), (0,)) if wide else (kernel(text), (0,))
    assert end(text, share(made, at, WARP)) == "same"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"s = {A} - s * s; {OUT} = s;", "`s` goes from round to round"),
        (f"if (s > 1) s += {A}; {OUT} = s;", "what it combines depends on the rounds before"),
        (f"s += {A}; s = fmaxf(s, 0.0f); {OUT} = s;", "`s` goes from round to round"),
        (f"{OUT} = s; s += {OUT};", "it combines what it has stored"),
        (f"s += out[r * w + c - 1] + {A}; {OUT} = s;", "a round may meet what another has stored"),
        (f"s += {A}; out[r] = s;", "two rounds may store to one element"),
        (f"if ({A} > 1) continue; s += {A}; {OUT} = s;", "a round of the scan may end early"),
        (f"s = s > {A} ? s : {A}; {OUT} = s;", "`s` takes a NaN, and then what follows it"),
        (f"t += s; s += t * {A}; {OUT} = s;", "`c` changes from round to round"),
        (f"int& p = n; p += 1; n += {A} > 0; {OUT} = n;", "`p` may be `n`"),
        (f"float v[1] = {{{A}}}; v[0] += 1; s += v[0]; {OUT} = s;", "`v` cannot be declared ahead"),
    ],
)
def test_what_lanes_cannot_hand_on_is_refused(body: str, reason: str) -> None:
    text = row(body, start="float s = 0, t = 0; int n = 0;")
    assert reason in refused(shared(text))


@pytest.mark.parametrize("lanes", [WARP, BLOCK], ids=["warp", "block"])
def test_a_local_that_a_part_changes_is_the_rounds_own_again(lanes: Lanes) -> None:
    text = row(f"float v = {A}; s += v; v = v * 2 + 1; t += v; {OUT} = s + t + v; v = 0;",
               start="float s = 0, t = 0;")  # fmt: skip
    assert end(text, shared(text, lanes)) == "same"


def test_a_whole_number_that_is_rounded_in_each_round_is_refused() -> None:
    text = row(f"n += 0.5f * {A}; {OUT} = n;", start="float s = 0; int n = 0;")
    assert "`n` is rounded in each round" in refused(shared(text))
