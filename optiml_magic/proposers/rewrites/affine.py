"""What an expression depends on, and its form as a polynomial over threads, blocks and sizes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.proposers.rewrites.kernel import Kernel, Variable, builtin
from optiml_magic.source.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from tree_sitter import Node

UNKNOWN = "?"  # depends on something that this analysis does not follow
MEMORY = "[]"  # depends on what an array holds
THREADS = ("threadIdx.x", "threadIdx.y", "threadIdx.z")

_INTEGER = re.compile(r"([-+]?(?:0[xX][0-9a-fA-F]+|[1-9]\d*|0))[uUlL]*")
_WIDTH = (
    r"(?:\b(?:const|unsigned|signed|int|long|short|char|size_t|ptrdiff_t|u?int\d+_t|auto)\b\s*)+"
)
INTEGRAL = re.compile(_WIDTH)
PURE = frozenset(
    {"min", "max", "abs", "fabs", "fabsf", "fmin", "fminf", "fmax", "fmaxf", "sqrt", "sqrtf",
     "rsqrtf", "exp", "expf", "__expf", "log", "logf", "pow", "powf", "sinf", "cosf", "tanhf",
     "fma", "fmaf", "floor", "floorf", "ceil", "ceilf", "__fdividef"}
)  # fmt: skip


@dataclass
class Affine:
    """Forms of one kernel's expressions; opaque parts become symbols with what they depend on."""

    kernel: Kernel
    _opaque: dict[str, frozenset[str]] = field(default_factory=dict)

    def form(self, node: Node) -> Polynomial:
        """The expression as a polynomial; what is no sum of products becomes one opaque symbol."""
        kind = node.type
        if kind == "number_literal":
            match = _INTEGER.fullmatch(self.kernel.text(node))
            return Polynomial.constant(int(match[1], 0)) if match else self._opaquely(node)
        if kind in ("identifier", "field_expression"):
            return self._name(node)
        inner = uncast(node)
        if inner is not None:
            return self.form(inner)
        if kind == "unary_expression" and node.children[0].type in "+-":
            value = self.form(node.children[1])
            return -value if node.children[0].type == "-" else value
        if kind == "binary_expression":
            combine = _COMBINE.get(node.children[1].type)
            if combine is not None:
                return combine(self.form(node.children[0]), self.form(node.children[2]))
        return self._opaquely(node)

    def depends(self, node: Node) -> frozenset[str]:
        """Built-in variables, parameters, counters, MEMORY and UNKNOWN behind an expression."""
        if name := builtin(node):
            return frozenset({name})
        if node.type == "identifier":
            return self._name_depends(node)
        found: frozenset[str] = frozenset()
        if node.type == "call_expression":
            return self._call_depends(node)
        if node.type in ("assignment_expression", "update_expression", "lambda_expression"):
            found |= {UNKNOWN}
        if node.type in ("subscript_expression", "pointer_expression"):
            found |= {MEMORY}
        for child in node.named_children:
            found |= self.depends(child)
        return found

    def symbol_depends(self, symbol: str) -> frozenset[str]:
        """What a symbol of a form depends on; itself, unless it is opaque."""
        return self._opaque.get(symbol, frozenset({symbol}))

    def form_depends(self, form: Polynomial) -> frozenset[str]:
        return frozenset().union(*(self.symbol_depends(symbol) for symbol in form.symbols))

    def uniform(self, node: Node) -> bool:
        """Whether every thread of a block certainly computes the same value."""
        return not self.depends(node) & {*THREADS, UNKNOWN}

    def coefficient(self, form: Polynomial, symbol: str) -> Polynomial | None:
        """What multiplies ``symbol``; None where the form depends on it in another way too."""
        opaque = [s for s in form.symbols if s != symbol and symbol in self.symbol_depends(s)]
        unknown = any(UNKNOWN in self.symbol_depends(s) for s in form.symbols)
        return None if opaque or unknown else form.coefficient(symbol)

    def _name(self, node: Node) -> Polynomial:
        if name := builtin(node):
            return Polynomial.symbol(name)
        if node.type != "identifier":
            return self._opaquely(node)
        variable = self.kernel.resolve(node)
        if variable is None:
            return Polynomial.symbol(self.kernel.text(node))  # a tuned name or a constant
        if variable.pointer or variable.array:
            return self._opaquely(node)
        if self.kernel.steady(variable):
            if variable.parameter:
                return Polynomial.symbol(variable.symbol)
            if variable.value is not None and INTEGRAL.fullmatch(variable.type):
                return self.form(variable.value)
        elif self.kernel.loop_of(variable) is not None and variable.value is not None:
            return self.form(variable.value) + Polynomial.symbol(variable.symbol)
        return self._opaquely(node)

    def _name_depends(self, node: Node) -> frozenset[str]:
        variable = self.kernel.resolve(node)
        if variable is None:
            return frozenset({self.kernel.text(node)})
        own = frozenset({variable.symbol})
        if variable.array:
            return frozenset({UNKNOWN})
        if self.kernel.steady(variable):
            if variable.parameter:
                return own
            if variable.value is not None:
                return self.depends(variable.value)
        elif (loop := self.kernel.loop_of(variable)) is not None and variable.value is not None:
            return own | self.depends(variable.value) | self._step_depends(loop, variable)
        return frozenset({UNKNOWN})

    def _step_depends(self, loop: Node, variable: Variable) -> frozenset[str]:
        update = loop.child_by_field_name("update")
        step = update.child_by_field_name("right") if update is not None else None
        if step is None:
            return frozenset()
        names = {self.kernel.text(n) for n in walk(step)}
        return frozenset({UNKNOWN}) if variable.name in names else self.depends(step)

    def _call_depends(self, node: Node) -> frozenset[str]:
        called = node.child_by_field_name("function")
        arguments = node.child_by_field_name("arguments")
        if called is None or arguments is None:
            return frozenset({UNKNOWN})
        found = frozenset[str]().union(*(self.depends(a) for a in arguments.named_children))
        if uncast(node) is not None or self.kernel.text(called) in PURE:
            return found
        return found | {MEMORY if self.kernel.text(called) == "__ldg" else UNKNOWN}

    def _opaquely(self, node: Node) -> Polynomial:
        depends = self.depends(node)
        names = ",".join(sorted(depends))
        symbol = f"<{' '.join(self.kernel.text(node).split())}|{names}>"
        self._opaque[symbol] = depends
        return Polynomial.symbol(symbol)


def uncast(node: Node) -> Node | None:
    """What stands inside parentheses or an integer cast; None for anything else."""
    if node.type == "parenthesized_expression":
        return node.named_children[0] if len(node.named_children) == 1 else None
    if node.type == "cast_expression":
        written, value = node.child_by_field_name("type"), node.child_by_field_name("value")
    elif node.type == "call_expression":
        written = node.child_by_field_name("function")
        arguments = node.child_by_field_name("arguments")
        inside = arguments.named_children if arguments is not None else []
        value = inside[0] if len(inside) == 1 else None
    else:
        return None
    if written is None or written.text is None:
        return None
    name = re.sub(r"^static_cast\s*<(.*)>$", r"\1", written.text.decode(), flags=re.DOTALL).strip()
    return value if INTEGRAL.fullmatch(name) else None


_COMBINE: dict[str, Callable[[Polynomial, Polynomial], Polynomial]] = {
    "+": Polynomial.__add__,
    "-": Polynomial.__sub__,
    "*": Polynomial.__mul__,
}
