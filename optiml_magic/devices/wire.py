"""What the parent and the device host say to each other, in the frames of ``child.frames``."""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.devices.base import (
    Draw,
    Execution,
    Fault,
    Job,
    Role,
    Sampling,
    Timing,
    Tolerance,
)
from optiml_magic.devices.maps import Map
from optiml_magic.model.build import Build


@dataclass(frozen=True)
class BufferHeader:
    """A buffer whose bytes lie in the shared file: offsets in bytes, -1 where there is nothing.

    The dtypes are as ``model.dtypes`` spells them. ``held`` names a case and a buffer of it whose
    array this is: those bytes are with the host already.
    """

    name: str
    role: Role
    dtype: str
    shape: tuple[int, ...]
    offset: int
    expected_dtype: str
    expected_offset: int
    tolerance: Tolerance | None
    map: Map | None = None
    digest: int | None = None
    held: tuple[str, str] | None = None


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
    """Runs to be timed in turn."""

    builds: tuple[Build, ...]
    jobs: tuple[Job, ...]
    sampling: Sampling


@dataclass(frozen=True)
class Timings:
    """The answer: one for each run."""

    timings: tuple[Timing, ...]


@dataclass(frozen=True)
class Repeat:
    """A run to be repeated for that long, to see what the card draws."""

    build: Build
    job: Job
    seconds: float


@dataclass(frozen=True)
class Read:
    """Ask for a buffer; the answer's blob holds its bytes, or the file at ``path``, if any."""

    case: str
    buffer: str
    path: str = ""


@dataclass(frozen=True)
class Done:
    """The answer to a request that returns nothing else."""


KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        Put,
        Execute,
        Time,
        Timings,
        Repeat,
        Draw,
        Read,
        Done,
        Execution,
        Fault,
    )
}
