"""Stand-ins for torch and CuPy where neither is installed: what a border sees of their arrays.

Each refuses what the real one refuses: NumPy of a tensor that needs a gradient, lies on a GPU or
holds bfloat16, any implicit conversion of a CuPy array. tests/gpu runs the same tests on both.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np

_INT16, _BFLOAT16 = np.dtype("i2"), np.dtype(ml_dtypes.bfloat16)


class Tensor:
    """A strided torch tensor."""

    layout = "torch.strided"

    def __init__(self, array: Any, device: str = "cpu", *, requires_grad: bool = False) -> None:
        self._array, self.device, self.requires_grad = np.asarray(array), device, requires_grad

    @property
    def dtype(self) -> Any:
        return self._array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def T(self) -> Tensor:  # noqa: N802
        return self._like(self._array.T)

    def is_contiguous(self) -> bool:
        return self._array.flags.c_contiguous

    def contiguous(self) -> Tensor:
        return self._like(np.ascontiguousarray(self._array))

    def detach(self) -> Tensor:
        return Tensor(self._array, self.device)

    def cpu(self) -> Tensor:
        return Tensor(self._array, "cpu", requires_grad=self.requires_grad)

    def to(self, device: str) -> Tensor:
        return Tensor(self._array, device, requires_grad=self.requires_grad)

    def resolve_conj(self) -> Tensor:
        return self

    resolve_neg = resolve_conj

    def view(self, dtype: Any) -> Tensor:
        return self._like(self._array.view(dtype))

    def numpy(self) -> Any:
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if self.device != "cpu":
            raise TypeError(f"can't convert {self.device} device type tensor to numpy.")
        if self._array.dtype == _BFLOAT16:
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self._array

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.numpy()

    def __add__(self, other: Any) -> Tensor:
        return self._like(self._array + getattr(other, "_array", other))

    def __mul__(self, other: Any) -> Tensor:
        return self._like(self._array * getattr(other, "_array", other))

    __rmul__ = __mul__

    def _like(self, array: Any) -> Tensor:
        return Tensor(array, self.device, requires_grad=self.requires_grad)


class Ndarray:
    """A CuPy array."""

    def __init__(self, array: Any) -> None:
        self._array, self.device = np.asarray(array), Device()

    @property
    def dtype(self) -> Any:
        return self._array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def flags(self) -> Any:
        return self._array.flags

    @property
    def T(self) -> Ndarray:  # noqa: N802
        return Ndarray(self._array.T)

    def get(self) -> Any:
        return self._array.copy()

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __add__(self, other: Any) -> Ndarray:
        return Ndarray(self._array + getattr(other, "_array", other))

    def __mul__(self, other: Any) -> Ndarray:
        return Ndarray(self._array * getattr(other, "_array", other))

    __rmul__ = __mul__


class Device:
    """A card that a ``with`` makes current."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def torch() -> ModuleType:
    module = ModuleType("torch")
    Tensor.__module__ = "torch"
    module.__dict__.update(
        Tensor=Tensor,
        float32=np.dtype("f4"),
        float64=np.dtype("f8"),
        int16=_INT16,
        bfloat16=_BFLOAT16,
        from_numpy=Tensor,
        is_tensor=lambda value: isinstance(value, Tensor),
    )
    return module


def cupy() -> ModuleType:
    module = ModuleType("cupy")
    Ndarray.__module__ = "cupy"
    module.__dict__.update(ndarray=Ndarray, asarray=Ndarray)
    return module
