"""How many threads a number of blocks is meant for: ``n`` of ``(n + 255) / 256``, however spelled.

Each such number is the quotient of a sum by the width of a block, rounded down, and at least that
of the items rounded up: ``n / 256 + 1`` is ``(n + 256) / 256``, a block too many where blocks are
whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from optiml_magic.source.expressions import Binary, Call, Choice, Node, Number, Unary


@dataclass(frozen=True)
class _Quotient:
    """``(terms + more) / width``, rounded down; less than the launch where it is not ``exact``."""

    terms: tuple[tuple[int, Node], ...]
    more: int
    exact: bool = True


def rounded_up(node: Node, old: Node, width: int) -> Node | None:
    """``E`` of ``cdiv(E, b)`` in any spelling, for blocks of ``b`` threads, said as ``old``."""
    if isinstance(node, Call) and node.function == "cdiv" and _is(node.arguments[1], old, width):
        return node.arguments[0]
    found = _quotient(node, old, width)
    if found is None or not found.exact or not found.terms or found.more <= 0:
        return None
    return _sum(found.terms, found.more - width + 1)


def covered(node: Node, old: Node, width: int) -> Iterator[Node]:
    """What so many blocks have a thread for, the fewest items first; there may be more threads.

    ``cdiv(n, 256) * 8`` blocks of 32 threads are for ``n`` items, as ``cdiv(n, 256)`` of 256 are.
    """
    match node:
        case Binary("*", several, Number(times)) | Binary("*", Number(times), several) if times > 0:
            yield from covered(several, Number(times * width), times * width)
            return
    found = _quotient(node, old, width)
    if found is None or not found.terms or found.more < width - 1:
        return
    yield _sum(found.terms, 0)
    if found.more > width - 1:
        yield _sum(found.terms, found.more - width + 1)


def _quotient(node: Node, old: Node, width: int) -> _Quotient | None:
    match node:
        case Call("cdiv", (top, by)) if _is(by, old, width):
            terms, more = _terms(top, old, width)
            return _Quotient(terms, more + width - 1)
        case Binary("/", top, by) if _is(by, old, width):
            return _Quotient(*_terms(top, old, width))
        case Binary(">>", top, Number(bits)) if 1 << bits == width:
            return _Quotient(*_terms(top, old, width))
        case Binary("+", left, right):
            for one, other in ((left, right), (right, left)):
                found = _quotient(one, old, width)
                if found is not None and isinstance(other, Number):
                    return _Quotient(found.terms, found.more + other.value * width, found.exact)
                several = isinstance(other, Binary) and other.op == "%"
                if found is not None and not several and _rest(other, found, old, width):
                    return _Quotient(found.terms, found.more + width - 1, found.exact)
        case Binary("-", left, Number(value)):
            found = _quotient(left, old, width)
            if found is not None:
                return _Quotient(found.terms, found.more - value * width, found.exact)
        case Call("max", (left, right)):
            for one, other in ((left, right), (right, left)):
                found = _quotient(one, old, width)
                if found is not None and isinstance(other, Number):
                    return _Quotient(found.terms, found.more, exact=False)
        case Choice(test, then, otherwise):
            return _chosen(test, then, otherwise, old, width)
    return None


def _chosen(test: Node, then: Node, otherwise: Node, old: Node, width: int) -> _Quotient | None:
    """``n % b == 0 ? n / b : n / b + 1``, and the other way round."""
    match test:
        case Binary("==", rest, Number(0)) | Unary("!", rest):
            whole, part = then, otherwise
        case Binary("!=" | ">", rest, Number(0)) | (Binary("%") as rest):
            whole, part = otherwise, then
        case _:
            return None
    one, other = (_quotient(side, old, width) for side in (whole, part))
    if one is None or other is None or one.terms != other.terms or not one.exact:
        return None
    if other.more - one.more != width or not _rest(rest, one, old, width):
        return None
    return _Quotient(one.terms, one.more + width - 1)


def _rest(node: Node, of: _Quotient, old: Node, width: int) -> bool:
    """Whether something is 1 where the quotient leaves a rest, and else 0; or that rest itself."""
    match node:
        case Choice(test, Number(1), Number(0)):
            return _rest(test, of, old, width)
        case Choice(Binary("==", rest, Number(0)), Number(0), Number(1)):
            return _rest(rest, of, old, width)
        case Binary("!=" | ">", rest, Number(0)):
            return _rest(rest, of, old, width)
        case Binary("%", top, by) if _is(by, old, width):
            return _terms(top, old, width) == (of.terms, of.more)
    return False


def _is(node: Node, old: Node, width: int) -> bool:
    return node in (old, Number(width))


def _terms(node: Node, old: Node, width: int) -> tuple[tuple[tuple[int, Node], ...], int]:
    """What is added up, each with its sign, and the number beside it."""
    if node == old and not isinstance(node, Number):
        return (), width
    match node:
        case Number(value):
            return (), value
        case Binary("+" | "-" as op, left, right):
            sign = 1 if op == "+" else -1
            (one, more), (other, less) = (_terms(side, old, width) for side in (left, right))
            return (*one, *((sign * s, n) for s, n in other)), more + sign * less
    return ((1, node),), 0


def _sum(terms: tuple[tuple[int, Node], ...], more: int) -> Node:
    """The terms and a number, what is added before what is taken away."""
    ordered = sorted(terms, key=lambda term: -term[0])
    sign, first = ordered[0]
    made: Node = first if sign > 0 else Binary("-", Number(0), first)
    for sign, term in ordered[1:]:
        made = Binary("+" if sign > 0 else "-", made, term)
    if more:
        made = Binary("+" if more > 0 else "-", made, Number(abs(more)))
    return made
