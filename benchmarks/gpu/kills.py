"""Searches killed at random moments and resumed: nothing lost, nothing evaluated twice.

    python benchmarks/gpu/kills.py FOLDER [--times 30] [--device DEVICE[,DEVICE]] [--workers N]
        [--budget N] [--counted N]

A search by rules alone is a process of its own, killed with SIGKILL at a moment that is drawn over
the length of an undisturbed one, then resumed. FOLDER/kills.jsonl has a line a kill, with what its
journal says against it; the same command goes on with the rest after a stop. As many searches run
at once as there are workers, on the devices in turn, undisturbed ones first, which say how long one
takes (FOLDER/undisturbed.json). On the emulated device the resumed search must also come to the
same tree and the same best.

ncu lets one process of a host count at a time, so searches side by side would wait for it. With
``--counted N`` only N of the kills have it, one after the other, beside the rest, whose PATH lacks
the folders that have an ncu (with what else is in them, such as compute-sanitizer). Each line says
which it was, and how many programs ncu counted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optiml_magic.journal import Line, read_lines

Row = dict[str, Any]
_TASK = """\
from optiml_magic.testing.kernels import known_task
task = known_task("transpose_naive", {sizes})
"""
_LIMIT = 300.0  # seconds of one search, its start included: whatever takes longer does not end
_GRACE = 20.0  # seconds in which the children of a killed search must be gone
_DRAWS = 5  # moments that are drawn before one search counts as always over too soon


@dataclass(frozen=True)
class Searches:
    """What all searches of a run have in common."""

    folder: Path
    devices: tuple[str, ...]
    budget: int
    seed: int
    counted: frozenset[int]  # the kills of those that may use ncu

    @property
    def repeats(self) -> bool:
        """Whether two searches come to the same."""
        return all(device.startswith("emulated") for device in self.devices)

    def home(self, name: str) -> Path:
        """A home with nothing in it but the roofs of the card, where they are known."""
        home = self.folder / "homes" / name
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        known = sorted(self.folder.glob("homes/undisturbed-*/roofs"))
        if known:
            shutil.copytree(known[0], home / "roofs")
        return home

    def start(
        self, home: Path, number: int, resume: Path | None = None, *, counted: bool
    ) -> subprocess.Popen[bytes]:
        """A search in a process group of its own; what it says is in its home."""
        sizes = "rows=512, cols=256" if self.repeats else "rows=1024, cols=1024"
        (home / "task.py").write_text(_TASK.format(sizes=sizes))
        words = [
            sys.executable, "-m", "optiml_magic.cli", "optimize", home / "task.py",
            "--device", self.devices[number % len(self.devices)],
            "--budget", self.budget, "--seed", self.seed,
            "--seconds", 120, "--llm", "none", "--experience", "none", "--json", home / "out.json",
            *(["--resume", resume] if resume else []),
        ]  # fmt: skip
        environ = {
            **os.environ, "OPTIML_HOME": str(home), "OPTIML_CACHE": str(self.folder / "cache"),
            **({} if counted else {"PATH": without_ncu(os.environ.get("PATH", ""))}),
        }  # fmt: skip
        with (home / "said.txt").open("ab") as said:
            return subprocess.Popen(
                [*map(str, words)], stdout=said, stderr=said, env=environ, start_new_session=True
            )


def without_ncu(path: str) -> str:
    """A PATH without the folders that have an ncu."""
    folders = path.split(os.pathsep)
    return os.pathsep.join(f for f in folders if not Path(f, "ncu").exists())


def faults(before: bytes, after: bytes, lines: Sequence[Line]) -> list[str]:
    """What a journal says against a search that was resumed; nothing where all is well.

    ``before`` and ``after`` are its bytes at the kill and at the end, ``lines`` those of the end.
    """
    found = []
    whole = before[: before.rfind(b"\n") + 1]
    if not after.startswith(whole):
        found.append("what stood in the journal is not there any more")
    done = [line.evaluated for line in lines if line.evaluated]
    passed = [e.evaluation for e in done if e.evaluation.verdict.passed]
    fresh = [x.identity for x in passed if x.duplicate_of is None]
    once: dict[str, list[Any]] = {
        "candidate evaluated": [e.candidate.number for e in done],
        "program evaluated": [e.candidate.digest for e in done],
        "machine code measured": [identity for identity in fresh if identity],
        "node asked about": [(x.candidate, x.call) for x in (s.expansion for s in lines) if x],
        "idea made": [(x.candidate, x.key) for x in (s.made for s in lines) if x],
    }
    for what, all_of_it in once.items():
        twice = [str(one) for one, count in Counter(all_of_it).items() if count > 1]
        found += [f"{what} twice: {one}" for one in twice]
    if not lines or lines[-1].ended is None:
        found.append("it did not end")
    return found


def outcome(home: Path) -> Row:
    """What a search came to, less what differs from one to the next."""
    found = json.loads((home / "out.json").read_text())
    return {k: v for k, v in found.items() if k not in ("wall_seconds", "timings", "journal")}


def evaluated(journal: bytes) -> int:
    """How many evaluations stand in whole lines."""
    lines = journal[: journal.rfind(b"\n") + 1].splitlines()
    return sum(json.loads(line).get("evaluated") is not None for line in lines)


def by_ncu(lines: Sequence[Line]) -> int:
    """How many programs ncu counted."""
    measured = [line.evaluated.evaluation.measurement for line in lines if line.evaluated]
    return sum(any(x.source == "ncu" for x in m.metrics) for m in measured if m is not None)


@dataclass(frozen=True)
class Undisturbed:
    """Seconds of a search that nobody kills, and what it comes to."""

    seconds: float
    outcome: Row


def undisturbed(searches: Searches, number: int, *, counted: bool) -> tuple[float, Row, list[str]]:
    """Seconds of a search that nobody kills, its outcome, and what its journal says against it."""
    home = searches.home(f"undisturbed-{'counted-' if counted else ''}{number}")
    began = time.monotonic()
    status = _ended(searches.start(home, number, counted=counted))
    seconds = time.monotonic() - began
    if status != 0:
        raise RuntimeError((home / "said.txt").read_text()[-2000:])
    journal = _journal(home)
    assert journal is not None
    text = journal.read_bytes()
    return seconds, outcome(home), faults(text, text, read_lines(journal)[1])


def lengths(
    searches: Searches, lanes: Mapping[bool, int]
) -> tuple[dict[bool, Undisturbed], list[str]]:
    """What undisturbed searches with and without ncu come to, and what is to be said against them.

    As many at once as there are ``lanes`` for each kind, after a first one alone, which measures
    what is measured once on a machine. Those of an earlier call are not made again.
    """
    kept = searches.folder / "undisturbed.json"
    found: dict[bool, Undisturbed] = {}
    if kept.exists():
        found = {
            c == "with ncu": Undisturbed(*row) for c, row in json.loads(kept.read_text()).items()
        }
    missing = {counted: number for counted, number in lanes.items() if counted not in found}
    if missing and not found:
        undisturbed(searches, 0, counted=False not in missing)
    against = []
    with ThreadPoolExecutor(max(1, sum(missing.values()))) as pool:
        begun = {
            counted: [
                pool.submit(undisturbed, searches, at, counted=counted)
                for at in range(1, 1 + number)
            ]
            for counted, number in missing.items()
        }
        for counted, searching in begun.items():
            ended = [one.result() for one in searching]
            whole = ended[0][1]
            found[counted] = Undisturbed(statistics.median(one[0] for one in ended), whole)
            against += [fault for one in ended for fault in one[2]]
            if searches.repeats and any(one[1] != whole for one in ended):
                against.append("they come to something else each time")
    if not against:
        named = {"with ncu" if c else "without": [u.seconds, u.outcome] for c, u in found.items()}
        kept.write_text(json.dumps(named))
    return found, against


def killed(searches: Searches, number: int, alone: Undisturbed) -> Row:
    """One search killed at a drawn moment of one that ran undisturbed, and resumed."""
    length, whole = alone.seconds, alone.outcome
    draw, counted = random.Random(f"{searches.seed}-{number}"), number in searches.counted
    for _ in range(_DRAWS):
        home = searches.home(f"killed-{number}")
        moment = draw.uniform(0.0, length)
        process = searches.start(home, number, counted=counted)
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            break
    else:
        return {"kill": number, "faults": ["it was always over before it could be killed"]}
    children = _descendants(process.pid)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    outlived = _outlived(children)
    journal = _journal(home)
    before = journal.read_bytes() if journal else b""
    begun = b"\n" in before  # else there is nothing to resume, and it begins anew
    if journal and not begun:
        journal.unlink()
    began = time.monotonic()
    again = searches.start(home, number, journal if begun else None, counted=counted)
    row = {
        "kill": number,
        "ncu": "on the PATH" if counted else "not on the PATH",
        "device": searches.devices[number % len(searches.devices)],
        "moment_s": round(moment, 2),
        "of_s": round(length, 2),
        "evaluated_before": evaluated(before),
        "cut_line": not before.endswith(b"\n") and begun,
        "children": len(children),
        "outlived": outlived,
    }
    status = _ended(again)
    if status is None:
        return {**row, "faults": [f"the resumed search did not end in {_LIMIT:g} s"]}
    if status:
        return {**row, "faults": [(home / "said.txt").read_text()[-2000:]]}
    ended = _journal(home)
    assert ended is not None
    lines, found = read_lines(ended)[1], outcome(home)
    against = faults(before, ended.read_bytes(), lines)
    if searches.repeats and found != whole:
        differing = [key for key in whole if found.get(key) != whole[key]]
        against.append(f"it came to something else: {', '.join(differing)}")
    if outlived:
        against.append(f"{len(outlived)} processes outlived the killed one")
    return {
        **row,
        "evaluated_after": evaluated(ended.read_bytes()),
        "counted_by_ncu": by_ncu(lines),
        "resumed_s": round(time.monotonic() - began, 2),
        "stopped": found["stopped"],
        "speedup": found["best"]["speedup"],
        "faults": against,
    }


def _ended(process: subprocess.Popen[bytes]) -> int | None:
    """The exit status; None for one that has taken too long, and is killed."""
    try:
        return process.wait(_LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


def _journal(home: Path) -> Path | None:
    return next(iter(home.glob("runs/*.jsonl")), None)


def _stat(pid: int) -> tuple[int, str, str] | None:
    """Parent, state and start of a process; None where there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[1]), fields[0], fields[19]


