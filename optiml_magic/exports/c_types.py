"""The C++ type of an element."""

from __future__ import annotations

import numpy as np

from optiml_magic.errors import UsageError
from optiml_magic.model.dtypes import BFLOAT16, DType, title

_TYPES = {
    "b1": "bool", "i1": "signed char", "u1": "unsigned char", "i2": "short", "u2": "unsigned short",
    "i4": "int", "u4": "unsigned int", "i8": "long long", "u8": "unsigned long long",
    "f2": "__half", "f4": "float", "f8": "double", "c8": "float2", "c16": "double2",
}  # fmt: skip


def c_type(dtype: DType | str) -> str:
    """As code spells it; UsageError for a struct, whose name no dtype tells."""
    known = np.dtype(dtype)
    spelled = "__nv_bfloat16" if known == BFLOAT16 else _TYPES.get(known.str.lstrip("<|="))
    if spelled is None:
        raise UsageError(f"no C++ type for {title(known)} here", fix="pass it to a kernel as well")
    return spelled
