"""Frames between a parent and its child: a kind, a JSON body, and raw bytes.

JSON and bytes only, never pickles: the child runs code that nobody has read.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO

from optiml_magic.model.codec import from_json, to_json

_HEAD = struct.Struct("<HIQ")  # bytes of kind, of JSON, of blob
_LARGEST_BLOB = 1 << 40
Kinds = Mapping[str, type]


@dataclass(frozen=True)
class Failed:
    """The child itself failed: a defect, with its traceback."""

    message: str


@dataclass(frozen=True)
class Raised:
    """The user or the machine is at fault: an error of ``errors``, by the name of its class."""

    error: str
    message: str
    fix: str


@dataclass(frozen=True)
class Reset:
    """Forget all that the owner left: the next one must find the child as if it were new."""


@dataclass(frozen=True)
class Ready:
    """The answer to ``Reset``; a child that cannot do so raises."""


def send(stream: BinaryIO, message: object, blob: bytes = b"") -> None:
    """Write one frame and flush it."""
    kind = type(message).__name__.encode()
    body = to_json(type(message), message).encode()
    stream.write(_HEAD.pack(len(kind), len(body), len(blob)) + kind + body)
    stream.write(blob)
    stream.flush()


def receive(stream: BinaryIO, kinds: Kinds) -> tuple[object, bytes]:
    """Read one frame; raises EOFError where the other side is gone, ValueError on nonsense."""
    kind_size, body_size, blob_size = _HEAD.unpack(_exactly(stream, _HEAD.size))
    if blob_size > _LARGEST_BLOB:
        raise ValueError(f"a frame of {blob_size} bytes")
    kind = kinds.get(_exactly(stream, kind_size).decode(errors="replace"))
    if kind is None:
        raise ValueError("a frame of no known kind")
    message: object = from_json(kind, _exactly(stream, body_size))
    return message, _exactly(stream, blob_size)


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count) if count else b""
    if len(data) < count:
        raise EOFError("the pipe ended")
    return data
