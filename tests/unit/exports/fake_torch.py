"""As much of ``torch`` as an exported op needs: an op is its function."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np


class Tensor:
    """An array, ``on_host``, which the fake CuPy takes by DLPack."""

    device = "host"
    is_cuda = False
    __dlpack__ = None

    def __init__(self, on_host: Any) -> None:
        self.on_host = np.asarray(on_host)
        self.shape = self.on_host.shape
        self.dtype = self.on_host.dtype

    def detach(self) -> Tensor:
        return self

    def contiguous(self) -> Tensor:
        return Tensor(np.ascontiguousarray(self.on_host))

    def numpy(self) -> Any:
        return self.on_host

    def clone(self, memory_format: str) -> Tensor:
        assert memory_format == "contiguous"
        return Tensor(np.array(self.on_host, order="C"))

    def numel(self) -> int:
        return self.on_host.size


class Op:
    """The function, with the fake one that was registered for it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.fake: Callable[..., Any] | None = None

    def register_fake(self, fake: Callable[..., Any]) -> Callable[..., Any]:
        self.fake = fake
        return fake


def module(registered: dict[str, Any]) -> types.ModuleType:
    """A module to stand for ``torch``; ``registered`` gets what each op was registered with."""
    torch = types.ModuleType("torch")

    def custom_op(name: str, **given: Any) -> Callable[[Callable[..., Any]], Op]:
        registered[name] = given
        return Op

    def empty(shape: tuple[int, ...], dtype: Any, device: str) -> Tensor:
        assert device == "host"
        return Tensor(np.full(shape, 77, dtype))

    def empty_like(tensor: Tensor, memory_format: str) -> Tensor:
        return tensor.clone(memory_format)

    given: dict[str, Any] = {
        "Tensor": Tensor,
        "empty": empty,
        "empty_like": empty_like,
        "contiguous_format": "contiguous",
        "library": types.SimpleNamespace(custom_op=custom_op),
        "Tag": types.SimpleNamespace(cudagraph_unsafe="unsafe"),
        **{name: np.dtype(name) for name in ("float32", "int32", "float16", "float64")},
    }
    torch.__dict__.update(given)
    return torch
