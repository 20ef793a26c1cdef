"""The types of docs/kernel-programs.md, each with a kernel that adds a value to an array of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from optiml_magic.model.task import Task

FP16, BF16, COMPLEX = "#include <cuda_fp16.h>", "#include <cuda_bf16.h>", "#include <cuComplex.h>"
BITS = (
    BF16
    + """
__device__ float wide(__nv_bfloat16 v) { return __uint_as_float(__bfloat16_as_ushort(v) << 16); }
__device__ __nv_bfloat16 add(__nv_bfloat16 a, __nv_bfloat16 b) {
    return __ushort_as_bfloat16(__float_as_uint(wide(a) + wide(b)) >> 16);  // exact sums only
}"""
)
STD = "#include <cuda/std/complex>"


@dataclass(frozen=True)
class Row:
    """A C++ type, the dtype of its arrays, its lanes, and how C++ adds two of them."""

    ctype: str
    dtype: Any
    lanes: int = 1
    add: str = "a + b"
    include: str = ""

    def __str__(self) -> str:
        return self.ctype.replace(" ", "_")

    @property
    def text(self) -> str:
        return (
            f"{self.include}\n"
            "#pragma optiml launch added grid(cdiv(n, 64)) block(64)\n"
            f"__global__ void added(const {self.ctype}* x, {self.ctype} b, {self.ctype}* out, int n) {{\n"
            "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
            f"    if (i < n) {{ {self.ctype} a = x[i]; out[i] = {self.add}; }}\n}}\n"
        )

    def values(self, count: int = 100) -> tuple[np.ndarray, Any]:
        """An array of ``count`` elements and a value to add, exact in every type here."""
        dtype = np.dtype(self.dtype)
        rng = np.random.default_rng(len(self.ctype))
        shape = (count, self.lanes) if self.lanes > 1 else (count,)
        x = rng.integers(0, 2 if dtype.kind == "b" else 50, shape).astype(np.float64)
        if dtype.kind == "c":
            x = x + 1j * rng.integers(0, 50, shape)
        one = np.ones(self.lanes) if dtype.kind == "b" else np.arange(3, 3 + self.lanes)
        b = one.astype(dtype)
        return x.astype(dtype), b if self.lanes > 1 else b[0]

    def task(self) -> Task:
        x, b = self.values()
        return Task(self.text, reference=self.reference, inputs={"x": x, "b": b, "n": len(x)})

    def reference(self, x: np.ndarray, b: Any) -> np.ndarray:
        return x ^ b if x.dtype == bool else x + np.asarray(b).astype(x.dtype)


def _integers() -> Iterator[Row]:
    for ctype, dtype in {
        "char": "i1", "signed char": "i1", "unsigned char": "u1", "short": "i2",
        "unsigned short": "u2", "int": "i4", "unsigned": "u4", "unsigned int": "u4",
        "long": "i8", "unsigned long": "u8", "long long": "i8", "unsigned long long": "u8",
        "int8_t": "i1", "uint8_t": "u1", "int16_t": "i2", "uint16_t": "u2", "int32_t": "i4",
        "uint32_t": "u4", "int64_t": "i8", "uint64_t": "u8", "size_t": "u8",
    }.items():  # fmt: skip
        yield Row(ctype, dtype)


def _vectors() -> Iterator[Row]:
    stems = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4",
             "long": "i8", "ulong": "u8", "longlong": "i8", "ulonglong": "u8", "float": "f4",
             "double": "f8"}  # fmt: skip
    counts = {"float": (1, 2, 3, 4), "double": (2, 3), "int": (2, 3, 4), "uchar": (3, 4)}
    for stem, dtype in stems.items():
        for count in counts.get(stem, (2,)):
            yield _vector(f"{stem}{count}", dtype, count)
    yield _vector("double4_16a", "f8", 4)
    yield _vector("longlong4_32a", "i8", 4)


def _vector(ctype: str, dtype: str, lanes: int) -> Row:
    sums = ", ".join(f"(decltype(a.{c}))(a.{c} + b.{c})" for c in "xyzw"[:lanes])
    return Row(ctype, dtype, lanes, f"{ctype}{{{sums}}}")


TYPES = (
    *_integers(),
    Row("bool", bool, add="a != b"),
    Row("float", "f4"),
    Row("double", "f8"),
    Row("half", "f2", include=FP16),
    Row("__half", "f2", include=FP16),
    Row("__nv_bfloat16", ml_dtypes.bfloat16, add="add(a, b)", include=BITS),
    Row("nv_bfloat16", ml_dtypes.bfloat16, add="add(a, b)", include=BITS),
    Row("cuFloatComplex", "c8", add="cuCaddf(a, b)", include=COMPLEX),
    Row("cuDoubleComplex", "c16", add="cuCadd(a, b)", include=COMPLEX),
    Row("cuda::std::complex<float>", "c8", include=STD),
    *_vectors(),
    Row("half2", "f2", 2, include=FP16),
    Row("__half2", "f2", 2, include=FP16),
    Row("__nv_bfloat162", ml_dtypes.bfloat16, 2, "{add(a.x, b.x), add(a.y, b.y)}", BITS),
)
# With the arithmetic of the hardware, add.bf16 and add.bf16x2.
BFLOAT16 = (
    Row("nv_bfloat16", ml_dtypes.bfloat16, include=BF16),
    Row("nv_bfloat162", ml_dtypes.bfloat16, 2, include=BF16),
)
