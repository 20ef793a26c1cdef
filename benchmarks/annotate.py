"""How long annotate takes on a kernel of 203 lines, cold and warm.

    python benchmarks/annotate.py [OUT.json]

In one process, as a notebook has it: the first run with empty caches, then more of them, each with
its HTML. Then the command line, a new process each time. Beside the seconds stand those of the
processor, children included, since other work on the machine slows the first and not the second.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import runpy
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from optiml_magic.annotate import annotate
from optiml_magic.reports import annotation_html
from optiml_magic.reports.annotation import Annotation
from optiml_magic.settings import Settings, resolve

TASK = Path(__file__).with_name("layer") / "task.py"
REPEATS = 11
PACKAGES = ("optiml-magic", "cuda-bindings", "nvidia-cuda-nvrtc", "llvmlite", "numpy")


def main(out: Path | None) -> int:
    with tempfile.TemporaryDirectory() as home:
        os.environ["OPTIML_HOME"] = home
        inside = in_process(resolve({"device": "emulated:h200"}))
    with tempfile.TemporaryDirectory() as home:
        outside = as_command({**os.environ, "OPTIML_HOME": home})
    record = {
        "what": "seconds of annotate on benchmarks/layer/layer.cu, three kernels on 203 lines",
        "command": "python benchmarks/annotate.py",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "bytecode kept": not sys.dont_write_bytecode,  # as of an installed package
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": {name: version(name) for name in PACKAGES},
        "in one process": inside,
        "command line": outside,
    }
    show("in one process", inside)
    show("command line", outside)
    print(f"HTML of {inside['html_bytes'] / 1000:.0f} KB")
    if out:
        out.write_text(json.dumps(record, indent=1) + "\n")
    return 0


def in_process(settings: Settings) -> dict[str, Any]:
    task = runpy.run_path(str(TASK))["task"]
    pages: list[str] = []

    def once() -> None:
        pages.append(annotation_html.fragment(checked(annotate(replace(task), settings))))

    found = timed(once)
    assert len(set(pages)) == 1, "two runs of one kernel differ"
    return {**found, "html_bytes": len(pages[0].encode())}


def checked(found: Annotation) -> Annotation:
    """A run that counted nothing would be fast."""
    facts = dict(found.facts)
    assert facts["check"].startswith("passed"), facts
    assert facts["counts"] == "emulated, summed over 3 launches", facts
    assert len(found.lines) >= 200
    return found


def as_command(environment: dict[str, str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "optiml_magic.cli", "annotate", str(TASK)]
    with tempfile.TemporaryDirectory() as folder:
        page = ["--html", str(Path(folder, "page.html"))]

        def once() -> None:
            subprocess.run(
                [*command, "--device", "emulated:h200", *page],
                check=True, capture_output=True, env=environment,
            )  # fmt: skip

        return timed(once)


def timed(once: Callable[[], None]) -> dict[str, Any]:
    """The first call and those after it."""
    wall, busy, load = [], [], []
    for _ in range(1 + REPEATS):
        load.append(round(os.getloadavg()[0], 1))
        began, before = time.perf_counter(), processor()
        once()
        wall.append(round(time.perf_counter() - began, 3))
        busy.append(round(processor() - before, 3))
    return {
        "cold_seconds": wall[0],
        "warm_seconds": wall[1:],
        "cold_processor_seconds": busy[0],
        "warm_processor_seconds": busy[1:],
        "load_average": load,
    }


def processor() -> float:
    """Seconds of the processor that this process and its ended children took."""
    return sum(os.times()[:4])


def show(name: str, found: dict[str, Any]) -> None:
    warm = found["warm_seconds"]
    print(
        f"{name}: cold {found['cold_seconds']:.2f} s, then median {statistics.median(warm):.2f} s "
        f"({min(warm):.2f} to {max(warm):.2f}), load {min(found['load_average'])} to "
        f"{max(found['load_average'])}; of the processor "
        f"{statistics.median(found['warm_processor_seconds']):.2f} s"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, nargs="?")
    sys.exit(main(**vars(parser.parse_args())))
