"""Data that a block reads far apart, or again and again, brought into shared memory once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from optiml_magic.model.candidate import Proposal
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.idea import Idea
from optiml_magic.model.refusal import Refusal
from optiml_magic.proposers.rewrites.affine import Affine
from optiml_magic.proposers.rewrites.launches import launched
from optiml_magic.proposers.rewrites.stage_loop import Staged, staged_loops
from optiml_magic.proposers.rewrites.stage_transpose import transposed_copy
from optiml_magic.source.program import parse_program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optiml_magic.model.view import View
    from optiml_magic.source.program import Program

_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"
_SIZES = {32: 0.0, 16: -0.05, 0: 0.05}  # what the tile's size adds to a prior; 0 means all loops
_MOST_LOOPS = 4
_PRIORS = {"strided": 0.8, "reused": 0.7, "uniform": 0.15}


class SharedTile:
    """Stages what a loop reads, tile by tile, and copies that turn rows into columns."""

    name = "shared_tile"

    def propose(self, program: Program, view: View) -> Iterator[Idea | Refusal]:
        """One idea per copy, and per loop and tile size."""
        del view
        for kernel, launch in launched(program):
            affine = Affine(kernel)
            for text, title, strided in transposed_copy(program, affine, launch):
                yield Idea.of(
                    Proposal(
                        text,
                        title,
                        self.name,
                        "One of the two sides of the copy strides through memory. A block that "
                        "loads a tile along rows and stores it along columns has whole sectors on "
                        "both sides; the padding keeps the columns of the tile in different "
                        "banks.",
                        Hypothesis(
                            _SECTORS.format(strided),
                            "lower",
                            "both sides touch whole sectors",
                            (2.0, 8.0),
                        ),
                        prior=0.85,
                    )
                )
            for staged in staged_loops(program, affine, launch):
                if isinstance(staged, Staged):
                    yield self._loop(staged)
                else:
                    yield Refusal(self.name, *staged)
        every = _every_loop(program)
        if every is not None:
            yield self._loop(every)

    def _loop(self, staged: Staged) -> Idea:
        strided = "strided" in staged.reasons
        why = (
            "Each thread walks along a row of its own, so a warp touches one sector per lane. "
            if strided
            else "Threads of a block read the same elements, each for itself. "
        )
        return Idea.of(
            Proposal(
                staged.text,
                staged.title,
                self.name,
                why + "The block loads a tile of the next rounds with neighbouring lanes on "
                "neighbouring elements, and the threads then read it from shared memory.",
                Hypothesis(
                    _SECTORS.format("ld"),
                    "lower",
                    "each element is loaded once per block",
                    (2.0, 32.0),
                ),
                prior=max(_PRIORS[reason] for reason in staged.reasons) + _SIZES[staged.rounds],
            )
        )


def _every_loop(program: Program) -> Staged | None:
    """All loops of strided reads staged; None where that is one loop or none."""
    done: list[Staged] = []
    while len(done) < _MOST_LOOPS:
        current = parse_program(done[-1].text) if done else program
        staged = next(_strided(current), None)
        if staged is None:
            break
        done.append(staged)
    if len(done) < 2:
        return None
    title = f"stage the strided reads of {len(done)} loops in shared tiles"
    return replace(done[-1], title=title, rounds=0)


def _strided(program: Program) -> Iterator[Staged]:
    for kernel, launch in launched(program):
        for staged in staged_loops(program, Affine(kernel), launch):
            if isinstance(staged, Staged) and "strided" in staged.reasons:
                yield staged
