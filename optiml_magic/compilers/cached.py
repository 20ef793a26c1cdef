"""A compiler that remembers: raw PTX and cubin files by the hash of everything that made them.

What the user's headers hold is part of it; where that cannot be decided, nothing is remembered.

An entry is three files, written to a temporary name and renamed, the JSON last: an entry without it
does not exist, so readers and writers need no lock. The cubin can be opened with ``cuobjdump`` as
it is.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from optiml_magic.chips import Chip
from optiml_magic.compilers.base import CompileOptions, Compiler
from optiml_magic.compilers.headers import fingerprint
from optiml_magic.model.build import Build, CompileFailure
from optiml_magic.model.codec import from_json, to_json

_SCHEMA = 6


@dataclass(frozen=True)
class _Key:
    schema: int
    compiler: str
    architecture: str
    options: CompileOptions  # less the typed headers, which count where they are reached
    headers: str
    kernels: tuple[str, ...]
    text: str


class CachedCompiler:
    """Wraps another compiler; only successful builds are kept."""

    def __init__(self, inner: Compiler, folder: Path) -> None:
        self._inner = inner
        self._folder = folder

    @property
    def version(self) -> str:
        return self._inner.version

    @property
    def major(self) -> int:
        return self._inner.major

    def compile(
        self, text: str, kernels: tuple[str, ...], chip: Chip, options: CompileOptions
    ) -> Build | CompileFailure:
        headers = fingerprint(text, options)
        if headers is None:  # an edit of what it includes would go unseen
            return self._inner.compile(text, kernels, chip, options)
        bare = replace(options, headers=())
        key = _Key(_SCHEMA, self.version, chip.architecture, bare, headers, kernels, text)
        name = hashlib.sha256(to_json(_Key, key).encode()).hexdigest()
        entry = self._folder / name[:2] / name
        known = _read(entry)
        if known is not None:
            return known
        build = self._inner.compile(text, kernels, chip, options)
        if isinstance(build, Build):
            _write(entry, build)
        return build


def _read(entry: Path) -> Build | None:
    try:
        build = from_json(Build, entry.with_suffix(".json").read_bytes())
        ptx = entry.with_suffix(".ptx").read_text(encoding="utf-8")
        return replace(build, ptx=ptx, cubin=entry.with_suffix(".cubin").read_bytes())
    except (OSError, ValueError):  # absent, or cut short by a full disk: compile again
        return None


def _write(entry: Path, build: Build) -> None:
    bare = to_json(Build, replace(build, ptx="", cubin=b""))
    with contextlib.suppress(OSError):  # a read-only or full disk costs time, never a result
        entry.parent.mkdir(parents=True, exist_ok=True)
        put(entry.with_suffix(".ptx"), build.ptx.encode())
        put(entry.with_suffix(".cubin"), build.cubin)
        put(entry.with_suffix(".json"), bare.encode())


def put(path: Path, data: bytes) -> None:
    """Write a file that appears whole or not at all."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as temporary:
        temporary.write(data)
    os.replace(temporary.name, path)  # noqa: PTH105  # the atomic rename is the point
