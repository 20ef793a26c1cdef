"""A device in a child process: it may hang or die, and the next candidate still runs."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from io import BufferedRandom
from typing import BinaryIO, cast

import numpy as np

from optiml_magic.child import ahead
from optiml_magic.child.process import Child
from optiml_magic.child.spare import SPARES
from optiml_magic.devices import wire
from optiml_magic.devices.base import (
    Array,
    Buffer,
    Case,
    Draw,
    Execution,
    Fault,
    Job,
    Sampling,
    Timing,
    is_emulated,
)
from optiml_magic.devices.turns import turn
from optiml_magic.errors import InternalError, MachineError
from optiml_magic.model.build import Build
from optiml_magic.model.condition import Conditions
from optiml_magic.model.dtypes import spelled
from optiml_magic.model.verdict import Outcome
from optiml_magic.settings import resolve

_HOST = "optiml_magic.devices.host"
_ALIGN = 64
_PUT_SECONDS = 120.0  # no candidate runs meanwhile; a first start compiles what compares
# Of machine code and variables, after which a host is replaced: CuPy lets go of no module.
_LOADED_BYTES = 1 << 30
_SHARED = 1 << 20  # bytes from which on a buffer is read through a file in memory; ours


class HostedDevice:
    """Speaks the device protocol of ``base`` to a child that it starts, kills and restarts.

    ``seconds`` bounds one execution; one that takes longer is killed with its host and becomes the
    verdict ``timeout``. Cases are kept here as well: a restarted host gets each again when it is
    asked for. A host that has loaded too much is replaced by a new one, but never one that a tool
    wraps: that ends once.

    A closed host of an emulated device may wait for the next owner (``child.spare``). Never one of
    CUDA: its context holds memory of the card and may disturb what other processes time there.
    """

    def __init__(self, name: str, *, seconds: float = 60.0, prefix: tuple[str, ...] = ()) -> None:
        self.name = name
        self._prefix = prefix  # a tool that wraps the host, such as ncu
        self.restarts = 0
        self._seconds = seconds
        self._cases: dict[str, Case] = {}
        self._held: dict[str, Case] = {}  # those that this host has
        self._child: Child | None = None
        self._loaded: dict[str, int] = {}  # bytes by digest, in this host
        self._ended = False  # once, which is all for a host that a tool wraps

    def start(self) -> None:
        """Start the host and do not wait for it; else it starts with the first request."""
        if self._child is None and not self._cases:
            self._child = self._started()

    def limit(self, seconds: float) -> None:
        """Of one request, from now on."""
        self._seconds = seconds

    def put(self, case: Case) -> None:
        self._cases[case.key] = case
        if self._child is None or not self._child.alive:  # ended by an interrupt: the next has it
            return
        if self._held.get(case.key) is case:
            return
        try:
            self._put(self._child, case)
        except MachineError:
            if all(buffer.digest is None for buffer in case.buffers):
                raise
            # A kernel may have damaged the array that this one is made of: a new host has it whole.
            self._kill()
            try:
                self._put(self._running(), case)
            except MachineError:
                del self._cases[case.key]
                self._kill()
                raise

    def execute(self, build: Build, job: Job) -> Execution:
        self._make_room([build])
        self._ready(job.case)
        answer = self._ask(wire.Execute(self._lean(build), job))
        if isinstance(answer, Fault):
            return Execution(answer)
        if isinstance(answer, Execution):
            return answer
        raise InternalError(f"the device host answered {answer}")

    def time(
        self, runs: Sequence[tuple[Build, Job]], sampling: Sampling
    ) -> tuple[Timing, ...] | Fault:
        self._make_room([build for build, _ in runs])
        builds, jobs = tuple(self._lean(b) for b, _ in runs), tuple(j for _, j in runs)
        answer, crowded = self._ask_alone(wire.Time(builds, jobs, sampling), jobs)
        if isinstance(answer, Fault):
            return answer
        if isinstance(answer, wire.Timings):
            return tuple(_remarked(timing, crowded) for timing in answer.timings)
        raise InternalError(f"the device host answered {answer}")

    def draw(self, build: Build, job: Job, seconds: float) -> Draw | Fault:
        self._make_room([build])
        answer, _ = self._ask_alone(wire.Repeat(self._lean(build), job, seconds), [job])
        if isinstance(answer, (Draw, Fault)):
            return answer
        raise InternalError(f"the device host answered {answer}")

    def _lean(self, build: Build) -> Build:
        """The build without what this device does not run."""
        return replace(build, cubin=b"") if is_emulated(self.name) else replace(build, ptx="")

    def _make_room(self, builds: Sequence[Build]) -> None:
        """Before a request, since what was left in buffers is read after one."""
        new = {build.digest: _nbytes(build) for build in builds}
        others = sum(n for digest, n in self._loaded.items() if digest not in new)
        if others > _LOADED_BYTES and not self._prefix:
            self.close()  # which lets nobody else have it
        self._loaded |= new

    def _ask_alone(self, request: object, jobs: Sequence[Job]) -> tuple[object, str]:
        """The answer, and why others may have disturbed it."""
        for job in jobs:  # whoever else waits for the card should not wait for this host to start
            self._ready(job.case)
        with turn(self.name) as crowded:
            return self._ask(request), crowded

    def _ask(self, request: object) -> object:
        try:
            answer, _ = self._running().ask(request, self._seconds)
        except TimeoutError:
            self._kill()
            limit = f"no end within {self._seconds:g} s; the device host was killed"
            return Fault(Outcome.TIMEOUT, limit)
        except EOFError:
            last = self._kill()
            return Fault(Outcome.CRASHED, f"the device host died: {last}")
        fault = answer.fault if isinstance(answer, Execution) else answer
        if isinstance(fault, Fault) and fault.sticky:
            self._kill()
        return answer

    def read(self, case: str, buffer: str) -> Array:
        like = next(b.array for b in self._cases[case].buffers if b.name == buffer)
        self._ready(case)
        with contextlib.ExitStack() as files:
            file = files.enter_context(_shared_file()) if like.nbytes >= _SHARED else None
            request = wire.Read(case, buffer, _path(file) if file else "")
            try:
                _, blob = self._running().ask(request, self._seconds)
            except (TimeoutError, EOFError) as lost:
                raise MachineError("the device host was lost", fix="run it again") from lost
            if file is None:
                return np.frombuffer(blob, like.dtype).reshape(like.shape).copy()
            found = np.empty(like.shape, like.dtype)
            if _filled(found, file) != found.nbytes:
                raise InternalError("the device host wrote less than the buffer holds")
            return found

    def close(self, *, seconds: float = 2.0) -> None:
        """Let go of the host; one that is to end and does not within ``seconds`` is killed."""
        child, self._child, self._ended = self._child, None, True
        loaded = sum(self._loaded.values())
        self._loaded.clear()
        self._held.clear()
        if child is None:
            return
        if self._lasts and loaded <= _LOADED_BYTES:
            SPARES.keep(child, seconds)
        else:
            child.close(seconds)

    @property
    def _lasts(self) -> bool:
        """Whether the host may outlive this object."""
        return is_emulated(self.name) and not self._prefix

    def _running(self) -> Child:
        if self._child is None or not self._child.alive:
            self._kill()
            if self._prefix and self._ended:
                raise MachineError("the tool around the device host has ended", fix="run it again")
            self._child = self._started()
        return self._child

    def _ready(self, key: str) -> None:
        """The host runs and has that case, if there is one."""
        child, case = self._running(), self._cases.get(key)
        if case is not None and self._held.get(key) is not case:
            self._put(child, case)

    def _started(self) -> Child:
        if self._lasts:
            objects = str(resolve().objects.absolute())
            return SPARES.take(_HOST, [self.name, objects], wire.KINDS)
        return ahead.child(_HOST, [self.name], wire.KINDS, self._prefix)

    def _put(self, child: Child, case: Case) -> None:
        try:
            with _shared_file() as file:
                request = _write(case, file, self._held)
                answer, _ = child.ask(request, max(self._seconds, _PUT_SECONDS))
        except (TimeoutError, EOFError) as lost:
            raise MachineError(
                "the device host did not accept the inputs", fix="run it again"
            ) from lost
        except OSError as full:
            raise MachineError(
                f"the inputs do not fit into memory: {full}", fix="make the inputs smaller"
            ) from full
        if isinstance(answer, Fault):
            raise MachineError(f"the inputs: {answer.message}", fix="make the inputs smaller")
        self._held[case.key] = case

    def _kill(self) -> str:
        """End the child; returns the last line that it printed."""
        if self._child is None:
            return ""
        last = self._child.kill()
        self._child, self._ended = None, True
        self._loaded.clear()
        self._held.clear()
        self.restarts += 1
        return last


def _nbytes(build: Build) -> int:
    return len(build.ptx) + len(build.cubin) + sum(v.nbytes for v in build.variables)


def _remarked(timing: Timing, crowded: str) -> Timing:
    if not crowded:
        return timing
    conditions = timing.conditions or Conditions()
    return replace(timing, conditions=replace(conditions, crowded=crowded))


@contextlib.contextmanager
def _shared_file() -> Iterator[BinaryIO]:
    """A file in memory without a name in any folder, so that nothing is left if we are killed."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("optiml-case"), "w+b") as file:
            yield file
        return
    with tempfile.NamedTemporaryFile(prefix="optiml-") as file:
        yield cast(BinaryIO, file)


