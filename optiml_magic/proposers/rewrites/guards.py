"""Control flow around a loop made the same for all threads of a block, so that barriers fit in.

``if (row < m) { ... }`` and ``if (row >= m) return;`` become a flag, which guards the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from optiml_magic.proposers.rewrites.affine import MEMORY, PURE, Affine, uncast
from optiml_magic.proposers.rewrites.layout import line_end, line_start
from optiml_magic.proposers.rewrites.surgery import NotCertainError, Surgery
from optiml_magic.source.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from optiml_magic.proposers.rewrites.kernel import Kernel

_FLIPPED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
_IMPURE = ("subscript_expression", "pointer_expression", "assignment_expression",
           "update_expression", "lambda_expression", "new_expression")  # fmt: skip
_LOOPS = ("for_statement", "while_statement", "do_statement")


@dataclass(frozen=True)
class Condition:
    """Something that holds for the threads that reach the loop: ``node``, or its negation."""

    node: Node
    negated: bool

    def conjuncts(self, kernel: Kernel) -> Iterator[Condition]:
        """The parts that all hold, those of a steady flag included."""
        node = bare(self.node)
        splits = "||" if self.negated else "&&"
        flag = kernel.resolve(node) if node.type == "identifier" else None
        if flag is not None and "bool" in flag.type and flag.value and kernel.steady(flag):
            yield from Condition(flag.value, self.negated).conjuncts(kernel)
        elif node.type == "binary_expression" and node.children[1].type == splits:
            yield from Condition(node.children[0], self.negated).conjuncts(kernel)
            yield from Condition(node.children[2], self.negated).conjuncts(kernel)
        else:
            yield Condition(node, self.negated)


@dataclass
class Guards:
    """The way from a kernel's start to ``loop``; ``conditions`` differ between threads."""

    affine: Affine
    loop: Node
    surgery: Surgery
    conditions: list[Condition] = field(default_factory=list)
    active: str = ""
    _allowed: set[int] = field(default_factory=set)

    def flatten(self) -> None:
        """Collects the edits after which every thread of the block reaches the loop.

        Raises NotCertainError where something on the way cannot be told to be safe.
        """
        way = [self.loop]
        while way[-1] != self.affine.kernel.body:
            parent = way[-1].parent
            assert parent is not None
            way.append(parent)
        returns = [n for n in walk(self.affine.kernel.body) if n.type == "return_statement"]
        self._allowed = {r.start_byte for r in returns if r.start_byte > self.loop.end_byte}
        self._descend(list(reversed(way)))
        if any(r.start_byte not in self._allowed for r in returns):
            raise NotCertainError("a return that is no guard")

    def _descend(self, way: list[Node]) -> None:
        node, *rest = way
        if not rest:
            return
        if node.type == "compound_statement":
            outside = self._before(node, rest[0])
            self._after(node, rest[0], outside)
        elif node.type == "if_statement":
            self._branch(node, rest[0])
        elif node.type == "for_statement":
            self._outer_loop(node)
        elif node.type not in ("else_clause", "condition_clause"):
            raise NotCertainError(node.type)
        else:
            raise NotCertainError("an else branch")
        self._descend(rest)

    def _before(self, block: Node, child: Node) -> str:
        """Handles the statements before ``child``; the flag that guards those after it."""
        for node in block.named_children:
            if node.start_byte >= child.start_byte:
                break
            if node.type == "preproc_call":  # a pragma belongs to the statement below it
                if self.active and node.next_named_sibling != child:
                    raise NotCertainError("a pragma under a guard")
                continue
            condition = returns_if(node)
            if condition is not None:
                self._allowed |= {n.start_byte for n in walk(node) if n.type == "return_statement"}
                if not self.affine.uniform(condition):
                    self._raise_flag(node, Condition(condition, negated=True))
            elif self.active and node.type != "comment":
                self._guard(node)
        return self.active

    def _after(self, block: Node, child: Node, flag: str) -> None:
        later = [
            node
            for node in block.named_children
            if node.start_byte > child.start_byte and node.type != "comment"
        ]
        if flag and later:
            for node in later:
                _no_barrier(self.affine, node)
            self.surgery.wrap(later[0], later[-1], f"if ({flag})")

    def _guard(self, node: Node) -> None:
        """Lets a statement before the loop run for the threads of the flag alone."""
        _no_barrier(self.affine, node)
        if node.type != "declaration":
            self.surgery.wrap(node, node, f"if ({self.active})")
        elif any(self._impure(n) for n in walk(node)):
            self._guard_value(node)

    def _guard_value(self, node: Node) -> None:
        declarators = node.children_by_field_name("declarator")
        value = declarators[0].child_by_field_name("value") if len(declarators) == 1 else None
        if value is None or value.type == "initializer_list":
            raise NotCertainError("a definition that reads memory")
        variable = next((v for v in self.affine.kernel.variables if v.value == value), None)
        if variable is None or variable.pointer or variable.array or "auto" in variable.type:
            if variable is not None and variable.pointer and not _reads(value):
                return
            raise NotCertainError("a definition that reads memory")
        self.surgery.replace(value.start_byte, value.start_byte, f"{self.active} ? ")
        nothing = f" : {variable.element}()"
        self.surgery.replace(value.end_byte, value.end_byte, nothing)

    def _branch(self, node: Node, child: Node) -> None:
        condition = _tested(node)
        if condition is None or node.child_by_field_name("alternative") is not None:
            raise NotCertainError("a branch with an alternative")
        if child.start_byte < condition.end_byte:
            raise NotCertainError("a loop in a condition")
        if self.affine.uniform(condition) and MEMORY not in self.affine.depends(condition):
            return
        self._same_names(node, child)
        flag = self._flag(Condition(condition, negated=False))
        blanks = self.surgery.blanks(node)
        first, last = int(child.start_point[0]), int(child.end_point[0])
        if child.type != "compound_statement":
            flag = flag or f"// for {self.active} threads"
            text = f"{flag}\n{blanks}"
            self.surgery.replace(node.start_byte, child.start_byte, text)
            self.surgery.move(first + (first == int(node.start_point[0])), last, -1)
            return
        opening, closing = child.children[0], child.children[-1]
        if flag:
            self.surgery.replace(node.start_byte, opening.end_byte, flag)
        else:
            start = line_start(self.affine.kernel, node.start_byte)
            stop = line_end(self.affine.kernel, opening.end_byte)
            self.surgery.replace(start, stop + 1, "")
        self._drop_line(opening, closing)
        self.surgery.move(first + 1, last - 1, -1)

    def _drop_line(self, opening: Node, closing: Node) -> None:
        """Removes a closing brace, and its line where it stands alone."""
        text = self.affine.kernel.syntax.text
        rest = text[opening.end_byte : text.find(b"\n", opening.end_byte)].strip()
        if rest and not rest.startswith(b"//"):
            raise NotCertainError("a block on one line")
        start = text.rfind(b"\n", 0, closing.start_byte) + 1
        stop = text.find(b"\n", closing.end_byte) + 1
        if text[start:stop].strip() == b"}":
            self.surgery.replace(start, stop, "")
        else:
            raise NotCertainError("a block on one line")

    def _outer_loop(self, node: Node) -> None:
        condition = node.child_by_field_name("condition")
        counter = next((v for v in self.affine.kernel.variables if v.scope == node), None)
        if condition is None or counter is None or counter.value is None:
            raise NotCertainError("a loop without a counter")
        for part in (condition, counter.value):
            if not self.affine.uniform(part) or MEMORY in self.affine.depends(part):
                raise NotCertainError("a loop whose rounds differ between threads")
        if self.affine.kernel.loop_of(counter) is None or leaves(node):
            raise NotCertainError("a loop that is left early")

    def _raise_flag(self, node: Node, condition: Condition) -> None:
        self.surgery.replace(node.start_byte, node.end_byte, self._flag(condition))

    def _flag(self, condition: Condition) -> str:
        """The definition of a new flag: the one before and this condition."""
        if any(self._impure(n) for n in walk(condition.node)):
            raise NotCertainError("a guard that reads memory or calls")
        self.conditions.append(condition)
        if not self.active and self._is_flag(condition):
            self.active = self.affine.kernel.text(bare(condition.node))
            return ""
        text = self.written(condition)
        if self.active:
            text = f"{self.active} && " + (f"({text})" if "||" in text else text)
        self.active = self.surgery.fresh("active")
        return f"const bool {self.active} = {text};"

    def _impure(self, node: Node) -> bool:
        """Whether a node reads memory, writes, or calls what is not known to be harmless."""
        if node.type != "call_expression":
            return node.type in _IMPURE
        called = node.child_by_field_name("function")
        known = called is not None and self.affine.kernel.text(called) in PURE
        return not known and uncast(node) is None

    def _is_flag(self, condition: Condition) -> bool:
        """Whether the condition is the name of a local that never changes: it guards as it is."""
        node, kernel = bare(condition.node), self.affine.kernel
        variable = kernel.resolve(node) if node.type == "identifier" else None
        known = variable is not None and variable.value is not None and kernel.steady(variable)
        return known and not condition.negated

    def written(self, condition: Condition) -> str:
        """The condition as C, its negation pushed down to the comparisons."""
        return negation(self.affine, condition.node) if condition.negated else (
            self.affine.kernel.text(bare(condition.node))
        )  # fmt: skip

    def _same_names(self, node: Node, child: Node) -> None:
        """Refuses a block whose names would meet those of the block around it."""
        variables = self.affine.kernel.variables
        inner = {v.name for v in variables if v.scope == child}
        outer = {v.name for v in variables if v.scope != child and not (
            child.start_byte <= v.scope.start_byte < child.end_byte) and v.scope.start_byte
            <= node.start_byte}  # fmt: skip
        if inner & outer:
            raise NotCertainError("a name that is declared twice")


