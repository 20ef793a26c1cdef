"""Loops that combine rows with columns, computed by tiles."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.blocked import Tile, block_outputs

from .shapes import PLANE, applied, kernel, refused

TILE = Tile(32, 32, 8, 4, 4)
LOOP = "for (int k = 0; k < d; ++k) s += %s;"


def blocked(inside: str) -> Kernel | Refused:
    return block_outputs(kernel(PLANE % inside), 0, TILE)


@pytest.mark.parametrize(
    ("value", "along"),
    [
        ("a[i * d + k] * b[k * n + j]", ("at % BK", "at / BN")),
        ("a[k * m + i] * b[j * d + k]", ("at / BM", "at % BK")),
        ("(a[i * d + k] - b[j * d + k]) * (a[i * d + k] - b[j * d + k])", ("at % BK", "at % BK")),
        ("fabsf(a[i * d + k] - b[j * d + k])", ("at % BK", "at % BK")),
    ],
)
def test_neighbouring_threads_bring_neighbouring_elements(
    value: str, along: tuple[str, str]
) -> None:
    text = applied(blocked(LOOP % value)).program.text
    fetch = text[text.index("fetch = ") : text.index("put = ")]
    assert [line.split(" + ", 1)[1].split(",")[0] for line in fetch.splitlines()
            if "const int deep" in line] == list(along)  # fmt: skip
    assert "grid(cdiv(n, BN), cdiv(m, BM)) block(BM / TM * (BN / TN))" in text


def test_tiles_that_a_block_has_no_room_for_are_no_values_of_it() -> None:
    program = applied(blocked(LOOP % "a[i * d + k] * b[k * n + j]")).program
    points = list(program.legal_values())
    bytes_ = [8 * p["BK"] * (p["BM"] + 4 + p["BN"] + 4) for p in points]
    assert 40 * 1024 < max(bytes_) <= 48 * 1024


def test_a_flat_index_is_cut_into_rows_and_columns() -> None:
    text = (
        "#pragma optiml launch k grid(cdiv(m * n, 256)) block(256)\n"
        "__global__ void k(const float* a, const float* b, float* out, int m, int n, int d) {\n"
        "    int t = blockIdx.x * blockDim.x + threadIdx.x; if (t >= m * n) return;\n"
        "    int i = t / n, j = t % n; float s = 0.0f;\n"
        "    for (int k = 0; k < d; ++k) s += a[i * d + k] * b[k * n + j];\n    out[t] = s;\n}\n"
    )
    found = applied(block_outputs(kernel(text), 0, TILE)).program.text
    assert "grid(cdiv(n, BN), cdiv(m, BM))" in found
    assert "if (out_col >= n) continue;" in found


def test_indices_with_names_are_not_asked_for_again() -> None:
    body = "{ int at = i * d + k; const int to = at - i * d; s += a[at] * b[to * n + j]; }"
    found = applied(blocked(f"for (int k = 0; k < d; ++k) {body}")).program.text
    assert "sum_tile" not in found
    assert "s_tile[own_row][own_col] += a_now[own_row] * b_now[own_col];" in found
    assert "int to" not in found


@pytest.mark.parametrize(
    ("inside", "reason"),
    [
        (LOOP % "a[i * d + k] * a[i * d + k]", "it combines no rows with columns"),
        (LOOP % "a[i * d + k] * b[i * n + j]", "a load"),
        (LOOP % "a[i * d + k] * b[k * n + j] + 1.0f", "a round without elements would add"),
        (LOOP % "expf(a[i * d + k] - b[j * d + k])", "a round without elements would add"),
        (LOOP % "a[i * d + k] * b[k * n + j] * k", "a round asks for its number"),
        ("for (int k = 0; k < d; ++k) if (a[i * d + k] > 0) s += a[i * d + k] * b[k * n + j];",
         "what the loop does depends on more"),
        ("for (int k = 0; k < d; ++k) { s += a[i * d + k] * b[k * n + j]; if (s > 9) break; }",
         ""),
        ("for (int q = 0; q < 2; ++q) for (int k = 0; k < d; ++k) s += a[i * d + k] * b[k * n + j];",
         ""),
    ],
)  # fmt: skip
def test_what_is_no_such_product_is_refused(inside: str, reason: str) -> None:
    assert refused(blocked(inside))[0].startswith(reason)


def test_outputs_that_no_guard_bounds_are_refused() -> None:
    text = (PLANE % (LOOP % "a[i * d + k] * b[k * n + j]")).replace(
        "if (i >= m || j >= n)", "if (0)"
    )
    assert "do not bound the outputs" in refused(block_outputs(kernel(text), 0, TILE))[0]


def test_a_kernel_that_changes_a_parameter_is_refused() -> None:
    text = PLANE % ("d /= 2; " + LOOP % "a[i * d + k] * b[k * n + j]")
    assert refused(block_outputs(kernel(text), 0, TILE))[0] == "it changes its parameter `d`"
