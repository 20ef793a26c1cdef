"""What a parameter holds as a NumPy dtype, and one sentence for each type that cannot be passed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from optiml_magic.errors import BindingError, nearest
from optiml_magic.kernels.signature import Parameter
from optiml_magic.kernels.structs import members
from optiml_magic.kernels.unit import Unit
from optiml_magic.model.dtypes import DType, numbers, title
from optiml_magic.source.dtypes import SCALARS

_TEXTURES = frozenset({"cudaTextureObject_t", "cudaSurfaceObject_t"})


def element_dtype(parameter: Parameter) -> DType | None:
    """The dtype of an element, of one lane of a vector; None for what may be a struct."""
    return None if parameter.dtype is None else np.dtype(parameter.dtype)


def struct_dtype(
    unit: Unit, parameter: Parameter, name: str, layouts: Mapping[str, DType]
) -> DType:
    """The dtype of a struct, by its C++ name; a BindingError for any other type without one."""
    refuse(unit, parameter, name)
    dtype = layouts.get(parameter.ctype)
    if dtype is not None and not numbers(dtype):
        raise BindingError(
            f"`{name}` holds {title(dtype)}, which has a member that is not a number",
            fix=f"make it an array of {suggested(unit, parameter.ctype)}",
            line=parameter.line,
        )
    if dtype is not None:
        return dtype
    if members(unit, parameter.ctype):
        raise BindingError(
            f"`{name}` is a struct `{parameter.ctype}`, and no array gives its layout",
            fix=f"define `{name}` as an array of {suggested(unit, parameter.ctype)}",
            line=parameter.line,
        )
    raise BindingError(
        f"`{name}` is of type `{parameter.ctype}`, for which there is no NumPy dtype",
        fix=nearest(parameter.ctype, SCALARS)
        or "use a built-in type, or name the template's type in the launch: kernel<float>",
        line=parameter.line,
    )


def layouts(parameters: list[tuple[Parameter, str]], values: Mapping[str, Any]) -> dict[str, DType]:
    """The dtype of each struct by its C++ name, from the values given for parameters of it."""
    return {
        parameter.ctype: values[name].dtype
        for parameter, name in parameters
        if parameter.dtype is None
        and isinstance(values.get(name), (np.ndarray, np.void))
        and values[name].dtype.names is not None
    }


def refuse(unit: Unit, parameter: Parameter, name: str) -> None:
    """Raise BindingError for a type that a kernel here cannot take."""
    if parameter.ctype in _TEXTURES:
        message, fix = "a texture, which is not supported", "read a plain array: const float*"
    elif parameter.ctype.endswith("&"):
        message, fix = "a reference, which no kernel can take", "take a pointer, or a value"
    elif parameter.depth > 1:
        message = "a pointer to pointers or to rows, which is not supported"
        fix = f"take one flat array, and index it: {name}[row * cols + col]"
    elif pointers := [m for m in members(unit, parameter.ctype) if m.pointer]:
        member = pointers[0]
        raise BindingError(
            f"the member `{member.name}` of `{parameter.ctype}` is a pointer, and arrays hold no "
            "addresses of the device",
            fix=f"pass `{member.name}` as a parameter of the kernel",
            line=member.line,
        )
    else:
        return
    raise BindingError(f"`{name}` is {message}", fix=fix, line=parameter.line)


def suggested(unit: Unit, ctype: str) -> str:
    """A dtype to paste for a struct of the text, where its members are plain."""
    found = members(unit, ctype)
    if not found or any(m.dtype is None or m.array for m in found):
        return "np.dtype([(member, type), ...], align=True)"
    spelled = [(m.name, np.dtype(m.dtype).name, m.lanes) for m in found]
    fields = [f'("{n}", "{d}"{f", {lanes}" if lanes > 1 else ""})' for n, d, lanes in spelled]
    plain = f"np.dtype([{', '.join(fields)}], align=True)"
    widths = [np.dtype(m.dtype).itemsize for m in found]
    aligned = [_alignment(width, m.lanes) for width, m in zip(widths, found, strict=True)]
    if aligned == widths:
        return plain
    offsets, end = [], 0
    for width, member, step in zip(widths, found, aligned, strict=True):
        offsets.append(-(-end // step) * step)
        end = offsets[-1] + width * member.lanes
    formats = [f'("{d}", {lanes})' if lanes > 1 else f'"{d}"' for _, d, lanes in spelled]
    names = ", ".join(f'"{m.name}"' for m in found)
    size = -(-end // max(aligned)) * max(aligned)
    return (
        f'np.dtype({{"names": [{names}], "formats": [{", ".join(formats)}], '
        f'"offsets": {offsets}, "itemsize": {size}}})'
    )


def _alignment(width: int, lanes: int) -> int:
    """Of a vector type, in bytes: two and four lanes are one access, of 16 bytes at most.

    Source: CUDA C++ Programming Guide, "Built-in Vector Types".
    """
    return min(width * lanes, 16) if lanes in (2, 4) else width


def is_row_of(dtype: DType, lane: DType) -> bool:
    """Whether a struct is nothing but numbers of one dtype, with no gap between them."""
    found = numbers(dtype)
    return {n.dtype for n in found} == {lane} and dtype.itemsize == lane.itemsize * sum(
        n.count for n in found
    )


def wanted(parameter: Parameter) -> str:
    """What a by-value parameter takes, as NumPy says it."""
    dtype = element_dtype(parameter)
    if dtype is None:
        return f"a `{parameter.ctype}`"
    if parameter.lanes > 1:
        return f"a `{parameter.ctype}`, {parameter.lanes} x {title(dtype)}"
    return f"a {title(dtype)}"
