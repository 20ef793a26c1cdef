"""References made into kernels: verified or refused with a line, and seconds to the first that is.

    python benchmarks/synthesis/references.py [--write] [NAME ...]

What `optiml synthesize --llm none` does before its search, in one process: a reference is traced,
lowered and compiled, the kernel verified on the emulated device, at its own sizes and at others.
Seconds are wall time from the reference on, on a machine that does other work as well.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from optiml_magic.from_reference import NotLoweredError, made  # noqa: E402
from optiml_magic.optimize import evaluate_once  # noqa: E402
from optiml_magic.settings import resolve  # noqa: E402
from tests.references import REFERENCES  # noqa: E402
from tests.references.entry import Entry  # noqa: E402
from tests.references.refused import REFUSED  # noqa: E402

RECORD = ROOT / "benchmarks" / "results" / "references.json"


def row(entry: Entry) -> dict[str, Any]:
    """How one reference ended."""
    began = time.monotonic()
    found: dict[str, Any] = {"name": entry.name, "family": entry.family}
    try:
        task = made(entry.task).task
    except NotLoweredError as refused:
        return {**found, "outcome": "refused", "reason": str(refused)}
    lowered = time.monotonic() - began
    checked = evaluate_once(task, resolve({"device": "emulated:h200"}), counters=False)
    sizes = next((n for n in checked.notes if n.startswith("other sizes: ")), "")
    found["outcome"] = "verified" if checked.evaluation.verdict.passed else "wrong"
    found["other sizes"] = sizes.removeprefix("other sizes: ").partition(",")[0]
    found["launches"] = str(task.kernel).count("__global__")
    found["lowered s"] = round(lowered, 2)
    found["verified s"] = round(time.monotonic() - began, 2)
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """Counts by family, what was refused, and the seconds."""
    families = {r["family"]: Counter[str]() for r in rows}
    for r in rows:
        families[r["family"]][r["outcome"]] += 1
    lines = [f"{'family':16} verified refused wrong"]
    for family, counts in sorted(families.items()):
        numbers = (counts[outcome] for outcome in ("verified", "refused", "wrong"))
        lines.append(f"{family:16} {'{:8} {:7} {:5}'.format(*numbers)}")
    verified = [r["verified s"] for r in rows if r["outcome"] == "verified"]
    lines += [f"{r['name']}: {r['reason']}" for r in rows if r["outcome"] == "refused"]
    lines.append(
        f"{len(verified)} of {len(rows)} verified; seconds to the verified kernel: "
        f"median {statistics.median(verified):.1f}, most {max(verified):.1f}"
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    entries = [*REFERENCES, *(entry for entry, _ in REFUSED)]
    rows = []
    for entry in entries:
        if not options.names or entry.name in options.names:
            rows.append(row(entry))
            print(json.dumps(rows[-1]), flush=True)
    print(table(rows))
    if options.write:
        head = {
            "date": time.strftime("%Y-%m-%d"),
            "command": "python benchmarks/synthesis/references.py --write",
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, busy with other work",
            "versions": {name: version(name) for name in ("optiml-magic", "numpy", "llvmlite")},
        }
        body = ",\n  ".join(json.dumps(r) for r in rows)
        RECORD.write_text(f'{json.dumps(head, indent=1)[:-2]},\n "rows": [\n  {body}\n ]\n}}\n')


if __name__ == "__main__":
    main()
