"""Points of the space of ``blocked_product`` beside cuBLAS, in one process on a GPU.

    python benchmarks/gpu/products.py FOLDER [NAME ...] [--also FILE.cu ...] [--list]

Square products of 512 to 4,096 a side, a layer, batches and distances at the sizes of the suite.
Every point is held against the answer of a library, then some launches of it are captured as one
graph and timed between two events; a library that cannot be captured is launched so often in a row.
``FOLDER/products.jsonl`` gets a line a point as it is done; a run that is started again goes on
there. ``--also`` times programs of one's own on the squares: their points are the lines
``// point: BM=128 BN=64 ...``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.gpu.recipes import compiled, facts_of, module, offers
from optiml_magic.bench.entry import Entry
from optiml_magic.bench.suite import SUITE
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from optiml_magic.source.program import parse_program

_SQUARES = (512, 1024, 2048, 4096)
_OFF = 1e-3  # of the largest value
_SAMPLES, _SECONDS, _GRAPH_SECONDS = 12, 0.1, 2e-3
#: Tiles that are timed beside those that the rule begins with: rows, columns, rounds, own.
_TILES = (
    (256, 128, 8, 8, 8), (256, 128, 8, 16, 8), (128, 256, 8, 8, 16), (128, 128, 8, 8, 8),
    (128, 128, 16, 8, 8), (128, 64, 8, 8, 8), (128, 64, 16, 8, 8), (64, 128, 16, 8, 8),
    (64, 64, 16, 8, 8), (64, 64, 16, 4, 8), (64, 64, 16, 4, 4), (64, 64, 32, 4, 4),
    (32, 64, 32, 4, 4), (64, 32, 32, 4, 4), (32, 32, 32, 4, 4), (32, 32, 32, 4, 2),
    (32, 32, 16, 2, 2), (32, 32, 32, 2, 2),
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A task at some sizes; ``operations`` are floating-point ones that a product would need."""

    name: str
    entry: Entry
    sizes: Mapping[str, int]

    @property
    def operations(self) -> float:
        return self.entry.floor(**self.sizes).flops


def cases() -> Iterator[Case]:
    known = {entry.name: entry for entry in SUITE}
    for n in _SQUARES:
        yield Case(f"square {n}", known["matmul"], dict.fromkeys("mnk", n))
    for name in ("linear_relu", "batched_matmul", "distances"):
        yield Case(name, known[name], known[name].full)


def peer(cp: Any, case: Case, values: Mapping[str, Any]) -> Any:
    """The answer by cuBLAS, and by maps where it is more than a product."""
    if case.name == "distances":
        p, q = values["p"], values["q"]
        squares = (p * p).sum(axis=1)[:, None] + (q * q).sum(axis=1)[None]
        return cp.sqrt(cp.maximum(squares - 2 * (p @ q.T), 0))
    (run,) = case.entry.libraries.values()
    return run(cp, **{n: v for n, v in values.items() if hasattr(v, "shape")})


def points(case: Case) -> Iterator[tuple[str, str]]:
    """Titles and texts of what is timed."""
    text = case.entry.path.read_text()
    for idea in offers(BlockedProduct(), text, facts_of(text, case.sizes)):
        made = idea.make()
        if not isinstance(made, str):
            print(f"{case.name}: {made}", file=sys.stderr)
            continue
        program = parse_program(made)
        first = dict(idea.starts[0])
        names = [*first][:5]
        wanted = [dict(p) for p in idea.starts]
        wanted += [{**first, **dict(zip(names, tile, strict=True))} for tile in _TILES]
        for tune in program.tunes:
            if tune.name not in names:
                wanted += [{**first, tune.name: value} for value in tune.values]
        legal = [*program.legal_values()]
        for at, point in enumerate(wanted):
            if point in legal and point not in wanted[:at]:
                yield said(point), program.with_values(point).text


def further(path: Path) -> Iterator[tuple[str, str]]:
    """The points of a program that is given."""
    text = path.read_text()
    for line in text.splitlines():
        if line.startswith("// point: "):
            point = {k: int(v) for k, v in (p.split("=") for p in line.split()[2:])}
            yield f"{path.stem} {said(point)}", parse_program(text).with_values(point).text


