"""Stencils, convolutions, image kernels."""

from pathlib import Path

import numpy as np

from optiml_magic import Task

HERE = Path(__file__).parent
f4, i4, u1 = np.float32, np.int32, np.uint8


def uniform(rng, *shape):
    return rng.uniform(0.0, 1.0, shape).astype(f4)


def picture(rng, h, w, *channels):
    return rng.integers(0, 256, (h, w, *channels), u1)


def shifted(padded, radius, weights):
    """The sum of a padded array's windows; ``weights`` has the shape of a window."""
    size = [n - 2 * radius for n in padded.shape]
    total = 0
    for at in np.ndindex(weights.shape):
        window = tuple(slice(o, o + n) for o, n in zip(at, size, strict=True))
        total = total + weights[at] * padded[window]
    return total


def heat(u, r):
    u = u.copy()
    for _ in range(4):
        inner = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        u[1:-1, 1:-1] += r * inner
    return u


def seven_points(in_, c0, c1):
    weights = np.zeros((3, 3, 3))
    weights[1, 1, :] = weights[1, :, 1] = weights[:, 1, 1] = c1
    weights[1, 1, 1] = c0
    return shifted(np.pad(in_, 1), 1, weights)


def separable(src):
    w = np.array([1, 4, 6, 4, 1]) / 16
    return shifted(np.pad(src, 2, mode="edge"), 2, np.outer(w, w))


def box(in_):
    ones = np.ones((5, 5), int)
    padded, inside = np.pad(in_.astype(int), 2), np.pad(np.ones(in_.shape, int), 2)
    return (shifted(padded, 2, ones) // shifted(inside, 2, ones)).astype(u1)


def sobel(src):
    gx = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    padded = np.pad(src.astype(int), 1)
    magnitude = abs(shifted(padded, 1, gx)) + abs(shifted(padded, 1, gx.T))
    out = np.zeros(src.shape, u1)
    out[1:-1, 1:-1] = np.minimum(magnitude, 255)[1:-1, 1:-1]
    return out


def over(front, back):
    alpha = front[:, 3:]
    out = alpha * front + (1 - alpha) * back
    out[:, 3:] = alpha + (1 - alpha) * back[:, 3:]
    return out


def life(cells):
    for _ in range(6):
        steps = [(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if r or c]
        alive = sum(np.roll(cells, step, (0, 1)).astype(int) for step in steps)
        cells = ((alive == 3) | ((alive == 2) & (cells == 1))).astype(u1)
    return cells


def resized(src, dst_w, dst_h):
    def axis(n, m):
        at = np.maximum((np.arange(m) + 0.5) * n / m - 0.5, 0)
        low = at.astype(int)
        return low, np.minimum(low + 1, n - 1), at - low

    (y0, y1, ty), (x0, x1, tx) = axis(src.shape[0], dst_h), axis(src.shape[1], dst_w)
    rows = src[y0] * (1 - ty[:, None]) + src[y1] * ty[:, None]
    return rows[:, x0] * (1 - tx) + rows[:, x1] * tx


def median(in_):
    padded = np.pad(in_, 1, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3))
    return np.median(windows, axis=(2, 3)).astype(np.uint16)


tasks = [
    Task(
        HERE / "stencil_1d.cu",
        reference=lambda in_: shifted(np.pad(in_, 3), 3, np.ones(7, i4)),
        inputs=lambda rng: {"in": rng.integers(0, 100, 1000, i4), "n": 1000},
    ),
    Task(
        HERE / "heat_2d.cu",
        reference=heat,
        inputs=lambda rng: {"u": uniform(rng, 30, 45), "r": 0.2, "nx": 45, "ny": 30},
    ),
    Task(
        HERE / "stencil_3d.cu",
        reference=seven_points,
        inputs=lambda rng: {
            "in": uniform(rng, 9, 20, 37),
            "c0": 0.5,
            "c1": 0.1,
            "nx": 37,
            "ny": 20,
            "nz": 9,
            "TX_": 16,
            "TY_": 8,
        },
    ),
    Task(
        HERE / "convolution_1d.cu",
        reference=lambda N, M: shifted(np.pad(N, 3), 3, M),  # noqa: N803
        inputs=lambda rng: {"N": uniform(rng, 900), "M": uniform(rng, 7), "width": 900},
    ),
    Task(
        HERE / "convolution_2d.cu",
        reference=lambda image, mask: shifted(np.pad(image, 2), 2, mask.reshape(5, 5)),
        inputs=lambda rng: {
            "image": rng.integers(0, 100, (40, 50), i4),
            "mask": rng.integers(-9, 9, 25, i4),
            "width": 50,
            "height": 40,
        },
    ),
    Task(
        HERE / "separable_filter.cu",
        reference=separable,
        inputs=lambda rng: {"src": uniform(rng, 33, 70), "w": 70, "h": 33},
    ),
    Task(
        HERE / "greyscale_uchar3.cu",
        reference=lambda rgb: ((rgb.astype(int) @ [77, 150, 29]) >> 8).astype(u1),
        inputs=lambda rng: {"rgb": picture(rng, 30, 50, 3), "width": 50, "height": 30},
    ),
    Task(
        HERE / "greyscale_pasted.cu",
        reference=lambda rgbImage: (rgbImage.astype(int) @ [1, 2, 1] // 4).astype(u1),  # noqa: N803
        inputs=lambda rng: {"rgbImage": picture(rng, 30, 50, 3), "width": 50, "height": 30},
    ),
    Task(
        HERE / "blur_box.cu",
        reference=box,
        inputs=lambda rng: {"in": picture(rng, 25, 43), "w": 43, "h": 25},
    ),
    Task(
        HERE / "sobel.cu",
        reference=sobel,
        inputs=lambda rng: {"src": picture(rng, 31, 47), "width": 47, "height": 31},
    ),
    Task(
        HERE / "alpha_blend.cu",
        reference=over,
        inputs=lambda rng: {
            "front": uniform(rng, 600, 4),
            "back": uniform(rng, 600, 4),
            "pixels": 600,
        },
    ),
    Task(
        HERE / "game_of_life.cu",
        reference=life,
        inputs=lambda rng: {"cells": rng.integers(0, 2, (33, 40), u1), "rows": 33, "cols": 40},
    ),
    Task(
        HERE / "bilinear_resize.cu",
        reference=resized,
        inputs=lambda rng: {
            "src": uniform(rng, 20, 30),
            "src_w": 30,
            "src_h": 20,
            "dst_w": 77,
            "dst_h": 41,
        },
    ),
    Task(
        HERE / "median_3x3.cu",
        reference=median,
        inputs=lambda rng: {
            "in": rng.integers(0, 65536, (20, 45), np.uint16),
            "w": 45,
            "h": 20,
        },
    ),
]
