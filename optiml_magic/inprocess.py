"""Calling a program on arrays that lie on a GPU: in this process, zero-copy, on the current stream.

CuPy arrays and torch tensors are passed as they are; the outputs are new ones of the same library.
In-out arrays are changed in place. The call returns before the kernel has ended, like every launch.

This is outside the guard of the device host: a kernel that faults takes this process's CUDA context
with it, and nothing looks for elements that were never written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from optiml_magic.binding import BoundBuffer, check_array
from optiml_magic.calls import prepared
from optiml_magic.compilers.base import CompileOptions, Compiler
from optiml_magic.devices.base import Array, Buffer
from optiml_magic.devices.choice import choose
from optiml_magic.devices.module import CudaModule, Place
from optiml_magic.errors import BindingError
from optiml_magic.problem import Problem
from optiml_magic.source.program import Program, parse_program


@dataclass(frozen=True)
class _Seen:
    """An array of another library: where it lies, and an untouched NumPy array of its shape."""

    address: int
    shape: Array
    index: int  # of the card
    contiguous: bool


class _Library(Protocol):
    """What is needed of CuPy or torch."""

    def see(self, array: Any) -> _Seen: ...

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], index: int) -> Any: ...

    def copied(self, array: Any, index: int) -> Any:
        """A copy of an array of this library or of NumPy's on the card."""

    def fill(self, array: Any, value: float) -> None: ...

    def stream(self, index: int) -> Any:
        """The current stream, as CuPy knows streams."""


class _Cupy:
    def __init__(self) -> None:
        import cupy

        self._cp = cupy

    def see(self, array: Any) -> _Seen:
        shape = np.empty(array.shape, array.dtype)
        return _Seen(array.data.ptr, shape, array.device.id, bool(array.flags.c_contiguous))

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], index: int) -> Any:
        del index  # the caller made it current
        return self._cp.empty(shape, dtype)

    def copied(self, array: Any, index: int) -> Any:
        del index
        return self._cp.array(array)

    def fill(self, array: Any, value: float) -> None:
        array.fill(value)

    def stream(self, index: int) -> Any:
        del index
        return self._cp.cuda.get_current_stream()


class _Torch:
    def __init__(self) -> None:
        import torch

        self._torch = torch

    def see(self, array: Any) -> _Seen:
        name = str(array.dtype).removeprefix("torch.")
        shape = np.empty(tuple(array.shape), np.dtype(name))
        return _Seen(array.data_ptr(), shape, array.device.index, bool(array.is_contiguous()))

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], index: int) -> Any:
        kind = getattr(self._torch, dtype.name, None)
        if kind is None:
            raise BindingError(f"torch has no {dtype.name}", fix="pass CuPy arrays")
        return self._torch.empty(shape, dtype=kind, device=f"cuda:{index}")

    def copied(self, array: Any, index: int) -> Any:
        if isinstance(array, np.ndarray):
            return self._torch.from_numpy(array).to(f"cuda:{index}")
        return array.detach().clone()

    def fill(self, array: Any, value: float) -> None:
        array.fill_(value)

    def stream(self, index: int) -> Any:
        import cupy

        current = self._torch.cuda.current_stream(index).cuda_stream
        if hasattr(cupy.cuda.Stream, "from_external"):  # CuPy 14; deprecates the other
            return cupy.cuda.Stream.from_external(_Stream(current))
        return cupy.cuda.ExternalStream(current, index)


@dataclass(frozen=True)
class _Stream:
    """A stream for whoever speaks the protocol of CUDA Python."""

    address: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.address


_LIBRARIES: dict[str, type[_Library]] = {"cupy": _Cupy, "torch": _Torch}


def library_of(value: Any) -> str:
    """``cupy`` or ``torch`` for an array of theirs that lies on a GPU; empty for anything else."""
    home = type(value).__module__.split(".")[0]
    on_gpu = home == "cupy" or (home == "torch" and bool(getattr(value, "is_cuda", False)))
    return home if on_gpu and hasattr(value, "shape") else ""


