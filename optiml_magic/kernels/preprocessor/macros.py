"""Macros as a text defines them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from optiml_magic.kernels.preprocessor.tokens import Token, UnfaithfulError, read

_REST = "__VA_ARGS__"
_COMPILERS = re.compile(
    r"__[A-Z]\w*|_[A-Z]\w*|NULL|EOF|NAN|INFINITY|HUGE_VALF?|RAND_MAX|CHAR_BIT|EXIT_\w+|assert|errno"
    r"|M_[A-Z]\w*|CUDA_VERSION|CUDART_\w+|CU[A-Z]*_VERSION|(?:CUB|THRUST|CCCL|LIBCUDACXX)_\w+"
    r"|(?:FLT|DBL|LDBL)_\w+|(?:U?(?:CHAR|SHRT|INT|LONG|LLONG)|SCHAR|SIZE|SSIZE|PTRDIFF|WCHAR"
    r"|U?INT(?:_(?:LEAST|FAST))?(?:8|16|32|64)|U?INTMAX|U?INTPTR)_(?:MAX|MIN|C)",
    re.ASCII,
)


class State(Enum):
    """What is known of a name that is no macro here."""

    ABSENT = "undefined by the text"
    UNKNOWN = "perhaps a macro, or one that cannot be read"


@dataclass(frozen=True)
class Macro:
    """``parameters`` is None for an object-like macro; the last of a variadic takes the rest."""

    name: str
    body: tuple[Token, ...]
    parameters: tuple[str, ...] | None = None
    variadic: bool = False


Table = dict[str, Macro | State]


_GUARD = re.compile(r"\w+_(?:H|HPP|HH|CUH?)_*", re.ASCII)


def is_compilers(name: str) -> bool:
    """Whether the compiler or one of its headers may define a name, unseen by the text."""
    return _COMPILERS.fullmatch(name) is not None and not guards(name)


def guards(name: str) -> bool:
    """Whether a name is that of a header's guard, which belongs to that header alone."""
    return _GUARD.fullmatch(name) is not None


def define(definition: str) -> tuple[str, Macro | State]:
    """What stands behind ``#define``: a name, ``""`` for none, and its macro if it is sound."""
    name = ""
    try:
        for token, _ in read(definition):
            name = token.text if token.is_name else ""
            break
        tokens = [token for token, _ in read(definition)]
        return name, _macro(name, tokens[1:]) if name else State.UNKNOWN
    except UnfaithfulError:
        return name, State.UNKNOWN


def _macro(name: str, tokens: Sequence[Token]) -> Macro:
    parameters: tuple[str, ...] | None = None
    variadic = False
    if tokens and tokens[0].text == "(" and not tokens[0].white:
        end = next((i for i, token in enumerate(tokens) if token.text == ")"), None)
        if end is None:
            raise UnfaithfulError
        parameters, variadic = _parameters([token.text for token in tokens[1:end]])
        tokens = tokens[end + 1 :]
    texts = [token.text for token in tokens]
    hash_free = parameters is None or all(
        following in parameters
        for text, following in zip(texts, [*texts[1:], ""], strict=False)
        if text == "#"
    )
    torn = "##" in (texts[:1] + texts[-1:]) or any(text in ("%:", "%:%:") for text in texts)
    if torn or not hash_free or (_REST in texts and _REST not in (parameters or ())):
        raise UnfaithfulError
    return Macro(name, tuple(tokens), parameters, variadic)


def _parameters(texts: Sequence[str]) -> tuple[tuple[str, ...], bool]:
    """The names between the parentheses, and whether the last takes all further arguments."""
    if not texts:
        return (), False
    variadic = texts[-1] == "..."
    if variadic:  # ``...`` or, as GNU's, ``name...``
        texts = texts[:-1] if len(texts) > 1 and texts[-2] != "," else [*texts[:-1], _REST]
    names = tuple(texts[::2])
    well = all(Token(name).is_name for name in names) and len(set(names)) == len(names)
    if not well or any(text != "," for text in texts[1::2]) or len(texts) % 2 == 0:
        raise UnfaithfulError
    return names, variadic
