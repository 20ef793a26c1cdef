"""Molecules: their fingerprints."""

from pathlib import Path

import numpy as np

from optiml_magic import Task

HERE = Path(__file__).parent

tasks = [
    Task(
        HERE / "tanimoto.cu",
        inputs=lambda rng, molecules, nbits: {
            "prints": rng.integers(0, 1 << 32, (molecules, nbits // 32), np.uint32),
            "query": rng.integers(0, 1 << 32, nbits // 32, np.uint32),
            "molecules": molecules,
            "nbits": nbits,
        },
        sizes={"molecules": 1 << 17, "nbits": 1024},
        verify_sizes={"molecules": 270, "nbits": 160},
        outputs={"similarity": "f4[molecules]"},
    ),
]
