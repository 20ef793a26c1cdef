"""What was evaluated of one task, and what was offered and not evaluated: a pool with its gaps."""

from __future__ import annotations

import lzma
from dataclasses import dataclass
from pathlib import Path

from optiml_magic.errors import UsageError
from optiml_magic.model.codec import from_json, to_json
from optiml_magic.replay.pool import Pool, Tried

SUFFIX = ".pool.xz"  # whose programs are much alike: a seventh of what gzip makes of them


@dataclass(frozen=True)
class Offered:
    """An idea for the program of digest ``parent`` of which nobody evaluated what it becomes."""

    parent: str
    key: str
    proposer: str
    prior: float


@dataclass(frozen=True)
class Heard:
    """What the rules said: ideas that became programs of the pool, and those that did not."""

    tried: tuple[Tried, ...]
    offered: tuple[Offered, ...]
    expanded: tuple[str, ...]  # digests of the programs that they were asked about


@dataclass(frozen=True)
class Record:
    """One task. ``known`` is what the rules said in the light of the experience that ships.

    ``ended`` says how far the searches came that filled it: "" where all ended.
    """

    pool: Pool  # its ideas are those of ``plain``
    plain: Heard
    known: Heard
    command: str
    date: str
    ended: str

    @classmethod
    def read(cls, path: Path) -> Record:
        """What ``write`` wrote; UsageError for anything else."""
        try:
            return from_json(cls, lzma.decompress(path.read_bytes()))
        except (OSError, ValueError, EOFError, lzma.LZMAError) as cause:
            raise UsageError(f"{path} is not a record", fix="name a file of pool.py") from cause

    def write(self, path: Path) -> None:
        """Whole or not at all."""
        begun = path.with_suffix(".part")
        begun.write_bytes(lzma.compress(to_json(Record, self).encode()))
        begun.rename(path)
