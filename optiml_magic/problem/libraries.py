"""Arrays of other libraries: to NumPy where a task is drawn, and back for a reference of theirs.

CuPy and torch are never imported here: whoever gives an array of theirs has done so. Any other
producer is read through ``__array__`` or DLPack, and its reference gets NumPy arrays.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optiml_magic.devices.base import Array
from optiml_magic.errors import BindingError
from optiml_magic.model.dtypes import BFLOAT16


@dataclass(frozen=True)
class Home:
    """The library that an array came from, ``cupy`` or ``torch``, and the device it lay on."""

    library: str
    device: Any

    def array(self, array: Array) -> Any:
        """A NumPy array as one of this library, on its device."""
        module = sys.modules[self.library]
        if self.library == "cupy":
            with self.device:
                return module.asarray(array)
        if array.dtype == BFLOAT16:
            return module.from_numpy(array.view(np.int16)).view(module.bfloat16).to(self.device)
        return module.from_numpy(array).to(self.device)


def homes(values: Mapping[str, Any]) -> dict[str, Home]:
    """Where each array of CuPy or torch among the values lives."""
    return {name: Home(_library(v), v.device) for name, v in values.items() if _library(v)}


def in_numpy(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with every array as NumPy's, and every array without axes as a number."""
    return {name: _converted(name, value) for name, value in values.items()}


def to_numpy(value: Any) -> Any:
    """An array of any library as NumPy's; whatever else it is comes back as it is."""
    if isinstance(value, (np.ndarray, np.generic)) or not hasattr(value, "dtype"):
        return value
    library = _library(value)
    if library == "cupy":
        return value.get()
    if library == "torch":
        return _of_torch(value)
    if hasattr(value, "__array__"):
        return np.asarray(value)
    return np.from_dlpack(value) if hasattr(value, "__dlpack__") else value


def _of_torch(tensor: Any) -> Array:
    torch = sys.modules["torch"]
    plain = tensor.detach().cpu().resolve_conj().resolve_neg()
    if plain.dtype != torch.bfloat16:  # which NumPy lacks, so that torch refuses it
        array: Array = plain.numpy()
        return array
    bits: Array = plain.contiguous().view(torch.int16).numpy()
    return bits.view(BFLOAT16)


def _converted(name: str, value: Any) -> Any:
    library = _library(value)
    if library and not _contiguous(value):
        call = "contiguous()" if library == "torch" else "copy()"
        raise BindingError(
            f"`{name}` is not contiguous (a view or a transpose)", fix=f"pass `{name}.{call}`"
        )
    try:
        array = to_numpy(value)
    except (TypeError, ValueError, RuntimeError, BufferError) as cause:
        raise BindingError(
            f"`{name}`, a {type(value).__name__}, cannot be read as a NumPy array: {cause}",
            fix="pass a NumPy array, or a plain one of CuPy or torch",
        ) from cause
    foreign = array is not value
    return array.item() if foreign and isinstance(array, np.ndarray) and not array.ndim else array


def _library(value: Any) -> str:
    """``cupy`` or ``torch`` for an array of theirs or of a class derived from it."""
    roots = {base.__module__.partition(".")[0] for base in type(value).__mro__}
    if "torch" in roots and hasattr(value, "detach"):
        return "torch"
    return "cupy" if "cupy" in roots and hasattr(value, "get") else ""


def _contiguous(value: Any) -> bool:
    if _library(value) == "torch":
        return str(value.layout) != "torch.strided" or bool(value.is_contiguous())
    return bool(value.flags.c_contiguous)
