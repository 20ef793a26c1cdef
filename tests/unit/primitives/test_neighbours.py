"""Which elements of its items a thread may take at once: from the end, of threes, of rows."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.coarsened import Coarse, coarsen
from tests.present import sampled

from .running import same
from .shapes import applied, kernel, refused

LINE = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const unsigned char* a, unsigned char* out, int n, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        BODY
    }
}
"""
ONE = Coarse(0, 1, 32)
SHAPES = {"a": ("u1", "3 * n"), "out": ("u1", "3 * n")}


@pytest.mark.parametrize("n", sampled([1, 530, 1024], 2))
@pytest.mark.parametrize(
    ("body", "vector"),
    [
        ("out[i] = a[n - 1 - i];", "&a[n - i_first - 16]"),
        ("out[n - 1 - i] = a[i];", "&out[n - i_first - 16]"),
        ("out[i] = a[n - 1 - i] + a[i];", "a_items_2"),
        (("int j = 3 * (n - 1 - i); out[3 * i] = a[j + 2]; out[3 * i + 1] = a[j + 1]; "
          "out[3 * i + 2] = a[j];"), "a_items[(turn * 16 + 15 - i_item) * 3 + 2]"),
        ("out[n - 1 - i] = a[i]; out[n - 1 - i] += 3;", "out_items[turn * 16 + 15 - i_item]"),
    ],
)  # fmt: skip
def test_items_may_lie_from_the_last_to_the_first(body: str, vector: str, n: int) -> None:
    text = LINE.replace("BODY", body)
    made = coarsen(kernel(text), ONE)
    assert vector in applied(made).program.text
    same(text, made, SHAPES, {"n": n, "w": 8})


@pytest.mark.parametrize("w", sampled([16, 24, 48], 2))
def test_rows_that_are_turned_hold_whole_vectors(w: int) -> None:
    text = LINE.replace("BODY", "int x = i % w, y = i / w; out[i] = a[y * w + w - 1 - x];")
    made = coarsen(kernel(text), ONE)
    assert "w % 16 == 0" in applied(made).program.text
    same(text, made, SHAPES, {"n": 17 * w, "w": w})


@pytest.mark.parametrize(
    "body", ["int j = n - 1 - i, t = out[i]; out[i] = out[j]; out[j] = t;",
             "out[i] = out[n - 1 - i];"],
)  # fmt: skip
def test_both_ends_of_one_array_are_refused(body: str) -> None:
    assert "`out`" in refused(coarsen(kernel(LINE.replace("BODY", body)), ONE))[0]


HALF = LINE.replace("cdiv(n, 32)", "cdiv(n / 2, 32)").replace("i < n)", "i < n / 2)")
SWAP = "int t = out[i]; out[i] = out[FAR]; out[FAR] = t + a[i];"


@pytest.mark.parametrize("n", sampled([6, 63, 1025, 1088], 2))
@pytest.mark.parametrize("far", ["n - 1 - i", "i + n / 2", "n - n / 2 + i"])
def test_ends_and_halves_are_exchanged_where_they_are(far: str, n: int) -> None:
    text = HALF.replace("BODY", SWAP.replace("FAR", far))
    made = coarsen(kernel(text), ONE)
    assert "out_items_2" in applied(made).program.text
    same(text, made, SHAPES, {"n": n, "w": 8})


@pytest.mark.parametrize("half", ["(n + 1) / 2", "n"])
@pytest.mark.parametrize("far", ["n - 1 - i", "i + w"])
def test_ends_that_may_meet_are_refused(half: str, far: str) -> None:
    text = HALF.replace("BODY", SWAP.replace("FAR", far)).replace("n / 2", half)
    assert "`out`" in refused(coarsen(kernel(text), ONE))[0]


