"""Other values of tuned names: one name one step further at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from optiml_magic.kernels.primitives.base import Kernel, Refused, running
from optiml_magic.kernels.primitives.points import neighbours
from optiml_magic.model.facts import Facts
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.model.idea import Idea
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.view import View
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.source.program import Program

_MOST = 6
_EXPECTED = Hypothesis(
    TIME, "lower", "another value keeps more of the chip busy, or reuses more", (1.0, 1.3)
)


class Neighbours(KernelRule):
    """``tune STEP in {2, 4, 8} = 4`` becomes ``= 8``; the block's extents are of another rule."""

    name = "neighbours"
    teaches = (
        "How many elements a tile, a lane or a round takes is a matter of the chip and of the "
        "sizes, so the values that fill the chip are measured, the nearest first."
    )

    def propose(self, program: Program, view: View) -> Iterator[Idea | Refusal]:
        """The tuned names of a program that are no extent of a block, each one step further."""
        names = {tune.name for tune in program.tunes} - in_blocks(program, view.facts)
        for site in steps(program, view.facts, names):
            yield from self.ideas(Kernel(program, program.launches[0]), site, view)

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        """Tuned names belong to no one kernel."""
        del kernel
        return iter(())


def in_blocks(program: Program, facts: Facts | None) -> frozenset[str]:
    """The tuned names that the blocks of its launches read."""
    blocks = [size.names for launch in running(program, facts) for size in launch.block]
    return frozenset[str]().union(*blocks) & program.values.keys()


def steps(program: Program, facts: Facts | None, names: Collection[str]) -> Iterator[Site]:
    """Other values of one of these names each, as one site."""
    points = neighbours(program, facts, names, _MOST)
    if points:
        kernel = Kernel(program, program.launches[0])
        yield Site("step", "another value", lambda: kernel, 0.35, _EXPECTED, points)
