"""Matrix products in several forms, in float32; peers without TF32."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.bench.entry import Entry, Values, uniform
from optiml_magic.bench.floors import Floor

_DOITGEN = "PolyBench-GPU CUDA/DOITGEN"
_GAUSSIAN = "yuhc/gpu-rodinia cuda/gaussian/gaussian.cu"


def _operands(rng: np.random.Generator, m: int, n: int, k: int) -> Values:
    return {"a": uniform(rng, m, k), "b": uniform(rng, k, n), "m": m, "n": n, "k": k}


def _layer(rng: np.random.Generator, batch: int, features: int, inputs: int) -> Values:
    return {
        "x": uniform(rng, batch, inputs), "weight": uniform(rng, features, inputs),
        "bias": uniform(rng, features), "batch": batch, "features": features, "inputs": inputs,
    }  # fmt: skip


def linear_relu(x: Any, weight: Any, bias: Any) -> Any:
    return np.maximum(x @ weight.T + bias, 0)


def _batches(rng: np.random.Generator, batch: int, n: int) -> Values:
    return {"a": uniform(rng, batch, n, n), "b": uniform(rng, batch, n, n), "batch": batch, "n": n}


def _three(rng: np.random.Generator, nr: int, nq: int, np_: int) -> Values:
    return {"a": uniform(rng, nr, nq, np_), "c4": uniform(rng, np_, np_)} | {
        "nr": nr, "nq": nq, "np": np_,
    }  # fmt: skip


def _system(rng: np.random.Generator, size: int, t: int) -> Values:
    a = uniform(rng, size, size)
    a[np.arange(size), np.arange(size)] += np.float32(4.0)
    return {"a": a, "size": size, "t": t}


def _eliminated(a: Any, t: Any) -> Any:
    found = a * 1
    found[t + 1 :, t:] -= (a[t + 1 :, t] / a[t, t])[:, None] * a[t, t:]
    return found


TASKS = (
    Entry(
        "matmul", "products", lambda a, b: a @ b, _operands,
        full={"m": 4096, "n": 4096, "k": 4096}, small={"m": 256, "n": 256, "k": 128},
        checked={"m": 68, "n": 52, "k": 84},
        floor=lambda m, n, k: Floor(4 * (m * k + k * n + m * n), flops=2 * m * n * k),
        torch=lambda _, a, b: a @ b, libraries={"cuBLAS": lambda _, a, b: a @ b},
    ),
    Entry(
        "linear_relu", "products", linear_relu, _layer,
        full={"batch": 2048, "features": 4096, "inputs": 1024},
        small={"batch": 256, "features": 256, "inputs": 64},
        checked={"batch": 52, "features": 68, "inputs": 84},
        floor=lambda batch, features, inputs: Floor(
            4 * (batch * inputs + features * inputs + batch * features),
            flops=2 * batch * features * inputs,
        ),
        torch=lambda t, x, weight, bias: t.relu(t.nn.functional.linear(x, weight, bias)),
        libraries={
            "cuBLAS": lambda cp, x, weight, bias: cp.maximum(x @ weight.T + bias, cp.float32(0))
        },
    ),
    Entry(
        "batched_matmul", "products", lambda a, b: a @ b, _batches,
        full={"batch": 512, "n": 256}, small={"batch": 2, "n": 64}, checked={"batch": 3, "n": 52},
        floor=lambda batch, n: Floor(12 * batch * n * n, flops=2 * batch * n**3),
        torch=lambda t, a, b: t.bmm(a, b), libraries={"cuBLAS": lambda cp, a, b: cp.matmul(a, b)},
    ),
    Entry(
        "doitgen", "products", lambda a, c4: a @ c4,
        lambda rng, **s: _three(rng, s["nr"], s["nq"], s["np"]),
        full={"nr": 256, "nq": 256, "np": 256}, small={"nr": 3, "nq": 64, "np": 64},
        checked={"nr": 3, "nq": 36, "np": 52},
        floor=lambda **s: Floor(
            4 * (2 * s["nr"] * s["nq"] * s["np"] + s["np"] ** 2),
            flops=2 * s["nr"] * s["nq"] * s["np"] ** 2,
        ),
        outputs={"sum": "f4[nr, nq, np]"},
        torch=lambda _, a, c4: a @ c4, libraries={"cuBLAS": lambda _, a, c4: a @ c4},
        source=_DOITGEN,
    ),
    Entry(
        "eliminate", "products", _eliminated, _system,
        full={"size": 8192, "t": 0}, small={"size": 256, "t": 0}, checked={"size": 132, "t": 3},
        floor=lambda size, t: Floor(8 * (size - t - 1) * (size - t), flops=2 * (size - t - 1) ** 2),
        torch=lambda _, a, **s: _eliminated(a, s["t"]),
        libraries={"CuPy": lambda _, a, t: _eliminated(a, t)},
        source=_GAUSSIAN,
    ),
)  # fmt: skip
