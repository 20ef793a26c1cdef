"""One output from one place of the inputs: special functions decide."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optiml_magic.bench.entry import Entry, Values, uniform
from optiml_magic.bench.floors import Floor

_AOP = "zjin-lcf/HeCBench aop-cuda/main.cu"
_DIAGONAL = (
    "ScalingIntelligence/KernelBench KernelBench/level1/12_Matmul_with_diagonal_matrices_.py"
)
_HAVERSINE = "zjin-lcf/HeCBench haversine-cuda/main.cu"


def _numbers(rng: np.random.Generator, n: int) -> Values:
    return {"x": uniform(rng, n, low=-3.0, high=3.0), "n": n}


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def _options(rng: np.random.Generator, n: int) -> Values:
    return {
        "price": uniform(rng, n, low=5.0, high=30.0),
        "strike": uniform(rng, n, low=1.0, high=100.0),
        "years": uniform(rng, n, low=0.25, high=10.0),
        "rate": np.float32(0.02),
        "volatility": np.float32(0.30),
        "n": n,
    }


_TAIL = (0.31938153, -0.356563782, 1.781477937, -1.821255978, 1.330274429)


def _cumulative(xp: Any, d: Any) -> Any:
    """The polynomial of Abramowitz and Stegun, 26.2.17."""
    k = 1 / (1 + 0.2316419 * abs(d))
    series = 0.0
    for factor in reversed(_TAIL):
        series = k * (factor + series)
    tail = 0.39894228040143267794 * xp.exp(-0.5 * d * d) * series
    return xp.where(d > 0, 1 - tail, tail)


def _priced(xp: Any, price: Any, strike: Any, years: Any, rate: Any, volatility: Any) -> Any:
    root = xp.sqrt(years)
    above = xp.log(price / strike) + (rate + 0.5 * volatility * volatility) * years
    d1 = above / (volatility * root)
    c1, c2 = _cumulative(xp, d1), _cumulative(xp, d1 - volatility * root)
    discount = strike * xp.exp(-rate * years)
    return price * c1 - discount * c2, discount * (1 - c2) - price * (1 - c1)


def black_scholes(price: Any, strike: Any, years: Any, rate: Any, volatility: Any) -> Any:
    return _priced(np, price, strike, years, rate, volatility)


def _market(rng: np.random.Generator, steps: int, paths: int) -> Values:
    """Of a year; ``beta`` is such that below a price that rises to the strike all exercise."""
    bound = np.linspace(80.0, 100.0, steps)
    terms = (100 - 0.2 * bound + 0.002 * bound**2, 0.2 - 1 - 0.004 * bound, bound * 0 + 0.002)
    scalars = {"start": 100, "strike": 100, "rate": 0.06, "volatility": 0.2, "dt": 1 / steps}
    return {
        "samples": rng.standard_normal((steps, paths), dtype=np.float32),
        "beta": np.stack(terms, axis=1).astype(np.float32),
        **{name: np.float32(value) for name, value in scalars.items()},
        "steps": steps, "paths": paths,
    }  # fmt: skip


def american_put(
    samples: Any, beta: Any, start: Any, strike: Any, rate: Any, volatility: Any, dt: Any
) -> Any:
    growth = (rate - 0.5 * volatility**2) * dt + volatility * np.sqrt(dt) * samples
    walk = start * np.exp(np.cumsum(growth, axis=0))
    payoff = np.maximum(strike - walk, 0)
    held = beta[:, :1] + beta[:, 1:2] * walk + beta[:, 2:] * walk * walk
    cash = payoff[-1]
    for step in range(len(samples) - 2, -1, -1):
        now = (payoff[step] > 0) & (payoff[step] > held[step])
        cash = np.where(now, payoff[step], cash * np.exp(-rate * dt))
    return np.array([cash.mean() * np.exp(-rate * dt)])


def _american(xp: Any, samples: Any, beta: Any, **terms: Any) -> Any:
    """Each path by the first step at which it is exercised."""
    rate, volatility, dt = (float(terms[name]) for name in ("rate", "volatility", "dt"))
    growth = (rate - 0.5 * volatility**2) * dt + volatility * dt**0.5 * samples
    walk = float(terms["start"]) * xp.exp(xp.cumsum(growth, 0))
    payoff = (float(terms["strike"]) - walk).clip(0)
    held = beta[:, :1] + beta[:, 1:2] * walk + beta[:, 2:] * walk * walk
    now = ((payoff > 0) & (payoff > held)) * 1
    now[-1] = 1
    first = now.argmax(0)
    cash = (payoff * (xp.cumsum(now, 0).cumsum(0) == 1)).sum(0)
    return (cash * xp.exp(-rate * dt * (first + 1))).mean().reshape(1)


def _ends(rng: np.random.Generator, n: int) -> Values:
    """Places of a continent."""
    corner, extent = np.array([[35, -10] * 2], np.float32), np.array([[25, 40] * 2], np.float32)
    return {"places": uniform(rng, n, 4, low=0.0) * extent + corner, "n": n}


def _great_circle(xp: Any, places: Any) -> Any:
    lat1, lon1, lat2, lon2 = (places[:, k] * (math.pi / 180) for k in range(4))
    down, across = xp.sin((lat2 - lat1) / 2), xp.sin((lon2 - lon1) / 2)
    return 2 * 6371 * xp.arcsin(xp.sqrt(down**2 + xp.cos(lat1) * xp.cos(lat2) * across**2))


def haversine(places: Any) -> Any:
    return _great_circle(np, places)


def _diagonal(rng: np.random.Generator, n: int, m: int) -> Values:
    return {"a": uniform(rng, n), "b": uniform(rng, n, m), "n": n, "m": m}


TASKS = (
    Entry(
        "gelu", "maps", gelu, _numbers,
        full={"n": 1 << 25}, small={"n": 1 << 16}, checked={"n": 20_003},
        # Twice the tanh of the half is one special function and a handful of fmas.
        floor=lambda n: Floor(8 * n, flops=8 * n, special=n),
        torch=lambda t, x: t.nn.functional.gelu(x, approximate="tanh"),
        libraries={
            "CuPy": lambda cp, x: 0.5 * x * (1 + cp.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))
        },
    ),
    Entry(
        "black_scholes", "maps", black_scholes, _options,
        full={"n": 1 << 24}, small={"n": 1 << 14}, checked={"n": 10_003},
        # sqrt, log, exp twice for the tails and once for the discount; four reciprocals.
        floor=lambda n: Floor(20 * n, flops=60 * n, special=9 * n),
        torch=_priced, libraries={"CuPy": _priced},
    ),
    Entry(
        "american_put", "maps", american_put, _market,
        full={"steps": 64, "paths": 1 << 20}, small={"steps": 16, "paths": 2048},
        checked={"steps": 8, "paths": 1003},
        # What a path is worth is known at the first step that exercises it: none need be kept.
        floor=lambda steps, paths: Floor(
            4 * steps * paths + 12 * steps + 4, flops=9 * steps * paths, special=steps * paths
        ),
        outputs={"price": "f4[1]"},
        torch=_american, libraries={"CuPy": _american}, source=_AOP, opened=True,
    ),
    Entry(
        "haversine", "maps", haversine, _ends,
        full={"n": 1 << 24}, small={"n": 1 << 14}, checked={"n": 10_003},
        # Two sines, two cosines and a root; the arc sine is a polynomial.
        floor=lambda n: Floor(20 * n, flops=30 * n, special=5 * n),
        outputs={"distance": "f4[n]"},
        torch=_great_circle, libraries={"CuPy": _great_circle}, source=_HAVERSINE,
    ),
    Entry(
        "scale_rows", "maps", lambda a, b: a[:, None] * b, _diagonal,
        full={"n": 8192, "m": 4096}, small={"n": 256, "m": 256}, checked={"n": 132, "m": 68},
        floor=lambda n, m: Floor(8 * n * m + 4 * n, flops=n * m),
        torch=lambda _, a, b: a[:, None] * b,
        libraries={"CuPy": lambda _, a, b: a[:, None] * b}, source=_DIAGONAL,
    ),
)  # fmt: skip
