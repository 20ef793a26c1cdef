"""Any endpoint that speaks OpenAI's chat completions: theirs, vLLM, Ollama, llama.cpp, a proxy."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from threading import Lock, Thread, local
from typing import Any
from urllib.parse import urlsplit

from optiml_magic.errors import MachineError, OptimlError, UsageError
from optiml_magic.llms.base import FailureKind, LlmFailure, Reply, Request
from optiml_magic.llms.completion import Refused
from optiml_magic.llms.dialect import Dialect
from optiml_magic.llms.places import is_here, shown
from optiml_magic.llms.spending import UnderWay
from optiml_magic.llms.transfer import Transfer

_NO_KEY = "none"  # the client insists on one; servers on the own machine do not look at it
_LOOK = 0.1  # seconds between two looks at whether a request was cancelled
_FOR_TOKENS = 2.0  # seconds that a whole answer is waited with for what it cost; ours
_UNKNOWN_MODEL = ("model_not_found", "invalid_model")


class OpenAILLM:
    """One model at one endpoint. The key is handed to the client, and shown nowhere.

    Args:
        model: as the endpoint calls it.
        base_url: of the endpoint, mostly ending in ``/v1``; ``OPENAI_BASE_URL`` or OpenAI's else.
        api_key: that of the endpoint else: ``OPENAI_API_KEY`` belongs to OpenAI and to
            ``OPENAI_BASE_URL``, ``OPTIML_LLM_KEY`` to any other; not needed with a ``base_url``.
        effort: how much it reasons, in the endpoint's word; "" asks for nothing.
        timeout: seconds without an answer, or without more of it, before an attempt is given up.
        max_retries: further attempts after a timeout, a broken connection, a 429 or a 5xx.
        cancelled: asked while an answer is waited for; True gives it up.
        heard: called a few times a second while one is waited for, by the thread that waits.
    """

    def __init__(  # noqa: PLR0913  # what one endpoint differs in from another
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        effort: str = "",
        timeout: float = 120.0,
        max_retries: int = 2,
        cancelled: Callable[[], bool] = lambda: False,
        heard: Callable[[], None] = lambda: None,
    ) -> None:
        if not model.strip():
            raise UsageError("the language model has no name", fix="name one: --llm MODEL")
        self.name = model.strip()
        self._url = (base_url or os.environ.get("OPENAI_BASE_URL", "")).strip() or None
        self._where = shown(self._url)
        self._variable = _variable(self._url)
        self._key = _checked_key(api_key or os.environ.get(self._variable, ""), self._url)
        self._effort = effort
        self._timeout = timeout
        self._max_retries = max_retries
        self._cancelled = cancelled
        self._heard_more = heard
        self._dialect = Dialect()
        self._opened: Any = None
        self._opening = Lock()  # several may be asked at once
        self._asking = local()
        self._transfers = dict[Transfer, int]()  # those under way, by what was asked

    def __repr__(self) -> str:
        return f"OpenAILLM({self.name!r} at {self._where})"

    def complete(self, request: Request) -> Reply | LlmFailure:
        """One reply; several attempts where the endpoint does not understand the first.

        The dialect that worked is kept for the next request. Raises as ``LLM.complete`` says.

        An endpoint that sends a byte now and then is never silent for long, so the whole request
        has a limit of its own: it is ended then, or when it is cancelled, and the tokens that came
        so far are counted. What came before the connection broke is not a reply.
        """
        began, outcomes = time.monotonic(), list[Reply | LlmFailure | BaseException]()
        transfer = Transfer()

        def ask() -> None:
            self._asking.transfer = transfer
            try:
                outcomes.append(self._complete(request, transfer))
            except BaseException as error:  # noqa: BLE001  # raised again where it was asked
                outcomes.append(error)

        thread = Thread(target=ask, daemon=True, name="optiml-llm")
        with self._opening:
            self._transfers[transfer] = _characters(request)
        try:
            thread.start()
            while thread.is_alive():
                thread.join(min(_LOOK, max(0.0, request.seconds - (time.monotonic() - began))))
                self._heard_more()
                why = self._ends(transfer, time.monotonic() - began, request)
                if why and thread.is_alive():
                    transfer.end()
                    thread.join(_LOOK)
                    return self._so_far(transfer, request, began, why)
        finally:
            transfer.end()
            with self._opening:
                del self._transfers[transfer]
        (outcome,) = outcomes
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def _ends(self, transfer: Transfer, seconds: float, request: Request) -> str:
        """Why a request is not waited for any longer; "" while it is."""
        if seconds >= request.seconds:
            return f"gave no whole answer within {request.seconds:.2g} s"
        if self._cancelled():
            return "gave no whole answer until the search ended"
        # The tokens may come behind the answer, or never.
        most = min(_FOR_TOKENS, self._timeout) if transfer.said.finish else self._timeout
        return f"said nothing more for {most:.2g} s" if transfer.silent() >= most else ""

    def _so_far(
        self, transfer: Transfer, request: Request, began: float, why: str
    ) -> Reply | LlmFailure:
        """What a request came to that was ended."""
        seconds, asked = time.monotonic() - began, _characters(request)
        if transfer.said.finish:
            return self._told(transfer.said.outcome(asked, seconds))
        failure = self._failure("timeout", why, began)
        return self._spent(failure, transfer, asked) if transfer.connected else failure

    def _spent(self, failure: LlmFailure, transfer: Transfer, asked: int) -> LlmFailure:
        prompt, completion, estimated = transfer.said.tokens(asked)
        return replace(
            failure, prompt_tokens=prompt, completion_tokens=completion, estimated=estimated
        )

    def _complete(self, request: Request, transfer: Transfer) -> Reply | LlmFailure:
        dialect = self._dialect
        request = replace(request, effort=request.effort or self._effort)
        while isinstance(outcome := self._ask(dialect, request, transfer), Refused):
            other = dialect.after(outcome.message, outcome.parameter)
            if other is None:
                said = outcome.message
                return LlmFailure("rejected", f"{self._where} rejects the request: {said}")
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

    @property
    def under_way(self) -> UnderWay:
        """What is asked for now, as far as that was answered."""
        with self._opening:
            found = [(one.said.tokens(asked)) for one, asked in self._transfers.items()]
        return UnderWay(
            len(found),
            sum(prompt for prompt, _, _ in found),
            sum(completion for _, completion, _ in found),
            any(estimated for _, _, estimated in found),
        )

    @property
    def left_out(self) -> tuple[str, ...]:
        """What the endpoint was to be asked for, and does not take."""
        return self._dialect.left_out

    def close(self) -> None:
        """Close the connections, and end what is under way."""
        with self._opening:
            transfers = tuple(self._transfers)
        for transfer in transfers:
            transfer.end()
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _ask(
        self, dialect: Dialect, request: Request, transfer: Transfer
    ) -> Reply | LlmFailure | OptimlError | Refused:
        """One call. Errors are returned, so that none drags the client's, and its key, along."""
        import openai

        began = time.monotonic()
        transfer.restart()
        try:
            with self._client().chat.completions.with_streaming_response.create(
                **dialect.body(self.name, request)
            ) as response:
                transfer.read(response.iter_bytes(), request.max_tokens)
        except openai.APITimeoutError:
            failure = self._failure("timeout", f"no answer within {self._timeout:g} s", began)
            return self._spent(failure, transfer, _characters(request))
        except openai.APIConnectionError as broken:
            cause = type(broken.__cause__).__name__ if broken.__cause__ else "connection error"
            return self._failure("unreachable", f"cannot be reached ({cause})", began)
        except openai.APIStatusError as refused:
            told = replace(Refused.of(refused.body, 0), status=refused.status_code)
            return self._judged(told, began)
        except (openai.OpenAIError, ValueError) as odd:
            # A ValueError: text that is no UTF-8 on the way out.
            return self._failure("malformed", f"answers unexpectedly ({type(odd).__name__})", began)
        except Exception as odd:  # noqa: BLE001  # the HTTP client's own, of two libraries
            return self._failure("unreachable", f"broke off ({type(odd).__name__})", began)
        return self._heard(transfer, request, began)

    def _heard(
        self, transfer: Transfer, request: Request, began: float
    ) -> Reply | LlmFailure | OptimlError | Refused:
        """What an answer means that began with status 200."""
        said, asked = transfer.said, _characters(request)
        if said.refused is not None:
            judged = self._judged(said.refused, began)
            if isinstance(judged, LlmFailure) and said.began:
                return self._spent(judged, transfer, asked)
            return judged
        if transfer.cut:
            what = f"goes on beyond the {request.max_tokens} tokens of an answer, and was cut off"
            return self._spent(self._failure("truncated", what, began), transfer, asked)
        if transfer.broken and not said.finish:
            quiet = transfer.silent() >= self._timeout
            what = f"fell silent for {self._timeout:g} s" if quiet else "broke off"
            kind: FailureKind = "timeout" if quiet else "unreachable"
            failure = self._failure(kind, f"{what} in the middle ({transfer.broken})", began)
            return self._spent(failure, transfer, asked)
        return self._told(said.outcome(asked, time.monotonic() - began))

    def _told(self, outcome: Reply | LlmFailure) -> Reply | LlmFailure:
        if isinstance(outcome, LlmFailure):
            return replace(outcome, message=self._scrubbed(outcome.message))
        return outcome

    def _judged(self, refused: Refused, began: float) -> LlmFailure | OptimlError | Refused:
        """What a status other than 200 means: the user's, the machine's or the search's matter."""
        status = refused.status
        said = self._scrubbed(refused.message)[:300]
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
            return replace(refused, message=said)
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
                    http_client=openai.DefaultHttpxClient(
                        # A connection is of one request, which may be ended without the others.
                        headers={"connection": "close"},
                        event_hooks={"request": [self._traced]},
                    ),
                )
            return self._opened

    def _traced(self, sent: Any) -> None:
        """Let the transfer that this thread is in know of its connection."""
        transfer: Transfer | None = getattr(self._asking, "transfer", None)
        if transfer is not None:
            sent.extensions["trace"] = transfer.trace

    def _failure(self, kind: FailureKind, what: str, began: float) -> LlmFailure:
        return LlmFailure(kind, f"{self._where} {what}", seconds=time.monotonic() - began)

    def _scrubbed(self, text: str) -> str:
        return text if self._key == _NO_KEY else text.replace(self._key, "***")


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


def _characters(request: Request) -> int:
    return len(request.system) + len(request.user) + len(request.schema)
