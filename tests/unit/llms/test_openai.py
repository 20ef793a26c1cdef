"""OpenAILLM over the real client, against a real server on loopback."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from optiml_magic.errors import MachineError, OptimlError, UsageError
from optiml_magic.llms.base import LlmFailure, Reply, Request
from optiml_magic.llms.openai import OpenAILLM

from .endpoint import Answer, Endpoint, Reaction, completed, failed, serving

KEY = "sk-test-4f9c27d1e8"
SCHEMA = '{"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}'
CUDA = '#define F(x) {{ #x "%s {0} %(a)d ${b}" }}\nif (a[i] % 4 == 0) { asm("{ mov %r1, %%x; }"); }'
ASK = Request("be brief", "x?", "toy", SCHEMA, temperature=0.3, seed=5, max_tokens=99)


@contextmanager
def asked(*reactions: Reaction, **options: Any) -> Iterator[tuple[OpenAILLM, Endpoint]]:
    with serving(*reactions) as endpoint:
        llm = OpenAILLM("toy", endpoint.url, KEY, **{"timeout": 5.0, **options})
        try:
            yield llm, endpoint
        finally:
            llm.close()


def complain_about(*words: str, answer: str = '{"x": 1}') -> Reaction:
    """400 for a body with one of the words in it, as servers of different ages do."""

    def react(body: dict[str, Any]) -> Answer:
        for word in words:
            if word in json.dumps({k: v for k, v in body.items() if k != "messages"}):
                return failed(400, f"Unsupported value: {word}")
        return completed(answer)

    return react


def test_a_structured_reply_comes_with_its_cost() -> None:
    with asked(completed('{"x": 1}')) as (llm, endpoint):
        reply = llm.complete(ASK)
    assert isinstance(reply, Reply)
    assert (reply.text, reply.model) == ('{"x": 1}', "toy-2026")
    assert (reply.prompt_tokens, reply.completion_tokens) == (11, 7)
    assert 0 < reply.seconds < 5
    (body,) = endpoint.bodies
    assert endpoint.paths == ["/v1/chat/completions"]
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"
    assert [m["role"] for m in body["messages"]] == ["system", "user"]
    assert (body["temperature"], body["seed"], body["max_tokens"]) == (0.3, 5, 99)
    wanted = body["response_format"]["json_schema"]
    assert wanted == {"name": "toy", "strict": True, "schema": json.loads(SCHEMA)}


@pytest.mark.parametrize(
    ("refused", "formats"),
    [
        (("json_schema",), ["json_schema", "json_object"]),
        (("json_schema", "response_format"), ["json_schema", "json_object", None]),
    ],
)
def test_the_ladder_goes_down_and_is_remembered(
    refused: tuple[str, ...], formats: list[str | None]
) -> None:
    with asked(complain_about(*refused)) as (llm, endpoint):
        assert isinstance(llm.complete(ASK), Reply)
        assert isinstance(llm.complete(ASK), Reply)
    sent = [body.get("response_format", {}).get("type") for body in endpoint.bodies]
    assert sent == [*formats, formats[-1]]
    last = endpoint.bodies[-1]["messages"][0]["content"]
    assert SCHEMA in last
    assert ("fenced" in last) == (formats[-1] is None)


def test_a_complaint_without_a_reason_goes_down_the_ladder_but_is_not_remembered() -> None:
    complaints = [failed(400, "no"), failed(422, "no"), failed(400, "no"), failed(422, "no")]
    with asked(*complaints, completed("{}")) as (llm, endpoint):
        failure = llm.complete(ASK)
        assert isinstance(failure, LlmFailure)
        assert failure.kind == "rejected"
        assert isinstance(llm.complete(ASK), Reply)
    assert [body.get("stream") for body in endpoint.bodies] == [True, True, True, None, True]
    assert endpoint.bodies[4]["response_format"]["type"] == "json_schema"


def test_a_complaint_about_the_messages_is_not_repeated() -> None:
    with asked(failed(400, "maximum context length is 10 tokens", param="messages")) as (llm, at):
        failure = llm.complete(ASK)
    assert isinstance(failure, LlmFailure)
    assert failure.kind == "rejected"
    assert "maximum context length" in failure.message
    assert len(at.bodies) == 1


def test_options_that_a_model_does_not_take_are_left_out() -> None:
    def reasoner(body: dict[str, Any]) -> Answer:
        if "max_tokens" in body:
            text = "'max_tokens' is not supported. Use 'max_completion_tokens' instead."
            return failed(400, text, param="max_tokens")
        for name in ("temperature", "seed"):
            if name in body:
                return failed(400, f"'{name}' does not support this value", param=name)
        return completed('{"x": 1}')

    with asked(reasoner) as (llm, endpoint):
        assert isinstance(llm.complete(ASK), Reply)
        assert isinstance(llm.complete(ASK), Reply)
    assert len(endpoint.bodies) == 5
    last = endpoint.bodies[-1]
    assert last["max_completion_tokens"] == 99
    assert not {"max_tokens", "temperature", "seed"} & set(last)
    assert last["response_format"]["type"] == "json_schema"


def test_a_limit_beyond_the_context_is_left_out() -> None:
    def small(body: dict[str, Any]) -> Answer:
        for name in ("max_tokens", "max_completion_tokens"):
            if name in body:
                text = "'max_tokens' or 'max_completion_tokens' is too large: 99"
                return failed(400, text)
        return completed('{"x": 1}')

    with asked(small) as (llm, endpoint):
        assert isinstance(llm.complete(ASK), Reply)
    assert len(endpoint.bodies) == 3


def test_prompts_and_replies_arrive_unchanged() -> None:
    odd = CUDA + "\n\u00e9\u4f60\U0001f600 \\u0041 \t\r\n"
    with asked(lambda body: completed(body["messages"][1]["content"])) as (llm, endpoint):
        reply = llm.complete(Request(odd, odd))
    assert isinstance(reply, Reply)
    assert reply.text == odd
    assert [m["content"] for m in endpoint.bodies[0]["messages"]] == [odd, odd]
    assert "response_format" not in endpoint.bodies[0]


def test_text_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": []}, {"text": "b"}]
    with asked(completed(parts)) as (llm, _):
        reply = llm.complete(ASK)
    assert isinstance(reply, Reply)
    assert reply.text == "ab"


def test_a_busy_endpoint_is_asked_again() -> None:
    with asked(failed(429, "slow down"), failed(503, "busy"), completed("{}")) as (llm, endpoint):
        assert isinstance(llm.complete(ASK), Reply)
    assert len(endpoint.bodies) == 3


@pytest.mark.parametrize(
    ("answer", "kind", "calls"),
    [
        (failed(429, "slow down"), "rate_limited", 3),
        (failed(429, "quota", code="insufficient_quota", retry=False), "rate_limited", 1),
        (failed(500, "oh dear"), "server", 3),
        (failed(413, "too large"), "rejected", 1),
        (Answer(200, "<html>proxy</html>", {"content-type": "text/html"}), "malformed", 1),
        (Answer(200, '{"choices": []}'), "malformed", 1),
        (Answer(200, '{"choices": [{"message": 1}]}'), "malformed", 1),
        (Answer(200, b"\xff\xfe{"), "malformed", 1),
        (Answer(200, '{"cut'), "malformed", 1),
        (Answer(200, "null"), "malformed", 1),
        (completed(None), "malformed", 1),
        (completed(" \n"), "malformed", 1),
        (completed("half", finish="length"), "truncated", 1),
        (completed(None, refusal="I will not"), "refused", 1),
        (completed("", finish="content_filter"), "refused", 1),
    ],
)
def test_expected_failures_are_values(answer: Answer, kind: str, calls: int) -> None:
    with asked(answer) as (llm, endpoint):
        failure = llm.complete(ASK)
    assert isinstance(failure, LlmFailure)
    assert failure.kind == kind
    assert "127.0.0.1" in failure.message or kind in ("malformed", "truncated", "refused")
    assert len(endpoint.bodies) == calls


def test_failures_that_cost_tokens_say_so() -> None:
    with asked(completed("half", finish="length")) as (llm, _):
        failure = llm.complete(ASK)
    assert (failure.prompt_tokens, failure.completion_tokens) == (11, 7)


def test_silence_is_a_timeout() -> None:
    slow = Answer(200, "{}", delay=0.6)
    with asked(slow, timeout=0.15, max_retries=0) as (llm, _):
        failure = llm.complete(ASK)
    assert isinstance(failure, LlmFailure)
    assert failure.kind == "timeout"
    assert "0.15 s" in failure.message


def test_an_answer_that_drips_ends_with_the_seconds_of_the_request() -> None:
    """It is never silent for long, so the client's own timeout does not see it."""
    with asked(replace(completed("late"), pace=0.05), completed("soon")) as (llm, endpoint):
        began = time.monotonic()
        failure = llm.complete(replace(ASK, seconds=0.4))
        assert isinstance(failure, LlmFailure)
        assert (failure.kind, failure.may_pass) == ("timeout", True)
        assert "gave no whole answer within 0.4 s" in failure.message
        assert time.monotonic() - began < 5  # it would drip for fifteen
        reply = llm.complete(ASK)  # the connection was closed, and is opened again
        assert isinstance(reply, Reply)
        assert reply.text == "soon"
        assert len(endpoint.bodies) == 2


