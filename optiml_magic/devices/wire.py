"""Frames between the parent and the device host: a kind, a JSON body, and raw bytes.

JSON and bytes only, never pickles: the child runs code that nobody has read.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import BinaryIO, TypeVar

from optiml_magic.devices.base import Execution, Fault, Job, Role, Timing, Tolerance
from optiml_magic.model.build import Build
from optiml_magic.model.codec import from_json, to_json

_HEAD = struct.Struct("<HIQ")  # bytes of kind, of JSON, of blob
_LARGEST_BLOB = 1 << 40
T = TypeVar("T")


@dataclass(frozen=True)
class BufferHeader:
    """A buffer whose bytes lie in the shared file: offsets in bytes, -1 where there is nothing.

    The dtypes are as ``model.dtypes`` spells them.
    """

    name: str
    role: Role
    dtype: str
    shape: tuple[int, ...]
    offset: int
    expected_dtype: str
    expected_offset: int
    tolerance: Tolerance | None


@dataclass(frozen=True)
class Put:
    """A case in a shared file."""

    key: str
    path: str
    buffers: tuple[BufferHeader, ...]


@dataclass(frozen=True)
class Execute:
    """A job; the build travels with it (cubin left out where the device does not need it)."""

    build: Build
    job: Job


@dataclass(frozen=True)
class Time:
    """Runs to be timed in turn, each ``samples`` times."""

    builds: tuple[Build, ...]
    jobs: tuple[Job, ...]
    samples: int


@dataclass(frozen=True)
class Timings:
    """The answer: one for each run."""

    timings: tuple[Timing, ...]


@dataclass(frozen=True)
class Read:
    """Ask for a buffer; the answer's blob holds its bytes."""

    case: str
    buffer: str


@dataclass(frozen=True)
class Done:
    """The answer to a request that returns nothing else."""


@dataclass(frozen=True)
class Failed:
    """The host itself failed: a defect, with its traceback."""

    message: str


KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (Put, Execute, Time, Timings, Read, Done, Failed, Execution, Fault)
}


def send(stream: BinaryIO, message: object, blob: bytes = b"") -> None:
    """Write one frame and flush it."""
    kind = type(message).__name__.encode()
    body = to_json(type(message), message).encode()
    stream.write(_HEAD.pack(len(kind), len(body), len(blob)) + kind + body)
    stream.write(blob)
    stream.flush()


def receive(stream: BinaryIO) -> tuple[object, bytes]:
    """Read one frame; raises EOFError where the other side is gone, ValueError on nonsense."""
    kind_size, body_size, blob_size = _HEAD.unpack(_exactly(stream, _HEAD.size))
    if blob_size > _LARGEST_BLOB:
        raise ValueError(f"a frame of {blob_size} bytes")
    kind = KINDS.get(_exactly(stream, kind_size).decode(errors="replace"))
    if kind is None:
        raise ValueError("a frame of no known kind")
    message: object = from_json(kind, _exactly(stream, body_size))
    return message, _exactly(stream, blob_size)


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count) if count else b""
    if len(data) < count:
        raise EOFError("the device host's pipe ended")
    return data
