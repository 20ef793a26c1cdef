"""Double literals and functions in float code, which make a chip's few fp64 units do the work."""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from optiml_magic.model.candidate import Proposal
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.idea import Idea
from optiml_magic.model.refusal import Refusal
from optiml_magic.proposers.rewrites.guards import bare
from optiml_magic.proposers.rewrites.kernel import Kernel, builtin
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.syntax import Syntax, parse, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from optiml_magic.model.view import View
    from optiml_magic.source.program import Program

Kind = Literal["float", "integer", "literal", "unsure"]

_DOUBLE_LITERAL = re.compile(r"[-+]?(?:(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)")
_FLOAT_LITERAL = re.compile(r"[-+]?[\d.]+(?:[eE][-+]?\d+)?[fF]")
_INTEGERS = re.compile(r"(?:unsigned|signed|int|long|short|char|bool|size_t|u?int\d+_t|\s)+")
_NAMES = (
    "exp exp2 exp10 expm1 log log2 log10 log1p sqrt rsqrt cbrt pow fabs fmax fmin fmod sin cos "
    "tan sinh cosh tanh asin acos atan atan2 erf erfc floor ceil round trunc rint hypot fma "
    "copysign"
)
_FLOAT_NAMES = {name: name + "f" for name in _NAMES.split()}
_SAME_NAME = frozenset({"max", "min", "abs", "__expf", "__logf", "__powf", "__sinf", "__cosf",
                        "__fdividef", "__frcp_rn", "__fsqrt_rn"}) | frozenset(
    _FLOAT_NAMES.values())  # fmt: skip
_COMPARISONS = ("<", ">", "<=", ">=", "==", "!=")


class FloatLiterals:
    """``0.5`` becomes ``0.5f`` and ``exp(`` becomes ``expf(`` where all data is float."""

    name = "float_literals"

    def propose(self, program: Program, view: View) -> Iterator[Idea | Refusal]:
        """One idea for the whole text, and none where anything is declared double."""
        del view
        syntax = parse(program.text)
        found = _Demotion()
        for function in walk(syntax.root):
            if function.type == "function_definition" and _float_only(syntax, function):
                _demote_function(Kernel(syntax, function), found)
        if not found.edits:
            return
        declared = _declared_double(syntax)
        if declared:
            yield Refusal(
                self.name, "a declaration says double, which is taken for a wish", declared
            )
            return
        prior = 0.2 if found.casts else 0.6 if found.literals else 0.1
        yield Idea.of(
            Proposal(
                apply(program.text, found.edits.values()),
                _title(found),
                self.name,
                "A literal without f is a double: the operation around it is done in double "
                "precision, of which most chips do a fraction per clock, and converted back to "
                "float.",
                Hypothesis(
                    "smsp__inst_executed_pipe_fp64.sum",
                    "lower",
                    "the arithmetic stays in float",
                    (2.0, 100.0),
                ),
                prior=prior,
                arithmetic=_arithmetic(found),
            )
        )


@dataclass
class _Demotion:
    """Edits by their place, and what they are about."""

    edits: dict[tuple[int, int], Edit] = field(default_factory=dict)
    literals: list[str] = field(default_factory=list)
    casts: int = 0

    def replace(self, node: Node, text: str) -> None:
        self.edits[node.start_byte, node.end_byte] = Edit(node.start_byte, node.end_byte, text)

    def keep(self, other: _Demotion) -> None:
        self.edits |= other.edits
        self.literals += other.literals
        self.casts += other.casts


def _arithmetic(found: _Demotion) -> tuple[str, ...]:
    """The float versions of functions are those that float arguments choose in any case."""
    constants = ("double constants to float",) if found.literals else ()
    return (*constants, *(("double casts to float",) if found.casts else ()))


def _title(found: _Demotion) -> str:
    if not found.literals:
        return "call the float versions of math functions"
    names = list(dict.fromkeys(found.literals))
    return f"write {', '.join(names[:3])}{' ...' if len(names) > 3 else ''} as float"


