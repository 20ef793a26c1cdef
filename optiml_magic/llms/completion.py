"""The parts of a chat completion that matter, read without trust in the endpoint."""

from __future__ import annotations

from pydantic import BaseModel, Field, ValidationError

from optiml_magic.llms.base import LlmFailure, Reply


class _Part(BaseModel):
    text: str = ""


class _Called(BaseModel):
    arguments: str | None = None


class _ToolCall(BaseModel):
    function: _Called = _Called()


class _Message(BaseModel):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None

    @property
    def text(self) -> str:
        """What it says; of one that calls a tool in place of that, what it calls it with."""
        said = self.content or ""
        if isinstance(said, list):
            said = "".join(part.text for part in said)
        called = [call.function.arguments or "" for call in self.tool_calls or ()]
        return said if said.strip() else "\n".join(called)


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    model: str | None = None
    usage: _Usage | None = None


def read(body: str, seconds: float) -> Reply | LlmFailure:
    """The reply in the body of a response with status 200."""
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError:
        begin = " ".join(body[:80].split())
        return LlmFailure("malformed", f"no chat completion: {begin!r}", seconds=seconds)
    choice = completion.choices[0]
    usage = completion.usage or _Usage()
    spent = (usage.prompt_tokens or 0, usage.completion_tokens or 0, seconds)
    text = choice.message.text
    if choice.message.refusal or choice.finish_reason == "content_filter":
        why = choice.message.refusal or "its content filter stopped it"
        return LlmFailure("refused", f"the model declined: {why[:200]}", *spent)
    if choice.finish_reason == "length":
        return LlmFailure("truncated", f"the reply was cut off after {spent[1]} tokens", *spent)
    if not text.strip():
        return LlmFailure("malformed", "the reply is empty", *spent)
    return Reply(text, *spent, model=completion.model or "")
