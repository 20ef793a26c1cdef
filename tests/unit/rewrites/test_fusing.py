"""Launches in a row as one: how many at once, what is said of it, and where nothing is offered."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import kernels
from optiml_magic.model.facts import Facts, LaunchFacts
from optiml_magic.proposers.rewrites import REWRITES
from optiml_magic.proposers.rewrites.fuse_map_reduce import FuseMapReduce
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.source.program import parse_program
from tests.ideas import asked, made

HEAD = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
CHAIN = f"""\
#pragma optiml scratch s f4[n]
#pragma optiml scratch t f4[n]
#pragma optiml launch one grid(cdiv(n, 256)) block(256)
#pragma optiml launch two grid(cdiv(n, 256)) block(256)
#pragma optiml launch three grid(cdiv(n, 256)) block(256)
__global__ void one(const float* a, float* s, int n) {{ {HEAD} if (i < n) s[i] = a[i] + 1.0f; }}
__global__ void two(const float* s, float* t, int n) {{ {HEAD} if (i < n) t[i] = s[i] - 2.0f; }}
__global__ void three(const float* t, float* o, int n) {{ {HEAD} if (i < n) o[i] = t[i] * t[i]; }}
"""
ROWS = """\
#pragma optiml scratch t f4[h * w]
#pragma optiml launch squares grid(cdiv(h * w, 256)) block(256)
#pragma optiml launch sums grid(cdiv(h, 256)) block(256)
#pragma optiml launch scaled grid(cdiv(w, 32), cdiv(h, 8)) block(32, 8)
__global__ void squares(const float* a, float* t, int h, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < h * w) t[i] = a[i] * a[i];
}
__global__ void sums(const float* t, float* s, int h, int w) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    float sum = 0.0f;
    for (int j = 0; j < w; j++) sum += t[r * w + j];
    s[r] = sum;
}
__global__ void scaled(const float* a, const float* s, float* o, int h, int w) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r < h && c < w) o[r * w + c] = a[r * w + c] / s[r];
}
"""
RULES = {rule.name: rule for rule in REWRITES}


def test_all_of_a_chain_at_once(compiles) -> None:
    ideas, refused = asked(RULES["fuse_elementwise"], CHAIN)
    assert [i.title.split(" into")[0] for i in ideas] == ["fuse one, two and three", "fuse two and three"]  # fmt: skip
    assert ideas[0].prior > ideas[1].prior
    assert not any(i.arithmetic for i in ideas)
    assert not refused
    found = made(ideas[:1])[0].text
    assert "scratch" not in found
    compiles(found)


def test_products_that_a_sum_follows_may_be_rounded_together() -> None:
    text = CHAIN.replace("a[i] + 1.0f", "a[i] * 3.0f")
    ideas, _ = asked(RULES["fuse_elementwise"], text)
    assert [bool(i.arithmetic) for i in ideas] == [True, False]


def test_a_product_and_what_finishes_it_are_one_kernel_of_tiles(compiles) -> None:
    text = """\
