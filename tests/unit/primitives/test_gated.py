"""A branch on what rounds ask before they change a list: the same lists, and what is refused."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.gated import gated
from optiml_magic.kernels.primitives.lanes import Lanes, share
from tests.present import sampled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

WARP = Lanes("warp", 8, 64, (2, 4, 8, 16, 32), (32, 64, 128))
ROWS = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, const float* y, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    %s
}
"""
LOOP = "for (int j = 0; j < m; ++j)"
LIST = "float best[3] = {-9, -9, -9}; int at[3] = {0, 0, 0};"
FALLS = "float best[3] = {9, 5, -9}; int at[3] = {0, 0, 0};"
OUT = "for (int l = 0; l < 3; ++l) out[i * 3 + l] = best[l] + 100 * at[l];"
MOVE = "{ best[q] = best[q - 1]; at[q] = at[q - 1]; }"
PLACE = f"for (int q = 2; q > p; --q) {MOVE} best[p] = v; at[p] = j; break;"
CARRY = "float t = best[p]; best[p] = v; v = t; int u = at[p]; at[p] = w; w = u;"
WALK = "for (int p = 0; p < 3; ++p)"


def body(begun: str, what: str) -> str:
    return f"{begun} {LOOP} {{ float v = x[i * m + j]; {what} }} {OUT}"


#: What a round does, and the test that is asked before.
ROUNDS = {
    "first lesser": (body(LIST, f"{WALK} if (v > best[p]) {{ {PLACE} }}"), "v > best[3 - 1]"),
    "first not greater": (
        body(LIST, f"{WALK} if (best[p] <= v) {{ {PLACE} }}"), "v >= best[3 - 1]"),
    "carried on": (
        body(LIST, f"int w = j; {WALK} if (v > best[p]) {{ {CARRY} }}"), "v > best[3 - 1]"),
    "carried on, equals too": (
        body(LIST, f"int w = j; {WALK} if (v >= best[p]) {{ {CARRY} }}"), "v >= best[3 - 1]"),
    "least ones": (
        body(LIST.replace("-9", "9"), f"{WALK} if (v < best[p]) {{ {PLACE} }}"),
        "v < best[3 - 1]"),
    "any order": (  # each of the three is asked
        body(FALLS, f"{WALK} if (v > best[p]) {{ {PLACE} }}"),
        "(v > best[0]) || (v > best[1]) || (v > best[2])"),
    "a place is looked for": (
        body(LIST, "int p = 3; while (p > 0 && v > best[p - 1]) p--; "
             f"for (int q = 2; q > p; --q) {MOVE} if (p < 3) {{ best[p] = v; at[p] = j; }}"),
        "v > best[2]"),
    "up to the place": (
        body(LIST, "int p; for (p = 2; p >= 0 && best[p] < v; p--) if (p < 2) "
             "{ best[p + 1] = best[p]; at[p + 1] = at[p]; } "
             "if (p + 1 < 3) { best[p + 1] = v; at[p + 1] = j; }"),
        "best[2] < v"),
    "a counter of its own": (
        body(LIST, "int p = 2; if (v > best[p]) { for (p = 2; p > 0; --p) { if (best[p - 1] >= v) "
             "break; best[p] = best[p - 1]; at[p] = at[p - 1]; } best[p] = v; at[p] = j; }"),
        "v > best[2]"),
    "bubbles": (
        body(LIST, "if (v > best[2]) { best[2] = v; at[2] = j; } for (int p = 2; p > 0; --p) "
             "if (best[p] > best[p - 1]) { float t = best[p]; best[p] = best[p - 1]; "
             "best[p - 1] = t; int u = at[p]; at[p] = at[p - 1]; at[p - 1] = u; }"),
        "(v > best[2]) || (best[2] > best[1]) || (best[1] > best[0])"),
    "two places": (
        body(LIST, "if (v > best[0]) { best[1] = best[0]; best[0] = v; } "
             "if (v < best[1] && v > best[2]) { best[2] = v; at[2] = j; }"),
        "(v > best[0]) || ((v < best[1]) && (v > best[2]))"),
    "filled before": (
        "float best[4]; int at[4]; for (int l = 0; l < 4; ++l) { best[l] = -INFINITY; at[l] = 0; } "
        + body("", f"{WALK} if (v > best[p]) {{ {PLACE} }}"), "v > best[3 - 1]"),
    "only under another test": (
        body(LIST, f"if (v > y[j]) {{ {WALK} if (v > best[p]) {{ {PLACE} }} }}"),
        "v > best[3 - 1]"),
}  # fmt: skip
ARRAYS = {"x": Array("f4", ("n", "m"), "odd"), "y": Array("f4", ("max(n, m)",), "odd"),
          "out": Array("f4", ("n * 3",), "zeros")}  # fmt: skip


def _at(text: str) -> int:
    return text.split(LOOP, maxsplit=1)[0].count("for (")


@pytest.mark.parametrize("name", ROUNDS)
def test_what_a_round_asks_before_it_changes_a_list(name: str) -> None:
    text, test = ROUNDS[name]
    assert f"if ({test}) {{" in written(gated(kernel_of(ROWS % text), _at(text)))


@pytest.mark.parametrize("name", sampled(ROUNDS, every=3))
def test_the_lists_are_the_same(name: str) -> None:
    before = ROWS % ROUNDS[name][0]
    made = gated(kernel_of(before), _at(ROUNDS[name][0]))
    assert isinstance(made, Kernel)
    looked = written(share(made, [_at(ROUNDS[name][0])], WARP, far=True))
    for after in (made.program.text, looked):
        assert end_of(before, after, ARRAYS, {"n": 13, "m": 70}, {"n": 1, "m": 3}) == "same"


