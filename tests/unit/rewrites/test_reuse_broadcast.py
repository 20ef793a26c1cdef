"""Loops in which all threads load the same: what is offered for kernels of many fields."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, kernels
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.proposers.rewrites.reuse_broadcast import ReuseBroadcast
from optiml_magic.source.program import parse_program
from tests.present import sampled
from tests.unit.primitives.shapes import applied

HEAD = "#pragma optiml launch k grid(cdiv(n, 128)) block(128)\n__global__ void k"
CHARGES = f"""\
struct Particle {{ float x, y, z, w; }};
{HEAD}(const Particle* body, float* out, int n, int m) {{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {{
        float energy = 0.0f;
        const Particle own = body[i];
        for (int j = 0; j < m; ++j) {{
            if (i == j) continue;
            const Particle other = body[j];
            const float dx = own.x - other.x, dy = own.y - other.y, dz = own.z - other.z;
            const float r2 = dx * dx + dy * dy + dz * dz;
            if (r2 >= 2.0f) continue;
            const float s = 1.0f / (r2 * r2 * r2 + 0.5f);
            energy += own.w * other.w * s * (s - 1.0f);
        }}
        out[i] = energy;
    }}
}}"""
NEAREST = f"""\
{HEAD}(const double* p, const double* q, int* out, unsigned n, unsigned m) {{
    const unsigned t = blockDim.x * blockIdx.x + threadIdx.x;
    if (t < n) {{
        double best = 1e300;
        int where = -1;
        unsigned l = 0;
        while (l < m) {{
            double a = p[t] - q[2 * l], b = p[n + t] - q[2 * l + 1];
            double d = a * a + b * b;
            if (d < best) {{ best = d; where = l; }}
            ++l;
        }}
        out[t] = where;
    }}
}}"""
WAVES = f"""\
__device__ float phase(const float* k, int s, float x) {{ return k[2 * s] * x; }}
{HEAD}(const float* kernel, const float* x, float* out, int n, int m) {{
    int voxel = blockIdx.x * blockDim.x + threadIdx.x;
    if (voxel >= n) return;
    float real[2] = {{0.0f, 0.0f}};
    for (int s = 0; s != m; s++) {{
        float angle = kernel[2 * s] * x[voxel];
        real[0] += kernel[2 * s + 1] * cosf(angle);
        real[1] += kernel[2 * s + 1] * sinf(angle);
    }}
    out[voxel] = real[0] + 2.0f * real[1];
}}"""
POTENTIAL = """\
#pragma optiml launch k grid(cdiv(n, 32), cdiv(h, 4)) block(32, 4)
__global__ void k(const float4* atom, float* out, int n, int h, int m, float step) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= h) return;
    out[y * n + x] = 0.0f;
    for (int a = 0; a < m; a++) {
        float dx = atom[a].x - step * x, dy = atom[a].y - step * y;
        out[y * n + x] += atom[a].w / sqrtf(dx * dx + dy * dy + atom[a].z * atom[a].z + 1.0f);
    }
}"""
PARZEN = f"""\
{HEAD}(const float* x, const float* sample, float* out, int n, int m, float width) {{
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (!(i < n)) return;
    float s = 0.0f;
    const float* p = sample;
    for (int j = 0; j < m; ++j, ++p) s += expf(-(x[i] - *p) * (x[i] - *p) / width);
    out[i] = s / m;
}}"""
FOREIGN = {"charges": CHARGES, "nearest": NEAREST, "waves": WAVES, "potential": POTENTIAL,
           "parzen": PARZEN}  # fmt: skip


@pytest.mark.parametrize("name", sampled(FOREIGN, every=2))
def test_kernels_of_many_fields_are_offered_items_that_compile(name, propose, compiles):
    found = propose("reuse_broadcast", FOREIGN[name])
    values = [parse_program(p.text).values for p in found]
    assert any("ITEMS" in v for v in values)
    compiles(found[0].text)


def test_sums_and_the_first_of_extremes_are_shared_among_blocks(propose):
    def splits(text: str) -> bool:
        found = propose("reuse_broadcast", text)
        return any("PARTS" in parse_program(p.text).values for p in found)

    assert splits(PARZEN)
    assert splits(NEAREST)
    assert not splits(NEAREST.replace("d < best", "d <= best"))
    first = propose("reuse_broadcast", PARZEN)[0].text
    assert "sample_tile" in first
    assert "#pragma unroll 4" in first


def _sites(text: str, n: int, m: int, **more: int) -> list[Site]:
    (found,) = kernels(parse_program(text), None)
    facts = LaunchFacts("k", 1, (-(-n // 128), 1, 1), (128, 1, 1), {}, {"n": n, "m": m, **more})
    rule = ReuseBroadcast()
    shaped = rule.shaped(Kernel(found.program, found.launch, facts, "h200"))
    return [s for s in rule.sites(shaped) if isinstance(s, Site)]


def test_few_threads_share_the_rounds_first():
    few, *rest = sorted(_sites(PARZEN, 16384, 16384), key=lambda s: -s.prior)
    assert few.points[0] == {"ITEMS": 4, "BLOCK": 128, "PARTS": 64}
    assert [few.key, *(s.key for s in rest)] == ["split short", "split", "items short", "items"]
    assert "divisions by approximate reciprocals" in few.arithmetic
    assert [s.key for s in _sites(PARZEN, 1 << 22, 512)] == ["items short", "items"]
    exact = PARZEN.replace("expf(-(x[i] - *p) * (x[i] - *p) / width)", "fabsf(x[i] - *p)")
    assert [s.key for s in _sites(exact, 1 << 22, 512)] == ["items"]


def test_loads_of_its_own_in_each_round_are_for_other_rules(propose):
    text = PARZEN.replace("expf(-(x[i] - *p) * (x[i] - *p) / width)", "x[i * m + j] * sample[j]")
    assert propose("reuse_broadcast", text) == []


CENTRES = f"""\
{HEAD}(const float* feature, const float* centre, int* out, int n, int m, int d) {{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float least = 3.4e38f;
    int own = 0;
    for (int c = 0; c < m; c++) {{
        float s = 0.0f;
        int f = 0;
        while (f < d) {{
            s += (feature[f * n + i] - centre[c * d + f]) * (feature[f * n + i] - centre[c * d + f]);
            f++;
        }}
        if (s < least) {{ least = s; own = c; }}
    }}
    out[i] = own;
}}"""


def test_a_row_that_meets_many_is_held_where_its_length_is_short(compiles):
    (first, *_) = _sites(CENTRES, 1 << 20, 512, d=20)
    assert first.prior > 0.9
    assert first.title.endswith("each with its row in registers, where d is 20")
    assert first.points[0]["ITEMS"] == 2
    made = applied(first.apply())
    assert "feature_row[ITEMS][20]" in made.program.text
    assert "centre_tile[TILE * 20]" in made.program.text
    compiles(made.program.text)
    assert not _sites(CENTRES, 1 << 20, 512, d=200)


HITS = f"""\
{HEAD}(const float* a, const float* b, const float* most, int* out, int n, int m) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float own = a[i];
    int count = 0;
    for (int j = 0; j < m; j++)
        if (own / b[j] <= most[j]) count++;
    out[i] = count;
}}"""


def test_a_division_that_decides_a_count_stays_exact():
    assert [s.key for s in _sites(HITS, 1 << 20, 512)] == ["items"]
    sums = HITS.replace("int* out", "float* out").replace("int count = 0", "float count = 0")
    sums = sums.replace("if (own / b[j] <= most[j]) count++", "count += own / b[j] * most[j]")
    assert [s.key for s in _sites(sums, 1 << 20, 512)] == ["items short", "items"]


SPHERES = f"""\
struct Ray {{ float x, y, z, dx, dy, dz; }};
__device__ float hit(const float4& s, const Ray& ray) {{
    const float b = (ray.x - s.x) * ray.dx + (ray.y - s.y) * ray.dy;
    return b * b - ray.z * ray.dz * s.w;
}}
{HEAD}(const Ray* rays, const float4* spheres, float* out, int n, int m) {{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float least = 1e20f;
    for (int s = 0; s < m; s++) {{
        WHERE {{
            const float t = hit(spheres[s], rays[i]);
            if (t < least) least = t;
        }}
    }}
    out[i] = least;
}}"""


def test_what_an_item_gives_to_a_function_is_loaded_before_its_rounds(compiles):
    (idea,) = (s for s in _sites(SPHERES.replace("WHERE ", ""), 1 << 22, 256) if s.key == "items")
    made = applied(idea.apply())
    before, _, rounds = made.program.text.partition("for (int s = 0")
    assert "rays_here[item] = 0 < m ? rays[i] : Ray{};" in before
    assert "rays[i]" not in rounds
    assert idea.prior == 0.95
    compiles(made.program.text)


def test_what_each_round_may_load_anew_for_every_item_is_no_sure_gain():
    found = _sites(SPHERES.replace("WHERE", "if (spheres[s].w > 0.5f)"), 1 << 22, 256)
    assert {site.prior for site in found if site.key == "items"} == {0.6}