#pragma optiml launch product grid(cdiv(n, 16), cdiv(m, 16)) block(16, 16)
#pragma optiml launch relu grid(cdiv(m * n, 256)) block(256)
__global__ void product(const float* a, const float* b, float* c, int m, int n, int k) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= m || j >= n) return;
    float s = 0.0f;
    for (int q = 0; q < k; q++) s += a[i * k + q] * b[q * n + j];
    c[i * n + j] = s;
}
__global__ void relu(float* c, const float* bias, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < m * n) c[i] = fmaxf(c[i] + bias[i % n], 0.0f);
}
"""
    ideas, _ = asked(RULES["fuse_elementwise"], text)
    fuse, *tiled = [i for i in ideas if i.title.startswith("fuse product and relu")]
    assert all("; tiles in shared memory and registers" in i.title for i in tiled)
    assert max(i.prior for i in tiled) > fuse.prior
    found = made(tiled[:1])[0].text
    assert found.count("#pragma optiml launch") == 1
    assert "_tile[" in found
    assert "fmaxf(" in found
    compiles(found)


GATED = """\
#pragma optiml scratch u f4[m * n]
#pragma optiml launch first grid(cdiv(n, 16), cdiv(m, 16)) block(16, 16)
#pragma optiml launch second grid(cdiv(n, 16), cdiv(m, 16)) block(16, 16)
#pragma optiml launch gated grid(cdiv(m * n, 256)) block(256)
__global__ void first(const float* a, const float* v, float* c, int m, int n, int k) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= m || j >= n) return;
    float s = 0.0f;
    for (int q = 0; q < k; q++) s += a[i * k + q] * v[j * k + q];
    c[i * n + j] = s;
}
__global__ void second(const float* a, const float* w, float* u, int m, int n, int k) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= m || j >= n) return;
    float s = 0.0f;
    for (int q = 0; q < k; q++) s += a[i * k + q] * w[j * k + q];
    u[i * n + j] = s;
}
__global__ void gated(float* c, const float* u, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < m * n) c[i] = c[i] / (1.0f + expf(-c[i])) * u[i];
}
"""


def test_two_products_of_one_row_are_one(compiles) -> None:
    ideas, _ = asked(RULES["fuse_elementwise"], GATED)
    both = [i for i in ideas if i.title.startswith("fuse first, second and gated")]
    found = made(both[1:2])[0].text
    assert found.count("#pragma optiml launch") == 1
    assert found.count("s_tile[own_row][own_col] +=") == 1
    assert found.count("a_tile[half][deep + element][own] =") == 1
    assert "scratch" not in found
    compiles(found)


def test_products_of_other_rows_stay_apart() -> None:
    text = GATED.replace("const float* a, const float* w", "const float* b, const float* w")
    ideas, refused = asked(
        RULES["fuse_elementwise"], text.replace("a[i * k + q] * w", "b[i * k + q] * w")
    )
    assert ideas[0].title.startswith("fuse second and gated into")
    assert refused[0].reason == "each of them is a product of its own"


def test_a_reduction_and_what_is_around_it_is_one_kernel_of_lanes(compiles) -> None:
    ideas, refused = asked(RULES["fuse_map_reduce"], ROWS)
    assert not refused
    assert [i.title.split(";")[0] for i in ideas[:2]] == ["fuse squares, sums and scaled by rows"] * 2  # fmt: skip
    text = made(ideas[:1])[0].text
    assert text.count("#pragma optiml launch") == 1
    assert "LANES" in text
    compiles(text)


BLURS = """\
#pragma optiml scratch t f4[h * w]
#pragma optiml launch across grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
#pragma optiml launch down grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
__global__ void across(const float* a, float* t, int h, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0.0f;
    for (int i = -2; i <= 2; i++) if (x + i >= 0 && x + i < w) s += a[y * w + x + i];
    t[y * w + x] = s;
}
__global__ void down(const float* t, float* o, int h, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0.0f;
    for (int i = -2; i <= 2; i++) if (y + i >= 0 && y + i < h) s += t[(y + i) * w + x];
    o[y * w + x] = s;
}
"""


def test_two_passes_over_an_image_are_one_of_several_pixels(compiles) -> None:
    ideas, _ = asked(RULES["fuse_map_reduce"], BLURS)
    assert ideas
    for found in made(ideas):
        assert "scratch" not in found.text
        assert found.text.count("launch ") == 1
        assert "ITEMS_" in found.text
        compiles(found.text)


@pytest.mark.parametrize(
    ("old", "new", "reason", "line"),
    [
        ("s[i] - 2.0f", "s[n - 1 - i] - 2.0f", "another thread", 7),
        ("if (i < n) s[i] = a[i]", "if (i < n) s[i] = threadIdx.x", "more than its index", 6),
    ],
)
def test_refused_with_its_line(old: str, new: str, reason: str, line: int) -> None:
    _, refused = asked(RULES["fuse_elementwise"], CHAIN.replace(old, new))
    assert reason in refused[0].reason
    assert refused[0].line == line


def test_an_index_that_is_divided_is_offered_as_two_axes(compiles) -> None:
    text = f"""\