def returns_if(node: Node) -> Node | None:
    """The condition of ``if (...) return;``."""
    if node.type != "if_statement" or node.child_by_field_name("alternative") is not None:
        return None
    then = node.child_by_field_name("consequence")
    if then is not None and then.type == "compound_statement":
        inside = [c for c in then.named_children if c.type != "comment"]
        then = inside[0] if len(inside) == 1 else None
    return _tested(node) if then is not None and then.type == "return_statement" else None


def leaves(loop: Node) -> bool:
    """Whether a loop's rounds may end early or be left: break, continue, return, goto."""
    for node in walk(loop):
        if node.type in ("return_statement", "goto_statement"):
            return True
        if node.type in ("break_statement", "continue_statement"):
            owner = node.parent
            inner = (*_LOOPS, "switch_statement") if node.type == "break_statement" else _LOOPS
            while owner is not None and owner.type not in inner:
                owner = owner.parent
            if owner == loop:
                return True
    return False


def bare(node: Node) -> Node:
    """``node`` without the parentheses around it."""
    while node.type == "parenthesized_expression" and len(node.named_children) == 1:
        node = node.named_children[0]
    return node


def negation(affine: Affine, node: Node) -> str:
    """The opposite of an integer condition."""
    node = bare(node)
    if node.type == "binary_expression":
        left, op, right = node.children
        if op.type in _FLIPPED:
            return f"{affine.kernel.text(left)} {_FLIPPED[op.type]} {affine.kernel.text(right)}"
        if op.type in ("&&", "||"):
            parts = [negation(affine, left), negation(affine, right)]
            if op.type == "&&":
                return " || ".join(parts)
            return " && ".join(f"({part})" if "||" in part else part for part in parts)
    return f"!({affine.kernel.text(node)})"


def _tested(node: Node) -> Node | None:
    clause = node.child_by_field_name("condition")
    if clause is None or clause.child_by_field_name("initializer") is not None:
        return None
    return (
        clause.child_by_field_name("value") if clause.type == "condition_clause" else bare(clause)
    )


def _reads(node: Node) -> bool:
    """Whether a pointer expression looks at memory, beyond taking an element's address."""
    return any(
        n.type == "call_expression"
        or (n.type == "pointer_expression" and n.children[0].type == "*")
        or (n.type == "subscript_expression" and not _addressed(n))
        for n in walk(node)
    )  # fmt: skip


def _addressed(node: Node) -> bool:
    parent = node.parent
    return (
        parent is not None
        and parent.type == "pointer_expression"
        and parent.children[0].type == "&"
    )


def _no_barrier(affine: Affine, node: Node) -> None:
    text = affine.kernel.text(node)
    if any(word in text for word in ("__sync", "__shfl", "__ballot", "_sync(")):
        raise NotCertainError("threads that wait for each other under a guard")
