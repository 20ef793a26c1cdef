"""Every point of three tuned programs, compiled, checked and timed on a GPU.

    python benchmarks/tuning/measure.py FOLDER [compile] [time] [--processes N]
    python benchmarks/tuning/measure.py FOLDER dry      # a sample, without a GPU

``compile`` needs no GPU, takes some minutes of a core and leaves the machine code in the folder;
``time`` goes through all points twice, in two random orders. Both go on where they stopped. The
lines of ``points.jsonl`` are a subject's name, a point and, of each pass, the seconds of batches of
launches divided by their number, or why there are none.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import multiprocessing
import os
import platform
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.tuning.subjects import SUBJECTS, Subject, points
from optiml_magic.chips import CHIPS
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.model.build import CompileFailure
from optiml_magic.model.space import Point, Space
from optiml_magic.source.program import parse_program

Row = dict[str, Any]
_BATCH = 1e-3  # seconds of launches in a row that one sample lasts at least
_LAUNCHES = 64  # in a sample, at most
_SAMPLES = (7, 7)  # of a point, in each pass
_WARMING = 0.5  # seconds before the first sample of a subject
_CHIP = "h200"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def every(subject: Subject) -> list[tuple[Point, str]]:
    """The points of a subject and their texts."""
    space, _ = subject.space()
    return [(point, space.text(point)) for point in points(space)]


def lines(path: Path) -> list[Row]:
    """Of a file of JSON lines; the last one may be half a line."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            print(f"{path.name}: a line was cut off", file=sys.stderr)
    return found


def append(path: Path, row: Row) -> None:
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


# -- compile


def built(text: str, folder: Path) -> Row:
    """Compile one text; its machine code lies beside its line, named by the text's digest."""
    from optiml_magic.compilers.nvrtc import NvrtcCompiler

    program = parse_program(text)
    kernels = tuple(launch.kernel or "" for launch in program.launches)
    began = time.monotonic()
    build = NvrtcCompiler().compile(
        program.compiled_text(), kernels, CHIPS[_CHIP], CompileOptions()
    )
    row: Row = {"text": digest(text), "seconds": round(time.monotonic() - began, 3)}
    if isinstance(build, CompileFailure):
        return {**row, "failure": build.errors[0].message}
    (folder / "cubins" / f"{digest(text)}.gz").write_bytes(gzip.compress(build.cubin, mtime=0))
    used = [build.resources[build.names[kernel]] for kernel in kernels]
    return {
        **row, "code": build.digest, "names": [build.names[kernel] for kernel in kernels],
        "registers": [u.registers for u in used], "shared": [u.shared_bytes for u in used],
        "spills": [u.spill_store_bytes + u.spill_load_bytes for u in used],
    }  # fmt: skip


def compile_all(folder: Path, processes: int, sample: int = 0) -> None:
    """What is not compiled yet; ``sample`` texts of each subject, or all."""
    (folder / "cubins").mkdir(parents=True, exist_ok=True)
    record = folder / "builds.jsonl"
    done = {row["text"] for row in lines(record)}
    left = []
    for subject in SUBJECTS:
        texts = [text for _, text in every(subject)]
        texts = random.Random(0).sample(texts, sample) if sample else texts
        left += [text for text in texts if digest(text) not in done]
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes) as pool:
        for count, row in enumerate(pool.imap_unordered(partial(built, folder=folder), left), 1):
            append(record, row)
            if count % 100 == 0 or count == len(left):
                print(f"{count} of {len(left)} compiled", flush=True)


# -- time


def launches(text: str, build: Row, module: Any, given: Mapping[str, Any], sizes: Any) -> Any:
    """One run of the program, as a function."""
    program = parse_program(text)
    values = {**program.values, **sizes}
    steps = []
    for launch, name in zip(program.launches, build["names"], strict=True):
        grid, block = (
            tuple(size.evaluate(values) for size in part) for part in (launch.grid, launch.block)
        )
        steps.append((module.get_function(name), grid, block, _arguments(text, launch, given)))

    def run() -> None:
        for kernel, grid, block, arguments in steps:
            kernel(grid, block, arguments)

    return run


