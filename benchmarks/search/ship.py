"""The entries that ship with the package, from the journals of real runs.

    python benchmarks/search/ship.py FOLDER... [--out FILE] [--any-source]

A FOLDER has journals, ``*.jsonl``, or archives of them, ``*.tar.gz``. What a run found becomes an
entry without any name of its kernel. Only what was timed on a card may ship: other runs are left
out and counted, unless ``--any-source`` asks for them, for an experiment. Of runs of one program
and one kind the fastest stands.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.search.warm import read  # noqa: E402
from optiml_magic.errors import OptimlError  # noqa: E402
from optiml_magic.experience import shipped  # noqa: E402
from optiml_magic.experience.entries import entry_of  # noqa: E402
from optiml_magic.model.experience import Entry  # noqa: E402
from optiml_magic.replay.recording import Recording  # noqa: E402
from optiml_magic.settings import Settings  # noqa: E402

_MEASURED = ("events",)


def journals(folders: Sequence[Path], beside: Path) -> Iterator[Path]:
    """The journals of the folders, those of archives unpacked in a folder ``beside``."""
    for at, folder in enumerate(folders):
        yield from sorted(path for path in folder.glob("*.jsonl") if path.name != "rows.jsonl")
        for archive in sorted(folder.glob("*.tar.gz")):
            for name, raw in read(archive).items():
                path = beside / f"{at}-{archive.name}-{Path(name).name}"
                path.write_bytes(raw)
                yield path


def entry(path: Path) -> Entry | None:
    """What the run of a journal found; None where it did not come to that."""
    recording = Recording.read(path)
    known = next((line.known for line in recording.lines if line.known is not None), None)
    origin = recording.about.origin
    if recording.header.objective != "speed":
        return None
    if known is None or known.kind is None or origin is None:
        return None
    # The run is named after its task, but for what stands behind the last dash.
    nameless = replace(origin, run=origin.run.rpartition("-")[2])
    return entry_of(recording.trajectory, known.kind, nameless)


def entries(folders: Sequence[Path], *, any_source: bool = False) -> tuple[list[Entry], list[str]]:
    """One of each program and kind, in a lasting order; and why others are none."""
    best: dict[tuple[str, str], Entry] = {}
    left_out = []
    with tempfile.TemporaryDirectory() as beside:
        for path in journals(folders, Path(beside)):
            try:
                found = entry(path)
            except OptimlError as error:
                left_out.append(f"{path.name}: {error.message}")
                continue
            if found is None:
                left_out.append(f"{path.name}: it tells of no kind, or measured nothing")
            elif found.evidence.source not in _MEASURED and not any_source:
                left_out.append(f"{path.name}: its times are {found.evidence.source}")
            else:
                key = found.evidence.program, str(found.kind)
                if key not in best or found.gain > best[key].gain:
                    best[key] = found
    return [best[key] for key in sorted(best)], left_out


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, default=Settings().shipped)
    parser.add_argument("--any-source", action="store_true", help="estimated times as well")
    options = parser.parse_args(arguments)
    found, left_out = entries(options.folders, any_source=options.any_source)
    shipped.write(options.out, found)
    for why in left_out:
        print(f"left out: {why}")
    won = sum(bool(one.moves) for one in found)
    print(f"{len(found)} entries, {won} with a path that won, in {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
