"""Any endpoint that speaks OpenAI's chat completions: theirs, vLLM, Ollama, llama.cpp, a proxy."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Lock, Thread
from typing import Any
from urllib.parse import urlsplit

from optiml_magic.errors import MachineError, OptimlError, UsageError
from optiml_magic.llms import completion
from optiml_magic.llms.base import FailureKind, LlmFailure, Reply, Request
from optiml_magic.llms.dialect import Dialect
from optiml_magic.llms.places import is_here, shown

_NO_KEY = "none"  # the client insists on one; servers on the own machine do not look at it
_LOOK = 0.1  # seconds between two looks at whether a request was cancelled
_UNKNOWN_MODEL = ("model_not_found", "invalid_model")


class OpenAILLM:
    """One model at one endpoint. The key is handed to the client, and shown nowhere.

    Args:
        model: as the endpoint calls it.
        base_url: of the endpoint, mostly ending in ``/v1``; ``OPENAI_BASE_URL`` or OpenAI's else.
        api_key: that of the endpoint else: ``OPENAI_API_KEY`` belongs to OpenAI and to
            ``OPENAI_BASE_URL``, ``OPTIML_LLM_KEY`` to any other; not needed with a ``base_url``.
        timeout: seconds without an answer before an attempt is given up.
        max_retries: further attempts after a timeout, a broken connection, a 429 or a 5xx.
        cancelled: asked while an answer is waited for; True gives it up.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = 120.0,
        max_retries: int = 2,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        if not model.strip():
            raise UsageError("the language model has no name", fix="name one: --llm MODEL")
        self.name = model.strip()
        self._url = (base_url or os.environ.get("OPENAI_BASE_URL", "")).strip() or None
        self._where = shown(self._url)
        self._variable = _variable(self._url)
        self._key = _checked_key(api_key or os.environ.get(self._variable, ""), self._url)
        self._timeout = timeout
        self._max_retries = max_retries
        self._cancelled = cancelled
        self._dialect = Dialect()
        self._opened: Any = None
        self._opening = Lock()  # several may be asked at once

    def __repr__(self) -> str:
        return f"OpenAILLM({self.name!r} at {self._where})"

    def complete(self, request: Request) -> Reply | LlmFailure:
        """One reply; several attempts where the endpoint does not understand the first.

        The dialect that worked is kept for the next request. Raises as ``LLM.complete`` says.

        An endpoint that sends a byte now and then is never silent for long, so the whole request
        has a limit of its own: its connection is closed then, or when it is cancelled.
        """
        began, outcomes = time.monotonic(), list[Reply | LlmFailure | BaseException]()

        def ask() -> None:
            try:
                outcomes.append(self._complete(request))
            except BaseException as error:  # noqa: BLE001  # raised again where it was asked
                outcomes.append(error)

        thread = Thread(target=ask, daemon=True, name="optiml-llm")
        thread.start()
        while thread.is_alive():
            thread.join(min(_LOOK, max(0.0, request.seconds - (time.monotonic() - began))))
            late = time.monotonic() - began >= request.seconds
            if thread.is_alive() and (late or self._cancelled()):
                self.close()
                limit = f"within {request.seconds:.2g} s" if late else "until the search ended"
                return self._failure("timeout", f"gave no whole answer {limit}", began)
        (outcome,) = outcomes
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def _complete(self, request: Request) -> Reply | LlmFailure:
        dialect = self._dialect
        while isinstance(outcome := self._ask(dialect, request), _Complaint):
            other = dialect.after(outcome.text, outcome.parameter)
            if other is None:
                return LlmFailure("rejected", f"{self._where} rejects the request: {outcome.text}")
            dialect = other
        if isinstance(outcome, OptimlError):
            raise outcome
        if isinstance(outcome, Reply):
            self._dialect = dialect
        return outcome

    def offered(self) -> tuple[str, ...] | LlmFailure:
        """The names of the models that the endpoint offers, in its order."""
        import openai

        began = time.monotonic()
        try:
            return tuple(model.id for model in self._client().models.list())
        except openai.APIStatusError as refused:
            return self._failure("rejected", f"answers with status {refused.status_code}", began)
        except openai.APIConnectionError:
            return self._failure("unreachable", "cannot be reached", began)
        except (openai.OpenAIError, ValueError, AttributeError, TypeError) as odd:
            return self._failure("malformed", f"answers unexpectedly ({type(odd).__name__})", began)

    def close(self) -> None:
        """Close the connections."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _ask(
        self, dialect: Dialect, request: Request
    ) -> Reply | LlmFailure | OptimlError | _Complaint:
        """One call. Errors are returned, so that none drags the client's, and its key, along."""
        import openai

        began = time.monotonic()
        try:
            response = self._client().chat.completions.with_raw_response.create(
                **dialect.body(self.name, request)
            )
            body: str = response.text
        except openai.APITimeoutError:
            return self._failure("timeout", f"no answer within {self._timeout:g} s", began)
        except openai.APIConnectionError as broken:
            cause = type(broken.__cause__).__name__ if broken.__cause__ else "connection error"
            return self._failure("unreachable", f"cannot be reached ({cause})", began)
        except openai.APIStatusError as refused:
            return self._judged(refused, began)
        except (openai.OpenAIError, ValueError) as odd:
            # A ValueError: text that is no UTF-8 on the way out, or no JSON on the way in.
            return self._failure("malformed", f"answers unexpectedly ({type(odd).__name__})", began)
        outcome = completion.read(body, time.monotonic() - began)
        if isinstance(outcome, LlmFailure):
            return replace(outcome, message=self._scrubbed(outcome.message))
        return outcome

    def _judged(self, refused: Any, began: float) -> LlmFailure | OptimlError | _Complaint:
        """What a status other than 200 means: the user's, the machine's or the search's matter."""
        status: int = refused.status_code
        said = self._scrubbed(_message(refused.body))[:300]
        if status in (401, 403):
            # What the endpoint says here may quote the key.
            return MachineError(
                f"{self._where} does not accept the API key for `{self.name}` ({status})",
                fix=f"set {self._variable} to a key that may use this model, or use --llm none",
            )
        if status == 404 or refused.code in _UNKNOWN_MODEL:
            return UsageError(
                f"{self._where} knows no model `{self.name}` ({status})",
                fix="name a model that it has; a base URL mostly ends in /v1",
            )
        if status in (400, 422):
            return _Complaint(said, refused.param if isinstance(refused.param, str) else "")
        if status == 429:
            return self._failure("rate_limited", f"limits the rate or the quota: {said}", began)
        if status >= 500:
            return self._failure("server", f"fails with status {status}: {said}", began)
        return self._failure("rejected", f"answers with status {status}: {said}", began)

    def _client(self) -> Any:
        with self._opening:
            if self._opened is None:
                import openai

                self._opened = openai.OpenAI(
                    api_key=self._key,
                    base_url=self._url,
                    timeout=self._timeout,
                    max_retries=self._max_retries,
                )
            return self._opened

    def _failure(self, kind: FailureKind, what: str, began: float) -> LlmFailure:
        return LlmFailure(kind, f"{self._where} {what}", seconds=time.monotonic() - began)

    def _scrubbed(self, text: str) -> str:
        return text if self._key == _NO_KEY else text.replace(self._key, "***")


