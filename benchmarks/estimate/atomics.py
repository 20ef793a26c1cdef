"""What atomic operations of global memory cost a GPU, by where the lanes of a warp meet.

    python benchmarks/estimate/atomics.py FILE

Each of the threads makes ROUNDS operations. ``together`` neighbouring lanes meet at one word, words
of a warp lie ``stride`` words apart, and each warp begins at a place drawn anew in each round among
``words`` words. Samples are seconds between events, and those of the same loop without the
operation stand beside them (``idle``).
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from pathlib import Path
from typing import Any

import cupy as cp
import numpy as np

BLOCKS, THREADS, ROUNDS, SAMPLES = 2112, 256, 32, 5
KINDS = {
    "float add": ("float", "atomicAdd(at, 1.f)"),
    "float add, answer used": ("float", "sum += atomicAdd(at, 1.f)"),
    "int add": ("int", "atomicAdd(at, lane)"),
    "int max": ("int", "atomicMax(at, lane)"),
    "double add": ("double", "atomicAdd(at, 1.0)"),
    "plain store": ("float", "*(volatile float*)at = 1.f"),
    "idle": ("float", "sum += (float)(size_t)at"),
}
SOURCE = """
extern "C" __global__ void meet(
    TYPE* data, unsigned words, unsigned together, unsigned stride, int rounds, float* out
) {
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned lane = thread % 32, warp = thread / 32;
    unsigned span = 32 / together * stride;
    float sum = 0.f;
    for (int round = 0; round < rounds; ++round) {
        unsigned draw = (warp * 4099u + round) * 2654435761u;
        draw ^= draw >> 15;
        unsigned base = draw % max(words / span, 1u) * span;
        TYPE* at = data + (base + lane / together * stride) % words;
        DO;
    }
    if (sum == -1.f) out[0] = sum;
}
"""


def main(out: Path) -> None:
    properties = cp.cuda.runtime.getDeviceProperties(0)
    record: dict[str, Any] = {
        "command": "python benchmarks/estimate/atomics.py FILE",
        "date": time.strftime("%Y-%m-%d"),
        "gpu": properties["name"].decode(),
        "clock_khz": properties["clockRate"],
        "driver": cp.cuda.runtime.driverGetVersion(),
        "cupy": cp.__version__,
        "threads": BLOCKS * THREADS,
        "rounds": ROUNDS,
        "rows": [],
    }
    out_of_loop = cp.zeros(1, cp.float32)
    for kind, (ctype, text) in KINDS.items():
        source = SOURCE.replace("TYPE", ctype).replace("DO", text)
        kernel = cp.RawModule(code=source, options=("-std=c++17",)).get_function("meet")
        data = cp.zeros(1 << 26, {"float": "f4", "int": "i4", "double": "f8"}[ctype])
        few = kind not in ("float add", "idle")
        sizes = (12, 18) if few else (6, 9, 12, 15, 18, 22, 26)
        for together, stride, size in itertools.product((1, 2, 4, 8, 16, 32), (1, 8, 32), sizes):
            if together == 32 and stride > 1:
                continue
            args = (data, np.uint32(1 << size), np.uint32(together), np.uint32(stride))
            samples = _timed(kernel, (*args, np.int32(ROUNDS), out_of_loop))
            record["rows"].append(
                {
                    "kind": kind,
                    "together": together,
                    "stride": stride,
                    "words": 1 << size,
                    "samples": samples,
                }
            )
        print(kind, f"{1e6 * min(record['rows'][-1]['samples']):.0f} us", flush=True)
        del data
        cp.get_default_memory_pool().free_all_blocks()
    out.write_text(json.dumps(record))


def _timed(kernel: cp.RawKernel, args: tuple[Any, ...]) -> list[float]:
    samples = []
    for number in range(SAMPLES + 1):
        start, end = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        kernel((BLOCKS,), (THREADS,), args)
        end.record()
        end.synchronize()
        if number:
            samples.append(1e-3 * cp.cuda.get_elapsed_time(start, end))
    return samples


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, metavar="FILE")
    main(parser.parse_args().out)
