"""Whether a body declares types or macros: what no tree shows, and what may not change its place.

``using``, ``typedef`` and the like are statements that do nothing; a preprocessor line is part of
what stands between statements.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from optiml_magic.kernels.expressions import Span
from optiml_magic.kernels.preprocessor.lines import without_literals
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.tree import Block, If, Loop, Statement

_NAMED = re.compile(r"\b(?:using|typedef|struct|class|union|enum|namespace)\b|_macro\b")
_LINE = re.compile(r"(?:#|%:)(?!(?:[ \t]|\\\r?\n)*pragma\b)", re.ASCII)


def names_between(kernel: Kernel, block: Block, first: int, last: int) -> bool:
    """Whether types or macros are declared behind the statement before one and before another.

    Both are counted in a block; what stands right in front of the last one is looked at as well.
    A line of ``#if`` is taken for a macro's.
    """
    spans: list[Span | None] = [
        span for s in block.body[first:last] for span in (s.lead, *_own(s)) if span
    ]
    spans += [block.body[last].lead] if last < len(block.body) else [block.tail]
    return _declares(kernel, spans)


def names_in(kernel: Kernel, statement: Statement) -> bool:
    """Whether types or macros are declared within a statement or right in front of it."""
    return _declares(kernel, (statement.lead, *_own(statement)))


def _declares(kernel: Kernel, spans: Iterable[Span | None]) -> bool:
    unit = kernel.unit
    raw = unit.text.encode()
    for span in spans:
        if span is None or span[0] == span[1]:
            continue
        start, end = unit.origin.origin(*span)
        # What the user wrote has the lines, what is read has what their macros stand for.
        for text in (raw[start:end], unit.origin.text[slice(*span)]):
            words = without_literals(text.decode())
            if _NAMED.search(words) or _LINE.search(words):
                return True
    return False


def _own(statement: Statement) -> Iterator[Span | None]:
    """What a statement is printed from: its own text, or that of its parts where it is edited."""
    if statement.span is not None:
        yield statement.span
        return
    if isinstance(statement, Block):
        yield statement.tail
    elif isinstance(statement, If):
        yield from (statement.head, statement.middle)
    elif isinstance(statement, Loop):
        yield from (statement.head, statement.foot)
    for inner in statement.statements:
        yield inner.lead
        yield from _own(inner)
