"""What threads compute alike, a launch before computes once; what each has of its own stays."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.beforehand import beforehand, rounding, works
from optiml_magic.kernels.tree import Loop
from optiml_magic.source.program import parse_program
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of, kernel_of

ATTENTION = """\
#pragma optiml launch k grid(cdiv(d, 32), cdiv(n, 4)) block(32, 4)
__global__ void k(const float* q, const float* x, float* out, int n, int d) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || c >= d) return;
    float top = -1e30f;
    for (int j = 0; j < n; ++j) {
        float s = 0.0f;
        for (int e = 0; e < d; ++e) s += q[i * d + e] * x[j * d + e];
        if (s > top) top = s;
    }
    float sum = 0.0f;
    for (int j = 0; j < n; ++j) {
        float dot = 0.0f;
        for (int e = 0; e < d; ++e) dot += q[i * d + e] * x[j * d + e];
        sum += dot > top - 1.0f ? dot : 1.0f;
    }
    float all = 0.0f;
    for (int j = 0; j < n; ++j) {
        float s = 0.0f;
        for (int e = 0; e < d; ++e) s += q[i * d + e] * x[j * d + e];
        all += s * x[j * d + c];
    }
    out[i * d + c] = all / (1.0f + sum * sum);
}
"""
WHOLE = """\
#pragma optiml launch k grid(cdiv(d, 64)) block(64)
__global__ void k(const float* q, const float* x, float* out, int n, int d) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < d) {
        float top = -1e30f, sum = 0.0f;
        for (int j = 0; j < n; ++j) top = fmaxf(top, q[j]);
        for (int j = 0; j < n; ++j) sum += q[j] - top;
        float own = 0.0f;
        for (int j = 0; j < n; ++j) own += x[j * d + c];
        out[c] = own - sum;
    }
}
"""
CALLED = """\
__device__ float dot(const float* a, const float* b, int d) {
    float s = 0.0f;
    for (int e = 0; e < d; ++e) s += a[e] * b[e];
    return s;
}
""" + ATTENTION.replace("float s = 0.0f;", "float s = dot(q + i * d, x + j * d, d);").replace(
    "float dot = 0.0f;", "float s = dot(q + i * d, x + j * d, d), dot = s;"
).replace("for (int e = 0; e < d; ++e) s +=", "//").replace(
    "for (int e = 0; e < d; ++e) dot +=", "//"
)
ARRAYS = {"q": Array("f4", ("n", "d")), "x": Array("f4", ("n", "d")),
          "out": Array("f4", ("n", "d"), "zeros")}  # fmt: skip
_LOOPS = "j < n; ++j) {"


def moved(text: str) -> tuple[Kernel | Refused, int]:
    """The kernel behind all launches that it may get, and how many these are."""
    kernel: Kernel | Refused = kernel_of(text)
    for count in range(5):
        assert isinstance(kernel, Kernel)
        try:
            _, found = works(kernel)
        except NotLegal as reason:
            return Refused(reason.reason, reason.line), count
        if not found:
            return kernel, count
        made = beforehand(kernel, 0)
        if isinstance(made, Refused):
            return made, count
        kernel = made
    raise AssertionError("there is always more")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (ATTENTION, 2),
        (ATTENTION.replace("j < n", "j <= i"), 2),
        (ATTENTION.replace(_LOOPS, "j < n; ++j) { if (j == i) continue;"), 2),
        (ATTENTION.replace(_LOOPS, "j < n; ++j) { if (j < i) {").replace("sum * sum", "sum")
         .replace("top = s;", "top = s; }").replace("1.0f;\n    }", "1.0f;\n    } }")
         .replace("+ c];", "+ c]; }"), 2),
        (ATTENTION.replace("if (i >= n || c >= d) return;", "if (i < n && c < d) {")
         .replace("sum * sum);", "sum * sum); }"), 2),
        (ATTENTION.replace("float top", "if (c > i) return; float top"), 2),
        (ATTENTION.replace("float top", "const float* row = q + i * d; float top")
         .replace("q[i * d + e]", "row[e]"), 2),
        (ATTENTION.replace("float s = 0.0f;", "float t = x[j], s = t;"), 3),
        (ATTENTION.replace("float all", "sum = sqrtf(sum * sum + 1.0f); float all"), 2),
        (ATTENTION.replace("float s = 0.0f;", "float s{};").replace("float all = 0.0f", "float all{}"), 3),
        (CALLED, 2),
        (WHOLE, 1),
        (WHOLE.replace("q[j] - top", "q[j] * top"), 1),
        (WHOLE.replace("float own = 0.0f;\n        for (int j", "for (int r = 0; r < n; ++r) { float "
         "own = 0.0f;\n        for (int j").replace("own - sum;", "own - sum + r; }"), 2),
    ],
)  # fmt: skip
def test_what_threads_compute_alike_is_computed_once(text: str, count: int) -> None:
    made, launches = moved(text)
    assert isinstance(made, Kernel), made
    assert launches == count
    after = made.program.text
    assert len(parse_program(after).launches) == count + 1
    for sizes in ({"n": 5, "d": 40}, {"n": 33, "d": 1}, {"n": 1, "d": 65}):
        assert end_of(text, after, ARRAYS, sizes, {"n": 7, "d": 33}) == "same"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (ATTENTION.replace("float top", "if (c < 3) return; float top"), "come to it"),
        (ATTENTION.replace("float top", "if (c % 3 == 1) return; float top"), "come to it"),
        (ATTENTION.replace("float top", "if (c / 3 != 1) return; float top"), "come to it"),
        (ATTENTION.replace("float top", "if (i * c > 9) return; float top"), "come to it"),
        (ATTENTION.replace(_LOOPS, "j < n; ++j) { if (j == c) continue;"), "come to it"),
        (ATTENTION.replace("j < n", "j <= c"), "rounds there are"),
        (ATTENTION.replace(_LOOPS, "j < n; ++j) { if (out[j] > 0.0f) continue;"), "writes"),
        (ATTENTION.replace("j < n", "j < n - 1"), "less than none"),
    ],
)  # fmt: skip
def test_who_does_not_have_the_work_does_not_get_it(text: str, reason: str) -> None:
    made, launches = moved(text)
    assert isinstance(made, Refused), made.program.text
    assert reason in made.reason
    assert launches == 0


@pytest.mark.parametrize(
    "text",
    [
        ATTENTION.replace("q[i * d + e] * x[j * d + e]", "q[i * d + e] * x[j * d + c]"),
        ATTENTION.replace("e < d", "e < c"),
        ATTENTION.replace("const float* q", "float* q").replace("out[i", "q[i"),
        ATTENTION.replace(_LOOPS, "j < n; ++j) { if (top > 1e9f) break;"),
        ATTENTION.replace("int j = 0; j < n; ++j", "int j = n - 1; j >= 0; --j"),
        ATTENTION.replace("+= q[i * d + e]", "+= top * sum0 * q[i * d + e]").replace(
            "float top", "float sum0 = 1.0f; for (int e = 0; e < c; ++e) sum0 += 1.0f; float top"
        ),
    ],
)
def test_what_a_thread_has_of_its_own_stays(text: str) -> None:
    kernel = kernel_of(text)
    _, found = works(kernel)
    innermost = [w for w in found if any(isinstance(one, Loop) for one in w.kept)]
    assert not innermost


def test_threads_that_work_together_stay() -> None:
    text = ATTENTION.replace("float top", "__shared__ float t[4]; t[0] = 1; float top")
    with pytest.raises(NotLegal, match="share memory"):
        works(kernel_of(text))


def test_products_that_are_added_later_are_said() -> None:
    for text, rounds in (
        (ATTENTION, False),
        (CALLED, True),
        (ATTENTION.replace("if (s > top)", "s *= 2.0f; if (s > top)"), False),
        (WHOLE.replace("float own", "sum *= 0.1f; float own"), False),
        (WHOLE.replace("for (int j = 0; j < n; ++j) sum += q[j] - top;",
                       "for (int j = 0; j < n; ++j) sum = q[j] * top;"), True),
    ):  # fmt: skip
        kernel = kernel_of(text)
        _, found = works(kernel)
        assert any(rounding(kernel, work) for work in found) == rounds


ANGLES = """\
__device__ float turned(float by) { return by * 0.5f + 0.1f; }
#pragma optiml launch k grid(cdiv(d, 32), cdiv(n, 4)) block(32, 4)
__global__ void k(const float* q, float* out, float at, int n, int d) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || c >= d) return;
    float here = q[i * d + c];
    if (here < 0.3f) { out[i * d + c] = 7.0f; return; }
    float angle = turned(at) * i;
    float x = cosf(angle), y = here + 1.0f, z = sinf(angle);
    float w = powf(at, 0.3f);
    out[i * d + c] = here * x + y * z + w;
}
"""
FIELDS = {"q": Array("f4", ("n", "d")), "out": Array("f4", ("n", "d"), "zeros")}


def test_arithmetic_alone_is_done_whether_a_thread_comes_to_it_or_not() -> None:
    made, launches = moved(ANGLES)
    assert isinstance(made, Kernel), made
    assert launches == 2  # both functions of the angle at once, and the one of no index
    after = made.program.text
    assert "x_found[i] = x;" in after
    assert "z_found[i] = z;" in after
    assert end_of(ANGLES, after, FIELDS, {"n": 9, "d": 40}, {"n": 3, "d": 33}, at=0.7) == "same"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("turned(at) * i", "turned(at) * q[i]"),  # a load, which may lie beyond
        ("turned(at) * i", "turned(at) * (n / i)"),  # by what may be zero
        ("by * 0.5f + 0.1f;", "(float)(7 / (int)by);"),
        ("return by", "while (by > 1.0f) by -= 1.0f; return by"),
    ],
)
def test_what_may_fail_or_never_end_is_done_by_who_comes_to_it(old: str, new: str) -> None:
    made = beforehand(kernel_of(ANGLES.replace(old, new).replace("float w = powf(at, 0.3f);",
                                                                 "float w = at;")), 0)  # fmt: skip
    assert isinstance(made, Refused)
    assert "left before" in made.reason or "come to it" in made.reason


GROUPS = """\
#pragma optiml launch k grid(cdiv(n, 16), cdiv(m, 4)) block(16, 4)
__global__ void k(const int* a, const int* b, const float* scale, float* c, int m, int n, int d, int g) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= m || j >= n) return;
    float total = 0.0f;
    for (int part = 0; part < d / g; ++part) {
        int dot = 0;
        for (int k = 0; k < g; ++k) dot += a[i * d + part * g + k] * b[j * d + part * g + k];
        total += dot * scale[part];
    }
    c[i * n + j] = total;
}
"""


@pytest.mark.parametrize("sizes", [{"d": 24, "g": 8}, {"d": 20, "g": 8}, {"d": 7, "g": 8}])
def test_a_row_that_is_shorter_than_a_part_keeps_the_input_kernel(sizes: dict[str, int]) -> None:
    kernel = kernel_of(GROUPS)
    made = beforehand(kernel, 0, apart=True)
    assert isinstance(made, Kernel), made
    after = made.program.text
    assert "require d / g >= 1" in after
    assert "[max(1, " in after  # scratch of no elements would be none that a launch may be given
    arrays = {"a": Array("i4", ("m", "d")), "b": Array("i4", ("n", "d")),
              "scale": Array("f4", ("d",)), "c": Array("f4", ("m", "n"), "zeros")}  # fmt: skip
    end = end_of(
        GROUPS, after, arrays, {"m": 9, "n": 21, **sizes}, {"m": 3, "n": 5, "d": 8, "g": 4}
    )
    assert end == ("narrowed" if sizes["d"] < sizes["g"] else "same")


def test_a_hint_stays_with_its_loop() -> None:
    text = ATTENTION.replace("all = 0.0f;\n", "all = 0.0f;\n    #pragma unroll 2\n")
    made = beforehand(kernel_of(text), 0)
    assert isinstance(made, Kernel), made
    assert "#pragma unroll 2\n    for (int j = 0; j < n; ++j) {" in made.program.text
