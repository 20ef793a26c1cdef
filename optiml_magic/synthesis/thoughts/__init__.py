"""Strategies for a kernel, one prompt file each, and the gate that weighs them.

A file begins with a head between two lines ``+++``, in TOML: its ``title``, and what speaks for the
strategy and against it, with a weight each: in ``[graph]`` features of the traced reference
(``features.py`` has all), in ``[words]`` regular expressions, in ``[limits]`` what limits the
baseline. Below the head stands what the model is told.
"""

from __future__ import annotations

from optiml_magic.synthesis.thoughts.features import FEATURES, features
from optiml_magic.synthesis.thoughts.gate import weighed
from optiml_magic.synthesis.thoughts.strategies import Strategy, strategies

__all__ = ["FEATURES", "Strategy", "features", "strategies", "weighed"]
