"""Which short names of the prelude a text declares itself, and what it uses of ``std``.

``ulong`` may be another type there: ``typedef uint64_t ulong`` is legal beside glibc's own and not
beside that of the prelude, whose ``uint64_t`` is ``unsigned long long``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

_DECLARED = re.compile(
    r"\b(?:typedef\b[^;{}]*?|using\s+|(?:struct|class|union|enum)\s+)\b(uint|ushort|ulong)\b\s*(?=[;={:])"
)
_TRAITS = (
    "integral_constant true_type false_type is_same is_same_v conditional conditional_t enable_if"
    " enable_if_t remove_reference remove_reference_t remove_const remove_const_t remove_volatile"
    " remove_cv remove_cv_t is_integral is_integral_v is_floating_point is_floating_point_v"
    " is_arithmetic is_arithmetic_v common_type common_type_t"
)
#: The names of ``std`` that ``optiml_std.h`` has, by the headers that are known for them.
BRIEF = {
    **dict.fromkeys(_TRAITS.split(), "type_traits"),
    **dict.fromkeys(("move", "forward", "declval"), "utility"),
    **dict.fromkeys(("min", "max", "clamp", "swap"), "algorithm"),
    "numeric_limits": "limits",
}
_NAMED = re.compile(r"(?<![\w:])(?:::\s*)?std\s*::\s*(\w+)")
_OF_MATH = re.compile(r"^namespace std \{ using ::(\w+); \}", re.MULTILINE)
# Lists of numbers, numbers of sixteen bits, and members that few ask for.
_MORE = re.compile(
    r"\busing\s+namespace\s+std\b|\b(?:min|max)\s*\(\s*\{|\bnumeric_limits\b[^;]*?>\s*::\s*"
    r"(?!(?:min|max|lowest|epsilon|infinity|quiet_NaN|denorm_min|digits|is_signed|is_integer)\b)\w"
)
_SIXTEEN = re.compile(r"half|bfloat|fp16|bf16|fp8")
_QUOTED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


def declared(texts: Iterable[str]) -> list[str]:
    """Those that a typedef, an alias or a type of the texts has for its name, sorted."""
    return sorted({name for text in texts for name in _DECLARED.findall(text)})


def standard(texts: Iterable[str]) -> list[str]:
    """The headers whose names of ``std`` the texts use; others may have brought these in."""
    return sorted({BRIEF[name] for text in texts for name in _NAMED.findall(text) if name in BRIEF})


def is_brief(texts: Mapping[str, str]) -> bool:
    """Whether ``optiml_std.h`` has all that texts, by their names, use of its headers."""
    together = "\n".join(texts.values())
    named = {*_NAMED.findall(together)} - BRIEF.keys() - _of_math()
    wide = "numeric_limits" in together and _SIXTEEN.search(together)
    return not (named or wide or _MORE.search(together)) and all(
        header in texts for header in _QUOTED.findall(together)
    )


@lru_cache(maxsize=1)
def _of_math() -> frozenset[str]:
    shims = Path(__file__).with_name("shims").glob("*.h")
    return frozenset(name for path in shims for name in _OF_MATH.findall(path.read_text()))