@pytest.mark.parametrize("kind", ["u1 uchar3", "i1 char3", "f4 float3"])
@pytest.mark.parametrize("many", sampled([64, 531, 1024], 1))
@pytest.mark.parametrize(
    "body",
    [
        "VECTOR v = a[i]; v.x += v.z; out[i] = v;",
        "out[i].x = a[i].y; out[i].y = a[i].z; out[i].z = a[i].x;",
        "VECTOR v; v.x = a[n - 1 - i].x; v.y = a[n - 1 - i].y; v.z = a[n - 1 - i].z; out[i] = v;",
    ],
)
def test_vectors_of_three_and_their_members(body: str, many: int, kind: str) -> None:
    dtype, name = kind.split()
    text = LINE.replace("BODY", body).replace("VECTOR", name).replace("unsigned char", name)
    made = coarsen(kernel(text), ONE)
    found = applied(made).program.text
    assert found.count("4*>(&a[") == found.count("4*>(&out[") == 3
    shape = ("n", "3") if dtype == "f4" else (dtype, "n", "3")
    same(text, made, {"a": shape, "out": shape}, {"n": many, "w": 8})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("out[i].y = a[i].y;", "of `a` its items do not have"),
        ("out[i] = a[i]; out[i].y = 1;", "`out`"),
        ("out[i].x = out[i].y;", "`out`"),
    ],
)
def test_members_that_leave_others_alone_are_refused(body: str, reason: str) -> None:
    text = LINE.replace("BODY", body).replace("unsigned char", "uchar3")
    assert reason in refused(coarsen(kernel(text), ONE))[0]


def test_rows_that_begin_between_the_items_of_a_vector_are_refused() -> None:
    body = "out[i] = a[2 * i + i / w * n] + a[2 * i + i / w * n + 1];"
    assert "`a`" in refused(coarsen(kernel(LINE.replace("BODY", body)), ONE))[0]


@pytest.mark.parametrize(("own", "far"), [(6, 4), (8, 1), (16, 2)])
def test_items_of_as_many_bytes_as_a_vector(own: int, far: int) -> None:
    """``own`` elements of each are loaded, and ``far`` stored."""
    total = " + ".join(f"a[{own} * i + {at}]" for at in range(own))
    body = " ".join(f"out[{far} * i + {at}] = {total} + {at};" for at in range(far))
    text = LINE.replace("BODY", body)
    made = coarsen(kernel(text), ONE)
    assert f"(size_t)a % {min(16, 8 * own & -(8 * own))} == 0" in applied(made).program.text
    shapes = {"a": ("u1", f"{own} * n"), "out": ("u1", f"{far} * n")}
    same(text, made, shapes, {"n": 530, "w": 8})


BESIDE = """\
struct Turn { float w, x, y, z; };
__device__ float along(const Turn& t, float3 v) { return t.w + t.x * v.x + t.y * v.y + t.z * v.z; }
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float3* a, const Turn* q, float3* out, int n, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        BODY
    }
}
"""
STORED = "v.y *= s; out[i] = v;"


@pytest.mark.parametrize("n", sampled([3, 64, 531], 2))
@pytest.mark.parametrize(
    "body",
    [
        f"float3 v = a[i]; float s = along(q[i], v); {STORED}",
        f"float3 v = a[i]; Turn t = q[i]; float s = t.z - t.w; {STORED}",
        f"float3 v = a[i]; float s = q[i].x; {STORED}",
        f"float3 v = a[i]; float s = q[n - 1 - i].x; {STORED}",
        f"float3 v = a[i]; float s = v.x > 0.0f ? q[i].x : 2.0f; {STORED}",
    ],
)
def test_elements_that_are_vectors_by_themselves_stay_with_their_items(body: str, n: int) -> None:
    text = BESIDE.replace("BODY", body)
    made = coarsen(kernel(text), ONE)
    assert applied(made).program.text.count("4*>(&out[") == 3
    same(text, made, {"a": ("n", "3"), "q": ("n", "4"), "out": ("n", "3")}, {"n": n, "w": 8})


@pytest.mark.parametrize(
    "body",
    [
        "out[i] = a[i]; ((Turn*)q)[i].x = 1.0f;",
        "float3 v = a[i]; for (int k = 0; k < 2; ++k) v.x += q[i + k].x; out[i] = v;",
    ],
)
def test_wide_elements_that_are_stored_or_asked_for_in_rounds_are_refused(body: str) -> None:
    assert "`q`" in refused(coarsen(kernel(BESIDE.replace("BODY", body)), ONE))[0]
