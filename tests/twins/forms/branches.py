"""``x = c ? a : b;`` as ``if (c) x = a; else x = b;``."""

from __future__ import annotations

from tree_sitter import Node

from tests.twins.tree import Edit, Syntax, field, names, repeated, replace, src, walk


def _chosen(target: str, choice: Node, sign: str = "=") -> str:
    """Both assignments under their condition."""
    when, one, other = (src(field(choice, f)) for f in ("condition", "consequence", "alternative"))
    return f"if ({when}) {target} {sign} {one}; else {target} {sign} {other};"


def _step(syntax: Syntax) -> list[Edit]:
    for choice in walk(syntax.root):
        if choice.type != "conditional_expression" or choice.parent is None:
            continue
        parent, grand = choice.parent, choice.parent.parent
        if grand is None or grand.parent is None or grand.parent.type != "compound_statement":
            continue
        if parent.type == "assignment_expression" and grand.type == "expression_statement":
            sign = src(field(parent, "operator"))
            return [replace(grand, f"{{ {_chosen(src(field(parent, 'left')), choice, sign)} }}")]
        if parent.type == "init_declarator" and len(names(grand)) == 1:
            name = names(grand)[0]
            if name.kind == "scalar" and not name.constant:
                text = f"{name.type} {name.name};\n{_chosen(name.name, choice)}"
                return [replace(grand, text)]
    return []


def apply(text: str) -> str | None:
    return repeated(text, _step)
