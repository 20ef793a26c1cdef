"""What is decided before kernels are written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from optiml_magic.synthesis.graph import Constant, Node


@dataclass(frozen=True)
class Choices:
    """What is decided before a thread's work is written down.

    Attributes:
        sizes: at hand, by which costs are weighed.
        arrays: the nodes that lie in memory, and under what names.
        scalars: the C++ types of inputs that are numbers.
        taken: names that no local may have.
        tables: constants that have a name in the text already.
        counts: how often each value is asked for, from a trial; one of several has a name.
    """

    sizes: Mapping[str, int]
    arrays: Mapping[Node, str]
    scalars: Mapping[str, str]
    taken: frozenset[str]
    counts: Mapping[Any, int] = field(default_factory=dict)
    tables: Mapping[Constant, str] = field(default_factory=dict)