TAKE = f"{WALK} if (v > best[p]) {{ {PLACE} }}"
STAY = {
    "it always changes": body(LIST, "best[0] = v;"),
    "both ways": body(LIST, "if (v > best[0]) best[0] = v; else at[0] = j;"),
    "a local of outside": "float last = 0; " + body(LIST, f"{TAKE} last = v;"),
    "the test changes something": body(LIST, "int p = 0; if (v > best[p++]) best[0] = v;"),
    "too many": "float best[65]; for (int l = 0; l < 65; ++l) best[l] = l; int at[65] = {0}; "
    + body("", "for (int p = 0; p < 65; ++p) if (v > best[p]) { best[p] = v; at[p] = j; break; }"),
    "it waits": body(LIST, f"__syncthreads(); {TAKE}"),
    "a pointer to what it changes": body(LIST, f"float* own = &v; int w = j; {WALK} "
                                         f"if (v > best[p]) {{ {CARRY} own[0] = v; }}"),
}  # fmt: skip
#: What stands before the branch stays there, or the branch asks for less than it could.
BESIDE = {
    "it counts": f"at[2]++; {TAKE}",
    "what is found depends on the list": f"float d = best[0] - v; if (d > 0) {TAKE}",
    "an unsigned place": "unsigned p = 2; while (p < 3 && v > best[p]) p--; "
    "if (p < 2) best[p + 1] = v;",
    "it goes on to where the data say": "int e = y[j] > 0 ? 2 : 0; for (int p = 0; p < e; ++p) "
    f"if (v > best[p]) {{ {PLACE} }}",
    "a loop whose end changes": "int e = 3; for (int p = 0; p < e; ++p) "
    "{ e--; if (v > best[p]) best[p] = v; }",
    "an end given anew": "int e = 1; e = e + 1; for (int p = 0; p < e; ++p) "
    f"if (v > best[p]) {{ {PLACE} }}",
    "two lists": f"{TAKE} {TAKE}",
    "a name within": f"int w = j; {WALK} if (v > best[p]) {{ float t = best[p]; best[p] = v; "
    "float v = t; at[p] = w + (v > 0); }",
}


@pytest.mark.parametrize("name", STAY)
def test_rounds_without_such_a_branch(name: str) -> None:
    assert refused(gated(kernel_of(ROWS % STAY[name]), _at(STAY[name])))


@pytest.mark.parametrize("name", BESIDE)
def test_what_a_branch_is_around_is_the_same(name: str) -> None:
    before = ROWS % body(LIST, BESIDE[name])
    after = written(gated(kernel_of(before), 0))
    assert end_of(before, after, ARRAYS, {"n": 13, "m": 70}, {"n": 1, "m": 3}) == "same"


#: Lists of which one may be out of order, or hold what compares with nothing.
ALL = "(v > best[0]) || (v > best[1]) || (v > best[2])"
UNSORTED = {
    "another number": (LIST, f"{TAKE} if (v > 3) best[1] = -v;"),
    "what is loaded": (LIST.replace("{-9, -9, -9}", "{y[0], y[0], y[0]}"), TAKE),
    "not filled": ("float best[3]; int at[3] = {0, 0, 0}; best[0] = -9;", TAKE),
    "filled in part": ("float best[3] = {-9, -9}; int at[3] = {0, 0, 0};", TAKE),
    "filled under a test": (
        "float best[3] = {4}; int at[3] = {0}; for (int l = 0; l < 3; ++l) if (n > 1) best[l] = -9;",
        TAKE),
    "what is put is another": (LIST, TAKE.replace("best[p] = v", "best[p] = v + 1")),
    "moved by two": (LIST, TAKE.replace("best[q - 1]", "best[q - 2]").replace("q > p", "q > p + 1")),
    "the last stays": (LIST, TAKE.replace("q = 2", "q = 1")),
    "no end": (LIST, TAKE.replace(" break;", "")),
    "a pointer": (f"{LIST} float* led = best; led[1] = 7;", TAKE),
    "halves of numbers": (LIST.replace("float best", "int best"), TAKE),
    "carried on with another": (LIST, f"int w = j; {WALK} if (v > best[p]) {{ {CARRY} v += 1; }}"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSORTED)
def test_all_elements_are_asked_where_the_last_may_not_be_the_least(name: str) -> None:
    begun, rounds = UNSORTED[name]
    text = ROWS % body(begun, rounds)
    made = gated(kernel_of(text), _at(text))
    assert not isinstance(made, Kernel) or ALL in made.program.text


def test_a_list_as_long_as_a_size_says() -> None:
    text = ROWS.replace("int m)", "int m, int K)") % (
        "float best[8]; int at[8]; for (int l = 0; l < K; ++l) { best[l] = -9; at[l] = 0; } "
        + body("", TAKE.replace("p < 3", "p < K").replace("q = 2", "q = K - 1"))
    ).replace("l < 3; ++l) out", "l < 3 && l < K; ++l) out")
    made = written(gated(kernel_of(text), _at(text)))
    assert "if ((K >= 1) && (v > best[K - 1])) {" in made
    for length in (0, 1, 3, 8):
        sizes = {"n": 13, "m": 70, "K": length}
        assert end_of(text, made, ARRAYS, sizes, {**sizes, "m": 3}) == "same"
