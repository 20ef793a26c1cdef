"""Who computes a task on a card beside us: CuPy and the vendor's libraries, torch, torch.compile.

Each is made ready for given arrays as a function without arguments, so that all are timed alike.
Float32 products are without TF32.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from optiml_magic.bench.entry import Entry, Peer
from optiml_magic.devices.functions import captured
from optiml_magic.rebound import computed, rebound
from optiml_magic.result import Kernel

EAGER, COMPILED = "torch eager", "torch.compile, warmed up"
_CALLS = 3  # that warm a peer up: torch.compile compiles in the first


class Party(Protocol):
    """One that computes the task."""

    name: str

    def ready(self, values: Mapping[str, Any]) -> Callable[[], Any]:
        """Bound to CuPy arrays and numbers by name; it may have run already."""

    def arrays(self, outputs: Any) -> tuple[Any, ...]:
        """What a run returned, in the order of the kernel's parameters, as arrays of CuPy's."""

    def capture(self, stream: Any, runs: Callable[[], None]) -> Callable[[], None]:
        """What launches ``runs`` as one CUDA graph on a stream of CuPy's. May raise anything."""

    def on(self, stream: Any) -> AbstractContextManager[Any]:
        """Whatever it launches inside goes to that stream of CuPy's."""


class _OnCupy:
    """What launches on CuPy's streams and gives CuPy's arrays back."""

    def arrays(self, outputs: Any) -> tuple[Any, ...]:
        return _several(outputs)

    def capture(self, stream: Any, runs: Callable[[], None]) -> Callable[[], None]:
        import cupy

        return captured(cupy, stream, runs)

    def on(self, stream: Any) -> AbstractContextManager[Any]:
        found: AbstractContextManager[Any] = stream
        return found


@dataclass
class OurKernel(_OnCupy):
    """A program of a search, by the callable that a user gets."""

    name: str
    kernel: Kernel

    def ready(self, values: Mapping[str, Any]) -> Callable[[], Any]:
        known = {n: v for n, v in values.items() if n in self.kernel.parameters}
        # On copies, since in-out arrays change.
        first = _several(self.kernel(**copied(known)))
        # Where some are in-out, the others are allocated anew in each call.
        alone = len(first) == len(self.kernel.outputs)
        outputs = dict(zip(self.kernel.outputs, first, strict=True)) if alone else {}
        return lambda: self.kernel(**known, **outputs)


@dataclass
class Library(_OnCupy):
    """A function on CuPy arrays."""

    name: str
    function: Peer

    def ready(self, values: Mapping[str, Any]) -> Callable[[], Any]:
        import cupy

        return bound(self.function, cupy, values)


@dataclass
class Torch:
    """A function on tensors, as it is or through ``torch.compile``: once, for arrays alike."""

    name: str
    function: Peer
    compiled: bool = False
    _fast: Any = None

    def ready(self, values: Mapping[str, Any]) -> Callable[[], Any]:
        import torch

        made = {n: _tensor(torch, v) for n, v in values.items()}
        if not self.compiled:
            return bound(self.function, torch, made)
        known = _taken(self.function, made)
        tensors = {n: v for n, v in known.items() if isinstance(v, torch.Tensor)}
        rest = {n: v for n, v in known.items() if n not in tensors}
        names, function = tuple(tensors), self.function

        def whole(*given: Any) -> Any:
            return function(torch, **dict(zip(names, given, strict=True)), **rest)

        if self._fast is None:
            self._fast = torch.compile(whole, dynamic=False)
        fast = self._fast
        for _ in range(_CALLS):
            fast(*tensors.values())
        return lambda: fast(*tensors.values())

    def arrays(self, outputs: Any) -> tuple[Any, ...]:
        import cupy

        # Not in a run: the exchange waits for streams, which a capture forbids.
        return tuple(cupy.from_dlpack(t.detach().contiguous()) for t in _several(outputs))

    def capture(self, stream: Any, runs: Callable[[], None]) -> Callable[[], None]:
        import torch

        graph = torch.cuda.CUDAGraph()
        own, before = torch.cuda.ExternalStream(stream.ptr), torch.cuda.current_stream()
        try:
            with torch.cuda.graph(graph, stream=own, capture_error_mode="thread_local"):
                runs()
        finally:
            # A capture that fails leaves torch on a stream that will be gone for the next task.
            torch.cuda.set_stream(before)

        def replay() -> None:
            with torch.cuda.stream(own):
                graph.replay()

        return replay

    @contextmanager
    def on(self, stream: Any) -> Any:
        import torch

        with torch.cuda.stream(torch.cuda.ExternalStream(stream.ptr)):
            yield


