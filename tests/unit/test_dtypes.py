"""What a dtype means, told by NumPy itself: fields by name against numbers by offset."""

from __future__ import annotations

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optiml_magic.model.dtypes import (
    BFLOAT16,
    kind,
    numbers,
    part,
    read,
    spelled,
    title,
    widened,
)

PLAIN = st.sampled_from(
    [np.dtype(x) for x in ("f2", "f4", "f8", "i1", "u2", "i4", "u8", "?", "c8", "c16")] + [BFLOAT16]
)


def structs(members: st.SearchStrategy[np.dtype]) -> st.SearchStrategy[np.dtype]:
    fields = st.lists(
        st.tuples(members, st.sampled_from([(), (2,), (2, 3)])), min_size=1, max_size=4
    )
    return st.builds(
        lambda found, align: np.dtype(
            [(f"m{at}", *((d, s) if s else (d,))) for at, (d, s) in enumerate(found)], align=align
        ),
        fields,
        st.booleans(),
    )


DTYPES = st.recursive(PLAIN, structs, max_leaves=5)


@given(dtype=DTYPES)
def test_a_dtype_is_read_as_it_was_spelled(dtype: np.dtype) -> None:
    back = read(spelled(dtype))
    assert (back, back.itemsize) == (dtype, dtype.itemsize)
    assert [(n.path, n.offset, n.dtype) for n in numbers(back)] == [
        (n.path, n.offset, n.dtype) for n in numbers(dtype)
    ]


@given(dtype=DTYPES, seed=st.integers(0, 9))
def test_a_part_is_the_field_of_that_path(dtype: np.dtype, seed: int) -> None:
    array = np.frombuffer(np.random.default_rng(seed).bytes(3 * dtype.itemsize), dtype)
    for number in numbers(dtype):
        field = array
        for step in filter(None, number.path.replace("[", ".[").split(".")):
            # Of an array of structs an element of its first axis.
            field = field[:, int(step[1:-1])] if step.startswith("[") else field[step]
        assert number.dtype == field.dtype.base
        assert part(array, number).tobytes() == np.ascontiguousarray(field).tobytes()


@given(dtype=DTYPES)
def test_the_wide_dtype_has_the_same_numbers(dtype: np.dtype) -> None:
    wide = numbers(widened(dtype))
    assert [n.path for n in wide] == [n.path for n in numbers(dtype)]
    for own, other in zip(numbers(dtype), wide, strict=True):
        letter = kind(own.dtype)
        assert other.dtype == {"f": np.float64, "c": np.complex128}.get(letter, own.dtype)


@pytest.mark.parametrize(
    "dtype",
    ["U3", "O", "M8[s]", ml_dtypes.float8_e4m3fn, "V4", np.dtype([("a", "f4"), ("b", "O")])],
)
def test_what_no_kernel_holds_has_no_numbers(dtype: object) -> None:
    assert numbers(np.dtype(dtype)) == ()


def test_titles_are_what_a_user_types() -> None:
    dtype = np.dtype([("x", "<f4"), ("id", "<i8", (2,)), ("b", BFLOAT16)])
    assert title(dtype) == "struct {x: float32, id: int64[2], b: bfloat16}"
    assert title(np.dtype(">f4")) != title(np.dtype("<f4"))


def test_the_device_host_stays_light() -> None:
    heavy = "{'tree_sitter', 'pydantic_ai', 'IPython', 'openai', 'cupy', 'torch'}"
    code = (
        f"import sys, optiml_magic.devices.host; assert not {heavy} & set(sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
