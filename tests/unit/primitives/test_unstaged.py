"""What a block brought into shared memory, loaded where it is read; and what stays as it is."""

from __future__ import annotations

import re

import pytest

from optiml_magic.kernels.primitives.base import kernels
from optiml_magic.kernels.primitives.bounded import bounded
from optiml_magic.kernels.primitives.pruned import pruned
from optiml_magic.kernels.primitives.trimmed import trimmed, whole
from optiml_magic.kernels.primitives.uncoarsened import uncoarsened
from optiml_magic.kernels.primitives.unstaged import unstaged
from optiml_magic.model.facts import ArrayFacts, LaunchFacts
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.proposers.rewrites.transpose_tile import TransposeTile
from optiml_magic.proposers.rewrites.unstage import Unstage
from tests.present import sampled

from .running import same, same_of_many
from .shapes import applied, kernel, refused

LINE = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, const float* b, float* out, int n) {
    __shared__ float s[%s];
    int t = threadIdx.x, i = blockIdx.x * 32 + t;
    %s
}
"""
SHAPES = {"a": ("n",), "b": ("n",), "out": ("n",)}
PRODUCT = """\
#define T 8
#pragma optiml launch k grid(cdiv(n, 8), cdiv(m, 8)) block(8, 8)
__global__ void k(const float* a, const float* b, float* c, int m, int n, int d) {
    __shared__ float s[T][T], u[T][T + 1];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * T + ty, col = blockIdx.x * T + tx;
    float sum = 0.0f;
    for (int p = 0; p < (d + T - 1) / T; ++p) {
        if (row < m && p * T + tx < d) s[ty][tx] = a[row * d + p * T + tx]; else s[ty][tx] = %s;
        u[ty][tx] = p * T + ty < d && col < n ? b[(p * T + ty) * n + col] : 0.0f;
        __syncthreads();
        for (int q = 0; q < T; ++q) sum += s[ty][q] * u[q][tx];
        __syncthreads();
    }
    if (row < m && col < n) c[row * n + col] = sum;
}
"""
FACTORS = {"a": ("m", "d"), "b": ("d", "n"), "c": ("m", "n")}
TURN = """\
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 16)) block(16, %d)
__global__ void k(const float* a, float* out, int w, int h) {
    __shared__ float s[16][17];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    for (int j = 0; j < 16; j += %d) if (x < w && y + j < h) s[threadIdx.y + j][threadIdx.x] = a[(y + j) * w + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x;
    y = blockIdx.x * 16 + threadIdx.y;
    for (int j = 0; j < 16; j += %d) if (x < h && y + j < w) out[(y + j) * h + x] = s[threadIdx.x][threadIdx.y + j];
}
"""  # fmt: skip


def test_a_product_of_tiles_becomes_the_plain_one() -> None:
    text = PRODUCT % "0.0f"
    made = unstaged(kernel(text))
    body = applied(made).program.text
    assert "for (int run = 0; run < d; ++run)" in body
    assert "a[row * d + run] * b[run * n + col]" in body
    assert "__shared__" not in body
    assert "__syncthreads" not in body
    assert body.index("return") < body.index("for (")
    same(text, made, FACTORS, {"m": 13, "n": 9, "d": 19})


def test_a_rest_that_adds_something_is_added() -> None:
    text = (PRODUCT % "2.0f").replace(": 0.0f", ": 3.0f")
    made = unstaged(kernel(text))
    assert "? a[row * d +" in applied(made).program.text
    same(text, made, FACTORS, {"m": 13, "n": 9, "d": 19})


def test_a_product_of_tiles_gets_the_tiles_of_the_recipe() -> None:
    rule = BlockedProduct()
    (found,) = [s for s in rule.sites(rule.shaped(kernel(PRODUCT % "0.0f"))) if isinstance(s, Site)]
    same(PRODUCT % "0.0f", found.apply(), FACTORS, {"m": 40, "n": 33, "d": 19})


@pytest.mark.parametrize("high", [16, 8, 4])
def test_a_transpose_becomes_the_plain_one(high: int) -> None:
    text = TURN % (high, high, high)
    made = applied(unstaged(kernel(text)))
    assert "for (" not in made.program.text
    assert "a[((int)blockIdx.x * 16 + (int)threadIdx.x) * w +" in made.program.text
    same_of_many(text, made, {"a": ("h", "w"), "out": ("w", "h")}, {"w": 37, "h": 20})
    rule = TransposeTile()
    assert any(isinstance(s, Site) for s in rule.sites(rule.shaped(kernel(text))))


@pytest.mark.parametrize(
    ("room", "body", "loads"),
    sampled([
        ("32", "s[t] = i < n ? a[i] : 0.0f;\n__syncthreads();\nif (i < n) out[i] = s[31 - t];", 1),
        ("32", "s[31 - t] = i < n ? a[i] : 0.0f;\n__syncthreads();\nif (i < n) out[i] = s[t];", 1),
        ("32", ("float v = i < n ? a[i] * 2.0f : 1.0f;\nconst float w = i < n ? a[i] + b[i] : 0.0f;\n"
               "s[t] = w;\n__syncthreads();\nif (i < n) out[i] = s[t / 2] + v;"), 2),
        ("32", "s[t] = 3.0f;\nif (i < n) s[t] = a[i];\n__syncthreads();\nif (i < n) out[i] = s[t ^ 0];", 1),
        ("34", ("s[t + 1] = i < n ? a[i] : 0.0f;\nif (t == 0) s[0] = i > 0 ? a[i - 1] : 0.0f;\n"
               "if (t == 31) s[33] = i + 1 < n ? a[i + 1] : 0.0f;\n__syncthreads();\n"
               "if (i < n) out[i] = s[t] + s[t + 1] + s[t + 2];"), 3),
        ("40", ("for (int e = t; e < 40; e += 32) { int g = blockIdx.x * 32 + e - 4;\n"
               "s[e] = g >= 0 && g < n ? a[g] : 0.0f; }\n__syncthreads();\nfloat v = 0.0f;\n"
               "for (int e = 0; e < 9; ++e) v += s[t + e];\nif (i < n) out[i] = v;"), 1),
        ("32", "s[t] = i < n ? a[n - 1 - i] : 0.0f;\n__syncthreads();\nif (i < n) out[i] = s[t];", 1),
    ], 2),
)  # fmt: skip
def test_an_element_is_loaded_from_where_it_came(room: str, body: str, loads: int) -> None:
    text = LINE % (room, body)
    made = unstaged(kernel(text))
    found = applied(made)
    assert all(a.space != "shared" for a in found.reading.accesses)
    assert sum(a.array == "a" and a.mode == "load" for a in found.reading.accesses) >= loads
    for n in (70, 64, 5):
        same_of_many(text, made, SHAPES, {"n": n})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("s[t] = a[i];\nif (i < n) out[i] = s[t];", "wait for each other in another way"),
        ("if (i < n) out[i] = 1.0f;\ns[t] = i < n ? a[i] : 0.0f;\n__syncthreads();\nif (i < n) out[i] = s[31 - t];",
         "writes global memory before"),
        ("if (i < n) s[t] = a[i];\n__syncthreads();\nif (i < n) out[i] = s[31 - t];", "not certain"),
        ("if (t < 31) s[t] = i < n ? a[i] : 0.0f;\n__syncthreads();\nif (i < n) out[i] = s[t];",
         "may not have been brought"),
        ("s[t] = i < n ? a[i] : 0.0f;\ns[t] *= 2.0f;\n__syncthreads();\nif (i < n) out[i] = s[31 - t];",
         "not brought before it is read"),
        ("s[t] = i < n ? a[i] : 0.0f;\nif (t < 9) s[t] = 1.0f;\n__syncthreads();\nif (i < n) out[i] = s[31 - t];",
         "several ways"),
        ("if (i < n) s[t] = a[i]; else s[31 - t] = 0.0f;\n__syncthreads();\nif (i < n) out[i] = s[31 - t];",
         "several ways"),
        ("s[t] = (i < n ? a[i] : 0.0f) + t;\n__syncthreads();\nif (i < n) out[i] = s[31 - t];", "depends on|not only"),
        ("s[(t + 3) % 32] = i < n ? a[i] : 0.0f;\n__syncthreads();\nif (i < n) out[i] = s[t];", "which thread"),
        ("for (int e = 0; e < 3; ++e) s[t] = i + e < n ? a[i + e] : 0.0f;\n__syncthreads();\nif (i < n) out[i] = s[31 - t];",
         "which thread"),
        (("for (int r = 0; r < 2; ++r) {\nif (r == 0) s[t] = i < n ? a[i] : 0.0f;\n__syncthreads();\n"
         "if (i < n) out[i] = s[31 - t];\n__syncthreads();\n}"), "writes global memory before"),
        (("float v = 0.0f;\nfor (int r = 0; r < 2; ++r) {\nif (r == 0) s[t] = i < n ? a[i] : 0.0f;\n__syncthreads();\n"
         "v += s[31 - t];\n__syncthreads();\n}\nif (i < n) out[i] = v;"), "not certain|several|another way|depends"),
        ("s[t] = 0.0f;\n__syncthreads();\nif (i < n) out[i] = s[31 - t];", "not brought from memory"),
        (("s[t] = i < n ? a[i] : 0.0f;\n__syncthreads();\nfloat v = s[31 - t];\nv += __shfl_xor_sync(~0u, v, 1);\n"
         "if (i < n) out[i] = v;"), "lanes exchange values"),
        ("if (i < n && a[i] > 0.0f) s[t] = a[i]; else s[t] = 0.0f;\n__syncthreads();\nif (i < n) out[i] = s[31 - t];",
         "depends on what is not followed|several ways"),
        ('s[t] = i < n ? a[i] : 0.0f;\n__syncthreads();\nprintf("%f", s[31 - t]);\nif (i < n) out[i] = s[31 - t];',
         "tells which thread"),
    ],
)  # fmt: skip
def test_what_is_not_certain_is_refused(body: str, reason: str) -> None:
    text, _ = refused(unstaged(kernel(LINE % ("32", body))))
    assert any(part in text for part in reason.split("|")), text


def test_what_the_kernel_writes_is_no_source() -> None:
    body = "s[t] = i < n ? %s[i] : 0.0f;\n__syncthreads();\nif (i < n) out[i] = s[31 - t];"
    text, _ = refused(unstaged(kernel(LINE % ("32", body % "out"))))
    assert "before its threads wait" in text
    own = ArrayFacts("x", "inout", "float32", (70,), 280, 256)
    arrays = {"a": own, "b": ArrayFacts("b", "in", "float32", (70,), 280, 256), "out": own}
    facts = LaunchFacts("k", 1, (3, 1, 1), (32, 1, 1), arrays, {"n": 70})
    (found,) = kernels(kernel(LINE % ("32", body % "a")).program, None)
    assert applied(unstaged(found))
    alike = type(found)(found.program, found.launch, facts)
    text, _ = refused(unstaged(alike))
    assert "written" in text


def test_the_rule_leaves_alone_what_is_read_often() -> None:
    found = [*Unstage().sites(kernel(PRODUCT.replace("8", "16") % "0.0f"))]
    assert "times" in refused(found[0])[0]  # type: ignore[arg-type]
    text = LINE % (
        "32",
        "s[t] = i < n ? a[i] : 0.0f;\n__syncthreads();\nif (i < n) out[i] = s[31 - t];",
    )
    (site,) = Unstage().sites(kernel(text))
    assert isinstance(site, Site)
    same(text, site.apply(), SHAPES, {"n": 70})


WHOLE = """\
#pragma optiml launch k grid(n / 32) block(32)
__global__ void k(const float* a, float* out, int n) {
    out[blockIdx.x * 32 + threadIdx.x] = a[blockIdx.x * 32 + threadIdx.x] + 1.0f;
}
"""


def test_a_launch_of_whole_blocks_gets_a_guard_that_says_so() -> None:
    made = bounded(kernel(WHOLE))
    assert "threadIdx.x >= n / 32 * 32) return;" in applied(made).program.text
    assert "grid(cdiv(n / 32 * 32, 32))" in applied(made).program.text
    same(WHOLE, made, {"a": ("n",), "out": ("n",)}, {"n": 96})
    asked = f"#pragma optiml require n % 32 == 0\n{WHOLE}"
    assert "threadIdx.x >= n) return;" in applied(bounded(kernel(asked))).program.text
    rounded = bounded(kernel(WHOLE.replace("n / 32)", "cdiv(n, 32))")))
    assert "threadIdx.x >= (n + 31) / 32 * 32) return;" in applied(rounded).program.text


def test_threads_that_wait_get_no_guard() -> None:
    text, _ = refused(bounded(kernel(WHOLE.replace("out[", "__syncthreads();\nout["))))
    assert "wait" in text


LOOP = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, float* out, int n, int d) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= n) return;
    float s = 0.0f;
    %s
    out[i] = s;
}
"""


@pytest.mark.parametrize(
    ("loop", "ends"),
    [
        ("for (int q = 0; q < (d + 7) / 8 * 8; ++q) if (q < d) s += a[i * d + q];", True),
        ("for (int q = 0; q < (d + 7) / 8 * 8; ++q) s += q < d ? a[i * d + q] : 0.0f;", True),
        ("for (int q = 0; q < (d + 7) / 8 * 8; ++q) s += (q < d ? a[i * d + q] : 0.0f) * 2.0f;", True),
        ("for (int q = 0; q < (d + 7) / 8 * 8; ++q) s += q < d ? a[i * d + q] : 1.0f;", False),
        ("for (int q = 0; q < (d + 7) / 8 * 8; ++q) s += (q < d ? a[i * d + q] : 0.0f) + 1.0f;", False),
        ("for (int q = 0; q < (d + 7) / 8 * 8; ++q) s = fmaxf(s, q < d ? a[i * d + q] : 0.0f);", False),
        ("for (int q = 0; q < d / 8 * 8; ++q) if (q < d - 3) s += a[i * d + q];", False),
        ("for (int q = 0; q < (d + 7) / 8 * 8; ++q) { if (q < d) s += a[i * d + q]; s += 1.0f; }", False),
    ],
)  # fmt: skip
def test_a_loop_ends_where_it_does_nothing_more(loop: str, ends: bool) -> None:
    text = LOOP % loop
    made = trimmed(kernel(text))
    if not ends:
        refused(made)
        return
    assert "q < d; ++q)" in applied(made).program.text
    same_of_many(text, made, {"a": ("n", "d"), "out": ("n",)}, {"n": 33, "d": 13})


def test_a_test_beside_a_number_of_rounds_stands_inside() -> None:
    text = LOOP % "for (int q = 0; q < 8 && q + i < d; ++q) s += a[i * d + q];"
    made = whole(kernel(text))
    assert "if (q + i < d)" in applied(made).program.text
    same(text, made, {"a": ("n", "d"), "out": ("n",)}, {"n": 33, "d": 13})
    for loop in ("q < 8 && q + i != d", "q < 8 && d - i < q", "q < 8 && a[q] > 0.0f"):
        refused(whole(kernel(LOOP % f"for (int q = 0; {loop}; ++q) s += a[i * d + q];")))


ROWS = """\
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 16)) block(16, 4)
__global__ void k(const float* a, float* out, int w, int h) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    for (int j = 0; j < 16; j += 4) %s
}
"""


def test_rows_of_a_thread_become_threads() -> None:
    text = ROWS % "if (x < w && y + j < h) out[(y + j) * w + x] = a[(y + j) * w + x] * 2.0f;"
    made = uncoarsened(kernel(text))
    assert "block(16, 16)" in applied(made).program.text
    same(text, made, {"a": ("h", "w"), "out": ("h", "w")}, {"w": 21, "h": 35})


@pytest.mark.parametrize(
    "inside",
    [
        "if (x < w && y + j < h) out[(y + j) * w + x] = a[(y + j) * w + x] * j;",
        "if (x < w && y + j < h) out[(y + j) * w + x] = a[y * w + x];",
        "if (x < w && y + j < h) out[(y + j) * w + x] += threadIdx.y;",
        "if (x < w && y + j < h && j < 8) out[(y + j) * w + x] = 1.0f;",
        "{ if (x >= w || y + j >= h) break; out[(y + j) * w + x] = 1.0f; }",
        "if (x < w && y + j + 4 < h) out[(y + j) * w + x] = out[(y + j + 4) * w + x];",
    ],
)
def test_rows_that_are_told_apart_stay(inside: str) -> None:
    refused(uncoarsened(kernel(ROWS % inside)))


def test_what_nobody_asks_for_is_left_out() -> None:
    text = LINE % (
        "32",
        (
            "int x = t * 3;\nfloat dead = a[0];\ndead += 1.0f;\nfor (int e = 0; e < 4; ++e) if (e < n) {}\n"
            "x = i + 0;\nif (x < n) out[x] = b[x];"
        ),
    )
    made = pruned(kernel(text))
    body = applied(made).program.text
    assert "dead" not in body
    assert "for" not in body
    assert "__shared__" not in body
    assert "int x = i + 0;" in body
    same(text, made, SHAPES, {"n": 40})
    refused(pruned(kernel(WHOLE)))


@pytest.mark.parametrize(
    "body",
    [
        "int v = 0;\nif (i < n) out[i] = a[i]; else v = a[0];",
        "int v = 0;\nif (i >= n) v = 3; else out[i] = a[i];",
        "int v = 0;\nif (i < n) out[i] = a[i]; else v++;",
        "int v = 0;\nfor (int e = 0; e < 3; ++e) v = e;\nif (i < n) out[i] = a[i];",
        "int v = 0;\nfor (int e = 0; e < 3; ++e) if (i < n) out[i] = a[i]; else v = e;",
        "int v = 0;\nif (i >= n) v = 1; else if (t > 3) out[i] = a[i]; else v = 2;",
        "int v = 0;\nif (i < n) if (t > 3) out[i] = a[i]; else v = 3; else v = 4;",
        "int v = 0;\nif (i < n) { if (t > 3) out[i] = a[i]; else v = 3; } else v = 4;",
        "int v = 0;\nif (i < n) { if (t > 3) out[i] = a[i]; else { if (t > 1) v = 3; } }",
        "int v = 0, e = 0;\nfor (v = 0; e < 3; ++e) { if (i < n) out[i] += a[i]; }",
        "int v = 0;\nif (i < n) out[i] = a[i]; else do v = 3; while (t < 0);",
    ],
)
def test_a_way_without_braces_is_left_out_with_its_local(body: str) -> None:
    text = LINE % ("32", body)
    made = pruned(kernel(text))
    if "(v =" not in body:
        assert "v" not in re.findall(r"\w+", applied(made).program.text.partition("{")[2])
    same(text, made, SHAPES, {"n": 40})


def test_a_reference_stays_where_what_it_asks_for_moves() -> None:
    body = "int x;\nx = i;\nif (x > n) {}\nif (x < n) { float& o = out[x];\no = b[x]; }"
    made = pruned(kernel(LINE % ("32", body)))
    assert "float& o = out[x];" in applied(made).program.text
    same(LINE % ("32", body), made, SHAPES, {"n": 40})


def test_a_vector_of_floats_that_was_staged_is_loaded_as_one() -> None:
    text = """\
#pragma optiml launch k grid(n / 32) block(32)
__global__ void k(const float* a, float* out, int n) {
    __shared__ float4 s[32];
    int t = threadIdx.x, i = blockIdx.x * 32 + t;
    s[t] = reinterpret_cast<const float4*>(a)[i];
    __syncthreads();
    float4 v = s[31 - t];
    out[i] = v.x + 2.0f * v.w;
}
"""
    made = unstaged(kernel(text))
    assert "*reinterpret_cast<const float4*>(&a[" in applied(made).program.text
    same(text, made, {"a": ("4 * n",), "out": ("n",)}, {"n": 96})


WINDOW = """\
#define T 16
#pragma optiml launch k grid(cdiv(w, T), cdiv(h, T)) block(T, T)
__global__ void k(const float* a, float* out, int w, int h) {
    __shared__ float s[T + 4][T + 4];
    const int x = blockIdx.x * T + threadIdx.x, y = blockIdx.y * T + threadIdx.y;
    for (int j = threadIdx.y; j < T + 4; j += blockDim.y)
        for (int i = threadIdx.x; i < T + 4; i += blockDim.x) {
            int gx = blockIdx.x * T + i - 2, gy = blockIdx.y * T + j - 2;
            %s
        }
    __syncthreads();
    if (x >= w || y >= h) return;
    float sum = 0;
    for (int j = 0; j < 5; ++j)
        for (int i = 0; i < 5; ++i) {
            if ((j + i) %% 3 == 0) continue;
            sum += s[threadIdx.y + j][threadIdx.x + i] * (j * 5 + i);
        }
    out[y * w + x] = sum;
}
"""
PLACES = {"a": ("h", "w"), "out": ("h", "w")}


@pytest.mark.parametrize(
    "brings",
    [
        (
            "gx = gx < 0 ? 0 : gx >= w ? w - 1 : gx; gy = gy < 0 ? 0 : gy >= h ? h - 1 : gy; "
            "s[j][i] = a[gy * w + gx];"
        ),
        "gx = min(max(gx, 0), w - 1); gy = max(0, min(gy, h - 1)); s[j][i] = a[gy * w + gx];",
        (
            "gx = gx < 0 ? -gx : gx; gx = gx >= w ? 2 * w - 2 - gx : gx; gy = abs(gy); "
            "gy = gy >= h ? 2 * h - 2 - gy : gy; "
            "s[j][i] = a[max(gy, 0) * w + max(0, gx)];"
        ),
        "s[j][i] = gx < 0 || gy < 0 || gx >= w || gy >= h ? 0.0f : a[gy * w + gx];",
    ],
)
def test_a_window_with_its_border_is_loaded_where_it_is_read(brings: str) -> None:
    text = WINDOW % brings
    made = applied(unstaged(kernel(text)))
    assert "__shared__" not in made.program.text
    assert "int run" not in made.program.text  # the loops of a window stay two
    for w, h in ((5, 7), (37, 20)):
        same(text, made, PLACES, {"w": w, "h": h})
