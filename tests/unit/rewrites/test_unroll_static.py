"""A tuned number of rounds at a time."""

from __future__ import annotations

from optiml_magic.kernels.primitives.base import kernels
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.proposers.rewrites.unroll_static import UnrollStatic
from optiml_magic.source.program import parse_program
from tests.ideas import asked
from tests.rewriting.offers import Offer
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made
from tests.unit.primitives.shapes import applied

TEXT = """
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* c, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0.0f;
    for (int j = 0; j < m; j++)
        s += a[j * n + i];
    c[i] = s;
}"""


def site_of(text: str, sizes: dict[str, int]) -> Site:
    arrays = {"a": Array("f4", ("m", "n")), "c": Array("f4", ("n",))}
    stand = Stand(Made("one", text, arrays, sizes, sizes))
    (kernel,) = kernels(parse_program(stand.text), stand.facts(stand.text))
    (site,) = UnrollStatic().sites(kernel)
    assert isinstance(site, Site)
    return site


def test_more_loads_at_a_time(compiles):
    made = applied(site_of(TEXT, {"n": 70, "m": 100}).apply()).program
    assert "    #pragma unroll UNROLL\n    for (int j = 0; j < m; j++)" in made.text
    assert "#pragma optiml tune UNROLL in {1, 2, 4, 8, 16} = 8" in made.text
    for count in (8, 16):
        text = made.with_values({"UNROLL": count}).text
        assert compiles(text).count("ld.global") >= count


def test_few_rounds_are_loaded_at_once(compiles):
    site = site_of(TEXT, {"n": 70, "m": 9})
    assert site.points == ({"ROUNDS": 4}, {"ROUNDS": 8}, {"ROUNDS": 2})
    made = applied(site.apply()).program
    assert compiles(made.text).count("ld.global") == 4
    assert [p["ROUNDS"] for p in site_of(TEXT, {"n": 70, "m": 3}).points] == [2]


def test_what_is_said_or_known_already():
    assert not asked(UnrollStatic(), TEXT.replace("    for", "    #pragma unroll 2\n    for"))[0]
    assert not asked(UnrollStatic(), TEXT.replace("j < m", "j < 9"))[0]
    assert not asked(UnrollStatic(), TEXT.replace("a[j * n + i]", "j"))[0]
    waits = TEXT.replace("s +=", "{ __syncthreads(); s +=").replace("+ i];", "+ i]; }")
    assert not asked(UnrollStatic(), waits)[0]


def test_a_number_of_many_rounds_is_as_one_that_a_size_says(compiles):
    text = TEXT.replace("s +=", "s = 2.0f * s +").replace("j < m", "j < 100")  # no sum of chains
    site = site_of(text, {"n": 70, "m": 100})
    assert {"UNROLL": 16} in site.points
    made = applied(site.apply()).program
    assert compiles(made.with_values({"UNROLL": 16}).text).count("ld.global") >= 16


RUNNING = """
#pragma optiml launch ema grid(cdiv(c, 256)) block(256)
__global__ void ema(const float* x, float* y, int t, int c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= c) return;
    float s = 0.0f;
    for (int k = 0; k < t; k++) {
        s = 0.9f * s + x[k * c + i];
        y[k * c + i] = s;
    }
}"""


def test_loads_of_later_rounds_may_pass_what_a_round_stores():
    arrays = {"x": Array("f4", ("t", "c")), "y": Array("f4", ("t", "c"), "zeros")}
    stand = Stand(Made("one", RUNNING, arrays, {"t": 40, "c": 300}, {"t": 3, "c": 9}))
    (kernel,) = kernels(parse_program(stand.text), stand.facts(stand.text))
    (site,) = UnrollStatic().sites(kernel)
    assert isinstance(site, Site)
    text = applied(site.apply()).program.text
    assert "const float* __restrict__ x, float* __restrict__ y" in text
    assert "grid(cdiv(c, 32)) block(32)" in text  # fewer threads than multiprocessors could have
    assert site.prior > 0.5
    assert stand.applied(Offer("one", "", text), RUNNING).sound
