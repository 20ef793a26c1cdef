"""Files that a user names, and those of the home: what keeps one from being read or written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from optiml_magic.errors import MachineError, UsageError


@contextmanager
def writing(
    path: str | Path, fix: str = "name a place with room that you may write to"
) -> Iterator[None]:
    """MachineError where what is inside cannot write to ``path``; it says why."""
    try:
        yield
    except OSError as cause:
        why = cause.strerror or str(cause)
        raise MachineError(f"{path} cannot be written: {why}", fix=fix) from cause


def read_kernel(path: Path) -> str:
    """A kernel file's text; UsageError where there is none, or it is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as cause:
        line = path.read_bytes()[: cause.start].count(b"\n") + 1
        raise UsageError(
            f"{path.name} is not UTF-8 text", fix="save it as UTF-8", line=line
        ) from None
    except OSError as cause:
        found = path.exists()
        what = f"{path} cannot be read: {cause.strerror}" if found else f"there is no file {path}"
        raise UsageError(what, fix="give the path of a .cu file") from None


def write(path: str | Path, text: str) -> None:
    """``text`` as the whole of a file in UTF-8. Raises MachineError where it cannot be."""
    with writing(path):
        Path(path).write_text(text, encoding="utf-8")
