"""What earlier runs learned, in one SQLite file: what paid off, and which paths won.

Every idea and every outcome is a row, by run, parent and key or by run and candidate, and what a
run found is one, so that a run that is resumed repeats none. Many processes may write at a time.
The file is the user's own and nothing depends on it: one that is broken or not ours is set aside,
and one that cannot be used leaves the search without experience, each with a note.
"""

from __future__ import annotations

import contextlib
import math
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from optiml_magic.model.candidate import Candidate, text_digest
from optiml_magic.model.codec import from_json, to_json
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.experience import Entry
from optiml_magic.model.hit_rates import GAIN, Kind, Tally
from optiml_magic.model.idea import Idea
from optiml_magic.model.view import View

SCHEMA = 2
_APPLICATION = 0x6F70746D  # "optm", in the file's header
_BUSY_SECONDS = 10.0
_TABLES = """\
CREATE TABLE proposed (
    run TEXT NOT NULL, digest TEXT NOT NULL, tool TEXT NOT NULL, rule TEXT NOT NULL,
    source TEXT NOT NULL, family TEXT NOT NULL, roofline TEXT NOT NULL,
    PRIMARY KEY (run, digest)) WITHOUT ROWID;
CREATE TABLE applied (
    run TEXT NOT NULL, candidate INTEGER NOT NULL, tool TEXT NOT NULL, rule TEXT NOT NULL,
    source TEXT NOT NULL, family TEXT NOT NULL, roofline TEXT NOT NULL,
    state TEXT NOT NULL, log_gain REAL,
    PRIMARY KEY (run, candidate)) WITHOUT ROWID;
CREATE TABLE won (run TEXT PRIMARY KEY, entry TEXT NOT NULL) WITHOUT ROWID;
"""
_NAMES: dict[Kind, tuple[str, str]] = {
    "tool": ("tool", "tool <> ''"),
    "action": ("tool || ' > ' || rule", "tool <> ''"),
    "rule": ("rule", "1"),
}
_PROPOSED = """\
SELECT {name}, source, family, roofline, count(*) FROM proposed WHERE {where} GROUP BY 1, 2, 3, 4
"""
_APPLIED = """\
SELECT {name}, source, family, roofline, count(*), sum(state = 'confirmed'),
    sum(state = 'refuted'), sum(state = 'not_measurable'), sum(coalesce(log_gain, -1) >= ?),
    count(log_gain), coalesce(sum(log_gain), 0.0)
FROM applied WHERE {where} GROUP BY 1, 2, 3, 4
"""


class _Foreign(Exception):  # noqa: N818  # why a file is set aside; never leaves this module
    pass


@dataclass(frozen=True)
class Setting:
    """Where a run's edits are measured: the source of its times and the family of its chip."""

    source: str
    family: str


class Experience:
    """The open file; without a path it knows nothing and keeps nothing.

    What goes wrong with the file is said in ``notes`` and disturbs nobody.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path or Path()
        self.notes: tuple[str, ...] = ()
        self._database: sqlite3.Connection | None = None
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = self._opened()
        except (sqlite3.Error, OSError) as refused:
            self._gave_up(refused)

    def close(self) -> None:
        """Close the file."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def propose(self, run: str, setting: Setting, view: View, found: Sequence[Idea]) -> None:
        """Remember the ideas for a step; what is there already stays as it is."""
        step = view.step.candidate.digest
        roofline = view.step.evaluation.roofline or ""
        rows = [
            (
                run,
                text_digest(f"{step} {i.key}"),
                i.answers,
                i.proposer,
                *_fields(setting),
                roofline,
            )
            for i in found
        ]
        self._write("INSERT OR IGNORE INTO proposed VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def apply(
        self, run: str, setting: Setting, candidate: Candidate, parent: Evaluation, own: Evaluation
    ) -> None:
        """Remember what became of a candidate; what is there already stays as it is.

        A tool has the credit where the edit answered a finding of it, and not where it was named.
        """
        test, tool = own.test, own.answered.tool if own.answered else ""
        row = (
            run, candidate.number, tool, candidate.proposal.proposer, *_fields(setting),
            parent.roofline or "", test.kept if test else "not_measurable",
            _log_gain(parent, own),
        )  # fmt: skip
        self._write("INSERT OR IGNORE INTO applied VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", [row])

    def fail(self, run: str, candidate: int) -> None:
        """A candidate that was taken for right turned out to be wrong: it gained nothing."""
        self._write(
            "UPDATE applied SET state = 'not_measurable', log_gain = NULL "
            "WHERE run = ? AND candidate = ?",
            [(run, candidate)],
        )

    def won(self, entry: Entry) -> None:
        """Remember what a run found; what it found before it was resumed gives way."""
        row = (entry.evidence.origin.run, to_json(Entry, entry))
        self._write("INSERT OR REPLACE INTO won VALUES (?, ?)", [row])

    def entries(self) -> tuple[Entry, ...]:
        """What each run found, in the order of their names."""
        if self._database is None:
            return ()
        try:
            with closing(self._database.execute("SELECT entry FROM won ORDER BY run")) as rows:
                return tuple(from_json(Entry, row[0]) for row in rows)
        except (sqlite3.Error, ValueError) as refused:
            self._gave_up(refused)
            return ()

    def tallies(self, setting: Setting | None = None) -> tuple[Tally, ...]:
        """By tool, action and rule, each in every setting and class; or those of one setting."""
        if self._database is None:
            return ()
        try:
            found = [t for kind in _NAMES for t in _tallies(self._database, kind)]
        except sqlite3.Error as refused:
            self._gave_up(refused)
            return ()
        return tuple(
            t for t in found if setting is None or (t.source, t.family) == _fields(setting)
        )

    def _write(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        if self._database is None or not rows:
            return
        try:
            with self._database:
                self._database.executemany(statement, rows)
        except sqlite3.Error as refused:
            self._gave_up(refused)

    def _gave_up(self, why: Exception) -> None:
        self.notes = (*self.notes, f"experience is not used: {self.path.name}: {why}")
        with contextlib.suppress(sqlite3.Error):
            self.close()

    def _opened(self) -> sqlite3.Connection:
        try:
            return _connected(self.path)
        except (_Foreign, sqlite3.DatabaseError) as unfit:
            if isinstance(unfit, sqlite3.OperationalError):  # locked, read-only, no room
                raise
        with _alone(self.path):
            try:
                return _connected(self.path)  # another process may have set it aside meanwhile
            except (_Foreign, sqlite3.DatabaseError) as unfit:
                if isinstance(unfit, sqlite3.OperationalError):
                    raise
                aside = _set_aside(self.path)
                self.notes = (*self.notes, f"{self.path.name} {unfit}; it is {aside.name} now")
                return _connected(self.path)


def _write_ahead(database: sqlite3.Connection) -> None:
    """Several may write in turn. To change the mode, SQLite does not wait for others by itself."""
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)
        else:
            return


