"""Which branches of its conditionals a text takes, and what its macros are from where on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from optiml_magic.kernels.preprocessor.conditions import Names
from optiml_magic.kernels.preprocessor.lines import MIDDLE, OPENING, Line
from optiml_magic.kernels.preprocessor.macros import Macro, State, define

Span = tuple[int, int]
Change = tuple[str, Macro | State]


@dataclass(frozen=True)
class Passage:
    """A span that no use of a macro crosses, and what holds of names after it.

    A ``line`` and an ``undecided`` conditional stay as they are, a ``blank`` is no code here.
    """

    start: int
    end: int
    kind: Literal["line", "blank", "undecided"]
    changes: tuple[Change, ...] = ()


def passages(found: Sequence[Line], names: Names, end: int) -> Iterator[Passage]:
    """What becomes of the lines of a text that is ``end`` long, in order; ``names`` follow them."""
    chains = _chains(found)
    closing: dict[int, int] = {}  # by the line that ends a taken branch, its ``#endif``
    at = 0
    while at < len(found):
        line = found[at]
        if at in closing:
            passage = Passage(line.start, found[closing[at]].end, "blank")
            at = closing[at] + 1
        elif line.word in OPENING:
            chain = chains[at]
            taken = _taken([found[i] for i in chain], names) if chain else None
            if chain is None or taken is None:
                last = chain[-1] if chain else len(found) - 1
                passage = _undecided(found[at : last + 1], found[last].end if chain else end, names)
                at = last + 1
            else:
                passage = Passage(line.start, found[chain[taken]].end, "blank")
                at = chain[taken] + 1
                if taken < len(chain) - 1:
                    closing[chain[taken + 1]] = chain[-1]
        else:
            passage = Passage(line.start, line.end, "line", _changes(line))
            names.foreign |= line.is_foreign
            at += 1
        names.expander.table.update(passage.changes)
        yield passage


def _undecided(inside: Sequence[Line], end: int, names: Names) -> Passage:
    """A conditional that stays: nothing is known after it of what it may define."""
    names.foreign |= any(line.is_foreign for line in inside)
    changed = {line.changed for line in inside} - {""}
    unknown = tuple((name, State.UNKNOWN) for name in sorted(changed))
    return Passage(inside[0].start, end, "undecided", unknown)


def _chains(found: Sequence[Line]) -> dict[int, list[int] | None]:
    """The lines of each conditional by its first, None for one without ``#endif``."""
    chains: dict[int, list[int] | None] = {}
    open_: list[list[int]] = []
    for index, line in enumerate(found):
        if line.word in OPENING:
            chains[index] = None
            open_.append([index])
        elif open_ and line.word in MIDDLE:
            open_[-1].append(index)
        elif open_ and line.word == "endif":
            chain = open_.pop()
            chains[chain[0]] = [*chain, index]
    return chains


def _taken(chain: Sequence[Line], names: Names) -> int | None:
    """The index of the branch that is compiled, that of ``#endif`` for none, None if unknown."""
    if any(line.word == "else" for line in chain[:-2]):
        return None
    for index, line in enumerate(chain):
        holds = _holds(line, names)
        if holds is None:
            return None
        if holds:
            return index
    return None


def _holds(line: Line, names: Names) -> bool | None:
    """Whether the branch that a line opens is taken, those before it were not."""
    if line.word in ("else", "endif"):
        return True
    if line.word in ("if", "elif"):
        return names.condition(line.rest)
    defined = names.defined(line.name) if line.name else None
    return defined if defined is None or line.word.endswith("ifdef") else not defined


def _changes(line: Line) -> tuple[Change, ...]:
    if line.word == "define":
        name, macro = define(line.rest)
        return ((name, macro),) if name else ()
    if line.word == "undef":
        return ((line.name, State.ABSENT),) if line.name else ()
    return ((line.changed, State.UNKNOWN),) if line.changed else ()
