"""What a parameter holds as a NumPy dtype, and one sentence for each type that cannot be passed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from keyword import iskeyword
from typing import Any

import numpy as np

from optiml_magic.errors import BindingError, nearest
from optiml_magic.kernels.signature import Parameter
from optiml_magic.kernels.structs import Member, members
from optiml_magic.kernels.unit import Unit
from optiml_magic.model.dtypes import DType, numbers, row_of, title
from optiml_magic.source.dtypes import SCALARS

_TEXTURES = frozenset({"cudaTextureObject_t", "cudaSurfaceObject_t"})


def element_dtype(parameter: Parameter) -> DType | None:
    """The dtype of an element, of one lane of a vector; None for what may be a struct."""
    return None if parameter.dtype is None else np.dtype(parameter.dtype)


def struct_dtype(
    unit: Unit,
    parameter: Parameter,
    name: str,
    layouts: Mapping[str, DType],
    values: Mapping[str, Any],
) -> DType:
    """The dtype of a struct, by its C++ name; a BindingError for any other type without one.

    Of one that no array is given for, such as an output, the text says what it is like. So it does
    where its members are numbers of one dtype, and the array has a row of these for each.
    """
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
    derived = laid_out(unit, parameter.ctype)
    if derived is not None and (name not in values or holds_rows(values[name], derived)):
        return derived
    if members(unit, parameter.ctype):
        raise BindingError(
            f"`{name}` is a struct `{parameter.ctype}`, and no array gives its layout",
            fix=f"define `{name}` as an array of {suggested(unit, parameter.ctype)}",
            line=parameter.line,
        )
    template = re.search(rf"\b(?:typename|class)\s+{re.escape(parameter.ctype)}\b", unit.text)
    close = nearest(parameter.ctype, SCALARS, surely=True) if template is None else ""
    raise BindingError(
        f"`{name}` is of type `{parameter.ctype}`, for which there is no NumPy dtype",
        fix=close
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
    elif parameter.ctype == "cudaPitchedPtr":
        message = "a pointer with its pitch, which is not supported"
        fix = f"take its memory and its pitch: float* {name}, size_t pitch"
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
    dtype, found = laid_out(unit, ctype), members(unit, ctype)
    if dtype is None or dtype.fields is None:
        return "np.dtype([(member, type), ...], align=True)"
    spelled = [(m.name, np.dtype(m.dtype).name, dtype[m.name].shape) for m in found]
    shapes = {n: str(shape[0] if len(shape) == 1 else shape) for n, _, shape in spelled if shape}
    fields = [f'("{n}", "{d}"{f", {shapes[n]}" if n in shapes else ""})' for n, d, _ in spelled]
    if all(_alignment(m) == np.dtype(m.dtype).itemsize for m in found):
        return f"np.dtype([{', '.join(fields)}], align=True)"
    offsets = [dtype.fields[m.name][1] for m in found]
    formats = [f'("{d}", {shapes[n]})' if n in shapes else f'"{d}"' for n, d, _ in spelled]
    names = ", ".join(f'"{m.name}"' for m in found)
    return (
        f'np.dtype({{"names": [{names}], "formats": [{", ".join(formats)}], '
        f'"offsets": {offsets}, "itemsize": {dtype.itemsize}}})'
    )


def laid_out(unit: Unit, ctype: str) -> DType | None:
    """The dtype of a struct of the text, where its members are numbers; the compiler checks it."""
    found, known = members(unit, ctype), unit.structs.of(ctype)
    if not found or known is None or known.size is None:
        return None
    fields = [known.field(member.name) for member in found]
    if any(m.dtype is None or m.dtype == "bfloat16" for m in found):
        return None
    if any(f is None or f.offset is None or f.rank != len(f.extents) for f in fields):
        return None
    formats = [
        (m.dtype, (*f.extents, *((m.lanes,) if m.lanes > 1 else ())))
        for m, f in zip(found, fields, strict=True)
        if f is not None
    ]
    made: DType = np.dtype({
        "names": [m.name for m in found],
        "formats": [(dtype, shape) if shape else dtype for dtype, shape in formats],
        "offsets": [f.offset for f in fields if f is not None and f.offset is not None],
        "itemsize": known.size,
    })  # fmt: skip
    return made


def _alignment(member: Member) -> int:
    """Of a vector type, in bytes: two and four lanes are one access, of 16 bytes at most.

    Source: CUDA C++ Programming Guide, "Built-in Vector Types".
    """
    width = np.dtype(member.dtype).itemsize
    return min(width * member.lanes, 16) if member.lanes in (2, 4) else width


def holds_rows(value: object, struct: DType) -> bool:
    """Whether an array of numbers has the members of a struct along its last axis."""
    row = row_of(struct)
    plain = isinstance(value, np.ndarray) and value.ndim > 1 and row is not None
    return plain and (value.dtype, value.shape[-1]) == row  # type: ignore[attr-defined]


def wanted(parameter: Parameter) -> str:
    """What a by-value parameter takes, as NumPy says it."""
    dtype = element_dtype(parameter)
    if dtype is None:
        return f"a `{parameter.ctype}`"
    if parameter.lanes > 1:
        return f"a `{parameter.ctype}`, {parameter.lanes} x {title(dtype)}"
    return f"{'an' if title(dtype)[0] in 'iu' else 'a'} {title(dtype)}"


def missing(name: str, known: Iterable[str], otherwise: str) -> str:
    """What to do about a name without a value; ``in`` and ``lambda`` are no variables of Python."""
    if iskeyword(name):
        return f"name the variable that it is: --inputs {name}=..."
    return nearest(name, known) or otherwise