def said(point: Mapping[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in point.items())


def launcher(text: str, values: Mapping[str, Any]) -> Callable[[], None]:
    program = parse_program(text)
    known = program.values | {n: v for n, v in values.items() if isinstance(v, int)}
    launch = next(
        one for one in program.launches if one.condition is None or one.condition.evaluate(known)
    )
    grid = tuple(size.evaluate(known) for size in launch.grid)
    block = tuple(size.evaluate(known) for size in launch.block)
    kernel = module(text).get_function(launch.kernel)
    given = [np.int32(v) if isinstance(v, int) else v for v in values.values()]
    return lambda: kernel(grid, block, tuple(given))


def captured(stream: Any, runs: Callable[[], None]) -> Callable[[], None]:
    """All that is launched there as one graph."""
    stream.begin_capture()
    runs()
    found = stream.end_capture()
    return lambda: found.launch(stream)


def timed(cp: Any, run: Callable[[], Any], *, graph: bool) -> list[float]:
    """Seconds of one run, from several in a row."""
    stream = cp.cuda.Stream(non_blocking=True)
    first, last = cp.cuda.Event(), cp.cuda.Event()
    with stream:
        run()
        first.record(stream)
        run()
        last.record(stream)
        last.synchronize()
        once = cp.cuda.get_elapsed_time(first, last) / 1e3
        many = max(1, min(100, int(_GRAPH_SECONDS / once)))

        def several() -> None:
            for _ in range(many):
                run()

        launch = captured(stream, several) if graph else several
        launch()
        found: list[float] = []
        began = time.monotonic()
        while len(found) < _SAMPLES and (len(found) < 3 or time.monotonic() - began < _SECONDS):
            first.record(stream)
            launch()
            last.record(stream)
            last.synchronize()
            found.append(cp.cuda.get_elapsed_time(first, last) / 1e3 / many)
    return found


def measured(case: Case, todo: list[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    import cupy as cp

    drawn = case.entry.inputs(np.random.default_rng(0), **case.sizes)
    values = {n: cp.asarray(v) if isinstance(v, np.ndarray) else v for n, v in drawn.items()}
    answer = peer(cp, case, values)
    arrays = {n: v for n, v in values.items() if hasattr(v, "shape")}
    rest = {n: v for n, v in values.items() if n not in arrays}
    out = cp.empty_like(answer)
    for title, text in todo:
        row: dict[str, Any] = {"case": case.name, "title": title, "key": key(text)}
        try:
            if text:
                out[...] = cp.nan
                run = launcher(text, {**arrays, "out": out, **rest})
                run()
                off = float(cp.max(cp.abs(out - answer)) / cp.max(cp.abs(answer)))
                row["off"] = off
                if not off < _OFF:
                    yield {**row, "failed": "wrong"}
                    continue
            else:
                run = lambda: peer(cp, case, values)  # noqa: E731
            row["samples"] = timed(cp, run, graph=bool(text))
            took = median(row["samples"])
            row["us"], row["TFLOP/s"] = took * 1e6, case.operations / took / 1e12
        except Exception as problem:  # noqa: BLE001  # the other points go on
            row["failed"] = str(problem)[:300]
        yield row
    cp.get_default_memory_pool().free_all_blocks()


def tried(text: str) -> None:
    """Compile a program into the cache; one that does not compile says so when it is timed."""
    with suppress(Exception):
        compiled(text)


def key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="of cases, all if none")
    parser.add_argument("--also", type=Path, nargs="*", default=[])
    parser.add_argument("--list", action="store_true", help="the points, without a GPU")
    given = parser.parse_args()
    record = given.folder / "products.jsonl"
    given.folder.mkdir(parents=True, exist_ok=True)
    done = [json.loads(line) for line in record.open()] if record.exists() else []
    known = {(row["case"], row["title"], row["key"]) for row in done}
    todo = {}
    for case in cases():
        if given.names and not any(name in case.name for name in given.names):
            continue
        found = [("cuBLAS", ""), *points(case)]
        if "square" in case.name:
            found += [point for path in given.also for point in further(path)]
        todo[case.name] = case, [p for p in found if (case.name, p[0], key(p[1])) not in known]
    if given.list:
        for case, found in todo.values():
            print(case.name, dict(case.sizes), *(f"\n    {title}" for title, _ in found))
        return
    texts = list(dict.fromkeys(t for _, found in todo.values() for _, t in found if t))
    context = multiprocessing.get_context("spawn")
    with context.Pool(min(14, multiprocessing.cpu_count())) as pool:
        pool.map(tried, texts, chunksize=1)
    with record.open("a") as file:
        for case, found in todo.values():
            for row in measured(case, found):
                file.write(json.dumps(row) + "\n")
                file.flush()
                shown = {k: round(v, 2) if isinstance(v, float) else v for k, v in row.items()
                         if k not in ("samples", "key", "off")}  # fmt: skip
                print(shown, flush=True)


if __name__ == "__main__":
    main()
