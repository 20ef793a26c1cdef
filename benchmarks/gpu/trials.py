"""What the trials of one better candidate cost, by part, on a kernel that streams 256 MB.

    python benchmarks/gpu/trials.py FOLDER [DEVICE] [ELEMENTS]

The input kernel is evaluated, then one with other blocks as if it would win, twice: the second
finds what the first one learned. FOLDER/trials.json has the seconds of each part. It takes about a
minute on a card; `emulated 70000` shows that it runs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.gpu.machine import gpu, versions
from optiml_magic.devices.hosted import HostedDevice
from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.task import Task
from optiml_magic.optimize import prepared
from optiml_magic.problem.problem import Problem
from optiml_magic.problem.references import References
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.verifiers import readback
from optiml_magic.verifiers.learning import Learner
from optiml_magic.verifiers.trials import Trials

TEXT = """#pragma optiml launch stream grid(cdiv(n, 64)) block(64)
__global__ void stream(const float* x, float* out, float a, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) out[i] = a * x[i] + 1.0f;
}
"""
# A part within another is counted in both.
PARTS: dict[str, tuple[Any, str]] = {
    "drawn and answered": (Problem, "instance"),
    "references": (References, "answer"),
    "put": (HostedDevice, "put"),
    "run and compared": (HostedDevice, "execute"),
    "read back": (HostedDevice, "read"),
    "compared here": (readback, "_checked"),
    "learned on the input kernel": (Learner, "learned"),
    "trials of a candidate": (Trials, "scrutinise"),
}


def stream(x: Any, a: Any) -> Any:
    return a * x + 1


def inputs(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"x": rng.uniform(-1, 1, n).astype(np.float32), "a": np.float32(1.5), "n": n}


@contextmanager
def timed(seconds: dict[str, float], calls: dict[str, int]) -> Iterator[None]:
    """Every part adds what it takes."""

    def counting(name: str, of: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            began = time.monotonic()
            try:
                return of(*args, **more)
            finally:
                seconds[name] += time.monotonic() - began
                calls[name] += 1

        return call

    before = {name: getattr(*place) for name, place in PARTS.items()}
    for name, (owner, attribute) in PARTS.items():
        setattr(owner, attribute, counting(name, before[name]))
    try:
        yield
    finally:
        for name, (owner, attribute) in PARTS.items():
            setattr(owner, attribute, before[name])


def main(folder: Path, device: str, elements: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    settings = resolve({"device": device})
    task = Task(TEXT, stream, inputs, sizes={"n": elements})
    rows: list[dict[str, Any]] = []

    def step(name: str, run: Callable[[], Any]) -> Any:
        seconds: dict[str, float] = defaultdict(float)
        calls: dict[str, int] = defaultdict(int)
        began = time.monotonic()
        with timed(seconds, calls):
            found = run()
        took = time.monotonic() - began
        parts = {n: (calls[n], seconds[n]) for n in PARTS if calls[n]}
        rows.append({"step": name, "seconds": took, "parts": parts})
        print(f"{name}: {took:.2f} s", flush=True)
        for part, (count, spent) in parts.items():
            print(f"    {part:<28} {count:4} times {spent:8.2f} s", flush=True)
        return found

    problem = step("prepare", lambda: prepared(task, settings))
    with session(settings, task=task) as members:
        evaluator = Evaluator(problem, members.tools, thorough=True)

        def evaluate(number: int, block: int) -> Any:
            text = problem.program.text.replace("64", str(block))
            (found,) = evaluator([Candidate(number, 0 if number else None, Proposal(text, "", ""))])
            assert found.verdict.passed, found.verdict
            return found

        found = [step("input kernel", lambda: evaluate(0, 64))]
        found += [step("better candidate", lambda: evaluate(1, 256))]
        found += [step("another one", lambda: evaluate(2, 512))]
        said = (*problem.notes, *evaluator.notes, *(n for f in found for n in f.verdict.notes))
        notes = list(dict.fromkeys(said))
        card = "" if members.choice.is_emulated else gpu()
    record = {"device": members.choice.name, "gpu": card, "versions": versions(),
              "date": time.strftime("%Y-%m-%d"), "elements": elements, "steps": rows,
              "notes": notes}  # fmt: skip
    (folder / "trials.json").write_text(json.dumps(record, indent=1) + "\n")
    print("\n".join(notes))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("device", nargs="?", default="cuda")
    parser.add_argument("elements", type=int, nargs="?", default=1 << 26)
    main(**vars(parser.parse_args()))
