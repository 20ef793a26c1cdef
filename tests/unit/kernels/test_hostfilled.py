"""What loops of the host fill arrays of whole numbers with, which kernels take for indices."""

from __future__ import annotations

import numpy as np
import pytest

from optiml_magic.kernels.hostcode import drop_host_code
from optiml_magic.model.task import Task
from optiml_magic.problem import prepare
from optiml_magic.problem.filling import as_filled
from optiml_magic.source.expressions import parse_expression

PICKS = (
    "__global__ void k(const float* x, const int* at, float* y, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[at[i]]; }\n"
)
HOST = (
    "int main() { const int n = 64, c = 10; int* h = (int*)malloc(n * sizeof(int)); float *x, *y; int* d;\n"
    "{fill}\n cudaMalloc(&x, n * sizeof(float)); cudaMalloc(&y, n * sizeof(float));"
    " cudaMalloc(&d, n * sizeof(int)); cudaMemcpy(d, h, n * sizeof(int), cudaMemcpyHostToDevice);\n"
    " k<<<1, 64>>>(x, d, y, n); {after} }\n"
)


def filling(fill: str, after: str = "") -> str | None:
    _, notes = drop_host_code(PICKS + HOST.replace("{fill}", fill).replace("{after}", after))
    return next((note.extent for note in notes if note.kind == "filled"), None)


@pytest.mark.parametrize(
    ("fill", "found"),
    [
        ("for (int i = 0; i < n; i++) h[i] = rand() % c;", "RANDOM % 10"),
        ("for (int i = 0; i < n; ++i) { h[i] = (int)(rand() % (n / 2)) + 1; }", "RANDOM % (64 / 2) + 1"),
        ("for (int i = 0; i < n; i++) h[i] = n - 1 - i;", "64 - 1 - INDEX"),
        ("for (int r = 0; r < 8; r++) for (int j = 0; j < 8; j++) h[r * 8 + j] = std::rand() % c;",
         "RANDOM % 10"),
        (("std::uniform_int_distribution<int> die(2, c - 1);"
          "for (int i = 0; i < n; i++) h[i] = die(engine);"), "2 + RANDOM % (9 - 2 + 1)"),
        ("for (int r = 0; r < 8; r++) for (int j = 0; j < 8; j++) h[r * 8 + j] = j;", None),
        ("for (int i = 0; i < n; i++) h[i] = read();", None),
        ("for (int i = 0; i < n; i++) h[i] = rand() % limit;", None),
        ("for (int i = 0; i < n; i++) h[i] = i; h[0] = 3;", None),
        ("for (int i = 0; i < n; i++) h[i] = 0; load(h, n);", None),
        ("for (int i = 0; i < n; i++) h[i] += i;", None),
    ],
)  # fmt: skip
def test_what_a_loop_fills_an_array_with_is_read(fill: str, found: str | None) -> None:
    whole = parse_expression(found) if found is not None else None
    text = filling(fill)
    assert (parse_expression(text) if text is not None else None) == whole


def test_what_becomes_of_it_after_the_launch_is_no_matter() -> None:
    fill = "for (int i = 0; i < n; i++) h[i] = i;"
    assert filling(fill, "check(h); cudaMemcpy(h, y, 4, cudaMemcpyDeviceToHost);") == "INDEX"


@pytest.mark.parametrize(
    ("text", "dtype", "found"),
    [
        ("INDEX", "<i4", [0, 1, 2, 3]),
        ("63 - 2 * INDEX", "<i8", [63, 61, 59, 57]),
        ("(INDEX - 2) / 2", "<i4", [-1, 0, 0, 0]),
        ("(INDEX - 3) % 2", "<i4", [-1, 0, -1, 0]),
        ("INDEX < 2 ? 7 : INDEX", "|u1", [7, 7, 2, 3]),
        ("5", "<u4", [5, 5, 5, 5]),
        ("100 * INDEX", "|i1", None),
        ("INDEX / 0", "<i4", None),
        ("1 / INDEX", "<i4", None),
        ("INDEX", "<f4", None),
    ],
)
def test_elements_are_computed_as_the_host_would(
    text: str, dtype: str, found: list[int] | None
) -> None:
    made = as_filled(parse_expression(text), np.dtype(dtype), 4, 0)
    assert (made.tolist() if made is not None else None) == found
    assert made is None or made.dtype == np.dtype(dtype)


def test_random_numbers_stay_in_their_range() -> None:
    made = as_filled(parse_expression("3 + RANDOM % 4"), np.dtype("<i4"), 1000, 1)
    assert made is not None
    assert sorted({*made.tolist()}) == [3, 4, 5, 6]


def test_indices_that_the_host_makes_need_no_array() -> None:
    fill = "for (int i = 0; i < n; i++) h[i] = n - 1 - i;"
    text = PICKS + HOST.replace("{fill}", fill).replace("{after}", "")
    problem = prepare(Task(text), seeds=1)
    assert problem.instances[0].values["at"].tolist() == [*range(63, -1, -1)]
    assert any("filled as on line 4: `h[i] = n - 1 - i`" in note for note in problem.notes)


def test_what_is_only_added_to_starts_from_zeros() -> None:
    text = (
        "__global__ void k(const float* x, float* sum) { atomicAdd(sum, x[threadIdx.x]); }\n"
        "int main() { float *x, *s; cudaMalloc(&x, 64 * sizeof(float)); cudaMalloc(&s, 4);"
        " float zero = 0; cudaMemcpy(s, &zero, 4, cudaMemcpyHostToDevice); k<<<1, 64>>>(x, s); }\n"
    )
    problem = prepare(Task(text), seeds=1)
    assert problem.instances[0].values["sum"].tolist() == [0.0]
    assert any(note.startswith("`sum` starts from zeros") for note in problem.notes)
