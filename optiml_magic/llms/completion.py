"""The parts of a chat completion that matter, whole or in pieces, read without trust in its sender.

A server may send pieces where none were asked for, or one body where pieces were: both are read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel, ValidationError

from optiml_magic.llms.base import LlmFailure, Reply

A_TOKEN = 3  # characters, of CUDA and of words about it: what an estimate goes by; ours
_LONG_TOKEN = 6  # characters that no answer has for each of its tokens; ours
_MOST_EVENTS = 4  # events for each token that an answer may have, and these more; ours
_MORE_EVENTS = 1000
_MOST_BYTES = 40  # for each token, in a body or in one line, and these more; ours
_MORE_BYTES = 1_000_000
_FIELDS = b"deir:"  # how a line of a stream begins: data, event, id, retry, or a comment


class _Part(BaseModel):
    text: str = ""


class _Called(BaseModel):
    arguments: str | None = None


class _ToolCall(BaseModel):
    index: int | None = None
    function: _Called | None = None


class _Message(BaseModel):
    """A message, or what is added to it."""

    content: str | list[_Part] | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None
    reasoning: Any = None
    reasoning_content: Any = None

    @property
    def said(self) -> str:
        said = self.content or ""
        return said if isinstance(said, str) else "".join(part.text for part in said)

    @property
    def thought(self) -> int:
        """Characters of reasoning, which some servers send under both names."""
        thoughts = (self.reasoning, self.reasoning_content)
        return max(len(thought) if isinstance(thought, str) else 0 for thought in thoughts)


class _Choice(BaseModel):
    message: _Message | None = None
    delta: _Message | None = None
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(BaseModel):
    choices: list[_Choice] | None = None
    model: str | None = None
    usage: _Usage | None = None
    error: Any = None


@dataclass(frozen=True)
class Refused:
    """An error in place of an answer, or in the middle of one: ``status`` as HTTP numbers them."""

    status: int
    message: str
    code: str = ""
    parameter: str = ""

    @classmethod
    def of(cls, error: Any, status: int) -> Refused:
        """What an endpoint says in the field ``error``; it may tell another status there."""
        if not isinstance(error, dict):
            return cls(status, one_line(error))
        code, parameter = error.get("code"), error.get("param")
        for told in (code, error.get("status")):
            if str(told).isdecimal() and 400 <= int(str(told)) < 600:
                status = int(str(told))
        return cls(
            status,
            one_line(error.get("message") or error.get("detail") or error),
            code if isinstance(code, str) else "",
            parameter if isinstance(parameter, str) else "",
        )


def one_line(told: object) -> str:
    """What an endpoint says, without its line ends."""
    return " ".join(str(told)[:5000].split())


@dataclass
class Said:
    """What came of one answer so far. ``finish`` is why it ended, "" while it has not."""

    finish: str = ""
    model: str = ""
    refused: Refused | None = None
    malformed: str = ""
    began: bool = False
    done: bool = False  # nothing more is to come
    characters: int = 0  # of all that the model made: reasoning, words, calls
    counted: tuple[int, int] | None = None  # tokens asked and answered, as the endpoint says
    _events: int = 0
    _text: list[str] = field(default_factory=list)
    _refusal: list[str] = field(default_factory=list)
    _calls: dict[int, list[str]] = field(default_factory=dict)

    def add(self, data: bytes) -> None:
        """One body, or the data of one event."""
        if data.strip() == b"[DONE]":
            self.done = True
            return
        try:
            found = _Completion.model_validate_json(data)
        except ValidationError:
            begin = " ".join(data[:80].decode(errors="replace").split())
            self.malformed = self.malformed or f"no chat completion: {begin!r}"
            return
        self._events += 1
        if found.error:
            self.refused = Refused.of(found.error, 500)
            return
        self.model = found.model or self.model
        if found.usage is not None:
            told = (found.usage.prompt_tokens or 0, found.usage.completion_tokens or 0)
            before = self.counted or (0, 0)
            if any(told):
                self.counted = (max(before[0], told[0]), max(before[1], told[1]))
        if found.choices:
            self._add(found.choices[0])
        self.done = self.done or bool(self.finish and self.counted)

    def _add(self, choice: _Choice) -> None:
        self.finish = choice.finish_reason or self.finish
        message = choice.message or choice.delta
        if message is None:
            return
        self.began = True
        self._text.append(message.said)
        self._refusal.append(message.refusal or "")
        self.characters += len(self._text[-1]) + len(self._refusal[-1]) + message.thought
        for call in message.tool_calls or ():
            arguments = (call.function and call.function.arguments) or ""
            at = len(self._calls) if call.index is None else call.index
            self._calls.setdefault(at, []).append(arguments)
            self.characters += len(arguments)

    @property
    def text(self) -> str:
        """What it says; of one that calls a tool in place of that, what it calls it with."""
        said = "".join(self._text)
        return said if said.strip() else "\n".join("".join(call) for call in self._calls.values())

    def beyond(self, tokens: int) -> bool:
        """Whether it is longer than an answer of so many tokens can be."""
        answered = self.counted[1] if self.counted else 0
        return (
            answered > tokens
            or self.characters > _LONG_TOKEN * tokens
            or self._events > _MOST_EVENTS * tokens + _MORE_EVENTS
        )

    def tokens(self, asked: int) -> tuple[int, int, bool]:
        """Those of a question of so many characters and of this answer; whether they are guessed.

        What an endpoint counts at the end alone is guessed until then.
        """
        guess = math.ceil(self.characters / A_TOKEN)
        if self.counted is None:
            return math.ceil(asked / A_TOKEN), guess, True
        return *self.counted, False

    def outcome(self, asked: int, seconds: float) -> Reply | LlmFailure:
        """The reply that it is, once nothing more comes; ``asked``: the question's characters."""
        prompt, completion, estimated = self.tokens(asked)
        spent = (prompt, completion, seconds)
        text, refusal = self.text, "".join(self._refusal)
        failure = None
        if refusal or self.finish == "content_filter":
            why = refusal or "its content filter stopped it"
            failure = LlmFailure("refused", f"the model declined: {why[:200]}", *spent)
        elif self.finish == "length":
            about = "about " if estimated else ""
            cut = f"the reply was cut off after {about}{completion} tokens"
            failure = LlmFailure("truncated", cut, *spent)
        elif self.malformed or not self.began:
            why = self.malformed or "no chat completion: nothing in it is an answer"
            failure = LlmFailure("malformed", why, *(spent if self.began else (0, 0, seconds)))
            estimated = estimated and self.began
        elif not text.strip():
            failure = LlmFailure("malformed", "the reply is empty", *spent)
        if failure is not None:
            return replace(failure, estimated=estimated)
        return Reply(text, *spent, model=self.model, estimated=estimated)


