"""Searches whose journals become the experience that ships: rules alone, without any experience.

    python benchmarks/search/warm.py FOLDER [--seconds 12] [--limit SECONDS] [--device cuda:0]

Each task of ``siblings.py`` is searched once. FOLDER gets ``rows.jsonl``, a line a search, and
``journals.tar.gz`` with the journals, without their counters and findings, written anew after each
search; the same command goes on with what is not in there. No search is begun that could end after
``--limit`` seconds. ``benchmarks/search/ship.py FOLDER`` makes entries of them.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.search.siblings import row_of, searched, tasks  # noqa: E402
from optiml_magic.errors import OptimlError  # noqa: E402

ARCHIVE, ROWS = "journals.tar.gz", "rows.jsonl"


def slim(line: str) -> str:
    """A line of a journal without what nothing in a replay or an entry is made from."""
    told = json.loads(line)
    evaluated = told.get("evaluated")
    if evaluated:
        evaluation = evaluated["evaluation"]
        evaluation.update(findings=[], resources=[], standing=None, test=None)
        evaluation["verdict"].update(checks=[], hazards=[])
        _bare(evaluation["measurement"])
    for settled in ((told.get("ended") or {}).get("settled") or {}).values():
        if "seconds" in settled:
            _bare(settled)
    return json.dumps(told, separators=(",", ":"))


def _bare(measurement: dict[str, Any] | None) -> None:
    if measurement:
        measurement.update(metrics=[], bounds=[], kernels=[], missing=[], rules=[])


def read(archive: Path) -> dict[str, bytes]:
    """The journals of an archive by their names; none where it is not there yet."""
    if not archive.exists():
        return {}
    with tarfile.open(archive) as packed:
        files = [(member.name, packed.extractfile(member)) for member in packed.getmembers()]
        return {name: file.read() for name, file in files if file is not None}


def write(archive: Path, journals: dict[str, bytes]) -> None:
    """The archive anew, whole or not at all."""
    begun = archive.with_suffix(".part")
    with tarfile.open(begun, "w:gz") as packed:
        for name, raw in journals.items():
            member = tarfile.TarInfo(name)
            member.size = len(raw)
            packed.addfile(member, io.BytesIO(raw))
    begun.rename(archive)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=12.0, help="of a search")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds of all")
    parser.add_argument("--budget", type=int, default=200, help="evaluations of a search")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--only", nargs="+", help="tasks whose names begin so")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    options.folder.mkdir(parents=True, exist_ok=True)
    rows, archive = options.folder / ROWS, options.folder / ARCHIVE
    kept = rows.read_text().splitlines() if rows.exists() else []
    done = {json.loads(line)["task"] for line in kept}
    journals = read(archive)
    wanted = tasks(emulated=options.device.startswith("emulated"))
    chosen = [n for n in wanted if not options.only or n.startswith(tuple(options.only))]
    homes = tempfile.TemporaryDirectory()
    os.environ["OPTIML_CACHE"] = homes.name
    for name in chosen:
        if name in done:
            continue
        if time.monotonic() - began + options.seconds > options.limit:
            print("the limit is reached: the same command goes on", flush=True)
            break
        try:
            summary = searched(
                wanted[name](), home=Path(homes.name), device=options.device,
                seconds=options.seconds, budget=options.budget, experience="none",
            )  # fmt: skip
        except OptimlError as error:
            row: dict[str, Any] = {"task": name, "error": str(error)}
        else:
            row = row_of(name, summary)
            assert summary.journal is not None
            lines = summary.journal.read_text(encoding="utf-8").splitlines()
            slimmed = "".join(f"{slim(line)}\n" for line in lines).encode()
            journals[f"{name.replace('/', '-')}.jsonl"] = slimmed
            write(archive, journals)
        row |= {"date": time.strftime("%Y-%m-%d"), "device": options.device}
        with rows.open("a") as file:
            file.write(json.dumps(row) + "\n")
        told = f"{row.get('speedup')}x {row.get('title')}" if "title" in row else row["error"]
        count = len(row.get("best_so_far", ()))
        print(f"{name}: {told}; {count} evaluations, {row.get('wall_s')} s", flush=True)
    homes.cleanup()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
