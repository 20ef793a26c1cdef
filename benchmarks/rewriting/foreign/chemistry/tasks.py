"""Molecules: their fingerprints, what is known of their like."""

from pathlib import Path

import numpy as np

from optiml_magic import Task
from optiml_magic.bench.entry import uniform

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
    Task(
        HERE / "analogues.cu",
        inputs=lambda rng, molecules, library: {
            "wanted": uniform(rng, molecules, 32),
            "known": uniform(rng, library, 32),
            "measured": uniform(rng, library, 12, low=1, high=5),
            "cutoff": 22.0,
            "molecules": molecules,
            "library": library,
        },
        sizes={"molecules": 16384, "library": 3000},
        verify_sizes={"molecules": 70, "library": 45},
        outputs={"predicted": "f4[molecules, 12]"},
    ),
    Task(
        HERE / "charge_by_residue.cu",
        inputs=lambda rng, atoms, residues: {
            "residue": rng.integers(0, residues, atoms, np.int16),
            "charge": uniform(rng, atoms),
            "atoms": atoms,
            "residues": residues,
        },
        sizes={"atoms": 1 << 20, "residues": 300},
        verify_sizes={"atoms": 300, "residues": 13},
        outputs={"total": "f4[residues]"},
    ),
]
