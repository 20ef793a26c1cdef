"""The compiler seam: CUDA text in, machine code or diagnostics out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from optiml_magic.chips import Chip
from optiml_magic.model.build import Build, CompileFailure


@dataclass(frozen=True)
class CompileOptions:
    """What changes the machine code beside the text. Hashed into the cache's keys.

    Attributes:
        std: the language standard, as ``--std`` spells it.
        fast_math: whether ``--use_fast_math`` is given.
        defines: macros, as (name, value) pairs.
        include: absolute folders that are searched for headers, in order.
        headers: (name, text) pairs that an ``#include`` of that name finds before any folder.
        arguments: further arguments, which nvcc alone takes.
    """

    std: str = "c++17"
    fast_math: bool = False
    defines: tuple[tuple[str, str], ...] = ()
    include: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] = ()


class Compiler(Protocol):
    """Turns one program into machine code for one chip."""

    @property
    def version(self) -> str:
        """Name and version; two compilers that print the same make the same code."""

    @property
    def major(self) -> int:
        """Major version of its CUDA release; an older driver cannot load its cubins."""

    def compile(
        self, text: str, kernels: tuple[str, ...], chip: Chip, options: CompileOptions
    ) -> Build | CompileFailure:
        """Compile ``text`` and resolve ``kernels``, the name expressions that will be launched.

        A text that does not compile is a ``CompileFailure``. An exception means that the compiler
        itself is missing or broken (``MachineError``), or refuses an option (``UsageError``).
        """
