"""The names that a user imports."""

from __future__ import annotations

import sys
from importlib import import_module

import optiml_magic


def test_every_public_name_is_there_and_none_is_a_module() -> None:
    for name in optiml_magic.__all__:
        assert getattr(optiml_magic, name).__name__ == name
        assert not hasattr(getattr(optiml_magic, name), "__path__")


def test_optimize_is_the_function_whatever_was_imported_before() -> None:
    module = import_module("optiml_magic.optimize")
    assert module is sys.modules["optiml_magic.optimize"]
    assert optiml_magic.optimize is module.optimize
