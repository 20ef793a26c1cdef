"""Values that a local of a round is given one after the other, each as a local of its own."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.blocked import block_outputs
from optiml_magic.kernels.primitives.renewed import renewed
from optiml_magic.kernels.primitives.tile_layout import Tile

from .running import same, same_of_many
from .shapes import PLANE, applied, kernel, refused

SHAPES = {"a": ("m", "d"), "b": ("d", "n"), "out": ("m", "n")}
SIZES = {"m": 19, "n": 35, "d": 7}
LOOP = "for (int k = 0; k < d; ++k) { %s }"
ACTIVATED = "float v = a[i * d + k]; v = v > 0.0f ? v : 0.0f; s += v * b[k * n + j];"


def looped(inside: str) -> str:
    return PLANE % (LOOP % inside)


@pytest.mark.parametrize(
    ("inside", "locals_"),
    [
        (ACTIVATED, 2),
        ("float v = a[i * d + k]; v -= 0.5f - s * 0.0f; v *= v; s += v * b[k * n + j];", 3),
        ("int v = 3, w = 4; v += w; w = v * 2; v /= 2 + w; s += v * a[i * d + k];", 5),
        ("unsigned char v = 250; v += 10; s += v;", 2),
        ("float v = a[i * d + k]; v += 1.0f; if (v > 1.2f) v = 0.0f; s += v;", 2),
        ("float v = a[i * d + k]; if (v > 0.2f) continue; v = 1.0f - v; s += v;", 2),
    ],
)
def test_each_value_is_a_local(inside: str, locals_: int) -> None:
    text = looped(inside)
    made = renewed(kernel(text))
    body = applied(made).program.text.split("++k")[1]
    names = ("float v", "int v", "unsigned char v", "int w", ", w = ")
    assert sum(body.count(name) for name in names) == locals_
    same_of_many(text, made, SHAPES, SIZES)


@pytest.mark.parametrize(
    "inside",
    [
        "float v = a[i * d + k]; if (v > 0.0f) v = 0.0f; s += v;",
        "float v = a[i * d + k]; float* p = &v; v = 1.0f; s += *p;",
        "float v = a[i * d + k]; float& r = v; v = 1.0f; s += r;",
        "float v; v = a[i * d + k]; s += v;",
        "float v = a[i * d + k]; s += v = 2.0f;",
        "static int v = 0; v = v + 1; s += v;",
        "float v = 0.0f; for (int e = 0; e < 2; ++e) v += a[i * d + k]; s += v;",
    ],
)
def test_others_stay(inside: str) -> None:
    assert "another value" in refused(renewed(kernel(looped(inside))))[0]


def test_elements_that_are_activated_as_they_are_loaded_are_those_of_a_product() -> None:
    text = looped(ACTIVATED)
    tile = Tile(16, 32, 8, 4, 4, 1)
    assert "more than its sums" in refused(block_outputs(kernel(text), 0, tile))[0]
    made = block_outputs(applied(renewed(kernel(text))), 0, tile)
    assert isinstance(made, Kernel)
    same(text, made, SHAPES, SIZES, rounds=True)
