"""The parent's end of a child: start it, ask it with a time limit, kill all that it started.

The child has a session of its own, so that a Stop in a notebook, which signals the whole process
group, does not take it down in the middle of a frame; it ends with its pipe.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from optiml_magic import errors
from optiml_magic.child import frames
from optiml_magic.errors import InternalError, OptimlError

_KEPT = 16 << 10  # bytes of what the child printed last
_SHOWN_LINES = 3
_LONGEST_LINE = 500
_SECRET = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|COOKIE|PROXY|^(?:OPENAI|ANTHROPIC|AZURE|AWS)_|_URL$",
    re.IGNORECASE,
)
# Settings reach a child as its arguments; pytest names the test that runs in a variable.
_UNREAD = re.compile(r"OPTIML_(?!NVCC$)|PYTEST_")
# Libraries in a child lose a little memory with each request, and nobody gives it back.
_MOST_REQUESTS = 500


def environment() -> dict[str, str]:
    """This process's environment, less what no child reads and what looks like a secret."""
    return {
        name: value
        for name, value in os.environ.items()
        if not _SECRET.search(name) and not _UNREAD.match(name)
    }


@dataclass(frozen=True)
class Start:
    """What a child is started from: children of equal ones do the same."""

    module: str
    command: tuple[str, ...]
    folder: str  # to work in
    variables: frozenset[tuple[str, str]]  # the environment

    @classmethod
    def now(cls, module: str, arguments: Sequence[str], prefix: Sequence[str] = ()) -> Start:
        """``python -m module arguments``, by this interpreter, with what this process imports."""
        path = os.pathsep.join(folder or str(Path.cwd()) for folder in sys.path)
        return cls(
            module,
            (*prefix, sys.executable, "-P", "-m", module, *arguments),
            tempfile.gettempdir(),
            frozenset({**environment(), "PYTHONPATH": path}.items()),
        )


class Child:
    """``python -m module arguments``; ``kinds`` are the frames that it may answer with.

    ``prefix`` is a tool that wraps it, such as ncu.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        kinds: frames.Kinds,
        *,
        prefix: Sequence[str] = (),
    ) -> None:
        own = (frames.Failed, frames.Raised, frames.Ready)
        self._kinds = {**kinds, **{kind.__name__: kind for kind in own}}
        self.start = Start.now(module, arguments, prefix)
        self._process = subprocess.Popen(  # noqa: S603  # our own module under our own interpreter
            self.start.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            cwd=self.start.folder,
            env=dict(self.start.variables),
        )
        self._answers: queue.Queue[tuple[object, bytes] | None] = queue.Queue()
        self._printed = b""
        self._requests = 0
        self._in_step = True  # no answer is still to come, and none told of a defect
        self._threads = [
            threading.Thread(target=target, daemon=True) for target in (self._listen, self._drain)
        ]
        for thread in self._threads:
            thread.start()
        _LIVING.add(self)

    def understand(self, kinds: frames.Kinds) -> None:
        """Take these frames for answers as well."""
        self._kinds |= kinds

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: object, seconds: float) -> tuple[object, bytes]:
        """The answer to one request.

        Raises TimeoutError after ``seconds`` and EOFError if the child died, which is killed then;
        what the child raised of ``errors``; InternalError if it failed.
        """
        assert self._process.stdin is not None
        self._in_step = False
        self._requests += 1
        if not self.alive:
            raise EOFError
        try:
            frames.send(self._process.stdin, request)  # type: ignore[arg-type]  # IO[bytes] is enough
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
        if answer is None:  # nobody listens any more, though it may take a moment to end
            self.kill()
            raise EOFError
        if isinstance(answer[0], frames.Failed):
            raise InternalError(f"a child process failed:\n{answer[0].message}")
        self._in_step = True
        if isinstance(answer[0], frames.Raised):
            raise _raised(answer[0])
        return answer

    def reset(self, seconds: float) -> bool:
        """Make it forget its owner; False where another owner must not have it.

        So it is after a defect, in the middle of a request, and where it refuses.
        """
        if not (self._in_step and self.alive and self._requests < _MOST_REQUESTS):
            return False
        try:
            answer, _ = self.ask(frames.Reset(), seconds)
        except (TimeoutError, EOFError, OptimlError):
            return False
        return isinstance(answer, frames.Ready)

    def kill(self) -> str:
        """End the process and everything in its session; returns the last that it printed."""
        with contextlib.suppress(ProcessLookupError, PermissionError, AttributeError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        status = self._process.wait()
        self._release()
        lines = self._printed.decode(errors="replace").splitlines()
        last = [line.strip()[:_LONGEST_LINE] for line in lines if line.strip()][-_SHOWN_LINES:]
        return " | ".join(last) or f"exit status {status}"

    def close(self, seconds: float) -> None:
        """End the process by its pipe; one that does not go within ``seconds`` is killed."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return
        self._release()

    def let_go(self, nothing: int) -> None:
        """Put the file ``nothing`` in place of the pipe, whose object may be in use."""
        with contextlib.suppress(OSError, ValueError):
            assert self._process.stdin is not None
            os.dup2(nothing, self._process.stdin.fileno(), inheritable=False)

    def _release(self) -> None:
        for thread in self._threads:
            thread.join(timeout=2)
        _LIVING.discard(self)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        try:
            while True:
                self._answers.put(frames.receive(self._process.stdout, self._kinds))  # type: ignore[arg-type]
        except (EOFError, ValueError, OSError):
            self._answers.put(None)

    def _drain(self) -> None:
        """Keep the last of what it prints: in pieces, for a line may have no end."""
        assert self._process.stderr is not None
        with contextlib.suppress(ValueError, OSError):
            while piece := self._process.stderr.read1(_KEPT):  # type: ignore[attr-defined]  # buffered
                self._printed = (self._printed + piece)[-_KEPT:]


_LIVING: weakref.WeakSet[Child] = weakref.WeakSet()


def _end_all() -> None:
    """At the interpreter's exit, while threads can still be waited for."""
    for child in list(_LIVING):
        child.kill()


def _disown() -> None:
    """In a forked process: it ends no child of its parent, nor keeps one alive by its pipe."""
    nothing = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    for child in list(_LIVING):
        child.let_go(nothing)
    os.close(nothing)
    _LIVING.clear()


atexit.register(_end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown)


def _raised(answer: frames.Raised) -> OptimlError:
    kind = getattr(errors, answer.error, None)
    if not (isinstance(kind, type) and issubclass(kind, OptimlError)):
        kind = InternalError
    return kind(answer.message, fix=answer.fix)
