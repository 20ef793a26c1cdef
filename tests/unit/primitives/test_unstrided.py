"""Loops over items a grid apart, as one item a thread."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.unstrided import unstrided

from .running import same
from .shapes import applied, kernel, refused

STRIDED = """\
#pragma optiml launch k grid(3) block(32)
__global__ void k(const float* a, const float* b, float* out, int n, int m) {
    %s
}
"""
HEAD = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n * m; i += gridDim.x * blockDim.x)"
SHAPES = {"a": ("n", "m"), "b": ("m",), "out": ("n", "m")}


@pytest.mark.parametrize(
    "body",
    [
        f"{HEAD} out[i] = a[i];",
        """int i = blockIdx.x * 32 + threadIdx.x, step = blockDim.x * gridDim.x;
        for (; i < n * m; i += step) { if (a[i] < 0.0f) continue; out[i] = a[i] * b[i % m]; }""",
        f"int i; {HEAD.replace('int i', 'i')} out[i] = a[i];",
        """int i = blockIdx.x * blockDim.x + threadIdx.x;
        while (i < n * m) { out[i] = a[i] + 1.0f; i += blockDim.x * gridDim.x; }""",
        """const float c = b[0];
        for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < n * m; i += blockDim.x * gridDim.x) {
            for (int k = 0; k < 3; k++) { if (k == 1) continue; out[i] += c; }
        }""",
        """int tid = threadIdx.x, block = blockIdx.x, step = gridDim.x * blockDim.x;
        for (int i = block * blockDim.x + tid; i < n * m; i += step) out[i] = a[i] + 1.0f;""",
    ],
)  # fmt: skip
def test_a_thread_an_item(body: str) -> None:
    text = STRIDED % body
    made = unstrided(kernel(text))
    program = applied(made).program
    assert "grid(cdiv(m * n, 32)) block(32)" in program.text
    assert "gridDim" not in program.text
    assert "require" not in program.text
    same(text, made, SHAPES, {"n": 9, "m": 37})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("out[blockIdx.x * blockDim.x + threadIdx.x] = a[0];", "do not step"),
        (f"{HEAD} out[i] = out[i + 96];", "meet in memory"),
        (f"{HEAD} out[i / 2] = a[i];", "meet in memory"),
        (f"float s = 0.0f; {HEAD} {{ s += a[i]; out[i] = s; }}", "goes from round to round"),
        (f"{HEAD} {{ if (a[i] < 0.0f) return; out[i] = a[i]; }}", "rounds its loop makes"),
        (f"{HEAD} {{ if (a[i] < 0.0f) break; out[i] = a[i]; }}", "how many rounds"),
        (f"{HEAD} out[i] = a[i] + gridDim.x * blockDim.x;", "threads of its grid"),
        (f"{HEAD} out[i] = a[i] + threadIdx.x;", "more than its index"),
        (f"{HEAD} out[i] = a[blockIdx.x * blockDim.x + threadIdx.x];", "a thread's first one"),
        (f"{HEAD} {{ out[i] = a[i]; __syncthreads(); }}", "wait"),
        (HEAD.replace("= blockIdx", "= 5 + blockIdx") + " out[i] = a[i];", "does not go from"),
        (HEAD.replace("n * m", "b[0]") + " out[i] = a[i];", ""),
        (f"{HEAD} out[i] = a[i]; out[0] = 1.0f;", "not a loop"),
        (
            f"int t = blockIdx.x * 32 + threadIdx.x; float c = b[t % m]; {HEAD} out[i] = c;",
            "`t` is of a thread's first item",
        ),
        (
            f"float c = b[blockIdx.x * 32 + threadIdx.x]; {HEAD} out[i] = c;",
            "`c` is of a thread's first item",
        ),
        (f"float c = out[7]; {HEAD} out[i] = a[i] * c;", "store to `out`"),
    ],
)
def test_refused(body: str, reason: str) -> None:
    assert reason in refused(unstrided(kernel(STRIDED % body)))[0]


BLOCKS = """\
#pragma optiml launch k grid(7) block(1)
__global__ void k(const float* a, const float* b, float* out, int n, int m) {
    %s
}
"""


@pytest.mark.parametrize(
    "body",
    [
        """for (int i = blockIdx.x; i < n; i += gridDim.x) {
            for (int j = 0; j < m; ++j) out[i * m + j] = a[i * m + j] * b[j]; }""",
        "int i = blockIdx.x; while (i < n * m) { out[i] = a[i]; i += gridDim.x; }",
        f"{HEAD} out[i] = a[i] + b[i % m];",
    ],
)
def test_items_of_blocks_of_one_thread(body: str) -> None:
    text = BLOCKS % body
    made = unstrided(kernel(text))
    assert ", 256)) block(256)" in applied(made).program.text
    same(text, made, SHAPES, {"n": 29, "m": 37})


def test_items_of_blocks_of_one_thread_that_meet_are_refused() -> None:
    body = "for (int i = blockIdx.x; i < n; i += gridDim.x) out[i / 2] = a[i];"
    assert "meet in memory" in refused(unstrided(kernel(BLOCKS % body)))[0]
    many = (BLOCKS % body).replace("i / 2", "i").replace("block(1)", "block(2)")
    refused(unstrided(kernel(many)))


WHILE = "int i = blockIdx.x * 32 + threadIdx.x; while (i < n * m) { %s }"
STEP = "i += 32 * gridDim.x;"


@pytest.mark.parametrize(
    "rounds",
    [
        f"if (a[i] < 0.0f) {{ {STEP} continue; }} out[i] = a[i]; {STEP}",
        f"{STEP} out[i] = a[i];",
        f"out[i] = a[i]; if (a[i] < 0.0f) {STEP} else {STEP}",
        "out[i] = a[i]; const int by = 32 * gridDim.x; i += by;",
        f"out[i] = a[i]; i += 1; {STEP}",
    ],
)
def test_rounds_that_do_not_end_by_their_one_step_are_refused(rounds: str) -> None:
    refused(unstrided(kernel(STRIDED % WHILE % rounds)))


DIGITS = """\
#pragma optiml launch k grid(3) block(32)
__global__ void k(const float* a, float* out, int b, int c, int d) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < b * c * d; i += blockDim.x * gridDim.x) {
        int r = i % d, q = i / d % c, p = i / (d * c);
        out[PLACE] = a[i];
    }
}
"""


@pytest.mark.parametrize(
    "place", ["(r * c + q) * b + p", "(q * d + r) * b + p", "(p * d + r) * c + q"]
)
def test_digits_in_another_order_number_the_elements(place: str) -> None:
    text = DIGITS.replace("PLACE", place)
    made = unstrided(kernel(text))
    assert "gridDim" not in applied(made).program.text
    shapes = {"a": ("b", "c", "d"), "out": ("b", "c", "d")}
    same(text, made, shapes, {"b": 4, "c": 9, "d": 11})


@pytest.mark.parametrize(
    "place",
    [
        "(r * c + q) * b",  # items that differ in p alone meet
        "(r * b + q) * c + p",
        "(r + q) * b + p",
        "(p * c + q) * d + i % c",
        "(q * b + p) * d + r * r",
        "r * c + q",
    ],
)
def test_elements_that_two_items_may_share_are_refused(place: str) -> None:
    text = DIGITS.replace("PLACE", place)
    assert "meet in memory" in refused(unstrided(kernel(text)))[0]


PAIRS = """\
#pragma optiml launch k grid(3) block(32)
__global__ void k(const float* a, float* out, int b, int c, int d) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < b * c * (d / 2); i += blockDim.x * gridDim.x) {
        int x = i % (d / 2), head = i / (d / 2) % c, row = i / (d / 2 * c);
        float* at = out + (row * c + head) * d + x;
        float one = at[0], other = at[PLACE];
        at[0] = one * a[x] - other;
        at[PLACE] = other * a[x] + one;
    }
}
"""


def test_an_item_has_an_element_of_each_half_of_a_row() -> None:
    text = PAIRS.replace("PLACE", "d / 2")
    made = unstrided(kernel(text))
    assert "require d / 2 * b * c >= 1" in applied(made).program.text
    for d in (12, 9):
        same(text, made, {"a": ("d",), "out": ("b", "c", "d")}, {"b": 4, "c": 9, "d": d})
    assert "meet" in refused(unstrided(kernel(PAIRS.replace("PLACE", "d"))))[0]


def test_rounds_of_an_item_may_reach_what_another_has() -> None:
    store = "for (int e = 0; e < 2; ++e) out[(r * c + q) * b + p + e] = a[i];"
    text = DIGITS.replace("out[PLACE] = a[i];", store)
    assert "meet in memory" in refused(unstrided(kernel(text)))[0]


RECORDS = """\
struct Item { float x, y, z, w; };
#pragma optiml launch k grid(3) block(32)
__global__ void k(const float* a, Item* p, int n) {
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)blockDim.x * gridDim.x) {
        BODY
    }
}
"""


@pytest.mark.parametrize(
    "body",
    [
        "p[i].x = a[i]; p[i].z += 2.0f * a[i]; p[i].w = p[i].x;",
        "Item& own = p[i]; own.y = a[i]; if (own.y > 0.0f) own.x -= own.y;",
        "float* own = &p[i].x; own[3] = a[i]; own[0] = own[3];",
        "Item q = p[i]; q.x = a[i]; p[i] = q; p[i].y = q.x;",
    ],
)
def test_members_of_an_item_s_record_are_its_own(body: str) -> None:
    text = RECORDS.replace("BODY", body)
    made = unstrided(kernel(text))
    assert "gridDim" not in applied(made).program.text
    same(text, made, {"a": ("n",), "p": ("n", "4")}, {"n": 331})


@pytest.mark.parametrize(
    "body",
    [
        "p[i].x = p[i + 96].y;",
        "p[i / 2].x = a[i];",
        "p[i].x = p[n - 1 - i].y;",
        "p[0].y = a[i];",
        "float* own = &p[i].x; own[4] = a[i]; own[0] = own[4];",
        "float* own = (float*)p + 2 * i; own[0] = a[i]; own[2] = 1.0f;",
        "p[i].x = a[i]; p[i].y = p[(int)a[i]].x;",
        "float* own = (float*)p + 3 * i; *(float4*)(own) = make_float4(a[i], 0, 0, 0);",
    ],
)
def test_members_that_two_items_may_share_are_refused(body: str) -> None:
    assert "meet in memory" in refused(unstrided(kernel(RECORDS.replace("BODY", body))))[0]
