"""Which arrays' values decide what a kernel does."""

from __future__ import annotations

import pytest

from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.model.build import Build
from optiml_magic.ptx.parser import parse
from optiml_magic.ptx.steering import Steering, steering

HEAD = "__device__ int place;\n__device__ float table[64];\n__device__ float* held;\n"
BODIES = {
    "arithmetic": "out[t] = sqrtf(fmaxf(x[t], 0)) + (x[t] > other[t] ? x[t] : -other[t]);",
    "index": "out[index[t]] = x[t];",
    "gather": "out[t] = x[index[t]];",
    "twice": "out[t] = x[index[(int)other[t]]];",
    "branch": "if (x[t] > 0) out[t] = other[t];",
    "rounds": "float s = 0; for (int i = 0; i < index[t]; ++i) s += x[i]; out[t] = s;",
    "sized": "float s = 0; for (int i = 0; i < n; ++i) s += x[i * n + t]; out[t] = s;",
    "shared": "__shared__ float s[64]; s[t] = x[t]; __syncthreads(); out[t] = s[63 - t] * n;",
    "sorted": "__shared__ int s[64]; s[t] = index[t]; __syncthreads(); out[s[63 - t]] = x[t];",
    "queue": "if (t < n) out[atomicAdd(&place, 1)] = x[t];",
    "counts": "atomicAdd(&index[t % 7], 1); atomicAdd(out + t % 3, x[t]);",
    "tabled": "out[t] = table[t] + x[t]; table[t] = out[t];",
    "shuffle": "out[t] = __shfl_xor_sync(~0u, x[t], 1);",
    "by_lane": "out[t] = __shfl_sync(~0u, x[t], index[t]);",
    "voted": "if (__any_sync(~0u, x[t] > 0)) out[t] = 1;",
    "either": "float* p = n > 3 ? out : other; p[t] = x[t];",
}
TOLD = {
    "arithmetic": ("", "out"),
    "index": ("index", "out"),
    "gather": ("index", "out"),
    "twice": ("index other", "out"),
    "branch": ("x", "out"),
    "rounds": ("index", "out"),
    "sized": ("", "out"),
    "shared": ("", "out"),
    "sorted": ("index x", "out"),
    "queue": ("place", "out place"),
    "counts": ("", "index out"),
    "tabled": ("", "table out"),
    "shuffle": ("", "out"),
    "by_lane": ("index", "out"),
    "voted": ("x", "out"),
    "either": ("", "out other"),
}
UNKNOWN = {
    "kept": "held = out; out[t] = x[t];",
    "followed": "held[index[t]] = x[t];",
    "called": "out[t] = far(x[t]);",
}
NAMES = ("x", "other", "index", "out", "n")


def told(body: str) -> Steering | None:
    text = (
        f"{HEAD}__device__ __noinline__ float far(float v) {{ return v * v; }}\n"
        "__global__ void k(const float* x, float* other, int* index, float* out, int n) {\n"
        f"  int t = threadIdx.x;\n  {body}\n}}\n"
    )
    found = NvrtcCompiler().compile(text, ("k",), chip("h200"), CompileOptions())
    assert isinstance(found, Build), found
    module = parse(found.ptx)
    (kernel,) = (name for name, function in module.functions.items() if function.entry)
    result = steering(module, kernel)
    if result is None:
        return None
    parameters = [p.name for p in module.functions[kernel].params]
    names = dict(zip(parameters, NAMES, strict=True))
    by, written = (
        frozenset(names.get(n, n) for n in some) - {"n"} for some in (result.by, result.written)
    )
    return Steering(by, written)


@pytest.mark.parametrize("name", BODIES)
def test_what_decides_is_told(name: str) -> None:
    by, written = (frozenset(words.split()) for words in TOLD[name])
    assert told(BODIES[name]) == Steering(by, written)


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_followed_is_unknown(name: str) -> None:
    assert told(UNKNOWN[name]) is None
