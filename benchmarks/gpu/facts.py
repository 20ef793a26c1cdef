"""Facts that take long to find out: each is a line of a file when it is known, and asked once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Fact = tuple[str, str, Callable[[], dict[str, Any]]]


def record(facts: Iterable[Fact], out: Path, device: str, seconds: float) -> list[dict[str, Any]]:
    """Measure what ``out`` does not have yet; all rows, or none where ``seconds`` were too few."""
    until = time.monotonic() + seconds
    known = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = {(row["what"], row["name"]) for row in known}
    for what, name, measure in facts:
        if (what, name) in done:
            continue
        if time.monotonic() > until:
            print("time is up: run it again to go on")
            return []
        row = {"what": what, "name": name, "device": device, **measure()}
        print(row, flush=True)
        with out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        known.append(row)
    return known
