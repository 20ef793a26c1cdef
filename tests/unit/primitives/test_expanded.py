"""Functions with loops, in the place of their calls."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.expanded import all_expanded, expanded
from optiml_magic.source.program import parse_program

from .running import same
from .shapes import applied, kernel, refused

PAIRS = """\
__device__ float inner(const float* a, const float* b, int n) {
    float s = 0.0f;
    for (int i = 0; i < n; i++) s += a[i] * b[i];
    return s;
}
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, const float* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float* row = a + i * 7;
    float s = inner(row, b, 7);
    out[i] = s;
}
"""
SHAPES = {"a": ("n", "7"), "b": ("n + 7",), "out": ("n",)}
CALL = "float s = inner(row, b, 7);"
ALONE = "__device__ float inner"
FEW = "__device__ int few(int n) { int c = 0; for (int i = 0; i < n; ++i) c += i; return c; }\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (CALL, CALL),
        (CALL, "float s = inner(row, b, 7) / (sqrtf(inner(row, row, 7)) + inner(b, b, 3) + 1.0f);"),
        (CALL, "float s = 0.0f; if (inner(row, b, 7) > 0.0f) s = 1.0f; else if (inner(b, b, 2) > 1.0f) s = 2.0f;"),
        (CALL, "float s = 1.0f; for (int j = 0; j < 3; ++j) s += inner(row + j, b, 7 - j);"),
        (CALL, "float s; s = inner(row, b, n < 7 ? n : 7);"),
        (CALL, "float s = inner(row, b, 3), t = inner(row, b, abs((int)s) % 7); s += t;"),
        (CALL, "float t = inner(b, b, 2), s = inner(row, b, 7) * t, u = s; s += u;"),
        (CALL, "const float *at = row + 0, *end = at + 7; int m = end - at, z = 0; float q = z, s = inner(at, b, m);"),
        (CALL, "float s = 2.0f, &t = s, part[2] = {s, inner(row, b, 7)}; t = part[0] - part[1];"),
        (CALL, "float s = 0.0f; switch (i % 2) { case 0: { float u = 1.0f, v = inner(row, b, 7); s = u + v; } }"),
        (CALL, "float s = fabsf(inner(row, b, (int)inner(b, b, 1) % 7));"),
        ("return s;", "return s * n;"),
        ("float s = 0.0f;\n    for", "double s = 0.0;\n    for"),
        ("float s = 0.0f;\n    for (int i = 0; i < n; i++) s += a[i] * b[i];",
         "float s = 0.0f;\n    while (n-- > 0) s += *a++ * b[n];"),
        ("float s = 0.0f;\n    for (int i = 0; i < n; i++) s += a[i] * b[i];",
         ("float kept[8], s = 0.0f;\n    for (int i = 0; i < n; i++) kept[i] = a[i];\n"
          "    for (int i = 0; i < n; i++) { if (kept[i] < 0.0f) continue; s += kept[i] * b[i]; }")),
        (ALONE, FEW + ALONE),
    ],
)  # fmt: skip
def test_the_body_stands_where_it_is_called(old: str, new: str) -> None:
    text = PAIRS.replace(old, new, 1)
    text = (
        text.replace("i < n; i++) s += a", "i < few(n) % 7; i++) s += a") if "few" in new else text
    )
    made = expanded(kernel(text))
    body = applied(made).program.text.split("__global__")[1]
    assert "inner(" not in body
    assert "for (" in body or "while (" in body
    same(text, made, SHAPES, {"n": 70})


def test_a_function_that_stores_stands_alone() -> None:
    filled = "__device__ void fill(float* to, float v, int n) { for (int j = 0; j < n; j++) to[j] = v; }\n"
    text = filled + PAIRS.replace("out[i] = s;", "fill(out + i, s, 1);")
    made = expanded(kernel(text))
    assert "fill(" not in applied(made).program.text.split("__global__")[1]
    same(text, made, SHAPES, {"n": 70})


PULL = """\
__device__ float3 pulled(float3 sum, float4 me, float4 other) {
    float dx = other.x - me.x, dy = other.y - me.y;
    float w = 1.0f / sqrtf(dx * dx + dy * dy + 0.01f);
    sum.x += dx * w;
    sum.y += dy * w;
    sum.z += w;
    return sum;
}
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float4* body, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float3 acc = make_float3(0.0f, 0.0f, 0.0f);
    for (int j = 0; j < n; j++) acc = pulled(acc, body[i], body[j]);
    out[i] = acc.x + acc.y + acc.z;
}
"""


def test_a_sum_of_vectors_is_handed_on() -> None:
    made = expanded(kernel(PULL))
    body = applied(made).program.text.split("__global__")[1]
    assert "acc.x += dx_2 * w_2;" in body
    assert "pulled" not in body
    same(PULL, made, {"body": ("n", "4"), "out": ("n",)}, {"n": 70})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "pulled(acc, body[i], body[j])",
            "pulled(acc, body[i], make_float4(acc.x, 1.0f, 0.0f, 0.0f))",
        ),
        ("return sum;", "return make_float3(sum.x, sum.y, 0.0f);"),
    ],
)
def test_a_sum_that_is_no_more_than_a_copy(old: str, new: str) -> None:
    text = PULL.replace(old, new)
    made = expanded(kernel(text))
    assert "float3 sum_2 = acc;" in applied(made).program.text
    same(text, made, {"body": ("n", "4"), "out": ("n",)}, {"n": 70})


def test_a_vector_that_is_not_handed_on() -> None:
    text = PULL.replace("acc = pulled(", "{ float3 other = pulled(")
    text = text.replace("body[j]);", "body[j]); acc.x += other.x; }")
    assert refused(expanded(kernel(text)))[0].startswith("it calls no function with a loop")


STAYS = {
    "no loop and no load": ("for (int i = 0; i < n; i++) s += a[i] * b[i];", "s = n * 0.5f;"),
    "two ways out": ("s += a[i] * b[i];", "{ s += a[i] * b[i]; if (s > 9.0f) return s; }"),
    "a branch": (CALL, "float s = i > 3 ? inner(row, b, 7) : 0.0f;"),
    "and": (CALL, "bool s = i > 3 && inner(row, b, 7) > 0.0f;"),
    "a head": (CALL, "float s = 0.0f; for (int j = 0; j < inner(b, b, 1); ++j) s += 1.0f;"),
    "changes beside it": (CALL, "int j = 0; float s = inner(row, b, j++ + 3);"),
    "stores": ("s += a[i] * b[i];", "{ ((float*)a)[i] = 1.0f; s += b[i]; }"),
    "several in a head": (CALL, "float s = 0.0f; for (float q = 1.0f, t = inner(row, b, 3); q < 3.0f; q += 1.0f) s += t;"),
    "stores by an arrow": ("s += a[i] * b[i];", "{ ((float4*)a)->x = 1.0f; s += b[i]; }"),
    "a template": (ALONE, "template <int W> __device__ float inner"),
    "a reference": ("const float* b, int n) {\n    float s", "const float*& b, int n) {\n    float s"),
    "itself": ("return s;", "return n > 99 ? inner(a, b, n / 2) : s;"),
}  # fmt: skip


@pytest.mark.parametrize("swap", STAYS.values(), ids=STAYS)
def test_functions_that_stay(swap: tuple[str, str]) -> None:
    old, new = swap
    assert old in PAIRS
    text = PAIRS.replace(old, new, 1)
    text = (
        text.replace(CALL, "float s = 1.0f + inner(row, b, 7);")
        if "= 1.0f; s += b" in new
        else text
    )
    text = text.replace("inner(row", "inner<3>(row") if "template" in new else text
    reason, _ = refused(expanded(kernel(text)))
    assert reason == "it calls no function with a loop or a load that may stand in its place"
    program = parse_program(text)
    assert all_expanded(program) is program


INSERTED = """\
__device__ void insert(float* best, float v) {
    if (!(v > best[2])) return;
    int p = 2;
    while (p > 0 && best[p - 1] < v) { best[p] = best[p - 1]; --p; }
    best[p] = v;
}
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, const float* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float best[3] = {-9, -9, -9};
    for (int j = 0; j < 7; j++) insert(best, a[i * 7 + j] * b[i + j]);
    out[i] = best[2] + 2 * best[1] + 4 * best[0];
}
"""


@pytest.mark.parametrize("end", ["", " return;"])
def test_a_function_with_nothing_to_return_may_end_early(end: str) -> None:
    text = INSERTED.replace("best[p] = v;\n", f"best[p] = v;{end}\n")
    if end:
        refused(expanded(kernel(text)))
        return
    made = expanded(kernel(text))
    body = applied(made).program.text.split("__global__")[1]
    assert "insert(" not in body
    assert "return;" not in body.split("best[3]")[1]
    same(text, made, SHAPES, {"n": 70})


LENT = """\
__device__ float middle(float* v, int count) {
    for (int i = 0; i < count; i++) {
        for (int j = i + 1; j < count; j++) {
            if (v[j] < v[i]) { float t = v[i]; v[i] = v[j]; v[j] = t; }
        }
    }
    return v[count / 2];
}
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, const float* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float u[7], w[7];
    for (int j = 0; j < 7; j++) { u[j] = a[i * 7 + j]; w[j] = b[i + j]; }
    out[i] = middle(u, 7) - middle(w, 5);
}
"""
MIDDLES = "middle(u, 7) - middle(w, 5)"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (MIDDLES, MIDDLES),
        ("float* v", "float v[7]"),
        (MIDDLES, "middle(u, 7); out[i] += u[0] * middle(w, 7) + u[6]"),
        ("out[i] = middle(u, 7) - ", "float m = fabsf(middle(u, 7)); out[i] = m * "),
        ("float t = v[i]; v[i] = v[j]; v[j] = t;", "exchanged(v[i], v[j]);"),
        ("return v[count / 2];", "float last = v[count - 1]; v[0] = last; return v[count / 2];"),
    ],
)
def test_a_local_array_is_lent(old: str, new: str) -> None:
    helper = "__device__ void exchanged(float& p, float& q) { float t = p; p = q; q = t; }\n"
    assert old in LENT
    text = (helper if "exchanged" in new else "") + LENT.replace(old, new, 1)
    made = expanded(kernel(text))
    body = applied(made).program.text.split("__global__")[1]
    assert "middle(" not in body
    assert "u[j_" in body
    assert "*v" not in body.replace("* v", "*v")
    same(text, made, SHAPES, {"n": 70})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (MIDDLES, "u[0] - middle(u, 7)"),
        (MIDDLES, "middle(u, 7) - middle(u, 5)"),
        ("out[i] =", "float* p = u; out[i] = p[0] *"),
        ("out[i] =", "float* p = &u[2]; out[i] = p[0] *"),
        ("out[i] =", "float& p = u[2]; out[i] = p *"),
        ("return v[count / 2];", "float s = 0.0f; for (int i = 0; i < 3; ++i) s += *v++; return s;"),
        ("return v[count / 2];", "float* p = v + 1; return p[0];"),
        ("v[j] = t;", "bumped(((float*)(size_t)count)[0]); v[j] = t;"),
    ],
)  # fmt: skip
def test_local_arrays_that_are_not_lent(old: str, new: str) -> None:
    assert old in LENT
    helper = "__device__ void bumped(float& p) { p = 1.0f; }\n"
    text = helper + LENT.replace(old, new, 1).replace(" - middle(w, 5)", "")
    assert refused(expanded(kernel(text)))[0].startswith("it calls no function with a loop")


WITHIN = """\
__device__ float pixel(const float* a, int x, int n) {
    if (x < 0) x = 0;
    if (x >= n) x = n - 1;
    return a[x];
}
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0.0f;
    for (int d = -2; d <= 2; d++) s += d * pixel(a, i + d, n);
    out[i] = s;
}
"""
CLAMPS = "if (x < 0) x = 0;\n    if (x >= n) x = n - 1;\n    return a[x];"


@pytest.mark.parametrize(
    ("old", "new", "seen"),
    [
        (CLAMPS, CLAMPS, "x_2 = 0;"),
        (CLAMPS, "if (x < 0 || x >= n) return 1.0f;\n    return a[x];", "? 1.0f : a[x"),
        (CLAMPS, "if (x < 0) { return 2.0f; }\n    int y = x + 1;\n    if (y > n) return 3.0f;\n    return a[y - 1];", "? 3.0f : a[y"),
        (CLAMPS, "if (x < 0 || x >= n) { return 0; } else { return a[x]; }", "? 0 : a[x"),
        (CLAMPS, "return x < 0 ? a[0] : x >= n ? a[n - 1] : a[x];", "? a[0] :"),
        ("s += d * pixel(a, i + d, n);", "{ float v = pixel(a, i + d, n); s += d * v; }", "float v = a["),
        ("s += d * pixel(a, i + d, n);", "s += pixel(a, i + d, n) * pixel(a, i - d, n);", "pixel_value_2"),
        # A function that loads nothing but by another.
        (CLAMPS + "\n}\n", CLAMPS + "\n}\n__device__ float sides(const float* a, int x, int n) "
         "{ return (pixel(a, x - 1, n) + pixel(a, x + 1, n)) / 2; }\n", "pixel_value_2"),
    ],
)  # fmt: skip
def test_a_load_within_bounds_stands_where_it_is_asked_for(old: str, new: str, seen: str) -> None:
    assert old in WITHIN
    text = WITHIN.replace(old, new)
    text = text.replace("d * pixel(a, i + d, n)", "sides(a, i + d, n)") if "/ 2" in new else text
    made = expanded(kernel(text))
    body = applied(made).program.text.split("__global__")[1]
    assert "sides(" not in body
    assert seen in body
    assert "pixel(" not in body
    same(text, made, {"a": ("n",), "out": ("n",)}, {"n": 70})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (CLAMPS, "if (x < 0) return 0.0f;\n    x = x + n;\n    return a[x - n >= n ? 0 : x - n];"),
        (CLAMPS, "if (x < 0) return 0.0f;\n    float y = a[x % n];\n    if (x > 3) return y;\n    return 1.0f;"),
        (CLAMPS, "if (x < 0) { x = 0; return a[x]; }\n    return a[x % n];"),
        (CLAMPS, "if (x++ < 0 || x > n) return 0.0f;\n    int y = x;\n    return a[y - 1];"),
        (CLAMPS, "return a[x < 0 ? 0 : x % n];\n    return 0.0f;"),
        (CLAMPS, "return x < 0 || x >= n ? 0.0f : a[x];"),
        ("s += d * pixel(a, i + d, n);", "s += d > 0 ? pixel(a, i + d, n) : 0.0f;"),
    ],
)  # fmt: skip
def test_a_load_behind_a_way_out_stays_behind_it(old: str, new: str) -> None:
    text = WITHIN.replace(old, new)
    made = expanded(kernel(text))
    if "x >= n ? 0.0f : a[x]" in new:
        assert "? 0.0f : a[" in applied(made).program.text.split("__global__")[1]
        same(text, made, {"a": ("n",), "out": ("n",)}, {"n": 70})
    else:
        assert refused(made)[0].startswith("it calls no function with a loop")


RETURNS = """\
__device__ int first(const float* a, int from, int n) {
    BODY
    return -1;
}
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int result = first(a, i, n);
    if (first(a, i / 2, n) > i) result += 1000;
    out[i] = result;
}
"""


@pytest.mark.parametrize(
    "body",
    [
        "for (int j = from; j < n; j++) if (a[j] < 0.0f) return j;",
        "while (from < n) { if (a[from] > 0.5f) { return 7; } else if (a[from] < -1.0f) return 8; ++from; }",
        "int result = 3; for (int j = 0; j < n; ++j) { if (a[j] < -1.5f) return result; ++result; }",
    ],
)  # fmt: skip
def test_a_loop_that_returns_leaves_what_it_found(body: str) -> None:
    text = RETURNS.replace("BODY", body)
    made = expanded(kernel(text))
    assert "first(" not in applied(made).program.text.split("__global__")[1]
    assert "break;" in applied(made).program.text
    same(text, made, {"a": ("n",), "out": ("n",)}, {"n": 70})


@pytest.mark.parametrize(
    "body",
    [
        "for (int j = from; j < n; j++) for (int l = 0; l < 2; l++) if (a[j] < l) return j;",
        "for (int j = from; j < n; j++) if (a[j] < 0.0f) return j;\n    if (n > 3) n = 2;",
    ],
)
def test_a_loop_that_returns_through_others_stays(body: str) -> None:
    assert refused(expanded(kernel(RETURNS.replace("BODY", body))))


INSIDE = """\
struct View {
    const float* p;
    int step;
    __device__ float at(int place) const { return p[place * step]; }
    __device__ float next(int place) const { return at(place); }
    __device__ float operator()(int place) const { if (place < 0) return 0.0f; return p[place]; }
};
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0.0f;
    FIRST
    for (int d = -2; d <= 2; d++) EACH
    out[i] = s;
}
"""


@pytest.mark.parametrize(
    ("here", "there", "gone"),
    [
        ("auto f = [&](int x) { return x < 0 || x >= n ? 0.0f : a[x]; };", "s += f(i + d);", "f("),
        ("auto f = [&](int x) -> float { if (x < 0 || x >= n) return 0; return a[x]; };", "s += f(i + d);", "f("),
        ("const auto f = [=](int x) -> int { return a[min(max(x, 0), n - 1)] * 4.0f; };", "s += f(i + d);", "f("),
        ("auto f = [a, n](auto x) { return a[(x + n) % n]; };", "s += f(i + d) * f(i - d);", "f("),
        ("auto f = [&](float x) { s += x; };", "f(a[(i + d + n) % n]);", "f("),
        ("View v = {a, 1};", "s += v.at((i + d + n) % n);", "v.at("),
        ("View v{a, 1};", "s += i + d < n ? 1.0f : 0.0f; s += v((i + d) % n);", "v("),
    ],
)  # fmt: skip
def test_lambdas_and_methods_stand_where_they_are_called(here: str, there: str, gone: str) -> None:
    text = INSIDE.replace("FIRST", here).replace("EACH", f"{{ {there} }}")
    made = expanded(kernel(text))
    body = applied(made).program.text.split("__global__")[1]
    assert gone not in body
    assert "[&]" not in body
    assert "[=]" not in body
    same(text, made, {"a": ("n",), "out": ("n",)}, {"n": 70})


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("int m = n; auto f = [=](int x) { return a[x % m]; }; m = 1;", "s += f(i + d + n);"),
        ("auto f = [&](int x) { return a[x % n]; };", "{ int n = 3; s += f(i + d + 3) * n; }"),
        ("auto f = [&](int x) { return a[x % n]; };", "s += d > 0 ? f(i + d) : 0.0f;"),
        ("View v = {a, 1}; v.step = 0;", "s += v.at((i + d + n) % n);"),
        ("View v = {a, 1};", "s += v.next((i + d + n) % n);"),
        ("int m = 0; auto f = [=](int x) mutable { m += x; };", "{ f(d); s += m; }"),
    ],
)
def test_lambdas_and_methods_that_stay(here: str, there: str) -> None:
    text = INSIDE.replace("FIRST", here).replace("EACH", there)
    assert refused(expanded(kernel(text)))[0].startswith("it calls no function with a loop")


AT = "__device__ float at(const float* a, int i) { return a[i]; }\n"
TWICE = "__device__ float f(const float* a, int i) { return at(a, i) * 2; }\n"
PAIR = ("struct V { float x; };\n__device__ V pair(const float* a, int i) { V v; v.x = a[i]; return v; }\n"
        "__device__ float f(const float* a, int i) { V v = pair(a, i); return v.x; }\n")  # fmt: skip
NAMED = """\
%s
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    %s
}
"""


@pytest.mark.parametrize(
    ("functions", "body"),
    [
        (AT + TWICE, "float at = 3; out[i] = f(a, i) + at;"),
        (PAIR, "float V = 2; out[i] = f(a, i) + V;"),
        (PAIR, "int pair = 1; out[i] = f(a, i) + pair;"),
        (PAIR, "typedef int V; V j = i; out[i] = f(a, j);"),
        (f"namespace q {{ {AT}{TWICE} }}\n__device__ float at(const float* a, int i) {{ return -a[i]; }}\n",
         "out[i] = q::f(a, i);"),
        (f"namespace q {{ {PAIR} }}\n", "out[i] = q::f(a, i);"),
        (("namespace q { const int R = 2; __device__ float f(const float* a, int i) { return a[i] * R; } }\n"
         "const int R = 9;\n"), "out[i] = q::f(a, i) + R;"),
        ("namespace q { typedef double real; __device__ real f(const float* a, int i) { real z = a[i]; return z; } }\n",
         "out[i] = q::f(a, i);"),
        ("struct Q { typedef double real; const float* p; __device__ float f(int i) const { real r = p[i]; return r; } };\n",
         "Q z{a}; out[i] = z.f(i);"),
        ("__device__ float f(const float* a, int, int i) { return a[i]; }\n", "out[i] = f(a, 3, i);"),
    ],
)  # fmt: skip
def test_functions_whose_names_mean_something_else_there(functions: str, body: str) -> None:
    text = NAMED % (functions, body)
    assert refused(expanded(kernel(text)))[0].startswith("it calls no function with a loop")
