"""Maps as vectors: what is offered with which numbers, and for what nothing is."""

from __future__ import annotations

import pytest

from optiml_magic.source.program import parse_program

MAP = """
#pragma optiml launch k grid(cdiv(n, 128)) block(128)
__global__ void k(const float* a, const float* b, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) o[i] = a[i];
}"""


@pytest.mark.parametrize(("value", "items"), [("a[i]", [2, 4, 2]), ("a[i] * b[i]", [1, 2, 1])])
def test_so_many_vectors_that_enough_bytes_are_under_way(value, items, propose, compiles):
    found = propose("vectorise_map", MAP.replace("a[i];", f"{value};"))
    values = [parse_program(p.text).values for p in found]
    assert [v["ITEMS"] for v in values] == items
    assert [v["BLOCK"] for v in values] == [256, 256, 128]
    compiles(found[0].text)


def test_the_second_kernel_has_names_of_its_own(propose):
    text = propose("vectorise_map", MAP)[0].text + MAP.replace("launch k", "launch l").replace(
        "void k", "void l"
    )
    found = [p for p in propose("vectorise_map", text) if "ITEMS_2" in p.text]
    assert parse_program(found[0].text).values == {
        "ITEMS": 2, "BLOCK": 256, "ITEMS_2": 2, "BLOCK_2": 256,
    }  # fmt: skip


def test_fields_of_an_item_are_taken_alone_or_with_their_neighbours(propose):
    found = propose("vectorise_map", MAP.replace("o[i] = a[i];", "{ o[2 * i] = a[i]; o[2 * i + 1] = b[i]; }"))  # fmt: skip
    assert {"float4*>(&o" in p.text for p in found} == {True, False}
    assert all("float2*>(&o" in p.text or "float4*>(&o" in p.text for p in found)


@pytest.mark.parametrize(
    "text",
    [
        MAP.replace("o[i] = a[i]", "o[i] = a[i] + a[i + 1]"),
        MAP.replace("o[i] = a[i]", "o[n - 1 - i] += o[i]"),
        MAP.replace("o[i] = a[i]", "for (int j = 0; j < 9; ++j) o[i * 9 + j] = a[j]"),
        MAP.replace("if (i < n) ", ""),
        MAP.replace("float", "float4"),
    ],
)
def test_refused(text, propose):
    assert propose("vectorise_map", text) == []
