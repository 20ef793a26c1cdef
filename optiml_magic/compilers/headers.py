"""Which of the user's headers a text can reach, so that editing one is seen by every cache.

A scan of the text, not a preprocessor: it follows every ``#include`` that stands there, also those
that an ``#if`` or a comment turns off, to every file it could mean. It may follow too many, which
costs one compilation; it never follows too few.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.includes import refused

_SPLICE = re.compile(r"\\[ \t]*\r?\n")
_GAP = r"(?:\s|/\*.*?\*/)*"
_INCLUDE = re.compile(
    rf"(?:\#|%:|\?\?=){_GAP}(?:include(?:_next)?|import|embed)\b{_GAP}"
    rf"(?:\"(?P<quoted>[^\"\n]*)\"|<(?P<angled>[^>\n]*)>)?"
    rf"|__has_(?:include|embed)\w*{_GAP}\({_GAP}[<\"](?P<asked>[^>\"\n]*)[>\"]",
    re.DOTALL,
)
_CELL_FOLDER = Path("/")  # the cell is called /cell.cu, and NVRTC looks beside it


def fingerprint(text: str, options: CompileOptions) -> str | None:
    """SHA-256 of every header of the user that ``text`` can reach, with their names, in hex.

    None where that is not known: an ``#include`` names a macro, or a header cannot be read. Nor
    is a file opened for a text that may not be compiled.
    """
    if refused(text, options) is not None:
        return None
    digest = hashlib.sha256()
    try:
        for name, content in sorted(_reached(text, options)):
            digest.update(f"{len(name)} {name} {len(content)} ".encode())
            digest.update(content)
    except (_UnknownError, OSError):
        return None
    return digest.hexdigest()


class _UnknownError(Exception):
    """An include whose file a scan cannot name."""


def _reached(text: str, options: CompileOptions) -> Iterator[tuple[str, bytes]]:
    memory = dict(options.headers)
    folders = [Path(folder) for folder in options.include]
    # A text, and where it stands: among the typed ones, and on disk. NVRTC takes a typed header to
    # stand in the working directory.
    pending: list[tuple[str, str, Path]] = [(text, "", _CELL_FOLDER)]
    seen: set[str] = set()
    while pending:
        content, inside, folder = pending.pop()
        for name in _names(content):
            for typed in {name, os.path.normpath(os.path.join(inside, name))}:  # noqa: PTH118  # names, not files
                if typed in memory and f"typed {typed}" not in seen:
                    seen.add(f"typed {typed}")
                    yield f"typed {typed}", memory[typed].encode()
                    pending.append((memory[typed], os.path.dirname(typed), Path.cwd()))  # noqa: PTH120
            for path in (place / name for place in (folder, *folders)):
                if str(path) not in seen and path.is_file():
                    seen.add(str(path))
                    raw = path.read_bytes()
                    yield str(path), raw
                    pending.append((raw.decode(errors="replace"), "", path.parent))


@lru_cache(maxsize=1024)
def _names(content: str) -> tuple[str, ...]:
    """What a text includes, as it is spelled; _UnknownError for a macro."""
    found = []
    if "??/" in content:  # the trigraph of a backslash
        raise _UnknownError
    for match in _INCLUDE.finditer(_SPLICE.sub("", content)):
        name = match["quoted"] or match["angled"] or match["asked"]
        if not name:
            raise _UnknownError
        found.append(name)
    return tuple(dict.fromkeys(found))
