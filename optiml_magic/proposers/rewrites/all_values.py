"""What a rule makes holds for all values that the tuned names of a block have.

A kernel is read with the block that it has now, and a step may say in numbers what a tuned name
says: ``i < n - blockIdx.y * 4`` in blocks of ``BLOCK_Y``, which is 4 now. Each step is to settle
such names (``Kernel.settled``); that it did is checked by making the program again with another
value, as nobody may hear of it where it did not: a tuned value may be right where it is verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import prod

from optiml_magic.errors import SourceError
from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.model.facts import Facts
from optiml_magic.model.launch import Dim3
from optiml_magic.source.directives import LaunchDirective, TuneDirective
from optiml_magic.source.program import Program

Make = Callable[[Program, Facts | None], Kernel | Refused]


def for_all_values(
    made: Kernel | Refused, written: Kernel, facts: Facts | None, again: Make
) -> Kernel | Refused:
    """What was ``made``, or else what is made where the names of its block have no other values.

    ``again`` makes the same of another program that holds the kernel.
    """
    if isinstance(made, Refused):
        return made
    still = {tune.name for tune in made.program.tunes if len(tune.values) > 1}  # a grid may ask
    tunes = [t for t in _open(written.program, written.launch) if t.name in still]
    alike = partial(_alike, made, facts, again)
    together = _moved_on(written.program, tunes) if len(tunes) > 1 else ()
    other = next((p for p in together if _is_all_another(written, p)), None)
    if other is not None and alike(other):  # which needs one reading instead of several
        return made
    for tune in tunes:
        other = next(_moved_on(written.program, [tune]), None)
        if other is not None and not alike(other):
            return again(written.settled().program, facts)
    return made


def _open(program: Program, launch: LaunchDirective) -> Iterator[TuneDirective]:
    """The tuned names of a launch's block that have several values."""
    names = {name for size in launch.block for name in size.names}
    return (t for t in program.tunes if t.name in names and len(t.values) > 1 and t.value)


def _moved_on(program: Program, tunes: Sequence[TuneDirective]) -> Iterator[Program]:
    """The program where each of these has another value, as its conditions allow."""
    for step in range(1, max((len(tune.values) for tune in tunes), default=1)):
        chosen = {t.name: t.values[(t.values.index(t.value) + step) % len(t.values)] for t in tunes}
        if any(chosen[tune.name] == tune.value for tune in tunes):
            continue
        with suppress(SourceError):
            yield program.with_values(chosen)


def _is_all_another(written: Kernel, other: Program) -> bool:
    """Whether a block has another number of threads, in all and along each axis that is tuned.

    Else a step may say that number and make the same: 16 x 32 threads are as many as 32 x 16.
    """
    before, after = written.block, replace(written, program=other).block
    pairs = [*zip(before, after, written.launch.block, strict=False)]
    along = all(one is not None and one != two for one, two, size in pairs if size.names)
    return along and prod(n or 0 for n in before) != prod(n or 0 for n in after)


def _alike(made: Kernel, facts: Facts | None, again: Make, other: Program) -> bool:
    """Whether the same is made of a program with other values."""
    found = again(other, facts and _moved(facts, other))
    return isinstance(found, Kernel) and _code(found.program) == _code(made.program)


def _code(program: Program) -> str:
    """A program without what says which values its tuned names have."""
    text, at = list[str](), 0
    for tune in program.tunes:
        text.append(program.text[at : tune.start])
        at = tune.end
    return "".join([*text, program.text[at:]])


def _moved(facts: Facts, program: Program) -> Facts:
    """What is known of the launches, in blocks as the program has them now."""
    given = {launch.line: launch for launch in program.launches}
    return replace(facts, launches=tuple(
        replace(launch, block=block, grid=grid)
        for launch in facts.launches
        for block, grid in (_dims(given.get(launch.line), program, launch.block, launch.grid),)
    ))  # fmt: skip


def _dims(
    launch: LaunchDirective | None, program: Program, block: Dim3, grid: Dim3
) -> tuple[Dim3, Dim3]:
    if launch is None or any(
        size.names - program.values.keys() or size.arrays for size in launch.block
    ):
        return block, grid
    now = [size.evaluate(program.values) for size in launch.block]
    x, y, z = (*now, 1, 1, 1)[:3]
    threads = [old * blocks for old, blocks in zip(block, grid, strict=True)]
    a, b, c = (-(-n // own) for n, own in zip(threads, (x, y, z), strict=True))
    return (x, y, z), (a, b, c)