def _descendants(pid: int) -> dict[int, str]:
    """All processes below one, with their start: a number alone may be given again."""
    known = {int(p.name): _stat(int(p.name)) for p in Path("/proc").glob("[0-9]*")}
    found: dict[int, str] = {}
    parents = {pid}
    while parents:
        below = {p: stat[2] for p, stat in known.items() if stat and stat[0] in parents}
        parents = below.keys() - found.keys()
        found |= below
    return found


def _outlived(children: dict[int, str]) -> list[int]:
    """Those that are still there when their time is over; they are killed then."""
    until = time.monotonic() + _GRACE
    while True:
        left = [
            pid
            for pid, start in children.items()
            if (stat := _stat(pid)) and stat[2] == start and stat[1] != "Z"
        ]
        if not left:
            return []
        if time.monotonic() > until:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            return left
        time.sleep(0.05)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--device", default="cuda:0", help="one, or several with commas")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--budget", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--counted", type=int, help="kills of searches that may use ncu; all")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from benchmarks.gpu.machine import gpu, versions

    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "kills.jsonl"
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    left = [n for n in range(options.times) if n not in {row["kill"] for row in rows}]
    few = options.times if options.counted is None else options.counted
    devices = tuple(options.device.split(","))
    searches = Searches(folder, devices, options.budget, options.seed, frozenset(range(few)))
    about = {
        "command": " ".join(["python benchmarks/gpu/kills.py", *arguments]),
        "date": time.strftime("%Y-%m-%d"),
        "versions": versions(),
        "gpu": "" if searches.repeats else gpu(),
    }
    writing = threading.Lock()

    def one(number: int) -> Row:
        row = killed(searches, number, known[number in searches.counted])
        with writing, kept.open("a") as file:
            file.write(json.dumps({**row, **about}) + "\n")
            print(json.dumps(row), flush=True)
        return row

    if left:
        apart = few < options.times  # those with ncu one after the other
        lanes = {True: 1 if apart else options.workers, False: options.workers}
        mine = {c: [n for n in left if (n in searches.counted) is c] for c in (True, False)}
        if apart and mine[True]:
            lanes[False] = max(1, options.workers - 1)
        known, against = lengths(searches, {c: lanes[c] for c in mine if mine[c]})
        if against:
            print("undisturbed searches:", *against, sep="\n  ")
            return 1
        with ThreadPoolExecutor(lanes[True]) as with_ncu, ThreadPoolExecutor(lanes[False]) as pool:
            both = with_ncu.map(one, mine[True]), pool.map(one, mine[False])
            rows += [row for found in both for row in found]
    bad = [row for row in rows if row["faults"]]
    print(f"{len(rows)} kills, {len(bad)} with faults")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
