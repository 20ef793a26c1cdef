"""Lanes that append what they find to lists in order: the same lists, and what is refused."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.counted import all_counted
from optiml_magic.kernels.primitives.ended import asked_within
from optiml_magic.kernels.primitives.lanes import Lanes, share
from optiml_magic.kernels.primitives.scoped import scoped
from optiml_magic.kernels.primitives.single import single
from tests.present import examples, sampled
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .alike import end_of, kernel_of, refused, written

WARP = Lanes("warp", 8, 64, (2, 4, 8, 16, 32), (64, 128))
ROWS = """\
#define K 5
__device__ float off(const float* a, int at) { return a[at] * 2 - 1; }
__device__ bool tells(int at) { printf("%d", at); return at > 1; }
__device__ bool asks(int at) { return at >= 0 && tells(at); }
#pragma optiml launch k grid(cdiv(h, 64)) block(64)
__global__ void k(const float* a, const float* b, const int* c, int* o, float* v, int* n, int h, int w, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= h) return;
    int m = 0;
    BODY
    n[i] = m;
}
"""
ARRAYS = {
    "a": Array("f4", ("h", "w"), "odd"), "b": Array("f4", ("w",)),
    "c": Array("i4", ("h", "w"), "below w"), "o": Array("i4", ("h", "w", "3"), "zeros"),
    "v": Array("f4", ("h", "w", "3"), "zeros"), "n": Array("i4", ("h",), "zeros"),
}  # fmt: skip
SIZES, OTHERS = {"h": 70, "w": 37, "d": 3}, {"h": 3, "w": 2, "d": 1}
LOOP = "for (int j = 0; j < w; ++j)"
HIT = "a[i * w + j] > 0.3f"
PUT = "o[i * 3 * w + m] = j;"


def made(body: str, rows: str = ROWS) -> tuple[str, Kernel | Refused]:
    text = rows.replace("BODY", body)
    stand = Stand(Made("one", text, dict(ARRAYS), dict(SIZES), dict(OTHERS)))
    kernel = where_legal(single, where_legal(scoped, kernel_of(text, stand.facts(text))))
    at = (body.count("for (int r"),)
    plain = all_counted(where_legal(asked_within, kernel), at)
    return text, plain if isinstance(plain, Refused) else share(plain, at, WARP, far=True)


#: Loops that append to lists, by how people write them.
BODIES = {
    "all that pass": f"{LOOP} if ({HIT}) {{ {PUT} ++m; }}",
    "where it grows": f"{LOOP} if ({HIT}) o[i * 3 * w + m++] = j;",
    "the first k": f"for (int j = 0; j < w && m < K; ++j) {{ if ({HIT}) {{ {PUT} m += 1; }} }}",
    "the list before the end": f"for (int j = 0; m < K && j < w; ++j) if ({HIT}) {{ {PUT} m++; }}",
    "full where it grows": f"{LOOP} if ({HIT}) {{ {PUT} ++m; if (m >= K) break; }}",
    "full as it grows": f"{LOOP} if ({HIT}) {{ {PUT} if (++m == K) break; }}",
    "full at the end": f"{LOOP} {{ if ({HIT}) {{ {PUT} m = m + 1; }} if (K <= m) break; }}",
    "full at first": f"{LOOP} {{ if (m == K) break; if ({HIT}) {{ {PUT} m++; }} }}",
    "full where it is asked": f"{LOOP} if ({HIT} && m < K) {{ {PUT} m++; }}",
    "full by a size": f"for (int j = 0; j < w && m < d; ++j) if ({HIT}) {{ {PUT} m++; }}",
    "full by a size, late": f"{LOOP} if ({HIT}) {{ {PUT} if (++m == d) break; }}",
    "counted beyond": f"{LOOP} if ({HIT}) {{ if (m < 3) {PUT} ++m; }}",
    "filled with the first": f"for (int j = 0; j < w && m < K; ++j) if ({HIT}) {{ if (m == 0) "
    f"for (int l = 0; l < K; ++l) o[i * 3 * w + l] = j; {PUT} ++m; }}",
    "noted with the first": f"{LOOP} if ({HIT}) {{ if (!m) v[i * w] = b[j]; {PUT} ++m; }}",
    "filled behind": f"for (int j = 0; j < w && m < K; ++j) if ({HIT}) {{ {PUT} ++m; }} "
    "for (int l = m; l < K; ++l) o[i * 3 * w + l] = -1;",
    "filled before": f"for (int r = 0; r < w; ++r) o[i * 3 * w + r] = -7; {LOOP} if ({HIT}) {{ {PUT} ++m; }}",
    "read again": f"{LOOP} if ({HIT}) {{ {PUT} ++m; }} int s = 0; "
    "for (int l = 0; l < m; ++l) s += o[i * 3 * w + l]; m += 100 * s;",
    "what it leaves out": f"{LOOP} {{ if (j == i) continue; float u = a[i * w + j]; "
    f"if (!(u > 0.3f)) continue; v[i * w + m] = u; {PUT} ++m; }}",
    "tests within tests": f"{LOOP} {{ float u = a[i * w + j]; if (u > 0) {{ float t = u * b[j]; "
    "if (t < 0.5f) { v[i * w + m] = t; ++m; } } }",
    "three at once": f"{LOOP} if ({HIT}) {{ o[i * 3 * w + 3 * m] = j; o[i * 3 * w + 3 * m + 1] = -j;"
    " o[i * 3 * w + 3 * m + 2] = c[i * w + j]; ++m; }",
    "three by a loop": f"{LOOP} if ({HIT}) {{ for (int l = 0; l < 3; ++l) "
    "o[i * 3 * w + 3 * m + l] = j * l; ++m; }",
    "columns": f"{LOOP} if ({HIT}) {{ o[m * h + i] = j; ++m; }}",
    "from the end": f"{LOOP} if ({HIT}) {{ o[i * 3 * w + w - 1 - m] = j; ++m; }}",
    "by a pointer of its row": f"int* mine = o + i * 3 * w; {LOOP} if ({HIT}) mine[m++] = j;",
    "a wide index": f"{LOOP} if ({HIT}) {{ o[(size_t)i * 3 * w + m] = j; ++m; }}",
    "marked as well": f"{LOOP} if ({HIT}) {{ {PUT} v[i * w + j] = m; ++m; }}",
    "distances": f"{LOOP} {{ float s = 0; for (int l = 0; l < 3; ++l) {{ float t = b[j] - l; s += t * t; }} "
    f"if (s < 2.5f) {{ v[i * w + m] = s; {PUT} ++m; }} }}",
    "a function": f"for (int j = 0; j < w && m < K; ++j) if (off(a, i * w + j) > 0) {{ {PUT} ++m; }}",
    "down": f"for (int j = w - 1; j >= 0 && m < K; --j) if ({HIT}) {{ {PUT} ++m; }}",
    "by two": f"for (int j = 1; j < w; j += 2) if ({HIT}) {{ {PUT} ++m; }}",
    "begins later": f"m = 2; {LOOP} if ({HIT}) {{ {PUT} ++m; }}",
    "goes on": f"for (int r = 0; r < 2; ++r) {LOOP} if (a[i * w + j] > r) {{ {PUT} ++m; }}",
    "anew for each": "for (int r = 0; r < 2; ++r) { int q = 0; for (int j = 0; j < w && q < 3; ++j) "
    "if (a[i * w + j] > r) { o[i * 3 * w + q] = j; ++q; } m += q; }",
    "unsigned": f"unsigned q = 0; {LOOP} if ({HIT}) {{ o[i * 3 * w + q] = j; ++q; }} m = q;",
    "only counted until": f"for (int j = 0; j < w && m < K; ++j) if ({HIT}) ++m;",
    "neither": f"{LOOP} if (!(a[i * w + j] <= 0.3f)) {{ {PUT} ++m; }}",
    "full before it appends": f"{LOOP} if ({HIT}) {{ if (m >= K) break; {PUT} ++m; }}",
    "full between": f"{LOOP} {{ if (!({HIT})) continue; if (m == d) break; {PUT} ++m; }}",
    "under a test": f"if (a[i * w] < 1) {{ {LOOP} if ({HIT}) {{ {PUT} ++m; }} }}",
    "behind a way out": f"if (a[i * w] > 0) return; {LOOP} if ({HIT}) {{ {PUT} ++m; }}",
    "an unsigned counter": f"for (unsigned j = 0; j < w && m < K; ++j) if ({HIT}) {{ {PUT} ++m; }}",
    "either test": f"{LOOP} if (({HIT}) || c[i * w + j] == d) {{ {PUT} ++m; }}",
    "members": f"{LOOP} {{ float2 u = make_float2(a[i * w + j], b[j]); if (u.x > u.y && m < K) {{ {PUT} ++m; }} }}",
    "an end of another type": f"for (int j = 0; j < w && m < (long long)d; ++j) if ({HIT}) {{ {PUT} ++m; }}",
    "a wide count": f"long long q = 0; {LOOP} if ({HIT}) {{ o[i * 3 * w + q] = j; ++q; }} m = (int)q;",
    "the end of a row": f"for (int j = i; j < w && m < K; ++j) if ({HIT}) {{ {PUT} ++m; }}",
    "a local of its own": f"{LOOP} if ({HIT}) {{ int q = j * 2; q += c[i * w + j]; o[i * 3 * w + m] = q; ++m; }}",
}


@pytest.mark.parametrize("name", sampled(BODIES, every=4))
def test_lanes_append_the_same_in_the_same_order(name: str) -> None:
    before, found = made(BODIES[name])
    assert "__popc(" in written(found)
    text = kernel_of(written(found)).program
    for lanes in (8, 32, 2)[:: examples(2, 1)]:
        after = text.with_values({"LANES": lanes}).text
        for sizes in ({"h": 70, "w": 100, "d": 3}, {"h": 2, "w": 33, "d": 2}):
            assert end_of(before, after, ARRAYS, sizes, OTHERS) == "same"


STAY = {
    "two lists": f"int q = 0; {LOOP} {{ if ({HIT}) {{ {PUT} ++m; }} if (b[j] > 0) o[i * 3 * w + w + q++] = j; }} m += q;",
    "it reads its list": f"{LOOP} if ({HIT}) {{ {PUT} v[i * w + m] = o[i * 3 * w]; ++m; }}",
    "the test reads its list": f"{LOOP} if (o[i * 3 * w + j] == 0) {{ {PUT} ++m; }}",
    "the test asks how long it is": f"{LOOP} if (a[i * w + j] > m) {{ {PUT} ++m; }}",
    "what is found asks how long it is": f"{LOOP} {{ float u = a[i * w + j] - m; if (u > 0) {{ {PUT} ++m; }} }}",
    "it grows by two": f"{LOOP} if ({HIT}) {{ {PUT} m += 2; }}",
    "it grows by what is found": f"{LOOP} if ({HIT}) {{ {PUT} m += c[i * w + j]; }}",
    "it shrinks": f"{LOOP} if ({HIT}) {{ {PUT} --m; }}",
    "it grows twice": f"{LOOP} if ({HIT}) {{ {PUT} ++m; if (b[j] > 0) ++m; }}",
    "it grows first": f"{LOOP} if ({HIT}) {{ ++m; {PUT} }}",
    "it grows under one more test": f"{LOOP} if ({HIT}) {{ {PUT} if (b[j] > 0) ++m; }}",
    "a place for several": f"{LOOP} if ({HIT}) {{ o[i * 3 * w + m / 2] = j; ++m; }}",
    "places that meet": f"{LOOP} if ({HIT}) {{ o[i * 3 * w + m] = j; o[i * 3 * w + m + 1] = -1; ++m; }}",
    "a ring": f"{LOOP} if ({HIT}) {{ o[i * 3 * w + m % 4] = j; ++m; }}",
    "the last of all": f"{LOOP} if ({HIT}) {{ o[i * 3 * w] = j; ++m; }}",
    "a place that the round says": f"{LOOP} if ({HIT}) {{ o[i * 3 * w + m + w - j] = j; ++m; }}",
    "a place that memory says": f"{LOOP} if ({HIT}) {{ o[i * 3 * w + m + c[j]] = j; ++m; }}",
    "a narrow place": f"{LOOP} if ({HIT}) {{ o[i * 3 * w + (unsigned char)m] = j; ++m; }}",
    "a narrow count": f"unsigned char q = 0; {LOOP} if ({HIT}) {{ o[i * 3 * w + q] = j; ++q; }} m = q;",
    "a wider loop": f"{LOOP} if ({HIT}) {{ for (int l = 0; l < 4; ++l) o[i * 3 * w + 3 * m + l] = j; ++m; }}",
    "a loop as wide as data": f"{LOOP} if ({HIT}) {{ for (int l = 0; l < c[j]; ++l) o[i * 3 * w + m + l] = j; ++m; }}",
    "a stride that may be none": f"{LOOP} if ({HIT}) {{ o[i * 3 * w + m * (d - 3)] = j; ++m; }}",
    "it adds to its elements": f"{LOOP} if ({HIT}) {{ o[i * 3 * w + m] += j; ++m; }}",
    "an atomic operation": f"{LOOP} if ({HIT} && m < K) {{ atomicExch(&o[i * 3 * w + m], j); ++m; }}",
    "it stores what fails": f"{LOOP} {{ if ({HIT}) {{ {PUT} ++m; }} else v[i * w] = j; }}",
    "it stores before": f"{LOOP} {{ v[i * w] = j; if ({HIT}) {{ {PUT} ++m; }} }}",
    "the last goes along": f"int last = 0; {LOOP} if ({HIT}) {{ {PUT} last = j; ++m; }} m += last;",
    "a sum goes along": f"float s = 0; {LOOP} if ({HIT}) {{ {PUT} s = s * 2 + 1; ++m; }} m += s;",
    "a list of the thread": f"int q[40]; {LOOP} if ({HIT}) {{ q[m] = j; ++m; }} o[i * 3 * w] = q[0];",
    "the end moves": f"int e = 9; for (int j = 0; j < w && m < e; ++j) if ({HIT}) {{ {PUT} ++m; --e; }}",
    "the end is another": f"for (int j = 0; j < w && m < K; ++j) if ({HIT} && m < 3) {{ {PUT} ++m; }}",
    "the end is in memory": f"for (int j = 0; j < w && m < c[i]; ++j) if ({HIT}) {{ {PUT} ++m; }}",
    "it may begin full": f"m = c[i]; {LOOP} if ({HIT}) {{ {PUT} if (++m == K) break; }}",
    "it begins full": f"{LOOP} if ({HIT}) {{ {PUT} if (++m == 0) break; }}",
    "it ends by data": f"{LOOP} {{ if (b[j] > 1) break; if ({HIT}) {{ {PUT} ++m; }} }}",
    "the second fills": f"{LOOP} if ({HIT}) {{ if (m == 1) o[i * 3 * w] = -1; {PUT} ++m; }}",
    "filled behind the first": f"{LOOP} if ({HIT}) {{ {PUT} if (m == 0) o[i * 3 * w + 1] = -1; ++m; }}",
    "may divide by nothing behind the end": f"for (int j = 0; j < w && m < K; ++j) if (7 / c[i * w + j] > 2) {{ {PUT} ++m; }}",
    "loads that may not be there": f"for (int j = 0; j < 2 * w && m < K; ++j) if (a[i * w + j] > 0) {{ {PUT} ++m; }}",
    "another name of it": f"int& q = m; {LOOP} if ({HIT}) {{ {PUT} ++q; }}",
    "a pointer to it": f"int* q = &m; {LOOP} if ({HIT}) {{ {PUT} ++m; *q += 0; }}",
    "a name that hides it": f"{LOOP} if ({HIT}) {{ {PUT} int m = 3; ++m; }}",
    "an end that counts itself": f"for (int j = 0; j < w && m <= 3; ++j) if ({HIT}) {{ {PUT} ++m; }}",
    "an end as a number of floats": f"for (int j = 0; j < w && m < 2.5f; ++j) if ({HIT}) {{ {PUT} ++m; }}",
    "two ends": f"{LOOP} {{ if (m >= 3) break; if ({HIT}) {{ {PUT} if (++m >= K) break; }} }}",
    "it leaves the kernel": f"{LOOP} if ({HIT}) {{ {PUT} ++m; if (m >= K) return; }}",
    "a place by a pointer that moves": f"int* p = o + i * 3 * w; {LOOP} if ({HIT}) {{ *p++ = j; ++m; }}",
    "a place by a product": f"{LOOP} if ({HIT}) {{ o[i * 3 * w + m * j] = j; ++m; }}",
    "a place by two counts": f"{LOOP} if ({HIT}) {{ o[i * 3 * w + m + m] = j; ++m; }}",
    "marks that meet": f"{LOOP} if ({HIT}) {{ {PUT} v[i * w + j / 2] = m; ++m; }}",
    "a clock": f"{LOOP} if ({HIT} && clock() > 0) {{ {PUT} ++m; }}",
    "it prints": f'{LOOP} if ({HIT}) {{ printf("%d", j); {PUT} ++m; }}',
    "what it calls prints": f"{LOOP} if (asks(j)) {{ {PUT} ++m; }}",
    "the counter moves": f"{LOOP} if ({HIT}) {{ {PUT} ++m; ++j; }}",
}  # fmt: skip


@pytest.mark.parametrize("name", sampled(STAY, every=4))
def test_lists_that_lanes_may_not_append_to(name: str) -> None:
    _, found = made(STAY[name])
    assert refused(found)


def test_an_array_that_is_its_own_list_stays() -> None:
    rows = ROWS.replace("block(64)", "block(64) args(a, b, o, o, v, n, h, w, d)")
    _, found = made(f"{LOOP} if (c[i * 3 * w + j] < 5) {{ {PUT} ++m; }}", rows)
    assert refused(found)
    _, found = made(f"{LOOP} if ({HIT}) {{ {PUT} ++m; }}", rows)
    assert written(found)
