"""The known kernels searched by rules alone on a GPU: what is found, how soon, and where time goes.

    python benchmarks/gpu/searches.py FOLDER [--beside TREE] [--budget N] [--only NAME ...]

Each search is a process of its own. With ``--beside`` the same is done by the package in another
TREE, an earlier commit checked out, in turn; at the end the input and the best of both are timed
together, by today's package. FOLDER/searches.jsonl has a line a search and a line a comparison; the
same command goes on with the rest after a stop.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
TODAY = HERE.parents[2]
Row = dict[str, Any]


def search(name: str, device: str, budget: int, home: Path) -> Row:
    """One search, by whichever package this process imports."""
    from optiml_magic.optimize import optimize
    from optiml_magic.settings import resolve
    from optiml_magic.testing.kernels import known_task

    began = time.monotonic()
    seen: list[float] = []
    settings = resolve(
        {
            "device": device, "llm": "none", "budget": budget, "seconds": 60,
            "experience": "none", "home": str(home),
        }
    )  # fmt: skip
    result = optimize(
        known_task(name), settings, progress=lambda *_: seen.append(time.monotonic() - began)
    )
    summary = result.summary
    steps = summary.trajectory.steps
    measured = [s.evaluation.measurement for s in steps]
    complete = sum(s.evaluation.verdict.passed and not s.evaluation.duplicate_of for s in steps)
    return {
        "title": summary.winner.candidate.proposal.title,
        "text": summary.winner.candidate.text,
        "speedup": result.speedup,
        "input_us": round(measured[0].seconds * 1e6, 4) if measured[0] else None,
        "evaluations": len(steps),
        "complete": complete,
        "first_s": round(seen[0], 2),
        "last_s": round(seen[-1], 2),
        "wall_s": round(time.monotonic() - began, 2),
    }


def together(name: str, device: str, texts: list[str]) -> list[float | None]:
    """Microseconds of the input kernel and of programs for it, timed in turn."""
    from optiml_magic.evaluation import Evaluator
    from optiml_magic.model.candidate import Candidate, Proposal
    from optiml_magic.model.measurement import Measurement
    from optiml_magic.problem import prepare
    from optiml_magic.session import session
    from optiml_magic.settings import resolve
    from optiml_magic.testing.kernels import known_task

    task = known_task(name)
    problem = prepare(task, seeds=1)
    with session(resolve({"device": device}), task=task) as members:
        evaluator = Evaluator(problem, members.tools)
        programs = [problem.program.text, *texts]
        candidates = [
            Candidate(i, i - 1 if i else None, Proposal(text, str(i), "benchmark"))
            for i, text in enumerate(programs)
        ]
        for candidate in candidates:
            evaluator([candidate])
        settled = evaluator.settle(candidates[1:])
    found = [settled.get(i) for i in range(len(programs))]
    return [round(m.seconds * 1e6, 4) if isinstance(m, Measurement) else None for m in found]


def run(tree: Path, name: str, options: argparse.Namespace, folder: Path) -> Row:
    """A search by the package in a tree, as a process of its own."""
    home = folder / "homes" / f"{tree.name}-{name}"
    home.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(HERE), str(folder), "--worker", name]
    command += ["--budget", str(options.budget), "--device", options.device]
    search_path = os.pathsep.join([str(tree), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [*command, "--home", str(home)],
        capture_output=True, text=True, check=False, cwd=folder,
        env={**os.environ, "PYTHONPATH": search_path},
    )  # fmt: skip
    if done.returncode:
        return {"error": done.stderr[-800:]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--beside", type=Path, help="a tree with an earlier package")
    parser.add_argument("--budget", type=int, default=10)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        print(json.dumps(search(options.worker, options.device, options.budget, options.home)))
        return 0
    sys.path.insert(0, str(TODAY))
    from benchmarks.gpu.machine import gpu, versions
    from optiml_magic.testing.kernels import NAMES

    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "searches.jsonl"
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {(row["kernel"], row["tree"]): row for row in rows}
    about = {
        "command": " ".join(["python benchmarks/gpu/searches.py", *arguments]),
        "date": time.strftime("%Y-%m-%d"), "versions": versions(),
        "gpu": "" if options.device.startswith("emulated") else gpu(),
    }  # fmt: skip

    def keep(row: Row) -> None:
        with kept.open("a") as file:
            file.write(json.dumps({**row, **about}) + "\n")
        told = {key: value for key, value in row.items() if key != "text"}
        print(json.dumps(told), flush=True)

    trees = {"today": TODAY, **({"beside": options.beside.resolve()} if options.beside else {})}
    for name in options.only or NAMES:
        best: dict[str, str] = {}
        for label, tree in trees.items():
            row = done.get((name, label))
            if row is None:
                found = run(tree, name, options, folder)
                row = {"kernel": name, "tree": label, **found}
                keep(row)
            if "text" in row:
                best[label] = row["text"]
        if best and (name, "together") not in done:
            times = together(name, options.device, [*best.values()])
            labels = ["input", *best]
            keep({"kernel": name, "tree": "together", "us": dict(zip(labels, times, strict=True))})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
