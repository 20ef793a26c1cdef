"""optiml-magic: CUDA kernels in a notebook, proved right, measured, explained and made faster."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from optiml_magic.model.task import Task

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from optiml_magic.optimize import optimize
    from optiml_magic.result import Result
    from optiml_magic.runs.saved import load, save
    from optiml_magic.searching import Search
    from optiml_magic.settings import Settings

__version__ = "0.1.0"
__all__ = [
    "Result",
    "Search",
    "Settings",
    "Task",
    "load",
    "load_ipython_extension",
    "optimize",
    "save",
]

_LAZY = {
    "Result": "optiml_magic.result",
    "Search": "optiml_magic.searching",
    "Settings": "optiml_magic.settings",
    "load": "optiml_magic.runs.saved",
    "save": "optiml_magic.runs.saved",
}


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Called by ``%load_ext optiml_magic``; what the magic needs loads when it is first used."""
    from optiml_magic.magics.first import begin

    begin(shell)


def __getattr__(name: str) -> Any:
    """Heavy members load on first use, so that importing the package costs nothing."""
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Package(ModuleType):
    """``optimize`` is the function, although a module has this name and is a part of the package.

    The import of a module sets it as an attribute of its package; here that changes nothing.
    """

    @property
    def optimize(self) -> Callable[..., Result]:
        """Search for a faster program."""
        found: Callable[..., Result] = import_module("optiml_magic.optimize").optimize
        return found

    @optimize.setter
    def optimize(self, _: ModuleType) -> None:
        pass


sys.modules[__name__].__class__ = _Package
