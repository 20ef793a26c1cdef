from __future__ import annotations

import pytest

from optiml_magic.llms.choice import choose
from tests.unit.llms.endpoint import serving


def test_auto_without_a_key_or_a_url_takes_none_and_says_why() -> None:
    chosen = choose("auto", "")
    assert chosen.name == ""
    assert "neither OPENAI_API_KEY nor a base URL" in chosen.reason


@pytest.mark.parametrize(
    ("offered", "name", "reason"),
    [
        (["toy-7b"], "toy-7b", "the endpoint's only model"),
        (["davinci", "gpt-4o-mini", "gpt-5"], "gpt-5", "from the 3 models on offer"),
        (["one", "two"], "", "name one: --llm MODEL"),
        ([], "", "answers with status 500"),
    ],
)
def test_auto_asks_the_endpoint_what_it_offers(
    offered: list[str], name: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as endpoint:
        endpoint.models = offered
        assert choose("auto", endpoint.url).name == name
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        chosen = choose("auto", "")
    assert chosen.name == name
    assert reason in chosen.reason


def test_auto_goes_on_without_an_endpoint_that_is_gone() -> None:
    with serving() as endpoint:
        url = endpoint.url
    chosen = choose("auto", url)
    assert chosen.name == ""
    assert "cannot be reached" in chosen.reason


@pytest.mark.parametrize(("asked", "name"), [("none", ""), ("toy", "toy")])
def test_what_is_asked_for_is_taken(asked: str, name: str) -> None:
    assert choose(asked, "http://localhost:1/v1").name == name
