"""C++ type names to numpy dtypes, on a 64-bit CUDA compiler.

``long`` is 8 bytes here, as on Linux. bfloat16, which numpy lacks, is spelled ``bfloat16``.
"""

from __future__ import annotations

import re

_WORDS = frozenset({"signed", "unsigned", "int", "long", "short", "char"})
_INTEGERS = {"char": "i1", "short": "i2", "int": "i4", "long": "i8"}
_NAMED = {
    "bool": "|b1", "float": "<f4", "double": "<f8", "half": "<f2", "__half": "<f2",
    "__nv_bfloat16": "bfloat16", "nv_bfloat16": "bfloat16", "bfloat16": "bfloat16",
    "size_t": "<u8", "ptrdiff_t": "<i8", "uintptr_t": "<u8", "intptr_t": "<i8", "clock_t": "<i8",
    "uchar": "|u1", "ushort": "<u2", "uint": "<u4", "ulong": "<u8",
    "float16": "<f2", "float32": "<f4", "float64": "<f8",
    "cuFloatComplex": "<c8", "cuComplex": "<c8", "cuDoubleComplex": "<c16",
    "complex<float>": "<c8", "complex<double>": "<c16", "complex64": "<c8", "complex128": "<c16",
}  # fmt: skip
SCALARS = (*(n for n in _NAMED if "<" not in n), *_WORDS, "int32_t", "int64_t", "int32", "int64")
_SIZED = re.compile(r"(u?)int(?:_fast|_least)?(8|16|32|64)(?:_t)?")
_NUMPY = re.compile(r"[<|=]?([fiubc])([0-9]{1,2})")
_VECTOR = re.compile(
    r"(float|double|u?char|u?short|u?int|u?longlong|u?long|half|__half|__nv_bfloat16|nv_bfloat16)"
    r"([1-4])(?:_16a|_32a)?"
)
_NUMPY_KINDS = {"f": (2, 4, 8), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "c": (8, 16), "b": (1,)}


def scalar_dtype(spelled: str) -> str | None:
    """The numpy dtype of a scalar type, spelled as in C++ or as in numpy; None where unknown."""
    name = re.sub(r"^(?:::)?(?:(?:std|cuda|thrust)::)+", "", spelled.strip())
    if name in _NAMED:
        return _NAMED[name]
    if sized := _SIZED.fullmatch(name):
        return _order("u" if sized[1] else "i", int(sized[2]) // 8)
    numpy = _NUMPY.fullmatch(name)
    if numpy and int(numpy[2]) in _NUMPY_KINDS[numpy[1]]:
        return _order(numpy[1], int(numpy[2]))
    words = name.split()
    if not words or not set(words) <= _WORDS:
        return None
    base = next((_INTEGERS[word] for word in ("char", "short", "long") if word in words), "i4")
    return _order("u" if "unsigned" in words else "i", int(base[1]))


def element_dtype(spelled: str) -> tuple[str | None, int]:
    """The dtype of a scalar or of a vector's lanes, and the number of lanes; 1 for a scalar."""
    scalar = scalar_dtype(spelled)
    vector = _VECTOR.fullmatch(spelled.strip())
    if scalar is not None or vector is None:
        return scalar, 1
    name = vector[1]
    lane = f"{name[: -len('longlong')]}int64" if name.endswith("longlong") else name
    return scalar_dtype("<i8" if lane == "long" else lane), int(vector[2])


def _order(kind: str, size: int) -> str:
    return f"{'|' if size == 1 else '<'}{kind}{size}"
