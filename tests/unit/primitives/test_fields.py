"""Local vectors that change become locals for their members, and those that others reach stay."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.fields import fields
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from optiml_magic.proposers.rewrites.split_reduction import SplitReduction
from tests.ideas import asked, made
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
struct Hit { float t; int id; };  // nearest (so far)
struct Sum { float s; void add(float x) { s += x; } };
__device__ Hit none() { Hit h; h.t = 9; h.id = -1; return h; }
__device__ float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); }
__device__ float3 operator*(float3 a, float s) { return make_float3(a.x * s, a.y * s, a.z * s); }
__device__ void operator+=(float3& a, float3 b) { a.x += b.x; a.y += b.y; a.z += b.z; }
__device__ void operator-=(float3& a, float3 b) { a.x -= b.x; a.y -= b.z; a.z -= b.y; }
__device__ float3 from(float4 v) { return make_float3(v.x, v.y, v.z); }
__device__ void bump(float3& v) { v.x += 1; }
__device__ float length2(float3 v) { return v.x * v.x + v.y; }
__global__ void k(const float4* p, float3* o, float2* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    %s
}
"""
ARRAYS = {
    "p": Array("f4", ("n", "4")), "o": Array("f4", ("n", "3"), "zeros"),
    "c": Array("f4", ("n", "2"), "zeros"),
}  # fmt: skip
ROUNDS = "for (int j = 0; j < n; j++)"


@pytest.mark.parametrize(
    "body",
    [
        (
            f"float3 a = make_float3(0, 1, 0); {ROUNDS} {{ float4 q = p[j]; a.x += q.x; a.y -= q.y * q.w; "
            "a.z += length2(a); } o[i] = a;"
        ),
        f"float2 s = {{0, 1}}; {ROUNDS} s = make_float2(s.x + p[j].x, s.y + p[j].y); c[i] = s;",
        (
            f"short2 s = make_short2(0, 70000); {ROUNDS} {{ s.x += j; s.y = s.x * 30000; }} "
            "c[i] = make_float2(s.x, s.y);"
        ),
        (
            f"uchar4 m = make_uchar4(1, 2, 3, i); {ROUNDS} {{ m.x -= 5; if (m.w < j) m.w = 2 * j; }} "
            "uchar4 t = m; c[i] = make_float2(t.x, t.w - t.z);"
        ),
        f"float2 s = {{}}; {ROUNDS} {{ s.x += p[j].x; s.y -= s.x; }} c[i] = s;",
        f"float4 s{{1, p[i].y}}; {ROUNDS} {{ s.x += p[j].x; s.w -= s.x; }} c[i] = make_float2(s.y, s.w);",
        f"Hit h{{}}; {ROUNDS} {{ h.t -= p[j].x; h.id += j; }} c[i] = make_float2(h.t, h.id);",
        f"Hit h = {{2.0f}}; {ROUNDS} {{ h.t -= p[j].x; h.id += j; }} c[i] = make_float2(h.t, h.id);",
        f"Hit h{{none()}}; {ROUNDS} {{ h.t -= p[j].x; h.id += j; }} c[i] = make_float2(h.t, h.id);",
        f"float2 s{{0, 1}}; {ROUNDS} s = make_float2(s.y + p[j].x, s.x * 0.5f); c[i] = s;",
        (
            f"float4 s = p[i]; {ROUNDS} {{ s.w += p[j].w; if (j == 3) s = p[0]; }} "
            "c[i] = make_float2(s.w, s.x);"
        ),
        (
            f"float2 s; s.x = s.y = 0; {ROUNDS} {{ s.x++; if (j > 3) s = make_float2(j, s.x); }} "
            "c[i].x = s.x; o[i].x = (i > 2 ? s : make_float2(0, 0)).y;"
        ),
        (
            f"Hit h; h.t = 9; h.id = -1; {ROUNDS} if (p[j].x < h.t) {{ h.t = p[j].x; h.id = j; }} "
            "c[i] = make_float2(h.t, h.id);"
        ),
        f"Hit h = {{9, -1}}; {ROUNDS} if (p[j].x < h.t) h = Hit{{p[j].x, j}}; c[i].x = h.t + h.id;",
        f"Hit h = none(); {ROUNDS} {{ if (j == 3) h = none(); h.id += j; }} Hit g = h; c[i].x = g.id;",
        f"float3 a = make_float3(0, 0, 1); {ROUNDS} a += from(p[j]) * p[j].w; o[i] = a;",
        f"float3 a = from(p[i]); {ROUNDS} {{ float3 d = from(p[j]); a = a + d * 0.5f; }} o[i] = a;",
        f"int2 s = make_int2(0, 7); {ROUNDS} {{ s.x += j; s.y = max(s.y, s.x); }} c[i].x = s.y;",
        (
            f"float3 d; float t = 0; {ROUNDS} {{ d.x = p[j].x; d.y = d.z = p[j].y; t += length2(d); }} "
            "c[i].y = t;"
        ),
        (
            f"Hit h = {{9, -1}}; {ROUNDS} {{ Hit g; g.t = p[j].x; g.id = j; if (g.t < h.t) h = g; }} "
            "c[i] = make_float2(h.t, h.id);"
        ),
        (
            f"Hit h = {{9, -1}}; {ROUNDS} {{ const Hit g = {{p[j].x, j}}; h = g.t < h.t ? g : h; }} "
            "c[i] = make_float2(h.t, h.id);"
        ),
        (
            f"Hit h = {{9, -1}}, *q = 0; Hit e = {{3, 4}}; {ROUNDS} {{ Hit g = {{p[j].x, j}}; Hit f = e; e = g; "
            "e = j < 3 ? f : p[j].y < 0 ? Hit{p[j].z, e.id} : g; } c[i] = make_float2(e.t, e.id);"
        ),
        (
            f"float2 s = {{0, 1}}, t = {{2, 3}}; {ROUNDS} {{ float2 u = {{p[j].x, 1}}; s.x += u.x; "
            "if (j % 3 == 1) { u = s; s = u; s = s; } s = j == 4 ? s : u; } c[i] = s;"
        ),
    ],
)
def test_members_become_locals(body: str) -> None:
    after = written(fields(kernel_of(TEXT % body)))
    assert after != TEXT % body
    assert end_of(TEXT % body, after, ARRAYS, {"n": 40}, {"n": 5}) == "same"


