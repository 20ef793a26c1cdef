"""Loops whose rounds the lanes of a warp may share: reductions, and rounds that only store.

A round may not feel another one: what it changes outside of itself is an accumulator of one
associative operation, or an array element of its own. Floating-point sums are reassociated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.proposers.rewrites.accesses import Access, accesses
from optiml_magic.proposers.rewrites.affine import INTEGRAL, PURE, Affine, uncast
from optiml_magic.proposers.rewrites.guards import bare, leaves
from optiml_magic.proposers.rewrites.surgery import NotCertainError
from optiml_magic.source.syntax import name_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

    from optiml_magic.proposers.rewrites.kernel import Variable

_COMPOUND = {"+=": "+", "-=": "+", "*=": "*", "|=": "|", "&=": "&", "^=": "^"}
_NEUTRAL = {"+": "0", "*": "1", "|": "0", "&": "~0", "^": "0"}  # max and min need none
_CHOOSING = ("max", "fmaxf", "fmax", "min", "fminf", "fmin")
_STEP = re.compile(r"\+\+\s*(\w+)|(\w+)\s*\+\+|(\w+)\s*\+=\s*1")
_AROUND = ("parenthesized_expression", "field_expression")
_JUMPS = ("while_statement", "do_statement", "goto_statement", "switch_statement")


@dataclass(frozen=True)
class Reduction:
    """An accumulator of a loop: an operator, or the name of a choosing function."""

    variable: Variable
    operation: str

    @property
    def neutral(self) -> str | None:
        """What a lane that holds nothing yet starts with; None where any value does."""
        return _NEUTRAL.get(self.operation)

    def combined(self, other: str) -> str:
        """The statement that takes ``other`` in."""
        name = self.variable.name
        if self.operation in _NEUTRAL:
            return f"{name} {self.operation}= {other};"
        return f"{name} = {self.operation}({name}, {other});"


@dataclass(frozen=True)
class SharedLoop:
    """A ``for`` over consecutive integers whose rounds do not depend on each other."""

    node: Node
    counter: Variable
    reductions: tuple[Reduction, ...]
    touched: tuple[Access, ...]

    @property
    def stores(self) -> bool:
        return any(access.store for access in self.touched)


def shared_loop(affine: Affine, node: Node) -> SharedLoop:
    """The loop as one that can be shared. Raises NotCertainError."""
    if node.type != "for_statement" or node.parent is None:
        raise NotCertainError("no for loop")
    if node.parent.type != "compound_statement":
        raise NotCertainError("a loop without braces around it")
    counter = _counter(affine, node)
    body = node.child_by_field_name("body")
    if body is None or leaves(node) or any(n.type in _JUMPS for n in walk(node)):
        raise NotCertainError("a loop that may be left early")
    touched = tuple(a for a in accesses(affine) if _within(a.node, body))
    _only_followed(body, touched)
    reductions = _Reading(affine, node, counter).reductions()
    for access in touched:
        if access.store:
            _own_element(affine, access, counter, touched)
    return SharedLoop(node, counter, reductions, touched)


def _only_followed(body: Node, touched: tuple[Access, ...]) -> None:
    """Refuses a store to what is no parameter's: a lane's own struct, a pointer that moves."""
    stores = {(a.node.start_byte, a.node.end_byte) for a in touched if a.store}
    for node in walk(body):
        if node.type == "assignment_expression":
            target = node.child_by_field_name("left")
        elif node.type == "update_expression":
            target = node.child_by_field_name("argument")
        else:
            continue
        while target is not None and target.type in _AROUND:
            target = target.named_child(0)
        if target is None or target.type not in ("subscript_expression", "pointer_expression"):
            continue
        if (target.start_byte, target.end_byte) not in stores:
            raise NotCertainError("a store that cannot be followed")


def place(access: Access, counter: Variable) -> Polynomial:
    """An index with the loop's counter under a name that all loops share."""
    return Polynomial.of(
        {
            tuple(sorted("<counter>" if s == counter.symbol else s for s in monomial)): factor
            for monomial, factor in access.index.terms
        }
    )


