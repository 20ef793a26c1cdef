"""Rows of a block's threads, brought to shared memory: read in any order from there."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, in_turn
from optiml_magic.kernels.primitives.own_rows import Row, rows_at_hand, rows_of
from optiml_magic.kernels.primitives.sized import sized
from optiml_magic.model.facts import ArrayFacts, Facts, LaunchFacts
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, written

ROWS = """\
__device__ float first(const float* p, int n) {
    float s = 0.0f;
    for (int k = 0; k < n; ++k) s = s * 0.5f + p[k];
    return s;
}
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const TYPE* a, const int* at, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0.0f;
    BODY
    out[i] = s;
}
"""
LOOP = "for (int k = 0; k < m; ++k) s = s * 0.5f + (float)a[i * m + k];"
DTYPES = {"float": "f4", "unsigned char": "u1", "short": "i2", "double": "f8", "signed char": "i1"}


def kernel(text: str, kind: str, n: int, m: int) -> Kernel:
    sizes = {
        "a": (DTYPES[kind], n * m, "input"),
        "at": ("i4", n, "input"),
        "out": ("f4", n, "output"),
    }
    arrays = {
        name: ArrayFacts(name, role, dtype, (count,), count * int(dtype[1]), 256)  # type: ignore[arg-type]
        for name, (dtype, count, role) in sizes.items()
    }
    launch = LaunchFacts("k", 1, (-(-n // 64), 1, 1), (64, 1, 1), arrays, {"n": n, "m": m})
    facts = Facts((launch,), {}, 1e-5, 1e-8, "h200")
    return kernel_of(text, facts)


def made(
    text: str, kind: str = "float", m: int = 5, n: int = 300, block: int = 64
) -> Kernel | Refused:
    steps = [lambda k: sized(k, {"m": m}), lambda k: rows_at_hand(k, ("a",), block)]
    return in_turn(kernel(text, kind, n, m), steps)


@pytest.mark.parametrize("m", [2, 3, 4, 8, 16, 62, 64])
@pytest.mark.parametrize("kind", DTYPES)
def test_rows_of_any_length_and_type(kind: str, m: int) -> None:
    text = ROWS.replace("TYPE", kind).replace("BODY", LOOP)
    if m * {"f8": 8, "f4": 4, "i2": 2}.get(DTYPES[kind], 1) > 400:
        m = 33
    after = written(made(text, kind, m))
    assert "a_rows[threadIdx.x *" in after
    content = "numbers"
    arrays = {
        "a": Array(DTYPES[kind], ("n", "m"), content), "at": Array("i4", ("n",), "below n"),
        "out": Array("f4", ("n",), "zeros"),
    }  # fmt: skip
    assert end_of(text, after, arrays, {"n": 300, "m": m}, {"n": 33, "m": m}) == "same"


ORDERS = {
    "for (int k = m - 1; k >= 0; --k) s = s * 0.5f + a[i * m + k];": True,
    "const float* row = a + i * m; for (int k = 0; k < m; ++k) s = s * 0.5f + row[k];": True,
    "const float* row = &a[(size_t)i * m]; s = row[1] - row[m - 1] * 2.0f;": True,
    "int c = at[i] % m; s = a[i * m + c];": True,
    "int c = at[i]; if (i < n - 4) s = a[i * m + c % 7];": False,  # some of the row behind
    "if (i > 0) s = a[i * m - 1] + a[i * m];": False,
    "for (int k = 0; k < 4; ++k) if (at[i] > k) s += a[i * m + (at[i] - k) % m];": True,
    "const float* p = a + i * m + 1; s = p[1] + first(p + 1, 2);": True,
    "const float* p = a + i * m, *q = p + m - 1; for (int k = 0; k < m; ++k) s += q[-k] * k;": True,
    "const float* p = a + i * m; while (s < 3.0f && p[1] > 0.2f) s += 0.5f;": True,
    "for (int j = i * m; j < (i + 1) * m; ++j) s = s * 0.5f + a[j];": True,
    "int k = 0; while (k++ < m - 1) s = s * 0.5f + a[i * m + k];": True,
    "int k = m; while (k-- > 0) s = s * 0.5f + a[i * m + k];": True,
    "int k = 0; do { s += a[i * m + k]; } while (++k < m && a[i * m + k] > 0.1f);": True,
    "int c = i % m; s = a[i * m + c] + a[i * m];": True,
}


@pytest.mark.parametrize("block", [32, 64, 256])
@pytest.mark.parametrize("body", ORDERS)
def test_rows_are_read_in_any_order(body: str, block: int) -> None:
    text = ROWS.replace("TYPE", "float").replace("BODY", body)
    after = written(made(text, block=block))
    assert "a_rows + threadIdx.x * 5" in after or "a_rows[threadIdx.x * 5" in after
    arrays = {
        "a": Array("f4", ("n", "m")), "at": Array("i4", ("n",), "below n"),
        "out": Array("f4", ("n",), "zeros"),
    }  # fmt: skip
    for n in (300, 64, 7):
        assert end_of(text, after, arrays, {"n": n, "m": 5}, {"n": 33, "m": 5}) == "same"


@pytest.mark.parametrize(
    ("far", "kept"),
    [
        ("k / 2 + 1", False),  # no further than one behind the row
        ("(k >> 1) + 1", False),
        ("k", True),
    ],
)
def test_what_is_held_to_the_last_of_a_row_may_read_the_pad(far: str, kept: bool) -> None:
    body = f"const float* r = a + i * m; for (int k = 0; k < 14; ++k) s += r[min({far}, 7)] * k;"
    text = ROWS.replace("TYPE", "float").replace("BODY", body)
    after = written(made(text, m=8))
    assert ("[min(" in after) == kept
    arrays = {
        "a": Array("f4", ("n", "m")), "at": Array("i4", ("n",), "below n"),
        "out": Array("f4", ("n",), "zeros"),
    }  # fmt: skip
    assert end_of(text, after, arrays, {"n": 300, "m": 8}, {"n": 33, "m": 8}) == "same"


@pytest.mark.parametrize("block", [32, 64, 256])
@pytest.mark.parametrize(
    "index",
    ["int i = blockIdx.x * 64 + threadIdx.x;", "size_t i = (size_t)blockIdx.x * 64 + threadIdx.x;"],
)
def test_how_wide_blocks_were_the_text_may_say_as_a_number(index: str, block: int) -> None:
    text = ROWS.replace("TYPE", "float").replace("BODY", LOOP)
    text = text.replace("int i = blockIdx.x * blockDim.x + threadIdx.x;", index)
    after = written(made(text, block=block))
    arrays = {
        "a": Array("f4", ("n", "m")), "at": Array("i4", ("n",), "below n"),
        "out": Array("f4", ("n",), "zeros"),
    }  # fmt: skip
    assert end_of(text, after, arrays, {"n": 300, "m": 5}, {"n": 33, "m": 5}) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "for (int k = 0; k < m; ++k) s += a[k * n + i];",
        "for (int k = 0; k < m; ++k) s += a[at[i] * m + k];",
        "s = a[i];",
        "int k = 0; while (k < m - 1) s = s * 0.5f + a[i * m + k++];",
        "const float* p = &a[i * m]; s = first(p, m) - (p < a + 3 ? 1.0f : 0.0f);",
        "for (int k = 0; k < m; ++k) s += a[(i / 2) * m + k];",
        "float* b = (float*)a; b[i * m] = 1.0f; s = a[i * m + 1];",
    ],
)
def test_what_is_no_row_of_its_own_stays(body: str) -> None:
    text = ROWS.replace("TYPE", "float").replace("BODY", body)
    assert isinstance(made(text), Refused)


def test_rows_begin_an_odd_number_of_words_apart() -> None:
    text = ROWS.replace("TYPE", "float").replace("BODY", LOOP)
    for kind, m, pitch in (("float", 16, 17), ("float", 15, 15), ("unsigned char", 64, 68),
                           ("unsigned char", 62, 62), ("short", 8, 10), ("double", 4, 5)):  # fmt: skip
        ready = sized(
            kernel(text.replace("const float*", f"const {kind}*"), kind, 300, m), {"m": m}
        )
        assert isinstance(ready, Kernel)
        (row,) = (row for row in rows_of(ready) if isinstance(row, Row))
        assert (row.length, row.pitch) == (m, pitch)