@dataclass(frozen=True)
class _Complaint:
    """A 400 or a 422: the endpoint does not like how the request is put, or what it holds."""

    text: str
    parameter: str  # "" where the endpoint does not name one


def _variable(url: str | None) -> str:
    """The name of the variable with the key of an endpoint: one's key is not for another."""
    known = os.environ.get("OPENAI_BASE_URL", "").strip()
    return "OPENAI_API_KEY" if url in (None, known) else "OPTIML_LLM_KEY"


def _checked_key(given: str, url: str | None) -> str:
    """The key, or what stands for none. What no header can carry would end up in a traceback."""
    key = given.strip()
    if not key and url is None:
        raise MachineError(
            "there is no API key for the language model",
            fix="set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own, "
            "or use --llm none",
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise MachineError(
            "the API key holds blanks or characters that no key has",
            fix=f"set {_variable(url)} to a valid key",
        )
    if key and url and urlsplit(url).scheme == "http" and not is_here(url):
        raise MachineError(
            f"the API key would go to {shown(url)} over plain http, where others can read it",
            fix=f"write https in the base URL, or unset {_variable(url)}",
        )
    return key or _NO_KEY


def _message(body: object) -> str:
    """What an error's body says, in one line: its message where it has one."""
    if isinstance(body, dict):
        body = body.get("message") or body.get("detail") or body
    return " ".join(str(body)[:5000].split())
