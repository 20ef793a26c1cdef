"""What a proposer sees when it is asked for edits."""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.model.evaluation import Step


@dataclass(frozen=True)
class View:
    """The step to improve, the input kernel, and what was tried from the step already."""

    step: Step
    root: Step
    tried: tuple[Step, ...] = ()
