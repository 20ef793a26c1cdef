"""What the functions that every kernel may call do with their arguments.

Source: CUDA C++ Programming Guide, "C++ Language Extensions", and the CUDA Math API.
"""

from __future__ import annotations

import re
from typing import Literal

Use = Literal["read", "write", "both", "value", "nothing"]

BLOCK_BARRIERS = frozenset(
    {
        "__syncthreads",
        "__syncthreads_count",
        "__syncthreads_and",
        "__syncthreads_or",
        "barrier_sync",
    }
)
WARP_BARRIERS = frozenset({"__syncwarp"})
LANES = re.compile(
    r"__shfl\w*|__ballot\w*|__any\w*|__all\w*|__match\w*|__activemask|__reduce_\w+_sync"
)
READERS = re.compile(r"__ld(?:g|ca|cs|cg|cv|lu)")
WRITERS = re.compile(r"__st(?:wb|cg|cs|wt)")
HARMLESS = re.compile(
    r"__prefetch\w*|prefetch\w*|__is[A-Z]\w*|__cvta_\w+|assert|printf|__builtin_\w+|[sd]izeof"
    r"|__threadfence\w*|__nanosleep|__trap|clock|clock64|globaltimer|__brkpt"
)
CONVERTING = re.compile(r"__cvta_\w+")
ASSEMBLY_READS = re.compile(r"\b(?:ld|atom|cp\.async|ldmatrix|ldu)\b")
ASSEMBLY_WRITES = re.compile(r"\b(?:st|red|atom)\b")
ASSUMING = frozenset({"__builtin_assume_aligned", "assume_aligned", "launder"})
USES: dict[str, tuple[Use, ...]] = {
    "memcpy": ("write", "read"),
    "memmove": ("write", "read"),
    "memset": ("write",),
    "__pipeline_memcpy_async": ("write", "read"),
    "load_matrix_sync": ("nothing", "read"),
    "store_matrix_sync": ("write",),
}
ATOMICS: dict[str, str] = {
    "atomicAdd": "+", "atomicSub": "-", "atomicMin": "min", "atomicMax": "max", "atomicAnd": "&",
    "atomicOr": "|", "atomicXor": "^", "atomicInc": "inc", "atomicDec": "dec",
    "atomicExch": "exchange", "atomicCAS": "compare",
}  # fmt: skip
COMBINING = {
    "min": "min", "fmin": "min", "fminf": "min", "umin": "min", "__hmin": "min", "llmin": "min",
    "max": "max", "fmax": "max", "fmaxf": "max", "umax": "max", "__hmax": "max", "llmax": "max",
    "__hadd": "+", "__fadd_rn": "+", "__dadd_rn": "+", "__hadd2": "+",
    "__fmul_rn": "*", "__hmul": "*",
}  # fmt: skip
PRODUCTS = frozenset({"__mul24", "__umul24", "mul24", "umul24"})
FUSED = frozenset({"fma", "fmaf", "__fmaf_rn", "__fma_rn", "__hfma", "__hfma2", "mad"})
OF_ALL_NUMBERS = ("min", "max", "abs")  # that there are for all kinds of numbers
_MATH = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "cospi",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "exp",
    "exp10",
    "exp2",
    "expm1",
    "fabs",
    "fdim",
    "fdividef",
    "floor",
    "fma",
    "fmax",
    "fmin",
    "fmod",
    "hypot",
    "ilogb",
    "j0",
    "j1",
    "ldexp",
    "lgamma",
    "llrint",
    "llround",
    "log",
    "log10",
    "log1p",
    "log2",
    "logb",
    "lrint",
    "lround",
    "max",
    "min",
    "nearbyint",
    "norm3d",
    "normcdf",
    "pow",
    "powi",
    "rcbrt",
    "remainder",
    "rhypot",
    "rint",
    "round",
    "rsqrt",
    "signbit",
    "sin",
    "sincospi",
    "sinh",
    "sinpi",
    "sqrt",
    "tan",
    "tanh",
    "tgamma",
    "trunc",
    "isnan",
    "isinf",
    "isfinite",
]
_LONG = frozenset({"sin", "cos", "tan", "sincos", "pow", "atan", "atan2", "erf", "erfc", "fmod"})
_MIDDLING = frozenset({
    "sinpi", "cospi", "sincospi", "tanh", "sinh", "cosh", "asin", "acos", "log1p", "expm1", "cbrt",
    "ldexp",
})  # fmt: skip
_PURE = frozenset({name + end for name in _MATH for end in ("", "f", "l")}) | {
    "labs", "llabs", "umin", "umax", "mul24", "umul24", "__mul24", "__umul24", "__mulhi",
    "__umulhi", "mad", "saturate", "__saturatef", "frcp_rn", "rsqrtf", "conj", "real", "imag",
    "cuCadd", "cuCmul", "cuCmulf", "cuCaddf", "cuCreal", "cuCrealf", "cuCimag", "cuCimagf",
    "clamp", "lerp", "sign", "dot", "cross", "length", "normalize", "step", "smoothstep",
}  # fmt: skip
_INTRINSIC = re.compile(
    r"__(?:f|d|h|b|u|i|ll|ull|half|float|double|int|uint|short|ushort|low|high|popc|clz|ffs|brev"
    r"|byte_perm|funnelshift|dp4a|dp2a|sad|usad|v|exp|log|pow|sin|cos|tan|sqrt|nan|isnan|mul|add)\w*"
    r"|(?:rsqrt|sqrt|rcp|ex2|lg2|sin|cos|tanh)\.approx(?:\.ftz)?\.f32"  # as assembly spells it
    r"|make_\w+|(?:u?int|float|double|half|u?short|u?char|longlong)[1-4]?2(?:half|float|int|double)\w*"
)


def bare(name: str) -> str:
    """The name of a function without its namespaces."""
    return name.rpartition("::")[2]


def pure(name: str) -> bool:
    """Whether a function of CUDA's headers only computes from the values it is given."""
    return name in _PURE or bool(_INTRINSIC.fullmatch(name))


def is_long(name: str) -> bool:
    """Whether a function is a hundred instructions and more."""
    return bare(name).removesuffix("f") in _LONG


def is_middling(name: str) -> bool:
    """Whether a function is thirty instructions and more, but not a hundred."""
    return bare(name).removesuffix("f") in _MIDDLING


def atomic(name: str) -> str | None:
    """What an atomic function combines with; None for any other."""
    base = re.sub(r"_(?:block|system)$", "", name)
    if base in ATOMICS:
        return ATOMICS[base]
    return "other" if re.match(r"atomic[A-Z]", base) else None
