"""How far the search is from what a person writes: kernels by hand beside the best that it found.

    python benchmarks/suite/by_hand.py --suite benchmarks/results/suite-h200.jsonl --out FILE
    python benchmarks/suite/by_hand.py --check [NAME ...]      # verified on the emulated device

``by_hand/NAME.cu`` is timed as the suite times: in one process, in turn with the input kernel and
the program of the row, as CUDA graphs, from an L2 that holds neither. One whose outputs at the full
sizes are further from those of that program than the suite allows has no time. A line of JSON each.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from optiml_magic.bench.beside import in_turn
from optiml_magic.bench.machine import hardware, versions
from optiml_magic.bench.peers import OurKernel
from optiml_magic.bench.row import BEST, INPUT
from optiml_magic.bench.suite import chosen
from optiml_magic.calling import Kernels
from optiml_magic.devices.choice import choose
from optiml_magic.devices.functions import line_of
from optiml_magic.optimize import evaluate_once, prepared
from optiml_magic.settings import resolve

FOLDER = Path(__file__).with_name("by_hand")
HAND = "by hand"


def main() -> None:
    asked = arguments()
    if asked.check:
        wrong = [name for name in asked.names if not checked(name)]
        sys.exit(bool(wrong))
    choice = choose("cuda:0")
    folder = tempfile.mkdtemp(prefix="by-hand-")
    settings = resolve({"device": choice.name, "llm": "none", "experience": "none", "home": folder})
    common = {
        "hardware": hardware(choice), "versions": versions(), "date": time.strftime("%Y-%m-%d"),
        "command": " ".join(["benchmarks/suite/by_hand.py", *sys.argv[1:]]),
    }  # fmt: skip
    found = (json.loads(line) for line in asked.suite.read_text().splitlines())
    rows = {row["task"]: row for row in found if row.get("program")}
    for name in asked.names:
        line: dict[str, Any] = {"task": name}
        try:
            line |= measured(name, rows[name]["program"], settings)
        except Exception as problem:  # noqa: BLE001  # the others are still to come
            line["error"] = line_of(problem)
        with asked.out.open("a") as file:
            file.write(json.dumps(line | common) + "\n")
        print(told(line), flush=True)


def arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--suite", type=Path, help="rows whose programs stand beside")
    parser.add_argument("--out", type=Path, help="lines are added to this file")
    parser.add_argument("--check", action="store_true", help="verify, without a card")
    asked = parser.parse_args()
    asked.names = asked.names or sorted(path.stem for path in FOLDER.glob("*.cu"))
    if not asked.check and (asked.suite is None or asked.out is None):
        parser.error("give --suite and --out, or --check")
    return asked


def checked(name: str) -> bool:
    (entry,) = chosen([name], None)
    settings = resolve({"device": "emulated:h200", "llm": "none", "experience": "none"})
    text = (FOLDER / f"{name}.cu").read_text()
    verdict = evaluate_once(
        entry.task("checked"), settings, program=text, counters=False
    ).evaluation.verdict
    print(f"{name}: {verdict.summary}", flush=True)
    return verdict.passed


def measured(name: str, best: str, settings: Any) -> dict[str, Any]:
    (entry,) = chosen([name], None)
    task, sizes = entry.task("full"), entry.sizes("full")
    kernels = Kernels.of(prepared(task, settings), settings)
    texts = {BEST: best, INPUT: task.text, HAND: (FOLDER / f"{name}.cu").read_text()}
    parties = [OurKernel(party, kernels(text)) for party, text in texts.items()]

    def right(values: dict[str, Any]) -> tuple[tuple[Any, ...], str]:
        outputs = parties[0].arrays(parties[0].ready(values)())
        return tuple(output.copy() for output in outputs), "the best that was found"

    found = in_turn(entry, parties, sizes, 0, right)
    return {
        "sizes": dict(sizes),
        "seconds": {n: statistics.median(mine) for n, mine in found.samples.items()},
        "samples": found.samples, "how": found.how, "errors": found.errors,
        "failed": found.failed, "against": found.against,
    }  # fmt: skip


def told(line: dict[str, Any]) -> str:
    if "error" in line:
        return f"{line['task']}: {line['error']}"
    times = ", ".join(f"{n} {1e6 * s:.1f} us" for n, s in line["seconds"].items())
    return f"{line['task']}: {times or 'not timed'} {line['failed'] or ''}"


if __name__ == "__main__":
    main()
