"""The conditions of ``#if``: integers of which some are known only within bounds."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.preprocessor.bounds import (
    HIGH,
    NO,
    UNKNOWN,
    YES,
    Value,
    apply,
    apply_sign,
    chosen,
    literal,
)
from optiml_magic.kernels.preprocessor.expansion import Expander
from optiml_magic.kernels.preprocessor.macros import Macro, State, guards, is_compilers
from optiml_magic.kernels.preprocessor.tokens import Token, UnfaithfulError, read
from optiml_magic.source.operators import BINARY

_MAX_TOKENS, _MAX_NESTING = 1000, 30
_OLDEST = 12000  # release of CUDA that texts are compiled with
_DOUBT = "\0"  # stands for what only the compiler can tell
_SPELLED = {
    "and": "&&", "or": "||", "not": "!", "bitand": "&", "bitor": "|", "xor": "^",
    "compl": "~", "not_eq": "!=",
}  # fmt: skip
# Words and macros of CUDA's own headers, which a text may define for other compilers.
_CUDA = re.compile(
    r"__(?:global|device|host|shared|constant|managed|grid_constant|noinline|forceinline|restrict"
    r"|inline|launch_bounds|align|builtin_align|cluster_dims|maxnreg)_*",
    re.ASCII,
)
_RESERVED = re.compile(r"__|_[A-Z]")


@dataclass
class Names:
    """What is known of every name at one place of a text.

    ``foreign`` tells that a header was included that may define any name, ``written`` the names
    that the text itself defines somewhere, ``arch`` the architecture that is compiled for.
    """

    expander: Expander
    written: Collection[str] = ()
    arch: int | None = None
    foreign: bool = False

    def defined(self, name: str) -> bool | None:
        """Whether a name is a macro, None where that cannot be decided."""
        state = self.expander.table.get(name)
        if state is not None:
            return None if state is State.UNKNOWN else isinstance(state, Macro)
        if self._built_in(name) is not None:
            return True
        own = bool(_RESERVED.match(name)) and name in self.written and not _CUDA.fullmatch(name)
        reserved = bool(_RESERVED.match(name)) and not guards(name)
        if self.foreign or (not own and (reserved or is_compilers(name))):
            return None
        return False

    def value(self, name: str) -> Value:
        """What a name that no macro of the text replaces is worth in a condition."""
        known = self.defined(name)
        built_in = None if name in self.expander.table else self._built_in(name)
        if known and built_in is not None:
            return built_in
        return UNKNOWN if known is None else NO

    def condition(self, text: str) -> bool | None:
        """Whether what follows ``#if`` holds, None where that cannot be decided."""
        try:
            tokens = self.expander.expand(self._asked([token for token, _ in read(text)]))
            if len(tokens) > _MAX_TOKENS:
                return None
            reader = _Reader([_SPELLED.get(token.text, token.text) for token in tokens], self.value)
            return reader.whole().truth
        except UnfaithfulError:
            return None

    def _built_in(self, name: str) -> Value | None:
        """The value of a macro that every compiler of CUDA defines."""
        if name == "__CUDA_ARCH__":
            return Value(1, HIGH) if self.arch is None else Value(self.arch * 10, self.arch * 10)
        if name in ("CUDART_VERSION", "CUDA_VERSION"):
            return Value(_OLDEST, HIGH)
        return {"__CUDACC__": YES, "__cplusplus": Value(201703, HIGH)}.get(name)

    def _asked(self, tokens: Sequence[Token]) -> list[Token]:
        """The tokens with ``defined X`` and ``__has_include(...)`` answered."""
        out: list[Token] = []
        at = 0
        while at < len(tokens):
            token = tokens[at]
            at += 1
            following = [token.text for token in tokens[at : at + 3]]
            if token.text == "defined":
                if len(following) == 3 and (following[0], following[2]) == ("(", ")"):
                    following, at = following[1:2], at + 2
                if not following or not Token(following[0]).is_name:
                    raise UnfaithfulError
                answer = self.defined(following[0])
                token = Token(_DOUBT if answer is None else str(int(answer)))
                at += 1
            elif token.text.startswith("__has_") and following[:1] == ["("]:
                at, token = _closing([token.text for token in tokens], at) + 1, Token(_DOUBT)
            out.append(token)
        return out


def _closing(texts: Sequence[str], at: int) -> int:
    """The index of the parenthesis that closes the one at ``at``."""
    nesting = 0
    for index in range(at, len(texts)):
        nesting += (texts[index] == "(") - (texts[index] == ")")
        if nesting == 0:
            return index
    raise UnfaithfulError


@dataclass
class _Reader:
    """A cursor over the tokens of a condition, macros expanded."""

    texts: Sequence[str]
    name: Callable[[str], Value]
    at: int = 0
    nesting: int = 0

    def whole(self) -> Value:
        value = self._choice()
        if self.at < len(self.texts):
            raise UnfaithfulError
        return value

    def _peek(self) -> str:
        return self.texts[self.at] if self.at < len(self.texts) else ""

    def _take(self, text: str) -> bool:
        found = self._peek() == text
        self.at += found
        return found

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise UnfaithfulError

    def _choice(self) -> Value:
        self.nesting += 1
        if self.nesting > _MAX_NESTING:
            raise UnfaithfulError
        value = self._binary(1)
        if self._take("?"):
            then = self._choice()
            self._expect(":")
            value = chosen(value.truth, then, self._choice())
        self.nesting -= 1
        return value

    def _binary(self, level: int) -> Value:
        left = self._unary()
        while (found := BINARY.get(self._peek(), 0)) >= level:
            operator = self._peek()
            self.at += 1
            left = apply(operator, left, self._binary(found + 1))
        return left

    def _unary(self) -> Value:
        signs: list[str] = []
        while self._peek() in ("!", "-", "+", "~"):
            signs.append(self._peek())
            self.at += 1
        value = self._atom()
        for sign in reversed(signs):
            value = apply_sign(sign, value)
        return value

    def _atom(self) -> Value:
        text = self._peek()
        self.at += 1
        if text == "(":
            value = self._choice()
            self._expect(")")
            return value
        if text == _DOUBT:
            return UNKNOWN
        if text in ("true", "false"):
            return YES if text == "true" else NO
        if Token(text).is_name:
            value = self.name(text)
            if self._peek() == "(":
                if value != UNKNOWN:
                    raise UnfaithfulError
                self.at = _closing(self.texts, self.at) + 1
            return value
        return literal(text)
