"""A device in a child process: it may hang or die, and the next candidate still runs.

The child is started with a session of its own, so that a Stop in a notebook, which signals the
whole process group, does not take it down in the middle of a frame; it ends with its pipe.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from optiml_magic.devices import wire
from optiml_magic.devices.base import Array, Buffer, Case, Execution, Fault, Job, Timing
from optiml_magic.errors import InternalError, MachineError
from optiml_magic.model.build import Build
from optiml_magic.model.dtypes import spelled
from optiml_magic.model.verdict import Outcome

_STDERR_LINES = 40
_SHOWN_LINES = 3
_ALIGN = 64


class HostedDevice:
    """Speaks the device protocol of ``base`` to a child that it starts, kills and restarts.

    ``seconds`` bounds one execution; one that takes longer is killed with its host and becomes the
    verdict ``timeout``. Cases are kept here as well, so that a restarted host gets them again.
    """

    def __init__(self, name: str, *, seconds: float = 60.0, prefix: tuple[str, ...] = ()) -> None:
        self.name = name
        self._prefix = prefix  # a tool that wraps the host, such as ncu
        self.restarts = 0
        self._seconds = seconds
        self._cases: dict[str, Case] = {}
        self._child: _Child | None = None

    def put(self, case: Case) -> None:
        self._cases[case.key] = case
        if self._child is not None:
            self._put(self._child, case)

    def execute(self, build: Build, job: Job) -> Execution:
        answer = self._ask(wire.Execute(self._lean(build), job))
        if isinstance(answer, Fault):
            return Execution(answer)
        if isinstance(answer, Execution):
            return answer
        raise InternalError(f"the device host answered {answer}")

    def time(self, runs: Sequence[tuple[Build, Job]], samples: int) -> tuple[Timing, ...] | Fault:
        builds, jobs = tuple(self._lean(b) for b, _ in runs), tuple(j for _, j in runs)
        answer = self._ask(wire.Time(builds, jobs, samples))
        if isinstance(answer, Fault):
            return answer
        if isinstance(answer, wire.Timings):
            return answer.timings
        raise InternalError(f"the device host answered {answer}")

    def _lean(self, build: Build) -> Build:
        """The build without what this device does not run."""
        is_emulated = self.name.startswith("emulated:")
        return replace(build, cubin=b"") if is_emulated else replace(build, ptx="")

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
        try:
            _, blob = self._running().ask(wire.Read(case, buffer), self._seconds)
        except (TimeoutError, EOFError) as lost:
            raise MachineError("the device host was lost", fix="run it again") from lost
        return np.frombuffer(blob, like.dtype).reshape(like.shape).copy()

    def close(self, *, seconds: float = 2.0) -> None:
        """End the host; one that does not go within ``seconds`` is killed."""
        if self._child is not None:
            self._child.close(seconds)
            self._child = None

    def _running(self) -> _Child:
        if self._child is None or not self._child.alive:
            self._kill()
            self._child = _Child(self.name, self._prefix)
            for case in self._cases.values():
                self._put(self._child, case)
        return self._child

    def _put(self, child: _Child, case: Case) -> None:
        try:
            with _shared_file() as path:
                child.ask(_write(case, path), self._seconds)
        except (TimeoutError, EOFError) as lost:
            raise MachineError(
                "the device host did not take the inputs", fix="run it again"
            ) from lost
        except OSError as full:
            raise MachineError(
                f"the inputs do not fit into shared memory: {full}",
                fix="make /dev/shm larger, or the inputs smaller",
            ) from full

    def _kill(self) -> str:
        """End the child; returns the last line that it printed."""
        if self._child is None:
            return ""
        last = self._child.kill()
        self._child = None
        self.restarts += 1
        return last


class _Child:
    """The process and its pipes. A thread takes the answers, so that waiting can time out."""

    def __init__(self, device: str, prefix: tuple[str, ...]) -> None:
        self._process = subprocess.Popen(  # noqa: S603  # our own module under our own interpreter
            [*prefix, sys.executable, "-P", "-m", "optiml_magic.devices.host", device],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            cwd=tempfile.gettempdir(),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._answers: queue.Queue[tuple[object, bytes] | None] = queue.Queue()
        self._printed: deque[str] = deque(maxlen=_STDERR_LINES)
        self._threads = [
            threading.Thread(target=target, daemon=True) for target in (self._listen, self._drain)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: object, seconds: float) -> tuple[object, bytes]:
        """The answer; TimeoutError, EOFError if the child died, InternalError if it failed."""
        assert self._process.stdin is not None
        try:
            wire.send(self._process.stdin, request)  # type: ignore[arg-type]  # IO[bytes] is enough
            answer = self._answers.get(timeout=seconds)
        except queue.Empty:
            self.kill()
            raise TimeoutError from None
        except OSError as broken:
            self.kill()
            raise EOFError from broken
        except BaseException:
            # Half a frame, or an answer still to come that the next request would take for its own.
            self.kill()
            raise
        if answer is None:
            raise EOFError
        if isinstance(answer[0], wire.Failed):
            raise InternalError(f"the device host failed:\n{answer[0].message}")
        return answer

    def kill(self) -> str:
        """End the process and everything in its session."""
        with contextlib.suppress(ProcessLookupError, PermissionError, AttributeError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        status = self._process.wait()
        self._release()
        return " | ".join(list(self._printed)[-_SHOWN_LINES:]) or f"exit status {status}"

    def close(self, seconds: float) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return
        self._release()

    def _release(self) -> None:
        for thread in self._threads:
            thread.join(timeout=2)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        try:
            while True:
                self._answers.put(wire.receive(self._process.stdout))  # type: ignore[arg-type]
        except (EOFError, ValueError, OSError):
            self._answers.put(None)

    def _drain(self) -> None:
        assert self._process.stderr is not None
        with contextlib.suppress(ValueError, OSError):
            for line in self._process.stderr:
                self._printed.append(line.decode(errors="replace").rstrip()[:500])


@contextlib.contextmanager
def _shared_file() -> Iterator[Path]:
    """A file in memory where there is such a folder; gone when the child has read it."""
    memory = Path("/dev/shm")  # noqa: S108
    folder = memory if os.access(memory, os.W_OK) else None
    handle, path = tempfile.mkstemp(prefix="optiml-", dir=folder)
    os.close(handle)
    try:
        yield Path(path)
    finally:
        Path(path).unlink(missing_ok=True)


def _write(case: Case, path: Path) -> wire.Put:
    with path.open("wb") as file:

        def put(array: Array | None) -> int:
            if array is None:
                return -1
            file.write(b"\0" * (-file.tell() % _ALIGN))
            offset = file.tell()
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
            return offset

        headers = [_header(b, put(_initial(b)), put(b.expected)) for b in case.buffers]
    return wire.Put(case.key, str(path), tuple(headers))


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
    )
