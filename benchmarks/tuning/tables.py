"""A space that was measured completely, and what searches it: our tuner, kernel_tuner's, optuna's.

All of them see the same points: those of which arithmetic does not say that they cannot run.
kernel_tuner looks its times up in a file of its own, as it does in its simulation mode.
"""

from __future__ import annotations

import json
import math
import random
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from optiml_magic.model.space import Point, Space
from optiml_magic.tuning.base import Tuner

Values = tuple[int, ...]


@dataclass(frozen=True)
class Table:
    """``seconds`` of every point that may run, by the values of its names; None where it failed."""

    name: str
    space: Space
    starts: tuple[Point, ...]
    seconds: Mapping[Values, float | None]

    @cached_property
    def best(self) -> float:
        return min(s for s in self.seconds.values() if s is not None)

    def key(self, point: Point) -> Values:
        return tuple(point[name] for name in self.space.values)

    @property
    def present(self) -> Values:
        return self.key(self.space.present)


Search = Callable[[Table, int, int], list[Values]]
"""The points that are measured, in order: of a table, with a seed and so many evaluations."""


def of_best(table: Table, asked: Sequence[Values], count: int) -> float:
    """The share of the best time that the best of the first ``count`` of them reaches."""
    found = [s for p in asked[:count] if (s := table.seconds[p]) is not None]
    return table.best / min(found) if found else 0.0


def ours(make: Callable[[Table, int], Tuner]) -> Search:
    """The program as it is counts as the first evaluation, as it does in a search."""

    def search(table: Table, seed: int, count: int) -> list[Values]:
        tuner = make(table, seed)
        point: Point | None = table.space.present
        asked: list[Values] = []
        while point is not None and len(asked) < count:
            asked.append(table.key(point))
            seconds = table.seconds[asked[-1]]
            tuner.tell(point, None if seconds is None else -math.log2(seconds))
            point = tuner.ask()
        return asked

    return search


# -- kernel_tuner


def by_kernel_tuner(strategy: str, *, from_present: bool = False) -> Search:
    """A strategy with its default settings; ``from_present`` gives it the point that ours has."""

    def search(table: Table, seed: int, count: int) -> list[Values]:
        import kernel_tuner
        import numpy as np

        names = list(table.space.values)
        options: dict[str, Any] = {"max_fevals": count}
        if from_present:
            options["x0"] = list(table.present)

        def runs(point: Mapping[str, int]) -> bool:  # it takes no lambda
            return tuple(point[name] for name in names) in table.seconds

        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002  # kernel_tuner draws from there
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, _ = kernel_tuner.tune_kernel(
                "tuned", "__global__ void tuned() {}", 1, [],
                {name: list(values) for name, values in table.space.values.items()},
                restrictions=runs,
                strategy=strategy, strategy_options=options, cache=_cache(table),
                simulation_mode=True, quiet=True, lang="CUDA", seed=seed,
            )  # fmt: skip
        asked = (tuple(int(row[name]) for name in names) for row in found)
        return list(dict.fromkeys(p for p in asked if p in table.seconds))

    return search


_CACHES: dict[int, str] = {}


def _cache(table: Table) -> str:
    """A file as kernel_tuner keeps them."""
    if id(table) not in _CACHES:
        names = list(table.space.values)
        rows = {}
        for point, seconds in table.seconds.items():
            row: dict[str, Any] = dict(zip(names, point, strict=True))
            if seconds is None:
                row |= {"time": "RuntimeFailedConfig", "__error__": "RuntimeFailedConfig"}
            else:
                row["time"] = seconds * 1e3
            rows[",".join(map(str, point))] = row
        held = {
            "device_name": "recorded", "kernel_name": "tuned", "problem_size": 1,
            "tune_params_keys": names, "objective": "time",
            "tune_params": {n: list(v) for n, v in table.space.values.items()},
            "cache": rows,  # it has to be the last
        }  # fmt: skip
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
            json.dump(held, file)
        _CACHES[id(table)] = file.name
    return _CACHES[id(table)]


def forget_caches() -> None:
    for path in _CACHES.values():
        Path(path).unlink(missing_ok=True)
    _CACHES.clear()


# -- optuna


def by_optuna(table: Table, seed: int, count: int) -> list[Values]:
    """TPE. A point that cannot run, or that was asked for before, costs it no evaluation."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    names = list(table.space.values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True)
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial(dict(table.space.present))
    asked: dict[Values, float | None] = {}
    for _ in range(20 * count):
        trial = study.ask()
        point = tuple(
            trial.suggest_categorical(name, list(table.space.values[name])) for name in names
        )
        seconds = table.seconds.get(point)
        if point in table.seconds:
            asked.setdefault(point, seconds)
        worst = max((math.log2(s) for s in asked.values() if s is not None), default=0.0)
        study.tell(trial, worst if seconds is None else math.log2(seconds))
        if len(asked) == count:
            break
    return list(asked)
