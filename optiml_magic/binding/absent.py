"""What a task lacks that its kernel takes: all of it in one message, with the line to write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optiml_magic.binding.elements import missing
from optiml_magic.errors import BindingError
from optiml_magic.model.dtypes import BFLOAT16, title

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from optiml_magic.binding.interface import BoundBuffer


def require_all(
    arrays: Sequence[BoundBuffer],
    numbers: Sequence[str],
    values: Mapping[str, Any],
    sized: Collection[str],
) -> None:
    """Raise BindingError where arrays or numbers are not among the values.

    Arrays of floats that are ``sized`` by numbers are not asked for while one of these is missing.
    """
    names = [name for name in numbers if name not in values]
    buffers = [
        buffer
        for buffer in arrays
        if buffer.name not in values
        and not (names and buffer.name in sized and buffer.dtype.kind == "f")
    ]
    if len(buffers) + len(names) > 1:
        raise _several(buffers, names)
    for buffer in buffers:
        define = f"define `{buffer.name}` as a {title(buffer.dtype)} array"
        raise BindingError(
            f"no array named `{buffer.name}`",
            fix=missing(buffer.name, values, define),
            line=buffer.line,
        )
    for name in names:
        raise BindingError(
            f"no value for the parameter `{name}`",
            fix=missing(name, values, f"define `{name}`, or give it in the task's inputs"),
        )


def _several(buffers: Sequence[BoundBuffer], names: Sequence[str]) -> BindingError:
    parts = []
    if buffers:
        plural = "s" if buffers[1:] else ""
        parts.append(f"no array{plural} named {_listed([buffer.name for buffer in buffers])}")
    if names:
        plural = "s" if names[1:] else ""
        parts.append(f"no value for the parameter{plural} {_listed(names)}")
    lines = [f"{buffer.name} = {_made(buffer)}" for buffer in buffers]
    lines += [f"{name} = NUMBER" for name in names]
    return BindingError(
        ", and ".join(parts),
        fix=f"define them, with your own sizes for the words in capitals: {'; '.join(lines)}",
        line=buffers[0].line if buffers else None,
    )


def _listed(names: Sequence[str]) -> str:
    *others, last = [f"`{name}`" for name in names]
    return f"{', '.join(others)} and {last}" if others else last


def _made(buffer: BoundBuffer) -> str:
    """An array of such elements, as one line of Python."""
    if buffer.dtype.names is not None:
        return "np.zeros(SIZE, dtype) with the dtype of the struct"
    size = f"(SIZE, {buffer.lanes})" if buffer.lanes > 1 else "SIZE"
    module = "ml_dtypes" if buffer.dtype == BFLOAT16 else "np"
    return f"np.ones({size}, {module}.{title(buffer.dtype)})"
