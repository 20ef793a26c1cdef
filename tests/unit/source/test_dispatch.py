"""Launches of which the host runs one: reading them, printing them, refusing half of one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optiml_magic.errors import SourceError
from optiml_magic.source.directives import LaunchDirective, RepeatDirective
from optiml_magic.source.expressions import Expression, parse_expression
from optiml_magic.source.program import parse_program

HEAD = "#pragma optiml launch "
EXPRESSIONS = st.recursive(
    st.sampled_from(["n", "m", "k", "0", "4", "size(a)", "shape(a, 1)", "sizeof(int)"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["-", "%", "/", "<<", "<", "==", "&&", "||"]), inner).map(
            lambda t: f"({t[0]}) {t[1]} ({t[2]})"
        ),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]}) ? ({t[1]}) : cdiv({t[2]}, 3)"),
        inner.map(lambda t: f"-({t})"),
    ),
    max_leaves=8,
)


def program(*launches: str):
    lines = (line if line.startswith("#") else HEAD + line for line in launches)
    return parse_program("\n".join(lines))


def test_a_chain_is_one_step() -> None:
    found = program(
        "a grid(n) block(1)",
        "b grid(1) block(1) if (n%4==0)",
        "c grid(1) block(1) else   if(n > 3)",
        "d grid(1) block(1) else",
        "e grid(1) block(1)",
    )
    steps = [[launch.kernel for launch in step] for step in found.alternatives]
    assert steps == [["a"], ["b", "c", "d"], ["e"]]
    assert [str(launch).partition("block(1)")[2] for launch in found.launches] == [
        "", " if (n % 4 == 0)", " else if (n > 3)", " else", "",
    ]  # fmt: skip
    assert found.launches[1].names == {"n"}
    first, second, third = found.alternatives[1]
    assert first.bare == LaunchDirective("b", *2 * ((parse_expression("1"),),))
    assert (first.otherwise, second.otherwise, third.condition) == (False, True, None)


def test_the_repeat_of_the_first_launch_is_that_of_its_chain() -> None:
    found = program(
        "a grid(1) block(1) repeat(3) swap(x, y) if (n > 1)",
        "b grid(1) block(1) else",
        "c grid(1) block(1)",
    )
    one, two, three = found.launches
    assert one.repeat == RepeatDirective(parse_expression("3"), (("x", "y"),))
    assert two.repeat is one.repeat
    assert three.repeat is None
    assert str(two) == HEAD + "b grid(1) block(1) else"


@pytest.mark.parametrize(
    ("launches", "line", "message", "fix"),
    [
        (["a grid(1) block(1) else"], 1, "`else` without an `if`", "take `else` away"),
        (["a grid(1) block(1)", "b grid(1) block(1) else"], 2, "without an `if`", "a condition"),
        (["a grid(1) block(1) if (n)"], 1, "nothing runs where `if (n)` does not hold", "`else`"),
        (["a grid(1) block(1) if (n)", "b grid(1) block(1)"], 1, "nothing runs where", "`else`"),
        (["a grid(1) block(1) if (n)", "b grid(1) block(1) else if (m)"], 2, "`if (m)`", "`else`"),
        (["a grid(1) block(1) if (n)", "b grid(1) block(1) else", "c grid(1) block(1) else"], 3,
         "without an `if`", ""),
        (["a grid(1) block(1) if (n)", "b grid(1) block(1) repeat(2) else"], 2, "`repeat` between",
         "on it"),
        (["a grid(1) block(1) if (n)", "#pragma optiml repeat(2)", "b grid(1) block(1) else"], 2,
         "`repeat` between", "above the first"),
        (["a if (n) grid(1) block(1)"], 1, "before the extents", "if (CONDITION)"),
        (["a grid(1) if (n) block(1)"], 1, "needs `block(...)`", ""),
        (["a grid(1) block(1) if (n) shared(4)"], 1, "`shared` after `if`", "if (CONDITION)"),
        (["a grid(1) block(1) if n > 3"], 1, "`(` expected, `n > 3`", "if (CONDITION)"),
        (["a grid(1) block(1) if ("], 1, "never closed", ""),
        (["a grid(1) block(1) if ()"], 1, "an operand is missing", ""),
        (["a grid(1) block(1) if (n, m)"], 1, "one condition", ""),
        (["a grid(1) block(1) if (n) else"], 1, "unexpected `else`", "remove"),
        (["a grid(1) block(1) if (n) && (m)"], 1, "unexpected `&& (m)`", ""),
        (["a grid(1) block(1) if (system(1))"], 1, "no function `system`", "use one of cdiv"),
        (["a grid(1) block(1) if (n = 4)"], 1, "unexpected `=`", ""),
        (["a grid(1) block(1) if (n; abort())"], 1, "unexpected `;`", ""),
        (['a grid(1) block(1) if ("x")'], 1, 'unexpected `"`', ""),
        ([f"a grid(1) block(1) if ({'(' * 60}1{')' * 60})"], 1, "too deep a nesting", ""),
        (["a grid(1) block(1) elseif (n)"], 1, "unknown clause `elseif`", ""),
    ],
)  # fmt: skip
def test_half_a_dispatch_and_bad_conditions_name_their_line(launches, line, message, fix) -> None:
    with pytest.raises(SourceError) as caught:
        program(*launches)
    assert message in caught.value.message
    assert fix in caught.value.fix
    assert caught.value.line == line


@given(st.lists(st.lists(EXPRESSIONS, max_size=3), min_size=1, max_size=3))
def test_dispatches_print_as_they_are_read(chains: list[list[str]]) -> None:
    lines = []
    for at, conditions in enumerate(chains):
        for place, condition in enumerate(conditions):
            word = "else if" if place else "if"
            lines.append(f"k{at} grid(n) block(32) shared(4) {word} ({condition})")
        lines.append(f"k{at} grid(1) block(2){' else' if conditions else ''}")
    found = program(*lines)
    again = parse_program("\n".join(map(str, found.launches)))
    assert again.launches == found.launches
    assert list(map(str, again.launches)) == list(map(str, found.launches))
    assert [len(step) for step in again.alternatives] == [len(chain) + 1 for chain in chains]


FAST = LaunchDirective("fast", (parse_expression("n / 4"),), (parse_expression("64"),))
FOURS = parse_expression("n % 4 == 0")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["k grid(n) block(1)"], ["fast grid(n / 4) block(64) if (n % 4 == 0)", "k grid(n) block(1) else"]),
        (["k grid(n) block(1) repeat(3) swap(x, y)"],
         ["fast grid(n / 4) block(64) repeat(3) swap(x, y) if (n % 4 == 0)", "k grid(n) block(1) else"]),
        (["k grid(n) block(1) if (n > 9 || n < 3)", "o grid(1) block(1) else"],
         ["fast grid(n / 4) block(64) if ((n > 9 || n < 3) && n % 4 == 0)",
          "k grid(n) block(1) else if (n > 9 || n < 3)", "o grid(1) block(1) else"]),
        (["o grid(1) block(1) if (n > 9)", "k grid(n) block(1) else"],
         ["o grid(1) block(1) if (n > 9)", "fast grid(n / 4) block(64) else if (n % 4 == 0)",
          "k grid(n) block(1) else"]),
    ],
)  # fmt: skip
def test_a_launch_makes_room_for_a_faster_one(before: list[str], after: list[str]) -> None:
    launches = []
    for launch in program(*before).launches:
        launches += launch.dispatched(FAST, FOURS) if launch.kernel == "k" else [launch]
    assert list(map(str, launches)) == [HEAD + line for line in after]
    assert [str(x) for x in parse_program("\n".join(map(str, launches))).launches] == list(
        map(str, launches)
    )


def test_launches_of_a_round_stay_in_it() -> None:
    around, launch = program("#pragma optiml repeat(2)", "k grid(n) block(1)").directives
    assert isinstance(launch, LaunchDirective)
    text = "\n".join([str(around), *map(str, launch.dispatched(FAST, FOURS))])
    found = parse_program(text)
    assert [str(x.repeat) for x in found.launches] == ["#pragma optiml repeat(2)"] * 2


@given(EXPRESSIONS, st.dictionaries(st.sampled_from("nmk"), st.integers(-9, 9)))
def test_a_name_and_its_value_are_one(text: str, values: dict[str, int]) -> None:
    expression = parse_expression(text)
    written = expression.substituted(values)
    assert not written.names & values.keys()
    everything = dict.fromkeys(expression.names, 5) | values
    shapes = dict.fromkeys(expression.arrays, (3, 4))
    assert _outcome(written, everything, shapes) == _outcome(expression, everything, shapes)


def _outcome(expression: Expression, values: dict[str, int], shapes: dict) -> int | str:
    try:
        return expression.evaluate(values, shapes)
    except SourceError as error:
        return error.message.partition(" in `")[0]
