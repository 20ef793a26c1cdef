"""One output from one place of the inputs: special functions decide."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.bench.entry import Entry, Values, uniform
from optiml_magic.bench.floors import Floor


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
)  # fmt: skip
