"""A chat completions endpoint on loopback: it answers from a script and keeps what it was sent."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """One response, of status 0 a connection that is closed without one.

    ``delay`` is in seconds, before the first byte, and ``pace`` after each.
    """

    status: int = 200
    body: str | bytes = ""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    pace: float = 0.0


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
def serving(*reactions: Reaction) -> Iterator[Endpoint]:
    endpoint = Endpoint(list(reactions))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            answer = endpoint.react(self.path, {k.lower(): v for k, v in self.headers.items()}, raw)
            time.sleep(answer.delay)
            body = answer.body.encode() if isinstance(answer.body, str) else answer.body
            if not answer.status:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            try:
                self.send_response(answer.status)
                for name, value in {"content-type": "application/json", **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                for byte in body if answer.pace else ():
                    self.wfile.write(bytes([byte]))
                    time.sleep(answer.pace)
                self.wfile.write(b"" if answer.pace else body)
            except OSError:
                pass  # the client gave up

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
