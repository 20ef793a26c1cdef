"""Markets: paths, volatilities, bonds, risk."""

from pathlib import Path

import numpy as np
from numpy.random import Generator

from optiml_magic import Task
from optiml_magic.bench.entry import Values, uniform

HERE = Path(__file__).parent
QUOTE = np.dtype([("bid", np.float32), ("ask", np.float32)])


def paths(rng: Generator, paths: int, steps: int) -> Values:
    return {
        "noise": uniform(rng, paths, steps, 16, low=-0.1, high=0.1),
        "speed": uniform(rng, 16, low=0.1, high=2),
        "vol": uniform(rng, 16, low=0.005, high=0.02),
        "dt": 1 / 252,
        "paths": paths,
        "steps": steps,
    }


def bonds(rng: Generator, bonds: int) -> Values:
    months = 360
    return {
        "discount": (0.997 ** np.arange(months + 1)).astype(np.float32),
        "first": rng.integers(1, 7, bonds, np.int32),
        "coupon": uniform(rng, bonds, low=0.5, high=4),
        "bonds": bonds,
        "months": months,
    }


def forecasts(rng: Generator, series: int, steps: int) -> Values:
    return {
        "forecast": uniform(rng, series, steps, 24),
        "actual": uniform(rng, series, steps),
        "eta": 0.1,
        "series": series,
        "steps": steps,
    }


def prices(rng: Generator, assets: int, days: int) -> Values:
    walk = uniform(rng, assets, days).cumsum(axis=1) * np.float32(0.01)
    return {"price": np.exp(walk), "assets": assets, "days": days}


def trades(rng: Generator, trades: int) -> Values:
    return {
        "nominal": uniform(rng, trades, low=-1000, high=1000),
        "currency": rng.integers(0, 180, trades, np.uint8),
        "quotes": uniform(rng, 180, 2, low=0.1, high=2).view(QUOTE)[:, 0],
        "trades": trades,
    }


def closes(rng: Generator, assets: int, days: int) -> Values:
    made = prices(rng, assets, days)
    return {"close": made["price"], "assets": assets, "days": days}


