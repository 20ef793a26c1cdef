"""Of many cases of one test that are alike, make test runs a fixed sample, make soak all."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from present import SOAK

_MANY, _EVERY = 6, 4


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if SOAK or not all(Path(word).is_dir() for word in config.args):  # asked for by name
        return
    cases = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        if "unit/primitives/" in item.nodeid and "[" in item.nodeid:
            cases[item.nodeid.partition("[")[0]].append(item)
    left = {i for own in cases.values() if len(own) >= _MANY for i in own} - {
        i for own in cases.values() for i in own[::_EVERY]
    }
    config.hook.pytest_deselected(items=[i for i in items if i in left])
    items[:] = [i for i in items if i not in left]