def _declared_double(syntax: Syntax) -> int:
    """The first line on which anything but a cast says double; 0 where none does."""
    for node in walk(syntax.root):
        if node.type not in ("primitive_type", "type_identifier"):
            continue
        name = syntax.source(node)
        if name.startswith("double") and not _in_cast(node):
            return node.start_point[0] + 1
    return 0


def _in_cast(node: Node) -> bool:
    parent = node.parent
    if parent is not None and parent.type == "call_expression":
        return True
    grand = parent.parent if parent is not None else None
    if grand is None or parent is None or parent.type != "type_descriptor":
        return False
    cast = grand.parent.children[0].text if grand.parent is not None else None
    return grand.type == "cast_expression" or b"static_cast" in (cast or b"")


def _float_only(syntax: Syntax, function: Node) -> bool:
    """Whether a device function is no template and works on floats and integers alone."""
    if function.parent is not None and function.parent.type == "template_declaration":
        return False
    if function.has_error or not any(
        child.type in ("__global__", "__device__") for child in function.children
    ):
        return False
    kernel = Kernel(syntax, function)
    arrays = [v for v in kernel.variables if v.parameter and v.pointer]
    return all(re.fullmatch(r"float[234]?", v.element) or _integral(v.element) for v in arrays)


def _integral(written: str) -> bool:
    return bool(written) and _INTEGERS.fullmatch(written) is not None


def _demote_function(kernel: Kernel, found: _Demotion) -> None:
    for root in _roots(kernel):
        attempt = _Demotion()
        kind = _demote(kernel, root, attempt)
        if kind == "float":
            found.keep(attempt)
        elif kind == "literal":  # a conversion that the compiler does: tidy, but nothing to gain
            found.edits |= attempt.edits


def _roots(kernel: Kernel) -> Iterator[Node]:
    """Expressions whose value becomes a float, or is compared with one."""
    floats = {v.value for v in kernel.variables if v.value is not None and v.element == "float"
              and not v.pointer and not v.array}  # fmt: skip
    returns = kernel.function.child_by_field_name("type")
    for node in walk(kernel.body):
        if node in floats:
            yield node
        elif node.type == "assignment_expression":
            if _kind(kernel, node.children[0]) == "float":
                yield node.children[2]
        elif node.type == "return_statement" and node.named_children:
            if returns is not None and kernel.text(returns) == "float":
                yield node.named_children[0]
        elif node.type == "binary_expression" and node.children[1].type in _COMPARISONS:
            sides = [_demote(kernel, s, _Demotion()) for s in (node.children[0], node.children[2])]
            if "float" in sides and set(sides) <= {"float", "literal"}:
                yield from (node.children[0], node.children[2])
        elif node.type == "cast_expression" and kernel.text(node.children[1]) == "float":
            value = node.child_by_field_name("value")
            if value is not None:
                yield value


def _demote(kernel: Kernel, node: Node, found: _Demotion) -> Kind:
    """Collects the edits that make an expression float; "unsure" where it is not certain."""
    node = bare(node)
    if node.type == "number_literal":
        return _literal(kernel, node, found)
    if node.type == "unary_expression" and node.children[0].type in ("+", "-"):
        return _demote(kernel, node.children[1], found)
    if node.type == "binary_expression" and node.children[1].type in ("+", "-", "*", "/"):
        sides = (node.children[0], node.children[2])
        return _joined([_demote(kernel, side, found) for side in sides])
    if node.type == "conditional_expression":
        branches = (node.child_by_field_name(f) for f in ("consequence", "alternative"))
        return _joined([_demote(kernel, b, found) for b in branches if b is not None])
    if node.type == "call_expression":
        return _call(kernel, node, found)
    if node.type == "cast_expression":
        return _cast(kernel, node, found)
    return _kind(kernel, node)