def _arguments(text: str, launch: Any, given: Mapping[str, Any]) -> tuple[Any, ...]:
    """Parameters have the names of the arrays and sizes."""
    found = re.search(rf"void {launch.kernel}\(([^)]*)\)", text)
    assert found is not None
    names = [part.split()[-1].strip("*") for part in found[1].split(",")]
    return tuple(given[name] for name in names)


def sampled(run: Callable[[], None], count: int) -> list[float]:
    """Seconds of one run, each sample the mean of a batch, by events."""
    import cupy as cp

    first, last = cp.cuda.Event(), cp.cuda.Event()

    def batch(size: int) -> float:
        first.record()
        for _ in range(size):
            run()
        last.record()
        last.synchronize()
        return float(cp.cuda.get_elapsed_time(first, last)) / 1e3 / size

    batch(2)
    size = min(_LAUNCHES, max(1, int(np.ceil(_BATCH / batch(2)))))
    return [batch(size) for _ in range(count)]


def arrays(subject: Subject) -> tuple[dict[str, Any], Any]:
    """What the kernels get, on the card, and the answer."""
    import cupy as cp

    draw = cp.random.default_rng(0)
    given: dict[str, Any] = {}
    for name, (role, shape) in subject.arrays.items():
        extent = shape(subject.sizes)
        given[name] = draw.random(extent, dtype=cp.float32) if role == "in" else cp.zeros(
            extent, cp.float32
        )  # fmt: skip
    answer = subject.reference(cp, given, subject.sizes)
    given |= {name: np.int32(value) for name, value in subject.sizes.items()}
    return given, answer.astype(cp.float32)


def wrong(given: Mapping[str, Any], answer: Any) -> str:
    """What is not as it should be with the output, or nothing."""
    import cupy as cp

    apart = cp.abs(given["out"] - answer).max() / cp.abs(answer).max()
    return "" if float(apart) < 2e-5 else f"off by {float(apart):.2g} of the largest element"


def measured(subject: Subject, folder: Path, number: int) -> None:
    """One pass over a subject's points that were compiled, those of it that are not done yet."""
    import cupy as cp

    record = folder / "points.jsonl"
    builds = {row["text"]: row for row in lines(folder / "builds.jsonl")}
    before = lines(record)
    done = {row["text"] for row in before if row["pass"] == number or "failure" in row}
    todo = [(p, t) for p, t in every(subject) if digest(t) in builds and digest(t) not in done]
    random.Random(number).shuffle(todo)
    if not todo:
        return
    given, answer = arrays(subject)
    until = time.monotonic() + _WARMING
    for point, text in todo:
        build = builds[digest(text)]
        row: Row = {"subject": subject.name, "point": dict(point), "text": digest(text),
                    "pass": number}  # fmt: skip
        if "failure" in build:
            append(record, {**row, "failure": build["failure"]})
            continue
        # The line of a point that ends this process stands there already.
        append(folder / "begun.jsonl", {"text": row["text"]})
        module = cp.cuda.function.Module()
        module.load(gzip.decompress((folder / "cubins" / f"{row['text']}.gz").read_bytes()))
        run = launches(text, build, module, given, subject.sizes)
        given["out"].fill(cp.nan)
        try:
            run()
            cp.cuda.Device().synchronize()
        except cp.cuda.driver.CUDADriverError as refused:
            append(record, {**row, "failure": str(refused)})
            continue
        failure = wrong(given, answer)
        if failure:
            append(record, {**row, "failure": failure})
            continue
        while time.monotonic() < until:
            run()
            cp.cuda.Device().synchronize()
        append(record, {**row, "samples": sampled(run, _SAMPLES[number])})


def pass_over(folder: str, number: int) -> None:
    import cupy as cp

    for subject in SUBJECTS:
        began = time.monotonic()
        measured(subject, Path(folder), number)
        cp.get_default_memory_pool().free_all_blocks()
        print(f"{subject.name}, pass {number}: {time.monotonic() - began:.1f} s", flush=True)


