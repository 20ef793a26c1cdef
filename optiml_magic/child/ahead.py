"""Children that start while their owner is still being loaded, which takes longer than that.

At most one of a module. Whoever would start the same gets it; one that would be started otherwise
ends it.
"""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.child import frames
from optiml_magic.child.process import Child, Start

_BEGUN: dict[str, Child] = {}


def begin(module: str, arguments: Sequence[str]) -> None:
    """Start it now, and do not wait."""
    if module not in _BEGUN:
        _BEGUN[module] = Child(module, arguments, {})


def child(
    module: str, arguments: Sequence[str], kinds: frames.Kinds, prefix: Sequence[str] = ()
) -> Child:
    """The one that was begun, if it is just this; else a new one."""
    begun = None if prefix else _BEGUN.pop(module, None)
    if begun is not None and begun.start == Start.now(module, arguments) and begun.alive:
        begun.understand(kinds)
        return begun
    if begun is not None:
        begun.kill()
    return Child(module, arguments, kinds, prefix=prefix)


def end() -> None:
    """End what nobody asked for."""
    while _BEGUN:
        _BEGUN.popitem()[1].kill()
