"""The device host: ``python -m optiml_magic.devices.host emulated:h200 FOLDER``.

A child in a session of its own that holds one device and answers frames until its pipe ends. It
loads, launches, compares and reads; it never sees a reference, a proposal or a user's Python
object. ``FOLDER`` is where an emulated device keeps object code.
"""

from __future__ import annotations

import mmap
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np

from optiml_magic.child.confinement import available_memory, be_expendable, limit_memory
from optiml_magic.child.server import own_streams, serve
from optiml_magic.devices import wire
from optiml_magic.devices.base import (
    Array,
    Buffer,
    Case,
    Device,
    DrawingDevice,
    Execution,
    Fault,
    TimedDevice,
    is_emulated,
)
from optiml_magic.devices.printed import Printed
from optiml_magic.errors import MachineError
from optiml_magic.model.codec import prepare
from optiml_magic.model.dtypes import read
from optiml_magic.model.verdict import Outcome


def main(arguments: list[str]) -> int:
    """Serve the device named by the first argument."""
    be_expendable()
    requests, answers = own_streams()
    emulated = is_emulated(arguments[0])
    if emulated:  # CUDA reserves more addresses than there is memory
        limit_memory()
    ahead = threading.Thread(target=_prepare, args=arguments, daemon=True)  # beside the device
    ahead.start()
    host = _DeviceHost(open_device(*arguments))
    reset = host.reset if emulated else None
    serve(host.answer, wire.KINDS, requests, answers, reset=reset)
    ahead.join()  # LLVM ends with the process, and nobody may be in it
    return 0


def _prepare(name: str, objects: str = "") -> None:
    """What the first requests need, made while there are none."""
    prepare(_ASKED)
    if is_emulated(name) and objects:
        from optiml_magic.emulator.jit import make_library

        make_library(Path(objects))


_ASKED = (wire.Put, wire.Execute, wire.Time, wire.Done, wire.Timings, Execution)


def open_device(name: str, objects: str = "") -> Device:
    """The device of that name, in this process; an emulated one keeps object code in a folder."""
    family, _, rest = name.partition(":")
    if family == "emulated":
        from optiml_magic.devices.emulated import EmulatedDevice

        return EmulatedDevice(rest, Path(objects) if objects else None)
    if family == "cuda":
        from optiml_magic.devices.cuda import CudaDevice

        return CudaDevice(int(rest))
    raise MachineError(f"no device named {name!r}")


class _DeviceHost:
    def __init__(self, device: Device) -> None:
        self._device = device
        self._cases: dict[str, Case] = {}  # as they were put
        self._printed = Printed()
        self._starved = False

    def answer(self, message: object) -> tuple[object, bytes]:
        try:
            answer, blob = self._answered(message)
        except MemoryError:
            self._starved = True
            free = f"{available_memory() >> 20} MB are free"
            return Fault(Outcome.LAUNCH_ERROR, f"not enough memory for this run; {free}"), b""
        text = self._printed.take()
        if text and isinstance(answer, Execution):
            answer = replace(answer, printed=text)
        return answer, blob

    def reset(self) -> None:
        """Drop cases, modules and what was printed; the memory that is free now is the limit."""
        if self._starved:  # what a failed allocation left half done is not known
            raise MachineError("memory ran out here", fix="start another host")
        self._device.close()
        self._cases.clear()
        self._printed.take()
        limit_memory()

    def _answered(self, message: object) -> tuple[object, bytes]:
        if isinstance(message, wire.Put):
            case, shared = _case(message, self._cases)
            self._device.put(case)
            kept = case if is_emulated(self._device.name) else case.with_answers_elsewhere()
            self._cases[case.key] = kept
            _forget(shared)
            return wire.Done(), b""
        return _answered(self._device, message)


def _answered(device: Device, message: object) -> tuple[object, bytes]:
    if isinstance(message, wire.Execute):
        return device.execute(message.build, message.job), b""
    if isinstance(message, wire.Time):
        return _time(device, message), b""
    if isinstance(message, wire.Repeat):
        repeated = cast(DrawingDevice, device)
        return repeated.draw(message.build, message.job, message.seconds), b""
    if isinstance(message, wire.Read):
        return wire.Done(), _written(device.read(message.case, message.buffer), message.path)
    raise ValueError(f"{type(message).__name__} is not a request")


def _written(array: Array, path: str) -> bytes:
    """The bytes of an array; nothing where they are in a file, which is written and not mapped."""
    if not path:
        return array.tobytes()
    with Path(path).open("r+b", buffering=0) as file:
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        while raw:
            raw = raw[file.write(raw) :]
    return b""


def _time(device: Device, message: wire.Time) -> object:
    timed = cast(TimedDevice, device).time(
        list(zip(message.builds, message.jobs, strict=True)), message.sampling
    )
    return timed if isinstance(timed, Fault) else wire.Timings(timed)


def _case(put: wire.Put, known: Mapping[str, Case]) -> tuple[Case, mmap.mmap | None]:
    path = Path(put.path)
    with path.open("rb") as file:
        empty = path.stat().st_size == 0
        shared = None if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def array(dtype: str, shape: tuple[int, ...], offset: int) -> Array:
        if offset < 0:
            return np.empty(shape, read(dtype))
        count = int(np.prod(shape, dtype=np.int64))
        return np.frombuffer(shared or b"", read(dtype), count, offset).reshape(shape)

    def initial(header: wire.BufferHeader) -> Array:
        if header.held is None:
            return array(header.dtype, header.shape, header.offset)
        key, name = header.held
        return next(b.array for b in known[key].buffers if b.name == name)

    case = Case(
        put.key,
        tuple(
            Buffer(
                name=b.name,
                role=b.role,
                array=initial(b),
                expected=array(b.expected_dtype, b.shape, b.expected_offset)
                if b.expected_offset >= 0
                else None,
                tolerance=b.tolerance,
                map=b.map,
                digest=b.digest,
            )
            for b in put.buffers
        ),
    )
    return case, shared


def _forget(shared: mmap.mmap | None) -> None:
    """Let go of the pages that ``put`` read; they come back when they are read again."""
    if shared is not None and hasattr(mmap, "MADV_DONTNEED"):
        shared.madvise(mmap.MADV_DONTNEED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
