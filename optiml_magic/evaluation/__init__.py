"""Evaluating candidates: the stages are functions of one, the referee compares them."""

from __future__ import annotations

from optiml_magic.evaluation.referee import Evaluator
from optiml_magic.evaluation.tools import Extent, Tools

__all__ = ["Evaluator", "Extent", "Tools"]
