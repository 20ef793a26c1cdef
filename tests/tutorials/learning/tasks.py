"""Kernels of neural networks."""

from pathlib import Path

import numpy as np

from optiml_magic import Task

HERE = Path(__file__).parent
f4, i4, i1 = np.float32, np.int32, np.int8


def normal(rng, *shape):
    return rng.normal(size=shape).astype(f4)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rows_and_weights(rng, n=10, c=100):
    names = {"inp": (n, c), "weight": (c,), "bias": (c,)}
    return {**{name: normal(rng, *shape) for name, shape in names.items()}, "N": n, "C": c}


def layernorm(inp, weight, bias):
    mean, rstd = inp.mean(1), 1 / np.sqrt(inp.var(1) + 1e-5)
    return (inp - mean[:, None]) * rstd[:, None] * weight + bias, mean, rstd


def rmsnorm(x, gain, eps):
    return x / np.sqrt((x**2).mean(1, keepdims=True) + eps) * gain


def heads(rng, heads=2, queries=7, keys=20, dim=24):
    shapes = {"q": (heads, queries, dim), "k": (heads, keys, dim), "v": (heads, keys, dim)}
    made = {name: normal(rng, *shape) for name, shape in shapes.items()}
    return {**made, "heads": heads, "queries": queries, "keys": keys, "dim": dim}


def attention(q, k, v, queries, keys):
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[2])
    later = np.arange(keys) > np.arange(queries)[:, None] + keys - queries
    return softmax(np.where(later, -np.inf, scores)) @ v


def rope(x, positions, half_dim):
    angle = positions[:, None] * 10000.0 ** (-np.arange(half_dim) / half_dim)
    a, b = x[:, :half_dim], x[:, half_dim:]
    return np.hstack([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)])


def cross_entropy(logits, target):
    p = softmax(logits)
    rows = np.arange(target.size)
    losses = -np.log(p[rows, target])
    p[rows, target] -= 1
    return losses, p / target.size


def quantized(x):
    scales = abs(x).max(1) / 127
    q = np.rint(x.astype(f4) / scales.astype(f4)[:, None])
    return {"q": q.astype(i1), "scales": scales}


def pooled(in_, channels, h, w):
    windows = in_.reshape(channels, h // 2, 2, w // 2, 2).transpose(0, 1, 3, 2, 4)
    flat = windows.reshape(channels, h // 2, w // 2, 4)
    return flat.max(3), flat.argmax(3).astype(np.uint8)


STEP = {
    "learning_rate": 1e-3,
    "beta1": 0.9,
    "beta2": 0.95,
    "beta1_correction": 0.19,
    "beta2_correction": 0.0975,
    "eps": 1e-8,
    "weight_decay": 0.1,
}


def parameters(rng, n=700):
    moments = {"m_memory": 0.1 * normal(rng, n), "v_memory": rng.uniform(0.01, 0.1, n).astype(f4)}
    made = {"params": normal(rng, n), "grads": normal(rng, n), **moments}
    return {**made, **STEP, "num_parameters": n}


def adamw(params, grads, m_memory, v_memory):
    m = 0.9 * m_memory + 0.1 * grads
    v = 0.95 * v_memory + 0.05 * grads**2
    step = m / 0.19 / (np.sqrt(v / 0.0975) + 1e-8) + 0.1 * params
    return params - 1e-3 * step, m, v


def bias_backward(dy, y):
    dx = np.where(y > 0, dy, 0)
    return dx, dx.sum(0)


tasks = [
    Task(
        HERE / "softmax_online.cu",
        reference=softmax,
        inputs=lambda rng: {"x": 4 * normal(rng, 9, 150), "rows": 9, "cols": 150},
    ),
    Task(
        HERE / "softmax_naive.cu",
        reference=lambda inp: softmax(inp),
        inputs=lambda rng: {"inp": 4 * normal(rng, 30, 50), "N": 30, "C": 50},
        outputs={"out": ""},
    ),
    Task(HERE / "layernorm.cu", reference=layernorm, inputs=rows_and_weights),
    Task(HERE / "layernorm_naive.cu", reference=layernorm, inputs=rows_and_weights),
    Task(
        HERE / "rmsnorm_half.cu",
        reference=rmsnorm,
        inputs=lambda rng: {
            "x": normal(rng, 6, 320).astype(np.float16),
            "gain": normal(rng, 320).astype(np.float16),
            "eps": 1e-5,
            "tokens": 6,
            "dim": 320,
        },
    ),
    Task(
        HERE / "gelu.cu",
        reference=lambda inp: (
            0.5 * inp * (1 + np.tanh(np.sqrt(2 / np.pi) * (inp + 0.044715 * inp**3)))
        ),
        inputs=lambda rng: {"inp": normal(rng, 1500), "N": 1500},
    ),
    Task(HERE / "attention_row.cu", reference=attention, inputs=heads),
    Task(
        HERE / "rope.cu",
        reference=rope,
        inputs=lambda rng: {
            "x": normal(rng, 12, 48),
            "positions": rng.integers(0, 64, 12, i4),
            "tokens": 12,
            "half_dim": 24,
        },
        rtol=1e-4,  # powf and the angle are both float32
    ),
    Task(
        HERE / "embedding.cu",
        reference=lambda inp, wte, wpe: wte[inp] + wpe,
        inputs=lambda rng: {
            "inp": rng.integers(0, 50, (3, 10), i4),
            "wte": normal(rng, 50, 32),
            "wpe": normal(rng, 10, 32),
            "B": 3,
            "T": 10,
            "C4": 8,
        },
    ),
    Task(
        HERE / "cross_entropy.cu",
        reference=cross_entropy,
        inputs=lambda rng: {
            "logits": normal(rng, 8, 300),
            "target": rng.integers(0, 300, 8, i4),
            "rows": 8,
            "classes": 300,
        },
    ),
    Task(
        HERE / "quantize_int8.cu",
        reference=quantized,
        inputs=lambda rng: {"x": normal(rng, 9, 130), "rows": 9, "cols": 130},
    ),
    Task(
        HERE / "matmul_dp4a.cu",
        reference=lambda a, b: a.astype(i4) @ b.astype(i4).T,
        inputs=lambda rng: {
            "a": rng.integers(-128, 128, (20, 64), i1),
            "b": rng.integers(-128, 128, (45, 64), i1),
            "m": 20,
            "n": 45,
            "k4": 16,
        },
    ),
    Task(
        HERE / "maxpool_2x2.cu",
        reference=pooled,
        inputs=lambda rng: {"in": normal(rng, 3, 12, 50), "channels": 3, "h": 12, "w": 50},
    ),
    Task(HERE / "adamw.cu", reference=adamw, inputs=parameters),
    Task(
        HERE / "bias_relu_backward.cu",
        reference=bias_backward,
        inputs=lambda rng: {
            "dy": normal(rng, 70, 50),
            "y": normal(rng, 70, 50),
            "rows": 70,
            "cols": 50,
        },
    ),
]
