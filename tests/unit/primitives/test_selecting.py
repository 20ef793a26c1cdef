"""Local arrays of which loops select the least, one after the other, to the end or to the middle."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.ordered import ordered
from tests.rewriting.writing import Array

from .alike import kernel_of, refused, unchanged, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const {type}* a, {type}* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    {type} v[9], w[9];
    for (int q = 0; q < 9; q++) v[q] = w[q] = a[i * 9 + q];
    {body}
    {asked}
}}
"""
TYPES = {"float": "f4", "double": "f8", "int": "i4", "unsigned char": "u1", "short": "i2"}
SWAP = "T t = v[m]; v[m] = v[q]; v[q] = t;"
SELECT = (
    "for (int q = 0; q < 5; q++) { int m = q; for (int p = q + 1; p < 9; p++) "
    "{ if (v[p] < v[m]) m = p; } " + SWAP + " }"
)
KEPT = (
    "for (int q = 0; q < 5; ++q) { T least = v[q]; int m = q; for (int p = q + 1; p < 9; ++p) "
    "if (v[p] < least) { least = v[p]; m = p; } v[m] = v[q]; v[q] = least; }"
)
EXCHANGE = "{ T t = v[p]; v[p] = v[p + 1]; v[p + 1] = t; }"
PAIRS = "for (int q = 0; q < 5; q++) for (int p = q + 1; p < 9; p++) if (v[p] < v[q]) "
MIDDLE = "out[i] = v[4];"


HELPERS = """\
__device__ void exchanged(T& p, T& q) { T t = p; p = q; q = t; }
__device__ void exchanged_at(T* p, T* q) { T t = *p; *p = *q; *q = t; }
__device__ void moved(T& p, T& q) { T t = p; p = q; q = p; }
__device__ void copied(T p, T q) { T t = p; p = q; q = t; }
__device__ T* handed(T* p) { return p; }
__device__ T* led(T& p) { return &p; }
"""


def text(body: str, kind: str = "float", asked: str = MIDDLE) -> str:
    helpers = HELPERS.replace("T", kind)
    return helpers + TEXT.format(type=kind, body=body.replace("T ", f"{kind} "), asked=asked)


def result(body: str, kind: str = "float", asked: str = MIDDLE) -> Kernel | Refused:
    return ordered(kernel_of(text(body, kind, asked)))


def end(body: str, kind: str = "float", asked: str = MIDDLE) -> str:
    content = "odd" if TYPES[kind][0] == "f" else "numbers"
    arrays = {
        "a": Array(TYPES[kind], ("n", "9"), content), "out": Array(TYPES[kind], ("n", "9"), "zeros"),
    }  # fmt: skip
    made = written(result(body, kind, asked))
    return unchanged(text(body, kind, asked), made, arrays, {"n": 70}, {"n": 33})


@pytest.mark.parametrize(
    "body",
    [
        SELECT,
        KEPT,
        SELECT.replace("v[p] < v[m]", "v[m] > v[p]"),
        SELECT.replace("v[p] < v[m]", "v[p] <= v[m]"),
        SELECT.replace("v[p] < v[m]", "v[p] > v[m]"),
        SELECT.replace("int p = q + 1", "int p = q"),
        SELECT.replace("T t = v[m]; v[m] = v[q]; v[q] = t;", "T t = v[q]; v[q] = v[m]; v[m] = t;"),
        SELECT.replace(SWAP, f"if (m != q) {{ {SWAP} }}"),
        SELECT.replace("if (v[p] < v[m]) m = p;", "m = v[p] < v[m] ? p : m;"),
        SELECT.replace("int m", "unsigned char m"),
        SELECT.replace("for (int p", "\n#pragma unroll\nfor (int p"),
        SELECT.replace(SWAP, "exchanged(v[q], v[m]);"),
        PAIRS + "exchanged(v[p], v[q]);",
        PAIRS + "exchanged_at(&v[q], &v[p]);",
        KEPT.replace("v[m] = v[q]; v[q] = least;", SWAP),
        KEPT.replace("T least = v[q]; int m = q;", "int m = q; T least = v[q];"),
        KEPT.replace("least = v[p]; m = p;", "m = p; least = v[p];"),
    ],
)
@pytest.mark.parametrize("kind", ["float", "unsigned char"])
def test_the_middle_is_found_by_a_network(body: str, kind: str) -> None:
    assert "in_order(v[" in written(result(body, kind))
    assert end(body, kind) == "same"


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("rounds", [8, 9])
def test_all_may_be_sorted(kind: str, rounds: int) -> None:
    body = SELECT.replace("q < 5", f"q < {rounds}")
    assert end(body, kind, "for (int q = 0; q < 9; q++) out[i * 9 + q] = v[q];") == "same"


