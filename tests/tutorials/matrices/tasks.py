"""Matrix products, transposes, small solvers."""

from pathlib import Path

import numpy as np

from optiml_magic import Task

HERE = Path(__file__).parent
f4, i4 = np.float32, np.int32


def uniform(rng, *shape):
    return rng.uniform(-1.0, 1.0, shape).astype(f4)


def square(rng, n):
    return {"a": uniform(rng, n, n), "b": uniform(rng, n, n), "n": n}


def tridiagonal(rng, n=12, systems=40):
    a, c, d = (rng.uniform(-1, 1, (n, systems)) for _ in range(3))
    return {
        "a": a,
        "b": rng.uniform(3, 4, (n, systems)),
        "c": c,
        "d": d,
        "n": n,
        "systems": systems,
    }


def thomas(a, b, c, d):
    x = np.empty_like(d)
    for s in range(d.shape[1]):
        full = np.diag(b[:, s]) + np.diag(a[1:, s], -1) + np.diag(c[:-1, s], 1)
        x[:, s] = np.linalg.solve(full, d[:, s])
    return x


def positive_definite(rng, batch=5, n=12):
    m = rng.uniform(-1, 1, (batch, n, n))
    return (m @ m.transpose(0, 2, 1) + n * np.eye(n)).astype(f4)


def well_conditioned(rng, n=20):
    return {"A": uniform(rng, n, n) + f4(2 * n) * np.eye(n, dtype=f4), "x": uniform(rng, n), "n": n}


tasks = [
    Task(
        HERE / "matmul_pasted.cu",
        reference=lambda a, b: a @ b,
        inputs=lambda rng: {
            "a": rng.integers(0, 1024, (50, 40), i4),
            "b": rng.integers(0, 1024, (40, 30), i4),
            "m": 50,
            "n": 40,
            "k": 30,
        },
    ),
    Task(
        HERE / "matmul_guide.cu", reference=lambda a, b: a @ b, inputs=lambda rng: square(rng, 64)
    ),
    Task(
        HERE / "matmul_ragged.cu",
        reference=lambda a, b: a @ b,
        inputs=lambda rng: {
            "a": rng.normal(size=(33, 21)),
            "b": rng.normal(size=(21, 45)),
            "m": 33,
            "n": 45,
            "k": 21,
        },
    ),
    Task(
        HERE / "matmul_registers.cu",
        reference=lambda A, B, C, alpha, beta: alpha * (A @ B) + beta * C,  # noqa: N803
        inputs=lambda rng: {
            "A": uniform(rng, 64, 40),
            "B": uniform(rng, 40, 96),
            "C": uniform(rng, 64, 96),
            "alpha": 1.5,
            "beta": -0.5,
            "m": 64,
            "n": 96,
            "k": 40,
        },
    ),
    Task(
        HERE / "matmul_float4.cu",
        reference=lambda A, B: A @ B,  # noqa: N803
        inputs=lambda rng: {
            "A": uniform(rng, 32, 48),
            "B": uniform(rng, 48, 64),
            "m": 32,
            "n": 64,
            "k": 48,
        },
    ),
    Task(
        HERE / "matmul_dynamic_shared.cu",
        reference=lambda a, b: a @ b,
        inputs=lambda rng: square(rng, 45),
    ),
    Task(
        HERE / "gemv_warp.cu",
        reference=lambda A, x: A @ x,  # noqa: N803
        inputs=lambda rng: {
            "A": uniform(rng, 37, 100),
            "x": uniform(rng, 100),
            "rows": 37,
            "cols": 100,
        },
    ),
    Task(
        HERE / "gemv_column.cu",
        reference=lambda A, x: A.T @ x,  # noqa: N803
        inputs=lambda rng: {
            "A": rng.normal(size=(40, 300)),
            "x": rng.normal(size=40),
            "rows": 40,
            "cols": 300,
        },
    ),
    Task(
        HERE / "transpose_naive.cu",
        reference=lambda idata: idata.T,
        inputs=lambda rng: {"idata": uniform(rng, 32, 96), "width": 96, "height": 32},
    ),
    Task(
        HERE / "transpose_padded.cu",
        reference=lambda idata: idata.T,
        inputs=lambda rng: {"idata": uniform(rng, 64, 96), "width": 96, "height": 64},
    ),
    Task(
        HERE / "transpose_diagonal.cu",
        reference=lambda idata: idata.T,
        inputs=lambda rng: {"idata": rng.normal(size=(32, 64)), "width": 64, "height": 32},
    ),
    Task(HERE / "thomas.cu", reference=thomas, inputs=tridiagonal, outputs={"x": ""}),
    Task(
        HERE / "inverse_3x3.cu",
        reference=lambda **given: np.linalg.inv(given["in"]),
        inputs=lambda rng: {"in": rng.normal(size=(80, 3, 3)) + 4 * np.eye(3), "count": 80},
    ),
    Task(
        HERE / "cholesky_batched.cu",
        reference=lambda a: np.linalg.cholesky(a),
        inputs=lambda rng: {"a": positive_definite(rng), "batch": 5},
    ),
    Task(
        HERE / "gauss_jordan.cu",
        reference=lambda A, x: {"A": np.eye(len(x)), "x": np.linalg.solve(A, x)},  # noqa: N803
        inputs=well_conditioned,
    ),
]
