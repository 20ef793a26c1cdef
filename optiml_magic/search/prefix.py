"""A list that only grows, as it stands now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, overload

T = TypeVar("T")


class Prefix(Sequence[T]):
    """What a list holds now, later additions left out, without a copy: each node is told of all."""

    __slots__ = "_length", "_whole"

    def __init__(self, whole: list[T]) -> None:
        self._whole = whole
        self._length = len(whole)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, at: int) -> T: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self._whole[i] for i in range(*at.indices(self._length))]
        return self._whole[range(self._length)[at]]
