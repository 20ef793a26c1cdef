from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optiml_magic.errors import InternalError
from optiml_magic.source.edits import Edit, apply


def test_edits_are_made_at_once_in_bytes():
    text = "é = a + b;"
    assert apply(text, [Edit(9, 10, "ccc"), Edit(0, 2, "x"), Edit(5, 5, "(")]) == "x = (a + ccc;"
    assert apply(text, []) == text
    assert apply("ab", [Edit(1, 1, "1"), Edit(1, 1, "2"), Edit(1, 2, "B")]) == "a12B"


@pytest.mark.parametrize(
    "edits",
    [
        [Edit(0, 3, ""), Edit(2, 4, "")],
        [Edit(3, 2, "")],
        [Edit(0, 99, "")],
        [Edit(-1, 2, "")],
        [Edit(1, 2, "")],
    ],
)
def test_wrong_edits_are_defects(edits):
    with pytest.raises(InternalError):
        apply("é = a", edits)


@given(st.text(max_size=40), st.text(max_size=10), st.data())
def test_one_edit_is_a_slice(text, replacement, data):
    if any("\ud800" <= char <= "\udfff" for char in text + replacement):
        return
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    edit = Edit(len(text[:start].encode()), len(text[:end].encode()), replacement)
    assert apply(text, [edit]) == text[:start] + replacement + text[end:]
