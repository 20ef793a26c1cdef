"""Which short names of the prelude a text declares itself.

``ulong`` may be another type there: ``typedef uint64_t ulong`` is legal beside glibc's own and not
beside that of the prelude, whose ``uint64_t`` is ``unsigned long long``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_DECLARED = re.compile(
    r"\b(?:typedef\b[^;{}]*?|using\s+|(?:struct|class|union|enum)\s+)\b(uint|ushort|ulong)\b\s*(?=[;={:])"
)


def declared(texts: Iterable[str]) -> list[str]:
    """Those that a typedef, an alias or a type of the texts has for its name, sorted."""
    return sorted({name for text in texts for name in _DECLARED.findall(text)})