@pytest.mark.parametrize(
    "body",
    [
        f"float3 a = make_float3(0, 0, 0); {ROUNDS} {{ bump(a); a.y += 1; }} o[i] = a;",
        f"float3 a = make_float3(0, 0, 0); {ROUNDS} {{ float* q = &a.x; q[1] += 1; a.y += 1; }} o[i] = a;",
        f"float3 a = make_float3(0, 0, 0); float3& b = a; {ROUNDS} {{ b.x += 1; a.y += 1; }} o[i] = a;",
        "float3 a = make_float3(0, 0, 0); a.x = 1; o[i] = a;",
        f"float4 a[2]; {ROUNDS} a[j % 2].x += 1; c[i].x = a[0].x;",
        f"float2 a = c[i], b = a; {ROUNDS} a.x += 1; c[i] = a;",
        f"{ROUNDS} c[i].x += p[j].x;",
        f"float3 a = make_float3(0, 0, 1); {ROUNDS} a -= from(p[j]); o[i] = a;",
        f"Sum s; s.s = 0; {ROUNDS} s.add(p[j].x); c[i].x = s.s;",
    ],
)
def test_others_stay(body: str) -> None:
    assert refused(fields(kernel_of(TEXT % body))) == "no member of a local changes"


def test_what_is_given_as_a_whole_is_given_by_members() -> None:
    body = f"Hit h = {{9, -1}}; {ROUNDS} {{ Hit g = {{p[j].x, j}}; if (g.t < h.t) h = g; }} c[i].x = h.t;"
    after = written(fields(kernel_of(TEXT % body)))
    assert "h_t = g_t;" in after
    assert "h_id = g_id;" in after
    assert "Hit{" not in after


def test_sums_in_vectors_are_seen_to_be_sums() -> None:
    body = (
        f"float3 a = make_float3(0, 0, 0); {ROUNDS} {{ a.x += p[j].x; a.y += p[j].y; }} o[i] = a;"
    )
    for one in made(asked(SplitReduction(), TEXT % body)[0]):
        assert end_of(TEXT % body, one.text, ARRAYS, {"n": 40}, {"n": 5}, rounds=True) == "same"


def test_products_of_complex_numbers_are_products() -> None:
    text = """\
#pragma optiml launch k grid(cdiv(n, 16), cdiv(n, 16)) block(16, 16)
__global__ void k(const float2* a, const float2* b, float2* c, int n) {
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    if (row >= n || col >= n) return;
    float2 s = make_float2(0, 0);
    for (int k = 0; k < n; k++) {
        float2 x = a[row * n + k], y = b[k * n + col];
        s.x += x.x * y.x - x.y * y.y;
        s.y += x.x * y.y + x.y * y.x;
    }
    c[row * n + col] = s;
}
"""
    arrays = {name: Array("f4", ("n", "n", "2")) for name in "ab"}
    arrays["c"] = Array("f4", ("n", "n", "2"), "zeros")
    ideas, _ = asked(BlockedProduct(), text)
    (one, *_) = made(ideas)
    assert "float2{}" in one.text
    assert end_of(text, one.text, arrays, {"n": 33}, {"n": 5}, rounds=True) == "same"
