"""Neighbouring items that update one element: added up by one thread."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.runs import in_runs

from .running import same
from .shapes import applied, kernel, refused

LINE = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, const int* at, {type}* out, int n, int m) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {body}
}}
"""
PLANE = """\
#pragma optiml launch k grid(cdiv(m, 16), cdiv(n, 4)) block(16, 4)
__global__ void k(const float* x, const int* at, float* out, int n, int m) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= m) return;
    float v = x[i * m + j];
    atomicAdd(&out[(at[i] & 7) * m + j], v * v);
}
"""


@pytest.mark.parametrize("items", [2, 8])
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("float", "if (i < n) atomicAdd(&out[at[i] & 7], x[i]);"),
        ("float", "if (i >= n) return; int a = (at[i] & 15) / 2; float v = x[i] * 2; atomicAdd(out + a, v - 1);"),
        ("float", "if (i >= n || x[i] < 0) return; if (at[i] & 1) atomicAdd(&out[at[i] & 7], x[i]); else atomicAdd(&out[7 - (at[i] & 7)], 1.0f);"),
        ("int", "if (i < n) { atomicMax(&out[at[i] & 7], i); }"),
        ("int", "if (i < n) atomicSub(&out[at[i] & 3], (int)x[i] + i);"),
    ],
)  # fmt: skip
def test_they_are_added_up(kind: str, body: str, items: int) -> None:
    text = LINE.format(type=kind, body=body)
    made = applied(in_runs(kernel(text), "x", items))
    assert "_run" in made.program.text
    out = ("i4", "8") if kind == "int" else ("8",)
    shapes = {"x": ("n",), "at": ("i4", "n"), "out": out}
    for n in 1, 63, 301:
        same(text, made, shapes, {"n": n, "m": 1}, rounds=kind == "float")


def test_rows_of_a_plane_are_neighbours_along_y() -> None:
    made = applied(in_runs(kernel(PLANE), "y", 4))
    shapes = {"x": ("n", "m"), "at": ("i4", "n"), "out": ("8", "m")}
    for n, m in (1, 1), (37, 19):
        same(PLANE, made, shapes, {"n": n, "m": m}, rounds=True)


@pytest.mark.parametrize(
    "update",
    [
        "atomicAdd(&out[j], v * v);",
        "if (v > 0.5f) atomicAdd(&out[m - 1 - j], v * at[i]);",
        "atomicAdd(&out[j], v); atomicAdd(&out[m + j], v * v);",
        "atomicAdd(&out[j], v); atomicAdd(&out[(at[i] & 7) * m + j], v * v);",
        "if (at[i] & 1) atomicAdd(&out[j], v); else atomicAdd(&out[j], 1.0f);",
    ],
)
def test_rows_of_a_column_are_one_run(update: str) -> None:
    text = PLANE.replace("atomicAdd(&out[(at[i] & 7) * m + j], v * v);", update)
    made = applied(in_runs(kernel(text), "y", 8))
    assert "float* out_place = 0;" in made.program.text
    shapes = {"x": ("n", "m"), "at": ("i4", "n"), "out": ("8", "m")}
    for n, m in (1, 1), (37, 19):
        same(text, made, shapes, {"n": n, "m": m}, rounds=True)


@pytest.mark.parametrize("place", ["i", "i / 3 + j", "0", "i % 2 * m + j"])
def test_columns_whose_place_moves_with_the_row_are_none(place: str) -> None:
    text = PLANE.replace("(at[i] & 7) * m + j", place)
    assert refused(in_runs(kernel(text), "y"))[0] == "no data say which element an item updates"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("if (i < n) atomicAdd(&out[i / 4], x[i]);", "no data say which element an item updates"),
        ("if (i < n) out[at[i] & 7] = x[i];", "no data say which element an item updates"),
        ("if (i < n) for (int k = 0; k < m; k++) atomicAdd(&out[at[i] & 7], x[i]);",
         "an item updates more than once"),
        ("for (; i < n; i += blockDim.x * gridDim.x) atomicAdd(&out[at[i] & 7], x[i]);",
         "its threads take elements a grid apart as it is"),
        ("if (i < n) { float old = atomicAdd(&out[at[i] & 7], x[i]); out[7] = old; }",
         "`out` is touched in another way as well"),
        ("if (i < n) { atomicAdd(&out[at[i] & 7], x[i]); __syncthreads(); }",
         "its threads wait for each other"),
        ("if (i < n) { atomicAdd(&out[at[i] & 7], out[0]); }", "`out` is touched in another way as well"),
        ("atomicAdd(&out[at[i] & 7], x[i]);", "how many of its threads do something is not certain"),
    ],
)  # fmt: skip
def test_others_stay(body: str, why: str) -> None:
    found = refused(in_runs(kernel(LINE.format(type="float", body=body)), "x"))
    assert found[0] == why


def test_places_that_a_search_finds_are_not_alike() -> None:
    search = "int b = 0; while (b < 7 && v > at[b]) b++;\n    "
    text = PLANE.replace(
        "atomicAdd(&out[(at[i] & 7) * m + j]", f"{search}atomicAdd(&out[j * 8 + b]"
    )
    assert refused(in_runs(kernel(text), "y"))[0] == "no data say which element an item updates"
