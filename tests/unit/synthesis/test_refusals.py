"""What has no graph is refused, with its line; what sizes decide is written down."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from optiml_magic.synthesis.evaluate import evaluated
from optiml_magic.synthesis.graph import Graph
from optiml_magic.synthesis.refusals import Refused
from optiml_magic.synthesis.shapes import fitted
from optiml_magic.synthesis.tracing import traced
from tests.unit.synthesis.graphs import SIZES, graph_of, values


def branch(x: Any) -> Any:
    if x.sum() > 0:  # here
        return x
    return -x


def random(x: Any) -> Any:
    return x + np.random.rand(*x.shape)  # here  # noqa: NPY002


def selected(x: Any) -> Any:
    return x[x > 0]  # here


def permuted(x: Any, at: Any) -> Any:
    out = np.zeros_like(x)
    out[at] = x  # here
    return out


def overlapping(x: Any) -> Any:
    out = np.zeros_like(x)
    out[np.lib.stride_tricks.sliding_window_view(np.arange(4), 2)] = 1  # here
    return out


def unknown(x: Any) -> Any:
    return np.linalg.inv(x @ x.T)  # here


def element(x: Any) -> Any:
    return x * int(x[0, 0])  # here


def inner(x: Any) -> Any:
    return x.tolist()  # here


def nested(x: Any) -> Any:
    return inner(x) + 1


def objects(x: Any) -> Any:
    return x + np.array(["a"])  # here


def nothing(x: Any) -> None:
    x += 1


def wrong(x: Any, y: Any) -> Any:
    return x + np.concatenate([y, y])  # here


def long(x: Any) -> Any:
    for _ in range(10**6):  # here
        x = x + 1
    return x


def plain(x: Any) -> Any:
    out = [0.0]
    np.add(x, 1, out=np.asarray(out))
    return np.asarray(out)


def narrowed(x: Any) -> Any:
    x = x.astype(np.int32)
    x += 0.5  # here
    return x


def counted(at: Any) -> Any:
    return np.bincount(at)  # here


CASES = (
    branch,
    random,
    selected,
    permuted,
    overlapping,
    unknown,
    element,
    nested,
    objects,
    wrong,
    long,
    narrowed,
    counted,
)


@pytest.mark.parametrize("reference", CASES)
def test_a_refusal_names_the_line_and_what_to_do(reference: Callable[..., Any]) -> None:
    refused = graph_of(reference)
    assert isinstance(refused, Refused)
    lines, first = inspect.getsourcelines(inner if reference is nested else reference)
    assert refused.line == first + next(k for k, line in enumerate(lines) if "# here" in line)
    assert refused.reason
    assert not refused.fix[:1].isupper()
    assert not refused.fix.endswith(".")


def test_a_reference_that_returns_nothing_is_refused() -> None:
    assert graph_of(nothing) == Refused(
        "it returns nothing", 0, "return the arrays that it computes"
    )


def test_a_branch_on_sizes_is_an_assumption() -> None:
    def reference(x: Any) -> Any:
        return x.sum(axis=0) if x.shape[0] > x.shape[1] else x.sum(axis=1)

    graph = graph_of(reference)
    assert isinstance(graph, Graph)
    assert [str(a) for a in graph.assumptions] == ["n > m"]
    assert [bool(graph.unmet(sizes)) for sizes in SIZES] == [False, False, True]
    given = values(SIZES[2])
    assert evaluated(graph, given, SIZES[2]) == graph.assumptions


def test_a_loop_over_a_size_is_for_that_many_steps() -> None:
    graph = graph_of(lambda x: sum(x[:, k] for k in range(x.shape[1])))
    assert isinstance(graph, Graph)
    assert "m == 4" in map(str, graph.assumptions)


def test_sizes_that_are_equal_are_told_apart_by_other_samples() -> None:
    square = {"n": 4, "m": 4}
    samples = [(s, {"x": np.ones((s["n"], 2 * s["m"] + 1))}) for s in (square, SIZES[1])]
    shapes = fitted(samples)
    assert isinstance(shapes, dict)
    assert list(map(str, shapes["x"])) == ["n", "1 + 2*m"]
    refused = traced(lambda x: x, {"x": np.ones((4, 4))}, square)
    assert isinstance(refused, Refused)
    assert "n or m" in refused.reason


def test_an_input_of_another_shape_is_an_error() -> None:
    graph = graph_of(lambda x: x + 1)
    assert isinstance(graph, Graph)
    with pytest.raises(ValueError, match="shape"):
        evaluated(graph, values(SIZES[1]), SIZES[0])
