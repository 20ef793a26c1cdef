"""Entries as lines of JSON: those that come with the package, or another file of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from optiml_magic.model.codec import from_json, to_json
from optiml_magic.model.experience import Entry


def read(path: Path) -> tuple[tuple[Entry, ...], str]:
    """The entries of a file, and why there are none where it cannot be read."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return tuple(from_json(Entry, line) for line in lines if line), ""
    except (OSError, ValueError) as unfit:
        return (), f"measurements of others are not used: {path.name}: {str(unfit).splitlines()[0]}"


def write(path: Path, entries: Iterable[Entry]) -> None:
    """One line an entry."""
    path.write_text("".join(f"{to_json(Entry, entry)}\n" for entry in entries), encoding="utf-8")
