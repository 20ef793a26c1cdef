"""What language models are served and trained with: states merged, norms, gates, scores, steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.bench.entry import Entry, Values, uniform
from optiml_magic.bench.floors import Floor

_SCORES = "karpathy/llm.c dev/cuda/attention_forward.cu"
_ADAMW = "karpathy/llm.c dev/cuda/adamw.cu"


def _states(rng: np.random.Generator, rows: int, width: int) -> Values:
    return {
        "first": uniform(rng, rows, width), "first_lse": uniform(rng, rows, low=-4.0, high=4.0),
        "second": uniform(rng, rows, width), "second_lse": uniform(rng, rows, low=-4.0, high=4.0),
        "rows": rows, "width": width,
    }  # fmt: skip


def _merged(xp: Any, first: Any, first_lse: Any, second: Any, second_lse: Any) -> Any:
    top = xp.maximum(first_lse, second_lse)
    a, b = xp.exp(first_lse - top), xp.exp(second_lse - top)
    out = (first * a[:, None] + second * b[:, None]) / (a + b)[:, None]
    return out, xp.log(a + b) + top


def merge_states(first: Any, first_lse: Any, second: Any, second_lse: Any) -> Any:
    return _merged(np, first, first_lse, second, second_lse)


def _residual(rng: np.random.Generator, rows: int, cols: int) -> Values:
    shapes = {"x": (rows, cols), "residual": (rows, cols), "weight": (cols,)}
    made = {name: uniform(rng, *shape).astype(np.float16) for name, shape in shapes.items()}
    return {**made, "rows": rows, "cols": cols}


def add_rms_norm(x: Any, residual: Any, weight: Any) -> Any:
    total = x + residual
    scale = 1 / np.sqrt((total * total).mean(axis=1, keepdims=True) + 1e-6)
    return {"out": total * scale * weight, "sum": total}


def _add_rms_norm_torch(t: Any, x: Any, residual: Any, weight: Any) -> Any:
    total = x.float() + residual.float() if x.dtype == t.float16 else x + residual
    scale = t.rsqrt((total * total).mean(dim=1, keepdim=True) + 1e-6)
    return (total * scale * weight).to(x.dtype), total.to(x.dtype)


def _gates(rng: np.random.Generator, tokens: int, width: int) -> Values:
    x = uniform(rng, tokens, 2 * width, low=-4.0, high=4.0).astype(np.float16)
    return {"x": x, "tokens": tokens, "width": width}


def silu_and_mul(x: Any, width: Any) -> Any:
    gate, value = x[:, : int(width)], x[:, int(width) :]
    return gate / (1 + np.exp(-gate)) * value


def _silu_and_mul_torch(t: Any, x: Any, width: Any) -> Any:
    return t.nn.functional.silu(x[:, : int(width)]) * x[:, int(width) :]


def _heads(rng: np.random.Generator, B: int, T: int, NH: int, HS: int) -> Values:  # noqa: N803
    return {"qkv": uniform(rng, B, T, 3, NH, HS), "B": B, "T": T, "NH": NH, "HS": HS}


def causal_scores(qkv: Any) -> Any:
    query, key = qkv[:, :, 0].transpose(0, 2, 1, 3), qkv[:, :, 1].transpose(0, 2, 3, 1)
    scores = query @ key / np.sqrt(qkv.shape[-1])
    return np.where(np.tri(qkv.shape[1], dtype=bool), scores, -np.inf)


def _causal_scores_torch(t: Any, qkv: Any) -> Any:
    query, key = qkv[:, :, 0].permute(0, 2, 1, 3), qkv[:, :, 1].permute(0, 2, 3, 1)
    scores = query @ key * qkv.shape[-1] ** -0.5
    length = qkv.shape[1]
    later = t.ones(length, length, dtype=t.bool, device=qkv.device).triu(1)
    return scores.masked_fill(later, float("-inf"))


def _causal_floor(B: int, T: int, NH: int, HS: int) -> Floor:  # noqa: N803
    pairs = B * NH * T * (T + 1) // 2
    return Floor(4 * B * NH * (2 * T * HS + T * T), flops=2 * pairs * HS)


_STEP = {
    "rate": 1e-3, "beta1": 0.9, "beta2": 0.999, "correction1": 0.1, "correction2": 0.001,
    "eps": 1e-8, "decay": 0.01,
}  # fmt: skip


def _parameters(rng: np.random.Generator, n: int) -> Values:
    arrays = {"params": uniform(rng, n), "grads": uniform(rng, n), "m": uniform(rng, n)}
    step = {name: np.float32(value) for name, value in _STEP.items()}
    return {**arrays, "v": uniform(rng, n, low=0.01), "n": n, **step}


def adamw(params: Any, grads: Any, m: Any, v: Any) -> Any:
    rate, beta1, beta2, correction1, correction2, eps, decay = _STEP.values()
    m = beta1 * m + (1 - beta1) * grads
    v = beta2 * v + (1 - beta2) * grads * grads
    change = m / correction1 / ((v / correction2) ** 0.5 + eps) + decay * params
    return {"params": params - rate * change, "m": m, "v": v}


def _adamw_peer(_: Any, params: Any, grads: Any, m: Any, v: Any) -> Any:
    return tuple(adamw(params, grads, m, v).values())


TASKS = (
    Entry(
        "merge_states", "networks", merge_states, _states,
        full={"rows": 1 << 18, "width": 128}, small={"rows": 512, "width": 128},
        checked={"rows": 132, "width": 68},
        floor=lambda rows, width: Floor(
            12 * rows * (width + 1), flops=3 * rows * width, special=4 * rows
        ),
        outputs={"out": "f4[rows, width]", "lse": "f4[rows]"},
        torch=_merged, libraries={"CuPy": _merged},
    ),
    Entry(
        "add_rms_norm", "networks", add_rms_norm, _residual,
        full={"rows": 8192, "cols": 4096}, small={"rows": 256, "cols": 256},
        checked={"rows": 132, "cols": 260},
        floor=lambda rows, cols: Floor(8 * rows * cols + 2 * cols, flops=5 * rows * cols),
        torch=_add_rms_norm_torch,
    ),
    Entry(
        "silu_and_mul", "networks", silu_and_mul, _gates,
        full={"tokens": 8192, "width": 8192}, small={"tokens": 128, "width": 512},
        checked={"tokens": 36, "width": 260},
        floor=lambda tokens, width: Floor(
            6 * tokens * width, flops=4 * tokens * width, special=2 * tokens * width
        ),
        outputs={"out": "f2[tokens, width]"},
        torch=_silu_and_mul_torch,
    ),
    Entry(
        "causal_scores", "networks", causal_scores, _heads,
        full={"B": 8, "T": 1024, "NH": 12, "HS": 64}, small={"B": 1, "T": 128, "NH": 2, "HS": 32},
        checked={"B": 2, "T": 36, "NH": 3, "HS": 20},
        floor=_causal_floor,
        torch=_causal_scores_torch, source=_SCORES, opened=True,
    ),
    Entry(
        "adamw", "networks", adamw, _parameters,
        full={"n": 1 << 24}, small={"n": 1 << 14}, checked={"n": 10_003},
        floor=lambda n: Floor(28 * n, flops=14 * n, special=2 * n),
        torch=_adamw_peer, libraries={"CuPy": _adamw_peer}, source=_ADAMW,
    ),
)  # fmt: skip
