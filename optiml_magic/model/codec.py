"""Frozen nouns to JSON and back, validated: the journal's lines and the device host's frames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

T = TypeVar("T")


def to_json(kind: Any, value: object) -> str:
    """``value`` as one line of JSON. NaN and infinities are refused: nouns carry None instead."""
    text: bytes = _adapter(kind).dump_json(value)
    return text.decode()


def from_json(kind: type[T], text: str | bytes) -> T:
    """The noun that ``to_json`` wrote; raises ``pydantic.ValidationError`` for anything else."""
    value: T = _adapter(kind).validate_json(text)
    return value


def prepare(kinds: Iterable[Any]) -> None:
    """Get ready for these, which takes the better part of a second."""
    for kind in kinds:
        _adapter(kind)


_ADAPTERS: dict[Any, Any] = {}


def _adapter(kind: Any) -> Any:
    if kind not in _ADAPTERS:
        from pydantic import TypeAdapter

        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]
