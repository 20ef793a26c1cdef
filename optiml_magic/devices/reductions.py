"""CuPy's reductions, compiled quickly.

Where CuPy has no compiled reduction it makes one of CUB's templates: 3 s of NVRTC for each kind at
its first use on a machine, on the host of an H200, where one of its own templates takes 0.1 s. A
search asks for a dozen, of arrays that are looked at a few times, so its own are quicker.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def compile_quickly(cupy: Any) -> list[Any]:
    """From now on, in this process; what was set before, for whoever wants it again."""
    accelerator = _accelerator(cupy)
    before: list[Any] = accelerator.get_reduction_accelerators() if accelerator else []
    _set(accelerator, [])
    return before


@contextmanager
def quickly_compiled(cupy: Any) -> Iterator[None]:
    """For the length of a ``with`` statement, since the process is the user's."""
    before = compile_quickly(cupy)
    try:
        yield
    finally:
        _set(_accelerator(cupy), before)


def _accelerator(cupy: Any) -> Any:
    """Where CuPy keeps the choice; None where it keeps it elsewhere: slower, and as right."""
    return getattr(getattr(cupy, "_core", None), "_accelerator", None)


def _set(accelerator: Any, chosen: list[Any]) -> None:
    if accelerator is not None:
        accelerator.set_reduction_accelerators(chosen)
