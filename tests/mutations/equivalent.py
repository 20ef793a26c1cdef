"""Mutants that compile differently and yet are no faults, each with the reason.

By kernel and by the name of the mutant. One that is rejected all the same makes the run fail: then
either the reason is wrong or the verification is.
"""

from __future__ import annotations

EQUIVALENT: dict[str, dict[str, str]] = {}
