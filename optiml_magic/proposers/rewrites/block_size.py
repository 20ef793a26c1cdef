"""The block's extents as tuned parameters, and other values of those tuned already."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.model.idea import Idea
from optiml_magic.proposers.rewrites.affine import Affine
from optiml_magic.proposers.rewrites.blocks import tuned_block
from optiml_magic.proposers.rewrites.launches import launched, relaunch
from optiml_magic.source.edits import apply
from optiml_magic.source.program import Program, parse_program

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from optiml_magic.model.view import View

_MOST = 6  # ideas of one program, nearest values first


class BlockSize:
    """``block(256)`` becomes ``block(BLOCK)`` with ``BLOCK`` tuned; one idea per value."""

    name = "block_size"

    def propose(self, program: Program, view: View) -> Iterator[Idea]:
        """Neighbouring values of all tuned names, after turning literal extents into such names."""
        del view
        bases = [program] if program.tunes else []
        bases += self._tuned(program)
        for at, base in enumerate(bases):
            for number, (values, title) in enumerate(_neighbours(base)):
                if number == _MOST:
                    break
                yield Idea(
                    title,
                    self.name,
                    partial(_valued, base, values),
                    f"{self.name} {at}: {title}",
                    "The block's shape decides how many warps fit a multiprocessor and how much "
                    "each block reuses; which is best depends on the chip, so it is measured.",
                    Hypothesis(
                        TIME,
                        "lower",
                        "another block size lets more warps be resident, or reuses more",
                        (1.0, 1.3),
                    ),
                    prior=0.35 - 0.03 * number,
                )

    def _tuned(self, program: Program) -> Iterator[Program]:
        for kernel, launch in launched(program):
            block = tuned_block(program, Affine(kernel), launch)
            if block is not None and block.tunes:
                edit = relaunch(program, launch, block.launch, block.tunes)
                yield parse_program(apply(program.text, [edit, *block.edits]))


def _valued(program: Program, values: Mapping[str, int]) -> str:
    return program.with_values(values).text


def _neighbours(program: Program) -> list[tuple[dict[str, int], str]]:
    """Legal assignments other than the present one, the fewest steps along the sets first."""
    present = program.values
    if len(present) < len(program.tunes):
        return []
    places = {tune.name: {v: i for i, v in enumerate(tune.values)} for tune in program.tunes}
    scored = []
    for values in program.legal_values():
        steps = [abs(places[n][v] - places[n][present[n]]) for n, v in values.items()]
        if any(steps):
            changed = {n: v for n, v in values.items() if v != present[n]}
            title = ", ".join(f"{n} = {v}" for n, v in changed.items())
            scored.append((sum(steps), len(changed), values, title))
    scored.sort(key=lambda item: item[:2])
    return [(values, title) for _, _, values, title in scored]