def _connected(path: Path) -> sqlite3.Connection:
    """The file, made where it is missing. Raises _Foreign where it is another program's."""
    database = sqlite3.connect(path, timeout=_BUSY_SECONDS)
    try:
        with database:
            database.execute("BEGIN IMMEDIATE")
            _made_ours(database)
        _write_ahead(database)
        database.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        database.close()
        raise
    return database


def _made_ours(database: sqlite3.Connection) -> None:
    """Make the tables in an empty file; refuse one that is not ours, or not whole."""
    application, version, tables = (
        database.execute(question).fetchone()[0]
        for question in (
            "PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master"
        )
    )  # fmt: skip
    if not application and not version and not tables:
        for statement in _TABLES.split(";")[:-1]:
            database.execute(statement)
        database.execute(f"PRAGMA application_id = {_APPLICATION}")
        database.execute(f"PRAGMA user_version = {SCHEMA}")
        return
    if application != _APPLICATION:
        raise _Foreign("is not an experience file of optiml-magic")
    if version > SCHEMA:
        raise sqlite3.OperationalError("a later release of optiml-magic made it")
    if version < SCHEMA:
        raise _Foreign("is of an earlier release of optiml-magic")
    if database.execute("PRAGMA quick_check").fetchone()[0] != "ok":
        raise _Foreign("is damaged")


def _set_aside(path: Path) -> Path:
    """Rename a file and what SQLite keeps beside it; the new name says nothing of why."""
    number = 1
    while (aside := path.with_suffix(f".aside-{number}{path.suffix}")).exists():
        number += 1
    path.rename(aside)
    for suffix in ("-wal", "-shm", "-journal"):
        beside = Path(f"{path}{suffix}")
        if beside.exists():
            beside.rename(f"{aside}{suffix}")
    return aside


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process at a time renames the file."""
    with path.with_suffix(".lock").open("w") as file:
        if sys.platform != "win32":
            import fcntl

            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        yield


def _tallies(database: sqlite3.Connection, kind: Kind) -> list[Tally]:
    name, where = _NAMES[kind]
    with closing(database.execute(_PROPOSED.format(name=name, where=where))) as rows:
        proposed: dict[tuple[str, ...], int] = {tuple(row[:4]): row[4] for row in rows}
    applied = database.execute(_APPLIED.format(name=name, where=where), (math.log(GAIN),))
    with closing(applied) as rows:
        counted: dict[tuple[str, ...], Sequence[float]] = {tuple(r[:4]): r[4:] for r in rows}
    return [
        Tally(kind, *key, proposed.get(key, 0), *counted.get(key, ()))  # type: ignore[arg-type,call-arg]  # rows of _APPLIED
        for key in sorted({**proposed, **counted})
    ]


def _fields(setting: Setting) -> tuple[str, str]:
    return setting.source, setting.family


def _log_gain(parent: Evaluation, own: Evaluation) -> float | None:
    before, after = parent.measurement, own.measurement
    if before is None or after is None or not own.verdict.passed:
        return None
    if (before.source, before.chip) != (after.source, after.chip):
        return None
    return math.log(before.seconds / after.seconds)
