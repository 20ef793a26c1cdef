"""Small tables that data choose from: where it pays to bring them, and where not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, kernels
from optiml_magic.model.facts import ArrayFacts, LaunchFacts
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.proposers.rewrites.share_table import ShareTable
from optiml_magic.source.program import parse_program

SEARCH = """\
#pragma optiml launch rank grid(cdiv(n, 256)) block(256)
__global__ void rank(const float* edges, const float* x, int* bin, int m, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        int low = 0, high = m;
        while (low < high) {
            int at = (low + high) / 2;
            if (edges[at] < x[i]) low = at + 1; else high = at;
        }
        bin[i] = low;
    }
}
"""
PALETTE = """\
#pragma optiml launch paint grid(cdiv(n, 256)) block(256)
__global__ void paint(const float* colour, const unsigned char* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = colour[x[i]];
}
"""


def found(text: str, table: str, count: int, n: int = 1 << 22) -> list[Site | Refused]:
    """What the rule says of a kernel whose table has so many floats, for so many items."""
    (kernel,) = kernels(parse_program(text), None)
    arrays = {
        access.array: ArrayFacts(access.array, "in", "<f4", (n,), 4 * n, 256)
        for access in kernel.reading.accesses
    }
    arrays[table] = ArrayFacts(table, "in", "<f4", (count,), 4 * count, 256)
    facts = LaunchFacts("", 1, (n // 256, 1, 1), (256, 1, 1), arrays, {"n": n, "m": count})
    rule = ShareTable()
    known = replace(rule.shaped(replace(kernel, facts=facts)), facts=facts)
    return [*rule.sites(known)]


@pytest.mark.parametrize(
    ("text", "table", "priors"), [(SEARCH, "edges", [0.75]), (PALETTE, "colour", [0.5, 0.47])]
)
def test_tables_that_data_choose_from(text: str, table: str, priors: list[float], compiles) -> None:
    sites = [one for one in found(text, table, 256) if isinstance(one, Site)]
    assert [round(site.prior, 2) for site in sites] == priors
    first = sites[0]
    made = first.apply()
    assert isinstance(made, Kernel)
    assert f"{table}_table[256];" in made.program.text
    assert first.points[0]["BLOCKS"] * first.points[0]["BLOCK"] == 132 * 2048
    compiles(made.program.text)


def test_large_tables_and_few_items_are_left_alone() -> None:
    wide = PALETTE.replace("unsigned char", "unsigned short")
    assert not [s for s in found(wide, "colour", 1 << 14) if isinstance(s, Site)]
    (refused,) = found(PALETTE, "colour", 4096, n=1 << 16)
    assert refused == Refused("4096 elements are too many for 65536 threads", 4)
    whole = PALETTE.replace("colour[x[i]]", "colour[i % 256]")
    assert not found(whole, "colour", 256)