def test_a_request_that_is_cancelled_ends_at_once() -> None:
    stopped = threading.Event()
    with asked(replace(completed("late"), delay=30.0), cancelled=stopped.is_set) as (llm, _):
        threading.Timer(0.2, stopped.set).start()
        failure = llm.complete(ASK)
        assert isinstance(failure, LlmFailure)
        assert "until the search ended" in failure.message
        assert failure.seconds < 20


def test_nobody_there() -> None:
    with socket.socket() as taken:  # bound, not listening: a connection is refused
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        llm = OpenAILLM("toy", url, KEY, max_retries=0, timeout=5.0)
        failure = llm.complete(ASK)
        llm.close()
    assert isinstance(failure, LlmFailure)
    assert failure.kind == "unreachable"


def test_a_text_that_is_no_unicode_is_a_failure() -> None:
    with asked(completed("{}")) as (llm, _):
        assert isinstance(llm.complete(Request("", "\ud800")), LlmFailure)


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_the_machines_fault(status: int) -> None:
    with (
        asked(failed(status, f"Incorrect API key provided: {KEY}")) as (llm, _),
        pytest.raises(MachineError) as raised,
    ):
        llm.complete(ASK)
    assert "OPTIML_LLM_KEY" in raised.value.fix
    assert_nothing_leaks(raised.value)


