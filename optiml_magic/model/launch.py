"""How kernels are started, every name resolved: what a device needs beside the machine code."""

from __future__ import annotations

from dataclasses import dataclass

Dim3 = tuple[int, int, int]


@dataclass(frozen=True)
class BufferArgument:
    """A pointer parameter: the name of the buffer whose address is passed."""

    buffer: str


@dataclass(frozen=True)
class ScalarArgument:
    """A by-value parameter: its little-endian bytes as hex digits."""

    raw: str


Argument = BufferArgument | ScalarArgument


@dataclass(frozen=True)
class Launch:
    """One kernel launch: ``grid`` and ``block`` in blocks and threads, ``shared`` in bytes."""

    kernel: str  # lowered name
    grid: Dim3
    block: Dim3
    shared: int
    arguments: tuple[Argument, ...]

    @property
    def threads(self) -> int:
        """Threads of the whole grid."""
        gx, gy, gz = self.grid
        return gx * gy * gz * self.block_threads

    @property
    def block_threads(self) -> int:
        """Threads of one block."""
        bx, by, bz = self.block
        return bx * by * bz

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        gx, gy, gz = self.grid
        return gx * gy * gz


@dataclass(frozen=True)
class Scratch:
    """A temporary buffer that the program asks for; poisoned before the launches."""

    name: str
    dtype: str
    elements: int


@dataclass(frozen=True)
class LaunchPlan:
    """Everything that one run of a program does, in order.

    ``zeros`` are cleared before the launches, inside the timed region; ``fills`` set an output to a
    constant; every other output is poisoned. The module's variables start with their own values, or
    with that of the buffer that ``variables`` names.
    """

    launches: tuple[Launch, ...]
    scratch: tuple[Scratch, ...] = ()
    zeros: tuple[str, ...] = ()
    fills: tuple[tuple[str, str], ...] = ()  # a number as Python prints it: inf and nan as well
    zeroed_bytes: int = 0
    variables: tuple[tuple[str, str], ...] = ()  # lowered name, and the buffer it is filled from