class Events:
    """Bytes as they come, cut into the data of events; ``streamed`` is None until it is known."""

    def __init__(self) -> None:
        self.streamed: bool | None = None
        self._rest = bytearray()
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The data of the events that are whole by now."""
        self._rest += piece
        if self.streamed is None and (begin := self._rest.lstrip()):
            self.streamed = begin[0] in _FIELDS
        if not self.streamed:
            return
        *lines, rest = self._rest.split(b"\n")
        self._rest = rest
        for line in lines:
            yield from self._line(bytes(line.removesuffix(b"\r")))

    def rest(self) -> Iterator[bytes]:
        """What is there at the end: a body, or an event without the empty line behind it."""
        if not self.streamed:
            yield bytes(self._rest)
            return
        yield from self._line(bytes(self._rest))
        yield from self._line(b"")

    def beyond(self, tokens: int) -> bool:
        """Whether a body or a line is longer than an answer of so many tokens can be."""
        return len(self._rest) + sum(map(len, self._data)) > _MOST_BYTES * tokens + _MORE_BYTES

    def _line(self, line: bytes) -> Iterator[bytes]:
        if line.startswith(b"data:"):
            self._data.append(line.removeprefix(b"data:").removeprefix(b" "))
        elif not line and self._data:
            yield b"\n".join(self._data)
            self._data = []


def is_whole(data: bytes) -> bool:
    """Whether the last event of a broken stream is one, and not the half of it."""
    try:
        json.loads(data)
    except ValueError:
        return data.strip() == b"[DONE]"
    return True
