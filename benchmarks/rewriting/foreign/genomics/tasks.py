"""Sequences, variants, and the expression of genes."""

from pathlib import Path

import numpy as np
from numpy.random import Generator

from optiml_magic import Task
from optiml_magic.bench.entry import Values, uniform

HERE = Path(__file__).parent


def genome(rng: Generator, length: int) -> Values:
    bases = np.frombuffer(b"ACGT", np.int8)
    return {"genome": bases[rng.integers(0, 4, length)], "length": length}


def genes(rng: Generator, genes: int, length: int) -> Values:
    return {
        "bases": rng.integers(0, 4, (genes, length), np.uint8),
        "frame": rng.integers(0, 3, genes, np.int32),
        "genes": genes,
        "length": length,
    }


tasks = [
    Task(
        HERE / "gc_content.cu",
        inputs=genome,
        sizes={"length": 1 << 23},
        verify_sizes={"length": 2003},
        outputs={"gc": "f4[length]"},
    ),
    Task(
        HERE / "genotype_posterior.cu",
        inputs=lambda rng, sites, depth: {
            "emission": uniform(rng, sites, depth, 10, low=0),
            "sites": sites,
            "depth": depth,
        },
        sizes={"sites": 4096, "depth": 200},
        verify_sizes={"sites": 13, "depth": 37},
        outputs={"likelihood": "f4[sites, 10]", "called": "f4[sites]"},
    ),
    Task(
        HERE / "best_two_hits.cu",
        inputs=lambda rng, reads, candidates: {
            "score": rng.integers(-200, 200, (reads, candidates), np.int32),
            "reads": reads,
            "candidates": candidates,
        },
        sizes={"reads": 8192, "candidates": 600},
        verify_sizes={"reads": 31, "candidates": 77},
        outputs={"best": "i4[reads]", "second": "i4[reads]", "where": "i4[reads]"},
    ),
    Task(
        HERE / "third_positions.cu",
        inputs=genes,
        sizes={"genes": 8192, "length": 1500},
        verify_sizes={"genes": 21, "length": 100},
        outputs={"gc3": "f4[genes]"},
    ),
    Task(
        HERE / "log_evidence.cu",
        inputs=lambda rng, reads, haplotypes: {
            "loglik": uniform(rng, reads, haplotypes, low=-30, high=0),
            "reads": reads,
            "haplotypes": haplotypes,
        },
        sizes={"reads": 32768, "haplotypes": 512},
        verify_sizes={"reads": 29, "haplotypes": 67},
        outputs={"evidence": "f4[reads]"},
    ),
    Task(
        HERE / "expression_zscore.cu",
        inputs=lambda rng, genes, cells: {
            "counts": np.floor(uniform(rng, genes, cells, low=0, high=9)),
            "genes": genes,
            "cells": cells,
        },
        sizes={"genes": 20000, "cells": 1000},
        verify_sizes={"genes": 17, "cells": 150},
        outputs={"z": "f4[genes, cells]"},
    ),
    Task(
        HERE / "turn_haplotypes.cu",
        inputs=lambda rng, samples, variants: {
            "dosage": uniform(rng, samples, variants, low=0, high=2),
            "samples": samples,
            "variants": variants,
        },
        sizes={"samples": 2504, "variants": 6000},
        verify_sizes={"samples": 70, "variants": 45},
        outputs={"turned": "f4[variants, samples]"},
    ),
    Task(
        HERE / "align_tile.cu",
        inputs=lambda rng, pairs: {
            "a": rng.integers(0, 4, (pairs, 64), np.uint8),
            "b": rng.integers(0, 4, (pairs, 64), np.uint8),
            "gap": -1,
            "pairs": pairs,
        },
        sizes={"pairs": 8192},
        verify_sizes={"pairs": 7},
        outputs={"last": "i4[pairs, 64]"},
    ),
]
