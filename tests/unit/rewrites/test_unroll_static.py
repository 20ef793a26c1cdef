"""A tuned number of rounds at a time."""

from __future__ import annotations

from optiml_magic.proposers.rewrites.unroll_static import UnrollStatic
from tests.ideas import asked

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


def test_more_loads_at_a_time(propose, compiles):
    few, many, _ = (found.text for found in propose("unroll_static", TEXT))
    assert "    #pragma unroll UNROLL\n    for (int j = 0; j < m; j++)" in few
    assert "#pragma optiml tune UNROLL in {1, 2, 4, 8, 16} = 8" in few
    loads = [compiles(text).count("ld.global") for text in (few, many)]
    assert loads[0] >= 8
    assert loads[1] >= 16


def test_what_is_said_or_known_already():
    assert not asked(UnrollStatic(), TEXT.replace("    for", "    #pragma unroll 2\n    for"))[0]
    assert not asked(UnrollStatic(), TEXT.replace("j < m", "j < 9"))[0]
    assert not asked(UnrollStatic(), TEXT.replace("a[j * n + i]", "j"))[0]
    waits = TEXT.replace("s +=", "{ __syncthreads(); s +=").replace("+ i];", "+ i]; }")
    assert not asked(UnrollStatic(), waits)[0]