#pragma optiml launch k grid(cdiv(h * w, 256)) block(256)
__global__ void k(const float* a, const float* b, float* o, int h, int w) {{
    {HEAD}
    if (i < h * w) o[i] = a[i % w * h + i / w];
}}
"""
    ideas, _ = asked(RULES["index_strength"], text)
    texts = [p.text for p in made(ideas)]
    assert [("BLOCK_X" in t, "BLOCK_Y" in t) for t in texts] == [(True, True)] * 3
    assert all("<= 65535" in t for t in texts)
    compiles(texts[0])
    assert not asked(RULES["index_strength"], text.replace("a[i % w * h + i / w]", "a[i]"))[0]


PATHS = f"""\
#pragma optiml scratch walk f4[40 * n]
#pragma optiml zero(worth)
#pragma optiml launch onward grid(cdiv(n, 256)) block(256)
#pragma optiml launch back grid(cdiv(n, 256)) block(256)
__global__ void onward(const float* x, float* walk, int n) {{
    {HEAD}
    if (i >= n) return;
    float s = 1.0f;
    for (int k = 0; k < 40; k++) {{ s *= x[k * n + i]; walk[k * n + i] = s; }}
}}
__global__ void back(const float* walk, float* worth, int n) {{
    {HEAD}
    if (i >= n) return;
    float s = 0.0f;
    for (int k = 39; k >= 0; k--) s = fmaxf(0.5f * s, walk[k * n + i]);
    atomicAdd(worth, s);
}}
"""


def test_what_a_thread_leaves_for_the_next_launch_stays_in_registers(compiles) -> None:
    ideas, refused = asked(RULES["fuse_elementwise"], PATHS)
    assert not refused
    both, own, fused = sorted(ideas, key=lambda idea: -idea.prior)
    assert "in walk in registers; add up in a block what all threads update in worth" in both.title
    assert own.title.endswith("in walk in registers: RESIDENT = 4")
    assert fused.title == "fuse onward and back into one kernel"
    texts = [p.text for p in made([both])]
    assert len(texts) == 3  # with registers for four blocks, five and three
    for text in texts:
        compiles(text)
        assert "scratch" not in text
        assert text.count("#pragma unroll") == 2
        assert "__launch_bounds__(256, RESIDENT) onward_back" in text
        assert text.count("atomicAdd") == 1
        assert "if (threadIdx.x == 0" in text


def test_what_is_too_much_for_registers_stays_in_memory() -> None:
    text = PATHS.replace("40", "400").replace("39", "399")
    ideas, _ = asked(RULES["fuse_elementwise"], text)
    assert not any("registers" in idea.title for idea in ideas)
    assert ideas[0].title == "fuse onward and back into one kernel"


def test_what_a_kernel_leaves_for_itself_stays_in_registers(compiles) -> None:
    (one,) = (p for p in made(asked(RULES["fuse_elementwise"], PATHS)[0])
              if p.title == "fuse onward and back into one kernel")  # fmt: skip
    (idea,) = (i for i in asked(RULES["scalarise_array"], one.text)[0] if "walk" in i.title)
    (text, *_) = (p.text for p in made([idea]))
    compiles(text)
    assert "float walk_own[40];" in text
    data_says = one.text.replace("k < 40", "k < x[i]")
    ideas, refused = asked(RULES["scalarise_array"], data_says)
    assert not any("walk" in i.title for i in ideas)
    assert "how many elements of `walk`" in refused[0].reason


def test_a_round_leaves_nothing_in_memory_for_the_same_round_of_the_next_launch(compiles) -> None:
    text = PATHS.replace("k = 39; k >= 0; k--", "k = 0; k < 40; k++").replace("40", "n")
    ideas, _ = asked(RULES["fuse_elementwise"], text)
    assert ideas[0].title == "fuse onward and back into one kernel"
    one = next(p.text for p in made(ideas[:1]))
    compiles(one)
    assert "scratch" not in one
    assert one.count("for (") == 1
    assert "float walk_own = " in one


def test_what_passes_by_either_of_two_ways_is_a_local(compiles) -> None:
    text = CHAIN.replace(
        "s[i] = a[i] + 1.0f;", "{ if (a[i] > 0.0f) s[i] = a[i]; else s[i] = 1.0f; }"
    )
    ideas, _ = asked(RULES["fuse_elementwise"], text)
    one = next(p.text for p in made(ideas[:1]))
    compiles(one)
    assert "scratch" not in one


OFTEN = """\
#pragma optiml scratch t f4[c * n]
#pragma optiml launch relu grid(cdiv(c * n, 256)) block(256)
#pragma optiml launch filters grid(cdiv(f * n, 256)) block(256)
__global__ void relu(const float* x, float* t, int c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < c * n) t[i] = fmaxf(x[i], 0.0f);
}
__global__ void filters(const float* t, const float* w, float* y, int c, int n, int f) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= f * n) return;
    float s = 0.0f;
    for (int k = 0; k < c; k++) s += w[i / n * c + k] * t[k * n + i % n];
    y[i] = s;
}
"""


@pytest.mark.parametrize(("filters", "prior"), [(2, 0.8), (64, 0.3)])
def test_what_is_asked_for_often_is_seldom_worth_computing_anew(filters: int, prior: float) -> None:
    sizes = {"c": 32, "n": 1024, "f": filters}
    launches = [
        LaunchFacts(name, line, (count * 4, 1, 1), (256, 1, 1), {}, sizes)
        for name, line, count in (("relu", 2, 32), ("filters", 3, filters))
    ]
    program = parse_program(OFTEN)
    first, _ = kernels(program, Facts(tuple(launches), {}, 1e-5, 1e-5, ""))
    (site,) = FuseMapReduce().sites(first)
    assert isinstance(site, Site), site
    assert site.prior == prior
