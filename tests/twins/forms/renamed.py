"""Every parameter and local under a name that says nothing, the directives included."""

from __future__ import annotations

from collections.abc import Mapping

from tests.twins.renaming import all_names, with_names


def renaming(text: str) -> Mapping[str, str]:
    return {name: f"v{at}" for at, name in enumerate(all_names(text))}


def apply(text: str) -> str | None:
    return with_names(text, renaming(text))
