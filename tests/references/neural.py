"""Layers, normalisations and losses of networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.references.entry import Entry, Values, matrix, uniform

Rng = np.random.Generator


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def log_softmax(x: Any) -> Any:
    shifted = x - x.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def rms_norm(x: Any, weight: Any) -> Any:
    wide = x.astype(np.float32)
    scale = 1 / np.sqrt((wide * wide).mean(axis=-1, keepdims=True) + 1e-6)
    return (wide * scale).astype(np.float16) * weight


def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * gain + bias


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def dense_relu(x: Any, w: Any, b: Any) -> Any:
    return np.maximum(x @ w + b, 0)


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.T / np.sqrt(np.float32(q.shape[1]))
    return softmax(scores) @ v


def causal_scores(q: Any, k: Any) -> Any:
    scores = q @ k.T
    rows, cols = scores.shape
    return softmax(np.where(np.tri(rows, cols, dtype=bool), scores, -np.inf))


def rotary(x: Any, angles: Any) -> Any:
    even, odd = x[:, ::2], x[:, 1::2]
    out = np.empty_like(x)
    out[:, ::2] = even * np.cos(angles) - odd * np.sin(angles)
    out[:, 1::2] = even * np.sin(angles) + odd * np.cos(angles)
    return out


def gated(x: Any) -> Any:
    left, right = np.split(x, 2, axis=1)
    return left / (1 + np.exp(-left)) * right


def cross_entropy(logits: Any, targets: Any) -> Any:
    top = logits.max(axis=1)
    total = np.log(np.exp(logits - top[:, None]).sum(axis=1)) + top
    return total - np.take_along_axis(logits, targets[:, None], axis=1)[:, 0]


def mean_squared(x: Any, y: Any) -> Any:
    return np.mean((x - y) ** 2)


def embedding_sum(words: Any, table: Any) -> Any:
    return table[words].sum(axis=1)


def adam_step(w: Any, g: Any, m: Any, v: Any) -> Any:
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return w - 0.001 * (m / 0.1) / (np.sqrt(v / 0.001) + 1e-8), m, v


def _norm(rng: Rng, n: int, m: int) -> Values:
    return {"x": uniform(rng, n, m), "gain": uniform(rng, m), "bias": uniform(rng, m)}


def _halves(rng: Rng, n: int, m: int) -> Values:
    x, weight = uniform(rng, n, m).astype(np.float16), uniform(rng, m).astype(np.float16)
    return {"x": x, "weight": weight}


def _dense(rng: Rng, n: int, m: int, k: int) -> Values:
    return {"x": uniform(rng, n, k), "w": uniform(rng, k, m), "b": uniform(rng, m)}


def _heads(rng: Rng, n: int, d: int) -> Values:
    return {"q": uniform(rng, n, d), "k": uniform(rng, n, d), "v": uniform(rng, n, d)}


def _scores(rng: Rng, n: int, d: int) -> Values:
    return {"q": uniform(rng, n, d), "k": uniform(rng, n, d)}


def _rotary(rng: Rng, n: int, half: int) -> Values:
    return {"x": uniform(rng, n, 2 * half), "angles": uniform(rng, n, half, high=3.0)}


def _gated(rng: Rng, n: int, width: int) -> Values:
    return {"x": uniform(rng, n, 2 * width)}


def _labels(rng: Rng, n: int, m: int) -> Values:
    return {"logits": 4 * uniform(rng, n, m), "targets": rng.integers(0, m, n)}


def _words(rng: Rng, n: int, width: int, count: int) -> Values:
    return {"words": rng.integers(0, count, (n, 4)), "table": uniform(rng, count, width)}


def _errors(rng: Rng, n: int, m: int) -> Values:
    return {"x": uniform(rng, n, m), "y": uniform(rng, n, m)}


def _adam(rng: Rng, n: int) -> Values:
    made = {name: uniform(rng, n) for name in "wgm"}
    return {**made, "v": uniform(rng, n, low=0.0)}


REFERENCES = (
    Entry("normalisations", softmax, matrix, {"n": 70, "m": 200}),
    Entry("normalisations", log_softmax, matrix, {"n": 70, "m": 100}),
    Entry("normalisations", rms_norm, _halves, {"n": 66, "m": 130}),
    Entry("normalisations", layer_norm, _norm, {"n": 70, "m": 96}),
    Entry("networks", gelu, matrix, {"n": 50, "m": 60}),
    Entry("networks", dense_relu, _dense, {"n": 40, "m": 50, "k": 60}),
    Entry("networks", attention, _heads, {"n": 70, "d": 24}),
    Entry("networks", causal_scores, _scores, {"n": 70, "d": 16}),
    Entry("networks", rotary, _rotary, {"n": 60, "half": 32}),
    Entry("networks", gated, _gated, {"n": 60, "width": 40}),
    Entry("networks", adam_step, _adam, {"n": 4000}),
    Entry("losses", cross_entropy, _labels, {"n": 80, "m": 60}),
    Entry("losses", mean_squared, _errors, {"n": 120, "m": 100}),
    Entry("losses", embedding_sum, _words, {"n": 60, "width": 32, "count": 90}),
)
