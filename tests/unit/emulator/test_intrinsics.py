"""The functions that CUDA's headers declare, called by one kernel each, against the oracle."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from optiml_magic import emulator
from tests.oracle.machine import Module
from tests.present import SOAK

from .conftest import launch, ptx_of

HEADERS = ["crt/device_functions.h", "crt/math_functions.h", "crt/device_double_functions.h"]
HEADERS += ["crt/sm_80_rt.h", "crt/sm_90_rt.h", "sm_30_intrinsics.h", "sm_32_intrinsics.h"]
HEADERS += ["sm_61_intrinsics.h", "cuda_fp16.h", "cuda_bf16.h"]
INTEGERS = {"int": "i4", "unsigned int": "u4", "unsigned": "u4", "long long": "i8", "short": "i2"}
INTEGERS |= {"unsigned long long": "u8", "long long int": "i8", "unsigned long long int": "u8"}
FLOATS = {"float": "f4", "double": "f8", "__half": "f2", "half": "f2", "__half2": "f2"}
FLOATS |= {"__nv_bfloat16": "u2", "__nv_bfloat162": "u2"}
TYPES = INTEGERS | FLOATS
DECLARED = re.compile(
    r"(?:__device__|__\w*(?:DECL|INLINE)__)[^;{}()]*?\b((?:unsigned |long )?[\w ]+?)\s+(\w+)\s*\(([^()]*)\)"
)
# Not functions of their arguments alone, or of arguments that random numbers are not.
SKIPPED = re.compile(
    r"sync|clock|prof|barrier|sleep|trap|brkpt|mask|shfl|^j[n01]|^y[n01]|norm|atomic"
)
LANES = 32


def declared() -> list[tuple[str, str, tuple[str, ...]]]:
    """(result, name, argument types) of every function on plain values."""
    import nvidia

    found = {}
    for root, header in ((Path(r), h) for r in nvidia.__path__ for h in HEADERS):
        for path in root.glob(f"*/include/{header}"):
            text = re.sub(
                r"//.*|/\*.*?\*/|^\s*#.*", "", path.read_text(errors="replace"), flags=re.MULTILINE
            )
            for result, name, arguments in DECLARED.findall(text):
                words = [re.sub(r"\bconst\b", "", a).split() for a in arguments.split(",")]
                types = tuple(
                    " ".join(w if " ".join(w) in TYPES else w[:-1]) for w in words if w != ["void"]
                )
                given = re.sub(r"\b(__\w+builtin__|static|inline|const)\b", "", result).strip()
                plain = given in TYPES and types and all(t in TYPES for t in types)
                if plain and not SKIPPED.search(name) and not name.startswith("operator"):
                    found[name, types] = given
    return [(result, name, types) for (name, types), result in sorted(found.items())]


def kernel(number: int, result: str, name: str, types: tuple[str, ...]) -> str:
    parameters = [f"const {t}* p{i}" for i, t in enumerate(types)]
    values = ", ".join(f"p{i}[t]" for i in range(len(types)))
    return (
        f'extern "C" __global__ void k{number}({", ".join(parameters)}, {result}* out) '
        f"{{ int t = threadIdx.x; out[t] = {name}({values}); }}\n"
    )


def drawn(type_: str, rng: np.random.Generator) -> np.ndarray:
    """Lanes of a type: special bits, small values and any bits."""
    width = 8 if TYPES[type_][1] == "8" else 4
    raw = rng.integers(0, 2**63, LANES, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    raw[:4] = [0, 1 << 63 | 1 << 31, (1 << 64) - 1, 0x7FF00000_7F800000]
    raw[4:12] >>= rng.integers(32, 60, 8).astype(np.uint64)
    if type_ in ("float", "double"):
        near = (rng.standard_normal(LANES) * 3).astype(TYPES[type_])
        raw[16:] = near.view(f"u{width}")[16:]
    return np.ascontiguousarray(raw.astype(f"u{width}"))


def close(got: np.ndarray, wanted: np.ndarray, type_: str, *, exact: bool) -> bool:
    """The same bits, or both NaN; approximations to a few units in the last place."""
    if np.array_equal(got, wanted) or type_ in INTEGERS:
        return np.array_equal(got, wanted)
    x, y = (
        (a.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        if "bfloat" in type_
        else a.view(TYPES[type_])
        for a in (got, wanted)
    )
    error = {"f4": 1e-5, "f8": 1e-13, "f2": 2e-3, "u2": 2e-2}[TYPES[type_]]
    with np.errstate(all="ignore"):
        error = 0 if exact else error
        return np.allclose(x.astype(float), y.astype(float), rtol=error, atol=error, equal_nan=True)


def compiled(chosen: list) -> tuple[str, list]:
    """PTX of the kernels that NVRTC accepts: some functions are for other chips or for the host."""
    head = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
    while True:
        lines = [kernel(n, *c) for n, c in enumerate(chosen)]
        try:
            return ptx_of(head + "".join(lines), "--gpu-architecture=compute_90"), chosen
        except AssertionError as log:
            bad = {int(n) - 3 for n in re.findall(r"cell\.cu\((\d+)\): error", str(log))}
            if not bad:
                raise
            chosen = [c for n, c in enumerate(chosen) if n not in bad]


@pytest.mark.parametrize("part", range(16 if SOAK else 1))
def test_functions_of_the_headers(part):
    every = declared()
    assert len(every) > 600
    step = 16 if SOAK else 64
    ptx, chosen = compiled(every[part::step])
    here, oracle = emulator.load(ptx), Module(ptx)
    bodies = dict(re.findall(r"\.entry (k\d+)\((.*?\n)\}", ptx, flags=re.DOTALL))
    assert len(chosen) > 8
    for number, (result, name, types) in enumerate(chosen):
        rng = np.random.default_rng(number)
        operands = [drawn(t, rng) for t in types]
        got, wanted = (np.zeros(LANES, np.uint64) for _ in range(2))
        run = launch(here, f"k{number}", 1, LANES, *operands, got, count=False)
        assert run.fault is None, (name, run.fault)
        oracle.launch(f"k{number}", (1, 1, 1), (LANES, 1, 1), [*operands, wanted])
        exact = not re.search(r"\.approx|\.full", bodies[f"k{number}"])
        assert close(got, wanted, result, exact=exact), (name, types, got, wanted)
