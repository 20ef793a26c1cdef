"""What host functions do with the memory of the device before they launch: sizes, and zeros."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from optiml_magic.errors import SourceError
from optiml_magic.kernels.hostchanges import PITCH, PITCHED
from optiml_magic.kernels.hostowned import owned
from optiml_magic.kernels.hostpointers import exchanged, uncast
from optiml_magic.kernels.hostvalues import HostValues
from optiml_magic.source.aliases import resolve
from optiml_magic.source.dtypes import element_dtype
from optiml_magic.source.expressions import parse_expression
from optiml_magic.source.formals import text_of
from optiml_magic.source.notes import Note
from optiml_magic.source.syntax import line_of, nodes_of, passed_to, walk
from optiml_magic.source.values import changes, tidy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tree_sitter import Node

    from optiml_magic.kernels.signature import Parameter

ALLOCATE = frozenset({"cudaMalloc", "cudaMallocManaged", "cudaMallocAsync", PITCHED})
_SET = frozenset({"cudaMemset", "cudaMemsetAsync"})
_FILL = frozenset({"cudaMemcpy", "cudaMemcpyAsync"})
_IDLE = frozenset({"cudaFree", "cudaMemPrefetchAsync", "cudaMemAdvise"})
_DECLARES = frozenset(
    {"declaration", "parameter_declaration", "pointer_declarator", "reference_declarator"}
)
_CONTROLS = frozenset(
    {"if_statement", "else_clause", "for_statement", "while_statement", "do_statement",
     "for_range_loop", "switch_statement", "case_statement", "lambda_expression",
     "conditional_expression"}
)  # fmt: skip
_DEEPEST = 8


def allocations(
    given: Node,
    origin: str,
    parameter: Parameter,
    name: str,
    values: tuple[HostValues, HostValues],
    scalars: Mapping[str, str],
    types: Mapping[str, str],
) -> Iterator[Note]:
    """A note with how many elements a buffer has, as the host allocates it; of several none.

    ``origin`` is what the host calls the buffer, and ``name`` what the task does. ``values`` are
    those that a directive may name, the ``scalars`` by what the host calls them, and the numbers of
    the program as it runs; ``types`` are those of the host's template parameters. A scalar that
    changes before the buffer is ``given`` to a launch is another one there.
    """
    body, (named, known) = _body_around(given), values
    origin = _spelled_in_loop(origin, body)
    found = [args for function, args in calls(body, ALLOCATE) if is_pointer(args[0], origin)]
    if len(found) == 1 and len(found[0]) == 4:
        yield from _pitched(given, origin, parameter, name, known, found[0])
        return
    own = owned(origin, body, named) if not found else None
    lanes = 1
    if own is not None and _is_element(own.ctype, parameter, types):
        factors: list[Node] = list(_factors(own.count, named, 0))
        line = own.line
    elif len(found) == 1 and _of_one_size(origin, found[0], given, body):
        elements = _elements(found[0][1], origin, parameter, named, types)
        if elements is None:
            yield from _of_bytes(found[0][1], parameter, name, known)
            return
        (factors, lanes), line = elements, line_of(found[0][1])
    else:
        return
    count = [known.number(factor) for factor in factors]
    texts = [named.expression(factor) for factor in factors]
    extent, since = "", min((f.start_byte for f in factors), default=0)
    changed = {n for n, at in changes(body) if since < at.start_byte < given.start_byte}
    if all(e is not None and e.names <= scalars.keys() - changed for e in texts):
        text = " * ".join(f"({e})" for e in texts) or "1"
        text = f"{text} / {lanes}" if lanes > 1 else text
        renamed = re.sub(r"[A-Za-z_]\w*", lambda m: scalars.get(m[0], m[0]), text)
        try:
            extent = str(tidy(parse_expression(renamed)))
        except SourceError:  # longer or deeper than a directive may be
            extent = ""
    whole = 1
    for one in count:
        whole = whole * one if isinstance(one, int) and whole else 0
    whole //= lanes
    if not extent and not whole:
        return
    many = f"{extent or whole} element{'' if (extent or str(whole)) == '1' else 's'}"
    told = f"`{name}` has {many}, as line {line} allocates it"
    yield Note("allocated", told, name, whole or None, extent=extent or str(whole))


def _spelled_in_loop(origin: str, body: Node) -> str:
    """``d[i]`` of ``d[1]``, where a loop allocates each element of an array of pointers alike."""
    array, bracket, _ = origin.partition("[")
    made = [text_of(uncast(args[0])).lstrip("& (") for _, args in calls(body, ALLOCATE)]
    loops = {name for name in made if re.fullmatch(rf"{re.escape(array)} ?\[[a-z_]\w*\]", name)}
    return loops.pop() if bracket and origin not in made and len(loops) == 1 else origin


def _of_bytes(size: Node, parameter: Parameter, name: str, known: HostValues) -> Iterator[Note]:
    """The memory of a helper that takes a number of bytes, ``get(float** p, size_t bytes)``."""
    element, whole = _bytes(parameter.dtype, parameter.lanes), known.number(size)
    given = size.type == "identifier" and text_of(size) in known.constants
    if given and element and isinstance(whole, int) and whole > 0 and whole % element == 0:
        count = whole // element
        told = f"`{name}` has {count} elements, as line {line_of(size)} allocates it"
        yield Note("allocated", told, name, count, extent=str(count))


def is_padded(body: Node, origin: str, known: HostValues) -> bool:
    """Whether rows of a buffer may end before the next begins: no kernel writes what is between."""
    made = [args for _, args in calls(body, ALLOCATE) if is_pointer(args[0], origin)]
    width = known.number(made[0][2]) if len(made) == 1 and len(made[0]) == 4 else 0
    return not isinstance(width, int) or width % PITCH != 0


def _pitched(
    given: Node,
    origin: str,
    parameter: Parameter,
    name: str,
    known: HostValues,
    made: Sequence[Node],
) -> Iterator[Note]:
    """The memory of ``cudaMallocPitch``, of rows that are longer than what is asked for."""
    width, rows = known.number(made[2]), known.number(made[3])
    element = _bytes(parameter.dtype, parameter.lanes)
    others = exchanged(origin, made[1], given, _body_around(given), ALLOCATE)
    if not isinstance(width, int) or not isinstance(rows, int):
        return
    pitch = -(-width // PITCH) * PITCH
    if others == {origin} and element and pitch % element == 0 and rows > 0 < width:
        shape = (rows, pitch // element)
        count = shape[0] * shape[1]
        told = (
            f"`{name}` has {rows} rows of {shape[1]} elements, as line {line_of(made[1])} "
            f"allocates it: they begin at each {PITCH} bytes"
        )
        yield Note("allocated", told, name, count, extent=str(count), shape=shape)


def _of_one_size(name: str, made: Sequence[Node], given: Node, body: Node) -> bool:
    """Whether all that a pointer may lead to, where it is given, was allocated as large as this."""
    others = exchanged(name, made[1], given, body, ALLOCATE)
    if others is None:
        return False
    sizes = [[text_of(args[1]) for _, args in calls(body, ALLOCATE) if is_pointer(args[0], other)]
             for other in others]  # fmt: skip
    return all(size == [text_of(made[1])] for size in sizes)


def _body_around(node: Node) -> Node:
    """The body of the function that a node is in."""
    while node.parent is not None and node.type != "function_definition":
        node = node.parent
    return node.child_by_field_name("body") or node


def cleared(body: Node, origin: str, argument: Node) -> bool:
    """Whether the host last sets all of a buffer to zeros before it passes it as an argument."""
    last = ""
    whole = [args[1] for _, args in calls(body, ALLOCATE) if is_pointer(args[0], origin)]
    for function, args in calls(body, _SET | _FILL):
        if args[0].start_byte > argument.start_byte or not is_pointer(args[0], origin):
            continue
        if not _always_before(args[0], argument):
            return False
        zero = function in _SET and len(args) > 2 and text_of(args[1]) in ("0", "0x00")
        all_of_it = zero and [_product(size) for size in whole] == [_product(args[2])]
        all_of_it = all_of_it and not _changes_between(body, whole[0], args[2])
        last = "zeros" if zero and all_of_it else "other"
    jumps = any(node.type == "goto_statement" for node in nodes_of(body))
    return last == "zeros" and not jumps and not touched(body, origin, argument, _SET | _FILL)


def _product(size: Node) -> list[str]:
    """The factors of a size as they are spelled, in an order of their own and without spaces."""
    inner = uncast(size)
    if (
        inner.type == "binary_expression"
        and text_of(inner.child_by_field_name("operator")) == "*"
        and (left := inner.child_by_field_name("left"))
        and (right := inner.child_by_field_name("right"))
    ):
        return sorted(_product(left) + _product(right))
    return ["".join(text_of(inner).split())]


def touched(body: Node, origin: str, argument: Node, but: frozenset[str] = frozenset()) -> bool:
    """Whether the host may do more to a buffer before it first passes it than to allocate it.

    Calls of what is in ``but`` are known of.
    """
    root = re.split(r"\W", origin, maxsplit=1)[0]
    return any(
        node.type == "identifier"
        and node.start_byte < argument.start_byte
        and text_of(node) == root
        and not _is_idle(node, origin, argument, but)
        for node in nodes_of(body)
    )


def _is_idle(node: Node, origin: str, argument: Node, but: frozenset[str]) -> bool:
    """Whether a mention of a buffer leaves what is in it alone, and gives it no other name."""
    parent = node.parent
    while parent is not None and parent.type == "field_expression":
        node, parent = parent, parent.parent
    if node.type == "field_expression" and text_of(node) != origin:
        return True  # another member
    while parent is not None and parent.type in ("cast_expression", "pointer_expression",
                                                 "parenthesized_expression"):  # fmt: skip
        node, parent = parent, parent.parent
    if parent is None:
        return False
    if parent.type == "init_declarator":
        return parent.child_by_field_name("value") != node
    if parent.type in ("binary_expression", "unary_expression"):
        return text_of(parent.child_by_field_name("operator")) in ("==", "!=", "!")
    if parent.type != "argument_list" or parent.parent is None:
        return parent.type in _DECLARES
    if parent == argument.parent:
        return True
    function = text_of(parent.parent.child_by_field_name("function"))
    base = function.partition("<")[0].rpartition("::")[2]
    first = parent.named_children[0] == node
    return base in _IDLE or (base in ALLOCATE | but if first else base in _FILL)


def _changes_between(body: Node, size: Node, again: Node) -> bool:
    """Whether what is spelled alike twice may be another number the second time."""
    names = {text_of(node) for node in walk(size) if node.type == "identifier"}
    return any(
        name in names and size.start_byte < node.start_byte < again.start_byte
        for name, node in changes(body)
    )


def _always_before(node: Node, later: Node) -> bool:
    """Whether no branch or loop may leave a statement out where the later one is reached."""
    within = {parent.id for parent in controls(later)}
    return all(parent.id in within for parent in controls(node))


def controls(node: Node) -> Iterator[Node]:
    """What may leave a statement out, or do it again: branches and loops of its function."""
    parent = node.parent
    while parent is not None and parent.type != "function_definition":
        above = parent.parent.type if parent.parent is not None else ""
        # The block of a branch, too: what is in the other one is under the same statement.
        joins = text_of(parent.child_by_field_name("operator")) in ("&&", "||")
        if (
            parent.type in _CONTROLS
            or joins
            or (parent.type == "compound_statement" and above in _CONTROLS)
        ):
            yield parent
        parent = parent.parent


def calls(body: Node, wanted: frozenset[str]) -> Iterator[tuple[str, tuple[Node, ...]]]:
    """The calls of functions of these names, each with two arguments or more."""
    for node in nodes_of(body):
        if node.type != "call_expression":
            continue
        function = text_of(node.child_by_field_name("function"))
        base = function.partition("<")[0].rpartition("::")[2]
        args = passed_to(node)
        if base in wanted and len(args) > 1:
            yield base, tuple(args)


def is_pointer(node: Node, name: str) -> bool:
    """Whether an argument is a pointer's name, or its address, whatever it is cast to."""
    inner = uncast(node)
    if inner.type == "pointer_expression" and (what := inner.child_by_field_name("argument")):
        inner = uncast(what)
    return text_of(inner) == name


