"""Sizes and places of 64 bits keep them in whatever is made of a kernel."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.coarsened import Coarse, coarsen
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.lanes import Lanes, share
from optiml_magic.kernels.primitives.mapped import mapped
from optiml_magic.kernels.primitives.naming import LocalSpeller, speller_before
from optiml_magic.kernels.primitives.owned import hold
from optiml_magic.kernels.symbols import Symbol

from .running import same
from .shapes import applied, kernel

PRODUCT = """\
#pragma optiml launch k grid(cdiv(h * w * c, 256)) block(256)
__global__ void k(const unsigned char* a, unsigned char* out, int h, int w, int c) {
    LONG total = (LONG)h * w * c;
    LONG i = (LONG)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < total) out[i] = a[i] ^ 5;
}
"""
ROWS = """\
#pragma optiml launch k grid(cdiv(h, 64)) block(64)
__global__ void k(const float* a, float* out, int w, int h) {
    LONG r = (LONG)blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    float s = 0.0f;
    for (int c = 0; c < w; ++c) s += a[r * w + c];
    out[r] = s;
}
"""
UNNAMED = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* out, int n, int w) {
    if ((size_t)blockIdx.x * blockDim.x + threadIdx.x < n)
        out[((size_t)blockIdx.x * blockDim.x + threadIdx.x) * w] =
            a[((size_t)blockIdx.x * blockDim.x + threadIdx.x) * w];
}
"""
LANES = [
    Lanes("warp", 32, 256, (8, 32), (128, 256)),
    Lanes("block", 256, 256, (128, 256), (128, 256)),
    Lanes("apart", 4, 64, (2, 4), (64, 128)),
    Lanes("stacked", 2, 64, (2,), (64, 128)),
]
KINDS = pytest.mark.parametrize("kind", ["size_t", "long long"])


def _speller(one: Kernel) -> LocalSpeller:
    return speller_before(one, Effects(one), one.function.body.body[-1])


def test_so_many_items_that_32_bits_do_not_count_them() -> None:
    wide = kernel(PRODUCT.replace("LONG", "size_t"))
    limit = mapped(wide, Effects(wide)).limit(_speller(wide))
    assert limit.startswith("(long long)")
    assert limit.count(" * ") == 2
    narrow = kernel(PRODUCT.replace("LONG", "int"))
    assert "long" not in mapped(narrow, Effects(narrow)).limit(_speller(narrow))


def test_a_sum_of_sizes_is_counted_with_as_many_bits() -> None:
    text = PRODUCT.replace("LONG", "long long").replace("h * w * c", "h + w - c")
    one = kernel(text.replace("(long long)h * w * c", "(long long)h + w - c"))
    assert mapped(one, Effects(one)).limit(_speller(one)) == "((long long)h + w - c)"


@KINDS
def test_the_bound_of_several_items(kind: str) -> None:
    text = PRODUCT.replace("LONG", kind)
    made = coarsen(kernel(text), Coarse(0, 1, 64))
    shown = applied(made).program.text
    assert "i_start + tile <= (long long)" in shown
    assert "if (i < (long long)" in shown
    shapes = {"a": ("u1", "h", "w", "c"), "out": ("u1", "h", "w", "c")}
    same(text, made, shapes, {"h": 9, "w": 16, "c": 8})


@KINDS
@pytest.mark.parametrize("lanes", LANES, ids=lambda lanes: lanes.group)
def test_lanes_stand_for_a_thread_by_a_number_of_its_length(lanes: Lanes, kind: str) -> None:
    text = ROWS.replace("LONG", kind)
    made = share(kernel(text), (0,), lanes)
    shown = applied(made).program.text
    assert "(long long)blockIdx.x" in shown
    assert "(int)" not in shown
    assert "(int)" in applied(share(kernel(ROWS.replace("LONG", "int")), (0,), lanes)).program.text
    same(text, made, {"a": ("h", "w"), "out": ("h",)}, {"h": 70, "w": 37})


def test_lanes_of_a_plane_count_its_threads_with_64_bits() -> None:
    text = ROWS.replace("block(64)", "block(32, 2)").replace("cdiv(h, 64)", "cdiv(h, 32), 1")
    text = text.replace("if (r >= h) return;", "if (r >= h || threadIdx.y > 0) return;")
    made = applied(share(kernel(text.replace("LONG", "size_t")), (0,), LANES[0]))
    assert "const long long item = ((long long)blockIdx.x" in made.program.text
    made = applied(share(kernel(text.replace("LONG", "int")), (0,), LANES[0]))
    assert "const int item = (int)(blockIdx.x" in made.program.text


def test_a_place_that_has_no_name_keeps_its_length() -> None:
    one = kernel(UNNAMED)
    found = mapped(one, Effects(one))
    assert found.words == "size_t"
    made = coarsen(kernel(UNNAMED.replace(") * w", ")")), Coarse(0, 1, 64))
    assert "size_t i_start" in applied(made).program.text


def test_what_a_thread_owns_begins_at_a_place_of_its_length() -> None:
    text = (
        "#pragma optiml launch k grid(cdiv(n, 64)) block(64)\n"
        "__global__ void k(const float* a, float* out, int n) {\n"
        "    if ((long long)blockIdx.x * blockDim.x + threadIdx.x >= n) return;\n"
        "    const float* own = a + 8 * ((long long)blockIdx.x * blockDim.x + threadIdx.x);\n"
        "    float s = 0.0f;\n    for (int k = 0; k < 8; ++k) s += own[k] * own[7 - k];\n"
        "    out[(long long)blockIdx.x * blockDim.x + threadIdx.x] = s;\n}\n"
    )
    made = hold(kernel(text), 0)
    assert "((long long)blockIdx.x * blockDim.x + threadIdx.x)" in applied(made).program.text
    assert "(int)" not in applied(made).program.text
    same(text, made, {"a": ("8 * n",), "out": ("n",)}, {"n": 70})


@pytest.mark.parametrize(
    ("sizes", "wanted"),
    [
        ("int n, int m", "min(n, m)"),
        ("size_t n, int m", "min((long long)n, (long long)m)"),
        ("int n, long long m", "min((long long)n, (long long)m)"),
    ],
)
def test_of_numbers_of_two_lengths_the_least_is_found_among_long_ones(
    sizes: str, wanted: str
) -> None:
    one = kernel(f"#pragma optiml launch k grid(1) block(64)\n__global__ void k({sizes}) {{}}\n")
    least = one.reading_operations().operation(
        "min", tuple(one.reading.symbols.of(Symbol(n, "scalar", frozenset({n}))) for n in "nm")
    )
    speller = LocalSpeller(one.reading.symbols, {})
    speller.kernel = one
    assert speller.form(least) == wanted
