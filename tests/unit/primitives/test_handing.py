"""Sums that a function is handed and gives back, in all spellings, and what references lead to."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.expanded import expanded
from optiml_magic.kernels.primitives.fields import fields

from .running import same
from .shapes import applied, kernel, refused

BODIES = """\
struct Sum { float x, y; };
struct Two { Sum a; float b; };
%s
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float4* p, const int* at, float* out, int n, float eps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    %s acc = %s;
    for (int j = 0; j < n; j++) { %s }
    out[i] = acc.x + 3.0f * acc.y;
}
"""
SHAPES = {"p": ("n", "4"), "at": ("i4", "n"), "out": ("n",)}
DIFFER = "float dx = b.x - a.x, dy = b.y - a.y, w = b.w / (dx * dx + dy * dy + eps);"
ADD = "acc.x += dx * w; acc.y += dy * w;"
BY_REF = "(const float4& a, const float4& b, {} acc, float eps)"
SPELLINGS = {
    "by value": ("float2 f" + BY_REF.format("float2"), DIFFER + ADD + "return acc;",
                 "float2", "acc = f(p[i], p[j], acc, eps);"),
    "made anew": ("float2 f" + BY_REF.format("float2"),
                  DIFFER + "return make_float2(acc.x + dx * w, acc.y + dy * w);",
                  "float2", "acc = f(p[i], p[j], acc, eps);"),
    "a copy": ("float2 f" + BY_REF.format("float2"),
               DIFFER + "float2 r = acc; r.x += dx * w; r.y += dy * w; return r;",
               "float2", "acc = f(p[i], p[j], acc, eps);"),
    "a copy behind others": (
        "float2 f" + BY_REF.format("const float2&"),
        DIFFER + "float2 r = acc; if (dx > 0.5f) return r; r.x += dx * w; r.y += dy * w; return r;",
        "float2", "acc = f(p[i], p[j], acc, eps);"),
    "by a const reference": ("float2 f" + BY_REF.format("const float2&"),
                             DIFFER + "return make_float2(acc.x + dx * w, acc.y + dy * w);",
                             "float2", "acc = f(p[i], p[j], acc, eps);"),
    "by reference": ("void f" + BY_REF.format("float2&"), DIFFER + ADD, "float2",
                     "f(p[i], p[j], acc, eps);"),
    "member by member": ("void f(const float4& a, const float4& b, float& ax, float& ay, float eps)",
                         DIFFER + "ax += dx * w; ay += dy * w;", "float2",
                         "f(p[i], p[j], acc.x, acc.y, eps);"),
    "a structure": ("Sum f" + BY_REF.format("Sum"), DIFFER + ADD + "return acc;", "Sum",
                    "acc = f(p[i], p[j], acc, eps);"),
    "a structure made anew": ("Sum f" + BY_REF.format("Sum"),
                              DIFFER + "return Sum{acc.x + dx * w, acc.y + dy * w};", "Sum",
                              "acc = f(p[i], p[j], acc, eps);"),
    "a structure by reference": ("void f" + BY_REF.format("Sum&"), DIFFER + ADD, "Sum",
                                 "f(p[i], p[j], acc, eps);"),
    "elements by value": ("float2 f(float4 a, float4 b, float2 acc, float eps)",
                          DIFFER + ADD + "return acc;", "float2", "acc = f(p[i], p[j], acc, eps);"),
    "a local": ("float2 f" + BY_REF.format("float2"), DIFFER + ADD + "return acc;",
                "float2", "float4 q = p[j]; acc = f(p[i], q, acc, eps);"),
    "elsewhere": ("float2 f" + BY_REF.format("float2"), DIFFER + ADD + "return acc;",
                  "float2", "acc = f(p[i], p[at[j] & 7], acc, eps);"),
    "near ones alone": ("float2 f" + BY_REF.format("float2"),
                        DIFFER + "if (dx > 0.5f) return acc;" + ADD + "return acc;", "float2",
                        "acc = f(p[i], p[j], acc, eps);"),
    "near ones by reference": ("void f" + BY_REF.format("float2&"),
                               DIFFER + "if (dx > 0.5f) return; if (!(dy < 0.9f)) { return; }" + ADD,
                               "float2", "f(p[i], p[j], acc, eps);"),
    "others alone": ("float2 f" + BY_REF.format("float2"), DIFFER + ADD + "return acc;",
                     "float2", "if (i != j) acc = f(p[i], p[j], acc, eps);"),
}  # fmt: skip


def written(spelling: tuple[str, str, str, str]) -> str:
    head, body, kind, call = spelling
    begun = "{0.0f, 0.0f}" if kind == "Sum" else "make_float2(0.0f, 0.0f)"
    return BODIES % (f"__device__ {head} {{ {body} }}", kind, begun, call)


@pytest.mark.parametrize("case", SPELLINGS)
def test_all_spellings_are_the_same_sums(case: str) -> None:
    text = written(SPELLINGS[case])
    made = expanded(kernel(text))
    whole = where_legal(fields, applied(made))
    sums = {r.place for r in whole.reading.reductions if r.op == "+"}
    assert sums == {"acc_x", "acc_y"}, whole.program.text
    # Where a branch stands around a sum, a compiler may fuse another product with it.
    same(text, whole, SHAPES, {"n": 70, "eps": 1}, rounds="if (dx" in text)


def test_a_number_is_a_sum_as_well() -> None:
    text = written(SPELLINGS["by value"])
    text = text.replace("float2 f(", "float f(").replace("float2 acc, float", "float acc, float")
    text = text.replace(ADD, "acc += dx * w + dy;").replace(
        "float2 acc = make_float2(0.0f, 0.0f)", "float acc = 0.0f"
    )
    text = text.replace("acc.x + 3.0f * acc.y", "acc")
    made = expanded(kernel(text))
    assert {r.place for r in applied(made).reading.reductions} == {"acc"}
    same(text, made, SHAPES, {"n": 70, "eps": 1})


def stays(made: Kernel | Refused) -> bool:
    return isinstance(made, Refused) and made.reason.startswith("it calls no function")


BY_VALUE = SPELLINGS["by value"]
ALIASES = {
    "the sum itself": "acc = f(p[i], make_float4(acc.x, acc.y, 1.0f, 1.0f), acc, eps);",
    "a reference to the sum": "float2& s = acc; acc = f(p[i], make_float4(s.x, s.y, 1, 1), acc, eps);",
    "a pointer to the sum": "float2* s = &acc; acc = f(p[i], make_float4(s->x, s->y, 1, 1), acc, eps);",
    "two sums": "float2 s = acc; acc = f(p[i], p[j], s, eps);",
    "a size of its name": "float eps = 2.0f; acc = f(p[i], p[j], acc, eps);",
    "names of the function": "float dx = 1.0f, w = 2.0f; acc = f(p[i], p[j], acc, dx * w);",
    "converted": "acc = f(p[i], p[j], acc, n);",
}


@pytest.mark.parametrize("call", ALIASES.values(), ids=ALIASES)
def test_what_else_leads_to_the_sum_sees_what_it_was(call: str) -> None:
    head, body, kind, _ = BY_VALUE
    text = written((head, body, kind, call))
    made = expanded(kernel(text))
    if not stays(made):
        same(text, made, SHAPES, {"n": 70, "eps": 1})


REFERENCES = {
    "a sum that is asked for as well": (
        "void f(const float2& from, float2& acc, float v)",
        "float w = v; acc.x += w; acc.y += from.x; acc.x += from.y;", "f(acc, acc, p[j].x);"),
    "a number by value beside its reference": (
        "void f(float x, float& to, float v)",
        "float w = v; to += w; to += x; to += x;", "f(acc.x, acc.x, p[j].x);"),
    "a local by value beside its reference": (
        "void f(float2 from, float2& acc, float v)",
        "float w = v; acc.x += w; acc.y += from.x; acc.x += from.y;", "f(acc, acc, p[j].x);"),
    "a local by value beside another name of it": (
        "void f(float2 from, float2& acc, float v)",
        "float w = v; acc.x += w; acc.y += from.x;", "float2& s = acc; f(acc, s, p[j].x);"),
    "a copy of what changes": (
        "void f(const float& x, float& to, float v)",
        "float w = v; to += w; to += x;", "double d = acc.x; f(d, acc.y, p[j].x); acc.x = d;"),
    "swapped members": (
        "void f(float& x, float& y, float v)",
        "float w = x; x += y * v; y += w;", "f(acc.y, acc.x, p[j].x * 0.01f);"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFERENCES)
def test_references_lead_where_they_led(case: str) -> None:
    head, body, call = REFERENCES[case]
    text = written((head, body, "float2", call))
    made = expanded(kernel(text))
    assert not stays(made)
    same(text, made, SHAPES, {"n": 70, "eps": 1})


KEPT = {
    "perhaps not there": (BY_VALUE[0], "float dx = eps; if (dx > 9.0f) { acc.x += b.x; } acc.x += a.x; return acc;",
                          "acc = f(p[i], p[n * n + j], acc, eps);"),
    "not there after a way out": (
        BY_VALUE[0], "if (eps > 0.0f) return acc; acc.x += b.x; return acc;",
        "acc = f(p[i], p[n * n + j], acc, eps);"),
    "not there on a side": (BY_VALUE[0], "float v = eps > 9.0f ? b.x : a.x; acc.x += v; return acc;",
                            "acc = f(p[i], p[n * n + j], acc, eps);"),
    "not there by and": (BY_VALUE[0], "bool v = eps > 9.0f && b.x > 1.0f; acc.x += v + a.x; return acc;",
                         "acc = f(p[i], p[n * n + j], acc, eps);"),
    "its address": (BY_VALUE[0], "const float4* q = &b; acc.x += q[1].x + a.x + b.x; return acc;",
                    "acc = f(p[i], p[0], acc, eps);"),
    "a copy of what changes elsewhere": (
        "float2 f(const float2& from, float2& to, float v)",
        "to.x += v; float2 r = from; r.y += to.x; return r;", "acc.y = f(acc, acc, p[j].x).y;"),
    "an element of a local array": (
        "void f(const float& x, float& to, float v)", "float w = v; to += w; to += x;",
        "float s[2] = {acc.x, acc.y}; f(s[0], s[1], p[j].x); acc.y = s[1];"),
    "a number that is another": ("void f(double& x, float v)", "float w = v; x += w;",
                                 "f((double&)acc, p[j].x);"),
    "within a sum": ("float f(float& x, float v)", "float w = v; x += w; return x;",
                     "acc.y = f(acc.x, p[j].x) + f(acc.x, 1.0f);"),
    "two ways that differ": (BY_VALUE[0], DIFFER + "if (dx > 0.5f) return make_float2(0.0f, dy);" + ADD + "return acc;",
                             "acc = f(p[i], p[j], acc, eps);"),
    "a store to where it leads": (
        "float2 f(float* out, const float& x, float2 acc)",
        "out[0] = acc.x; acc.x += x; acc.y += x; return acc;", "acc = f(out + i, out[i], acc);"),
}  # fmt: skip


@pytest.mark.parametrize("case", KEPT)
def test_what_a_copy_would_change_stays_a_call(case: str) -> None:
    head, body, call = KEPT[case]
    reason, _ = refused(expanded(kernel(written((head, body, "float2", call)))))
    assert reason.startswith("it calls no function")


HIDDEN = {
    "a name of the function that a local hides": (
        "__constant__ float w0 = 2.0f; __device__ void f(float2& s, float v) { s.x += v * w0; s.y += v; }",
        "float w0 = p[j].y; f(acc, w0);"),
    "two functions of a name": (
        """__device__ void f(float2& s, float v) { s.x += v; s.y += v; }
        __device__ void f(float2& s, int v) { s.x -= v; s.y -= v; }""", "f(acc, p[j].x);"),
    "one that comes back to itself": (
        "__device__ void f(float2& s, float v) { s.x += v; s.y += v; if (v > 0.5f) f(s, v - 0.5f); }",
        "f(acc, p[j].x);"),
    "a part of a union of names": (
        "__device__ void f(float2& s, float2& t, float v) { s.x += v; t.y += s.x; s.y += t.x; }",
        "float2 q = acc; f(acc, q, p[j].x); acc.x += q.y;"),
    "a pointer to what is changed": (
        "__device__ void f(float2& s, const float* v) { s.x += *v; s.y += *v; s.x += *v; }",
        "f(acc, &acc.y);"),
    "what is changed while it is added": (
        "__device__ float2 f(float2 s, float v) { float k = v; s.x += k; k = s.x; s.y += k; return s; }",
        "acc = f(acc, p[j].x);"),
    "what is begun as another": (
        "__device__ float2 f(float2 s, float2 t) { float2 r = t; r.x += s.y; r.y += s.x; return r; }",
        "acc = f(acc, make_float2(p[j].x, p[j].y));"),
    "a copy that is made late": (
        "__device__ float2 f(float2 s, float v) { s.x += v; float2 r = s; r.y += s.x; return r; }",
        "acc = f(acc, p[j].x);"),
    "a copy that is asked for beside it": (
        "__device__ float2 f(float2 s, float v) { float2 r = s; r.x += v; r.y += s.x; return r; }",
        "acc = f(acc, p[j].x);"),
    "a parameter that is moved": (
        "__device__ float2 f(float2 s, int n) { float k = 0.0f; while (n-- > 0) k += 1.0f; s.x += k; s.y += n; return s; }",
        "acc = f(acc, j);"),
    "whole numbers that wrap around": (
        "__device__ unsigned f(unsigned s, unsigned v) { unsigned k = v * 2654435761u; s += k; return s; }",
        "unsigned h = j; h = f(h, h ^ 77u); acc.x += h & 7u;"),
    "not a number": (
        "__device__ float2 f(float2 s, const float4& b) { if (!(b.x > 0.5f)) return s; s.x += b.y / (b.x - b.x); s.y += 1; return s; }",
        "acc = f(acc, p[j]);"),
}  # fmt: skip


@pytest.mark.parametrize("case", HIDDEN)
def test_it_means_the_same_or_stays(case: str) -> None:
    functions, call = HIDDEN[case]
    text = BODIES % (functions, "float2", "make_float2(0.0f, 0.0f)", call)
    made = expanded(kernel(text))
    if not stays(made):
        same(text, made, SHAPES, {"n": 70, "eps": 1}, rounds=True)
        whole = where_legal(fields, applied(made))
        same(text, whole, SHAPES, {"n": 33, "eps": 1}, rounds=True)
