"""First kernels of a course: element-wise work, types, structs, templates, bits."""

from pathlib import Path

import numpy as np

from optiml_magic import Task

HERE = Path(__file__).parent
f4, i4, u4 = np.float32, np.int32, np.uint32


def uniform(rng, *shape, low=-1.0, high=1.0):
    return rng.uniform(low, high, shape).astype(f4)


def to_bfloat16(x):
    """The nearest bfloat16, ties to even, as 16-bit words."""
    bits = np.asarray(x, f4).view(u4)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bfloat16(words):
    return (words.astype(u4) << 16).view(f4)


def smooth(in_, weight):
    x = np.pad(in_, 1, mode="edge")
    return (1 - weight) * in_ + 0.5 * weight * (x[:-2] + x[2:])


def rotated(points, angle):
    p, k = points.reshape(-1, 3), np.array([1, 2, 2]) / 3
    along = (p @ k)[:, None] * k
    return (
        p * np.cos(angle) + np.cross(k, p) * np.sin(angle) + along * (1 - np.cos(angle))
    ).ravel()


PARTICLE = np.dtype([("position", f4, 3), ("velocity", f4, 3), ("mass", f4)])


def particles(rng):
    made = np.empty(300, PARTICLE)
    made["position"], made["velocity"] = uniform(rng, 300, 3), uniform(rng, 300, 3)
    made["mass"] = uniform(rng, 300, low=1, high=2)
    return {"particles": made, "dt": f4(0.1), "n": 300}


def drift(particles, dt):
    v, y = particles["velocity"].astype(float), particles["position"][:, 1] + 0.0
    y = y + dt * v[:, 1]
    return particles["mass"] * (0.5 * (v**2).sum(1) + 9.81 * y)


def horner(x):
    return np.polyval([3.0, 0.125, -1.0, 2.0, 0.25, -0.5, 1.0], x)


def bit_strings(x):
    return [format(int(v), f"0{8 * x.itemsize}b") for v in x]


def bit_tricks(x):
    text = bit_strings(x)
    return {
        "reversed": np.array([int(t[::-1], 2) for t in text], u4),
        "ones": np.array([t.count("1") for t in text], i4),
        "leading": np.array([len(t) - len(t.lstrip("0")) for t in text], i4),
        "lowest": np.array([t[::-1].find("1") + 1 for t in text], i4),
        "rotated": (x << u4(7)) | (x >> u4(25)),
        "swapped": x.byteswap(),
    }


def reverse64(x):
    return np.array([int(t[::-1], 2) for t in bit_strings(x)], np.uint64), np.ones(x.size, i4)


def complex_power(z, k):
    w = z.view(complex).reshape(-1) ** int(k)
    return w.view(float).reshape(z.shape)


def project(camera, points):
    x, y, z = points.reshape(-1, 3).T
    u = np.floor(camera["focal"] * x / z + camera["centre"][0]).astype(int)
    v = np.floor(camera["focal"] * y / z + camera["centre"][1]).astype(int)
    inside = (u >= 0) & (u < camera["width"]) & (v >= 0) & (v < camera["height"])
    return np.where(inside, v * camera["width"] + u, -1).astype(i4)


CAMERA = np.dtype(  # a float2 begins at a multiple of 8 bytes
    {
        "names": ["focal", "centre", "width", "height"],
        "formats": [f4, (f4, 2), i4, i4],
        "offsets": [0, 8, 16, 20],
    }
)


def seen(rng):
    points = uniform(rng, 500, 3)
    points[:, 2] += 3
    return {
        "camera": np.array((64.0, (32.25, 24.25), 64, 48), CAMERA)[()],
        "points": points.ravel(),
        "n": 500,
    }


def activate(in_):
    x = in_.reshape(-1, 4)
    left, right = x[:, :2], x[:, 2:]
    return np.hstack([np.where(left > 0, left, 0.1 * left), 1 / (1 + np.exp(-right))]).ravel()


def distance_field(centre, nx, ny, nz):
    z, y, x = np.mgrid[:nz, :ny, :nx]
    cx, cy, cz = map(float, centre)
    return np.sqrt((x - cx) ** 2 + (y - cy) ** 2 + (z - cz) ** 2)


