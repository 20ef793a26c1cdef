"""What moves beside the counter of a loop, such as a pointer, is an index of the round."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.chunks import chunk
from optiml_magic.kernels.primitives.counted import all_counted, counted
from optiml_magic.kernels.primitives.parts import Sharing, split
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* in, int* at, float* out, int n, int m, int w) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n) return;
    const float* p = in + i;
    int off = i, away = 0;
    float best = in[i], sum = 0.0f;
    int arg = 0;
    LOOP
    out[i] = best + sum;
    at[i] = arg + away;
}
"""
ARRAYS = {
    "in": Array("f4", ("m + 1", "n")),
    "at": Array("i4", ("n",)),
    "out": Array("f4", ("n",)),
}
SIZES, SMALL = {"n": 71, "m": 133, "w": 3}, {"n": 3, "m": 1, "w": 1}
BEST = "for (int d = 1; d < m; d++) { p += n; if (*p > best) { best = *p; arg = d; } }"
INDEX = "for (int d = 1; d < m; d++) { if (in[off] > best) { best = in[off]; arg = d; } off += n; }"


@pytest.mark.parametrize(
    "loop",
    [
        BEST,
        INDEX,
        INDEX + " away = off;",
        BEST.replace("d = 1", "d = 0"),
        "for (int d = 1; d < m; d++) { if (*p > best) { best = *p; arg = d; } p += n; }",
        "p += m * n; for (int d = 0; d < m; d++) { p -= n; if (*p > best) { best = *p; arg = d; } }",
    ],
)
def test_parts_in_their_order(loop: str) -> None:
    before = TEXT.replace("LOOP", loop)
    plain = all_counted(kernel_of(before), (0,))
    after = chunk(kernel_of(written(plain)), 0, 4, (1, 4))
    assert end_of(before, written(after), ARRAYS, SIZES, SMALL) == "same"


@pytest.mark.parametrize(
    "loop",
    [
        "for (int d = 0; d < m; d++) { sum += *p; p += n; }",
        "for (int d = 0; d < m; d += 2) { off += n; sum += in[off]; }",
        "for (int d = m; d > 0; d--) { off += n; sum += in[off]; } away = off;",
        "for (int d = 0; d < m / 2; d++) { sum += *p; p += n; sum += *p; p += n; }",
    ],
)
def test_parts_in_any_order(loop: str) -> None:
    before = TEXT.replace("LOOP", loop)
    plain = all_counted(kernel_of(before), (0,))
    after = split(kernel_of(written(plain)), 0, Sharing(2, 2, (1, 2), (1, 2)))
    assert end_of(before, written(after), ARRAYS, SIZES, SMALL, rounds=True) == "same"


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        (BEST.replace("p += n;", "if (*p > 0) p += n;"), "`p` goes from round"),
        (BEST.replace("p += n;", "p += arg;"), "`arg` is asked for"),
        (BEST.replace("p += n;", "if (d == w) continue; p += n;"), "`p` goes from round"),
        (INDEX.replace("off += n;", "off += w; w++;"), "goes from round"),
        (INDEX.replace("off += n;", "off *= 2;"), "goes from round"),
        (INDEX.replace("off += n;", "for (int j = 0; j < w; j++) off += n;"), "goes from round"),
        (INDEX.replace("off += n;", "if (d > w) off = i; off += n;"), "goes from round"),
        (INDEX.replace("off += n;", "off += d;"), "goes from round"),
    ],
)
def test_not_where_it_moves_otherwise(loop: str, reason: str) -> None:
    plain = all_counted(kernel_of(TEXT.replace("LOOP", loop)), (0,))
    found = plain if not hasattr(plain, "program") else chunk(kernel_of(written(plain)), 0, 4, (4,))
    assert reason in refused(found)


@pytest.mark.parametrize(
    "loop",
    [
        # Fewer bits than an int: it comes back.
        "short c = 32700; for (int d = 0; d < m; d++) { away += c; off += 1; c += 5; }",
        "char c = 'a'; for (int d = 0; d < m; d++) { p += n; away += c; ++c; }",
        "bool c = false; for (int d = 0; d < m; d++) { away += c * 3; c += 1; off++; }",
        # A stride that is no whole number is cut off in each round.
        "int c = 0; for (int d = 0; d < m; d++) { away += c; off += 1; c += 1.6f; } arg = c;",
        # More bits than an int has, and none for a sign.
        (
            "size_t c = 7; for (int d = 0; d < m; d++) { away += (int)(c >> 3); c += w * 50000000; }"
            " arg = (int)(c >> 5);"
        ),
        (
            "long long c = 0; const unsigned by = w - 4; for (int d = 0; d < m; d++)"
            " { away += (int)(c >> 30); c += by; off++; }"
        ),
        "for (unsigned c = 0; c < m; c++) { if (c - 2 > 5) away++; off += n; }",
        "for (size_t c = 0; c < m; c += 2) { if (c - 2 > 5) away++; off += n; }",
        "int c = -9; unsigned by = w; for (int d = 0; d < m; d++) { away += c / 2; c += by; }",
        # A round that ends before its end.
        (
            "int c = 0; for (int d = 0; d < m; d++) { off += 2; if (d % 3 == 1) continue;"
            " away += c + off; c += 1; } arg = c + off;"
        ),
        # A stride that goes by another name as well.
        "int* r = &w; int e = 5; for (int d = 0; d < m; d++) { away += e; e += w; (*r)++; }",
        "int& r = w; int e = 5; for (int d = 0; d < m; d++) { away += e; e += r; w++; }",
        (
            "int e = 5; auto g = [&]() { return w; };"
            " for (int d = 0; d < m; d++) { away += e; e += g(); w++; }"
        ),
        "int e = 5; for (int d = 0; d < m; d++) { away += e; e += min(w, 3); }",
        # Other names for what moves.
        "int& o = off; for (int d = 0; d < m; d++) { away = away * 3 + o; off += 2; } arg = off;",
        "int* o = &off; for (int d = 0; d < m; d++) { away = away * 3 + *o; off += 2; }",
    ],
)
def test_rounds_times_a_stride_are_how_far_it_goes(loop: str) -> None:
    before = TEXT.replace("LOOP", loop)
    after = counted(kernel_of(before), 0)
    assert end_of(before, written(after), ARRAYS, {"n": 71, "m": 333, "w": 3}, SMALL) == "same"


def test_a_head_moves_no_char_beside_its_counter() -> None:
    loop = "char c = 'a'; for (int d = 0; d < m; d++, c++) { away = away * 3 + c; off += 1; }"
    assert "how `c` moves" in refused(counted(kernel_of(TEXT.replace("LOOP", loop)), 0))


@pytest.mark.parametrize("by", ["off", "d", "at[i]"])
def test_a_head_moves_nothing_by_another_stride_each_round(by: str) -> None:
    loop = f"for (int d = 0, e = 5; d < m; d++, e += {by}) {{ away += e; at[i] = off++; }}"
    assert "how far `e` moves" in refused(counted(kernel_of(TEXT.replace("LOOP", loop)), 0))


def test_a_counter_that_is_asked_for_in_what_is_not_read_stays() -> None:
    inner = "case 0: sum += in[off]; break; default: if (d > 5) break; sum += 1.0f;"
    loop = f"for (int d = 0; d < m; d++) {{ switch (d & 3) {{ {inner} }} }}"
    found = counted(kernel_of(TEXT.replace("LOOP", loop)), 0)
    assert "cannot be written anew" in refused(found)
