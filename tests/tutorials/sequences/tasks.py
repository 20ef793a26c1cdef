"""Sequences: dynamic programming, strings, transforms, hashes, number theory."""

from pathlib import Path

import numpy as np

from optiml_magic import Task

HERE = Path(__file__).parent
i4, u4, u8 = np.int32, np.uint32, np.uint64
M32, M64 = 2**32 - 1, 2**64 - 1


def letters(rng, *shape):
    return rng.integers(97, 100, shape).astype(np.int8)


def lcs(a, b, n, m):
    table = np.zeros((n + 1, m + 1), i4)
    for i in range(n):
        for j in range(m):
            longer = max(table[i, j + 1], table[i + 1, j])
            table[i + 1, j + 1] = table[i, j] + 1 if a[i] == b[j] else longer
    return table


def edit_distances(words, others):
    length = words.shape[1]
    row = np.tile(np.arange(length + 1), (len(words), 1))
    for i in range(length):
        before, row = row, np.empty_like(row)
        row[:, 0] = i + 1
        for j in range(length):
            swap = before[:, j] + (words[:, i] != others[:, j])
            row[:, j + 1] = np.minimum(np.minimum(before[:, j + 1], row[:, j]) + 1, swap)
    return row[:, -1].astype(i4)


def found(text):
    whole = text.tobytes()
    at = [i for i in range(len(whole)) if whole.startswith(b"abca", i)]
    return np.array([len(at)], i4), np.array([at[0] if at else 2**31 - 1], i4)


def fnv1a(keys):
    hashes = []
    for key in keys:
        h = 0xCBF29CE484222325
        for byte in key:
            h = ((h ^ int(byte)) * 0x100000001B3) & M64
        hashes.append(h)
    return np.array(hashes, u8)


def rotl32(x, r):
    return ((x << r) | (x >> (32 - r))) & M32


def murmur3(blocks, seed):
    hashes = []
    for row in blocks:
        h = seed
        for word in row:
            k = rotl32(int(word) * 0xCC9E2D51 & M32, 15) * 0x1B873593 & M32
            h = (rotl32(h ^ k, 13) * 5 + 0xE6546B64) & M32
        h ^= 4 * row.size
        h = (h ^ (h >> 16)) * 0x85EBCA6B & M32
        h = (h ^ (h >> 13)) * 0xC2B2AE35 & M32
        hashes.append(h ^ (h >> 16))
    return np.array(hashes, u4)


def counted(queries, **given):
    keys, counts = np.unique(given["in"], return_counts=True)
    known = dict(zip(keys.tolist(), counts.tolist(), strict=True))
    return np.array([known.get(q, 0) for q in queries.tolist()], u4)


def collatz(start):
    paths = []
    for x in start.tolist():
        path = [x]
        while len(path) == 1 or path[-1] != 1:
            path.append(path[-1] // 2 if path[-1] % 2 == 0 else 3 * path[-1] + 1)
        paths.append(path)
    return np.array([len(p) - 1 for p in paths], i4), np.array([max(p) for p in paths], u8)


def sieve(limit):
    composite = np.zeros(limit, bool)
    for p in range(2, int(limit**0.5) + 1):
        composite[p * p :: p] = True
    return composite


def fibonacci(indices, modulus):
    values = [0, 1]
    while len(values) <= indices.max():
        values.append((values[-1] + values[-2]) % modulus)
    return np.array(values)[indices]


tasks = [
    Task(
        HERE / "lcs_diagonal.cu",
        reference=lcs,
        inputs=lambda rng: {"a": letters(rng, 40), "b": letters(rng, 65), "n": 40, "m": 65},
        outputs={"table": ""},
    ),
    Task(
        HERE / "edit_distance.cu",
        reference=edit_distances,
        inputs=lambda rng: {
            "words": letters(rng, 90, 12).astype(np.uint8),
            "others": letters(rng, 90, 12).astype(np.uint8),
            "pairs": 90,
            "length": 12,
        },
    ),
    Task(
        HERE / "string_search.cu",
        reference=found,
        inputs=lambda rng: {"text": letters(rng, 3000), "length": 3000, "pattern_length": 4},
    ),
    Task(
        HERE / "fft_radix2.cu",
        reference=lambda in_: (
            np.fft.fft(in_[..., 0] + 1j * in_[..., 1])
            .astype(complex)
            .view(float)
            .reshape(in_.shape)
        ),
        inputs=lambda rng: {
            "in": rng.normal(size=(4, 128, 2)).astype(np.float32),
            "batch": 4,
        },
    ),
    Task(
        HERE / "fnv_hash.cu",
        reference=fnv1a,
        inputs=lambda rng: {
            "keys": rng.integers(0, 256, (200, 11), np.uint8),
            "key_length": 11,
            "count": 200,
        },
    ),
    Task(
        HERE / "murmur3.cu",
        reference=murmur3,
        inputs=lambda rng: {
            "blocks": rng.integers(0, 2**32, (150, 5), u4),
            "seed": 42,
            "words": 5,
            "count": 150,
        },
    ),
    Task(
        HERE / "hash_table.cu",
        reference=counted,
        inputs=lambda rng: {
            "in": rng.integers(0, 200, 700, u4),
            "queries": np.arange(250, dtype=u4),
            "capacity": 512,
            "n": 700,
            "m": 250,
        },
    ),
    Task(
        HERE / "collatz.cu",
        reference=collatz,
        inputs=lambda rng: {"start": rng.integers(1, 10_000, 300, u8), "n": 300},
    ),
    Task(HERE / "sieve.cu", reference=sieve, inputs={"limit": 2000, "root": 44}),
    Task(
        HERE / "matrix_power_mod.cu",
        reference=fibonacci,
        inputs=lambda rng: {
            "indices": rng.integers(0, 5000, 100, np.int64),
            "modulus": 1_000_000_007,
            "n": 100,
        },
    ),
]
