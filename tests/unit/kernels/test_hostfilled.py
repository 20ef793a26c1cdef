"""What loops of the host fill arrays of whole numbers with, which kernels take for indices."""

from __future__ import annotations

import numpy as np
import pytest

from optiml_magic.errors import UsageError
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
        ("for (int r = 0; r < 8; r++) for (int j = 0; j < 8; j++) h[r * 8 + j] = j;", "INDEX % 8"),
        ("for (int r = 0; r < 8; r++) for (int j = 0; j < 8; j++) h[r * c + j] = r + j;",
         "INDEX / 10 + INDEX % 10"),
        ("h[0] = 0; for (int i = 0; i < n - 1; i++) h[i + 1] = h[i] + c / 2;", "0 + 5 * INDEX"),
        ("h[0] = 0; for (int i = 1; i < n; i++) h[i] = h[i - 1] + c;", "0 + 10 * INDEX"),
        ("h[0] = 0; for (int i = 0; i < n - 1; i++) h[i + 1] = h[i] + rand() % 3;", None),
        ("std::iota(h, h + n, 3);", None),
        ("std::mt19937 rng(1); for (int i = 0; i < n; i++) h[i] = rng() % c;", "RANDOM % 10"),
        ("for (int i = 0; i < n; i++) if (i % 2) h[i] = 1;", None),
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


HELPERS = (
    "void pick(int* p, int count, int limit) { for (int i = 0; i < count; i++) p[i] = rand() % limit; }\n"
    "void twice(int* p, int m) { pick(p, m, m * 2); }\n"
)


@pytest.mark.parametrize(
    ("fill", "found"),
    [
        ("pick(h, n, c);", "RANDOM % 10"),
        ("twice(h, 7);", "RANDOM % 14"),
        ("pick(h, n, c); h[3] = 4;", None),
        ("pick(h, n, c); pick(h, n, 5);", None),
        ("pick(h, n, ask());", None),
    ],
)
def test_what_a_function_fills_an_array_with_is_read(fill: str, found: str | None) -> None:
    _, notes = drop_host_code(PICKS + HELPERS + HOST.replace("{fill}", fill).replace("{after}", ""))
    text = next((note.extent for note in notes if note.kind == "filled"), None)
    whole = parse_expression(found) if found is not None else None
    assert (parse_expression(text) if text is not None else None) == whole


EDGES = (
    "struct Edge { int u; int v; float w; };\n"
    "__global__ void k(const Edge* e, const int2* p, const float* x, float* y, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) y[i] = x[e[i].u] + x[e[i].v] * e[i].w + x[p[i].x] + x[p[i].y]; }\n"
    "int main() { const int n = 64; float *x, *y; Edge* e; int2* p;\n"
    "cudaMallocManaged(&x, n * sizeof(float)); cudaMallocManaged(&y, n * sizeof(float));\n"
    "cudaMallocManaged(&e, n * sizeof(Edge)); cudaMallocManaged(&p, n * sizeof(int2));\n"
    "for (int i = 0; i < n; i++) { e[i].u = i; {v} p[i] = make_int2(n - 1 - i, 5); }\n"
    "k<<<1, 64>>>(e, p, x, y, n); }\n"
)


@pytest.mark.parametrize("limit", ["atoi(argv[1])", "10"])
def test_who_is_asked_for_indices_is_told_so(limit: str) -> None:
    host = HOST.replace("main()", "main(int argc, char** argv)").replace("c = 10", f"c = {limit}")
    host = host.replace("{fill}", "load(h, n);").replace("{after}", "")
    with pytest.raises(UsageError, match="no array named `at`") as error:
        prepare(Task(PICKS + host), seeds=1)
    assert "it has 64 elements and may hold indices" in error.value.fix
    assert "argv" not in error.value.fix


def test_members_of_elements_are_filled_as_the_host_does() -> None:
    found = prepare(Task(EDGES.replace("{v}", "e[i].v = rand() % 3;")), seeds=1).instances[0].values
    assert found["e"]["u"].tolist() == [*range(64)]
    assert set(found["e"]["v"].tolist()) == {0, 1, 2}
    assert 0 < found["e"]["w"].max() < 1
    assert found["p"].reshape(-1)[:4].tolist() == [63, 5, 62, 5]


def test_elements_of_which_a_whole_number_is_not_known_are_asked_for() -> None:
    with pytest.raises(UsageError, match="no array named `e`"):
        prepare(Task(EDGES.replace("{v}", "")), seeds=1)


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
