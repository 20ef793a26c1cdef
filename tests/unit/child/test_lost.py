"""A child that has died says so to whoever asks, however often."""

from __future__ import annotations

import pytest

from optiml_magic.child.process import Child
from optiml_magic.devices import wire


def test_who_asks_a_dead_child_again_is_told_at_once() -> None:
    child = Child("optiml_magic.devices.host", ["nowhere"], wire.KINDS)
    for _ in range(3):
        with pytest.raises(EOFError):
            child.ask(wire.Read("case", "buffer", ""), 60.0)
