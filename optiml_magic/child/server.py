"""The child's end: answer requests in order until the pipe ends, and end with it in any case.

Requests are read in a thread, so that the end of the pipe is seen also while an answer is being
made: a parent that was killed leaves no child behind, however long its last request would take.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import BinaryIO

from optiml_magic.child import frames
from optiml_magic.errors import InternalError, MachineError, OptimlError

_GRACE = 2.0  # seconds to end by itself, once the pipe has ended
Answer = Callable[[object], tuple[object, bytes]]


def own_streams() -> tuple[BinaryIO, BinaryIO]:
    """Requests and answers; whatever else is printed goes to the error stream from now on."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return sys.stdin.buffer, answers


def serve(
    answer: Answer,
    kinds: frames.Kinds,
    requests: BinaryIO,
    answers: BinaryIO,
    *,
    reset: Callable[[], None] | None = None,
) -> None:
    """Answer each request in order until the pipe ends.

    ``reset`` forgets all that the owner left here, or raises; without it no other owner may follow.
    """
    kinds = {**kinds, "Reset": frames.Reset}
    pending: queue.Queue[object] = queue.Queue()
    done = threading.Event()
    threading.Thread(target=_read, args=(requests, kinds, pending, done), daemon=True).start()
    try:
        while (message := pending.get()) is not None:
            try:
                if isinstance(message, frames.Reset):
                    said, blob = _fresh(reset)
                else:
                    said, blob = answer(message)
            except InternalError as defect:
                said, blob = frames.Failed(str(defect)), b""
            except OptimlError as error:
                said, blob = frames.Raised(type(error).__name__, error.message, error.fix), b""
            except Exception:  # noqa: BLE001  # the parent must hear of it; the child lives on
                said, blob = frames.Failed(traceback.format_exc()), b""
            with contextlib.suppress(BrokenPipeError):  # then the other thread ends this process
                frames.send(answers, said, blob)
    finally:
        done.set()


def _fresh(reset: Callable[[], None] | None) -> tuple[object, bytes]:
    if reset is None:
        raise MachineError("this child is for one owner", fix="start another")
    reset()
    return frames.Ready(), b""


def _read(
    requests: BinaryIO, kinds: frames.Kinds, pending: queue.Queue[object], done: threading.Event
) -> None:
    try:
        while True:
            pending.put(frames.receive(requests, kinds)[0])
    except (EOFError, ValueError, OSError):
        pending.put(None)
    if not done.wait(_GRACE):
        with contextlib.suppress(OSError, AttributeError):
            if os.getpgrp() == os.getsid(0):  # a session of its own: what it started ends as well
                os.killpg(0, signal.SIGKILL)
        os._exit(1)
