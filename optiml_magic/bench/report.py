"""``optiml bench``: the run told as it goes, then the table and the picture of the folder."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from optiml_magic.bench.entry import Entry
from optiml_magic.bench.picture import suite_picture
from optiml_magic.bench.row import Row
from optiml_magic.bench.run import FILE, Suite
from optiml_magic.bench.suite import chosen
from optiml_magic.bench.table import table
from optiml_magic.devices.choice import choose
from optiml_magic.reports.quantities import ratio
from optiml_magic.settings import Settings

TABLE, PICTURE = "suite.md", "suite.svg"


def bench(
    options: argparse.Namespace, settings: Settings, command: str, say: Callable[[str], None]
) -> int:
    """Run what the words ask for; 1 where a task has no figures, else 0."""
    entries = chosen(options.tasks, options.part)
    if options.list:
        say(_listed(entries))
        return 0
    choice = choose(settings.device)
    if choice.is_emulated and options.peers:
        say(f"no peers on {choice.name}: they need a card")
    folder = Path(options.out)
    suite = Suite(entries, options.size, settings, folder, options.peers, command)
    if options.from_references:
        suite = replace(suite, origin="reference")
    run = suite.retime if options.retime else suite.run
    rows = run(lambda row: say(_line(row)))
    text = table(rows, entries)
    say("\n" + text)
    (folder / TABLE).write_text(f"`{command}`\n\n{text}\n", encoding="utf-8")
    written = [FILE, TABLE]
    if any(not row.error for row in rows):
        suite_picture(rows).save(folder / PICTURE)
        written.append(PICTURE)
    say(f"\nin {folder}: {', '.join(written)}")
    return 1 if any(row.error for row in rows) else 0


def _line(row: Row) -> str:
    if row.error:
        return f"{row.task}: {row.error}"
    peer = f", {ratio(row.ahead)} over {row.best_peer}" if row.ahead is not None else ""
    failed = "".join(f"; {name}: {why}" for name, why in row.failed.items())
    return (
        f"{row.task}: {ratio(row.speedup)}, {row.over_floor:.3g} times its floor{peer} "
        f"({row.recipe}; {row.wall:.0f} s){failed}"
    )


def _listed(entries: Sequence[Entry]) -> str:
    lines = [
        f"{entry.part:9} {entry.family + '/' + entry.name:32} {entry.source}".rstrip()
        for entry in entries
    ]
    return "\n".join([*lines, f"{len(entries)} tasks"])
