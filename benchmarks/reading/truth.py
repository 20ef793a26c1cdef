"""Whether what is read of a kernel is what it does, on every kernel at hand.

    python benchmarks/reading/truth.py [--out OUT.json] [--twins EVERY] [FOLDER ...]

The known kernels, the tutorials, the twins' originals and every so many of their twins, each at up
to three odd sizes, and the ``.cu`` files of the folders on arrays made up for them. Each is traced
on the emulator; those that fault on made-up arrays are counted and left out.
"""

from __future__ import annotations

import argparse
import json
import platform
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.reading.made_up import made_up  # noqa: E402
from optiml_magic import Task  # noqa: E402
from optiml_magic.errors import OptimlError  # noqa: E402
from optiml_magic.testing.kernels import NAMES, known_task  # noqa: E402
from optiml_magic.testing.predictions import check  # noqa: E402
from optiml_magic.testing.traces import trace  # noqa: E402

#: What other sizes or threads may mend.
_AGAIN = ("outside", "out of bounds", "misaligned", "launch_error", "threads", "bounds")
_SECONDS = 60
_SIZES = (7, 13, 19, 29, 37, 45, 53, 61)


@dataclass
class Record:
    """What one family of kernels came to."""

    kernels: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    contradictions: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def told(self) -> dict[str, Any]:
        return {
            "kernels": len(self.kernels),
            **dict(self.counts),
            "seconds of checking": round(self.seconds, 1),
            "skipped": dict(self.skipped),
            "contradictions": self.contradictions,
        }


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    families: dict[str, Iterator[tuple[str, Task, dict[str, int]]]] = {}
    if not options.skip_repository:
        families |= {"known": known(), "tutorials": tutorials(), "twins": twins(options.twins)}
    families |= {str(f.name): folder(f) for f in options.folders}
    records = {name: run(name, cases) for name, cases in families.items()}
    if options.out:
        told = {
            "what": "predicted accesses against those traced on the emulator, by family of kernels",
            "command": "python benchmarks/reading/truth.py",
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "python": platform.python_version(),
            **{name: record.told() for name, record in records.items()},
        }
        options.out.write_text(json.dumps(told, indent=1) + "\n")
    return 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--twins", type=int, default=12)
    parser.add_argument("--skip-repository", action="store_true")
    return parser.parse_args(arguments)


def run(family: str, cases: Iterator[tuple[str, Task, dict[str, int]]]) -> Record:
    record = Record()
    of_repository = family in ("known", "tutorials", "twins")
    done: set[str] = set()
    for name, task, sizes in cases:
        if name in done:
            continue  # one that runs is enough of those that are made up
        signal.alarm(_SECONDS)
        try:
            launches = trace(task, shared=False, **sizes)
        except (OptimlError, NotImplementedError, AssertionError, TimeoutError) as error:
            record.skipped[type(error).__name__] += 1
            told = str(error).splitlines()[0] if str(error) else ""
            print(f"{family} {name} {sizes}: {told[:120]}", flush=True)
            if not of_repository and not any(word in told for word in _AGAIN):
                done.add(name)
            continue
        finally:
            signal.alarm(0)
        if not of_repository:
            done.add(name)
        record.kernels.add(name)
        for launch in launches:
            began = time.process_time()
            found = check(launch)
            record.seconds += time.process_time() - began
            record.counts += Counter(
                {
                    "launches": 1,
                    "bytes compared": found.addresses,
                    "bytes compared both ways": found.exact,
                    "bytes not checked": found.unchecked,
                    "predicted loads kept from others": found.spared,
                    "predicted loads that nobody needs": found.dropped,
                }
            )
            for wrong in found.contradictions:
                record.contradictions.append(f"{name} {sizes or ''}: {wrong}")
                print("CONTRADICTION", record.contradictions[-1], flush=True)
    figures = {k: v for k, v in record.told().items() if k != "contradictions"}
    print(family, figures, len(record.contradictions), "contradictions", flush=True)
    return record


def known() -> Iterator[tuple[str, Task, dict[str, int]]]:
    for name in NAMES:
        task = known_task(name)
        for start in range(3):
            yield name, task, _sizes(task, start)


def tutorials() -> Iterator[tuple[str, Task, dict[str, int]]]:
    from tests.tutorials.suite import TASKS

    for name, task in TASKS.items():
        yield name, task, {}
        if task.sizes and callable(task.inputs):
            for start in (2, 4):
                yield name, task, _sizes(task, start)


def _sizes(task: Task, start: int) -> dict[str, int]:
    return {name: _SIZES[(start + 3 * at) % 8] for at, name in enumerate(task.sizes)}


def twins(every: int) -> Iterator[tuple[str, Task, dict[str, int]]]:
    from tests.twins.originals import ORIGINALS, Original
    from tests.twins.twins import Twin, mixtures
    from tests.twins.twins import twins as all_twins

    chosen: list[Original | Twin] = [*ORIGINALS, *[*all_twins(), *mixtures()][::every]]
    for one in chosen:
        yield one.name, Task(one.text, inputs=one.values, inout=one.inout), {}


def folder(path: Path) -> Iterator[tuple[str, Task, dict[str, int]]]:
    told = path / "index.json"
    notes = {e["file"]: e for e in json.loads(told.read_text())} if told.exists() else {}
    for file in sorted(path.glob("*.cu")):
        for task in made_up(file.read_text(errors="replace"), notes.get(file.name, {})):
            yield file.name, replace(task, name=file.stem), {}


def _late(*_: object) -> None:
    raise TimeoutError(f"no end in {_SECONDS} s")


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, _late)
    raise SystemExit(main(sys.argv[1:]))
