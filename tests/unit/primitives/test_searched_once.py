"""Searches of a thread's items that go the same way are made once, whatever is searched."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.searched_once import search_once
from optiml_magic.proposers.rewrites.vectorise_map import VectoriseMap
from tests.ideas import asked, made
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 256)) block(64)
__global__ void k(const {0}* a, int* out, int* more, int n, int m, int off) {{
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (first + 4 > n) return;
    #pragma unroll
    for (int k = 0; k < 4; ++k) {{
        int i = first + k;
        {1}
        out[i] = lo;
    }}
}}
"""
HALVES = "int lo = 0, hi = m; while (lo < hi) { int mid = (lo + hi) / 2; %s }"
BELOW = "if (a[mid] <= %s) lo = mid + 1; else hi = mid;"
KINDS = {"int": "i4", "unsigned": "u4", "float": "f4", "unsigned char": "u1", "long long": "i8"}
SIZES = {"n": 1000, "m": 700, "off": 5}, {"n": 4, "m": 1, "off": 0}


def arrays(kind: str, fill: str = "positive") -> dict[str, Array]:
    return {
        "a": Array(kind, ("m",), fill), "out": Array("i4", ("n",), "zeros"),
        "more": Array("i4", ("n",), "zeros"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("int", HALVES % BELOW % "i"),
        ("int", HALVES % BELOW % "i * 3 - off"),
        ("float", HALVES % BELOW % "i / 2"),
        ("int", HALVES % BELOW % "(unsigned)i"),
        ("unsigned", HALVES % BELOW % "(i - 6u)"),
        ("unsigned", HALVES % BELOW % "(i - (size_t)off)"),
        ("int", "unsigned u = i - 6; " + HALVES % BELOW % "(int)u"),
        ("unsigned char", HALVES % BELOW % "(long)i"),
        ("long long", HALVES % "if (i >= a[mid]) { lo = mid + 1; } else { hi = mid; }"),
        (
            "int",
            (
                "int lo = 0, hi = m - 1, mid; while (lo <= hi) { mid = lo + ((hi - lo) >> 1); "
                "if (a[mid] < i + off) lo = mid + 1; else hi = mid - 1; }"
            ),
        ),
        (
            "int",
            (
                "int lo = 0, len = m; while (len > 0) { int half = len / 2, mid = lo + half; "
                "if (a[mid] < i) { lo = mid + 1; len -= half + 1; } else len = half; }"
            ),
        ),
        (
            "int",
            HALVES % "if (a[mid] < i) lo = mid + 1; else if (a[mid] > i) hi = mid; "
            "else { lo = mid; hi = mid; }",
        ),
        (
            "int",
            "int lo = 0, steps = 0; while (lo < m) { if (a[lo] > i) steps = m; lo += 1 + steps; }",
        ),
    ],
)
def test_rounds_that_all_items_make_are_made_once(kind: str, body: str) -> None:
    text = TEXT.format(kind, body)
    after = written(search_once(kernel_of(text)))
    assert "lo_all" in after
    assert after.count("!= (") == body.count("if (")
    short = KINDS[kind]
    for fill in ("positive", "bits"):
        assert end_of(text, after, arrays(short, fill), *SIZES) == "same"


@pytest.mark.parametrize(
    ("kind", "body", "reason"),
    [
        ("int", HALVES % "if (a[mid] == i) break; " + BELOW % "i", "may end early"),
        ("int", HALVES % "if (a[mid] == i) lo = m; else hi = mid;", "more than to compare"),
        ("unsigned", HALVES % BELOW % "i", "not known to go up"),
        ("int", HALVES % BELOW % "off - i", "not known to go up"),
        ("int", HALVES % BELOW % "i % 3", "not known to go up"),
        ("int", HALVES % BELOW % "((unsigned)i * 2)", "not known to go up"),
        ("int", HALVES % BELOW % "((unsigned)i - 3) / 2", "not known to go up"),
        ("int", HALVES % BELOW % "(short)i", "not known to go up"),
        ("int", HALVES % BELOW % "(i * off)", "not known to go up"),
        ("int", HALVES % ("lo += 0; " + BELOW % "i"), "compares after a change"),
        ("int", HALVES % BELOW % "i + a[lo]", "not known to go up"),
        ("int", HALVES % (BELOW % "i" + " more[i] = 1;"), ""),
        ("int", (HALVES % BELOW % "i").replace("lo = 0", "lo = k"), "in different places"),
        ("int", (HALVES % BELOW % "i").replace("lo < hi", "lo < hi - k"), "where its item says"),
        ("int", "int lo = 0, hi = m; lo = 1; while (lo < hi) { if (a[lo] > i) hi = lo; lo += 1; }",
         "where it is declared"),
        ("int", (HALVES % BELOW % "i").replace("a[mid]", "more[mid]") + " more[i] = lo;", "may change"),
        ("int", (HALVES % BELOW % "i").replace("lo < hi", "lo < hi--"), "on the way"),
        ("int", HALVES % "if (a[lo++] > i) hi = mid;", "on the way"),
        ("int", HALVES % "int at = lo++; if (a[at] > i) hi = mid;", "on the way"),
        ("int", HALVES % "mid = lo++; if (a[mid] > i) hi = mid;", "on the way"),
        ("int", HALVES % "lo = mid + 1; hi -= 1;", "compares the item's number"),
    ],
)  # fmt: skip
def test_other_searches_are_left_to_each_item(kind: str, body: str, reason: str) -> None:
    assert reason in refused(search_once(kernel_of(TEXT.format(kind, body))))


def test_a_counter_without_a_sign_wraps_around_as_it_did() -> None:
    text = TEXT.format("unsigned", HALVES % BELOW % "k - 2")
    text = text.replace("int k = 0", "unsigned k = 0")
    after = written(search_once(kernel_of(text)))
    for fill in ("positive", "bits"):
        assert end_of(text, after, arrays("u4", fill), *SIZES) == "same"


def test_items_that_are_stored_together_search_together() -> None:
    text = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const int* a, int* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int lo = 0, hi = m - 1;
    while (lo < hi) {
        int mid = (lo + hi) >> 1;
        if (a[mid] > i) hi = mid; else lo = mid + 1;
    }
    out[i] = lo;
}
"""
    (program, *_) = [p.text for p in made(asked(VectoriseMap(), text)[0]) if "of 4" in p.title]
    assert "lo_all" in program
    given = {"a": Array("i4", ("m",), "positive"), "out": Array("i4", ("n",), "zeros")}
    assert end_of(text, program, given, {"n": 1030, "m": 77}, {"n": 3, "m": 1}) == "same"
