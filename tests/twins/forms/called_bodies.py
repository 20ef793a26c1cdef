"""The work of a kernel in a device function that it calls with its own parameters."""

from __future__ import annotations

from optiml_magic.source.syntax import name_of
from tests.twins.tree import (
    before,
    edited,
    field,
    functions,
    inside,
    parameters,
    parse,
    replace,
    src,
)


def apply(text: str) -> str | None:
    if "template" in text:  # the kernel's parameters are not the function's
        return None
    made = []
    for function in functions(parse(text)):
        if not any(child.type == "__global__" for child in function.children):
            continue
        body, name = field(function, "body"), name_of(function)
        given = ", ".join(p.name for p in parameters(function))
        taken = src(field(field(function, "declarator"), "parameters"))
        work = f"__device__ __forceinline__ void {name}_work{taken} {{\n    {inside(body)}\n}}\n\n"
        made += [before(function, work), replace(body, f"{{\n    {name}_work({given});\n}}")]
    return edited(text, made)
