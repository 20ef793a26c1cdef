"""What a task lacks that its kernel takes: all of it in one message, with the line to write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optiml_magic.binding.elements import missing
from optiml_magic.errors import BindingError
from optiml_magic.model.dtypes import BFLOAT16, title

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from optiml_magic.binding.interface import BoundBuffer
    from optiml_magic.kernels.signature import Parameter


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
    others = values.keys() - {*numbers, *(buffer.name for buffer in arrays)}
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
            fix=missing(buffer.name, others, define),
            line=buffer.line,
        )
    for name in names:
        raise BindingError(
            f"no value for the parameter `{name}`",
            fix=missing(name, others, f"define `{name}`, or give it in the task's inputs"),
        )


def no_start(
    lacking: Mapping[str, Parameter],
    arrays: Sequence[BoundBuffer],
    numbers: Sequence[str],
    values: Mapping[str, Any],
    outputs: Collection[str],
) -> BindingError:
    """The error for buffers that are read and written and start from nothing, by their names.

    It asks for what else is not there as well.
    """
    (name, first), *others = lacking.items()
    names = [number for number in numbers if number not in values]
    buffers = [buffer for buffer in arrays if buffer.name not in values]
    adds = all(parameter.adds for parameter in lacking.values())
    plural = ("are", "are no arrays") if others else ("is", "is no array")
    message = (
        f"{_listed(list(lacking))} {plural[0]} {'added to' if adds else 'read and written'}, "
        f"and there {plural[1]} to start from"
    )
    clear = "; ".join(f"#pragma optiml zero({one})" for one in lacking)
    if len(buffers) + len(names) > 1:
        more = _several([b for b in buffers if b.name not in lacking], names).message
        message += f"; {more}" if more else ""
        asked = _several(buffers, names).fix
        return BindingError(message, fix=f"{asked}; or clear: {clear}", line=first.line)
    given = "" if name in outputs else f"pass --out {name} (outputs= of a Task), or "
    return BindingError(
        message, fix=f"define `{name}`, or {given}clear it: {clear}", line=first.line
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
        every = [buffer.dtype[name] for name in buffer.dtype.names]
        plain = all(one.names is None and not one.shape for one in every)
        fields = ", ".join(f'("{n}", "{buffer.dtype[n].str}")' for n in buffer.dtype.names)
        dtype = f"np.dtype([{fields}], align=True)" if plain else "dtype"
        return f"np.zeros(SIZE, {dtype})" + ("" if plain else " with the dtype of the struct")
    size = f"(SIZE, {buffer.lanes})" if buffer.lanes > 1 else "SIZE"
    module = "ml_dtypes" if buffer.dtype == BFLOAT16 else "np"
    return f"np.ones({size}, {module}.{title(buffer.dtype)})"
