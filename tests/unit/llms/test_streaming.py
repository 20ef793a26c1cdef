"""Answers that come piece by piece, over the real client against a real server on loopback."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from optiml_magic.errors import MachineError
from optiml_magic.llms.base import LlmFailure, Reply

from .endpoint import USAGE, Answer, Endpoint, chunk, completed, event, failed, streamed
from .test_openai import ASK, KEY, asked

TEXT = '{"x": 1, "why": "caf\u00e9 \u4f60 \u2028 \\n"}'
ASKED = -(-(len(ASK.system) + len(ASK.user) + len(ASK.schema)) // 3)  # a token for 3 characters


def waited(endpoint: Endpoint) -> float:
    """When the client hung up."""
    for _ in range(200):
        if endpoint.gone:
            return endpoint.gone[0]
        time.sleep(0.01)
    raise AssertionError("the client did not hang up")


def said(*texts: str) -> list[dict[str, Any]]:
    return [{"content": text} for text in texts]


def test_pieces_make_one_reply_with_its_tokens() -> None:
    with asked(streamed(TEXT)) as (llm, endpoint):
        reply = llm.complete(ASK)
    assert isinstance(reply, Reply)
    assert (reply.text, reply.model) == (TEXT, "toy-2026")
    assert (reply.prompt_tokens, reply.completion_tokens, reply.estimated) == (11, 7, False)
    (body,) = endpoint.bodies
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}


WHOLE = streamed(TEXT).pieces


@pytest.mark.parametrize(
    "pieces",
    [
        (b"".join(WHOLE),),
        tuple(bytes([byte]) for byte in b"".join(WHOLE)),
        tuple(piece.replace(b"\n", b"\r\n") for piece in WHOLE),
        tuple(b": waiting in line\n\nid: 7\nevent: message\n" + piece for piece in WHOLE),
        tuple(piece.replace(b"data: ", b"data:") for piece in WHOLE),
        (*WHOLE[:-1], WHOLE[-1].rstrip()),
        WHOLE[:-1],
        (*WHOLE[:-2], event(chunk({}, "stop", usage=USAGE))),
        tuple(event(chunk({"content": c}, usage={**USAGE, "completion_tokens": at})) for at, c in
              zip((2, 5, 7), (TEXT[:4], TEXT[4:9], TEXT[9:]), strict=True)) + WHOLE[-3:-2],
    ],
    ids=["at once", "by bytes", "CRLF", "comments", "no blank", "no last line", "no DONE",
         "usage with the finish", "usage each time"],
)  # fmt: skip
def test_however_the_pieces_are_cut(pieces: tuple[bytes, ...]) -> None:
    with asked(replace(streamed(""), pieces=pieces)) as (llm, _):
        reply = llm.complete(ASK)
    assert isinstance(reply, Reply), reply
    assert (reply.text, reply.completion_tokens, reply.estimated) == (TEXT, 7, False)


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_is_no_part_of_the_answer_and_costs(name: str) -> None:
    deltas = [{name: "let me see "}, {name: "what fits", "content": None}, *said("{", "}")]
    with asked(streamed(deltas, usage=None)) as (llm, _):
        reply = llm.complete(ASK)
    assert isinstance(reply, Reply)
    assert reply.text == "{}"
    assert (reply.completion_tokens, reply.estimated) == (8, True)  # of 22 characters


def test_calls_of_tools_are_put_together_by_their_place() -> None:
    def call(at: int | None, arguments: str | None) -> dict[str, Any]:
        function = {"name": "edit", "arguments": arguments}
        return {"tool_calls": [{"index": at, "function": function} if at is not None else
                               {"function": function}]}  # fmt: skip

    parts = [call(0, None), call(0, '{"a"'), call(1, '{"b":'), call(0, ": 1}"), call(1, " 2}")]
    with asked(streamed(parts, finish="tool_calls"), streamed([call(None, "{}")])) as (llm, _):
        both, alone = llm.complete(ASK), llm.complete(ASK)
    assert isinstance(both, Reply)
    assert isinstance(alone, Reply)
    assert (both.text, alone.text) == ('{"a": 1}\n{"b": 2}', "{}")


@pytest.mark.parametrize(
    ("answer", "kind", "about"),
    [
        (streamed([{"refusal": "I will"}, {"refusal": " not"}]), "refused", "I will not"),
        (streamed("half", finish="content_filter"), "refused", "content filter"),
        (streamed("half", finish="length"), "truncated", "after 7 tokens"),
        (streamed([{"reasoning": "hm"}], finish="length"), "truncated", "after 7 tokens"),
        (streamed([{"reasoning": "hm"}]), "malformed", "empty"),
        (streamed(" \n"), "malformed", "empty"),
        (streamed([], finish=None, usage=None), "malformed", "empty"),
        (replace(streamed(""), pieces=(event("[DONE]"),)), "malformed", "nothing in it"),
        (replace(streamed(""), pieces=(event("<html>"),)), "malformed", "<html>"),
        (replace(streamed(""), pieces=(event("null"),)), "malformed", "null"),
        (replace(streamed(""), pieces=(*WHOLE[:3], b"data: \xff\xfe\n\n")), "malformed", "no chat"),
        (replace(streamed(""), pieces=(b"event: error\n\n",)), "unreachable", "in the middle"),
        (streamed("half", finish=None, usage=None, done=False), "unreachable", "in the middle"),
        (replace(streamed(""), pieces=(*WHOLE[:3], WHOLE[3][:20])), "unreachable", "in the middle"),
        (replace(streamed(""), pieces=(*WHOLE[:3], WHOLE[3][:20]), end="reset"), "unreachable",
         "broke off"),
    ],
)  # fmt: skip
def test_what_is_no_reply_is_a_failure(answer: Answer, kind: str, about: str) -> None:
    with asked(answer, max_retries=0) as (llm, _):
        failure = llm.complete(ASK)
    assert isinstance(failure, LlmFailure)
    assert failure.kind == kind
    assert about in failure.message


def test_what_came_before_a_reset_is_counted_and_said_to_be_guessed() -> None:
    broken = replace(streamed(""), pieces=(*WHOLE[:4], WHOLE[4][:9]), end="reset")
    with asked(broken, max_retries=0) as (llm, _):
        failure = llm.complete(ASK)
    assert isinstance(failure, LlmFailure)
    assert (failure.prompt_tokens, failure.completion_tokens) == (ASKED, 4)  # of 12 characters
    assert failure.estimated


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "overloaded", "code": 503}, "server"),
        ({"message": "no room", "type": "x"}, "server"),
        ({"message": "slow down", "code": 429}, "rate_limited"),
        ({"message": "slow down", "code": "429"}, "rate_limited"),
        ("it broke", "server"),
    ],
)
@pytest.mark.parametrize("before", [0, 3])
def test_an_error_in_the_middle_is_one(error: Any, kind: str, before: int) -> None:
    pieces = (*WHOLE[:before], event({"error": error}))
    with asked(replace(streamed(""), pieces=pieces)) as (llm, _):
        failure = llm.complete(ASK)
    assert isinstance(failure, LlmFailure)
    assert failure.kind == kind
    assert failure.completion_tokens == (3 if before else 0)  # of 8 characters


def test_an_error_in_a_body_of_status_200_is_one_and_hides_the_key() -> None:
    bodies = [{"error": {"message": f"you sent {KEY}", "code": 502}}, {"error": {"code": 401}}]
    with asked(*(Answer(body=json.dumps(body)) for body in bodies)) as (llm, _):
        failure = llm.complete(ASK)
        assert isinstance(failure, LlmFailure)
        assert failure.kind == "server"
        assert KEY not in failure.message
        with pytest.raises(MachineError):
            llm.complete(ASK)


@pytest.mark.parametrize(
    ("word", "streams", "options"),
    [
        ("stream_options", [True, True], [True, False]),
        ("include_usage", [True, True], [True, False]),
        ("stream", [True, None], [True, False]),
    ],
)
def test_what_an_endpoint_does_not_take_is_left_out_from_then_on(
    word: str, streams: list[bool | None], options: list[bool]
) -> None:
    def react(body: dict[str, Any]) -> Answer:
        if word in body or word in body.get("stream_options", ()):
            return failed(400, f"Unrecognized request argument: {word}")
        return streamed("{}", usage=None) if body.get("stream") else completed("{}")

    with asked(react) as (llm, endpoint):
        first, second = llm.complete(ASK), llm.complete(ASK)
    assert isinstance(first, Reply)
    assert isinstance(second, Reply)
    assert first.text == second.text == "{}"
    assert first.estimated is bool(streams[-1])
    assert [body.get("stream") for body in endpoint.bodies] == [*streams, streams[-1]]
    assert ["stream_options" in body for body in endpoint.bodies] == [*options, options[-1]]


def test_a_complaint_about_something_upstream_is_not_about_streams() -> None:
    with asked(failed(400, "upstream says no", param="messages")) as (llm, endpoint):
        assert isinstance(llm.complete(ASK), LlmFailure)
    assert len(endpoint.bodies) == 1


def test_tokens_that_never_come_are_guessed_and_not_waited_for() -> None:
    for end in ("open", "reset"):
        with asked(streamed(TEXT, usage=None, done=False, end=end), max_retries=0) as (llm, _):
            reply = llm.complete(ASK)
        assert isinstance(reply, Reply), reply
        assert (reply.text, reply.estimated) == (TEXT, True)
        assert reply.prompt_tokens == ASKED
        assert reply.completion_tokens == -(-len(TEXT) // 3)


def test_a_body_without_usage_is_guessed_too() -> None:
    body = json.loads(str(completed("{...}").body))
    del body["usage"]
    with asked(Answer(body=json.dumps(body))) as (llm, _):
        reply = llm.complete(ASK)
    assert isinstance(reply, Reply)
    assert (reply.prompt_tokens, reply.completion_tokens, reply.estimated) == (ASKED, 2, True)


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": 11, "completion_tokens": 3}])
def test_silence_between_pieces_ends_it(usage: dict[str, int] | None) -> None:
    deltas = said("abc", "def", "g")
    head = [chunk(delta, usage=usage) for delta in deltas]
    open_ = replace(streamed(""), pieces=tuple(map(event, head)), end="open")
    waiting = replace(open_, pieces=(*open_.pieces, *[b": still here\n\n"] * 100), pace=0.05)
    for answer in (open_, waiting):
        with asked(answer, timeout=0.4, max_retries=0) as (llm, endpoint):
            failure = llm.complete(ASK)
            waited(endpoint)
        assert isinstance(failure, LlmFailure)
        assert (failure.kind, failure.estimated) == ("timeout", usage is None)
        assert failure.completion_tokens == 3
        assert "0.4 s" in failure.message


def test_an_answer_that_goes_on_for_longer_than_the_silence_is_none() -> None:
    with asked(streamed("abcd" * 8, pace=0.06), timeout=0.5, max_retries=0) as (llm, _):
        reply = llm.complete(ASK)
    assert isinstance(reply, Reply)
    assert reply.seconds > 0.5


ENDLESS = streamed("abcd", finish=None, usage=None, done=False, pace=0.02, endless=True)


@pytest.mark.parametrize("why", ["deadline", "cancel", "close"])
def test_the_end_of_a_request_ends_its_transfer_at_once_and_counts_what_came(why: str) -> None:
    stopped = threading.Event()
    request = replace(ASK, max_tokens=10_000, seconds=2.5 if why == "deadline" else 60)

    def react(body: Any) -> Answer:
        if why != "deadline":
            threading.Timer(0.5, stopped.set if why == "cancel" else llm.close).start()
        return ENDLESS

    with asked(react, cancelled=stopped.is_set, max_retries=0) as (llm, endpoint):
        began = time.monotonic()
        failure = llm.complete(request)
        assert waited(endpoint) - began < 10
    assert isinstance(failure, LlmFailure)
    assert failure.kind == ("unreachable" if why == "close" else "timeout")
    assert failure.estimated
    assert failure.prompt_tokens == ASKED
    assert 0 < failure.completion_tokens < 400


def test_one_that_was_not_answered_yet_is_hung_up_as_well() -> None:
    with asked(replace(completed("late"), delay=30.0)) as (llm, endpoint):
        began = time.monotonic()
        failure = llm.complete(replace(ASK, seconds=2.0))
        assert waited(endpoint) - began < 10
    assert isinstance(failure, LlmFailure)
    assert (failure.kind, failure.prompt_tokens, failure.estimated) == ("timeout", ASKED, True)
    assert len(endpoint.bodies) == 1


def test_the_end_of_one_leaves_the_others_alone() -> None:
    slow = streamed("abcd" * 30, pace=0.03)
    with asked(slow) as (llm, _):
        found: list[Reply | LlmFailure] = []
        other = threading.Thread(target=lambda: found.append(llm.complete(ASK)))
        other.start()
        assert isinstance(llm.complete(replace(ASK, seconds=0.2)), LlmFailure)
        other.join()
    assert isinstance(found[0], Reply)
    assert found[0].text == "abcd" * 30


def test_nothing_more_is_sent_once_it_was_ended() -> None:
    """Neither what the client would try again after a while."""
    with asked(Answer(503, "{}", {"retry-after": "1"})) as (llm, endpoint):
        assert isinstance(llm.complete(replace(ASK, seconds=0.3)), LlmFailure)
        time.sleep(0.4)  # what was on its way has arrived
        sent = len(endpoint.bodies)  # none where the client was still to be loaded
        time.sleep(1.5)
        assert len(endpoint.bodies) == sent


@pytest.mark.parametrize(
    "delta", [{"content": "again and again "}, {"reasoning": "but then again "}, {}]
)
def test_one_that_talks_without_end_is_cut_at_its_limit(delta: dict[str, str]) -> None:
    endless = replace(ENDLESS, pieces=(event(chunk(delta)) * 20,), pace=0.001)
    with asked(endless) as (llm, endpoint):
        failure = llm.complete(ASK)
        waited(endpoint)
    assert isinstance(failure, LlmFailure)
    assert failure.kind == "truncated"
    assert "beyond the 99 tokens" in failure.message
    assert failure.estimated
    assert failure.completion_tokens <= 6 * 99 / 3 + 6


def test_one_that_counts_aloud_is_cut_to_the_token() -> None:
    pieces = tuple(
        event(chunk({"content": "a "}, usage={"prompt_tokens": 9, "completion_tokens": at}))
        for at in range(1, 2000)
    )
    with asked(replace(ENDLESS, pieces=pieces, pace=0.001)) as (llm, _):
        failure = llm.complete(ASK)
    assert isinstance(failure, LlmFailure)
    assert (failure.prompt_tokens, failure.completion_tokens, failure.estimated) == (9, 100, False)


@pytest.mark.parametrize("begin", [b'{"choices": [', b"data: "])
def test_a_body_or_a_line_without_end_is_cut(begin: bytes) -> None:
    answer = replace(ENDLESS, pieces=(begin, *[b" " * 100_000] * 100), endless=False, pace=0.001)
    with asked(answer) as (llm, endpoint):
        failure = llm.complete(ASK)
        waited(endpoint)
    assert isinstance(failure, LlmFailure)
    assert failure.kind == "truncated"


@pytest.mark.parametrize("at", range(0, 400, 57))
def test_a_stream_cut_anywhere_is_a_reply_or_a_failure(at: int) -> None:
    whole = b"".join(WHOLE)
    at = at * len(whole) // 400
    for end in ("end", "reset"):
        cut = replace(streamed(""), pieces=(whole[:at] or b" ",), end=end)
        with asked(cut, max_retries=0) as (llm, _):
            outcome = llm.complete(ASK)
        if isinstance(outcome, Reply):
            assert outcome.text == TEXT
        else:
            assert outcome.kind in ("unreachable", "malformed")
            assert outcome.may_pass
