"""What one endpoint understands of a chat completion, learnt from its complaints.

Structured replies come by a ladder: a JSON schema that the server enforces, then JSON of any shape,
then a fenced block in plain text. Newer models of OpenAI refuse ``max_tokens`` and any temperature
but their own; some servers refuse ``seed``, an effort, or a limit beyond what their context leaves.
An answer is asked for piece by piece with its tokens at the end, then without them, then at once.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any, Literal

from optiml_magic.llms.base import Request

Rung = Literal["json_schema", "json_object", "plain"]
_BELOW: dict[Rung, Rung] = {"json_schema": "json_object", "json_object": "plain"}
Stream = Literal["counted", "bare", "none"]
_OPTIONAL = ("temperature", "seed", "reasoning_effort")
_STREAMS = re.compile(r"\b(stream_options|include_usage)\b|\bstream(ing|ed)?\b")  # not upstream
_STRUCTURE = ("response_format", "json_schema", "json_object")
_JSON = "Answer with one JSON object and nothing else. It must satisfy this JSON schema:"
_FENCED = (
    "Answer with one JSON object in one fenced block that opens with ```json. "
    "It must satisfy this JSON schema:"
)


@dataclass(frozen=True)
class Dialect:
    """One way to put a request; starts with all that can be asked for."""

    rung: Rung = "json_schema"
    limit: Literal["max_tokens", "max_completion_tokens", ""] = "max_tokens"
    left_out: tuple[str, ...] = ()
    stream: Stream = "counted"

    def body(self, model: str, request: Request) -> dict[str, Any]:
        """The arguments of ``chat.completions.create``."""
        options: dict[str, Any] = {"temperature": request.temperature, "seed": request.seed}
        if request.effort:
            options["reasoning_effort"] = request.effort
        if self.stream != "none":
            options["stream"] = True
        if self.stream == "counted":
            options["stream_options"] = {"include_usage": True}
        body: dict[str, Any] = {
            "model": model,
            "messages": [
                {"role": "system", "content": self._system(request)},
                {"role": "user", "content": request.user},
            ],
            **{name: value for name, value in options.items() if name not in self.left_out},
        }
        if self.limit:
            body[self.limit] = request.max_tokens
        if request.schema and self.rung == "json_schema":
            schema = {
                "name": request.schema_name,
                "strict": True,
                "schema": json.loads(request.schema),
            }
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif request.schema and self.rung == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body

    def after(self, complaint: str, parameter: str = "") -> Dialect | None:
        """The dialect to try after a 400; None if the complaint is not about how we put it.

        ``parameter`` is what the endpoint says is wrong, "" where it does not say. Each answer asks
        for less than this one, so the attempts are few.
        """
        about = (parameter or complaint).lower()
        below = _BELOW.get(self.rung)
        if below and any(word in about for word in _STRUCTURE):
            return replace(self, rung=below)
        if self.stream != "none" and (streams := _STREAMS.search(about)):
            one = self.stream == "counted" and streams[1]
            return replace(self, stream="bare" if one else "none")
        if self.limit == "max_tokens" and "max_completion_tokens" in complaint.lower():
            return replace(self, limit="max_completion_tokens")
        if self.limit and ("max_tokens" in about or "max_completion_tokens" in about):
            return replace(self, limit="")
        for name in _OPTIONAL:
            if name in about and name not in self.left_out:
                return replace(self, left_out=(*self.left_out, name))
        if parameter:
            return None
        if below:
            return replace(self, rung=below)
        return None if self.stream == "none" else replace(self, stream="none")

    def _system(self, request: Request) -> str:
        if not request.schema or self.rung == "json_schema":
            return request.system
        wish = _JSON if self.rung == "json_object" else _FENCED
        return f"{request.system}\n\n{wish}\n\n{request.schema}"
