"""Local arrays that loops sort, and those that they only nearly do."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.ordered import ordered
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, unchanged, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const {type}* a, {type}* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    {type} v[7], w[7];
    for (int q = 0; q < 7; q++) v[q] = w[q] = a[i * 7 + q];
    int j = 0;
    {body}
    for (int q = 0; q < 7; q++) out[i * 8 + q] = v[q];
    out[i * 8 + 7] = w[3];
}}
"""
TYPES = {"float": "f4", "double": "f8", "int": "i4", "unsigned char": "u1", "long long": "i8"}
INSERT = "for (int q = 1; q < 7; ++q) { T key = v[q]; %s }"
EXCHANGE = "{ T t = v[q]; v[q] = v[p]; v[p] = t; }"
BUBBLE = "{ T t = v[p + 1]; v[p + 1] = v[p]; v[p] = t; }"


def text(body: str, kind: str = "float") -> str:
    return TEXT.format(type=kind, body=body.replace("T ", f"{kind} "))


def result(body: str, kind: str = "float") -> Kernel | Refused:
    return ordered(kernel_of(text(body, kind)))


def end(body: str, kind: str = "float") -> str:
    content = "odd" if TYPES[kind][0] == "f" else "numbers"
    arrays = {
        "a": Array(TYPES[kind], ("n", "7"), content), "out": Array(TYPES[kind], ("n", "8"), "zeros"),
    }  # fmt: skip
    return end_of(text(body, kind), written(result(body, kind)), arrays, {"n": 70}, {"n": 33})


@pytest.mark.parametrize(
    "body",
    [
        INSERT
        % "j = q - 1; while (j >= 0 && v[j] > key) { v[j + 1] = v[j]; j--; } v[j + 1] = key;",
        INSERT % "int p = q; while (p > 0 && key > v[p - 1]) { v[p] = v[p - 1]; --p; } v[p] = key;",
        INSERT
        % "for (j = q; j > 0; j--) { if (v[j - 1] <= key) break; v[j] = v[j - 1]; } v[j] = key;",
        "for (int q = 0; q < 6; q++) for (int p = q + 1; p < 7; p++) if (v[p] < v[q]) " + EXCHANGE,
        "for (int q = 0; q < 7; q++) { for (int p = q + 1; p < 7; p++) { if (v[q] <= v[p]) "
        + EXCHANGE
        + " } }",
        "for (int q = 0; q < 6; q++) for (int p = 0; p < 6 - q; p++) if (v[p] > v[p + 1]) "
        + BUBBLE,
        "for (int q = 0; q < 7; q++) for (int p = 0; p < 6; p++) if (v[p] > v[p + 1]) " + BUBBLE,
        "#pragma unroll\n    for (int q = 6; q > 0; q--)\n"
        "    for (int p = 0; p < q; p++) if (v[p + 1] > v[p]) " + BUBBLE,
    ],
)
def test_they_are_sorted_by_a_network(body: str) -> None:
    assert "in_order(v[" in written(result(body))
    assert end(body) == "same"


@pytest.mark.parametrize("kind", TYPES)
def test_numbers_of_all_kinds_have_an_order(kind: str) -> None:
    body = INSERT % "j = q; while (j > 0 && v[j - 1] > key) { v[j] = v[j - 1]; --j; } v[j] = key;"
    assert end(body, kind) == "same"


