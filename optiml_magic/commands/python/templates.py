"""Kernels that Python fills in with plain numbers and words of its own text."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Mapping

from optiml_magic.commands.python.names import bound

_KERNEL = "__global__"
_WHOLE = {ast.Add: int.__add__, ast.Sub: int.__sub__, ast.Mult: int.__mul__,
          ast.FloorDiv: int.__floordiv__}  # fmt: skip
Plain = str | int | float


def with_templates_filled(tree: ast.Module) -> ast.Module:
    """The module with each kernel as its f-string, ``%``, ``format`` or ``replace`` makes it.

    Only where all that goes into it stands in the text once and for all, and holds no kernel.
    """
    if not any(isinstance(n, ast.Constant) and _KERNEL in str(n.value) for n in ast.walk(tree)):
        return tree
    times = Counter(bound(tree))
    once = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and times[target.id] == 1
    }
    asked = Counter(n.id for n in ast.walk(tree)
                    if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))  # fmt: skip
    own = {name: value for name, value in once.items() if asked[name] == 1}
    whole = copy.deepcopy(tree)
    _Filled(once, own).visit(whole)
    return whole


class _Filled(ast.NodeTransformer):
    """Templates as what they are filled to; ``own`` are names that one place asks for."""

    def __init__(self, once: Mapping[str, ast.expr], own: Mapping[str, ast.expr]) -> None:
        self._once = once
        self._own = own
        self._used: set[str] = set()

    def visit_Module(self, node: ast.Module) -> ast.Module:
        """A template that was filled is not a kernel of its own any more."""
        self.generic_visit(node)
        for inner in ast.walk(node):
            plain = isinstance(inner, ast.Assign) and isinstance(inner.value, ast.Constant)
            targets = inner.targets if isinstance(inner, ast.Assign) and plain else []
            if isinstance(inner, ast.Assign) and self._used & set(map(ast.unparse, targets)):
                inner.value = ast.Constant("", lineno=inner.lineno, col_offset=0)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        """``f"... {BLOCK} ..."``."""
        parts = [self._part(value) for value in node.values]
        text = "".join(str(part) for part in parts)
        return _constant(text, node) if None not in parts and _KERNEL in text else node

    def _part(self, node: ast.expr) -> Plain | None:
        match node:
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return self._value(value)
            case ast.Constant(value=str(text)):
                return text
        return None

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """``code % (n, m)`` and ``code % {"N": n}``."""
        self.generic_visit(node)
        if not isinstance(node.op, ast.Mod) or (template := self._template(node.left)) is None:
            return node
        values: object = None
        match node.right:
            case ast.Tuple(elts=elements):
                several = [self._value(one) for one in elements]
                values = None if None in several else tuple(several)
            case ast.Dict(keys=keys, values=given):
                named = {self._value(k) if k else None: self._value(v)
                         for k, v in zip(keys, given, strict=True)}  # fmt: skip
                values = None if None in (*named, *named.values()) else named
            case one:
                values = self._value(one)
        if values is None:
            return node
        try:
            return self._made(template % values, node.left, node)
        except (TypeError, ValueError, KeyError):
            return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """``code.format(N=n)`` and ``code.replace("N", "4")``."""
        self.generic_visit(node)
        match node.func:
            case ast.Attribute(value=value, attr="format" | "replace" as method):
                template = self._template(value)
            case _:
                return node
        given = [self._value(one) for one in node.args]
        words = {word.arg or "": self._value(word.value) for word in node.keywords}
        if template is None or None in (*given, *words.values()) or "" in words:
            return node
        try:
            filled = getattr(template, method)(*given, **words)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError):
            return node
        return self._made(filled, value, node)

    def _made(self, text: str, template: ast.expr, node: ast.expr) -> ast.expr:
        origin: ast.expr = node
        if isinstance(template, ast.Name):
            origin = self._own[template.id]
            self._used.add(template.id)
        elif isinstance(template, ast.Constant):
            origin = template
        return _constant(text, origin)

    def _template(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Name) and node.id in self._own:
            node = self._own[node.id]
        text = node.value if isinstance(node, ast.Constant) else None
        return text if isinstance(text, str) and _KERNEL in text else None

    def _value(self, node: ast.expr, depth: int = 0) -> Plain | None:
        """A plain number or word; None for what is known only when the text runs."""
        match node:
            case ast.Constant(value=str() | int() | float() as value) if _KERNEL not in str(value):
                return value
            case ast.Name(id=name) if name in self._once and depth < 8:
                return self._value(self._once[name], depth + 1)
            case ast.Call(func=ast.Name(id="str"), args=[value], keywords=[]):
                inner = self._value(value, depth)
                return str(inner) if inner is not None else None
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _WHOLE:
                sides = self._value(left, depth), self._value(right, depth)
                whole = [one for one in sides if isinstance(one, int)]
                divides = isinstance(op, ast.FloorDiv) and sides[1] == 0
                return _WHOLE[type(op)](*whole) if len(whole) == 2 and not divides else None
        return None


def _constant(text: str, origin: ast.expr) -> ast.Constant:
    return ast.copy_location(ast.Constant(text), origin)
