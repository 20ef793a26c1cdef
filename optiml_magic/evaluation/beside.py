"""Something useful while somebody else is waited for."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def beside(work: Callable[[], T], meanwhile: Callable[[], bool]) -> T:
    """What ``work`` returns, which a thread does; here ``meanwhile`` is called until that is there.

    It does one thing at a time, and says whether there may be more to do.
    """
    thread = ThreadPoolExecutor(1, thread_name_prefix="optiml-beside")
    try:
        waiting = thread.submit(work)
        while not waiting.done() and meanwhile():
            pass
        return waiting.result()
    finally:
        thread.shutdown(wait=False)  # who interrupts does not wait for it
