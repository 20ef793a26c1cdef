"""Directive expressions in C++ and in Python against the evaluator that verified the program."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from optiml_magic.errors import SourceError
from optiml_magic.exports.c_expressions import CExpressions
from optiml_magic.exports.launcher import HELPERS
from optiml_magic.exports.module import FUNCTIONS
from optiml_magic.exports.python_expressions import PythonExpressions
from optiml_magic.source.expressions import Expression, parse_expression
from optiml_magic.source.operators import BINARY
from tests.present import examples

TUNED = {"TILE": 16, "BIG": 100_000, "NEG": -3, "WIDE": 5_000_000_000}
SHAPES = {"a": (7, 5), "b": (12,)}
ENVIRONMENTS = [
    dict(zip("nmk", values, strict=True))
    for values in [(0, 1, 2), (17, -4, 3), (-17, 4, 0), (1000, 1024, 63), (2**31 - 1, -(2**31), 64)]
]
LEAVES = ["n", "m", "k", *TUNED, "0", "1", "2", "7", "31", "256", "4294967295", "sm_count",
          "size(a)", "shape(a, 1)", "shape(b, 0)", "sizeof(float)"]  # fmt: skip


def _join(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.tuples(parts, st.sampled_from(list(BINARY)), parts).map(
        lambda p: f"({p[0]}) {p[1]} ({p[2]})"
    )
    unary = st.tuples(st.sampled_from("-!~"), parts).map(lambda p: f"{p[0]}({p[1]})")
    calls = st.tuples(st.sampled_from(["cdiv", "min", "max"]), parts, parts).map(
        lambda p: f"{p[0]}({p[1]}, {p[2]})"
    )
    choice = st.tuples(parts, parts, parts).map(lambda p: f"({p[0]}) ? ({p[1]}) : ({p[2]})")
    return st.one_of(binary, binary, unary, calls, choice)


EXPRESSIONS = st.recursive(st.sampled_from(LEAVES), _join, max_leaves=8).map(parse_expression)


def _random(random: Random, depth: int) -> str:
    """Text of the same grammar, without the limits that hypothesis sets on one example."""
    if depth == 0 or random.random() < 0.15:
        return random.choice(LEAVES)
    parts = [f"({_random(random, depth - 1)})" for _ in range(3)]
    kind = random.random()
    if kind < 0.6:
        return f"{parts[0]} {random.choice(list(BINARY))} {parts[1]}"
    if kind < 0.7:
        return random.choice("-!~") + parts[0]
    if kind < 0.9:
        return f"{random.choice(['cdiv', 'min', 'max'])}({parts[0]}, {parts[1]})"
    return f"{parts[0]} ? {parts[1]} : {parts[2]}"


def wanted(expression: Expression, env: dict[str, int]) -> int | SourceError | None:
    """The value; None beyond 64 bits, where the two may differ."""
    try:
        return expression.evaluate({**env, **TUNED, "sm_count": 132}, SHAPES)
    except SourceError as error:
        return None if "64 bits" in str(error) else error


@settings(max_examples=examples(120, 50_000))
@given(EXPRESSIONS, st.sampled_from(ENVIRONMENTS))
def test_python_computes_what_the_evaluator_does(
    expression: Expression, env: dict[str, int]
) -> None:
    class Array:
        def __init__(self, shape: tuple[int, ...]) -> None:
            self.shape, self.size = shape, shape[0] * (shape[1] if len(shape) > 1 else 1)

    names = {n: n for n in [*env, *TUNED, *SHAPES, "sm_count"]}
    spell = PythonExpressions(names, TUNED)
    text, condition = spell.text(expression), spell.condition(expression)
    scope = {**env, **TUNED, "sm_count": 132, **{n: Array(s) for n, s in SHAPES.items()}}
    for source in FUNCTIONS.values():
        exec(source, scope)
    expected = wanted(expression, env)
    if isinstance(expected, SourceError):
        with pytest.raises((ZeroDivisionError, ValueError)):
            eval(text, scope)
    elif expected is not None:
        found = eval(text, scope)
        assert type(found) is int
        assert (found, bool(eval(condition, scope))) == (expected, bool(expected)), text


@pytest.mark.skipif(not shutil.which("g++"), reason="no g++ on this machine")
# One compilation holds many expressions, so a failure names its own and is not made smaller.
@settings(max_examples=examples(2, 40), phases=[Phase.generate])
@given(st.integers(0, 2**32))
def test_cpp_computes_what_the_evaluator_does(seed: int) -> None:
    random = Random(seed)
    expressions = [parse_expression(_random(random, 4)) for _ in range(150)]
    scalars = {"n": "n64", "m": "m64", "k": "k64", "sm_count": "sms"}
    extents = {("a", None): "a_size", ("a", 1): "a1", ("b", 0): "b0"}
    spell = CExpressions(
        scalars,
        TUNED,
        extents,
        {word: word for word in HELPERS},
        "invalid",
        {"TILE", "BIG", "WIDE"},
    )
    lines = ["namespace host {", *(HELPERS[w] for w in ("cdiv", "min", "max", "nonzero", "shift"))]
    lines += ["constexpr int TILE = 16, BIG = 100000, NEG = -3; constexpr long long WIDE = 5000000000;",
              "const long long a_size = 35, a1 = 5, b0 = 12; const int sms = 132;"]  # fmt: skip
    for at, expression in enumerate(expressions):
        lines.append(
            f'extern "C" long long f{at}(int n, int m, int k, bool* flag) {{\n'
            "  const long long n64 = n, m64 = m, k64 = k; bool invalid = false;\n"
            f"  const long long value = {spell.text(expression)};\n"
            "  *flag = invalid; return value; }"
        )
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "f.cpp"), Path(folder, "f.so")
        source.write_text("\n".join([*lines, "}"]))
        # Traps where a signed number overflows would hide; beyond 64 bits nothing is compared.
        subprocess.run(
            ["g++", "-O0", "-fwrapv", "-w", "-shared", "-fPIC", "-o", library, source], check=True
        )
        loaded = ctypes.CDLL(str(library))
        for at, expression in enumerate(expressions):
            function = getattr(loaded, f"f{at}")
            function.restype = ctypes.c_longlong
            for env in ENVIRONMENTS:
                expected = wanted(expression, env)
                if expected is None:
                    continue
                flag = ctypes.c_bool()
                found = function(env["n"], env["m"], env["k"], ctypes.byref(flag))
                if isinstance(expected, SourceError):
                    assert flag.value, expression
                else:
                    assert (found, flag.value) == (expected, False), (
                        str(expression),
                        spell.text(expression),
                    )