@dataclass
class InProcess:
    """Runs the programs of one problem on GPU arrays; what was compiled and loaded stays."""

    problem: Problem
    compiler: Compiler
    options: CompileOptions
    _modules: dict[tuple[int, str], CudaModule] = field(default_factory=dict)

    def __call__(self, text: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs by name, as arrays of the inputs' library.

        Raises BindingError where an array does not fit, lies on another card than the others, or is
        not on a card at all.
        """
        import cupy

        library, seen = _seen(self.problem, values)
        (index, *_) = {array.index for array in seen.values()}
        program = parse_program(text)
        with cupy.cuda.Device(index), library.stream(index) as stream:
            chip = choose(f"cuda:{index}").chip
            shapes = {name: array.shape for name, array in seen.items()}
            buffers, build, plan = prepared(
                self.problem, self.compiler, self.options, chip, program, {**values, **shapes}
            )
            arrays = {b.name: _array(b, library, program, values, index) for b in buffers}
            for name, number in plan.fills:
                library.fill(arrays[name], float(number))
            temporary = {
                s.name: library.empty((s.elements,), np.dtype(s.dtype), index) for s in plan.scratch
            }
            places = {
                name: Place(one.address, one.shape.nbytes)
                for name, one in ((n, library.see(a)) for n, a in {**arrays, **temporary}.items())
            }
            module = self._modules.get((index, build.digest))
            if module is None:
                module = self._modules[index, build.digest] = CudaModule(build)
            module.fill({symbol: _raw(arrays[name]) for symbol, name in plan.variables})
            module.run(plan, places, stream)
        return {b.name: arrays[b.name] for b in buffers if b.role != "input"}


def _seen(problem: Problem, values: Mapping[str, Any]) -> tuple[_Library, dict[str, _Seen]]:
    """The library of the arrays, and each of them; they must agree with one another."""
    homes = {name: library_of(value) for name, value in values.items()}
    (first, home) = next((n, h) for n, h in homes.items() if h)
    library = _LIBRARIES[home]()
    seen: dict[str, _Seen] = {}
    for bound in problem.interface.buffers:
        value = values.get(bound.name)
        if value is None or (bound.place == "variable" and not homes[bound.name]):
            continue
        if homes[bound.name] != home:
            raise BindingError(
                f"`{first}` is on the GPU, and `{bound.name}` is a {type(value).__name__}",
                fix=f"pass all arrays as {home} arrays on one GPU",
                line=bound.line,
            )
        seen[bound.name] = _fitting(bound, library.see(value))
        if seen[bound.name].index != next(iter(seen.values())).index:
            raise BindingError(
                f"`{first}` and `{bound.name}` lie on different GPUs", fix="move one of them"
            )
    return library, seen


def _fitting(bound: BoundBuffer, seen: _Seen) -> _Seen:
    check_array(bound, seen.shape)
    if not seen.contiguous:
        raise BindingError(
            f"`{bound.name}` is not contiguous (a view or a transpose)",
            fix=f"pass a contiguous copy of `{bound.name}`",
            line=bound.line,
        )
    return seen


def _array(
    buffer: Buffer, library: _Library, program: Program, values: Mapping[str, Any], index: int
) -> Any:
    """The user's own array, a copy of what the buffer starts with, or a new one."""
    start = next((d.value for d in program.inits if d.buffer == buffer.name), None)
    given = values.get(buffer.name)
    if isinstance(start, str):
        content = library.copied(values.get(start, buffer.array), index)
        if given is None:
            return content
        given[...] = content
        return given
    if library_of(given):
        return given
    if buffer.role == "input":  # a variable that was given as NumPy array or number
        raw = buffer.array.dtype.names is not None  # no library here copies structs
        return library.copied(buffer.array.view(np.uint8) if raw else buffer.array, index)
    return library.empty(buffer.array.shape, buffer.array.dtype, index)


def _raw(array: Any) -> Any:
    """The bytes of an array on the card, for CuPy."""
    import cupy

    return cupy.from_dlpack(array).reshape(-1).view(np.uint8)