def time_all(folder: Path) -> None:
    """Both passes, in a process of their own: a kernel that ends it is one that failed."""
    about(folder)
    context = multiprocessing.get_context("spawn")
    for number in range(len(_SAMPLES)):
        while True:
            child = context.Process(target=pass_over, args=(str(folder), number))
            child.start()
            child.join()
            if child.exitcode == 0:
                break
            begun = lines(folder / "begun.jsonl")[-1:]
            last = lines(folder / "points.jsonl")[-1:]
            if not begun or (last and last[0]["text"] == begun[0]["text"]):
                raise SystemExit(f"timing ended with {child.exitcode} without a kernel's fault")
            row = _row_of(begun[0]["text"])
            end = f"ended the process with {child.exitcode}"
            append(folder / "points.jsonl", {**row, "pass": number, "failure": end})


def _row_of(text: str) -> Row:
    for subject in SUBJECTS:
        for point, written in every(subject):
            if digest(written) == text:
                return {"subject": subject.name, "point": dict(point), "text": text}
    raise KeyError(text)


def about(folder: Path) -> None:
    import cupy as cp

    properties = cp.cuda.runtime.getDeviceProperties(0)
    said: Row = {
        "date": datetime.now(tz=UTC).date().isoformat(),
        "hardware": properties["name"].decode(),
        "driver": cp.cuda.runtime.driverGetVersion(),
        "cupy": cp.__version__,
        "python": platform.python_version(),
        "command": "python benchmarks/tuning/measure.py " + " ".join(sys.argv[1:]),
    }
    (folder / "about.json").write_text(json.dumps(said, indent=1) + "\n")


def known(folder: Path, subject: Subject, space: Space) -> Iterator[tuple[Point, float | None]]:
    """The points of a subject that were measured: the median of all samples, None for failures."""
    samples: dict[str, list[float]] = {}
    failed, rows = set(), {}
    for row in lines(folder / "points.jsonl"):
        if row["subject"] != subject.name:
            continue
        rows[row["text"]] = row["point"]
        samples.setdefault(row["text"], []).extend(row.get("samples", ()))
        if "failure" in row:
            failed.add(row["text"])
    for text, point in rows.items():
        assert digest(space.text(point)) == text, "measured before a rule changed"
        yield point, None if text in failed else median(samples[text])


def summary(folder: Path) -> None:
    for subject in SUBJECTS:
        space, _ = subject.space()
        found = list(known(folder, subject, space))
        times = sorted(seconds for _, seconds in found if seconds is not None)
        if times:
            print(
                f"{subject.name}: {len(times)} of {len(found)} points right; best "
                f"{times[0] * 1e6:.1f} us, median {median(times) * 1e6:.1f} us"
            )


# -- a sample without a GPU


def dry(folder: Path) -> None:
    """Compiles four points of each subject and runs one of them on the emulated device."""
    from optiml_magic.model.task import Task
    from optiml_magic.optimize import evaluate_once
    from optiml_magic.settings import Settings

    compile_all(folder, 1, sample=4)
    settings = Settings(device=f"emulated:{_CHIP}", home=folder.resolve() / "home")
    for subject in SUBJECTS:
        task = Task(
            random.Random(1).choice(every(subject))[1],
            reference=partial(_referred, subject), inputs=partial(_inputs, subject),
            sizes=subject.small, name=subject.name,
        )  # fmt: skip
        verdict = evaluate_once(task, settings).evaluation.verdict
        print(f"{subject.name}: {verdict.outcome}, {verdict.summary}", flush=True)


def _inputs(subject: Subject, rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    shapes = {n: shape(sizes) for n, (role, shape) in subject.arrays.items() if role == "in"}
    return {**{n: rng.random(s, np.float32) for n, s in shapes.items()}, **sizes}


def _referred(subject: Subject, **given: Any) -> Any:
    return subject.reference(np, given, {}).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("what", nargs="*", help="compile, time or dry; the first two unless said")
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    given = parser.parse_args()
    what = given.what or ["compile", "time"]
    if not {*what} <= {"compile", "time", "dry"}:
        parser.error(f"{what} are not among compile, time, dry")
    given.folder.mkdir(parents=True, exist_ok=True)
    if "dry" in what:
        dry(given.folder)
    if "compile" in what:
        compile_all(given.folder, given.processes)
    if "time" in what:
        time_all(given.folder)
        summary(given.folder)


if __name__ == "__main__":
    main()