def _filled(array: Array, file: BinaryIO) -> int:
    """How many bytes of a new array the file had."""
    raw = array.reshape(-1).view(np.uint8)
    return cast(BufferedRandom, file).readinto(raw.data)


def _path(file: BinaryIO) -> str:
    """Where another process of this user can open the file."""
    name = f"/proc/{os.getpid()}/fd/{file.fileno()}"
    return name if hasattr(os, "memfd_create") else str(file.name)


def _write(case: Case, file: BinaryIO, known: Mapping[str, Case]) -> wire.Put:
    """The case in a file, without the arrays that ``known`` ones hold already."""

    def put(array: Array | None) -> int:
        if array is None:
            return -1
        file.write(b"\0" * (-file.tell() % _ALIGN))
        offset = file.tell()
        file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return offset

    headers = []
    for buffer in case.buffers:
        held = _held(buffer, known)
        offset = -1 if held else put(_initial(buffer))
        headers.append(replace(_header(buffer, offset, put(buffer.expected)), held=held))
    file.flush()
    return wire.Put(case.key, _path(file), tuple(headers))


def _held(buffer: Buffer, known: Mapping[str, Case]) -> tuple[str, str] | None:
    """The case and the buffer of it that hold this very array."""
    if buffer.digest is None or buffer.role == "output":
        return None
    for key, case in known.items():
        for other in case.buffers:
            if other.array is buffer.array and other.role != "output":
                return key, other.name
    return None


def _initial(buffer: Buffer) -> Array | None:
    return None if buffer.role == "output" else buffer.array


def _header(buffer: Buffer, offset: int, expected_offset: int) -> wire.BufferHeader:
    expected = buffer.expected
    return wire.BufferHeader(
        name=buffer.name,
        role=buffer.role,
        dtype=spelled(buffer.array.dtype),
        shape=buffer.array.shape,
        offset=offset,
        expected_dtype="" if expected is None else spelled(expected.dtype),
        expected_offset=expected_offset,
        tolerance=buffer.tolerance,
        map=buffer.map,
        digest=buffer.digest,
    )
