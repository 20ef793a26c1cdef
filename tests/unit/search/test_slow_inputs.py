"""An input kernel of a quarter of a second: how often it runs, and how much is tried meanwhile.

Everything but the compiler and ncu is the real thing, on a card whose kernels take the seconds that
they are given; a clock that they alone turn, and the stand-ins, counts them.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from optiml_magic.chips import Chip, chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.devices import clock as clock_module
from optiml_magic.devices import rounds
from optiml_magic.devices.base import Job
from optiml_magic.devices.cuda import CudaDevice
from optiml_magic.evaluation import Evaluator, Tools, referee
from optiml_magic.evaluation.limit import Limit
from optiml_magic.model.build import Build, Resources
from optiml_magic.model.candidate import Proposal
from optiml_magic.model.evaluation import Trajectory
from optiml_magic.model.idea import Idea, Ideas
from optiml_magic.model.measurement import speedup_interval
from optiml_magic.model.task import Task
from optiml_magic.model.view import View
from optiml_magic.optimize import _elsewhere, _settled
from optiml_magic.problem import prepare
from optiml_magic.profilers.events import EventsProfiler
from optiml_magic.profilers.levels import Levels
from optiml_magic.profilers.ncu import Counted
from optiml_magic.profilers.roofs import published
from optiml_magic.search import loop
from optiml_magic.search.loop import Batches, Budget
from optiml_magic.search.search import TreeSearch
from optiml_magic.timings import Timings
from optiml_magic.verifiers import purse
from tests.present import sampled
from tests.unit.devices.card import Card, floats

N = 4096
SLOW = 0.26  # seconds of the input kernel, as of a task of the suite on an H200
COMPILING, STARTING = 0.15, 2.0  # seconds, each as on a card
PASSES = {"brief": 8, "lines": 30}  # in which ncu replays a launch
PATCHED = 100.0  # times slower, where it counts by line
TEXT = """\
#pragma optiml launch {0} grid(cdiv(n, 256)) block(256)
__global__ void {0}(const float* x, float* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}}
"""


class Machine(Card):
    """Kernels by their names: as long as that says, by the elements that they get."""

    def __init__(self, seconds: dict[str, float]) -> None:
        super().__init__({name: (double, each) for name, each in seconds.items()}, noise=0.001)
        self.runs: Counter[tuple[str, int]] = Counter()  # by kernel and elements
        self.full = seconds

    def launch(self, name: str, arguments: tuple[Any, ...]) -> None:
        if self.capturing is None:
            elements = count(arguments[2])
            self.runs[name, elements] += 1
            self.kernels[name] = double, self.full[name] * elements / N
        super().launch(name, arguments)


def count(raw: Any) -> int:
    return int.from_bytes(np.asarray(raw).tobytes(), "little")


def double(x: Any, out: Any, n: Any) -> None:
    floats(out, count(n))[:] = 2 * floats(x, count(n))


@dataclass
class Compiled:
    """A compiler that takes its time and makes nothing."""

    card: Machine
    version: str = "scripted"
    major: int = 13
    known: set[str] = field(default_factory=set)

    def compile(
        self, text: str, kernels: tuple[str, ...], chip: Chip, options: CompileOptions
    ) -> Build:
        (name,) = kernels
        self.card.time += 0.0 if name in self.known else COMPILING
        self.known.add(name)
        return Build("", b"", {name: name}, {name: Resources(16, 0, 0, 0, 0)}, (), (), name)


@dataclass
class Counters:
    """ncu as far as it costs seconds; ``asked`` has the kernels of every process."""

    card: Machine
    by_line_seconds: float = 5.0
    asked: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def put(self, cases: object) -> None: ...

    def warm(self, **_: object) -> None: ...

    def close(self) -> None: ...

    def begin(
        self,
        runs: Sequence[tuple[Build, Job]],
        *,
        depth: str,
        also: Sequence[str],
        slow: bool,
    ) -> Callable[[], tuple[Counted, ...]]:
        self.asked.append((depth, tuple(build.digest for build, _ in runs)))
        self.card.time += STARTING
        for build, _ in runs:
            seconds = self.card.full[build.digest]
            self.card.runs[build.digest, N] += PASSES[depth]
            self.card.time += PASSES[depth] * seconds
            if depth == "lines":
                self.card.time += min(PATCHED * seconds, self.by_line_seconds)
        return lambda: tuple(Counted((), (), (), ()) for _ in runs)


@dataclass
class Searched:
    """What came of a search, and who was asked for what."""

    card: Machine
    trajectory: Trajectory
    counters: Counters
    notes: tuple[str, ...]

    @property
    def evaluated(self) -> int:
        return len(self.trajectory.steps) - 1


Search = Callable[[dict[str, float]], Searched]


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Search:
    """Of the kernels of these seconds, in the order in which they are tried; the first is given."""

    def inputs(rng: np.random.Generator, n: int) -> dict[str, Any]:
        return {"x": rng.standard_normal(n, dtype=np.float32), "n": n}

    def search(seconds: dict[str, float], limit: float = 30.0) -> Searched:
        card = Machine(seconds)
        now = SimpleNamespace(monotonic=lambda: card.time)
        for name in ("warm", "sample"):
            timed = partial(getattr(rounds, name), now=lambda: card.time)
            monkeypatch.setattr(clock_module, name, timed)
        for module in (referee, purse):
            monkeypatch.setattr(module, "time", now)
        monkeypatch.setitem(sys.modules, "cupy", card.module())
        monkeypatch.setattr("optiml_magic.devices.nvml._NAMES", ())
        monkeypatch.setenv("PATH", str(tmp_path))
        given, *others = seconds
        task = Task(TEXT.format(given), lambda x: 2 * x, inputs, sizes={"n": N})
        problem = prepare(task, seeds=3)
        device, h200 = CudaDevice(0), chip("h200")
        counters, timings = Counters(card), Timings(clock=lambda: card.time)
        tools = Tools(
            compiler=Compiled(card),
            options=CompileOptions(),
            device=device,
            chip=h200,
            profiler=EventsProfiler(device, h200),
            findings=(),
            instructions=10**9,
            levels=Levels(emulated=False, counters=counters),  # type: ignore[arg-type]
            roofs=partial(published, h200),
            extent="finalists",
            timings=timings,
            trial_seconds=limit / 6,
        )
        kept = Limit(timings, limit)
        evaluator = Evaluator(problem, tools, limit=kept)
        tried = iter(others)

        def expand(view: View, wanted: int) -> Ideas:
            return Ideas(tuple(idea(name) for name in itertools.islice(tried, wanted)))

        tree = TreeSearch(Proposal(task.text, "the input kernel", "user", prior=1.0), expand)
        budget = Budget(1000, limit, kept.kept, kept.first)
        found = loop.run(tree, evaluator.begin, budget, batches=Batches(4, 1), timings=timings)
        found = _elsewhere(_settled(found, evaluator), evaluator)
        return Searched(card, found, counters, evaluator.notes)

    return search


def idea(name: str) -> Idea:
    return Idea(name, "test", lambda: TEXT.format(name), name)


def fast(count: int) -> dict[str, float]:
    """Candidates of about a millisecond; the second is the best."""
    return {f"k{at}": 1e-3 * (2.0 if at == 0 else 1 + 0.01 * (at - 1)) for at in range(count)}


@pytest.mark.parametrize(("given", "most", "half"), sampled([(SLOW, 12, 6), (0.06, 16, 12)], 2))
def test_a_slow_input_runs_seldom_and_leaves_time_for_candidates(
    search: Search, given: float, most: int, half: int
) -> None:
    """Runs of the input kernel in all stages together."""
    found = search({"given": given, **fast(24)})
    assert found.card.runs["given", N] <= most
    assert found.card.runs["given", N // 2] <= half
    assert found.evaluated >= 20
    assert found.card.time <= 30.0
    assert found.trajectory.best.candidate.proposal.title == "k1"
    assert any(note.startswith(f"at half the sizes, n = {N // 2}: ") for note in found.notes)


def test_ncu_looks_closely_at_the_first_better_program_in_its_place(search: Search) -> None:
    found = search({"given": SLOW, **fast(8)})
    (depth, looked), *others = found.counters.asked
    assert (depth, looked) == ("lines", ("k1",))  # the fastest of its batch
    assert {how for how, _ in others} <= {"brief"}
    assert any("the first faster program is profiled" in note for note in found.notes)
    root = found.trajectory.root.evaluation.measurement
    assert root is not None
    assert root.why("dram__bytes.sum").startswith("a run takes 0.26 s, and ncu")


def test_an_input_that_ncu_is_soon_done_with_is_looked_at_first(search: Search) -> None:
    found = search({"given": 5e-3, **fast(4)})
    assert found.counters.asked[0] == ("lines", ("given",))
    assert {how for how, _ in found.counters.asked[1:]} == {"brief"}


def test_what_is_claimed_of_a_slow_input_holds_the_truth(search: Search) -> None:
    """All its samples are a few, so the intervals are wider."""
    found = search({"given": SLOW, **fast(2)})
    root, best = found.trajectory.root.evaluation, found.trajectory.best.evaluation
    assert root.measurement is not None
    assert best.measurement is not None
    gain, low, high = speedup_interval(root.measurement, best.measurement)
    assert low <= SLOW / 1e-3 <= high
    assert 1.01 <= high / gain < 1.1


def test_where_nothing_is_better_each_candidate_costs_one_round(search: Search) -> None:
    """One that is surely slower is cut then, and is no finalist either."""
    worse = {f"w{at}": SLOW * (1.3 + 0.01 * at) for at in range(20)}
    found = search({"given": SLOW, **worse})
    assert found.evaluated >= 5
    assert found.card.runs["given", N] == 6 + 2 * found.evaluated
    assert not found.counters.asked
    assert found.trajectory.best is found.trajectory.root
    assert found.card.time <= 33.0
