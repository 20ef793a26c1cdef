from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from optiml_magic.errors import OracleError
from optiml_magic.problem.reference import ask, source_of

X = np.ones(3, np.float32)


def test_it_is_called_in_float64_on_copies_by_the_names_it_asks_for() -> None:
    seen = {}

    def reference(x, *, scale=2.0):  # type: ignore[no-untyped-def]
        seen["dtype"] = x.dtype
        x += 1
        return x * scale

    answer = ask(reference, {"x": X, "n": 3}, ["out"])
    assert answer.wide
    assert seen["dtype"] == np.float64
    assert np.array_equal(answer.outputs["out"], [4.0, 4.0, 4.0])
    assert np.array_equal(X, np.ones(3))


def test_where_float64_fails_the_given_dtype_is_used_and_said() -> None:
    def reference(x):  # type: ignore[no-untyped-def]
        if x.dtype != np.float32:
            raise TypeError
        return x

    assert not ask(reference, {"x": X}, ["out"]).wide


@pytest.mark.parametrize(
    ("returned", "names"),
    [((X, X + 1), ["a", "b"]), ({"b": X + 1, "a": X, "other": X}, ["a", "b"])],
)
def test_tuples_go_by_order_and_dicts_by_name(returned: object, names: list[str]) -> None:
    answer = ask(lambda: returned, {}, names)
    assert np.array_equal(answer.outputs["b"], X + 1)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (lambda x, missing: x, "asks for `missing`"),
        (lambda x: None, "returned nothing; the kernel writes out"),
        (lambda x: (x, x), r"returned 2 arrays"),
        (lambda x: {"other": x}, "lacks `out`"),
        (lambda x: x / 0 + [][1], "raised IndexError"),
        (lambda x: np.random.default_rng().random(3), "two different answers for `out`"),
    ],
)
def test_a_reference_that_is_none_is_refused(reference: object, message: str) -> None:
    with np.errstate(all="ignore"), pytest.raises(OracleError, match=message):
        ask(reference, {"x": X}, ["out"])  # type: ignore[arg-type]


def test_a_reference_that_asks_for_an_output_is_told_how_to_have_it() -> None:
    with pytest.raises(OracleError, match="`out`, which has no content before") as refused:
        ask(lambda x, out: x + out, {"x": X}, ["out"])
    assert 'inout=("out",)' in str(refused.value.fix)


def test_the_text_of_a_reference_is_had_where_python_finds_it(tmp_path: Path) -> None:
    """A lambda behind a text of several lines is one where it finds no end."""
    path = tmp_path / "task.py"
    path.write_text('''task = dict(kernel="""a kernel
of two lines""", reference=lambda x: 2 * x)

def plain(x):
    return 2 * x
''')
    found = runpy.run_path(str(path))
    assert source_of(found["plain"]) == "def plain(x):\n    return 2 * x\n"
    assert "kernel" not in source_of(found["task"]["reference"])
    assert source_of(None) == source_of(np.sum.__call__) == source_of(len) == ""
