"""What the uses of macros expand to by the rules of C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from optiml_magic.kernels.preprocessor.macros import Macro, State, Table, is_compilers
from optiml_magic.kernels.preprocessor.tokens import (
    DOUBT,
    EMPTY,
    Source,
    Token,
    UnfaithfulError,
    as_string,
    pasted,
)

_MAX_DEPTH = 40
_MAX_TOKENS = 2500
_OPTIONAL = "__VA_OPT__"


@dataclass
class Arguments:
    """Those of one use; ``absent`` tells that a variadic macro has none for its last parameter."""

    given: list[list[Token]]
    absent: bool = False
    expanded: dict[int, list[Token]] = field(default_factory=dict)


@dataclass
class Expander:
    """Expands by a table that changes as the text goes on; ``left`` bounds the work of all uses."""

    table: Table
    left: int
    _tokens: int = 0

    def expand(self, tokens: Sequence[Token], source: Source | None = None) -> list[Token]:
        """The tokens expanded; a use at their end may take its arguments from ``source``.

        UnfaithfulError where a compiler would complain, or where it is too much.
        """
        self._tokens = _MAX_TOKENS
        return self._expanded(tokens, source, 0)

    def _spend(self, count: int) -> None:
        self.left -= count
        self._tokens -= count
        if self.left < 0 or self._tokens < 0:
            raise UnfaithfulError

    def _expanded(self, tokens: Sequence[Token], source: Source | None, depth: int) -> list[Token]:
        if depth > _MAX_DEPTH:
            raise UnfaithfulError
        table = self.table
        out: list[Token] = []
        pending = list(reversed(tokens))
        white = False  # before a use that expanded to nothing
        while pending:
            token = pending.pop()
            if white:
                token, white = token._replace(white=True), False
            macro = table.get(token.text)
            if macro is None and not depth:
                out.append(token)
                continue
            if not isinstance(macro, Macro) or token.text in token.hidden:
                # ``#`` and ``##`` see a name that came through an argument as the macro's value.
                if depth and (macro is State.UNKNOWN or is_compilers(token.text)):
                    token = token._replace(hidden=token.hidden | {DOUBT})
                out.append(token)
                continue
            hidden, arguments = token.hidden, Arguments([])
            if macro.parameters is not None:
                opening = pending[-1] if pending else source.peek() if source else None
                if opening is None or opening.text != "(":
                    out.append(token)
                    continue
                arguments, closing = self._arguments(macro, pending, source)
                hidden &= closing
            body = self._substituted(macro, arguments, depth)
            self._spend(1 + len(body))
            white = token.white and not body
            hidden |= {macro.name}
            pending += [Token(t, w, h | hidden if h else hidden) for t, w, h in reversed(body)]
            if body:
                pending[-1] = pending[-1]._replace(white=token.white)
        return out

    def _arguments(
        self, macro: Macro, pending: list[Token], source: Source | None
    ) -> tuple[Arguments, frozenset[str]]:
        """What stands in the parentheses that follow, and what their end does not expand to."""
        assert macro.parameters is not None
        found: list[list[Token]] = [[]]
        nesting = -1  # the opening parenthesis comes first
        while True:
            token = pending.pop() if pending else source.take() if source else None
            if token is None:
                raise UnfaithfulError
            self._spend(1)
            text = token.text
            nesting += (text == "(") - (text == ")")
            if nesting < 0:
                return _bound(macro.parameters, macro.variadic, found), token.hidden
            takes_all = macro.variadic and len(found) == len(macro.parameters)
            if text == "," and nesting == 0 and not takes_all:
                found.append([])
            elif text != "(" or nesting:
                found[-1].append(token)

    def _substituted(self, macro: Macro, arguments: Arguments, depth: int) -> list[Token]:
        """The body with the arguments in place of the parameters, ``#`` and ``##`` done."""
        if not macro.parameters and not any(token.text == "##" for token in macro.body):
            return list(macro.body)
        body = self._body(macro, arguments, depth)
        named = {name: i for i, name in enumerate(macro.parameters or ())}
        out: list[Token] = []
        paste = raw = False  # what the last ``##`` asks of the token behind it
        at = 0
        texts = [*(token.text for token in body), ""]
        while at < len(body):
            token, text, following = body[at], texts[at], texts[at + 1]
            at += 1
            if text == "##":
                if not out or not following:
                    raise UnfaithfulError
                paste = raw = True
                rest = macro.variadic and named.get(following) == len(named) - 1
                if rest and texts[at - 2] == ",":  # GNU's: drops a comma before nothing
                    paste = False
                    out = out[:-1] if arguments.absent else out
                continue
            if text == "#" and macro.parameters is not None:
                made = [Token(as_string(arguments.given[named[following]]), token.white)]
                self._spend(len(made[0].text) // 16)
                at += 1
            elif (which := named.get(text)) is not None:
                beside = raw or following == "##"
                made = arguments.given[which] if beside else self._argument(arguments, which, depth)
                made = [made[0]._replace(white=token.white), *made[1:]] if made else made
                made = made or ([EMPTY] if beside else [])
            else:
                made = [token]
            if paste:
                made = [pasted(out.pop(), made[0]), *made[1:]]
                self._spend(len(made[0].text) // 16)
            paste = raw = False
            out += made
        return [token for token in out if token.text]

    def _argument(self, arguments: Arguments, which: int, depth: int) -> list[Token]:
        """An argument expanded, once however often the body names it."""
        if which not in arguments.expanded:
            arguments.expanded[which] = self._expanded(arguments.given[which], None, depth + 1)
        return arguments.expanded[which]

    def _body(self, macro: Macro, arguments: Arguments, depth: int) -> Sequence[Token]:
        """The body with what ``__VA_OPT__`` holds, or without it."""
        if not any(token.text == _OPTIONAL for token in macro.body):
            return macro.body
        if not macro.variadic:
            raise UnfaithfulError
        present = bool(self._argument(arguments, len(arguments.given) - 1, depth))
        out: list[Token] = []
        nesting = 0  # in an optional part
        for at, token in enumerate(macro.body):
            if token.text == _OPTIONAL:
                before, following = macro.body[at - 1 : at], macro.body[at + 1 : at + 2]
                if nesting or not following or following[0].text != "(":
                    raise UnfaithfulError
                if before and before[0].text in ("#", "##"):
                    raise UnfaithfulError
            elif nesting or (at and macro.body[at - 1].text == _OPTIONAL):
                nesting += (token.text == "(") - (token.text == ")")
                first = macro.body[at - 1].text == _OPTIONAL
                following = macro.body[at + 1 : at + 2]
                edge = first or not nesting
                if edge and following and following[0].text == "##":
                    raise UnfaithfulError
                if not edge and present:
                    out.append(token)
            else:
                out.append(token)
        if nesting:
            raise UnfaithfulError
        return out


def _bound(parameters: tuple[str, ...], variadic: bool, found: list[list[Token]]) -> Arguments:
    """The arguments by the parameters they are for; UnfaithfulError where they are not as many."""
    if not parameters and found == [[]]:
        return Arguments([])
    if variadic and len(found) == len(parameters) - 1:
        return Arguments([*found, []], absent=True)
    if len(found) != len(parameters):
        raise UnfaithfulError
    return Arguments(found, absent=variadic and found == [[]])
