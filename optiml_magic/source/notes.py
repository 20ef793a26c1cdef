"""What was done to a text before it became a program, told to the user and decided on by kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

NoteKind = Literal[
    "dropped_function",  # a host function; ``name`` is its name
    "dropped_line",
    "absent_header",  # one of the text's own that the task lacks; ``name`` is its name
    "launch",  # one that became a directive, or is the same as or beside one that did
    "unread_launch",  # one that no directive can say
    "inferred_launch",
    "literal",  # a number that a launch passes; ``name`` is what it is passed as
    "called",  # another name that the host has for one; ``called`` is it
    "allocated",  # how many elements the host gives a buffer: ``extent``, and ``value`` as it runs
    "constant",  # what the host copies to one of the device
    "filled",  # what the host fills a buffer with: ``extent`` is an expression for each element
    "argv",  # numbers of the command line that nobody gives; ``fix`` is the directive for them
    "unpacked",  # a struct, passed by its members; ``name`` is the parameter's
    "warp_steps",  # lanes that ran in step wait for each other; ``name`` is the function's
    "flat_rows",  # a pointer to rows, passed as one to elements; ``name`` is the parameter's
]


@dataclass(frozen=True)
class Note:
    """One thing that was done, or could not be."""

    kind: NoteKind
    text: str
    name: str = ""
    value: int | float | None = None  # that of a literal
    called: str = ""
    extent: str = ""
    shape: tuple[int, ...] = ()  # of what is allocated, where it has axes
    fix: str = ""  # what to write in the place of what could not be read
    why: str = ""  # of an unread launch: the reason alone
    line: int = 0  # of an unread launch
    place: int = 0  # of an unread launch: how many are read before it

    def __str__(self) -> str:
        return self.text


def taken_out(notes: Sequence[Note]) -> tuple[dict[str, str], tuple[str, ...]]:
    """What the notes say of host functions, by their names, and the headers that nobody has."""
    functions = {n.name: n.text for n in reversed(notes) if n.kind == "dropped_function" and n.name}
    return functions, tuple(n.name for n in notes if n.kind == "absent_header")