@pytest.mark.parametrize(
    "answer",
    [failed(404, "not found"), failed(400, "no such model", code="model_not_found", param="model")],
)
def test_an_unknown_model_is_the_users_fault(answer: Answer) -> None:
    with asked(answer) as (llm, _), pytest.raises(UsageError, match="knows no model `toy`"):
        llm.complete(ASK)


def assert_nothing_leaks(error: OptimlError) -> None:
    told = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))
    assert KEY not in told
    assert error.__context__ is None
    assert error.__cause__ is None


@pytest.mark.parametrize("status", [200, 400, 401, 404, 418, 429, 500])
def test_the_key_is_shown_nowhere(
    status: int, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("", "openai", "httpx", "httpx2", "httpcore", "httpcore2"):
        caplog.set_level(logging.DEBUG, name)
    echo = failed(status, f"you sent {KEY}", retry=False) if status != 200 else Answer(200, KEY)
    with asked(echo) as (llm, _):
        told = repr(llm) + str(llm)
        try:
            told += repr(llm.complete(ASK))
        except OptimlError as error:
            assert_nothing_leaks(error)
    assert caplog.records
    assert KEY not in told + caplog.text + "".join(capfd.readouterr())


def test_the_environment_gives_key_and_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(completed("{}")) as endpoint:
        monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        llm = OpenAILLM("toy")
        assert isinstance(llm.complete(ASK), Reply)
        llm.close()
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"


def test_a_key_goes_to_its_own_endpoint_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving(completed("{}")) as endpoint:
        for own in ("", "sk-own-4d2"):
            monkeypatch.setenv("OPTIML_LLM_KEY", own)
            llm = OpenAILLM("toy", endpoint.url)
            assert isinstance(llm.complete(ASK), Reply)
            llm.close()
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        llm = OpenAILLM("toy", endpoint.url)
        assert isinstance(llm.complete(ASK), Reply)
        llm.close()
    sent = [headers["authorization"] for headers in endpoint.headers]
    assert sent == ["Bearer none", "Bearer sk-own-4d2", f"Bearer {KEY}"]


@pytest.mark.parametrize("host", ["models.example.org", "10.0.0.7", "[fd00::1]"])
def test_no_key_goes_over_plain_http_to_another_machine(host: str) -> None:
    with pytest.raises(MachineError, match="over plain http") as raised:
        OpenAILLM("toy", f"http://{host}:8000/v1", KEY)
    assert KEY not in repr(raised.value)
    OpenAILLM("toy", f"http://{host}:8000/v1")
    OpenAILLM("toy", f"https://{host}:8000/v1", KEY)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_a_server_on_this_machine_may_have_it(host: str) -> None:
    OpenAILLM("toy", f"http://{host}:8000/v1", KEY)


def test_an_own_server_needs_no_key() -> None:
    with serving(completed("{}")) as endpoint:
        llm = OpenAILLM("toy", endpoint.url)
        assert isinstance(llm.complete(ASK), Reply)
        llm.close()


def test_an_endpoint_is_shown_without_its_query() -> None:
    assert repr(OpenAILLM("m", "http://localhost:80/v1?k=secret", KEY)) == (
        "OpenAILLM('m' at localhost:80/v1)"
    )
    assert repr(OpenAILLM("m", None, KEY)) == "OpenAILLM('m' at api.openai.com)"


@pytest.mark.parametrize(
    ("model", "url", "key", "kind"),
    [
        ("m", None, None, MachineError),
        ("m", None, "sk-\u00e9", MachineError),
        ("m", None, "sk-a\nb", MachineError),
        (" ", None, KEY, UsageError),
        ("m", "localhost:8000", KEY, UsageError),
        ("m", "file:///etc/passwd", KEY, UsageError),
        ("m", "http://[::1", KEY, UsageError),
        ("m", "http://me:pa55word@localhost/v1", KEY, UsageError),
        ("m", "http://h:99999/v1", KEY, UsageError),
    ],
)
def test_what_cannot_work_is_refused_at_once(
    model: str, url: str | None, key: str | None, kind: type[OptimlError]
) -> None:
    with pytest.raises(kind) as raised:
        OpenAILLM(model, url, key)
    assert raised.value.fix
    assert not key or key not in str(raised.value)
    assert "pa55word" not in "".join(traceback.format_exception(raised.value))


def test_the_client_loads_late() -> None:
    program = (
        "import sys, optiml_magic.llms.openai as o; o.OpenAILLM('m', 'http://localhost/v1')\n"
        "print('openai' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"False"
