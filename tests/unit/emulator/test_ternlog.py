"""LLVM's mixed-up vpternlog: fmodf was the kernel that showed it."""

from __future__ import annotations

import numpy as np
import pytest

from optiml_magic import emulator
from optiml_magic.emulator.ternlog import is_suspect, without_avx512

from .conftest import launch, ptx_of


def test_fmodf():
    source = """extern "C" __global__ void k(const float* a, const float* b, float* out) {
      out[threadIdx.x] = fmodf(a[threadIdx.x], b[threadIdx.x]); }"""
    a = np.array([5, -5, 3e10, -3e10, 0.3, 1e-40, 7, -7], np.float32)
    b = np.array([3, 3, 0.7, -0.7, 0.7, 3e-41, np.inf, 0.5], np.float32)
    out = np.zeros(8, np.float32)
    assert launch(emulator.load(ptx_of(source)), "k", 1, 8, a, b, out).fault is None
    np.testing.assert_array_equal(out, np.fmod(a, b))
    np.testing.assert_array_equal(np.signbit(out), np.signbit(a))


@pytest.mark.parametrize(
    ("code", "suspect"),
    [
        ("62f36d4a2583c0040000e4", True),  # vpternlogd $228, 1216(%rbx), %zmm2, %zmm0 {%k2}
        ("62f36d48258304000000e4", False),  # no mask
        ("62f36d4a25c0e4", False),  # registers alone
    ],
)
def test_the_instruction_is_found(code, suspect):
    assert is_suspect(bytes.fromhex("90" + code + "90")) is suspect


def test_features_without_avx512():
    assert without_avx512("+avx2,+avx512f,-avx512er,+bmi") == "+avx2,-avx512f,-avx512er,+bmi"
