"""Values, dtypes and texts as a Python file spells them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from optiml_magic.errors import UsageError
from optiml_magic.model.dtypes import BFLOAT16, DType, title


def tupled(parts: Iterable[str]) -> str:
    given = list(parts)
    return f"({', '.join(given)}{',' if len(given) == 1 else ''})"


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def nested(values: Any) -> str:
    """Numbers in lists, as Python reads them back."""
    if not isinstance(values, list):
        return literal(values)
    return tupled(map(nested, values))


def struct(dtype: DType) -> str:
    """A structured dtype as Python reads it back."""
    if dtype.subdtype is not None:
        return f"({struct(dtype.subdtype[0])}, {dtype.subdtype[1]!r})"
    if dtype.names is None:
        return dtype_text(dtype)
    assert dtype.fields is not None
    formats = ", ".join(struct(dtype.fields[name][0]) for name in dtype.names)
    offsets = [int(dtype.fields[name][1]) for name in dtype.names]
    return (
        f'np.dtype({{"names": {list(dtype.names)!r}, "formats": [{formats}], '
        f'"offsets": {offsets!r}, "itemsize": {dtype.itemsize}}})'
    )


def dtype_text(dtype: DType | str) -> str:
    if np.dtype(dtype) == BFLOAT16:
        return "ml_dtypes.bfloat16"
    name = "bool_" if np.dtype(dtype) == np.bool_ else np.dtype(dtype).name
    if not hasattr(np, name):
        raise UsageError(
            f"an array of {title(np.dtype(dtype))} cannot be taken by a .py module",
            fix="export a .cu file",
        )
    return f"np.{name}"


def is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer))


def literal(value: Any) -> str:
    """A number as Python reads it back."""
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, complex):
        return f"complex({literal(number.real)}, {literal(number.imag)})"
    return repr(number) if np.isfinite(number) else f'float("{number}")'


def raw_string(name: str, text: str) -> Iterator[str]:
    """An assignment of ``text`` that shows it as it is, where Python's quotes allow that."""
    text = text.rstrip() + "\n"
    if '"""' not in text:
        yield f'{name} = r"""'
        yield f'{text}"""'
    elif "'''" not in text:
        yield f"{name} = r'''"
        yield f"{text}'''"
    else:
        yield f"{name} = ("
        yield from (f"    {line!r}" for line in text.splitlines(keepends=True))
        yield ")"
