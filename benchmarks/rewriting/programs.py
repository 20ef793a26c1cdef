"""The kernels that this repository holds, as tasks: where each comes from, and at which sizes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from random import Random
from typing import Any, Literal

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.layer import task as layer  # noqa: E402
from benchmarks.rewriting.twins import LARGE, sample  # noqa: E402
from optiml_magic.bench.entry import Entry  # noqa: E402
from optiml_magic.bench.suite import chosen  # noqa: E402
from optiml_magic.model.task import Task  # noqa: E402
from optiml_magic.testing.findings import NAMES as PAIRS  # noqa: E402
from optiml_magic.testing.findings import pair  # noqa: E402
from optiml_magic.testing.findings.tasks import task as pair_task  # noqa: E402
from optiml_magic.testing.kernels import NAMES as KNOWN  # noqa: E402
from optiml_magic.testing.kernels import known_task  # noqa: E402
from tests.mutations import subjects as mutated  # noqa: E402
from tests.rewriting.families import FAMILIES  # noqa: E402
from tests.rewriting.writing import Made  # noqa: E402
from tests.tutorials.suite import TASKS as TUTORIALS  # noqa: E402
from tests.tutorials.suite import named  # noqa: E402
from tests.twins.originals import ORIGINALS, Original  # noqa: E402
from tests.twins.twins import Twin, of  # noqa: E402

Size = Literal["full", "own"]
SUITE = "suite"
ORIGINS = {
    SUITE: "open tasks of the suite",
    "kernels": "optiml_magic/testing/kernels",
    "findings": "optiml_magic/testing/findings, with and without the fault",
    "honest": "honest twins of optiml_magic/testing/cheats, of those that tests/mutations mutates",
    "tutorials": "tests/tutorials",
    "layer": "benchmarks/layer",
    "originals": "tests/twins/originals",
    "twins": "twins of these (tests/twins), each form once at least",
    "foreign": "benchmarks/rewriting/foreign, as people of many fields write them",
    "newcomers": "benchmarks/results/newcomers-h200.jsonl, as people new to CUDA write them",
    "drawn": "drawn at random by tests/rewriting, three of each kind",
}
FOREIGN = Path(__file__).parent / "foreign"
NEWCOMERS = ROOT / "benchmarks" / "results" / "newcomers-h200.jsonl"
_DRAWN = 3


@dataclass(frozen=True)
class Listed:
    """A program. ``size`` is that of its estimated times: ``full`` is real work on a GPU."""

    name: str
    origin: str
    size: Size
    make: Callable[[], Task]

    @property
    def lines(self) -> int:
        """Of its text that are not empty."""
        return sum(bool(line.strip()) for line in self.make().text.splitlines())


def shown() -> list[Listed]:
    """The open tasks of the suite and the known kernels, which pages show."""
    return [*map(_open, chosen((), "open")), *map(_known, KNOWN)]


def listed() -> list[Listed]:
    """All of them, one of each origin after the other, so that a stopped run has some of all."""
    turns = zip_longest(
        map(_open, chosen((), "open")),
        (_known(name) for name in KNOWN),
        chain.from_iterable(map(_pair, PAIRS)),
        (_honest(name) for name in mutated.SUBJECTS if name.startswith("twins/")),
        (_given("tutorials", "own", *each) for each in TUTORIALS.items()),
        [Listed("layer", "layer", "own", lambda: layer.task)],
        map(_original, ORIGINALS),
        _twins(),
        _foreign(),
        _newcomers(),
        _drawn(),
    )
    return [one for turn in turns for one in turn if one is not None]


def _open(entry: Entry) -> Listed:
    return Listed(f"{SUITE}/{entry.family}/{entry.name}", SUITE, "full", lambda: entry.task("full"))


def _known(name: str) -> Listed:
    small = mutated.KNOWN.get(name, {})
    return Listed(
        f"kernels/{name}", "kernels", "own", lambda: replace(known_task(name), verify_sizes=small)
    )


def _pair(name: str) -> Iterator[Listed]:
    def made(*, sound: bool) -> Task:
        found = pair(name)
        task = pair_task(found, "emulated")
        return replace(task, kernel=found.sound) if sound else task

    yield Listed(f"findings/{name}", "findings", "own", lambda: made(sound=False))
    yield Listed(f"findings/{name} without", "findings", "own", lambda: made(sound=True))


def _honest(name: str) -> Listed:
    short = name.removeprefix("twins/")
    return Listed(f"honest/{short}", "honest", "own", mutated.SUBJECTS[name])


def _given(origin: str, size: Size, name: str, task: Task) -> Listed:
    return Listed(f"{origin}/{name}", origin, size, lambda: task)


def _original(original: Original) -> Listed:
    twin = Twin(original, "", original.text)
    return Listed(f"originals/{original.name}", "originals", "own", lambda: _spelled(twin))


def _twins() -> Iterator[Listed]:
    every = (twin for original in ORIGINALS for twin in of(original))
    for twin in sample(every, 1):
        yield Listed(f"twins/{twin.name}", "twins", "own", partial(_spelled, twin))


def _foreign() -> Iterator[Listed]:
    for file in sorted(FOREIGN.glob("*/tasks.py")):
        for each in named(file.parent).items():
            yield _given("foreign", "full", *each)


def _newcomers() -> Iterator[Listed]:
    for line in NEWCOMERS.read_text().splitlines():
        row = json.loads(line)
        held: dict[str, Any] = {}
        exec(row["source"], held)  # what was measured, as it is kept
        yield _given("newcomers", "full", row["task"], held["task"])


def _drawn() -> Iterator[Listed]:
    for family, makers in FAMILIES.items():
        for maker in dict.fromkeys(makers):
            for seed in range(_DRAWN):
                name = f"drawn/{family}/{maker.__name__}-{seed}"
                yield Listed(name, "drawn", "own", partial(_made, maker, seed))


def _made(maker: Callable[[Random], Made], seed: int) -> Task:
    made = maker(Random(seed))
    return made.task(made.sizes)


def _spelled(twin: Twin) -> Task:
    """The program on its original's values, the large ones where a rule is known to pay there."""
    original = twin.original
    large = LARGE.get(original.name)
    values = large(np.random.default_rng(7)) if large else original.values
    named = {twin.renamed.get(name, name): value for name, value in values.items()}
    return Task(twin.text, inputs=named, inout=twin.inout, name=twin.name)
