"""Values to the bytes of by-value parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.binding.elements import element_dtype, wanted
from optiml_magic.errors import BindingError
from optiml_magic.kernels.signature import Parameter
from optiml_magic.model.dtypes import DType, kind, row_of, title


def pack(parameter: Parameter, value: Any) -> bytes:
    """The little-endian bytes of a by-value parameter; BindingError where it does not fit."""
    dtype = element_dtype(parameter)
    if dtype is None or parameter.lanes > 1:
        return _pack_several(parameter, value)
    if isinstance(value, np.ndarray) and value.ndim:
        raise BindingError(
            f"`{parameter.name}` is {wanted(parameter)}, and was given an array",
            fix="pass one number",
            line=parameter.line,
        )
    number = value.item() if hasattr(value, "item") else value
    letter = kind(dtype)
    if not isinstance(number, (bool, int, float, complex)):
        raise BindingError(
            f"`{parameter.name}` is {wanted(parameter)}, and was given a {type(value).__name__}",
            fix="pass a number",
            line=parameter.line,
        )
    if letter in "iu" and isinstance(number, float):
        raise BindingError(
            f"`{parameter.name}` is the float {number!r}, and the kernel wants {wanted(parameter)}",
            fix=f"pass int({parameter.name})",
            line=parameter.line,
        )
    if letter != "c" and isinstance(number, complex):
        raise BindingError(
            f"`{parameter.name}` is complex, and the kernel wants {wanted(parameter)}",
            fix="pass a real number",
            line=parameter.line,
        )
    with np.errstate(over="ignore"):
        packed = np.asarray(number).astype(dtype) if letter not in "iu" else None
    if not _holds(dtype, number) or (packed is not None and _overflowed(number, packed)):
        raise BindingError(
            f"`{parameter.name}` is {number!r}, which {wanted(parameter)} cannot hold",
            fix="pass a value in its range, or change the parameter's type",
            line=parameter.line,
        )
    return (np.asarray(number, dtype) if packed is None else packed).tobytes()


def _pack_several(parameter: Parameter, value: Any) -> bytes:
    """The bytes of a struct, or of the lanes of a vector type."""
    lane = element_dtype(parameter)
    if isinstance(value, (np.ndarray, np.void)):
        struct = value.dtype.names is not None and value.ndim == 0
        if lane is None and struct:
            return value.tobytes()  # its layout is for the compiler to confirm
        size = 0 if lane is None else lane.itemsize * parameter.lanes
        row = value.shape == (parameter.lanes,) and value.dtype == lane
        members = row_of(value.dtype) if struct else None
        packed = members is not None and members[0] == lane
        if (row or packed) and value.nbytes == size:
            return value.tobytes()
    fix = "pass a NumPy structured scalar with the fields of the struct: an_array[0]"
    if lane is not None:
        zeros = ", ".join("0" * parameter.lanes)
        fix = f"pass an array of its lanes: np.array([{zeros}], {title(lane)!r})"
    raise BindingError(
        f"`{parameter.name}` is {wanted(parameter)}, and was given a {type(value).__name__}",
        fix=fix,
        line=parameter.line,
    )


def _holds(dtype: DType, number: Any) -> bool:
    if kind(dtype) == "b":
        return number in (0, 1)
    return kind(dtype) not in "iu" or _in_range(int(number), dtype)


def _overflowed(number: Any, packed: np.ndarray[Any, DType]) -> bool:
    return bool(np.isfinite(number)) and not bool(np.isfinite(packed))


def _in_range(value: int, dtype: DType) -> bool:
    limits = np.iinfo(dtype)
    return int(limits.min) <= value <= int(limits.max)
