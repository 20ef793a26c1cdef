"""Whole numbers that get new values are a local for each of them."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.renewed import renewed

from .running import same
from .shapes import ROWS, applied, kernel, refused

SHAPES = {"a": ("h", "w"), "at": ("i4", "h"), "out": ("h", "w")}


@pytest.mark.parametrize(
    ("body", "made"),
    [
        ("int t = r; int y = t % 3; t /= 3; int x = t % (w + 1); t /= w + 1; out[r * w] = a[r * w] + y + x + t;",
         ["int t_2 = t / 3;", "t_2 % (w + 1)", "int t_3 = t_2 / (w + 1);", "+ t_3"]),
        ("for (int k = 0; k < w; k++) { unsigned t = k; t = t * 5 + 1; if (t % 2) { out[r * w + k] = t; continue; } t -= 1; out[r * w + k] = a[r * w + k] * t; }",
         ["unsigned t_2 = t * 5 + 1;", "if (t_2 % 2)", "unsigned t_3 = t_2 - 1;"]),
        ("int t = r, u = t + 1; t += u; u = t; { int t = 7; out[r * w] = t + u; } out[r * w] += t;",
         ["u = t + 1", "int t_2 = t + u;", "int u_2 = t_2;", "int t = 7;"]),
        ("short t = r; t *= 300; t = t + 1; out[r * w] = t;", ["short t_2 = t * 300;"]),
    ],
)  # fmt: skip
def test_each_value_has_a_name(body: str, made: list[str]) -> None:
    text = ROWS % body
    found = renewed(kernel(text))
    flat = " ".join(applied(found).program.text.split())
    assert all(part in flat for part in made), flat
    for h, w in (1, 1), (300, 7):
        same(text, found, SHAPES, {"h": h, "w": w})


@pytest.mark.parametrize(
    "body",
    [
        "int t = r; if (w > 3) t /= 2; out[r * w] = t;",
        "int t = r; for (int k = 0; k < w; k++) t += k; t *= 2; out[r * w] = t;",
        "int t = r; int& u = t; t += 1; u += 1; out[r * w] = t;",
        "int t = r; int* u = &t; t += 1; *u += 1; out[r * w] = t;",
        "int t = r; t = t++ + 1; out[r * w] = t;",
        "float t = a[r * w]; t *= 2; out[r * w] = t;",
    ],
)
def test_others_stay(body: str) -> None:
    reason = "no whole number gets new values beside its declaration"
    assert refused(renewed(kernel(ROWS % body)))[0] == reason
