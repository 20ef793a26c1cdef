"""What a thread adds up and adds to memory at last, added in its rounds; and what stays."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.added_in_rounds import added_in_rounds
from optiml_magic.proposers.rewrites.block_sum import BlockSum
from tests.ideas import asked, made
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(3) block(64)
__global__ void k(const unsigned char* a, KIND* out, int n) {
    if (n < 0) return;
    BODY
}
"""
LOOP = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)"
COUNT = f"int own = 0; {LOOP} if (a[i] == 7 || a[i] == 9) ++own; atomicAdd(out, own);"
LEFT = "nothing that is added at last is a sum of what rounds find"


def text_of(body: str, kind: str = "int") -> str:
    return TEXT.replace("BODY", body).replace("KIND", kind)


def ends(before: str, after: str, kind: str = "int") -> str:
    dtype = {"int": "i4", "unsigned long long": "u8"}.get(kind, "f4")
    arrays = {"a": Array("u1", ("n",), "small"), "out": Array(dtype, ("1",), "zeros")}
    return end_of(before, after, arrays, {"n": 700}, {"n": 1}, rounds=True)


@pytest.mark.parametrize(
    ("body", "kind", "now"),
    [
        (COUNT, "int", "atomicAdd(out, 1);"),
        (COUNT.replace("++own", "own += a[i] - 3"), "int", "atomicAdd(out, a[i] - 3);"),
        (COUNT.replace("int own", "float own"), "float", "atomicAdd(out, 1);"),
        (
            COUNT.replace("if (a", "own += a[i] > 9, own += (a").replace("++own", "").replace(") ;", ");"),
            "int", "",
        ),
        (
            (
                f"int own = 0, k = 0; {LOOP} {{ own += a[i] > 9; if (a[i] == 3) own++; }} "
                "atomicAdd(&out[k], (unsigned long long)own);"
            ),
            "unsigned long long", "atomicAdd(&out[k], (unsigned long long)(a[i] > 9));",
        ),
    ],
)  # fmt: skip
def test_parts_are_added_where_they_are_found(body: str, kind: str, now: str) -> None:
    text = text_of(body, kind)
    if not now:
        assert refused(added_in_rounds(kernel_of(text))) == LEFT
        return
    after = written(added_in_rounds(kernel_of(text)))
    assert now in after
    assert ends(text, after, kind) == "same"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (COUNT.replace("own = 0", "own = 1"), "int"),
        (COUNT.replace("int own", "unsigned own"), "unsigned long long"),
        (COUNT.replace("int own", "unsigned char own"), "int"),
        (COUNT.replace("int own", "double own"), "float"),
        (COUNT.replace("int own", "int own").replace("++own", "own += 1.5f"), "int"),
        (COUNT.replace("++own", "own += 2u * a[i]"), "unsigned long long"),
        (COUNT.replace("out, own", "out, own * own"), "int"),
        (COUNT.replace("out, own", "out, -own"), "int"),
        (COUNT.replace("++own", "own = 3 * own + 1"), "int"),
        (COUNT.replace("++own", "own = a[i]"), "int"),
        (COUNT.replace("++own", "{ if (own > 3) break; ++own; }"), "int"),
        (COUNT.replace("++own", "{ if (i > 90) return; ++own; }"), "int"),
        (COUNT.replace("atomicAdd(out", "if (n > 9) return; atomicAdd(out"), "int"),
        (COUNT.replace("++own", "{ int* p = &own; ++*p; }"), "int"),
        (COUNT.replace("; atomicAdd(out", "; int k = 0; atomicAdd(out + k"), "int"),
        (COUNT.replace("atomicAdd(out", "atomicAdd(out + a[0] % 1"), "int"),
        (COUNT.replace("atomicAdd", "atomicMax"), "int"),
        ("int own = 0; own += a[0]; atomicAdd(out, own);", "int"),
    ],
)
def test_what_is_more_than_a_sum_of_parts_stays(body: str, kind: str) -> None:
    assert refused(added_in_rounds(kernel_of(text_of(body, kind)))) == LEFT


def test_blocks_take_vectors_of_what_threads_counted_a_grid_apart() -> None:
    text = text_of(COUNT).replace("    if (n < 0) return;\n", "")
    ideas, _ = asked(BlockSum(), text)
    (first, *_) = made(ideas)
    assert "uint4" in first.text
    assert ends(text, first.text) == "same"
