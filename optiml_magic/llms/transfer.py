"""One answer on its way: what came of it so far, since when it is silent, and its end at once."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from threading import Lock
from typing import Any

from optiml_magic.llms.completion import Events, Said, is_whole


class EndedError(OSError):
    """Raised in the thread of a transfer that was ended, before anything more is sent."""


class Transfer:
    """One request, over all its attempts; one thread reads, another may end it.

    ``broken`` is what broke it in the middle, "" where nothing did; ``cut`` that it went beyond its
    limit and was not listened to any further.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._sockets: list[Any] = []
        self._ended = False
        self.restart()

    def restart(self) -> None:
        """For the next attempt."""
        self.said = Said()
        self.broken = ""
        self.cut = False
        self.heard: float | None = None  # when, of ``time.monotonic``; None before it is answered

    @property
    def connected(self) -> bool:
        """Whether anything was sent."""
        return bool(self._sockets)

    def silent(self) -> float:
        """Seconds since the last of the answer came; 0 before the first."""
        return 0.0 if self.heard is None else time.monotonic() - self.heard

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """What the HTTP client tells of a connection, by its extension of this name."""
        with self._lock:
            if event.endswith(("connect_tcp.complete", "start_tls.complete")):
                self._sockets.append(info["return_value"].get_extra_info("socket"))
            ended = self._ended
        if ended:
            self.end()
            raise EndedError("the request was ended")

    def end(self) -> None:
        """End it: the endpoint sees the connection close, whoever reads from it wakes up."""
        with self._lock:
            self._ended = True
            sockets = tuple(self._sockets)
        for one in sockets:
            # An encrypted one, too, without a word of parting that could wait for the other end.
            with suppress(OSError, TypeError, ValueError):
                socket.socket.shutdown(one, socket.SHUT_RDWR)

    def read(self, pieces: Iterator[bytes], tokens: int) -> None:
        """Hear all of an answer, of so many tokens at the most."""
        events = Events()
        self.heard = time.monotonic()
        try:
            for piece in pieces:
                for data in events.feed(piece):
                    self._hear(data)
                    self.cut = self.said.beyond(tokens)
                    if self.cut or self.said.done or self.said.refused or self.said.malformed:
                        return
                if not events.streamed:
                    self.heard = time.monotonic()
                if events.beyond(tokens):
                    self.cut = True
                    return
        except Exception as error:  # noqa: BLE001  # the HTTP client's own, of two libraries
            self.broken = type(error).__name__
        self._end_of(events)

    def _end_of(self, events: Events) -> None:
        for data in events.rest():
            if not (events.streamed or self.broken) or is_whole(data):
                self._hear(data)
            else:
                self.broken = self.broken or "it ended in the middle"
        whole = self.said.finish or self.said.done or self.said.refused or self.said.malformed
        if events.streamed and not whole:
            self.broken = self.broken or "it ended in the middle"

    def _hear(self, data: bytes) -> None:
        self.said.add(data)
        self.heard = time.monotonic()
