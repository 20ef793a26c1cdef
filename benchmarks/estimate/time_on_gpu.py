"""Time the programs of a bundle on the GPU of this machine; raw samples go to a file.

    python benchmarks/estimate/time_on_gpu.py bundle.json samples.json

Events around ten runs of each launch plan, each on buffers of its own, the L2 overwritten before
them; 3 warm-ups, 30 samples, the programs of one task in turn so that drift cancels. Inputs are
random; nothing is verified here: the emulated device did.
"""

from __future__ import annotations

import argparse
import base64
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import cupy as cp
import numpy as np

WARM_UP, SAMPLES, LAUNCHES = 3, 30, 10
TYPES = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def main(bundle: Path, out: Path) -> None:
    programs = json.loads(bundle.read_text())["programs"]
    properties = cp.cuda.runtime.getDeviceProperties(0)
    record: dict[str, Any] = {
        "command": "python benchmarks/estimate/time_on_gpu.py bundle.json samples.json",
        "date": time.strftime("%Y-%m-%d"),
        "gpu": properties["name"].decode(),
        "driver": cp.cuda.runtime.driverGetVersion(),
        "runtime": cp.cuda.runtime.runtimeGetVersion(),
        "cupy": cp.__version__,
        "programs": [],
    }
    for task in dict.fromkeys(p["task"] for p in programs):
        group = [p for p in programs if p["task"] == task]
        sets = [_buffers(group[0]["buffers"]) for _ in range(LAUNCHES)]
        runs = [[_prepared(p, buffers) for buffers in sets] for p in group]
        overwrite = cp.empty(2 * cp.cuda.Device().attributes["L2CacheSize"], cp.uint8)
        samples: list[list[float]] = [[] for _ in group]
        for number in range(WARM_UP + SAMPLES):
            for run, times in zip(runs, samples, strict=True):
                overwrite.fill(0)
                seconds = _timed(run)
                if number >= WARM_UP:
                    times.append(seconds)
        for program, times in zip(group, samples, strict=True):
            kept = {k: v for k, v in program.items() if k != "cubin"}
            record["programs"].append({**kept, "samples": times})
        del sets, runs
        cp.get_default_memory_pool().free_all_blocks()
        print(task, [f"{1e6 * np.median(t):.1f} us" for t in samples], flush=True)
    out.write_text(json.dumps(record))


def _buffers(described: list[dict[str, Any]]) -> dict[str, cp.ndarray]:
    rng = np.random.default_rng(0)
    made = {}
    for buffer in described:
        shape, dtype = tuple(buffer["shape"]), np.dtype(buffer["dtype"])
        if dtype.kind == "f":
            host = rng.random(shape, dtype=np.float32).astype(dtype)
        else:
            host = rng.integers(0, 256, shape).astype(dtype)
        made[buffer["name"]] = cp.asarray(host)
    return made


def _prepared(program: dict[str, Any], buffers: dict[str, cp.ndarray]) -> list[Any]:
    with tempfile.NamedTemporaryFile(suffix=".cubin", delete=False) as file:
        file.write(base64.b64decode(program["cubin"]))
    module = cp.RawModule(path=file.name)
    calls = []
    for launch in program["launches"]:
        function = module.get_function(launch["kernel"])
        if launch["shared"] > 48 << 10:
            function.max_dynamic_shared_size_bytes = launch["shared"]
        arguments = tuple(
            buffers[a["buffer"]] if "buffer" in a else _scalar(a["raw"])
            for a in launch["arguments"]
        )
        calls.append(
            (function, tuple(launch["grid"]), tuple(launch["block"]), arguments, launch["shared"])
        )
    return calls


def _scalar(raw: str) -> Any:
    data = bytes.fromhex(raw)
    return np.frombuffer(data, TYPES[len(data)])[0]


def _timed(runs: list[list[Any]]) -> float:
    begin, end = cp.cuda.Event(), cp.cuda.Event()
    begin.record()
    for calls in runs:
        for function, grid, block, arguments, shared in calls:
            function(grid, block, arguments, shared_mem=shared)
    end.record()
    end.synchronize()
    milliseconds: float = cp.cuda.get_elapsed_time(begin, end)
    return milliseconds / 1e3 / LAUNCHES


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("out", type=Path)
    main(**vars(parser.parse_args()))
