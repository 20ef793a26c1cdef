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
        ({"outputs": {"v": 4}}, "`v` in `outputs` of a task has the type int; it has to be text"),
    ],
)
def test_what_is_no_dict_is_said_with_an_example(given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        Task("", **given)
    assert raised.value.fix.startswith(f"write {next(iter(given))}={{")


@pytest.mark.parametrize("dtype", ["f4", "u1", "i8", "f2", "?"])
def test_an_array_specifies_an_output(dtype: str) -> None:
    text = "__global__ void k(const float* x, T* out, int n) { int i = threadIdx.x; if (i < n) out[i] = x[i] > 0; }"
    kind = {"f4": "float", "u1": "unsigned char", "i8": "long long", "f2": "__half", "?": "bool"}[
        dtype
    ]
    text = "#include <cuda_fp16.h>\n#pragma optiml launch k grid(1) block(64)\n" + text.replace(
        "T*", f"{kind}*"
    )
    given: Any = {"out": np.zeros((3, 11), dtype)}
    inputs = {"x": np.ones(33, "f4"), "n": 33}
    (_, buffer) = prepare(Task(text, inputs=inputs, outputs=given), seeds=1).first.case.buffers
    assert (buffer.array.shape, buffer.array.dtype) == ((3, 11), np.dtype(dtype))


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
