"""Naive kernels of different fields, small enough to be evaluated on the CPU by the hundred."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from optiml_magic.model.task import Task

Arrays = dict[str, Any]

_HEAT = """\
#pragma optiml launch heat grid(cdiv(ny, 16), cdiv(nx, 16)) block(16, 16)
__global__ void heat(const float* t, float* out, int nx, int ny) {
    int y = blockIdx.x * blockDim.x + threadIdx.x;
    int x = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < nx && y < ny) {
        float c = t[y * nx + x];
        float l = x > 0 ? t[y * nx + x - 1] : c;
        float r = x < nx - 1 ? t[y * nx + x + 1] : c;
        float u = y > 0 ? t[(y - 1) * nx + x] : c;
        float d = y < ny - 1 ? t[(y + 1) * nx + x] : c;
        out[y * nx + x] = c + 0.1f * (l + r + u + d - 4.0f * c);
    }
}
"""
_ATTENTION = """\
#pragma optiml launch weights grid(cdiv(rows, 64)) block(64)
__global__ void weights(const float* score, float* out, int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float m = score[r * cols];
    for (int c = 1; c < cols; ++c) m = fmaxf(m, score[r * cols + c]);
    float s = 0.0f;
    for (int c = 0; c < cols; ++c) s += expf(score[r * cols + c] - m);
    for (int c = 0; c < cols; ++c) out[r * cols + c] = expf(score[r * cols + c] - m) / s;
}
"""
_GRAM = """\
#pragma optiml launch gram grid(cdiv(n, 16), cdiv(n, 16)) block(16, 16)
__global__ void gram(const float* x, float* out, int n, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < n) {
        float s = 0.0f;
        for (int p = 0; p < k; ++p) s += x[i * k + p] * x[j * k + p];
        out[i * n + j] = s;
    }
}
"""
_ENERGY = """\
#pragma optiml launch energy grid(cdiv(particles, 128)) block(128)
__global__ void energy(const float* v, const float* mass, float* out, int particles) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < particles) {
        float x = v[3 * i], y = v[3 * i + 1], z = v[3 * i + 2];
        out[i] = 0.5f * mass[i] * (x * x + y * y + z * z);
    }
}
"""
_MOMENTS = """\
#pragma optiml launch moments grid(cdiv(genes, 32)) block(32)
__global__ void moments(const float* counts, float* mean, float* spread, int genes, int cells) {
    int g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g >= genes) return;
    float s = 0.0f, q = 0.0f;
    for (int c = 0; c < cells; ++c) {
        float v = counts[g * cells + c];
        s += v;
        q += v * v;
    }
    mean[g] = s / cells;
    spread[g] = q / cells - (s / cells) * (s / cells);
}
"""
_TRANSPOSE = """\
#pragma optiml launch transpose grid(cdiv(cols, 32), cdiv(rows, 8)) block(32, 8)
__global__ void transpose(const float* a, float* out, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) out[col * rows + row] = a[row * cols + col];
}
"""


def _heat(t: Any) -> Any:
    padded = np.pad(t, 1, mode="edge")
    around = padded[1:-1, :-2] + padded[1:-1, 2:] + padded[:-2, 1:-1] + padded[2:, 1:-1]
    return t + 0.1 * (around - 4 * t)


def _weights(score: Any) -> Any:
    shifted = np.exp(score - score.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def _moments(counts: Any) -> Arrays:
    return {"mean": counts.mean(axis=1), "spread": counts.var(axis=1)}


def _drawn(name: str, *shape: str) -> Callable[..., Arrays]:
    def inputs(rng: Any, **sizes: int) -> Arrays:
        return {name: rng.random([sizes[size] for size in shape], dtype=np.float32)}

    return inputs


def tasks() -> list[Task]:
    """All of them."""
    return [
        Task(
            _TRANSPOSE, lambda a: a.T, _drawn("a", "rows", "cols"),
            sizes={"rows": 512, "cols": 256}, name="transpose",
        ),
        Task(
            _HEAT, _heat, _drawn("t", "ny", "nx"),
            sizes={"nx": 192, "ny": 160}, name="heat",
        ),
        Task(
            _ATTENTION, _weights, _drawn("score", "rows", "cols"),
            sizes={"rows": 256, "cols": 128}, name="weights",
        ),
        Task(
            _GRAM, lambda x: x @ x.T, _drawn("x", "n", "k"),
            sizes={"n": 128, "k": 96}, name="gram",
        ),
        Task(
            _ENERGY,
            lambda v, mass: 0.5 * mass * (v.reshape(-1, 3) ** 2).sum(axis=1),
            lambda rng, particles: {
                "v": rng.random(3 * particles, dtype=np.float32),
                "mass": rng.random(particles, dtype=np.float32),
            },
            sizes={"particles": 20000}, name="energy",
        ),
        Task(
            _MOMENTS, _moments, _drawn("counts", "genes", "cells"),
            sizes={"genes": 512, "cells": 200}, name="moments",
        ),
    ]  # fmt: skip
