"""The compiler seam: CUDA text in, machine code or diagnostics out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from optiml_magic.chips import Chip
from optiml_magic.model.build import Build, CompileFailure


@dataclass(frozen=True)
class CompileOptions:
    """What changes the machine code beside the text. Hashed into the cache's keys."""

    std: str = "c++17"
    fast_math: bool = False


class Compiler(Protocol):
    """Turns one program into machine code for one chip."""

    @property
    def version(self) -> str:
        """Name and version; two compilers that print the same make the same code."""

    def compile(
        self, text: str, kernels: tuple[str, ...], chip: Chip, options: CompileOptions
    ) -> Build | CompileFailure:
        """Compile ``text`` and resolve ``kernels``, the name expressions that will be launched.

        A text that does not compile is a ``CompileFailure``; an exception means that the compiler
        itself is missing or broken (``MachineError``).
        """
