"""What the parent and the compile host say to each other, in the frames of ``child.frames``."""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.chips import Chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.model.build import Build, CompileFailure


@dataclass(frozen=True)
class Describe:
    """Ask the compiler for its version; it is made with this, so what it lacks is told here."""


@dataclass(frozen=True)
class Described:
    """``confined``: whether the host can open files of the toolkit and the task alone."""

    version: str
    major: int
    confined: bool


@dataclass(frozen=True)
class Compile:
    """The arguments of ``Compiler.compile``; the answer is a Build or a CompileFailure."""

    text: str
    kernels: tuple[str, ...]
    chip: Chip
    options: CompileOptions


KINDS: dict[str, type] = {
    kind.__name__: kind for kind in (Describe, Described, Compile, Build, CompileFailure)
}
