"""Neighbours on grids of one, two and three dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.bench.entry import Entry, Values, uniform
from optiml_magic.bench.floors import Floor

_HOTSPOT = "yuhc/gpu-rodinia cuda/hotspot/hotspot.cu"
_HOTSPOT_3D = "yuhc/gpu-rodinia cuda/hotspot3D/opt1.cu"
_RADIUS = 8


def _line(rng: np.random.Generator, n: int) -> Values:
    return {"x": uniform(rng, n), "n": n}


def moving_average(x: Any) -> Any:
    width = 2 * _RADIUS + 1
    return np.lib.stride_tricks.sliding_window_view(np.pad(x, _RADIUS), width).sum(axis=1) / width


def _moving_average_torch(t: Any, x: Any) -> Any:
    width = 2 * _RADIUS + 1
    pool = t.nn.functional.avg_pool1d
    return pool(x[None, None], width, stride=1, padding=_RADIUS, count_include_pad=True)[0, 0]


def _plane(rng: np.random.Generator, nx: int, ny: int) -> Values:
    return {"u": uniform(rng, ny, nx), "c": np.float32(0.1), "nx": nx, "ny": ny}


def _cooled(u: Any, c: Any) -> Any:
    out = u * 1
    around = u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1]
    out[1:-1, 1:-1] += c * (around - 4 * u[1:-1, 1:-1])
    return out


def _room(rng: np.random.Generator, nx: int, ny: int, nz: int) -> Values:
    return {"u": uniform(rng, nz, ny, nx), "nx": nx, "ny": ny, "nz": nz}


def _laplace(u: Any) -> Any:
    out = u * 0
    m = slice(1, -1)
    out[m, m, m] = (
        u[m, m, :-2] + u[m, m, 2:] + u[m, :-2, m] + u[m, 2:, m] + u[:-2, m, m] + u[2:, m, m]
        - 6 * u[m, m, m]
    )  # fmt: skip
    return out


_CHIP = {"cap": 0.1, "rx": 0.4, "ry": 0.6, "rz": 0.02, "ambient": 80.0}


def _powered(rng: np.random.Generator, cols: int, rows: int, steps: int) -> Values:
    power, temp = uniform(rng, rows, cols, low=0.0), uniform(rng, rows, cols, low=70.0, high=90.0)
    sizes = {"cols": cols, "rows": rows, "steps": steps}
    scalars = {name: np.float32(value) for name, value in _CHIP.items()}
    return {"power": power, "temp": temp, **sizes, **scalars}


def _warmer(power: Any, temp: Any, padded: Any) -> Any:
    cap, rx, ry, rz, ambient = _CHIP.values()
    down = padded[:-2, 1:-1] + padded[2:, 1:-1] - 2 * temp
    across = padded[1:-1, :-2] + padded[1:-1, 2:] - 2 * temp
    return temp + cap * (power + down * ry + across * rx + (ambient - temp) * rz)


def hotspot(power: Any, temp: Any, steps: Any) -> Any:
    for _ in range(int(steps)):
        temp = _warmer(power, temp, np.pad(temp, 1, mode="edge"))
    return temp


def _hotspot_torch(t: Any, power: Any, temp: Any, steps: Any) -> Any:
    for _ in range(int(steps)):
        padded = t.nn.functional.pad(temp[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]
        temp = _warmer(power, temp, padded)
    return temp


_LAYERS = {"cc": 0.56, "cn": 0.04, "cs": 0.04, "ce": 0.03, "cw": 0.03, "ct": 0.1, "cb": 0.1}
_HEAT = {"gain": 0.5, "ambient": 80.0}


def _stacked(rng: np.random.Generator, nx: int, ny: int, nz: int) -> Values:
    power = uniform(rng, nz, ny, nx, low=0.0)
    temp = uniform(rng, nz, ny, nx, low=70.0, high=90.0)
    scalars = {name: np.float32(value) for name, value in (_LAYERS | _HEAT).items()}
    return {"power": power, "temp": temp, "nx": nx, "ny": ny, "nz": nz, **scalars}


def _conducted(power: Any, temp: Any, padded: Any) -> Any:
    """After one step; ``padded`` repeats the cells at the edges once more."""
    cc, cn, cs, ce, cw, ct, cb = _LAYERS.values()
    m = slice(1, -1)
    across = cn * padded[m, :-2, m] + cs * padded[m, 2:, m]
    across = across + ce * padded[m, m, 2:] + cw * padded[m, m, :-2]
    through = ct * padded[2:, m, m] + cb * padded[:-2, m, m] + ct * _HEAT["ambient"]
    return cc * temp + across + through + _HEAT["gain"] * power


def hotspot_3d(power: Any, temp: Any) -> Any:
    return _conducted(power, temp, np.pad(temp, 1, mode="edge"))


def _hotspot_3d_torch(t: Any, power: Any, temp: Any) -> Any:
    padded = t.nn.functional.pad(temp[None, None], (1,) * 6, mode="replicate")[0, 0]
    return _conducted(power, temp, padded)


def _hotspot_3d_cupy(cp: Any, power: Any, temp: Any) -> Any:
    return _conducted(power, temp, cp.pad(temp, 1, mode="edge"))


TASKS = (
    Entry(
        "moving_average", "stencils", moving_average, _line,
        full={"n": 1 << 25}, small={"n": 1 << 16}, checked={"n": 10_003},
        # A running sum takes two operations an element.
        floor=lambda n: Floor(8 * n, flops=2 * n),
        torch=_moving_average_torch,
    ),
    Entry(
        "heat_2d", "stencils", _cooled, _plane,
        full={"nx": 8192, "ny": 4096}, small={"nx": 256, "ny": 256}, checked={"nx": 132, "ny": 70},
        floor=lambda nx, ny: Floor(8 * nx * ny, flops=6 * nx * ny),
        torch=lambda _, u, c: _cooled(u, float(c)),
        libraries={"CuPy": lambda _, u, c: _cooled(u, c)},
    ),
    Entry(
        "laplace_3d", "stencils", _laplace, _room,
        full={"nx": 512, "ny": 256, "nz": 256}, small={"nx": 64, "ny": 32, "nz": 32},
        checked={"nx": 36, "ny": 20, "nz": 13},
        floor=lambda nx, ny, nz: Floor(8 * nx * ny * nz, flops=7 * nx * ny * nz),
        torch=lambda _, u: _laplace(u), libraries={"CuPy": lambda _, u: _laplace(u)},
    ),
    Entry(
        "hotspot", "stencils", hotspot, _powered,
        full={"cols": 8192, "rows": 4096, "steps": 2},
        small={"cols": 128, "rows": 128, "steps": 2},
        checked={"cols": 68, "rows": 45, "steps": 2},
        floor=lambda cols, rows, steps: Floor(12 * cols * rows, flops=12 * cols * rows * steps),
        torch=_hotspot_torch, source=_HOTSPOT, opened=True,
    ),
    Entry(
        "hotspot_3d", "stencils", hotspot_3d, _stacked,
        full={"nx": 1024, "ny": 1024, "nz": 32}, small={"nx": 64, "ny": 32, "nz": 8},
        checked={"nx": 68, "ny": 21, "nz": 7},
        floor=lambda nx, ny, nz: Floor(12 * nx * ny * nz, flops=16 * nx * ny * nz),
        torch=_hotspot_3d_torch, libraries={"CuPy": _hotspot_3d_cupy}, source=_HOTSPOT_3D,
    ),
)  # fmt: skip
