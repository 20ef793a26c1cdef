from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from optiml_magic.source.spaces import marked

TEXT = """\
struct V { float x; float len() const { return x; } __device__ float y() { return x; } float z(int); V() = default; V(float a) : x(a) {} float (*f)(int); };
float V::z(int k) { return x * k; }
template <typename T> struct W { T v; T get() const { return v; } static constexpr int q = 3; };
float f(float x);
float* g(float* x);
float f(float x) { return x; }
float* g(float* x) { return x + 1; }
template <typename T> T twice(T x) { return x + x; }
const float table[3] = {1, 2, 3};
constexpr int N = 4; const float PI = 3.f;
static const float4 q = {1, 2, 3, 4};
__constant__ float c[4];
__device__ int count;
constexpr int sq(int x) { return x * x; }
namespace n { inline float h(float x) { return x; } }
static __forceinline__ float u(float x) { return x; }
extern "C" __global__ void k(float* a) {
    extern __shared__ float s[];
    auto l = [](int x) { return x; };
    s[0] = V(2).len() + V(1).z(2) + f(1) + *g(a) + twice(2.f) + table[l(1)] + q.x + sq(N) + PI + n::h(u(c[0]));
    a[0] = s[0] + W<float>{1}.get() + count;
}
"""  # fmt: skip


def test_what_has_a_marker_or_is_local_stays_as_it_is() -> None:
    text = "__global__ void k(float* a) { float b[3]; auto l = [](int x) { return x; }; a[0] = l(b[0]); }\n"
    assert marked(text) == text
    assert marked("constexpr int N = 4;\nusing F = float (*)(float);\n__device__ int f();\n") == (
        "constexpr int N = 4;\nusing F = float (*)(float);\n__device__ int f();\n"
    )


def test_marking_twice_is_marking_once() -> None:
    once = marked(TEXT)
    assert once != TEXT
    assert marked(once) == once


@pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc on this machine")
@pytest.mark.slow
def test_nvcc_takes_the_marked_text_and_refuses_the_other(tmp_path: Path) -> None:
    outcomes = []
    for name, text in (("marked.cu", marked(TEXT)), ("plain.cu", TEXT)):
        (tmp_path / name).write_text(text)
        command = ["nvcc", "-std=c++17", "-arch=sm_90", "-c", name, "-o", "k.o"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
        outcomes.append(done.returncode)
    assert outcomes[0] == 0
    assert outcomes[1] != 0