def _elements(
    size: Node, origin: str, parameter: Parameter, values: HostValues, types: Mapping[str, str]
) -> tuple[list[Node], int] | None:
    """The factors of a number of bytes without the size of an element; None where it has none.

    Beside them how many of these elements one of the parameter has: a launch may be given floats
    by fours.
    """
    factors = list(_factors(size, values, 0))
    lane = replace(parameter, lanes=1)
    for one, many in ((parameter, 1), (lane, parameter.lanes)):
        for at, factor in enumerate(factors):
            if factor.type != "sizeof_expression":
                continue
            if _sizes(factor, origin, one, types):
                return factors[:at] + factors[at + 1 :], many
            array = _extents(factor, one, types)
            if array is not None:
                return [*factors[:at], *array, *factors[at + 1 :]], many
    own = str(_bytes(parameter.dtype, parameter.lanes))
    for at, factor in enumerate(factors):
        if text_of(factor) == own:
            return factors[:at] + factors[at + 1 :], 1
    one_byte = parameter.dtype is not None and parameter.dtype[-1] == "1" and parameter.lanes == 1
    return (factors, 1) if one_byte else None


def _factors(node: Node, values: HostValues, depth: int) -> Iterator[Node]:
    if node.type == "parenthesized_expression" and node.named_child_count == 1:
        yield from _factors(node.named_children[0], values, depth)
    elif node.type == "cast_expression" and (inner := node.child_by_field_name("value")):
        yield from _factors(inner, values, depth)
    elif node.type == "binary_expression" and text_of(node.child_by_field_name("operator")) == "*":
        for side in ("left", "right"):
            part = node.child_by_field_name(side)
            if part is not None:
                yield from _factors(part, values, depth)
    elif node.type == "identifier" and depth < _DEEPEST and text_of(node) not in values.kept:
        local = values.definition(text_of(node))
        if local is None:
            local = values.held(node)
        if local is not None:
            yield from _factors(local, values, depth + 1)
        else:
            yield node
    else:
        yield node