tasks = [
    Task(
        HERE / "vector_add.cu",
        reference=lambda a, b: a + b,
        inputs=lambda rng: {"a": uniform(rng, 3001), "b": uniform(rng, 3001), "n": 3001},
    ),
    Task(
        HERE / "grid_stride.cu",
        reference=lambda x, scale, shift: scale * x + shift,
        inputs=lambda rng: {"x": uniform(rng, 2000), "scale": 2.5, "shift": -1.0, "n": 2000},
    ),
    Task(
        HERE / "functor_transform.cu",
        reference=lambda in_: np.clip(in_, -0.5, 0.5) ** 2,
        inputs=lambda rng: {"in": uniform(rng, 1000), "n": 1000},
    ),
    Task(
        HERE / "lambda_for_each.cu",
        reference=smooth,
        inputs=lambda rng: {"in": uniform(rng, 1111), "weight": 0.25, "n": 1111},
    ),
    Task(
        HERE / "vec3_rotate.cu",
        reference=rotated,
        inputs=lambda rng: {"points": uniform(rng, 3 * 500), "angle": 0.7, "n": 500},
    ),
    Task(HERE / "particles_aos.cu", reference=drift, inputs=particles),
    Task(
        HERE / "float4_copy.cu",
        reference=lambda in_, s: s * in_,
        inputs=lambda rng: {"in": uniform(rng, 4096), "s": 3.0, "n": 4096},
    ),
    Task(
        HERE / "half2_axpy.cu",
        reference=lambda a, x, y: a * x + y,
        inputs=lambda rng: {
            "x": uniform(rng, 2048).astype(np.float16),
            "y": uniform(rng, 2048).astype(np.float16),
            "a": 1.5,
            "n": 2048,
        },
    ),
    Task(
        HERE / "half_norm.cu",
        reference=lambda x: np.sqrt((x.reshape(-1, 3) ** 2).sum(1)),
        inputs=lambda rng: {"x": uniform(rng, 900).astype(np.float16), "n": 300},
    ),
    Task(
        HERE / "bfloat16_residual.cu",
        reference=lambda x, residual: to_bfloat16(from_bfloat16(x) + from_bfloat16(residual)),
        inputs=lambda rng: {
            "x": to_bfloat16(uniform(rng, 1500)),
            "residual": to_bfloat16(uniform(rng, 1500)),
            "n": 1500,
        },
    ),
    Task(
        HERE / "bfloat162_relu.cu",
        reference=lambda x, scale: np.maximum(
            from_bfloat16(to_bfloat16(from_bfloat16(to_bfloat16(x)) * f4(scale))), 0
        ),
        inputs=lambda rng: {"x": uniform(rng, 600, 2), "scale": 1.5, "pairs": 600},
    ),
    Task(
        HERE / "polynomial_constant.cu",
        reference=horner,
        inputs=lambda rng: {"x": rng.uniform(-1, 1, 700), "n": 700},
    ),
    Task(
        HERE / "gather_table.cu",
        reference=lambda words: np.array([b.count("1") for b in bit_strings(words)], i4),
        inputs=lambda rng: {"words": rng.integers(0, 2**32, 800, u4), "n": 800},
    ),
    Task(
        HERE / "bit_tricks.cu",
        reference=bit_tricks,
        inputs=lambda rng: {
            "x": rng.integers(0, 2**32, 500, u4) >> rng.integers(0, 32, 500, u4),
            "n": 500,
        },
    ),
    Task(
        HERE / "bit_reverse_64.cu",
        reference=reverse64,
        inputs=lambda rng: {"x": rng.integers(0, 2**64, 300, np.uint64), "n": 300},
        outputs={"out": ""},
    ),
    Task(
        HERE / "complex_multiply.cu",
        reference=lambda a, b: a.conj() * b,
        inputs=lambda rng: {
            "a": (rng.normal(size=900) + 1j * rng.normal(size=900)).astype(np.complex64),
            "b": (rng.normal(size=900) + 1j * rng.normal(size=900)).astype(np.complex64),
            "n": 900,
        },
    ),
    Task(
        HERE / "complex_class.cu",
        reference=complex_power,
        inputs=lambda rng: {"z": rng.uniform(-1, 1, (400, 2)), "k": 5, "n": 400},
    ),
    Task(HERE / "hello_printf.cu", reference=lambda: np.arange(8, dtype=i4)),
    Task(
        HERE / "assert_positive.cu",
        reference=lambda x: np.log(x),
        inputs=lambda rng: {"x": uniform(rng, 700, low=0.5, high=9), "n": 700},
    ),
    Task(
        HERE / "launch_bounds.cu",
        reference=lambda x: np.cbrt(x),
        inputs=lambda rng: {"x": uniform(rng, 800, low=0.5, high=8), "n": 800},
    ),
    Task(HERE / "struct_argument.cu", reference=project, inputs=seen),
    Task(
        HERE / "class_virtual_free.cu",
        reference=activate,
        inputs=lambda rng: {"in": uniform(rng, 4 * 100, low=-3, high=3), "rows": 100},
    ),
    Task(
        HERE / "strided_2d.cu",
        reference=lambda u, v: np.outer(u, v),
        inputs=lambda rng: {"u": uniform(rng, 45), "v": uniform(rng, 70), "rows": 45, "cols": 70},
    ),
    Task(
        HERE / "volume_3d.cu",
        reference=distance_field,
        inputs=lambda rng: {
            "centre": np.array((3, 4, 5), [(c, f4) for c in "xyz"])[()],
            "nx": 20,
            "ny": 10,
            "nz": 7,
        },
    ),
]
