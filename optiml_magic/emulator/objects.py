"""Object code on disk, by the hash of everything that made it: IR, processor, LLVM, its options.

A file is the digest of its content and the content. It is written to a temporary name and renamed,
so readers and writers need no lock; what does not match its digest counts as absent.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

_DIGEST = 32  # bytes of SHA-256
_MOST = 4096  # files; about 20 KB each


class ObjectCache:
    """Bytes by key in one folder, which is made when the first object is kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> bytes | None:
        """The object, or None where there is none that is whole."""
        try:
            raw = self._path(key).read_bytes()
        except OSError:
            return None
        digest, content = raw[:_DIGEST], raw[_DIGEST:]
        return content if hashlib.sha256(content).digest() == digest else None

    def put(self, key: str, content: bytes) -> None:
        """Keep an object; a read-only or full disk costs time, never a result."""
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._make_room()
            with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as temporary:
                temporary.write(hashlib.sha256(content).digest() + content)
            os.replace(temporary.name, self._path(key))  # noqa: PTH105  # atomic

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.o"

    def _make_room(self) -> None:
        """Drop the older half of a full folder; another process may be dropping it, too."""
        files = list(self._folder.iterdir())
        if len(files) < _MOST:
            return
        for path in sorted(files, key=_written)[: len(files) // 2]:
            path.unlink(missing_ok=True)


def key_of(parts: Sequence[str]) -> str:
    """A file name for what was made from ``parts``."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
