"""What changes a local of a host function: once, from outside, or only as it seems."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from optiml_magic.source.formals import declared, formals, text_of
from optiml_magic.source.operators import SM_COUNT
from optiml_magic.source.syntax import name_of, nodes_of, passed_to, walk
from optiml_magic.source.values import changes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

    from optiml_magic.kernels.hostarguments import Arguments

_LOOPS = frozenset({"for_statement", "while_statement", "do_statement", "for_range_loop"})
_TOGETHER = frozenset({"assignment_expression", "comma_expression"})
_JUMPS = frozenset({"goto_statement", "lambda_expression"})
_SWAPS = frozenset({"swap", "exchange"})
#: Of a GPU for data centres; with the names that ``cudaDeviceProp`` has for them.
_ATTRIBUTES = {
    "MultiProcessorCount": SM_COUNT, "MaxThreadsPerMultiProcessor": "2048",
    "MaxThreadsPerBlock": "1024", "WarpSize": "32", "MaxSharedMemoryPerBlock": "49152",
}  # fmt: skip
PROPERTIES = {name[0].lower() + name[1:]: value for name, value in _ATTRIBUTES.items()}
PITCHED, PITCH = "cudaMallocPitch", 512  # bytes that a row of such memory is a multiple of
_ON_THE_LINE = re.compile(r"\bargv\b|\boptarg\b|\bstd::cin\b|\bscanf\b|\bgetenv\b")


def referring(root: Node) -> dict[str, frozenset[int]]:
    """The functions of a text that may change what they are called with, and which of it."""
    found: dict[str, frozenset[int]] = {}
    for node in nodes_of(root):
        if node.type == "function_definition":
            own = {at for at, f in enumerate(formals(node)) if f.reference and not f.const}
            found[name_of(node)] = found.get(name_of(node), frozenset()) | own
    return {name: own for name, own in found.items() if own}


def changed_by_calls(body: Node, functions: Mapping[str, frozenset[int]]) -> Iterator[str]:
    """The names that functions are called with which may change them."""
    for node in nodes_of(body) if functions else ():
        if node.type != "call_expression":
            continue
        called = text_of(node.child_by_field_name("function")).partition("<")[0]
        own = functions.get(called.rpartition("::")[2], frozenset())
        given = passed_to(node)
        for at in own & set(range(len(given))):
            yield re.split(r"\W", text_of(given[at]), maxsplit=1)[0]


def given_anew(body: Node) -> Iterator[tuple[str, Node]]:
    """The names that are swapped or read into, each with the node that does it."""
    for node in nodes_of(body):
        if node.type == "call_expression":
            called = text_of(node.child_by_field_name("function")).partition("<")[0]
            listed = node.child_by_field_name("arguments")
            for argument in listed.named_children if listed is not None else ():
                if called.rpartition("::")[2] in _SWAPS and argument.type == "identifier":
                    yield text_of(argument), node
        elif node.type == "expression_statement" and node.named_child_count:  # not of a bare `;`
            yield from _read_into(node.named_child(0))


def _read_into(node: Node | None) -> Iterator[tuple[str, Node]]:
    """The names that a stream gives values to, ``in >> a >> b;``."""
    while node is not None and node.type == "binary_expression":
        right = node.child_by_field_name("right")
        if text_of(node.child_by_field_name("operator")) != ">>" or right is None:
            return
        if right.type == "identifier":
            yield text_of(right), node
        node = node.child_by_field_name("left")


def set_once(
    nodes: list[Node], body: Node, place: Node | None = None, *, sure: bool = False
) -> Node | None:
    """What a local is set to, where that is one assignment that nothing can go around.

    It is before a ``place``, where one is given, in a block that the place is in. It is ``sure``
    where the branches around it are known to be taken.
    """
    (first, *others), statement = nodes, nodes[0].parent
    plain = text_of(first.child_by_field_name("operator")) == "="
    if others or first.type != "assignment_expression" or not plain:
        return None
    while statement is not None and statement.type in _TOGETHER:
        statement = statement.parent  # of `a = b = c`, and of `a = 1, b = 2`
    if statement is None or statement.type != "expression_statement":
        return None
    block = statement.parent
    if place is None or block is None:
        straight = sure or block == body
    else:
        blocks = block.type in ("compound_statement", "case_statement")
        straight = blocks and statement.end_byte <= place.start_byte < block.end_byte
    if not straight:
        return None
    right = first.child_by_field_name("right")
    while right is not None and right.type == "assignment_expression":
        right = right.child_by_field_name("right")
    return right


def first_round(name: str, nodes: list[Node], place: Node | None, body: Node) -> bool:
    """Whether a local has its first value where a place is come to first.

    The place is in a loop that counts it, or is ahead of all that changes it. ``nodes`` change
    locals of that name; those outside of the loop are of others.
    """
    if place is not None and all(place.end_byte <= node.start_byte for node in nodes):
        return not any(node.type in _JUMPS for node in nodes_of(body))
    loop = place.parent if place is not None else None
    while loop is not None and loop.type != "function_definition":
        head = loop.child_by_field_name("initializer") if loop.type == "for_statement" else None
        made = head if head is not None and head.type == "declaration" else None
        own = made.children_by_field_name("declarator") if made is not None else []
        if any(declared(one).name == name for one in own):
            step = loop.child_by_field_name("update")
            inside = [n for n in nodes if loop.start_byte <= n.start_byte < loop.end_byte]
            return step is not None and all(
                step.start_byte <= n.start_byte < step.end_byte for n in inside
            )
        loop = loop.parent
    return False


def is_only_read(array: str, body: Node) -> bool:
    """Whether a function only asks for elements of an array that it lists, and hands it to none."""
    for node in nodes_of(body):
        if node.type != "identifier" or text_of(node) != array or node.parent is None:
            continue
        around, outer = node.parent, node.parent.parent
        sized = any(one is not None and "sizeof" in one.type for one in (around, outer))
        if around.type == "array_declarator" or sized:
            continue
        if around.type != "subscript_expression" or outer is None:
            return False
        left = outer.child_by_field_name("left") if outer.type == "assignment_expression" else None
        if left == around or outer.type in ("update_expression", "pointer_expression"):
            return False
    return True


def set_over(name: str, nodes: list[Node], body: Node, run: Arguments) -> Node | None:
    """What a local is set to over what it was declared with, which nobody asks for before that."""
    rights = [
        set_once([node], body, sure=run.is_sure(node)) if target(node) == name else None
        for node in nodes
    ]
    if None in rights or not rights:
        return None
    for node in nodes_of(body):
        if node.start_byte >= nodes[-1].end_byte:
            break
        parent = node.parent
        if node.type != "identifier" or text_of(node) != name or parent is None:
            continue
        field = {"init_declarator": "declarator", "assignment_expression": "left"}.get(parent.type)
        asks = field is None or parent.child_by_field_name(field) != node
        if asks and not run.is_left_out(node):
            return None
    return rights[-1]


def last_set(name: str, first: Node | None, place: Node, body: Node) -> Node | None:
    """What a local that is set several times holds at a place: what it was set to last.

    That is what it is declared with, ``first``, where nothing changes it before. Nothing that it
    is computed from may change afterwards.
    """
    every = [*changes(body), *given_anew(body)]
    own = [node for changed, node in every if changed == name]
    before = [node for node in own if node.end_byte <= place.start_byte]
    right = set_once(before[-1:], body, place) if before else first
    jumps = any(node.type in _JUMPS for node in nodes_of(body))
    if right is None or jumps or any(_is_again(node, place, right) for node in own):
        return None
    names = {text_of(node) for node in walk(right) if node.type == "identifier"}
    later = any(changed in names and n.start_byte > right.start_byte for changed, n in every)
    return right if not later else None


def _is_again(change: Node, place: Node, since: Node) -> bool:
    """Whether a loop comes from a change to a place, and not by what is set ``since``."""
    parent = place.parent
    while parent is not None and parent.type != "function_definition":
        inside = [parent.start_byte <= n.start_byte < parent.end_byte for n in (change, since)]
        if parent.type in _LOOPS and inside == [True, False]:
            return True
        parent = parent.parent
    return False


def is_listed(change: Node) -> bool:
    """Whether an address is only put into a list of what a launch passes: ``void* args[]``."""
    node = change.parent
    while node is not None and node.type in ("cast_expression", "initializer_list"):
        node = node.parent
    if node is not None and node.type == "assignment_expression":
        return change.type == "pointer_expression" and _is_of_void(node)
    declaration = node.parent if node is not None and node.type == "init_declarator" else None
    kind = declaration.child_by_field_name("type") if declaration is not None else None
    return change.type == "pointer_expression" and text_of(kind) == "void"


def _is_of_void(assignment: Node) -> bool:
    """Whether an element of an array of ``void*`` is set, ``args[0] = &x``."""
    left, function = assignment.child_by_field_name("left"), assignment.parent
    array = left.child_by_field_name("argument") if left is not None else None
    while function is not None and function.type != "function_definition":
        function = function.parent
    return function is not None and any(
        node.type == "declaration"
        and text_of(node.child_by_field_name("type")) == "void"
        and any(declared(one).array and declared(one).name == text_of(array)
                for one in node.children_by_field_name("declarator"))
        for node in nodes_of(function)
    )  # fmt: skip


def asked_of_device(change: Node) -> str:
    """What ``cudaDeviceGetAttribute`` says of a device, as an expression, or how many blocks fit.

    Registers and shared memory may let fewer fit: that is for the launch of a kernel to say.
    """
    listed = change.parent
    call = listed.parent if listed is not None and listed.type == "argument_list" else None
    called = text_of(call.child_by_field_name("function")) if call is not None else ""
    given = [text_of(n) for n in (listed.named_children if listed else ()) if n.type != "comment"]
    if called == "cudaDeviceGetAttribute" and len(given) > 1:
        return _ATTRIBUTES.get(given[1].removeprefix("cudaDevAttr"), "")
    if called.partition("<")[0] == PITCHED and len(given) > 3 and given[1] == text_of(change):
        return f"cdiv({given[2]}, {PITCH}) * {PITCH}"
    most = called.partition("<")[0] == "cudaOccupancyMaxActiveBlocksPerMultiprocessor"
    if most and len(given) > 2 and given[0] == text_of(change):
        return f"{_ATTRIBUTES['MaxThreadsPerMultiProcessor']} / ({given[2]})"
    return ""


def target(change: Node) -> str:
    """What one change writes to, or takes the address of, as it is spelled."""
    for field in ("left", "argument", "value"):
        written = change.child_by_field_name(field)
        if written is not None:
            return text_of(written)
    return ""


def is_given_from_outside(node: Node) -> bool:
    """Whether a change only takes what the command line or a file gives."""
    whole = node
    while whole.parent is not None and "statement" not in whole.type:
        whole = whole.parent
    return _ON_THE_LINE.search(text_of(whole)) is not None
