"""A thread that acts when asked, but not more often than its rest allows, and once per beat."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

_LOG = logging.getLogger(__name__)
BEAT = 1.0  # seconds: so that a view can tell a long evaluation from a dead kernel


class Pace:
    """Calls ``act`` in a thread of its own; ``act`` returns the seconds to rest after it.

    A Ctrl-C reaches the main thread alone, so nothing that happens here is ever cut in the middle.
    """

    def __init__(self, act: Callable[[], float], *, beat: float = BEAT) -> None:
        self._act = act
        self._beat = beat
        self._asked = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="optiml-view", daemon=True)

    def start(self) -> None:
        """Begin; once."""
        self._thread.start()

    def ask(self) -> None:
        """Act soon. Asking often costs nothing."""
        self._asked.set()

    def close(self) -> None:
        """Act no more; returns when nothing is under way."""
        self._closed.set()
        self._asked.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)

    def _loop(self) -> None:
        while True:
            self._asked.wait(self._beat)
            self._asked.clear()
            if self._closed.is_set():
                return
            try:
                rest = self._act()
            except Exception:  # noqa: BLE001  # a view that fails must not end what it shows
                _LOG.warning("the live view is lost; the search goes on", exc_info=True)
                return
            self._closed.wait(rest)
