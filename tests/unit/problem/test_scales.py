"""Scales and signs: what they change, and what they leave alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from optiml_magic.devices.maps import Map
from optiml_magic.problem.scales import (
    INTEGERS,
    SCALES,
    SPARSE,
    has_float_scalars,
    maps,
    rescaled,
    scaled,
)

VALUES = {
    "x": np.linspace(1, 2, 64, dtype=np.float32),
    "b": np.linspace(1, 2, 64).astype(bfloat16),
    "ones": np.ones(64),
    "index": np.arange(64, dtype=np.int32),
    "alpha": np.float32(2),
    "s": np.array([(1.5, 7)] * 4, [("w", "f4"), ("id", "i4")]),
}


def changed(values: dict[str, Any], change: Map) -> dict[str, np.ndarray]:
    return scaled(values, maps(values, values.keys(), change))


def of(name: str) -> dict[str, np.ndarray]:
    return changed(VALUES, SCALES[name])


def test_factors_and_signs() -> None:
    assert np.array_equal(of("inputs x 3")["x"], 3 * VALUES["x"])
    assert np.array_equal(of("inputs negated")["b"], -VALUES["b"])
    assert of("inputs x 0.01")["b"].dtype == bfloat16


def test_signs_are_mixed_and_values_that_are_all_alike_are_not_any_more() -> None:
    found = of("inputs of mixed signs")
    assert np.array_equal(np.abs(found["x"]), VALUES["x"])
    assert 10 < np.count_nonzero(found["x"] < 0) < 54
    assert len(np.unique(found["ones"])) == 64


def test_integers_scalars_and_the_original_stay() -> None:
    found = of("inputs x 3")
    assert np.array_equal(found["index"], VALUES["index"])
    assert found["alpha"] == 2
    assert found["s"]["w"].tolist() == [4.5] * 4
    assert found["s"]["id"].tolist() == [7] * 4
    assert VALUES["x"][0] == 1


def test_without_floats_there_is_nothing_to_scale() -> None:
    assert not maps(VALUES, ["index", "alpha"], SCALES["inputs x 3"])
    assert list(maps(VALUES, ["index", "x"], SCALES["inputs x 3"])) == ["x"]


def test_ten_thousand_times_and_below_zero() -> None:
    assert np.array_equal(of("inputs x 10000")["x"], 1e4 * VALUES["x"])
    assert np.array_equal(of("inputs x 10000, all negative")["x"], -1e4 * VALUES["x"])


def test_magnitudes_are_spread_over_four_decades_and_none_grows() -> None:
    ratios = of("inputs of mixed magnitudes")["x"] / VALUES["x"]
    assert 0.9e-4 < ratios.min() < 1e-3
    assert 0.1 < ratios.max() <= 1.0


def test_float_scalars_and_those_in_structs_are_rescaled_and_nothing_else() -> None:
    struct = np.array((3.0, 5), [("w", "f4"), ("id", "i4")])[()]
    values = {**VALUES, "beta": 0.5, "flag": True, "n": 7, "p": struct}
    found = rescaled(values, ["alpha", "beta", "flag", "n", "p"])
    assert found["alpha"] == np.float32(0.7) * np.float32(2)
    assert type(found["alpha"]) is np.float32
    assert found["beta"] == 0.35
    assert (found["flag"], found["n"]) == (True, 7)
    assert (found["p"]["w"], found["p"]["id"]) == (np.float32(0.7) * np.float32(3), 5)
    assert found["x"] is VALUES["x"]
    assert has_float_scalars(values, ["p"])
    assert not has_float_scalars(values, ["flag", "n"])


def test_zeros_and_ties() -> None:
    zeros = changed(VALUES, SPARSE["a third of the inputs 0"])
    assert 8 < np.count_nonzero(zeros["x"] == 0) < 40
    assert set(zeros["x"]) - {0} <= set(VALUES["x"])
    few = changed(VALUES, SPARSE["inputs of few values"])
    assert set(few["x"]) == {1.0, 2.0}
    assert few["b"].dtype == bfloat16


def test_integers() -> None:
    values = {
        "i": np.arange(1, 65, dtype=np.int32),
        "b": np.arange(64, dtype=np.uint8),
        "x": VALUES["x"],
    }

    def found(name: str) -> dict[str, np.ndarray]:
        return changed(values, INTEGERS[name])

    signed = found("integers of both signs")
    assert np.array_equal(np.abs(signed["i"]), values["i"])
    assert (signed["i"] < 0).any()
    assert np.array_equal(signed["b"], values["b"])
    large = found("large integers")
    assert large["i"].max() > 1 << 16
    assert large["i"].min() < -(1 << 16)
    assert large["b"].dtype == np.uint8
    alike = found("integers all alike")
    assert len(set(alike["i"])) == 1
    assert alike["i"][0] in values["i"]
    assert all(np.array_equal(one["x"], values["x"]) for one in (signed, large, alike))
