"""The definitions behind an expression, written again for another thread or round of a loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from optiml_magic.proposers.rewrites.kernel import Variable, builtin
from optiml_magic.proposers.rewrites.layout import fresh

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tree_sitter import Node

    from optiml_magic.proposers.rewrites.affine import Affine


@dataclass
class Slice:
    """Writes expressions with ``replaced`` symbols, as they would read at offset ``at``.

    ``lines`` collects the local definitions that have to be written again: those that depend on a
    replaced symbol, and those that stand after ``at``.
    """

    affine: Affine
    replaced: Mapping[str, str]
    at: int
    lines: list[str] = field(default_factory=list)
    _written: dict[int, str] = field(default_factory=dict)

    def write(self, node: Node) -> str:
        """The text of ``node`` after the definitions in ``lines``."""
        leaf = self._leaf(node)
        if leaf is not None:
            return leaf
        kernel = self.affine.kernel
        parts, at = [], node.start_byte
        for child in node.children:
            parts += [kernel.syntax.text[at : child.start_byte].decode(), self.write(child)]
            at = child.end_byte
        parts.append(kernel.syntax.text[at : node.end_byte].decode())
        return "".join(parts)

    def _leaf(self, node: Node) -> str | None:
        if name := builtin(node):
            return self.replaced.get(name, name)
        if node.type != "identifier":
            return None
        variable = self.affine.kernel.resolve(node)
        if variable is None or variable.parameter:
            return None
        if variable.symbol in self.replaced:
            return self.replaced[variable.symbol]
        needed = variable.start >= self.at or self._moves(variable)
        return self._definition(variable) if needed else None

    def _moves(self, variable: Variable) -> bool:
        depends = self.affine.depends(variable.value) if variable.value is not None else frozenset()
        return not depends.isdisjoint(self.replaced)

    def _definition(self, variable: Variable) -> str:
        """The name of the copy of a steady local, defined in ``lines`` on first use."""
        if variable.start not in self._written:
            assert variable.value is not None
            value = self.write(variable.value)
            name = fresh(f"load_{variable.name}", self.affine.kernel.syntax.text.decode())
            star = "*" if variable.pointer else ""
            const = "" if "const" in variable.type and not star else "const "
            kept = variable.type if star else f"{const}{variable.type}"
            self.lines.append(f"{kept}{star} {name} = {value};")
            self._written[variable.start] = name
        return self._written[variable.start]