def peers(entry: Entry) -> tuple[list[Party], dict[str, str]]:
    """The peers of a task that are installed; why others are not there, by name."""
    from cupy import _core as core

    # CUB in place of CuPy's own kernels, where it has one.
    core.set_reduction_accelerators(["cub"])
    core.set_routine_accelerators(["cub"])
    found: list[Party] = [Library(n, function) for n, function in entry.libraries.items()]
    missing: dict[str, str] = {}
    if entry.torch is not None:
        try:
            import torch
        except ImportError:
            missing["torch"] = "torch is not installed"
        else:
            torch.backends.cuda.matmul.allow_tf32 = False
            torch.backends.cudnn.allow_tf32 = False
            # What was compiled for the tasks before counts against a limit of recompilations.
            torch.compiler.reset()
            found += [Torch(EAGER, entry.torch), Torch(COMPILED, entry.torch, compiled=True)]
    return found, missing


@dataclass
class Fused(_OnCupy):
    """A reference through ``cupy.fuse``, which takes maps and some reductions: fused once."""

    name: str
    reference: Peer
    _fast: Any = None

    def ready(self, values: Mapping[str, Any]) -> Callable[[], Any]:
        import cupy

        known = _asked(self.reference, values)
        arrays = {n: v for n, v in known.items() if getattr(v, "ndim", 0)}
        if self._fast is None:
            rest = {n: v for n, v in known.items() if n not in arrays}
            # What it is traced with has no absolute value of Python's.
            call, names = rebound(self.reference, cupy, {"abs": cupy.abs}), tuple(arrays)

            def whole(*given: Any) -> Any:
                return _in_order(call(**dict(zip(names, given, strict=True)), **rest))

            self._fast = cupy.fuse(whole)
        fast = self._fast
        return lambda: fast(*arrays.values())


def running_on_cupy(entry: Entry) -> list[Party]:
    """The reference itself, with CuPy in place of its names for NumPy: as it is, and fused."""

    def reference(cp: Any, **values: Any) -> Any:
        given = _asked(entry.reference, values)
        return _in_order(computed(cp, rebound(entry.reference, cp), given))

    name = "CuPy running the reference"
    return [Library(name, reference), Fused(f"{name}, fused", entry.reference)]


def wanted(entry: Entry, values: Mapping[str, Any]) -> tuple[tuple[Any, ...], str]:
    """The outputs in double precision by a peer's function, and whose; nothing without one."""
    double = {n: v.astype(np.float64) if _is_floating(v) else v for n, v in values.items()}
    found: list[Party] = [Library(n, function) for n, function in entry.libraries.items()]
    if entry.torch is not None and "torch" in sys.modules:
        found.insert(0, Torch("torch", entry.torch))
    if not found:
        return (), ""
    outputs = found[0].arrays(found[0].ready(double)())
    return outputs, f"{found[0].name} in double precision"


def bound(function: Peer, library: Any, values: Mapping[str, Any]) -> Callable[[], Any]:
    """The function on those of the values that it takes."""
    known = _taken(function, values)
    return lambda: function(library, **known)


def _asked(reference: Peer, values: Mapping[str, Any]) -> dict[str, Any]:
    asked = inspect.signature(reference).parameters
    return {n: v for n, v in values.items() if n in asked}


def _in_order(found: Any) -> Any:
    return tuple(found.values()) if isinstance(found, Mapping) else found


def _taken(function: Peer, values: Mapping[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    every = any(p.kind is p.VAR_KEYWORD for p in parameters)
    names = [p.name for p in parameters][1:]
    return {n: v for n, v in values.items() if every or n in names}


def copied(values: Mapping[str, Any]) -> dict[str, Any]:
    """Each array anew: a kernel may write to those that it is given."""
    return {n: v.copy() if getattr(v, "ndim", 0) else v for n, v in values.items()}


def _is_floating(value: Any) -> bool:
    return hasattr(value, "ndim") and value.ndim > 0 and value.dtype.kind == "f"


def _several(found: Any) -> tuple[Any, ...]:
    return tuple(found) if isinstance(found, (tuple, list)) else (found,)


def _tensor(torch: Any, value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    return torch.from_dlpack(value) if hasattr(value, "__dlpack__") else value
