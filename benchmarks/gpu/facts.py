"""Facts that take long to find out: each is a line of a file when it is known, and asked once."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.gpu.machine import gpu, versions

Fact = tuple[str, str, Callable[[], dict[str, Any]]]


def record(facts: Iterable[Fact], out: Path, device: str, seconds: float) -> list[dict[str, Any]]:
    """Measure what ``out`` does not have yet; all rows, or none where ``seconds`` were too few.

    A row ``run`` for each call that measures says on which machine, when, and by which command.
    """
    until = time.monotonic() + seconds
    known = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = {(row["what"], row["name"]) for row in known}
    run = {
        "what": "run",
        "name": time.strftime("%Y-%m-%d %H:%M:%S"),
        "device": device,
        "gpu": gpu() if device.startswith("cuda") else "",
        "versions": versions(),
        "command": " ".join(["python", *sys.argv]),
    }
    for what, name, measure in facts:
        if (what, name) in done:
            continue
        if time.monotonic() > until:
            print("time is up: run it again to go on")
            return []
        row = {"what": what, "name": name, "device": device, **measure()}
        print(row, flush=True)
        new = [row] if run in known else [run, row]
        with out.open("a") as file:
            file.writelines(json.dumps(one) + "\n" for one in new)
        known += new
    return known
