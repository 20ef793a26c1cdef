"""What a proposer sees when it is asked for edits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from optiml_magic.model.evaluation import Step
from optiml_magic.model.facts import Facts


def _unknown() -> Facts | None:
    return None


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
    find_facts: Callable[[], Facts | None] = field(default=_unknown, repr=False, compare=False)

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
