"""Whole numbers that know their expression compute as plain ones do, at other sizes too."""

from __future__ import annotations

import operator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.synthesis.sizes import (
    Assumption,
    Size,
    axis,
    constant,
    polynomial,
    quotient,
    remainder,
    valued,
    within,
)
from tests.present import examples

OPERATIONS = (
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, min, max,
    lambda a, _: -a, lambda a, _: abs(a), lambda a, _: a // 2 + a % 3, lambda a, _: a**2,
    lambda a, _: a << 1, lambda a, _: a >> 1, lambda a, b: divmod(a, b)[0],
)  # fmt: skip


class Log:
    """Who writes assumptions down and computes nothing."""

    def __init__(self) -> None:
        self.assumptions: list[Assumption] = []

    def assume(self, assumption: Assumption) -> None:
        self.assumptions.append(assumption)

    def number(self, size: Size) -> Any:
        raise AssertionError(size)

    def ufunc(self, *_: Any) -> Any:
        raise AssertionError


def chained(steps: list[tuple[Any, int]], n: int, m: int) -> int:
    """Numbers made of n and m, one of another."""
    made = [n, m, 3]
    for step, at in steps:
        one, two = made[at % len(made)], made[(at * 7 + 1) % len(made)]
        made.append(step(one, two if two != 0 else 5))
    return made[-1]


@given(
    st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 9)), min_size=1, max_size=5),
    st.tuples(st.integers(1, 12), st.integers(1, 12)),
    st.tuples(st.integers(1, 12), st.integers(1, 12)),
)
@settings(max_examples=examples(60, 2000), deadline=None)
def test_sizes_compute_as_numbers_do(
    steps: list[tuple[Any, int]], here: tuple[int, int], there: tuple[int, int]
) -> None:
    log = Log()
    sizes = [Size(v, Polynomial.symbol(k), log) for k, v in zip("nm", here, strict=True)]
    found = chained(steps, *sizes)
    assert found == chained(steps, *here)
    other = dict(zip("nm", there, strict=True))
    if all(a.holds(other) for a in log.assumptions):
        assert valued(polynomial(found), other) == chained(steps, *there)
    assert all(a.holds(dict(zip("nm", here, strict=True))) for a in log.assumptions)


def test_what_expressions_decide_is_not_assumed() -> None:
    log = Log()
    n = Size(5, Polynomial.symbol("n"), log)
    assert n - 1 < n
    assert n == n + 0
    assert 2 * n // 2 == n
    assert not log.assumptions
    assert n > 3
    assert [str(a) for a in log.assumptions] == ["n > 3"]


def test_quotients_go_where_indices_are_too_small_for_them() -> None:
    n, m = Polynomial.symbol("n"), Polynomial.symbol("m")
    flat = axis(0) * m + axis(1)
    assert within(quotient(flat, m), (n, m)) == axis(0)
    assert within(remainder(flat, m), (n, m)) == axis(1)
    assert within(quotient(flat, m), (n, m + constant(1))) != axis(0)
