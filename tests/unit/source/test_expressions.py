from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optiml_magic.errors import SourceError
from optiml_magic.source.expressions import Expression, parse_expression
from optiml_magic.source.folding import folded

ENV = {"n": 1000, "m": 7, "k": -13, "z": 0}
BINARY = ["+", "-", "*", "/", "%", "<<", ">>", "<", "<=", ">", ">=", "==", "!="]
BINARY += ["&", "^", "|", "&&", "||"]


def c_texts(leaves):
    """Random C expressions, sometimes in parentheses."""

    def extend(inner):
        return st.one_of(
            st.tuples(inner, st.sampled_from(BINARY), inner).map(" ".join),
            st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} ? {t[1]} : {t[2]})"),
            st.tuples(st.sampled_from("-~!"), inner).map(lambda t: f"{t[0]}({t[1]})"),
            inner.map(lambda t: f"({t})"),
        )

    return st.recursive(leaves, extend, max_leaves=12)


LEAVES = st.one_of(
    st.sampled_from(sorted(ENV)),
    st.integers(0, 70).map(str),
    st.integers(0, 2**40).map(hex),
)
WITH_CALLS = st.one_of(
    LEAVES,
    st.sampled_from(["cdiv(n, 3)", "min(m, k)", "size(a)", "shape(a, m - 6)", "sizeof(float)"]),
)


def test_c_semantics_agree_with_another_implementation():
    """Bash evaluates C's integer expressions in 64 bits; it wraps where ours refuses."""
    cases: list[tuple[str, int]] = []

    @settings(max_examples=400, deadline=None, database=None, derandomize=True)
    @given(c_texts(LEAVES))
    def collect(text: str) -> None:
        try:
            cases.append((text, parse_expression(text).evaluate(ENV)))
        except SourceError:
            return

    collect()
    script = "".join(f"{name}={value}\n" for name, value in ENV.items())
    script += "".join(f"echo $(({text}))\n" for text, _ in cases)
    run = subprocess.run(["bash", "-s"], input=script, capture_output=True, text=True, check=True)
    assert len(cases) > 150
    assert [int(line) for line in run.stdout.split()] == [value for _, value in cases]


@settings(max_examples=200, deadline=None)
@given(c_texts(WITH_CALLS))
def test_printing_and_parsing_give_the_same_tree(text):
    try:
        expression = parse_expression(text)
    except SourceError:
        return
    printed = str(expression)
    again = parse_expression(printed)
    assert again == expression
    assert hash(again) == hash(expression)
    assert str(again) == printed


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-7 / 2", -3),
        ("7 / -2", -3),
        ("-7 % 3", -1),
        ("7 % -3", 1),
        ("1 << 2 + 3", 32),
        ("1 | 2 == 2", 1),
        ("cdiv(1000, 256)", 4),
        ("cdiv(-7, 2)", -3),
        ("0x1F + 0b11", 34),
        ("256u * 2ULL", 512),
        ("0 && 1 / 0", 0),
        ("1 || 1 / 0", 1),
        ("1 ? 2 : 1 / 0", 2),
        ("- -3", 3),
        ("!5 + ~0", -1),
        ("size(a) * shape(a, 1)", 6 * 3),
        ("sizeof(unsigned int) * 4", 16),
    ],
)
def test_values(text, value):
    assert parse_expression(text).evaluate({}, {"a": (2, 3)}) == value


@pytest.mark.parametrize(
    ("text", "message", "fix"),
    [
        ("", "an operand is missing at column 1", ""),
        ("a b", "unexpected `b` at column 3", ""),
        ("(1 + 2", "`)` expected, the end found at column 7", ""),
        ("mni(1, 2)", "no function `mni`", "did you mean `min`"),
        ("010", "octal", "write `10`"),
        ("1.5", "unexpected `.`", ""),
        ("size(3)", "`size` asks for the name of an array", ""),
        ("cdiv(1)", "takes 2 arguments, not 1", ""),
        ("--a", "unexpected `--`", ""),
        ("99999999999999999999", "beyond 64 bits", ""),
        ("(" * 60 + "1" + ")" * 60, "too deep", ""),
        ("+".join("1" * 500), "too many operators", ""),
        ("1" * 5000, "5000 characters", ""),
        ("sizeof(P)", "the size of `P` is not known", ""),
        ("n # 3", "unexpected `#`", ""),
    ],
)
def test_refused_texts(text, message, fix):
    with pytest.raises(SourceError) as caught:
        parse_expression(text, 7)
    assert message in caught.value.message
    assert fix in caught.value.fix
    assert caught.value.line == 7


@pytest.mark.parametrize(
    ("text", "message", "fix"),
    [
        ("n / z", "a division by zero in `n / z`", "divisor"),
        ("n % z", "a division by zero", ""),
        ("cdiv(n, z)", "a division by zero", ""),
        ("rosw + 1", "unknown name `rosw`", "`rows`"),
        ("size(b)", "unknown array `b`", "a"),
        ("shape(a, 2)", "`a` has no axis 2", "(2, 3)"),
        ("1 << 64", "a shift by 64", ""),
        ("n * 0x7fffffffffffffff", "beyond 64 bits", ""),
    ],
)
def test_refused_values(text, message, fix):
    with pytest.raises(SourceError) as caught:
        parse_expression(text, 3).evaluate({"n": 4, "z": 0, "rows": 2}, {"a": (2, 3)})
    assert message in caught.value.message
    assert fix in caught.value.fix
    assert caught.value.line == 3


def test_names_and_arrays():
    expression = parse_expression("cdiv(n, TILE) + size(a) * shape(b, axis) + sizeof(float)")
    assert expression.names == {"n", "TILE", "axis"}
    assert expression.arrays == {"a", "b"}
    assert expression.name is None
    assert parse_expression(" (n) ").name == "n"


def test_equality_is_that_of_the_tree():
    assert parse_expression("(n+1)") == parse_expression("n + 1")
    assert parse_expression("(n+1)").text == "(n+1)"
    assert isinstance(parse_expression("1"), Expression)


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(max_size=60), st.text("()+-*/%<>=!&|?:,0123456789abnx ", max_size=80)))
def test_any_text_is_a_value_or_a_source_error(text):
    try:
        parse_expression(text).evaluate({"a": 1, "b": 2, "n": 3, "x": 0})
    except SourceError:
        return


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("4 * 32", "128"),
        ("(n + 4 * 32 - 1) / (4 * 32)", "(n + 128 - 1) / 128"),
        ("cdiv(n, 2 * 8 + 16)", "cdiv(n, 32)"),
        ("2 - 3", "2 - 3"),
        ("7 / 2 + 0", "3"),
        ("size(a) / (8 / 0)", "size(a) / (8 / 0)"),
    ],
)
def test_what_is_a_number_by_itself(text, number):
    assert str(folded(parse_expression(text))) == number
