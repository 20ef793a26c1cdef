"""All that a card has to show, job after job, on every card of the machine; resumes.

    python benchmarks/gpu/everything.py FOLDER [JOB ...] [--minutes N] [--cards N] [--list]

Each job is a documented command (``--list`` prints them in their order) in a process of its own:
one at a time on a card, with a home and a folder for temporary files that belong to the card.
What it prints lies in FOLDER/JOB.txt, and what it records in FOLDER/JOB. FOLDER/jobs.jsonl has a
line for each that ended: command, exit status, seconds, card, versions and date. A job that ended
with 0 is not run again; others are, and those that resume by themselves go on. None is started
that is known to take longer than what is left of ``--minutes``; what still runs then is ended.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.gpu.machine import gpu, versions  # noqa: E402  # found by the line above
from optiml_magic.bench.suite import chosen  # noqa: E402

PYTEST = "-m pytest -v -m gpu -p no:cacheprovider -p no:benchmark --timeout 200"
# Few workers: they wait for one card, and tests of speed and of the card's memory want it alone.
WORKERS = {
    "hostile": 1,
    "timing": 1,
    "findings": 1,
    "metrics": 1,
    "notebooks": 1,
    "hypotheses": 1,
    "references": 1,
}
REFERENCES = (
    "gelu", "black_scholes", "transpose", "grey", "row_norms", "column_means", "layer_norm",
    "softmax_channels", "cross_entropy", "gemv", "heat_2d", "standardise",
)  # fmt: skip
OPTIML = "-m optiml_magic.cli"
BENCH = f"{OPTIML} bench --seconds 30 --out OUT"


@dataclass(frozen=True, slots=True)
class Job:
    """Something to run: arguments of Python, where ``OUT`` stands for the job's own folder.

    ``seconds`` is about what it took on an H200.
    """

    name: str
    arguments: str
    seconds: int


def jobs() -> Iterator[Job]:
    """In the order in which they are run."""
    for path in sorted((ROOT / "tests/gpu").glob("test_*.py")):
        name = path.stem.removeprefix("test_")
        workers = WORKERS.get(name, 3)
        yield Job(f"tests-{name}", f"{PYTEST} -n {workers} tests/gpu/{path.name}", 200)
    for entry in chosen((), None):
        yield Job(f"suite-{entry.name}", f"{BENCH} {entry.name}", 50)
    for name in REFERENCES:
        yield Job(f"references-{name}", f"{BENCH} --from-references {name}", 50)
    models = "softmax layer_norm column_spread --variant none model both --device cuda"
    yield Job("ablation", f"benchmarks/llm/ablation.py {models} --out OUT/rows.jsonl", 200)
    yield Job("rates", "benchmarks/gpu/rates.py OUT --seconds 45", 360)
    yield Job("short", "benchmarks/gpu/rates.py OUT --seconds 18", 180)
    search = f"{OPTIML} optimize benchmarks/layer/task.py --llm none --seconds 45"
    yield Job("energy", f"{search} --objective energy", 60)
    for policy in ("mcts", "beam"):
        command = f"{BENCH} --no-peers --policy {policy} gravity standardise filter_2d"
        yield Job(f"policy-{policy}", command, 110)
    yield Job("demo", f"{OPTIML} demo --device cuda", 60)
    yield Job("repeat", "benchmarks/gpu/repeat.py OUT/repeat.jsonl", 120)
    yield Job("kills", "benchmarks/gpu/kills.py OUT", 400)
    yield Job("products", "benchmarks/gpu/products.py OUT", 300)
    rows = "benchmarks/results/references-h200.jsonl"
    yield Job("clocks", f"benchmarks/gpu/clocks.py {rows} OUT/clocks.jsonl row_norms gelu", 60)
    yield Job("quickstart", "benchmarks/gpu/quickstart.py OUT", 200)


class Queue:
    """What is left to do, taken by a thread for each card."""

    def __init__(self, folder: Path, left: Sequence[Job], end: float) -> None:
        self._folder = folder
        self._left = list(left)
        self._end = end
        self._lock = threading.Lock()

    def take(self) -> Job | None:
        with self._lock:
            for job in self._left:
                if time.monotonic() + job.seconds < self._end:
                    self._left.remove(job)
                    return job
        return None

    def work(self, card: int) -> None:
        while job := self.take():
            self._run(job, card)

    def _run(self, job: Job, card: int) -> None:
        out = self._folder / job.name
        out.mkdir(exist_ok=True)
        own = self._folder / f"card-{card}"
        environment = os.environ | {
            "CUDA_VISIBLE_DEVICES": str(card),
            "OPTIML_HOME": str(own / "home"),
            "OPTIML_EXPERIENCE": "none",
            "TMPDIR": str(own / "tmp"),  # ncu has a lock there that holds up a second card
        }
        (own / "tmp").mkdir(parents=True, exist_ok=True)
        arguments = shlex.split(job.arguments.replace("OUT", str(out)))
        began = time.monotonic()
        with (self._folder / f"{job.name}.txt").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
            try:
                status = process.wait(max(self._end - began, 1))
            except subprocess.TimeoutExpired:
                status = _ended(process)
        row = {
            "job": job.name,
            "command": "python " + job.arguments,
            "status": status,
            "seconds": round(time.monotonic() - began, 1),
            "card": card,
            "gpu": gpu(),
            "versions": versions(),
            "date": time.strftime("%Y-%m-%d %H:%M"),
        }
        with self._lock, (self._folder / "jobs.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{job.name}: {status}, {row['seconds']} s", flush=True)


def _ended(process: subprocess.Popen[bytes]) -> int:
    """Of a job that is asked to end, and is killed where it does not within ten seconds."""
    for number in (signal.SIGINT, signal.SIGKILL):
        os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(10)
    return process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="or what their names begin with")
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--cards", type=int, default=1)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / "jobs.jsonl"
    rows = map(json.loads, record.read_text().splitlines() if record.exists() else [])
    done = {row["job"] for row in rows if row["status"] == 0}
    names = tuple(options.jobs) or ("",)
    left = [one for one in jobs() if one.name not in done and one.name.startswith(names)]
    if options.list:
        print("\n".join(f"{one.name:28} python {one.arguments}" for one in left))
        return
    queue = Queue(folder, left, time.monotonic() + options.minutes * 60)
    workers = [threading.Thread(target=queue.work, args=(c,)) for c in range(options.cards)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
