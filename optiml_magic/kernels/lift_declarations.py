"""Declarations of the grammar to ours: types, declarators, parameters and first values."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from tree_sitter import Node

from optiml_magic.kernels.expressions import Binary, Expr, Index, Literal, Name, Span
from optiml_magic.kernels.lift_expressions import (
    ExpressionLifter,
    blanks,
    operands,
    span_of,
)
from optiml_magic.kernels.preprocessor.preprocess import Preprocessed
from optiml_magic.kernels.tree import (
    Declare,
    Statement,
    Storage,
    TemplateParameter,
    TypeName,
    Variable,
    Verbatim,
)
from optiml_magic.kernels.types import named

_NAMES = frozenset({"identifier", "field_identifier", "type_identifier"})
_QUALIFIERS = frozenset({"type_qualifier", "ms_pointer_modifier"})  # `__restrict` is the latter
_KEYWORDS = ("struct ", "union ", "enum ", "typename ", "class ")
_PARAMETERS = frozenset(
    {
        "parameter_declaration", "optional_parameter_declaration",
        "variadic_parameter_declaration",
    }
)  # fmt: skip


@dataclass
class _Shape:
    """What a declarator makes of its type."""

    name: str = ""
    depth: int = 0
    reference: bool = False
    restrict: bool = False
    function: bool = False
    extents: tuple[Expr | None, ...] = ()
    parts: tuple[Node, ...] = ()  # the names of ``auto [a, b]``


@dataclass(kw_only=True)
class DeclarationLifter(ExpressionLifter):
    """Lifts declarations; lines are those of the text as written."""

    origin: Preprocessed
    newlines: tuple[int, ...]

    def verbatim(self, node: Node, reason: str, lead: Span | None) -> Verbatim:
        """A statement that is kept as it is."""
        raise NotImplementedError

    def line(self, node: Node) -> int:
        at = self.origin.origin(node.start_byte, node.end_byte)[0]
        return bisect_right(self.newlines, at - 1) + 1

    def _type(self, node: Node) -> TypeName:
        """The type in front of the declarators, with the qualifiers around it."""
        words = [self.text(c) for c in node.children if c.type == "type_qualifier"]
        spelled = blanks(self.text(node.child_by_field_name("type")))
        for keyword in _KEYWORDS:
            spelled = spelled.removeprefix(keyword)
        const = "const" in words or "constexpr" in words
        return TypeName(spelled, 0, False, const, "volatile" in words)

    def _shape(self, node: Node | None) -> _Shape:
        shape = _Shape()
        extents: list[Expr | None] = []
        while node is not None and node.type not in _NAMES:
            kind = node.type
            if kind in ("pointer_declarator", "abstract_pointer_declarator"):
                shape.depth += 1
                words = (self.text(c) for c in node.children if c.type in _QUALIFIERS)
                shape.restrict |= any("restrict" in word for word in words)
            elif kind in ("reference_declarator", "abstract_reference_declarator"):
                shape.reference = True
            elif kind == "array_declarator":
                size = node.child_by_field_name("size")
                extents.append(self.expression(size) if size is not None else None)
            elif kind == "function_declarator":
                shape.function = True
            elif kind == "structured_binding_declarator":
                shape.parts = tuple(node.named_children)
            node = node.child_by_field_name("declarator") or declarator_in(node)
        shape.name = self.text(node)
        shape.extents = tuple(reversed(extents))
        return shape

    def _parameter(self, node: Node) -> Variable:
        shape = self._shape(node.child_by_field_name("declarator"))
        base = self._type(node)
        # An array as a parameter is a pointer to its elements; its first extent is not checked.
        depth = base.depth + shape.depth + bool(shape.extents)
        kind = "function pointer" if shape.function else base.base
        variable = Variable(
            shape.name,
            TypeName(kind, depth, shape.reference, base.const, base.volatile),
            "parameter",
            self.line(node),
            span_of(node),
            shape.extents[1:] if not shape.reference else shape.extents,
            restrict=shape.restrict,
        )
        if variable.name:
            self.scopes[-1][variable.name] = variable
        return variable

    def _template(self, function: Node) -> tuple[TemplateParameter, ...]:
        parent = function.parent
        listed = parent.child_by_field_name("parameters") if parent is not None else None
        if parent is None or parent.type != "template_declaration" or listed is None:
            return ()
        found = []
        for node in listed.named_children:
            if node.type == "comment":
                continue
            is_type = "type_parameter" in node.type
            default = node.child_by_field_name("default_type" if is_type else "default_value")
            if is_type:
                named = next((c for c in node.children if c.type == "type_identifier"), None)
                name = self.text(named)
            else:
                name = self._shape(node.child_by_field_name("declarator")).name
            pack = node.type.startswith("variadic")
            found.append(TemplateParameter(name, is_type, self.text(default) or None, pack))
        return tuple(found)

    def _namespaces(self, node: Node) -> list[str]:
        names = []
        parent = node.parent
        while parent is not None:
            if parent.type == "namespace_definition":
                names.append(self.text(parent.child_by_field_name("name")))
            parent = parent.parent
        return [name for name in reversed(names) if name]

    def declaration(self, node: Node, lead: Span | None) -> Statement:
        base = self._type(node)
        qualifiers = {self.text(c) for c in node.children
                      if c.type in ("type_qualifier", "storage_class_specifier")
                      or c.type.startswith("__")}  # fmt: skip
        storage: Storage = "local"
        if "__shared__" in qualifiers:
            storage = "dynamic" if "extern" in qualifiers else "shared"
        elif "static" in qualifiers or "__constant__" in qualifiers:
            storage = "static"
        variables = []
        tested = node.child_by_field_name("value")  # of what a condition declares
        for declarator in node.children_by_field_name("declarator"):
            inner = declarator.child_by_field_name("declarator")
            value = tested or declarator.child_by_field_name("value")
            is_init = declarator.type == "init_declarator"
            shape = self._shape(inner if is_init else declarator)
            for part in shape.parts:
                own = Variable(self.text(part), base, storage, self.line(part), span_of(part))
                self.scopes[-1][own.name] = own
            if shape.parts:
                return self.verbatim(node, "a declaration of names for parts of a value", lead)
            given = self._given(declarator) if shape.function else ()
            if given is None or not shape.name:
                return self.verbatim(node, "a declaration that is not understood", lead)
            first, initial = self._initial(value) if is_init or tested else _begun(given)
            if _opening(value) == "{" and first is None and not initial:
                first = _nothing(base, shape)
            kind = TypeName(base.base, base.depth + shape.depth, shape.reference, base.const,
                            base.volatile)  # fmt: skip
            end = tested.end_byte if tested is not None else declarator.end_byte
            variable = Variable(
                shape.name, kind, storage, self.line(declarator), (declarator.start_byte, end),
                shape.extents, first, initial, shape.restrict, "(" if given else _opening(value),
            )  # fmt: skip
            self.scopes[-1][shape.name] = variable
            variables.append(variable)
        declarators = node.children_by_field_name("declarator")
        words = self.syntax.text[node.start_byte : declarators[0].start_byte].decode()
        return Declare(span_of(node), self.line(node), words, tuple(variables), lead=lead)

    def _initial(self, value: Node | None) -> tuple[Expr | None, tuple[Expr, ...]]:
        """The one value that a variable begins with, or the several that make it."""
        if value is None:
            return None, ()
        if value.type in ("argument_list", "initializer_list"):
            return _begun(tuple(self.expression(c) for c in operands(value)))
        return self.expression(value), ()

    def _given(self, declarator: Node) -> tuple[Expr, ...] | None:
        """What ``T a(x, y[i], u * v)`` is made of, where all of these are variables in sight.

        The grammar takes them for parameters of a function. None where it is one.
        """
        listed = declarator.child_by_field_name("parameters")
        name = declarator.child_by_field_name("declarator")
        if listed is None or name is None or name.type != "identifier":
            return None
        found: list[Expr] = []
        for node in (c for c in listed.named_children if c.type != "comment"):
            kind, inner = (node.child_by_field_name(f) for f in ("type", "declarator"))
            plain = node.type == "parameter_declaration" and len(node.named_children) <= 2
            own = self._in_sight(kind) if plain and kind is not None else None
            part = self._argument(own, inner) if own is not None else None
            if part is None:
                return None
            found.append(part)
        return tuple(found) or None

    def _in_sight(self, node: Node) -> Name | None:
        name = self.text(node)
        variable = self.resolve(name) if node.type in _NAMES else None
        return Name(span_of(node), name, variable) if variable is not None else None

    def _argument(self, first: Expr, node: Node | None) -> Expr | None:
        """An expression that begins with a name and goes on as what was taken for a declarator."""
        if node is None:
            return first
        span = (first.span[0], node.end_byte) if first.span is not None else None
        inner = node.child_by_field_name("declarator")
        match node.type:
            case "abstract_array_declarator":
                size, base = node.child_by_field_name("size"), self._argument(first, inner)
                if size is None or base is None:
                    return None
                return Index(span, base, self.expression(size))
            case "pointer_declarator" | "reference_declarator":
                second = self._factor(inner or declarator_in(node))
                op = "*" if node.type.startswith("pointer") else "&"
                return Binary(span, op, first, second) if second is not None else None
        return None

    def _factor(self, node: Node | None) -> Expr | None:
        """The other side of a product: a name, or an element of what one names."""
        if node is None or node.type != "array_declarator":
            return self._in_sight(node) if node is not None else None
        size = node.child_by_field_name("size")
        base = self._factor(node.child_by_field_name("declarator"))
        return Index(span_of(node), base, self.expression(size)) if size and base else None


def _begun(parts: tuple[Expr, ...]) -> tuple[Expr | None, tuple[Expr, ...]]:
    return (parts[0], ()) if len(parts) == 1 else (None, parts)


def _opening(value: Node | None) -> str:
    kinds = {"argument_list": "(", "initializer_list": "{"}
    return kinds.get(value.type, "=") if value is not None else "="


def _nothing(base: TypeName, shape: _Shape) -> Expr | None:
    """What empty braces make of numbers; a record may say otherwise."""
    number = named(base.base, {}).kind in ("int", "bool", "float")
    return Literal(None, "0", 0) if number and not base.depth and not shape.depth else None


def declarator_in(node: Node) -> Node | None:
    """The declarator that a reference or a parenthesis holds, which the grammar does not name."""
    return next(
        (c for c in node.named_children if c.type in _NAMES or c.type.endswith("_declarator")), None
    )


def is_parameter(node: Node) -> bool:
    if node.type == "parameter_declaration" and node.text == b"void":
        return False
    return node.type in _PARAMETERS
