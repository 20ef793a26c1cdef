"""References on a card: when one is used, and what is said of it. Its arrays lie in host memory."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optiml_magic.devices.base import Buffer, Tolerance
from optiml_magic.devices.compare import compare
from optiml_magic.devices.maps import Map, digest, mapped
from optiml_magic.model.peer import Peer
from optiml_magic.problem.card import Card, Refusal, cupy_on
from optiml_magic.problem.reference import Answer
from optiml_magic.problem.references import References
from tests.unit.devices import card as stand_in

X = np.random.default_rng(0).uniform(1, 2, 1000).astype(np.float32)


def slow(x: Any) -> Any:
    if not hasattr(x, "get"):
        time.sleep(0.05)
    return 2 * x


def references(call: Any, *, homes: Any = None) -> References:
    return References(call, ["out"], homes or {}, Card("cuda:0", stand_in.Card({}).module))


def test_it_answers_from_then_on_where_both_agree() -> None:
    found = references(slow)
    found.try_card({"x": X}, "n = 1000")
    assert found.is_on_card
    assert found.note == "references: computed on the card, compared with NumPy at n = 1000"
    change = {"x": Map("times", 3.0)}
    answer = found.answer({"x": X}, change, twice=True)
    content = mapped(change["x"], X)
    assert np.array_equal(answer.outputs["out"], 2.0 * content.astype(np.float64))
    assert answer.wide
    assert answer.digests == {"x": digest(content)}
    assert answer.scales["out"] == np.median(answer.outputs["out"])
    assert X.dtype == np.float32
    assert X.max() < 2


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda x: slow(x) + hasattr(x, "get"), "on the card `out` differs at n = 3"),
        (lambda x: np.asarray(slow(x), like=None) if not hasattr(x, "get") else 1 / 0, "Zero"),
        (lambda x: slow(x) if not hasattr(x, "get") else x.get(), "it gives `out` as a ndarray"),
        (lambda x: 2 * x if x.dtype == np.float32 else 1 / 0, "in the dtypes of the inputs"),
        (lambda x: time.sleep(0.02 * hasattr(x, "get")) or 2 * x, "which is faster here"),
    ],
)
def test_numpy_answers_otherwise_and_it_is_said(call: Any, told: str) -> None:
    found = references(call)
    found.try_card({"x": X}, "n = 3")
    assert not found.is_on_card
    assert found.note.startswith("references: computed by NumPy")
    assert told in found.note
    found.note = ""
    found.try_card({"x": X}, "n = 3")
    assert not found.note


def test_one_that_fails_later_is_given_up_and_it_is_said() -> None:
    def call(x: Any) -> Any:
        if hasattr(x, "get") and x.size > 1000:
            raise MemoryError("no room")
        return slow(x)

    found = references(call)
    found.try_card({"x": X}, "n = 1000")
    large = np.ones(1001, np.float32)
    assert np.array_equal(found.answer({"x": large}).outputs["out"], 2.0 * large)
    assert not found.is_on_card
    assert found.note == "references: computed by NumPy; on the card, MemoryError: no room"


@pytest.mark.parametrize(("apart", "stays"), [(1e-15, True), (1e-3, False)])
def test_sums_of_a_card_may_come_in_another_order_each_time(apart: float, stays: bool) -> None:
    runs = []

    def call(x: Any) -> Any:
        if hasattr(x, "get"):
            runs.append(x.size)
            return slow(x) * (1 + apart * (len(runs) > 2 and len(runs) % 2))
        return slow(x)

    found = references(call)
    found.try_card({"x": X}, "n = 1000")
    assert found.is_on_card
    answer = found.answer({"x": X}, twice=True)
    assert np.allclose(answer.outputs["out"], 2.0 * X, 1e-12)
    assert found.is_on_card == stays
    assert stays or found.note.endswith("on the card, `out` differs from run to run")


def test_what_a_card_cannot_hold_as_numpy_does_is_refused() -> None:
    card = Card("cuda:0", stand_in.Card({}).module)
    structs = np.zeros(3, [("a", "f4")])
    tiny = np.array([1e-40, 1.0], np.float32)
    for array, told in ((structs, "structs"), (tiny, "subnormal")):
        refused = card.ask(lambda x: x, {"x": array}, {}, ["out"])
        assert isinstance(refused, Refusal)
        assert told in refused.reason
    assert isinstance(card.ask(lambda x: x, {"x": X}, {}, ["out"]), Answer)


def test_cupy_runs_the_reference_as_long_as_its_launches_take() -> None:
    card = stand_in.Card({"double": (lambda: None, 2e-4)})
    seen = []

    def call(x: Any) -> Any:
        seen.append((x.dtype, hasattr(x, "get")))
        card.launch("double", ())
        card.launch("double", ())
        return 2 * x

    module = card.module()
    found = References(call, ["out"], {}, Card("cuda:0", lambda: module)).timed({"x": X})
    assert isinstance(found, Peer)
    assert found.name == "CuPy running the reference"
    assert found.how == "a graph"
    assert found.seconds == pytest.approx(4e-4)
    assert 1 <= found.ratio_error < 1.01
    assert set(seen) == {(np.dtype(np.float32), True)}  # not widened, as answers are


@pytest.mark.parametrize(
    ("call", "values", "told"),
    [
        (lambda x: x.get(), {"x": X}, "it gives `out` as a ndarray"),
        (lambda x: x @ 1, {"x": X}, "Error"),
        (lambda x: x, {"x": np.zeros(3, [("a", "f4")])}, "`x` holds"),
    ],
)
def test_what_cupy_does_not_run_is_no_baseline(call: Any, values: Any, told: str) -> None:
    found = references(call).timed(values)
    assert isinstance(found, Refusal)
    assert told in found.reason
    assert References(call, ["out"], {}, None).timed(values) is None


def test_a_reference_that_waits_is_launched_from_python() -> None:
    card = stand_in.Card({"double": (lambda: None, 2e-4)})
    module = card.module()

    def call(x: Any) -> Any:
        card.launch("double", ())
        module.cuda.Stream(non_blocking=True).synchronize()
        return 2 * x

    found = Card("cuda:0", lambda: module).timed(call, {"x": X}, ["out"])
    assert isinstance(found, Peer)
    assert found.how.startswith("launched from Python: AssertionError")
    assert found.seconds == pytest.approx(2e-4)


def test_it_compares_what_is_large_as_numpy_does() -> None:
    found = references(slow)
    found.try_card({"x": X}, "n = 1000")
    wanted = np.random.default_rng(0).uniform(1, 2, 1 << 18)
    got = wanted.astype(np.float32)
    got[77] = np.nan
    buffer = Buffer("out", "output", got, wanted, Tolerance(1e-6, 1e-6))
    assert found.is_on_card
    here = compare("out", got, wanted, Tolerance(1e-6, 1e-6), None)
    assert replace(found.compared(buffer, got), error=here.error) == here
    assert here.first_index == (77,)


def test_without_a_card_nothing_is_tried_or_said() -> None:
    assert cupy_on("emulated:h200") is None
    assert cupy_on("") is None
    found = References(slow, ["out"], {}, None)
    found.try_card({"x": X}, "n = 1000")
    assert (found.note, found.is_on_card, found.may_use_card) == ("", False, False)
