"""Shapes of the tiles of ``weighted_rows``, timed on a GPU: attention of one head and of many.

    python benchmarks/gpu/attention.py FILE

Every shape that a block has room for is held against an answer by CuPy, and timed five times from
a cold L2 cache. ``FILE`` gets a line a shape: seconds are those of the median. From these come the
shares of ``optiml_magic/proposers/rewrites/weighted_rows.py``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from optiml_magic.errors import SourceError
from optiml_magic.kernels.primitives.base import Refused, kernels
from optiml_magic.kernels.primitives.weighted_tiles import by_tiles
from optiml_magic.source.program import Program, parse_program

_TEXT = """\
#define NOTHING __int_as_float(0xff800000)
#pragma optiml launch attention grid(cdiv(n, 128), heads) block(128)
extern "C" __global__ void attention(const float* __restrict__ Q, const float* __restrict__ K,
                                     const float* __restrict__ V, float* __restrict__ O, int n,
                                     float scale) {
    int q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= n) return;
    const float* own = Q + ((size_t)blockIdx.y * n + q) * 64;
    const float* keys = K + (size_t)blockIdx.y * n * 64;
    const float* values = V + (size_t)blockIdx.y * n * 64;
    float acc[64];
    for (int d = 0; d < 64; d++) acc[d] = 0.0f;
    float m = NOTHING, l = 0.0f;
    for (int k = 0; k < END; k++) {
        float s = 0.0f;
        for (int d = 0; d < 64; d++) s += own[d] * keys[k * 64 + d];
        s *= scale;
        float top = fmaxf(m, s), c = __expf(m - top), p = __expf(s - top);
        l = l * c + p;
        for (int d = 0; d < 64; d++) acc[d] = acc[d] * c + p * values[k * 64 + d];
        m = top;
    }
    float* out = O + ((size_t)blockIdx.y * n + q) * 64;
    for (int d = 0; d < 64; d++) out[d] = acc[d] / l;
}
"""
#: Name, rows, heads and where the keys of row ``q`` end.
_CASES = (("one head, causal", 8192, 1, "q + 1"), ("32 heads, causal", 1024, 32, "q + 1"),
          ("32 heads", 1024, 32, "n"))  # fmt: skip
_SHAPES = {"BM": (16, 32, 64, 128), "BN": (16, 32, 64), "TM": (2, 4, 8), "LANES": (8, 16, 32)}
_SAMPLES, _COLD = 5, 64 << 20  # bytes that are written between two samples


def tiled(end: str) -> Program:
    """The kernel by tiles, with its shape open."""
    found = by_tiles(kernels(parse_program(_TEXT.replace("END", end)), None)[0])
    if isinstance(found, Refused):
        raise SystemExit(found.reason)
    return found.program


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    file = parser.parse_args().file
    import cupy as cp

    name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    about = {"device": name, "date": time.strftime("%Y-%m-%d"), "cupy": cp.__version__}
    with file.open("a") as out:
        for case, rows, heads, end in _CASES:
            for found in timed(cp, tiled(end), rows, heads, causal=end != "n"):
                out.write(json.dumps({"case": case, **found, **about}) + "\n")
                out.flush()


def timed(cp: Any, program: Program, rows: int, heads: int, *, causal: bool) -> Any:
    """A line for each shape."""
    q, k, v = (cp.random.standard_normal((heads, rows, 64), dtype=cp.float32) for _ in range(3))
    score = cp.einsum("hqd,hkd->hqk", q, k) / 8
    if causal:
        score = cp.where(cp.tril(cp.ones((rows, rows), bool)), score, -cp.inf)
    power = cp.exp(score - score.max(-1, keepdims=True))
    wanted = (power @ v) / power.sum(-1, keepdims=True)
    del score, power
    cold = cp.empty(_COLD, cp.uint8)
    for values in product(*_SHAPES.values()):
        point = dict(zip(_SHAPES, values, strict=True))
        try:
            text = program.with_values(point).compiled_text()
        except SourceError:
            continue  # no room for it
        kernel = cp.RawModule(code=text, options=("--std=c++17",)).get_function("attention")
        grid = -(-rows // point["BM"]), heads
        block = (point["BM"] // point["TM"] * point["LANES"],)
        out = cp.zeros_like(q)
        given = (q, k, v, out, cp.int32(rows), cp.float32(0.125))
        kernel(grid, block, given)
        off = float(cp.abs(out - wanted).max())
        samples = []
        for _ in range(_SAMPLES):
            cold.fill(0)
            begin, end = cp.cuda.Event(), cp.cuda.Event()
            begin.record()
            kernel(grid, block, given)
            end.record()
            end.synchronize()
            samples.append(cp.cuda.get_elapsed_time(begin, end) * 1e-3)
        yield {"point": point, "seconds": median(samples), "samples": samples, "off": off,
               "registers": kernel.num_regs, "local": kernel.local_size_bytes}  # fmt: skip


if __name__ == "__main__":
    main()
