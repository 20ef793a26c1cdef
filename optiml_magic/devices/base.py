"""The device seam: where a kernel runs. A device executes and counts; it never judges.

The same protocol is spoken twice: by a device inside the device host (a child process) and by
``HostedDevice`` in the parent, which forwards every call over a pipe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from optiml_magic.devices.maps import Map, mapped
from optiml_magic.model.build import Build
from optiml_magic.model.condition import Conditions
from optiml_magic.model.counters import KernelCounters
from optiml_magic.model.hazard import Hazard
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.verdict import Outcome, OutputCheck, Writer

Role = Literal["input", "output", "inout"]
Order = Literal["forward", "reverse"] | int  # a number seeds a random order
Array = NDArray[np.generic]


@dataclass(frozen=True)
class Tolerance:
    """An element passes if ``|got - wanted| <= atol + rtol * |wanted|``.

    ``fields`` are those of a struct's numbers, in their order; the other two are then the largest.
    """

    rtol: float
    atol: float
    fields: tuple[Tolerance, ...] = ()


@dataclass(frozen=True)
class Buffer:
    """One array parameter of a case.

    ``array`` is the initial content of an input or in-out buffer; of an output only its shape and
    dtype are used. ``expected`` is what the oracle wants it to hold afterwards, in the precision of
    the oracle (None for inputs, and where nothing is to be compared).

    With a ``map`` the content is what that makes of ``array``. With a ``digest``, which is that of
    the content, a device may take ``array`` from another case of its own that holds the same one.
    """

    name: str
    role: Role
    array: Array
    expected: Array | None = None
    tolerance: Tolerance | None = None
    map: Map | None = None
    digest: int | None = None

    @property
    def content(self) -> Array:
        """What it holds first, in host memory."""
        if self.map is None:
            return self.array
        content: Array = mapped(self.map, self.array)
        return content


@dataclass(frozen=True)
class Case:
    """One set of inputs with the answer to it; kept on the device under its key until dropped."""

    key: str
    buffers: tuple[Buffer, ...]

    def with_answers_elsewhere(self) -> Case:
        """For who has them on a card: no more than their types and shapes in host memory."""

        def shape_of(wanted: Array) -> Array:
            return np.broadcast_to(np.empty((), wanted.dtype), wanted.shape)

        return replace(
            self,
            buffers=tuple(
                replace(b, expected=None if b.expected is None else shape_of(b.expected))
                for b in self.buffers
            ),
        )

    def without_answers(self) -> Case:
        """For a run that is only watched, under a tool that makes everything slow."""
        return replace(self, buffers=tuple(replace(b, expected=None) for b in self.buffers))


@dataclass(frozen=True)
class Job:
    """One run of a program on a case. ``poison`` seeds the pattern that outputs hold before it.

    ``order`` is that of the blocks and warps, and ``checks`` asks for hazards, which costs time;
    both only where the device can do so. ``sample`` lets a device count some blocks alone of a
    launch with more thread instructions than that (0: never); the outputs of the last launch are
    then unfinished, and not compared. ``watch`` names an element of a buffer by its index: with
    ``checks`` the execution says who wrote it last.
    """

    case: str
    plan: LaunchPlan
    poison: int
    count: bool
    instructions: int  # budget of thread instructions for each launch
    order: Order = "forward"
    checks: bool = False
    sample: int = 0
    watch: tuple[str, tuple[int, ...]] | None = None


@dataclass(frozen=True)
class Fault:
    """A run that did not end by itself: what happened, and where."""

    outcome: Outcome
    message: str
    line: int = 0
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    sticky: bool = False  # the device is lost with it, and its host has to be replaced


@dataclass(frozen=True)
class Execution:
    """What one run did. With a fault, only the hazards up to it are filled in.

    An element counts as unwritten if it holds the bits of its poison still: of small dtypes a few
    written ones do so by chance.
    """

    fault: Fault | None = None
    checks: tuple[OutputCheck, ...] = ()
    modified_inputs: tuple[str, ...] = ()
    counters: tuple[KernelCounters, ...] = ()
    unwritten: tuple[tuple[str, int], ...] = ()  # outputs without a wanted answer: name, elements
    hazards: tuple[Hazard, ...] = ()
    printed: str = ""  # by printf in the kernels; of the emulated device alone
    writer: Writer | None = None  # of the element that was watched, if any thread wrote it


@dataclass(frozen=True)
class Timing:
    """Samples of one run of a launch plan, in seconds, each the mean of ``launches`` of them.

    They are those of whole rounds, in order. ``after`` is what one more batch left in a buffer set
    that was chosen at random.
    """

    samples: tuple[float, ...]
    launches: int
    after: Execution | None = None
    conditions: Conditions | None = None


@dataclass(frozen=True)
class Sampling:
    """How many rounds of samples to take, the first run being the baseline of the others.

    At least ``least`` and at most ``most``, for about ``seconds``; between these until the interval
    of every ratio to the baseline is narrower than ``width``. Sooner than ``least``, where every
    other run is surely more than ``hopeless`` times slower than the baseline, or every one more
    than ``ample`` times faster (0: never). A baseline whose batches take longer than ``alone``
    seconds (0: none) is timed without the others, for one round.
    """

    least: int
    most: int
    seconds: float
    width: float = 0.01
    hopeless: float = 0.0
    ample: float = 0.0
    alone: float = 0.0


@dataclass(frozen=True)
class Draw:
    """A run repeated back to back, from warm caches: ``busy`` of the ``seconds`` the card worked.

    ``joules`` is the whole card's energy over ``seconds``, None where it is ``refused``. Clocks in
    Hz and degrees Celsius are 0 where the card does not tell them.
    """

    launches: int
    seconds: float
    busy: float
    joules: float | None = None
    refused: str = ""
    sm_hertz: float = 0.0
    memory_hertz: float = 0.0
    celsius: float = 0.0


def is_emulated(name: str) -> bool:
    """Whether a device of that name runs PTX on the CPU."""
    return name.startswith("emulated:")


class Device(Protocol):
    """Runs builds on cases. One at a time, from one thread."""

    @property
    def name(self) -> str:
        """As a user writes it: ``emulated:h200``."""

    def put(self, case: Case) -> None:
        """Make a case resident; replaces the one of the same key.

        Raises MachineError where it does not fit, or where a buffer has not the digest it should.
        """

    def execute(self, build: Build, job: Job) -> Execution:
        """Run a build on a resident case and compare; faults are values."""

    def read(self, case: str, buffer: str) -> Array:
        """A copy of a buffer as the last run left it."""

    def close(self) -> None:
        """Give everything back."""


class TimedDevice(Device, Protocol):
    """A device with a clock that can be believed."""

    def time(
        self, runs: Sequence[tuple[Build, Job]], sampling: Sampling
    ) -> tuple[Timing, ...] | Fault:
        """The runs in turn, so that drift of the clock falls on all alike."""


class DrawingDevice(Device, Protocol):
    """A device whose energy can be measured."""

    def draw(self, build: Build, job: Job, seconds: float) -> Draw | Fault:
        """A run repeated for that long, back to back."""