def _joined(kinds: list[Kind]) -> Kind:
    """The kind of an operation; an integer variable beside nothing but literals stays in double."""
    if "unsure" in kinds or {"integer", "literal"} == set(kinds):
        return "unsure"
    return "float" if "float" in kinds else kinds[0]


def _literal(kernel: Kernel, node: Node, found: _Demotion) -> Kind:
    text = kernel.text(node)
    if _FLOAT_LITERAL.fullmatch(text):
        return "literal"
    if _DOUBLE_LITERAL.fullmatch(text):
        if not _fits(float(text)):
            return "unsure"
        found.replace(node, text + "f")
        found.literals.append(text)
        return "literal"
    return "integer" if text.lstrip("+-").isdigit() and abs(int(text)) < 2**24 else "unsure"


def _fits(value: float) -> bool:
    """Whether a float holds the value with its full precision."""
    try:
        near = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return False
    return math.isfinite(near) and (value == 0.0 or abs(value) >= 2.0**-126)


def _call(kernel: Kernel, node: Node, found: _Demotion) -> Kind:
    called, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if called is None or arguments is None:
        return "unsure"
    name, inside = kernel.text(called), arguments.named_children
    if name in ("double", "static_cast<double>") and len(inside) == 1:
        found.replace(called, name.replace("double", "float"))
        found.casts += 1
        kind = _demote(kernel, inside[0], found)
        return "float" if kind != "unsure" else kind
    if name in ("float", "static_cast<float>"):
        return "float"
    if name == "__ldg" or name.startswith("__shfl"):
        return _kind(kernel, inside[-1 if name == "__ldg" else 1]) if inside else "unsure"
    plain = name.removeprefix("std::").removeprefix("::")
    if plain not in _FLOAT_NAMES and name not in _SAME_NAME:
        return _declared(kernel, name)
    kind = _joined([_demote(kernel, a, found) for a in inside])
    if kind == "float" and plain in _FLOAT_NAMES:
        found.replace(called, _FLOAT_NAMES[plain])
        if plain == "pow":
            found.literals += [kernel.text(a) for a in inside if kernel.text(a).isdigit()]
    return kind if kind in ("float", "integer") else "unsure"


def _declared(kernel: Kernel, name: str) -> Kind:
    """The kind that a function of this text returns."""
    for node in walk(kernel.syntax.root):
        if node.type == "function_definition":
            other, returns = Kernel(kernel.syntax, node), node.child_by_field_name("type")
            if other.name == name and returns is not None:
                return "float" if kernel.text(returns) == "float" else "unsure"
    return "unsure"


def _cast(kernel: Kernel, node: Node, found: _Demotion) -> Kind:
    written, value = node.child_by_field_name("type"), node.child_by_field_name("value")
    if written is None or value is None:
        return "unsure"
    name = kernel.text(written)
    if name == "float":
        return "float"
    if name != "double":
        return "integer" if _integral(name) else "unsure"
    found.replace(written, "float")
    found.casts += 1
    return "float" if _demote(kernel, value, found) != "unsure" else "unsure"


def _kind(kernel: Kernel, node: Node) -> Kind:
    """The kind of a variable or an element."""
    node = bare(node)
    if builtin(node):
        return "integer"
    if node.type == "pointer_expression":
        return _kind(kernel, node.children[1])
    if node.type == "subscript_expression":
        return _kind(kernel, node.children[0])
    if node.type == "field_expression":
        inner = node.children[0]
        while inner.type == "subscript_expression":
            inner = inner.children[0]
        variable = kernel.resolve(inner) if inner.type == "identifier" else None
        vector = variable is not None and re.fullmatch(r"float[234]", variable.element)
        return "float" if vector else "unsure"
    variable = kernel.resolve(node) if node.type == "identifier" else None
    if variable is None:
        return "unsure"
    return (
        "float"
        if variable.element == "float"
        else "integer"
        if _integral(variable.element)
        else "unsure"
    )
