"""A task made concrete: inputs at seeds, sizes and scales, and what the reference wants there."""

from __future__ import annotations

from optiml_magic.problem.instances import Instance
from optiml_magic.problem.problem import Problem, prepare

__all__ = ["Instance", "Problem", "prepare"]
