"""What a proposer sees when it is asked for edits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from optiml_magic.model.evaluation import Step
from optiml_magic.model.experience import NOTHING_KNOWN, Known
from optiml_magic.model.facts import Facts
from optiml_magic.model.idea import Idea


def _unknown() -> Facts | None:
    return None


def _nothing() -> tuple[Idea, ...]:
    return ()


@dataclass(frozen=True)
class View:
    """The step to improve, the baseline of the run, and what was tried from the step already.

    ``origin`` is the root that the step comes from: the baseline, or another program that the
    search began from. ``path`` is the best program of each structure from there to this one;
    ``best`` the best of the run; ``evaluated`` all of it so far, as it was told, what failed
    among it.
    """

    step: Step
    root: Step
    tried: tuple[Step, ...] = ()
    path: tuple[Step, ...] = ()
    best: Step | None = None
    evaluated: Sequence[Step] = ()
    origin: Step | None = None  # None: the baseline
    known: Known = NOTHING_KNOWN  # of kernels like the input kernel
    find_facts: Callable[[], Facts | None] = field(default=_unknown, repr=False, compare=False)
    find_queued: Callable[[], tuple[Idea, ...]] = field(default=_nothing, repr=False, compare=False)

    @property
    def begun(self) -> Step:
        """The root that the step comes from."""
        return self.origin or self.root

    @cached_property
    def facts(self) -> Facts | None:
        """The step's program bound to the inputs that are measured; found when first asked for.

        None where the program cannot be bound to them.
        """
        return self.find_facts()

    @cached_property
    def queued(self) -> tuple[Idea, ...]:
        """What waits to be tried when first asked: all that was paid for, and ideas for the step.

        The next to be tried come first.
        """
        return self.find_queued()

    @cached_property
    def siblings(self) -> tuple[Step, ...]:
        """What else was made of the program that the step was made of, in the order of telling."""
        own = self.step.candidate
        return tuple(
            step
            for step in self.evaluated
            if own.parent is not None
            and step.candidate.parent == own.parent
            and step.candidate.number != own.number
        )
