"""Trees with other parts in place of some of theirs; what changes loses its own bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from optiml_magic.kernels.expressions import Cast, Expr, Name, Unread
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Statement,
    Variable,
    Verbatim,
    Written,
)

Node = Expr | Statement
Swaps = Mapping[Node, "Node | tuple[Statement, ...] | None"]
_N = TypeVar("_N", bound=Node)
_NAMING = Declare | Blank | Verbatim | Written  # what may be a declaration
_SPANS = frozenset({"span", "head", "middle", "foot"})


def edited(node: _N, swaps: Swaps) -> _N:
    """A tree with nodes exchanged, wherever they stand in it; parts of those are not looked at.

    A statement of a block may become several, or, for None, nothing.
    """
    return _edited(node, swaps)  # type: ignore[no-any-return]


def text(words: str) -> Expr:
    """An expression spelled by whoever made it; one of more than a word is in parentheses."""
    if words.startswith("(int)"):
        return Cast(None, "int", text(words[5:]))
    whole = words.replace("_", "").isalnum() or (words[:1] == "(" and _closes_last(words))
    return Unread(None, words if whole or _postfix(words) else f"({words})")


def lines(words: str) -> Written:
    """Statements spelled by whoever made them; indentation is made anew."""
    return Written(None, 0, words.strip("\n"))


def spread(way: Statement | tuple[Statement, ...] | None) -> tuple[Statement, ...]:
    """What stands in the place of a test that is decided, as that of one right behind it is.

    A way with names of its own, of variables or of types, has braces around it.
    """
    if isinstance(way, Declare):
        return (Block(None, way.line, (way,)),)
    if isinstance(way, Block) and not any(isinstance(s, _NAMING) for s in way.body):
        return way.body
    return way if isinstance(way, tuple) else () if way is None else (way,)


def _edited(node: Any, swaps: Swaps) -> Any:
    if node in swaps:
        return swaps[node]
    if isinstance(node, Name):  # the variable that it names is edited where it is declared
        return node
    changes: dict[str, Any] = {}
    for field in fields(node):
        old = getattr(node, field.name)
        new = _part(old, swaps)
        if new is not old:
            changes[field.name] = new
    if not changes:
        return node
    if isinstance(node, Unread):  # which is its text, with the names in it as they were
        raise Unspelled(node.text)
    changes |= dict.fromkeys(_SPANS & {f.name for f in fields(node)})
    if isinstance(node, Statement) and "head" in changes and _same_head(changes):
        del changes["head"]
    return replace(node, **changes)


def _part(old: Any, swaps: Swaps) -> Any:
    if isinstance(old, Expr | Statement):
        new = _edited(old, swaps)
        if isinstance(new, tuple):
            return Block(None, old.line, new) if isinstance(old, Statement) else new
        return Block(None, 0, ()) if new is None else new
    if isinstance(old, Variable):
        changed = {
            name: _part(getattr(old, name), swaps) for name in ("extents", "value", "initial")
        }
        changed = {n: v for n, v in changed.items() if v is not getattr(old, n)}
        return replace(old, **changed) if changed else old
    if isinstance(old, tuple) and old and isinstance(old[0], Expr | Statement | Variable):
        new = tuple(_flat(old, swaps))
        same = len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True))
        return old if same else new
    return old


def _flat(parts: Iterable[Any], swaps: Swaps) -> Iterator[Any]:
    for part in parts:
        new = _part(part, swaps) if isinstance(part, Variable) else _edited(part, swaps)
        if isinstance(new, tuple):
            yield from new
        elif new is not None:
            yield new


def _same_head(changes: Mapping[str, Any]) -> bool:
    """Whether what stands before the body is as it was: the tests and counters of a loop."""
    return not changes.keys() & {"test", "before", "update"}


def _postfix(words: str) -> bool:
    """``a[i][j]`` or ``f(x)``: a word and pairs of brackets to the end."""
    head = words.replace("(", "[", 1).partition("[")[0]
    rest, found = words[len(head) :], bool(head) and head.replace("_", "").isalnum()
    while found and rest:
        length = _first_pair(rest)
        rest, found = rest[length:], length > 0
    return found


def _closes_last(words: str) -> bool:
    """Whether the first bracket is closed by the last character alone."""
    return _first_pair(words) == len(words)


def _first_pair(words: str) -> int:
    """The characters to where the bracket is closed that these begin with; 0 if it is not."""
    depth = 0
    for at, letter in enumerate(words):
        depth += (letter in "([") - (letter in ")]")
        if depth == 0:
            return at + 1 if at else 0
    return 0
