"""What is said of quotients never is what some number denies."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from optiml_magic.kernels.operations import Operations
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.symbols import Compare, Symbol, Symbols

SMALL = st.integers(-40, 40)


def _said(op: str, by: int, low: int, high: int, sign: int, rest: int) -> bool:
    """Whether ``rest + sign * (x op by)`` is known not to be negative for ``low <= x <= high``."""
    symbols = Symbols()
    x = symbols.of(Symbol("x", "unknown", frozenset()))
    facts = (x - Polynomial.constant(low), Polynomial.constant(high) - x)
    operations = Operations(symbols)
    quotient = operations.operation(op, (x, Polynomial.constant(by)), None, None)
    form = Polynomial.constant(rest) + Polynomial.constant(sign) * quotient
    given = [Compare(">=", fact, frozenset()) for fact in facts]
    return Ranges(given, symbols).nonnegative(form)


def _value(op: str, x: int, by: int) -> int:
    return x >> by if op == ">>" else abs(x) // by * (1 if x >= 0 else -1)


@given(
    st.sampled_from(["/", ">>"]), st.integers(1, 9), SMALL, SMALL, st.sampled_from([1, -1]), SMALL
)
def test_what_is_known_of_a_quotient_is_true(
    op: str, by: int, low: int, high: int, sign: int, rest: int
) -> None:
    truth = all(rest + sign * _value(op, x, by) >= 0 for x in range(low, high + 1))
    assert truth or not _said(op, by, low, high, sign, rest)


def test_a_quotient_ends_where_the_number_does() -> None:
    assert _said(">>", 4, -5, 95, -1, 5)
    assert not _said(">>", 4, 0, 96, -1, 5)
    assert _said("/", 16, 0, 95, -1, 5)
    assert not _said("/", 16, -40, -1, -1, -1)  # rounds towards 0
    assert _said("/", 16, 0, 95, 1, 0)


def test_what_many_symbols_are_made_of_is_known_as_that_of_few() -> None:
    symbols = Symbols()
    operations, size = Operations(symbols), symbols.of(Symbol("n", "scalar", frozenset({"n"})))
    found = symbols.of(Symbol("x", "unknown", frozenset()))
    for at in range(300):
        found = operations.operation("^", (found, size + Polynomial.constant(at)))
    least = operations.operation("min", (found + size, found + Polynomial.constant(3)))
    for low, known in ((found, True), (found + size, False)):
        given = [Compare(">=", form, frozenset()) for form in (low, size)]
        assert Ranges(given, symbols).nonnegative(least) == known
    assert symbols.under([found], 50) is None
    assert len(symbols.under([found], 500) or ()) == 302
