"""Every name means what another one meant: ``row`` is the column, ``out`` is an input."""

from __future__ import annotations

from collections.abc import Mapping

from tests.twins.renaming import all_names, with_names


def renaming(text: str) -> Mapping[str, str]:
    names = all_names(text)
    return dict(zip(names, [*names[1:], names[0]], strict=True))


def apply(text: str) -> str | None:
    return with_names(text, renaming(text))
