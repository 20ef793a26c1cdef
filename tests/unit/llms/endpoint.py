"""A chat completions endpoint on loopback: it answers from a script and keeps what it was sent."""

from __future__ import annotations

import itertools
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal


@dataclass(frozen=True)
class Answer:
    """One response, of status 0 a connection that is closed without one.

    ``delay`` is in seconds, before the first byte, and ``pace`` after each, or after each of the
    ``pieces``: those are sent in chunks, for ever where it is ``endless``, and then the connection
    is ended, reset or left open.
    """

    status: int = 200
    body: str | bytes = ""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    pace: float = 0.0
    pieces: tuple[bytes, ...] = ()
    endless: bool = False
    end: Literal["end", "reset", "open"] = "end"


Reaction = Answer | Callable[[dict[str, Any]], Answer]
AT_ONCE = {"retry-after-ms": "1"}


def completed(text: Any, *, finish: str = "stop", refusal: str | None = None) -> Answer:
    message = {"role": "assistant", "content": text, "refusal": refusal}
    body = {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "toy-2026",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }
    return Answer(body=json.dumps(body))


def event(said: Any) -> bytes:
    return f"data: {said if isinstance(said, str) else json.dumps(said)}\n\n".encode()


def chunk(
    delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any
) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    whole = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "toy-2026"}
    return {**whole, "choices": choices, **more}


USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def streamed(
    text: str | list[dict[str, Any]],
    *,
    finish: str | None = "stop",
    usage: dict[str, int] | None = USAGE,
    done: bool = True,
    **options: Any,
) -> Answer:
    """An answer piece by piece as OpenAI's endpoints send it: a few characters, or these deltas."""
    cut = [text[at : at + 4] for at in range(0, len(text), 4)] if isinstance(text, str) else []
    deltas = [{"content": piece} for piece in cut] if isinstance(text, str) else text
    events: list[Any] = [chunk({"role": "assistant", "content": ""}), *map(chunk, deltas)]
    events += [chunk({}, finish)] if finish else []
    events += [chunk(usage=usage)] if usage else []
    events += ["[DONE]"] if done else []
    return Answer(
        headers={"content-type": "text/event-stream"},
        **{"pieces": tuple(map(event, events)), **options},
    )


def failed(
    status: int, message: str, *, code: str = "", param: str = "", retry: bool = True
) -> Answer:
    error = {"message": message, "type": "x", "code": code or None, "param": param or None}
    headers = AT_ONCE if retry else {"x-should-retry": "false"}
    return Answer(status, json.dumps({"error": error}), headers)


class Endpoint:
    """``reactions`` answer in order, the last one for ever."""

    def __init__(self, reactions: list[Reaction]) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.models: list[str] = []  # what it offers; without any it fails when asked
        self.gone: list[float] = []  # when a client hung up in the middle, of time.monotonic()
        self.most = 0  # requests at once that wait for an answer to begin
        self._now = 0
        self._reactions = reactions
        self._lock = threading.Lock()
        self.url = ""

    def react(self, path: str, headers: dict[str, str], raw: bytes) -> Answer:
        body = json.loads(raw)
        with self._lock:
            number = len(self.bodies)
            self.bodies.append(body)
            self.headers.append(headers)
            self.paths.append(path)
        reaction = self._reactions[min(number, len(self._reactions) - 1)]
        return reaction if isinstance(reaction, Answer) else reaction(body)

    @contextmanager
    def busy(self) -> Iterator[None]:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        try:
            yield
        finally:
            with self._lock:
                self._now -= 1


@contextmanager
def serving(*reactions: Reaction) -> Iterator[Endpoint]:
    endpoint = Endpoint(list(reactions))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            with endpoint.busy():
                answer = endpoint.react(
                    self.path, {k.lower(): v for k, v in self.headers.items()}, raw
                )
                self.close_connection = True
                if not self._waits(answer.delay):
                    return
            if not answer.status:
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            try:
                self._pieces(answer) if answer.pieces else self._body(answer)
            except OSError:
                endpoint.gone.append(time.monotonic())

        def _waits(self, seconds: float) -> bool:
            """Whether the client still listens after so many seconds."""
            self.connection.settimeout(seconds or 1e-3)
            try:
                gone = not self.connection.recv(1)
            except OSError as error:
                gone = not isinstance(error, TimeoutError)
            if gone:
                endpoint.gone.append(time.monotonic())
            self.connection.settimeout(None)
            return not gone

        def _head(self, answer: Answer, **more: str) -> None:
            self.send_response(answer.status)
            for name, value in {"content-type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            for name, value in more.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()

        def _body(self, answer: Answer) -> None:
            body = answer.body.encode() if isinstance(answer.body, str) else answer.body
            self._head(answer, content_length=str(len(body)))
            for byte in body if answer.pace else ():
                self.wfile.write(bytes([byte]))
                time.sleep(answer.pace)
            self.wfile.write(b"" if answer.pace else body)

        def _pieces(self, answer: Answer) -> None:
            self.protocol_version = "HTTP/1.1"
            self._head(answer, transfer_encoding="chunked")
            pieces = itertools.cycle(answer.pieces) if answer.endless else answer.pieces
            for piece in pieces:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                time.sleep(answer.pace)
            if answer.end == "end":
                self.wfile.write(b"0\r\n\r\n")
            elif answer.end == "reset":
                time.sleep(0.05)  # what was sent shall arrive before it
                off = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, off)
                self.connection.close()
            else:
                self._waits(60)

        def do_GET(self) -> None:
            assert self.path.endswith("/models")
            data = [
                {"id": m, "object": "model", "created": 1, "owned_by": "x"} for m in endpoint.models
            ]
            body = json.dumps({"object": "list", "data": data}).encode()
            self.send_response(200 if endpoint.models else 500)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    endpoint.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
