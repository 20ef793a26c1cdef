"""Strategies, features and the gate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
import pytest

from optiml_magic.model.finding import RooflineClass
from optiml_magic.synthesis.graph import Graph
from optiml_magic.synthesis.thoughts import FEATURES, features, strategies, weighed
from optiml_magic.synthesis.thoughts.strategies import Strategy, read
from optiml_magic.synthesis.tracing import traced


def matrix(rows: int, cols: int, dtype: Any = np.float32) -> Any:
    return np.ones((rows, cols), dtype)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


CASES: list[tuple[str, Any, Mapping[str, Any], set[str], str]] = [
    ("map", lambda x: np.tanh(x) * 2, {"x": matrix(6, 9)}, {"elementwise"}, "vector_map"),
    (
        "softmax", softmax, {"x": matrix(6, 2000)},
        {"reduces rows", "reduces twice", "long reductions"}, "block_per_row",
    ),
    ("row sum", lambda x: x.sum(axis=1), {"x": matrix(6, 90)}, {"reduces rows"}, "warp_per_row"),
    (
        "column sum", lambda x: x.sum(axis=0), {"x": matrix(90, 6)}, {"reduces columns"},
        "column_strips",
    ),
    (
        "dot", lambda a, b: (a * b).sum(), {"a": np.ones(4000), "b": np.ones(4000)},
        {"reduces all", "long reductions"}, "two_pass_reduction",
    ),
    (
        "product", lambda a, b: a @ b, {"a": matrix(5, 6), "b": matrix(6, 7)},
        {"multiplies matrices"}, "tiled_product",
    ),
    (
        "half product", lambda a, b: a @ b,
        {"a": matrix(5, 6, np.float16), "b": matrix(6, 7, np.float16)},
        {"multiplies matrices", "half precision"}, "tiled_product",
    ),
    (
        "vector product", lambda a, v: a @ v, {"a": matrix(5, 60), "v": np.ones(60)},
        {"multiplies a vector"}, "warp_per_row",
    ),
    (
        "stencil", lambda x: x[:-2] + x[1:-1] + x[2:], {"x": np.ones(50)},
        {"elementwise", "reads neighbours"}, "stencil_halo",
    ),
    (
        "transpose", lambda x: x.T * 2, {"x": matrix(5, 6)}, {"elementwise", "transposes"},
        "tiled_transpose",
    ),
    (
        "histogram", lambda x: np.bincount(x, minlength=64), {"x": np.ones(500, np.int32)},
        {"scatters", "few places"}, "privatised_counters",
    ),
    (
        "gather", lambda t, i: t[i], {"t": matrix(50, 6), "i": np.ones(7, np.int32)}, {"gathers"},
        "gathered_rows",
    ),
    ("scan", lambda x: np.cumsum(x, axis=1), {"x": matrix(5, 60)}, {"scans"}, "block_scan"),
    ("sort", lambda x: np.sort(x, axis=1), {"x": matrix(5, 60)}, {"sorts"}, "row_sort"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "values", "wanted", "best"), [c[1:] for c in CASES],
                         ids=[c[0] for c in CASES])  # fmt: skip
def test_a_graph_has_its_features_and_the_gate_prefers_what_suits_them(
    function: Any, values: Mapping[str, Any], wanted: set[str], best: str
) -> None:
    graph = traced(function, values, {})
    assert isinstance(graph, Graph), graph
    found = features(graph)
    assert set(found) == wanted
    thoughts = weighed(strategies(), "", found)
    assert thoughts[0].name == best
    assert sum(thought.weight for thought in thoughts) == pytest.approx(1.0)
    assert thoughts[0].because


@pytest.mark.parametrize("strategy", strategies(), ids=lambda one: one.name)
def test_every_file_says_what_there_is(strategy: Strategy) -> None:
    assert strategy.text
    assert len(strategy.text) < 1500
    assert strategy.graph.keys() <= FEATURES.keys()
    assert strategy.limits.keys() <= set(get_args(RooflineClass))
    for pattern in strategy.words:
        re.compile(pattern)
    for weight in (*strategy.graph.values(), *strategy.words.values(), *strategy.limits.values()):
        assert -5 <= weight <= 5


def test_every_feature_speaks_for_something() -> None:
    spoken = {feature for one in strategies() for feature in one.graph}
    assert FEATURES.keys() == spoken


def test_words_and_the_limit_weigh_too() -> None:
    plain = {t.name: t.weight for t in weighed(strategies(), "")}
    assert len(set(plain.values())) == 1
    words = weighed(strategies(), "A Histogram of the bytes")
    assert words[0].name == "privatised_counters"
    assert "the words say `Histogram`" in words[0].because[0]
    limited = {t.name: t.weight for t in weighed(strategies(), "", (), "launch")}
    assert limited["recompute"] == max(limited.values())


def test_a_head_with_other_names_is_no_strategy() -> None:
    with pytest.raises(TypeError):
        read("odd", '+++\ntitle = "x"\n[shapes]\nlong = 1\n+++\ntext\n')
    with pytest.raises(ValueError, match="before its head"):
        read("odd", 'text\n+++\ntitle = "x"\n+++\ntext\n')
