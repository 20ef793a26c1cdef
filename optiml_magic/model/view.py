"""What a proposer sees when it is asked for edits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from optiml_magic.model.evaluation import Step
from optiml_magic.model.facts import Facts
from optiml_magic.model.refusal import Refusal


def _unknown() -> Facts | None:
    return None


@dataclass(frozen=True)
class View:
    """The step to improve, the input kernel, and what became of ideas for the step so far.

    ``tried`` are the steps that came of them, ``refused`` the reasons why others never got a text.
    """

    step: Step
    root: Step
    tried: tuple[Step, ...] = ()
    refused: tuple[Refusal, ...] = ()
    find_facts: Callable[[], Facts | None] = field(default=_unknown, repr=False, compare=False)

    @cached_property
    def facts(self) -> Facts | None:
        """The step's program bound to the inputs that are measured; found when first asked for.

        None where the program cannot be bound to them.
        """
        return self.find_facts()
