"""Estimates of atomics that meet, beside what an H200 took for the same loop."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import numpy as np
import pytest

from optiml_magic.model.task import Task
from optiml_magic.optimize import evaluate_once
from optiml_magic.settings import resolve

RECORD = json.loads(
    (Path(__file__).parents[3] / "benchmarks/results/atomics-h200.json").read_text()
)
LOOP = """
#pragma optiml launch meet grid(blocks) block(256)
__global__ void meet(TYPE* data, unsigned words, unsigned together, unsigned stride, int blocks) {
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned lane = thread % 32, warp = thread / 32;
    unsigned span = 32 / together * stride;
    for (int round = 0; round < ROUNDS; ++round) {
        unsigned draw = (warp * 4099u + round) * 2654435761u;
        draw ^= draw >> 15;
        unsigned base = draw % max(words / span, 1u) * span;
        atomicAdd(data + (base + lane / together * stride) % words, (TYPE)1);
    }
}
"""


@pytest.mark.parametrize(
    ("kind", "together", "stride", "power"),
    [
        ("float add", 32, 1, 6), ("float add", 8, 1, 9), ("float add", 1, 8, 9),
        ("float add", 32, 1, 18), ("float add", 1, 8, 18), ("float add", 16, 8, 18),
        ("double add", 32, 1, 18), ("double add", 1, 8, 12),
    ],
)  # fmt: skip
def test_turns_take_what_they_took(kind: str, together: int, stride: int, power: int) -> None:
    words = 1 << power
    (row,) = (
        r
        for r in RECORD["rows"]
        if (r["kind"], r["together"], r["stride"], r["words"]) == (kind, together, stride, words)
    )
    kernel = LOOP.replace("TYPE", kind.split(maxsplit=1)[0]).replace(
        "ROUNDS", str(RECORD["rounds"])
    )
    sizes = {"blocks": RECORD["threads"] // 256}

    def inputs(rng: np.random.Generator, blocks: int) -> dict[str, object]:
        zeros = np.zeros(words, "f4" if kind.startswith("float") else "f8")
        return {"data": zeros, "words": words, "together": together, "stride": stride}

    task = Task(kernel, None, inputs, sizes=sizes, verify_sizes={"blocks": 3})
    settings = resolve({"device": "emulated:h200", "verify_seeds": 1})
    evaluation = evaluate_once(task, settings).evaluation
    assert evaluation.measurement is not None, evaluation.verdict
    measured = statistics.median(row["samples"])
    assert measured / 2 < evaluation.measurement.seconds < 2 * measured
