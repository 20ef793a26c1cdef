"""The device host: ``python -m optiml_magic.devices.host emulated:h200``.

A child in a session of its own that holds one device and answers frames until its pipe ends. It
loads, launches, compares and reads; it never sees a reference, a proposal or a user's Python
object.
"""

from __future__ import annotations

import mmap
import os
import sys
import traceback
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from optiml_magic.devices import wire
from optiml_magic.devices.base import Array, Buffer, Case, Device, Fault, TimedDevice
from optiml_magic.errors import MachineError
from optiml_magic.model.dtypes import read


def main(arguments: list[str]) -> int:
    """Serve the device named by the only argument."""
    # Whatever prints to the standard output must not end up between the frames.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(open_device(arguments[0]), sys.stdin.buffer, answers)
    return 0


def open_device(name: str) -> Device:
    """The device of that name, in this process."""
    family, _, rest = name.partition(":")
    if family == "emulated":
        from optiml_magic.devices.emulated import EmulatedDevice

        return EmulatedDevice(rest)
    if family == "cuda":
        from optiml_magic.devices.cuda import CudaDevice

        return CudaDevice(int(rest))
    raise MachineError(f"no device named {name!r}")


def serve(device: Device, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer each request in order until the pipe ends."""
    while True:
        try:
            message, _ = wire.receive(requests)
        except EOFError:
            return
        try:
            answer, blob = _answer(device, message)
        except Exception:  # noqa: BLE001  # the parent must hear of it; the host lives on
            answer, blob = wire.Failed(traceback.format_exc()), b""
        wire.send(answers, answer, blob)


def _answer(device: Device, message: object) -> tuple[object, bytes]:
    if isinstance(message, wire.Put):
        case, shared = _case(message)
        device.put(case)
        _forget(shared)
        return wire.Done(), b""
    if isinstance(message, wire.Execute):
        return device.execute(message.build, message.job), b""
    if isinstance(message, wire.Time):
        return _time(device, message), b""
    if isinstance(message, wire.Read):
        return wire.Done(), device.read(message.case, message.buffer).tobytes()
    raise ValueError(f"{type(message).__name__} is no request")


def _time(device: Device, message: wire.Time) -> object:
    timed = cast(TimedDevice, device).time(
        list(zip(message.builds, message.jobs, strict=True)), message.samples
    )
    return timed if isinstance(timed, Fault) else wire.Timings(timed)


def _case(put: wire.Put) -> tuple[Case, mmap.mmap | None]:
    path = Path(put.path)
    with path.open("rb") as file:
        empty = path.stat().st_size == 0
        shared = None if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def array(dtype: str, shape: tuple[int, ...], offset: int) -> Array:
        if offset < 0:
            return np.empty(shape, read(dtype))
        count = int(np.prod(shape, dtype=np.int64))
        return np.frombuffer(shared or b"", read(dtype), count, offset).reshape(shape)

    case = Case(
        put.key,
        tuple(
            Buffer(
                name=b.name,
                role=b.role,
                array=array(b.dtype, b.shape, b.offset),
                expected=array(b.expected_dtype, b.shape, b.expected_offset)
                if b.expected_offset >= 0
                else None,
                tolerance=b.tolerance,
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
