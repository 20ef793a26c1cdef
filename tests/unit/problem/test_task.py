"""What a task is made of, and what it says of what is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optiml_magic.errors import UsageError
from optiml_magic.model.task import Task
from optiml_magic.problem import prepare


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


@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_an_output_of_vectors_that_is_given_as_structures_has_room_for_all_members(kind) -> None:
    vector = {"f4": "float2", "f8": "double2"}[kind]
    text = (
        "#pragma optiml launch k grid(1) block(64)\n"
        f"__global__ void k({vector}* out, int n) {{ if (threadIdx.x < n) out[threadIdx.x] = {{1, 2}}; }}"
    )
    given = np.zeros(33, [("x", kind), ("y", kind)])
    (buffer,) = prepare(Task(text, inputs={"out": given, "n": 33}), seeds=1).first.case.buffers
    assert buffer.array.nbytes == given.nbytes