def _sizes(node: Node, origin: str, parameter: Parameter, types: Mapping[str, str]) -> bool:
    """Whether ``sizeof(float)`` or ``sizeof(*p)`` is that of an element of a parameter."""
    words = re.sub(r"^sizeof|[()]", " ", text_of(node)).strip()
    return words in (f"*{origin}", f"{origin}[0]") or _is_element(words, parameter, types)


def _extents(node: Node, parameter: Parameter, types: Mapping[str, str]) -> list[Node] | None:
    """The extents of the host's array in ``sizeof(h_a)``, of a parameter's elements."""
    words = re.sub(r"^sizeof|[()]", " ", text_of(node)).strip()
    root = node
    while root.parent is not None:
        root = root.parent
    found: list[list[Node]] = []
    for declaration in nodes_of(root) if words.isidentifier() else ():
        if declaration.type != "declaration":
            continue
        for declarator in declaration.children_by_field_name("declarator"):
            inner = declarator
            sizes: list[Node] = []
            if inner.type == "init_declarator":
                inner = inner.child_by_field_name("declarator") or inner
            while inner.type == "array_declarator" and (size := inner.child_by_field_name("size")):
                sizes.insert(0, size)
                inner = inner.child_by_field_name("declarator") or size
            if text_of(inner) == words:
                kind = text_of(declaration.child_by_field_name("type"))
                found.append(sizes if _is_element(kind, parameter, types) else [])
    return found[0] if len(found) == 1 and found[0] else None


def _is_element(words: str, parameter: Parameter, types: Mapping[str, str]) -> bool:
    """Whether a type is that of the elements of a parameter."""
    words = resolve(words, types)[0]
    dtype, lanes = element_dtype(words)
    same = _bytes(dtype, lanes) == _bytes(parameter.dtype, parameter.lanes) > 0
    return same or words == parameter.ctype


def _bytes(dtype: str | None, lanes: int) -> int:
    """The size of an element; 0 where it is not that of a number."""
    if dtype == "bfloat16":
        return 2 * lanes
    digits = dtype[2:] if dtype is not None else ""
    return int(digits) * lanes if digits.isdigit() else 0