@pytest.mark.parametrize(
    "body",
    [
        INSERT
        % "j = q - 1; while (j >= 1 && v[j] > key) { v[j + 1] = v[j]; j--; } v[j + 1] = key;",
        INSERT
        % "j = q - 1; while (j >= 0 && w[j] > key) { v[j + 1] = v[j]; j--; } v[j + 1] = key;",
        INSERT % "j = q; while (j > 0 && v[j] > key) { v[j] = v[j - 1]; --j; } v[j] = key;",
        INSERT % "j = q; while (j > 0 && v[j - 1] > key) { v[j] = w[j - 1]; --j; } v[j] = key;",
        INSERT % "j = q; while (j > 0 && v[j - 1] > key) { v[j] = v[j - 1]; --j; } v[j] = w[q];",
        INSERT % "j = 6; while (j > 0 && v[j - 1] > key) { v[j] = v[j - 1]; --j; } v[j] = key;",
        INSERT.replace("T key", "int key")
        % "j = q; while (j > 0 && v[j - 1] > key) { v[j] = v[j - 1]; --j; } v[j] = key;",
        INSERT.replace("q = 1", "q = 2")
        % "j = q; while (j > 0 && v[j - 1] > key) { v[j] = v[j - 1]; --j; } v[j] = key;",
        "for (int q = 0; q < 3; q++) for (int p = q + 1; p < 7; p++) if (v[p] < v[q]) " + EXCHANGE,
        "for (int q = 0; q < 6; q++) for (int p = q + 2; p < 7; p++) if (v[p] < v[q]) " + EXCHANGE,
        "for (int q = 0; q < 7; q++) for (int p = 0; p < 7; p++) if (v[p] < v[q]) " + EXCHANGE,
        "for (int q = 0; q < 6; q++) for (int p = q + 1; p < 7; p++) if (v[p] < v[q]) "
        + EXCHANGE.replace("T ", "int "),
        "for (int q = 0; q < 6; q++) for (int p = q + 1; p < 7; p++) if (v[p] < w[q]) " + EXCHANGE,
        "for (int q = 0; q < 5; q++) for (int p = 0; p < 6; p++) if (v[p] > v[p + 1]) " + BUBBLE,
        "int p; for (int q = 0; q < 7; q++) for (p = 0; p < 6; p++) if (v[p] > v[p + 1]) " + BUBBLE,
        (
            "for (int q = 0; q < 7; q++) for (int p = 0; p < 6; p++) if (out[p] > out[p + 1]) "
            "{ T t = out[p + 1]; out[p + 1] = out[p]; out[p] = t; }"
        ),
    ],
)
def test_others_stay(body: str) -> None:
    assert refused(result(body)) == "no loop sorts a local array"


def test_the_first_ones_may_be_sorted_where_no_others_are_asked_for() -> None:
    first = (
        "for (int q = 0; q < 4; q++) for (int p = q + 1; p < 7; p++) if (v[p] < v[q]) " + EXCHANGE
    )
    for asked, sorted_ in (
        ("v[3]", True),
        ("v[0] + v[3]", True),
        ("v[4]", False),
        ("v[n % 4]", True),
        ("v[n % 5]", False),
    ):
        whole = text(first).replace("out[i * 8 + q] = v[q];", f"out[i * 8 + q] = {asked};")
        found = ordered(kernel_of(whole))
        assert isinstance(found, Kernel) == sorted_
        if isinstance(found, Kernel):
            arrays = {"a": Array("f4", ("n", "7"), "odd"), "out": Array("f4", ("n", "8"), "zeros")}
            assert end_of(whole, written(found), arrays, {"n": 70}, {"n": 33}) == "same"
    again = f"for (int r = 0; r < 2; r++) {{ {first} }}"
    within = text(again).replace("out[i * 8 + q] = v[q];", "out[i * 8 + q] = v[3];")
    assert isinstance(ordered(kernel_of(within)), Refused)


@pytest.mark.parametrize(
    ("asked", "calls"),
    [("v[3]", 13), ("v[3] + w[4]", 13), ("v[2]", 16), ("v[2] + v[3]", 16), ("v[n % 7]", 16)],
)
@pytest.mark.parametrize("kind", ["int", "float"])
@pytest.mark.parametrize("op", ["<", ">"])
def test_of_the_middle_alone_there_are_fewer(asked: str, calls: int, kind: str, op: str) -> None:
    body = f"for (int q = 0; q < 6; q++) for (int p = q + 1; p < 7; p++) if (v[p] {op} v[q]) "
    whole = text(body + EXCHANGE, kind).replace(
        "for (int q = 0; q < 7; q++) out[i * 8 + q] = v[q];", f"out[i * 8] = {asked};"
    )
    made = written(ordered(kernel_of(whole)))
    assert made.count("in_order(v[") == calls
    content = "odd" if kind == "float" else "numbers"
    arrays = {
        "a": Array(TYPES[kind], ("n", "7"), content), "out": Array(TYPES[kind], ("n", "8"), "zeros"),
    }  # fmt: skip
    assert unchanged(whole, made, arrays, {"n": 70}, {"n": 33}) == "same"