@pytest.mark.parametrize(
    ("asked", "sorted_"),
    [
        ("out[i] = v[0] + v[4];", True),
        ("for (int q = 0; q < 5; q++) out[i * 9 + q] = v[q];", True),
        ("T s = 0; for (int q = 1; q < 4; ++q) s += v[q]; out[i] = s;", True),
        ("v[3] = w[2]; out[i] = v[3];", True),
        ("out[i] = v[5];", False),
        ("for (int q = 0; q < 6; q++) out[i * 9 + q] = v[q];", False),
        ("out[i] = v[n % 5];", True),  # there is a row, so that n is not negative
        ("out[i] = v[n % 6];", False),
        ("v[6] = w[0]; out[i] = v[6];", False),
        ("float* p = (float*)v; out[i] = p[1];", False),
        ("float* p = &v[3]; out[i] = p[1];", False),
        ("exchanged_at(&v[1], &v[2]); out[i] = v[1];", False),
        ("float& p = v[3]; out[i] = p;", False),
        ("float* p = handed(&v[3]); out[i] = p[1];", False),
        ("float* p = led(v[3]); out[i] = p[1];", False),
    ],
)
def test_others_than_those_in_order_are_asked_for_by_nobody(asked: str, sorted_: bool) -> None:
    asked = asked.replace("T ", "float ")
    assert isinstance(result(SELECT, "float", asked), Kernel) == sorted_
    if sorted_:
        assert end(SELECT, "float", asked) == "same"


@pytest.mark.parametrize(
    "body",
    [
        SELECT.replace("p < 9", "p < 8"),  # w[8] is not the question: the middle of eight
        "for (int q = 0; q < 5; q++) for (int p = 0; p < 8 - q; p++) if (v[p] > v[p + 1]) " + EXCHANGE,
        "for (int q = 0; q < 5; q++) for (int p = 0; p < 8; p++) if (v[p] > v[p + 1]) " + EXCHANGE,
        "for (int q = 0; q < 5; q++) for (int p = 7; p >= q; p--) if (v[p] > v[p + 1]) " + EXCHANGE,
        "for (int q = 0; q < 5; q++) for (int p = 7; p >= q; p--) if (v[p] < v[p + 1]) " + EXCHANGE,
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["float", "int"])
def test_other_sorts_may_end_at_the_middle_as_well(body: str, kind: str) -> None:
    assert end(body, kind) == "same"


@pytest.mark.parametrize(
    "body",
    [
        SELECT.replace("int q = 0", "int q = 1"),
        SELECT.replace("q++", "q += 2"),
        SELECT.replace("int p = q + 1", "int p = q + 2"),
        SELECT.replace("p < 9", "p < 9 - q"),
        SELECT.replace("p++", "p += 2"),
        SELECT.replace("int m = q", "int m = 0"),
        SELECT.replace("v[p] < v[m]", "v[p] < v[q]"),
        SELECT.replace("v[p] < v[m]", "v[p] < w[m]"),
        SELECT.replace("v[p] < v[m]", "v[p] != v[m]"),
        SELECT.replace("v[p] < v[m]", "v[p] < v[m] && p != 3"),
        SELECT.replace("m = p; }", "m = p; else w[0] = v[p]; }"),
        SELECT.replace("m = p; }", "{ m = p; break; } }"),
        SELECT.replace("m = p; }", "m = q; }"),
        SELECT.replace("v[m] = v[q]", "v[m] = w[q]"),
        SELECT.replace("v[q] = t", "v[p] = t").replace("for (int p", "int p; for (p"),
        SELECT.replace("T t", "int t"),
        SELECT.replace("v[q] = t; ", "v[q] = t; w[q] = t; "),
        SELECT.replace(SWAP, f"if (m > 2) {{ {SWAP} }}"),
        SELECT.replace(SWAP, "moved(v[q], v[m]);"),
        SELECT.replace(SWAP, "copied(v[q], v[m]);"),
        SELECT.replace(SWAP, "exchanged(v[q], v[q]);"),
        SELECT.replace(SWAP, "exchanged(v[q], w[m]);"),
        KEPT.replace("T least", "int least"),
        KEPT.replace("T least = v[q]", "T least = v[0]"),
        KEPT.replace("least = v[p]; m = p;", "least = v[p];"),
        KEPT.replace("least = v[p]; m = p;", "m = p;"),
        KEPT.replace("v[q] = least", "v[q] = v[m]"),
        "for (int q = 0; q < 4; q++) for (int p = 0; p < 8 - q; p++) if (v[p] > v[p + 1]) " + EXCHANGE,
        "for (int q = 0; q < 5; q++) for (int p = 0; p < 7 - q; p++) if (v[p] > v[p + 1]) " + EXCHANGE
        + " out[i + n] = v[8];",
        "for (int q = 0; q < 4; q++) for (int p = 7; p >= q; p--) if (v[p] > v[p + 1]) " + EXCHANGE,
        "for (int q = 0; q < 5; q++) for (int p = 6; p >= q; p--) if (v[p] > v[p + 1]) " + EXCHANGE
        + " out[i + n] = v[8];",
    ],
)  # fmt: skip
def test_others_stay(body: str) -> None:
    assert refused(result(body)) == "no loop sorts a local array"


def test_in_a_loop_an_array_of_each_round() -> None:
    """An array that lasts keeps what a round left in it; one that a round declares does not."""
    again = "for (int r = 0; r < 2; r++) {{ {} out[i * 9 + r] = v[4]; }}"
    assert isinstance(result(again.format(SELECT), asked=""), Refused)
    own = "T u[9]; for (int q = 0; q < 9; q++) u[q] = v[q] + w[r];"
    each = again.format(own + SELECT.replace("v[", "u[")).replace("= v[4]", "= u[4]")
    assert end(each, asked="") == "same"
