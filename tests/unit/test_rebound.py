"""References with another library in the place of NumPy."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy import empty as room

from optiml_magic.rebound import computed, rebound


class Arrays(np.ndarray):
    """What the other library makes."""


def other() -> types.ModuleType:
    library = types.ModuleType("other")
    library.empty = library.zeros = lambda shape: np.empty(shape).view(Arrays)  # type: ignore[attr-defined]
    library.linalg = types.ModuleType("other.linalg")  # type: ignore[attr-defined]
    library.linalg.inv = lambda a: a.view(Arrays)
    return library


def makes(x: Any) -> Any:
    found = np.empty(x.shape)
    found[:] = 2 * x
    return found


def by_a_helper(x: Any, *, times: int = 1) -> Any:
    return makes(x) if times == 1 else by_a_helper(times * x)


def by_name(x: Any) -> Any:
    return room(len(x))


def inside(x: Any) -> Any:
    def inner(at: int) -> Any:
        return np.zeros(at)

    return inner(len(x))


def enclosed() -> Callable[..., Any]:
    numbers, helper = np, makes
    return lambda x: helper(numbers.zeros(len(x)))


class Model:
    def answer(self, x: Any) -> Any:
        return makes(x)


@pytest.mark.parametrize(
    "call",
    [
        makes, by_a_helper, functools.partial(by_a_helper, times=3), by_name, inside, enclosed(),
        Model().answer, lambda x: np.linalg.inv(x),
    ],
)  # fmt: skip
def test_what_it_makes_is_of_the_other_library(call: Callable[..., Any]) -> None:
    x = np.eye(3)
    assert type(rebound(call, other())(x)) is Arrays
    assert type(call(x)) is np.ndarray, "the reference itself stays as it was"


def test_what_the_other_library_does_not_have_stays() -> None:
    assert rebound(np.cumsum, other())([1, 2])[1] == 3
    assert rebound(np.exp, other()) is np.exp
    assert rebound(np.empty, other()) is not np.empty


def test_functions_of_other_packages_are_left_alone() -> None:
    assert rebound(lambda: functools.reduce, other())() is functools.reduce
    strange = types.FunctionType(makes.__code__, {"np": np, "__name__": "elsewhere"})

    def calls(x: Any) -> Any:
        return strange(x)

    assert type(rebound(calls, other())(np.ones(3))) is np.ndarray


def test_functions_in_a_row_and_those_of_python() -> None:
    steps = (lambda x: np.empty(len(x)),)
    made = rebound(lambda x: steps[0](x), other(), {"len": lambda _: 7})
    assert made([1]).shape == (7,)
    assert type(made([1])) is Arrays


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.T,
        lambda x: x[1:],
        lambda x: (x + 1).T,
        lambda x: (x.reshape(-1), x.sum()),
        lambda x: {"out": x[::-1]},
    ],
)
def test_what_is_timed_beside_a_kernel_makes_arrays_of_its_own_in_c_order(
    call: Callable[..., Any],
) -> None:
    x = np.arange(12.0).reshape(3, 4)
    plain, found = call(x), computed(np, call, {"x": x})
    plain, found = ([*v.values()] if isinstance(v, dict) else v for v in (plain, found))
    if not isinstance(plain, (tuple, list)):
        plain, found = (plain,), (found,)
    for one, other in zip(plain, found, strict=True):
        assert np.array_equal(one, other)
        assert not np.may_share_memory(x, other)
        assert np.asarray(other).flags.c_contiguous


def test_an_array_that_is_changed_in_place_is_not_copied() -> None:
    x = np.arange(3.0)

    def add(x: Any) -> Any:
        x += 1
        return x

    assert computed(np, add, {"x": x}) is x
