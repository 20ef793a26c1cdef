"""A reference is lowered to the same text each time: a run can be resumed, a program found again."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.from_reference import with_kernel
from optiml_magic.model.task import Task


def statistics(x: Any) -> Any:
    shifted = x - x.max(axis=1, keepdims=True)
    weights = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
    return weights, (weights * x).sum(axis=1), x.var(axis=0)


def test_the_text_does_not_depend_on_where_objects_lie() -> None:
    x = np.linspace(0, 1, 12 * 70, dtype=np.float32).reshape(12, 70)
    found, kept = set(), []
    for number in range(12):
        kept.append([object()] * number)
        found.add(with_kernel(Task(reference=statistics, inputs={"x": x})).kernel)
    assert len(found) == 1