tasks = [
    Task(
        HERE / "factor_paths.cu",
        inputs=paths,
        sizes={"paths": 4096, "steps": 252},
        verify_sizes={"paths": 19, "steps": 30},
        outputs={"account": "f4[paths]"},
    ),
    Task(
        HERE / "rolling_volatility.cu",
        inputs=lambda rng, assets, days: {
            "ret": uniform(rng, assets, days, low=-0.03, high=0.03),
            "assets": assets,
            "days": days,
        },
        sizes={"assets": 1000, "days": 5040},
        verify_sizes={"assets": 5, "days": 501},
        outputs={"vol": "f4[assets, days]"},
    ),
    Task(
        HERE / "sharpe.cu",
        inputs=lambda rng, strategies, days: {
            "pnl": uniform(rng, strategies, days, low=-0.9),
            "riskless": 0.0001,
            "strategies": strategies,
            "days": days,
        },
        sizes={"strategies": 20000, "days": 1260},
        verify_sizes={"strategies": 35, "days": 101},
        outputs={"ratio": "f4[strategies]"},
    ),
    Task(
        HERE / "coupons.cu",
        inputs=bonds,
        sizes={"bonds": 1 << 18},
        verify_sizes={"bonds": 301},
        outputs={"value": "f4[bonds]"},
    ),
    Task(
        HERE / "entropic_risk.cu",
        inputs=lambda rng, portfolios, scenarios: {
            "pnl": uniform(rng, portfolios, scenarios, low=-3, high=3),
            "aversion": 2.0,
            "portfolios": portfolios,
            "scenarios": scenarios,
        },
        sizes={"portfolios": 8192, "scenarios": 2000},
        verify_sizes={"portfolios": 19, "scenarios": 121},
        outputs={"risk": "f4[portfolios]"},
        atol=1e-5,  # of small losses the logarithm of a mean near 1
    ),
    Task(
        HERE / "log_returns.cu",
        inputs=prices,
        sizes={"assets": 8192, "days": 2048},
        verify_sizes={"assets": 11, "days": 77},
        outputs={"variance": "f4[assets]"},
    ),
    Task(
        HERE / "expert_advice.cu",
        inputs=forecasts,
        sizes={"series": 1024, "steps": 256},
        verify_sizes={"series": 9, "steps": 33},
        outputs={"combined": "f4[series, steps]"},
    ),
    Task(
        HERE / "records.cu",
        inputs=closes,
        sizes={"assets": 8000, "days": 1260},
        verify_sizes={"assets": 33, "days": 90},
        outputs={"highs": "i4[assets]", "last": "i4[assets]"},
    ),
    Task(
        HERE / "to_euros.cu",
        inputs=trades,
        sizes={"trades": 1 << 24},
        verify_sizes={"trades": 3000},
        outputs={"euros": "f4[trades]"},
    ),
    Task(
        HERE / "breakout.cu",
        inputs=lambda rng, assets, days: {
            "high": uniform(rng, assets, days, low=1, high=2),
            "low": uniform(rng, assets, days, low=0, high=1),
            "close": uniform(rng, assets, days, low=0.5, high=1.5),
            "assets": assets,
            "days": days,
        },
        sizes={"assets": 2000, "days": 5040},
        verify_sizes={"assets": 5, "days": 333},
        outputs={"place": "f4[assets, days]"},
    ),
    Task(
        HERE / "surface_shifts.cu",
        inputs=lambda rng, options, scenarios: {
            "surface": uniform(rng, scenarios, 40, low=0.1, high=0.6),
            "moneyness": uniform(rng, options, low=2, high=36),
            "options": options,
            "scenarios": scenarios,
            "strikes": 40,
        },
        sizes={"options": 1 << 16, "scenarios": 128},
        verify_sizes={"options": 301, "scenarios": 7},
        outputs={"vol": "f4[scenarios, options]"},
    ),
    Task(
        HERE / "stress.cu",
        inputs=lambda rng, portfolios, assets, scenarios: {
            "holding": uniform(rng, portfolios, assets),
            "shock": uniform(rng, assets, scenarios),
            "portfolios": portfolios,
            "assets": assets,
            "scenarios": scenarios,
        },
        sizes={"portfolios": 2048, "assets": 100, "scenarios": 1024},
        verify_sizes={"portfolios": 11, "assets": 24, "scenarios": 64},
        outputs={"result": "f4[portfolios, scenarios]"},
    ),
    Task(
        HERE / "store_paths.cu",
        inputs=lambda rng, paths, steps: {
            "noise": uniform(rng, steps, paths),
            "drift": 0.0002,
            "vol": 0.01,
            "paths": paths,
            "steps": steps,
        },
        sizes={"paths": 65536, "steps": 252},
        verify_sizes={"paths": 45, "steps": 41},
        outputs={"price": "f4[paths, steps]"},
    ),
    Task(
        HERE / "lattice.cu",
        inputs=lambda rng, options: {
            "spot": uniform(rng, options, low=20, high=60),
            "strike": uniform(rng, options, low=20, high=60),
            "up": 0.01,
            "p": 0.5,
            "q": 0.499,
            "options": options,
        },
        sizes={"options": 4096},
        verify_sizes={"options": 5},
        outputs={"price": "f4[options]"},
    ),
    Task(
        HERE / "expected_shortfall.cu",
        inputs=lambda rng, books, factors, scenarios: {
            "exposure": rng.standard_normal((books, factors)),
            "shock": rng.standard_normal((factors, scenarios)),
            "limit": rng.random(books) * 9,
            "books": books,
            "factors": factors,
            "scenarios": scenarios,
        },
        sizes={"books": 8192, "factors": 64, "scenarios": 1000},
        verify_sizes={"books": 70, "factors": 13, "scenarios": 45},
        outputs={"shortfall": "f8[books]"},
    ),
    Task(
        HERE / "backward_values.cu",
        inputs=lambda rng, paths, dates: {
            "flow": rng.standard_normal((dates, paths)),
            "paths": paths,
            "dates": dates,
            "discount": 0.99,
        },
        sizes={"paths": 16384, "dates": 360},
        verify_sizes={"paths": 301, "dates": 41},
        inout=("flow",),
    ),
    Task(
        HERE / "accounts.cu",
        inputs=lambda rng, accounts, entries: {
            "bookings": rng.integers(-10000, 10000, (accounts, entries), np.int32),
            "opening": rng.integers(0, 100000, accounts, np.int32),
            "accounts": accounts,
            "entries": entries,
        },
        sizes={"accounts": 96, "entries": 1 << 16},
        verify_sizes={"accounts": 35, "entries": 301},
        outputs={"balance": "i4[accounts, entries]"},
    ),
    Task(
        HERE / "exposures.cu",
        inputs=lambda rng, n, parties: {
            "party": rng.integers(0, parties, n, np.int32),
            "value": uniform(rng, n),
            "n": n,
            "parties": parties,
        },
        sizes={"n": 1 << 20, "parties": 100},
        verify_sizes={"n": 300, "parties": 13},
        outputs={"owed": "f4[parties]", "trades": "i4[parties]"},
    ),
]