def _counter(affine: Affine, node: Node) -> Variable:
    """The counter of ``for (int j = A; j < B; ++j)``."""
    kernel = affine.kernel
    counters = [v for v in kernel.variables if v.scope == node and v.value is not None]
    update, condition = (node.child_by_field_name(n) for n in ("update", "condition"))
    if len(counters) != 1 or update is None or condition is None:
        raise NotCertainError("no counter")
    (counter,) = counters
    step = _STEP.fullmatch(kernel.text(update))
    if kernel.loop_of(counter) != node or not step or counter.name not in step.groups():
        raise NotCertainError("a step that is not 1")
    if not INTEGRAL.fullmatch(counter.type + " "):
        raise NotCertainError("a counter that is no integer")
    compared = bare(condition)
    if compared.type != "binary_expression" or compared.children[1].type not in ("<", "<="):
        raise NotCertainError("a condition that is no upper bound")
    if kernel.text(compared.children[0]) != counter.name:
        raise NotCertainError("a condition on something else")
    if counter.name in {kernel.text(n) for n in walk(compared.children[2])}:
        raise NotCertainError("a bound that moves")
    return counter


@dataclass
class _Reading:
    """What one loop does to the variables around it."""

    affine: Affine
    loop: Node
    counter: Variable
    _operations: dict[int, Reduction] = field(default_factory=dict)
    _allowed: set[int] = field(default_factory=set)  # where an accumulator's name may stand

    def reductions(self) -> tuple[Reduction, ...]:
        kernel = self.affine.kernel
        body = self.loop.child_by_field_name("body")
        assert body is not None
        for node in walk(body):
            if node.type == "if_statement":
                self._choice(node)
        for node in walk(body):
            if node.type == "assignment_expression":
                self._assignment(node)
            elif node.type == "update_expression":
                self._local(node.child_by_field_name("argument"))
            elif node.type == "call_expression":
                self._call(node)
            elif node.type == "lambda_expression":
                raise NotCertainError("a lambda")
        names = {r.variable.start for r in self._operations.values()}
        for node in walk(self.loop):
            variable = kernel.resolve(node) if node.type == "identifier" else None
            if (
                variable is not None
                and variable.start in names
                and node.start_byte not in self._allowed
            ):
                raise NotCertainError("an accumulator that is looked at")
        return tuple(self._operations.values())

    def _outer(self, node: Node | None) -> Variable | None:
        """The scalar from outside of the loop that a plain name means; None for one inside."""
        if node is None or node.type != "identifier":
            raise NotCertainError("a target that is no name")
        variable = self.affine.kernel.resolve(node)
        if variable is None or variable.array:
            raise NotCertainError("a target that is not known")
        inside = self.loop.start_byte <= variable.start < self.loop.end_byte
        return None if inside else variable

    def _local(self, node: Node | None) -> None:
        if node is None or (node.type == "identifier" and self._outer(node) is not None):
            raise NotCertainError("a variable that counts across rounds")

    def _assignment(self, node: Node) -> None:
        left, operator, right = node.children[0], node.children[1].type, node.children[2]
        if left.type in ("subscript_expression", "pointer_expression"):
            return  # an array's element: judged by its index
        variable = self._outer(left)
        if variable is None or left.start_byte in self._allowed:
            return
        text = self.affine.kernel.text
        if operator in _COMPOUND:
            self._reduce(variable, _COMPOUND[operator], left)
            return
        value = bare(right)
        if operator == "=" and value.type == "binary_expression" and value.children[1].type in "+*":
            mine = [c for c in (value.children[0], value.children[2]) if text(c) == variable.name]
            if len(mine) == 1:
                self._reduce(variable, value.children[1].type, left, mine[0])
                return
        if operator == "=" and value.type == "call_expression":
            called, arguments = (value.child_by_field_name(n) for n in ("function", "arguments"))
            if called is not None and arguments is not None and text(called) in _CHOOSING:
                mine = [a for a in arguments.named_children if text(a) == variable.name]
                if len(mine) == 1 and len(arguments.named_children) == 2:
                    self._reduce(variable, text(called), left, mine[0])
                    return
        raise NotCertainError("an assignment that is no reduction")

    def _choice(self, node: Node) -> None:
        """``if (x > m) m = x;`` chooses the larger."""
        then = node.child_by_field_name("consequence")
        condition = node.child_by_field_name("condition")
        if then is None or condition is None or node.child_by_field_name("alternative"):
            return
        if then.type == "compound_statement" and len(then.named_children) == 1:
            then = then.named_children[0]
        made = then.named_children[0] if then.type == "expression_statement" else None
        tested = bare(condition.child_by_field_name("value") or condition)
        if made is None or made.type != "assignment_expression" or made.children[1].type != "=":
            return
        if tested.type != "binary_expression" or tested.children[1].type[0] not in "<>":
            return
        text = self.affine.kernel.text
        target, value = made.children[0], made.children[2]
        sides = [tested.children[0], tested.children[2]]
        if {text(target), text(value)} != {text(side) for side in sides}:
            return
        variable = self._outer(target)
        if variable is None:
            return
        greater = tested.children[1].type[0] == ">"
        mine = next(side for side in sides if text(side) == text(target))
        larger = greater == (mine == sides[1])
        self._reduce(variable, "max" if larger else "min", target, mine)

    def _reduce(self, variable: Variable, operation: str, *names: Node) -> None:
        element = variable.element
        if element not in ("float", "double") and not INTEGRAL.fullmatch(element + " "):
            raise NotCertainError("an accumulator that cannot be shuffled")
        if variable.pointer or variable.parameter:
            raise NotCertainError("an accumulator that is no local")
        found = self._operations.setdefault(variable.start, Reduction(variable, operation))
        if found.operation != operation:
            raise NotCertainError("two operations on one accumulator")
        self._allowed |= {name.start_byte for name in names}

    def _call(self, node: Node) -> None:
        kernel = self.affine.kernel
        called, arguments = (node.child_by_field_name(n) for n in ("function", "arguments"))
        if called is None or arguments is None:
            raise NotCertainError("a call")
        if kernel.text(called) in (*PURE, "__ldg") or uncast(node) is not None:
            return
        if kernel.text(called).split("<")[0] not in _functions(kernel.syntax.root):
            raise NotCertainError("a call of what is not known")
        for argument in arguments.named_children:
            for inner in walk(argument):
                variable = kernel.resolve(inner) if inner.type == "identifier" else None
                if inner.type == "pointer_expression" or (
                    variable is not None and (variable.pointer or variable.array)
                    and inner.parent == arguments
                ):  # fmt: skip
                    raise NotCertainError("a call that may write")


def _functions(root: Node) -> frozenset[str]:
    """The device functions of the text that take neither pointers nor references."""
    return frozenset(
        name_of(node)
        for node in walk(root)
        if node.type == "function_definition"
        and (declarator := node.child_by_field_name("declarator")) is not None
        and not set(b"*&") & set(declarator.text or b"*")
    )


def _own_element(
    affine: Affine, access: Access, counter: Variable, touched: tuple[Access, ...]
) -> None:
    """Refuses a store that two rounds may make, or that another round may read."""
    stride = affine.coefficient(access.index, counter.symbol)
    if stride is None or not stride.value or len(access.loops) != len(_loops_of(counter, access)):
        raise NotCertainError("a store that several rounds may make")
    others = [a for a in touched if a.array == access.array]
    if any(other.index != access.index for other in others):
        raise NotCertainError("a store that another round may read")


def _loops_of(counter: Variable, access: Access) -> list[Node]:
    """The loops around an access from the counter's own outwards."""
    return [loop for loop in access.loops if loop.start_byte <= counter.scope.start_byte]


def _within(node: Node, outer: Node) -> bool:
    return outer.start_byte <= node.start_byte < outer.end_byte
