"""Simulation: bodies, random numbers, fractals, automata."""

from math import erfc
from pathlib import Path

import numpy as np

from optiml_magic import Task

HERE = Path(__file__).parent
f4, i4, u4, u8 = np.float32, np.int32, np.uint32, np.uint64


def uniform(rng, *shape, low=-1.0, high=1.0):
    return rng.uniform(low, high, shape).astype(f4)


def bodies(rng, n=192):
    x = uniform(rng, n, 4)
    x[:, 3] = uniform(rng, n, low=0.5)
    return {"globalX": x, "N": n}


def forces(globalX):  # noqa: N803
    position, mass = globalX[:, :3], globalX[:, 3]
    r = position[None] - position[:, None]
    inverse = ((r**2).sum(2) + 0.01) ** -1.5
    out = np.zeros_like(globalX)
    out[:, :3] = (r * (mass * inverse)[..., None]).sum(1)
    return out


def kicked(mass, x, y, vx, vy, dt):
    dx, dy = x - x[:, None], y - y[:, None]
    f = mass * (dx**2 + dy**2 + 0.05) ** -1.5
    return vx + dt * (f * dx).sum(1), vy + dt * (f * dy).sum(1)


def plane(rng, n=150):
    names = ("mass", "x", "y", "vx", "vy")
    return {**{name: uniform(rng, n) for name in names}, "dt": 0.01, "n": n}


def pi_hits(seeds, draws):
    state, inside = seeds.copy(), 0
    with np.errstate(over="ignore"):
        for _ in range(draws):
            xy = []
            for _ in range(2):
                state = u4(1664525) * state + u4(1013904223)
                xy.append((state >> u4(8)).astype(f4) * f4(1 / 16777216))
            # the kernel's sum is one fused operation; none of these lies that close to the circle
            inside += int((xy[0].astype(float) ** 2 + xy[1].astype(float) ** 2 <= 1).sum())
    return np.array([inside], u8)


def philox(seed, n):
    mask, out = 0xFFFFFFFF, []
    for i in range(n // 4):
        c, k = [i, 0, 0, 0], [int(seed), 0]
        for _ in range(10):
            p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & mask, (p0 >> 32) ^ c[3] ^ k[1], p0 & mask]
            k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
        out += c
    return np.array(out, u4)


def walked(seeds, steps):
    s, ends = seeds.copy(), np.zeros((seeds.size, 2), i4)
    moves = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]], i4)
    for _ in range(steps):
        s ^= s << u8(13)
        s ^= s >> u8(7)
        s ^= s << u8(17)
        ends += moves[(s >> u8(62)).astype(int)]
    return ends


def escape(c, z, limit, bound):
    """How many steps each point stays within the bound."""
    count = np.zeros(np.shape(c), i4)
    for _ in range(limit):
        near = z.real**2 + z.imag**2 <= bound
        count += near
        z = np.where(near, z * z + c, z)
    return count


def mandelbrot(width, height, limit):
    y, x = np.mgrid[:height, :width]
    return escape(-2 + x / 32 + 1j * (-1 + y / 32), np.zeros((height, width), complex), limit, 4)


def julia():
    y, x = np.mgrid[:48, :48]
    z = 1.5 * (24 - x) / 24 + 1.5j * (24 - y) / 24
    stays = escape(np.full(z.shape, -0.8 + 0.156j), z, 201, 1000) == 201
    out = np.zeros((48, 48, 4), np.uint8)
    out[..., 0], out[..., 3] = 255 * stays, 255
    return out


def black_scholes(price, strike, years, riskfree, volatility):
    d1 = np.log(price / strike) + (riskfree + 0.5 * volatility**2) * years
    d1 = d1 / (volatility * np.sqrt(years))
    d2 = d1 - volatility * np.sqrt(years)
    normal = np.vectorize(lambda d: 0.5 * erfc(-d / 2**0.5))
    paid = strike * np.exp(-riskfree * years)
    call = price * normal(d1) - paid * normal(d2)
    return call, paid * normal(-d2) - price * normal(-d1)


def options(rng, n=500):
    return {
        "price": uniform(rng, n, low=5, high=30),
        "strike": uniform(rng, n, low=5, high=30),
        "years": uniform(rng, n, low=0.25, high=5),
        "riskfree": 0.02,
        "volatility": 0.3,
        "optN": n,
    }


def rule_110(start, words, steps):
    bits = ((start[:, None] >> np.arange(32, dtype=u4)) & 1).ravel()
    history = np.empty((steps, words), u4)
    for t in range(steps):
        packed = bits.reshape(words, 32).astype(u8) << np.arange(32, dtype=u8)
        history[t] = packed.sum(1)
        left, right = np.roll(bits, 1), np.roll(bits, -1)
        bits = (bits ^ right) | (bits & (1 - left))
    return history


tasks = [
    Task(HERE / "nbody_tiled.cu", reference=forces, inputs=bodies),
    Task(HERE / "nbody_soa.cu", reference=kicked, inputs=plane),
    Task(
        HERE / "pi_lcg.cu",
        reference=pi_hits,
        inputs=lambda rng: {"seeds": rng.integers(0, 2**32, 300, u4), "draws": 40, "threads": 300},
    ),
    Task(HERE / "philox.cu", reference=philox, inputs={"seed": 1234, "n": 512}),
    Task(
        HERE / "xorshift_walk.cu",
        reference=walked,
        inputs=lambda rng: {"seeds": rng.integers(1, 2**64, 200, u8), "steps": 50, "n": 200},
    ),
    Task(
        HERE / "mandelbrot.cu",
        reference=mandelbrot,
        inputs={"width": 96, "height": 64, "limit": 60},
    ),
    Task(HERE / "julia.cu", reference=julia),
    Task(HERE / "black_scholes.cu", reference=black_scholes, inputs=options, rtol=1e-4),
    Task(
        HERE / "rule_110.cu",
        reference=rule_110,
        inputs=lambda rng: {"start": rng.integers(0, 2**32, 20, u4), "words": 20, "steps": 30},
    ),
]
