"""What a task is made of, and what it says of what is none."""

from __future__ import annotations

from typing import Any

import pytest

from optiml_magic.errors import UsageError
from optiml_magic.model.task import Task


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"outputs": ("v",)}, "`outputs` of a task is a tuple, not a dict"),
        ({"sizes": [3]}, "`sizes` of a task is a list, not a dict"),
        ({"defines": "N=8"}, "`defines` of a task is a str, not a dict"),
    ],
)
def test_what_is_no_dict_is_said_with_an_example(given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        Task("", **given)
    assert raised.value.fix.startswith(f"write {next(iter(given))}={{")


def test_one_name_needs_no_tuple() -> None:
    alone: Any = "out"
    assert Task("", inout=alone).inout == ("out",)
