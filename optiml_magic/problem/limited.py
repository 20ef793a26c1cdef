"""A bound on code of the task's own, such as a reference on inputs that it was not written for."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class OutOfTime(BaseException):  # no Exception: what catches all of those goes on
    """What runs inside of ``limited`` takes too long."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise OutOfTime in what runs inside, after so many seconds.

    It comes between two steps of Python: one long call of a library is not cut short. Works in any
    thread, which signals do not.
    """
    thread, lock = ctypes.c_ulong(threading.get_ident()), threading.Lock()
    over = False

    def end() -> None:
        with lock:
            if not over:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(OutOfTime))

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with lock:
            over = True
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, None)  # one that was still to come
