"""Operators as public benchmark suites have them, levels of KernelBench for instance; small."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.references.entry import Entry, Values, matrix, uniform

Rng = np.random.Generator


def swish(x: Any) -> Any:
    return x * (1 / (1 + np.exp(-x)))


def gelu_new(x: Any) -> Any:
    return 0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * np.power(x, 3.0))))


def mish(x: Any) -> Any:
    return x * np.tanh(np.logaddexp(0, x))


def hard_activations(x: Any) -> Any:
    sigmoid = np.clip(x / 6 + 0.5, 0, 1)
    selu = 1.0507 * np.where(x > 0, x, 1.6733 * np.expm1(np.minimum(x, 0)))
    return sigmoid, x * sigmoid, np.where(x > 0, x, 0.01 * x), selu, x / (1 + np.abs(x))


def group_norm(x: Any, gain: Any, bias: Any) -> Any:
    n, c, h, w = x.shape
    grouped = x.reshape(n, 4, c // 4, h, w)
    mean = grouped.mean(axis=(2, 3, 4), keepdims=True)
    variance = grouped.var(axis=(2, 3, 4), keepdims=True)
    x = ((grouped - mean) / np.sqrt(variance + 1e-5)).reshape(n, c, h, w)
    return x * gain[:, None, None] + bias[:, None, None]


def instance_norm(x: Any) -> Any:
    mean = x.mean(axis=(2, 3), keepdims=True)
    return (x - mean) / np.sqrt(x.var(axis=(2, 3), keepdims=True) + 1e-5)


def batch_norm(x: Any, mean: Any, variance: Any, gain: Any, bias: Any) -> Any:
    scale = gain / np.sqrt(variance + 1e-5)
    return x * scale[None, :, None, None] + (bias - mean * scale)[None, :, None, None]


def rms_norm_channels(x: Any) -> Any:
    return x / np.sqrt(np.mean(np.square(x), axis=1, keepdims=True) + 1e-5)


def frobenius_norm(x: Any) -> Any:
    return x / np.linalg.norm(x)


def l1_norm(x: Any) -> Any:
    return x / np.linalg.norm(x, ord=1, axis=1, keepdims=True)


def transposed_product(a: Any, b: Any) -> Any:
    return np.matmul(a.T, b.T)


def tensor_product(a: Any, b: Any) -> Any:
    return np.einsum("bijl,lk->bijk", a, b)


def triangular_product(a: Any, b: Any) -> Any:
    return np.tril(np.tril(a) @ np.tril(b))


def diagonal_product(scale: Any, b: Any) -> Any:
    return np.diag(scale) @ b


def product_scaled_residual(x: Any, w: Any, b: Any) -> Any:
    y = x @ w.T + b
    return y * 0.5 + y


def product_pooled(x: Any, w: Any) -> Any:
    y = np.maximum(x @ w.T, 0)
    n, m = y.shape
    return y.reshape(n, m // 2, 2).max(axis=-1).sum(axis=1) * 0.5


def product_logsumexp(x: Any, w: Any) -> Any:
    y = np.clip(x @ w.T, -2, 2)
    top = y.max(axis=1, keepdims=True)
    total = np.log(np.exp(y - top).sum(axis=1, keepdims=True)) + top
    return total * np.tanh(np.logaddexp(0, total))


def convolved(images: Any, filters: Any, bias: Any) -> Any:
    """By slices, one for each tap."""
    _, _, h, w = images.shape
    out = np.zeros((images.shape[0], filters.shape[0], h - 2, w - 2), np.float32)
    for dy in range(3):
        for dx in range(3):
            patch = images[:, :, dy : h - 2 + dy, dx : w - 2 + dx]
            out += np.einsum("nchw,fc->nfhw", patch, filters[:, :, dy, dx])
    return np.maximum(out + bias[:, None, None], 0)


def depthwise(images: Any, filters: Any) -> Any:
    _, _, h, w = images.shape
    return sum(
        images[:, :, dy : h - 2 + dy, dx : w - 2 + dx] * filters[:, dy, dx, None, None]
        for dy in range(3)
        for dx in range(3)
    )


def strided_1d(x: Any, kernel: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, 5, axis=-1)[:, :, ::2]
    return np.tensordot(windows, kernel, axes=([1, 3], [1, 2])).transpose(0, 2, 1)


def average_pool(x: Any) -> Any:
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return windows.mean(axis=(-2, -1))


def max_pool_1d(x: Any) -> Any:
    return np.lib.stride_tricks.sliding_window_view(x, 4, axis=2)[:, :, ::2].max(axis=-1)


def global_pool(x: Any) -> Any:
    return x.mean(axis=(2, 3)), x.max(axis=(2, 3))


def reversed_sums(x: Any) -> Any:
    return np.flip(np.cumsum(np.flip(x, axis=1), axis=1), axis=1)


def exclusive_sums(x: Any) -> Any:
    sums = np.cumsum(x, axis=1)
    return np.concatenate([np.zeros((x.shape[0], 1), x.dtype), sums[:, :-1]], axis=1)


def masked_sums(x: Any, keep: Any) -> Any:
    return np.cumsum(x * keep, axis=1)


def huber(prediction: Any, target: Any) -> Any:
    apart = np.abs(prediction - target)
    return np.where(apart < 1, 0.5 * apart**2, apart - 0.5).mean()


def divergence(p: Any, q: Any) -> Any:
    return np.sum(p * (np.log(p) - np.log(q))) / p.shape[0]


def triplet(anchor: Any, positive: Any, negative: Any) -> Any:
    near = np.linalg.norm(anchor - positive, axis=1)
    far = np.linalg.norm(anchor - negative, axis=1)
    return np.mean(np.maximum(near - far + 1.0, 0))


def cosine_loss(prediction: Any, target: Any) -> Any:
    dot = (prediction * target).sum(axis=1)
    norms = np.linalg.norm(prediction, axis=1) * np.linalg.norm(target, axis=1)
    return np.mean(1 - dot / np.maximum(norms, 1e-8))


def nll_smoothed(logits: Any, targets: Any) -> Any:
    logp = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    picked = logp[np.arange(len(targets)), targets]
    return -(0.9 * picked + 0.1 * logp.mean(axis=1)).mean()


def multi_head_attention(q: Any, k: Any, v: Any) -> Any:
    scores = np.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("bhqk,bhkd->bhqd", weights, v)


def minimal_gpt_block(x: Any, w: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    normed = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return x + np.maximum(normed @ w, 0) ** 2


def _images(rng: Rng, n: int, groups: int, h: int, w: int) -> Values:
    return {"x": uniform(rng, n, 4 * groups, h, w)}


def _groups(rng: Rng, n: int, groups: int, h: int, w: int) -> Values:
    c = 4 * groups
    return {"x": uniform(rng, n, c, h, w), "gain": uniform(rng, c), "bias": uniform(rng, c)}


def _batch(rng: Rng, n: int, c: int, h: int, w: int) -> Values:
    made = {name: uniform(rng, c) for name in ("mean", "gain", "bias")}
    return {"x": uniform(rng, n, c, h, w), "variance": uniform(rng, c, low=0.1), **made}


def _turned(rng: Rng, n: int, m: int, k: int) -> Values:
    return {"a": uniform(rng, k, n), "b": uniform(rng, m, k)}


def _tensors(rng: Rng, n: int, i: int, l: int, k: int) -> Values:  # noqa: E741
    return {"a": uniform(rng, n, i, 5, l), "b": uniform(rng, l, k)}


def _triangles(rng: Rng, n: int) -> Values:
    return {"a": uniform(rng, n, n), "b": uniform(rng, n, n)}


def _diagonal(rng: Rng, n: int, m: int) -> Values:
    return {"scale": uniform(rng, n), "b": uniform(rng, n, m)}


def _layer(rng: Rng, n: int, m: int, k: int) -> Values:
    return {"x": uniform(rng, n, k), "w": uniform(rng, m, k), "b": uniform(rng, m)}


def _pooled(rng: Rng, n: int, half: int, k: int) -> Values:
    return {"x": uniform(rng, n, k), "w": uniform(rng, 2 * half, k)}


def _convolved(rng: Rng, n: int, c: int, f: int, h: int, w: int) -> Values:
    bias = uniform(rng, f)
    return {"images": uniform(rng, n, c, h, w), "filters": uniform(rng, f, c, 3, 3), "bias": bias}


def _depthwise(rng: Rng, n: int, c: int, h: int, w: int) -> Values:
    return {"images": uniform(rng, n, c, h, w), "filters": uniform(rng, c, 3, 3)}


def _strided(rng: Rng, n: int, c: int, f: int, l: int) -> Values:  # noqa: E741
    return {"x": uniform(rng, n, c, l), "kernel": uniform(rng, f, c, 5)}


def _rows(rng: Rng, n: int, c: int, l: int) -> Values:  # noqa: E741
    return {"x": uniform(rng, n, c, l)}


def _kept(rng: Rng, n: int, m: int) -> Values:
    return {"x": uniform(rng, n, m), "keep": rng.random((n, m)) < 0.5}


def _errors(rng: Rng, n: int, m: int) -> Values:
    return {"prediction": uniform(rng, n, m, low=-2.0), "target": uniform(rng, n, m)}


def _distributions(rng: Rng, n: int, m: int) -> Values:
    p, q = (uniform(rng, n, m, low=0.1) for _ in "pq")
    return {"p": p / p.sum(axis=1, keepdims=True), "q": q / q.sum(axis=1, keepdims=True)}


def _triplets(rng: Rng, n: int, d: int) -> Values:
    return {name: uniform(rng, n, d) for name in ("anchor", "positive", "negative")}


def _labelled(rng: Rng, n: int, m: int) -> Values:
    return {"logits": uniform(rng, n, m), "targets": rng.integers(0, m, n)}


def _heads(rng: Rng, b: int, t: int, d: int) -> Values:
    return {name: uniform(rng, b, 2, t, d) for name in "qkv"}


def _block(rng: Rng, t: int, d: int) -> Values:
    return {"x": uniform(rng, 2, t, d), "w": uniform(rng, d, d)}


_IMAGES = {"n": 2, "groups": 2, "h": 10, "w": 14}
REFERENCES = (
    Entry("activations", swish, matrix, {"n": 40, "m": 60}),
    Entry("activations", gelu_new, matrix, {"n": 40, "m": 60}),
    Entry("activations", mish, matrix, {"n": 40, "m": 60}),
    Entry("activations", hard_activations, matrix, {"n": 40, "m": 60}),
    Entry("normalisations", group_norm, _groups, _IMAGES),
    Entry("normalisations", instance_norm, _images, _IMAGES),
    Entry("normalisations", batch_norm, _batch, {"n": 2, "c": 6, "h": 10, "w": 14}),
    Entry("normalisations", rms_norm_channels, _images, _IMAGES),
    Entry("normalisations", frobenius_norm, matrix, {"n": 40, "m": 60}),
    Entry("normalisations", l1_norm, matrix, {"n": 40, "m": 60}),
    Entry("products", transposed_product, _turned, {"n": 30, "m": 40, "k": 20}),
    Entry("products", tensor_product, _tensors, {"n": 2, "i": 6, "l": 12, "k": 20}),
    Entry("products", triangular_product, _triangles, {"n": 36}),
    Entry("products", diagonal_product, _diagonal, {"n": 30, "m": 40}),
    Entry("products", product_scaled_residual, _layer, {"n": 30, "m": 40, "k": 20}),
    Entry("products", product_pooled, _pooled, {"n": 30, "half": 20, "k": 24}),
    Entry("products", product_logsumexp, _pooled, {"n": 30, "half": 20, "k": 24}),
    Entry("convolutions", convolved, _convolved, {"n": 2, "c": 3, "f": 4, "h": 10, "w": 14}),
    Entry("convolutions", depthwise, _depthwise, {"n": 2, "c": 3, "h": 14, "w": 20}),
    Entry("convolutions", strided_1d, _strided, {"n": 2, "c": 3, "f": 4, "l": 60}),
    Entry("pooling", average_pool, _images, _IMAGES),
    Entry("pooling", max_pool_1d, _rows, {"n": 2, "c": 3, "l": 61}),
    Entry("pooling", global_pool, _images, _IMAGES),
    Entry("scans", reversed_sums, matrix, {"n": 40, "m": 60}),
    Entry("scans", exclusive_sums, matrix, {"n": 40, "m": 60}),
    Entry("scans", masked_sums, _kept, {"n": 40, "m": 60}),
    Entry("losses", huber, _errors, {"n": 40, "m": 60}),
    Entry("losses", divergence, _distributions, {"n": 40, "m": 60}),
    Entry("losses", triplet, _triplets, {"n": 60, "d": 32}),
    Entry("losses", cosine_loss, _errors, {"n": 40, "m": 60}),
    Entry("losses", nll_smoothed, _labelled, {"n": 60, "m": 40}),
    Entry("attention", multi_head_attention, _heads, {"b": 2, "t": 24, "d": 16}),
    Entry("attention", minimal_gpt_block, _block, {"t": 24, "d": 16}),
)
