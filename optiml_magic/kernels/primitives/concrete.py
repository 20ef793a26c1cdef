"""Functions that are templates, ``at(image, x, y)``, as what a kernel's calls make of them.

A function of the types and numbers that a call means stands beside its template and is called in
its place: rules then see what it loads and returns. Source: the C++ standard, [temp.deduct.call],
for parameters that are ``T``, ``T*`` or ``T&``.
"""

from __future__ import annotations

import re
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Binary, Call, Expr, Index, Name, Unary
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, kernels, primitive
from optiml_magic.kernels.tree import Function, Variable, expressions
from optiml_magic.kernels.types import named
from optiml_magic.source.program import Program

_TYPE = re.compile(r"[A-Za-z_]\w*(?: [A-Za-z_]\w*)*")
_NUMBER = re.compile(r"\w+")


def all_concrete(program: Program) -> Program:
    """The program whose kernels call no templates of the text, where that is known."""
    for place in range(len(kernels(program, None))):
        made = concrete(kernels(program, None)[place])
        program = made.program if isinstance(made, Kernel) else program
    return program


@primitive
def concrete(kernel: Kernel) -> Kernel:
    """The kernel with plain functions in the place of such templates; it calls some."""
    named, helpers = dict[tuple[Function, tuple[str, ...]], str](), list[str]()
    swaps = dict[Node, Node]()
    calls = [e for e in expressions(kernel.function.body) if isinstance(e, Call)]
    for call in reversed(calls):  # what one is given comes before it
        function = _template(kernel, call)
        words = _meant(kernel, function, call) if function is not None else None
        if function is None or words is None:
            continue
        if (function, words) not in named:
            bare = function.name.rpartition("::")[2]
            kinds = "_".join(re.sub(r"\W+", "_", w).strip("_") for w in words)
            name = kernel.fresh(f"{bare}_{kinds}", *named.values())
            shown = _shown(kernel, function, words, name)
            if shown is None:
                continue
            named[function, words] = name
            helpers.append(shown)
        given = tuple(edited(argument, swaps) for argument in call.arguments)
        plain = named[function, words]
        swaps[call] = replace(
            call, span=None, function=plain, arguments=given, template=(), values=()
        )
    if not swaps:
        raise NotLegal("it calls no template whose types are known")
    return kernel.rewritten(edited(kernel.function.body, swaps), helpers=helpers, tidy=False)


def _template(kernel: Kernel, call: Call) -> Function | None:
    if call.receiver is not None or call.callee is not None:
        return None
    found = kernel.unit.called(call.function, len(call.arguments))
    if len(found) != 1 or not found[0].template or found[0].method or found[0].kernel:
        return None
    return found[0] if "::" not in found[0].name and found[0].whole is not None else None


def _meant(kernel: Kernel, function: Function, call: Call) -> tuple[str, ...] | None:
    """What a call says for each parameter of a template, or its arguments do; else its default."""
    said = dict(zip((p.name for p in function.template), call.template, strict=False))
    types = {p.name for p in function.template if p.is_type}
    for parameter, argument in zip(function.parameters, call.arguments, strict=False):
        base = parameter.type.base
        if base not in types or base in said:
            continue
        found = _type(kernel, parameter, argument)
        if found is None:
            return None
        said[base] = found
    for parameter, argument in zip(function.parameters, call.arguments, strict=False):
        base = parameter.type.base
        explicit = base in {p.name for p in function.template[: len(call.template)]}
        if base in types and not explicit and _type(kernel, parameter, argument) != said[base]:
            return None
    words = [said.get(p.name, p.default or "") for p in function.template]
    for one, word in zip(function.template, words, strict=True):
        fits = (_TYPE if one.is_type else _NUMBER).fullmatch(word)
        if one.is_pack or not one.name or not fits:
            return None
    return tuple(words)


def _type(kernel: Kernel, parameter: Variable, argument: Expr) -> str | None:
    """The type that a parameter's is deduced to be, where it is a plain one."""
    kind = kernel.reading.types.get(argument)
    if kind is None or kind.kind in ("unknown", "record", "void") or parameter.extents:
        return None
    if kind.depth != parameter.type.depth:
        return None
    leads = parameter.type.reference or kind.depth
    if not leads or parameter.type.const:
        return kind.name
    const = _is_const(kernel, argument)
    return None if const is None else f"{'const ' * const}{kind.name}"


def _is_const(kernel: Kernel, place: Expr) -> bool | None:
    """Whether a place, or what a pointer leads to, is const; None where that is not known."""
    match place:
        case Name(variable=Variable() as variable):
            plain = named(variable.type.base, {}).kind not in ("unknown", "record")
            known = plain and variable.type.depth < 2 and not variable.type.volatile
            return variable.type.const if known else None
        case Index(base=inner) | Unary(op="*" | "&", operand=inner):
            return _is_const(kernel, inner)
        case Binary(op="+" | "-", left=left, right=right):
            kinds = [kernel.reading.types.get(side) for side in (left, right)]
            leading = [s for s, k in zip((left, right), kinds, strict=True) if k and k.depth]
            return _is_const(kernel, leading[0]) if len(leading) == 1 else None
    return None


def _shown(kernel: Kernel, function: Function, words: tuple[str, ...], name: str) -> str | None:
    """The function's text with what its parameters stand for; None where a name hides them."""
    text = kernel.unit.syntax.text[slice(*function.span)].decode()
    given = dict(zip((p.name for p in function.template), words, strict=True))
    hidden = {v.name for v in function.parameters} & given.keys()
    if hidden or re.search(r"[\"'#]|//|/\*", text):
        return None
    if any(re.search(rf"\b{one}\b", word) for one in given for word in words):
        return None
    bare = function.name.rpartition("::")[2]
    if len(re.findall(rf"\b{bare}\b", text)) != 1:
        return None
    for one, word in given.items():
        if re.search(rf"(?:\.|->|::)\s*{one}\b", text):
            return None
        own = rf"(?:const\s+)?{one}(?:\s+const)?" if word.startswith("const ") else one
        text = re.sub(rf"\b{own}\b", word, text)  # no type is const twice
    return re.sub(rf"\b{bare}\b", name, text)
