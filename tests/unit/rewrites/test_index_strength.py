"""Which divisions get a number for what they divide by."""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.primitives.base import Kernel, kernels
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.proposers.rewrites.index_strength import IndexStrength
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.source.program import parse_program
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of

TEXT = """
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, const float* scales, float* out, int n, int m, int group) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0;
    for (int j = 0; j < m; j++) s += a[i * m + j] * scales[j / group];
    out[i] = s;
}"""
ARRAYS = {
    "a": Array("f4", ("n", "m")), "scales": Array("f4", ("m",)), "out": Array("f4", ("n",), "zeros"),
}  # fmt: skip


def known(text: str, **scalars: int) -> list[Site]:
    (kernel,) = kernels(parse_program(text), None)
    facts = LaunchFacts("k", 1, (2, 1, 1), (64, 1, 1), {}, {"n": 70, "m": 96, **scalars})
    found = IndexStrength().sites(replace(kernel, facts=facts))
    return [one for one in found if isinstance(one, Site) and one.key == "known"]


def test_a_loop_divides_by_a_number_where_the_size_is_at_hand() -> None:
    (site,) = known(TEXT, group=32)
    assert (site.title, site.prior) == ("divide by numbers, where group is 32", 0.6)
    assert known(TEXT, group=24)[0].prior == 0.45
    made = site.apply()
    assert isinstance(made, Kernel)
    assert "scales[j / 32]" in made.program.text
    assert "#pragma optiml require group == 32" in made.program.text
    sizes = {"n": 70, "m": 96, "group": 32}, {"n": 33, "m": 9, "group": 3}
    assert end_of(TEXT, made.program.text, ARRAYS, *sizes) == "narrowed"


def test_other_divisions_stay() -> None:
    assert not known(TEXT, group=4096)  # as large as data are
    assert not known(TEXT, group=1)
    assert not known(TEXT.replace("j / group", "j / 32"), group=32)
    assert not known(TEXT.replace("j / group", "i / group"), group=32)  # once a thread
    assert not known(TEXT.replace("j / group", "j / (group + 1)"), group=32)
    assert not known(TEXT.replace("float s = 0;", "float s = 0; group += i;"), group=32)


def test_blocks_are_as_wide_as_rows_first() -> None:
    text = """
#pragma optiml launch k grid(cdiv(w * h, 256)) block(256)
__global__ void k(const float* a, float* out, int w, int h) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < w * h) out[i] = a[i % w] + a[i / w];
}"""
    (kernel,) = kernels(parse_program(text), None)
    for width, block in ((64, (64, 4)), (512, (256, 1)), (96, (32, 8))):
        facts = LaunchFacts("k", 1, (256, 1, 1), (256, 1, 1), {}, {"w": width, "h": 1024})
        (site,) = IndexStrength().sites(replace(kernel, facts=facts))
        assert isinstance(site, Site)
        assert tuple(site.points[0].values()) == block
