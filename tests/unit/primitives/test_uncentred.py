"""Products of bytes less their zero points, and four rounds of bytes by one instruction."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.uncentred import uncentred
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from tests.ideas import asked, made
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(m, 16), cdiv(n, 16)) block(16, 16)
__global__ void k(const {0}* x, const {1}* y, int* out, int n, int m, int d, int p, int q) {{
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= m) return;
    int sum = {2};
    for (int k = 0; k < d; k++) {{
        {3}
    }}
    out[i * m + j] = sum;
}}
"""
ROUND = "sum += ((int)x[i * d + k] - p) * (y[k * m + j] - q);"
SIZES = {"n": 19, "m": 33, "d": 70}, {"n": 2, "m": 3, "d": 5}
NAMES = {"i1": "signed char", "u1": "unsigned char"}


def arrays(one: str, other: str) -> dict[str, Array]:
    return {
        "x": Array(one, ("n * d",), "bits"), "y": Array(other, ("d * m",), "bits"),
        "out": Array("i4", ("n * m",)),
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["i1", "u1"])
@pytest.mark.parametrize(
    ("start", "round_"),
    [
        ("0", ROUND),
        ("j", "int a = x[i * d + k]; int b = y[k * m + j] - q; sum = sum + b * (a + p);"),
        ("0", "sum += (x[i * d + k] - p) * y[k * m + j];"),
        ("0", "sum += x[i * d + k] * (y[k * m + j] - (p + q));"),
    ],
)
def test_the_sum_is_the_same(kind: str, start: str, round_: str) -> None:
    text = TEXT.format(NAMES[kind], NAMES[kind], start, round_)
    after = written(uncentred(kernel_of(text), 0))
    assert "products +=" in after
    numbers = {"p": -7, "q": 128}
    assert end_of(text, after, arrays(kind, kind), *({**s, **numbers} for s in SIZES)) == "same"


@pytest.mark.parametrize(
    ("round_", "why"),
    [
        ("sum += x[i * d + k] * y[k * m + j];", "no zero point to take out"),
        ("sum -= (x[i * d + k] - p) * y[k * m + j];", "subtracts from its sum"),
        ("sum += (x[i * d + k] - k) * y[k * m + j];", "a value that all rounds share"),
        ("int a = x[i * d + k] - p; a += 1; sum += a * y[k * m + j];", "do more than to sum up"),
        ("sum += (x[i * d + k] - p) + y[k * m + j];", "does not sum products"),
        ("sum += (x[i * d + k] - 2.5f) * y[k * m + j];", "do more than to sum up"),
        ("sum += (short)(x[i * d + k] - p) * y[k * m + j];", "not a 32-bit integer"),
    ],
)
def test_other_sums_are_refused(round_: str, why: str) -> None:
    text = TEXT.format("signed char", "signed char", "0", round_)
    assert why in refused(uncentred(kernel_of(text), 0))
    mixed = TEXT.format("signed char", "unsigned char", "0", ROUND)
    assert "one factor is signed" in refused(uncentred(kernel_of(mixed), 0))


@pytest.mark.parametrize(
    ("one", "other", "round_", "at_once"),
    [
        ("i1", "i1", "sum += x[i * d + k] * y[k * m + j];", True),
        ("u1", "u1", "sum += (int)x[i * d + k] * y[k * m + j];", True),
        ("i1", "i1", ROUND, True),
        ("u1", "u1", "unsigned char b = y[k * m + j]; sum += b * (x[i * d + k] - p);", False),
        ("i1", "i1", "signed char a = x[i * d + k]; int c = a * y[k * m + j]; sum = c + sum;", True),
        ("u1", "i1", "sum += x[i * d + k] * y[k * m + j];", False),
        ("u1", "u1", "signed char a = x[i * d + k]; sum += a * y[k * m + j];", False),
        ("i1", "i1", "sum -= x[i * d + k] * y[k * m + j];", False),
        ("i1", "i1", "sum += x[i * d + k] * y[k * m + j] * p;", False),
        ("i1", "i1", "if (k > p) sum += x[i * d + k] * y[k * m + j];", True),
    ],
)  # fmt: skip
def test_four_rounds_of_bytes_are_one_instruction(
    one: str, other: str, round_: str, at_once: bool
) -> None:
    text = TEXT.format(NAMES[one], NAMES[other], "0", round_)
    ideas, _ = asked(BlockedProduct(), text)
    programs = [p.text for p in made(ideas) if "tiles in shared memory" in p.title]
    assert programs
    assert any("__dp4a(" in p for p in programs) == at_once
    numbers = {"p": 3, "q": -5}
    for program in programs:
        found = end_of(text, program, arrays(one, other), *({**s, **numbers} for s in SIZES))
        assert found == "same"


X, Y = "x[i * d + k]", "y[k * m + j]"


@pytest.mark.parametrize("kind", ["i1", "u1"])
@pytest.mark.parametrize(
    ("round_", "now"),
    [
        (f"int t = (int){X} - (int){Y}; sum += t * t;", "__vabsdiff"),
        (f"short t = {X} - {Y}; sum += (int)t * (int)t;", "__vabsdiff"),
        (f"sum += ({X} - {Y}) * ({X} - {Y});", "__vabsdiff"),
        (f"sum += ({X} - {Y}) * ({Y} - {X});", ""),
        (f"sum += abs({X} - {Y});", "__vsad"),
        (f"int a = {X}, b = {Y}; sum += a > b ? a - b : b - a;", "__vsad"),
        (f"int a = {X}; short b = {Y}; sum += b >= a ? b - a : a - b;", "__vsad"),
        (f"unsigned a = {X}, b = {Y}; sum += a > b ? a - b : b - a;", "__vsadu"),
        (f"int a = {X}, b = {Y}; sum += a < b ? a - b : b - a;", ""),
        (f"int a = {X}, b = {Y}; sum += a > b ? a - b : a;", ""),
        (f"signed char t = {X} - {Y}; sum += t * t;", ""),
        (f"int t = {X} - {Y}; sum += t * {X};", ""),
        (f"int t = {X} - {Y}; sum += t * t - 1;", ""),
        (f"sum += abs({X} - p);", ""),
    ],
)  # fmt: skip
def test_four_distances_of_bytes_are_one_instruction_or_two(
    kind: str, round_: str, now: str
) -> None:
    text = TEXT.format(NAMES[kind], NAMES[kind], "j", round_)
    ideas, _ = asked(BlockedProduct(), text)
    programs = [p.text for p in made(ideas) if "tiles in shared memory" in p.title]
    wanted = bool(now) and (kind == "u1" or now != "__vsadu")
    assert any("__vabsdiff" in p or "__vsad" in p for p in programs) == wanted
    assert not wanted or any(now in p for p in programs)
    for program in programs:
        numbers = {"p": 3, "q": -5}
        found = end_of(text, program, arrays(kind, kind), *({**s, **numbers} for s in SIZES))
        assert found == "same"
