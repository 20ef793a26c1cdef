"""Results by the names that users give them: in a notebook, in this home, or in a file."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optiml_magic.background import Handle
from optiml_magic.errors import UsageError, nearest
from optiml_magic.journal import Asked, in_use, read_lines
from optiml_magic.replay.past import replayed
from optiml_magic.replay.recording import Recording
from optiml_magic.result import Result
from optiml_magic.runs import saved
from optiml_magic.runs.comparison import Comparison
from optiml_magic.runs.history import History, history, journals
from optiml_magic.settings import Settings

_JOURNAL = ".jsonl"


def listed(options: argparse.Namespace, settings: Settings) -> History:
    """The runs of this home, newest first."""
    if options.last < 1:
        raise UsageError(f"--last is {options.last}", fix="use a value above zero")
    return history(settings.runs, options.last)


def compared(
    options: argparse.Namespace, settings: Settings, namespace: Mapping[str, Any]
) -> Comparison:
    """Two results beside each other."""
    names = (options.one, options.two)
    one, two = (named(name, settings, namespace) for name in names)
    return Comparison.of(names, (one, two))


def named(name: str, settings: Settings, namespace: Mapping[str, Any]) -> Result:
    """The result of a name. Raises UsageError, which names the nearest, where there is none."""
    held = namespace.get(name)
    if isinstance(held, Handle):
        if held.state != "done":
            raise UsageError(
                f"the search `{name}` is {held.state}, so there is no result yet",
                fix=f"wait for {name}.result(), or %optiml stop {held.name}",
            )
        held = held.result()
    if isinstance(held, Result):
        return held
    path = Path(name).expanduser()
    if path.suffix == saved.SUFFIX:
        return saved.load(path)
    if path.suffix == _JOURNAL or (found := run_of(name, settings)) is None:
        if path.suffix == _JOURNAL and path.is_file():
            return replayed(Recording.read(path)).result
        raise _unknown(name, settings, namespace)
    return replayed(Recording.read(found)).result


def run_of(name: str, settings: Settings) -> Path | None:
    """The journal in this home that has a name, or the only one that begins with it."""
    known = journals(settings.runs)
    found = [path for path in known if path.stem == name]
    found = found or [path for path in known if path.stem.startswith(name)]
    if len(found) > 1:
        newest = ", ".join(path.stem for path in found[:3])
        raise UsageError(
            f"no result is called `{name}`, and {len(found)} runs begin so",
            fix=f"name one of them, the newest first: {newest}{', ...' if found[3:] else ''}",
        )
    return found[0] if found else None


def resumable(
    name: str | None, settings: Settings, namespace: Mapping[str, Any]
) -> tuple[Path, Asked]:
    """The journal to go on with, and the command that it is of.

    ``name`` is that of a result or a run; of a kernel it means its newest run, and None the newest
    of all. Journals of other homes are not asked: a command of a stranger's is not run.
    """
    path = _journal(name, settings, namespace)
    if in_use(path):
        raise UsageError(f"{path.stem} is still running", fix="wait for it, or stop it first")
    _, lines = read_lines(path)
    about = lines[0].about
    if about is None or about.asked is None:
        raise UsageError(
            f"the journal of {path.stem} does not say what command it is of",
            fix=f"run that command again with --resume {path.stem}",
        )
    return path, about.asked


def more(options: argparse.Namespace) -> list[str]:
    """What a command is given beside its own words when its run goes on."""
    given = {f"--{name}": getattr(options, name) for name in ("budget", "seconds")}
    words = [word for flag, value in given.items() if value for word in (flag, str(value))]
    return [*words, "--background"] if getattr(options, "background", False) else words


def _journal(name: str | None, settings: Settings, namespace: Mapping[str, Any]) -> Path:
    known = journals(settings.runs)
    if name is None:
        if not known:
            raise UsageError(f"there is no run in {settings.runs}", fix="optimize something first")
        return known[0]
    held = namespace.get(name)
    journal = held.summary.journal if isinstance(held, Result) else None
    if journal is not None and (settings.runs / journal.name).is_file():
        return settings.runs / journal.name
    for path in known:
        if path.stem == name or path.stem.rpartition("-")[0] == name:
            return path
    found = run_of(name, settings)
    if found is None:
        raise _unknown(name, settings, namespace)
    return found


def _unknown(name: str, settings: Settings, namespace: Mapping[str, Any]) -> UsageError:
    """Nothing has this name, or something else than a result."""
    results = [key for key, value in namespace.items() if isinstance(value, (Result, Handle))]
    runs = [path.stem for path in journals(settings.runs)]
    fix = nearest(name, [*results, *runs])
    if not fix:
        own = [key for key in results if not key.startswith("_")]
        fix = f"results here: {', '.join(own)}" if own else "history lists the runs there are"
    if name in namespace:
        kind = type(namespace[name]).__name__
        return UsageError(f"`{name}` is of type {kind}, not a result", fix=fix)
    return UsageError(f"there is no result and no run called `{name}`", fix=fix)
