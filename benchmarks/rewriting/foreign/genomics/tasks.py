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


def packed(rng: Generator, *shape: int) -> np.ndarray:
    """Bases of two bits, of which most are those that a read and a place share."""
    return rng.integers(0, 1 << 32, shape, np.uint32) & 0x11040411


def seeds(rng: Generator, seeds: int, length: int) -> Values:
    return {
        "reference": packed(rng, seeds),
        "reads": packed(rng, seeds, (length + 15) // 16),
        "at": rng.integers(0, 16 * seeds - length, seeds, np.int32),
        "seeds": seeds,
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
    Task(
        HERE / "polygenic.cu",
        inputs=lambda rng, people, variants, traits: {
            "dosage": rng.integers(0, 3, (people, variants), np.int8),
            "effect": uniform(rng, variants, traits, low=-0.05, high=0.05),
            "base": uniform(rng, traits),
            "people": people,
            "variants": variants,
            "traits": traits,
        },
        sizes={"people": 8192, "variants": 2000, "traits": 24},
        verify_sizes={"people": 150, "variants": 41, "traits": 5},
        outputs={"risk": "f4[people, traits]"},
    ),
    Task(
        HERE / "read_distance.cu",
        inputs=lambda rng, pairs, bases: {
            **{name: packed(rng, pairs, (bases + 15) // 16) for name in "ab"},
            "pairs": pairs,
            "bases": bases,
        },
        sizes={"pairs": 1 << 18, "bases": 150},
        verify_sizes={"pairs": 150, "bases": 75},
        outputs={"distance": "i4[pairs]"},
    ),
    Task(
        HERE / "guide_sites.cu",
        inputs=lambda rng, places: {
            "genome": rng.integers(0, 1 << 64, places // 32 + 2, np.uint64),
            "guide": 0x9B1E47C3D2,
            "places": places,
        },
        sizes={"places": 1 << 22},
        verify_sizes={"places": 1501},
        outputs={"mismatches": "u1[places]"},
    ),
    Task(
        HERE / "shared_alleles.cu",
        inputs=lambda rng, people, quads: {
            "geno": rng.integers(0, 256, (people, quads), np.uint8),
            "people": people,
            "bytes": quads,
        },
        sizes={"people": 512, "quads": 512},
        verify_sizes={"people": 37, "quads": 21},
        outputs={"same": "f4[people, people]"},
    ),
    Task(
        HERE / "seed_extend.cu",
        inputs=seeds,
        sizes={"seeds": 1 << 18, "length": 150},
        verify_sizes={"seeds": 150, "length": 75},
        outputs={"extent": "i4[seeds]"},
    ),
    Task(
        HERE / "smooth_expression.cu",
        inputs=lambda rng, cells: {
            "pcs": uniform(rng, cells, 20),
            "expression": uniform(rng, cells, 32, low=0, high=6),
            "width": uniform(rng, cells, low=1, high=2),
            "cells": cells,
        },
        sizes={"cells": 8192},
        verify_sizes={"cells": 70},
        outputs={"smoothed": "f4[cells, 32]"},
    ),
    Task(
        HERE / "gc_skew.cu",
        inputs=lambda rng, chromosomes, length: {
            "bases": rng.choice(np.frombuffer(b"ACGT", np.int8), (chromosomes, length)),
            "chromosomes": chromosomes,
            "length": length,
        },
        sizes={"chromosomes": 12, "length": 1 << 18},
        verify_sizes={"chromosomes": 3, "length": 701},
        outputs={"skew": "i4[chromosomes, length]"},
    ),
    Task(
        HERE / "reads_by_sample.cu",
        inputs=lambda rng, n, samples: {
            "sample": rng.integers(0, samples, n, np.uint8),
            "quality": rng.integers(0, 60, n, np.uint8),
            "n": n,
            "samples": samples,
        },
        sizes={"n": 1 << 21, "samples": 48},
        verify_sizes={"n": 300, "samples": 13},
        outputs={"reads": "i4[samples]"},
    ),
]
