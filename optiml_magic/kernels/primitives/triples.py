"""Normal form: an element of three numbers, ``uchar3 p = img[i]``, is loaded number by number.

``make_uchar3(img[i].x, img[i].y, img[i].z)`` is what a compiler makes of it anyway, since no access
has three bytes. Then rules see what neighbouring items take of a row of numbers.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Call, Expr, every
from optiml_magic.kernels.functions import OF_ALL_NUMBERS
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.items import TRIPLES, is_plain
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Declare, Evaluate, walk

_NUMBERS = "xyz"


@primitive
def by_numbers(kernel: Kernel) -> Kernel:
    """The kernel whose elements of three numbers come and go one number after the other."""
    effects = Effects(kernel)
    found = [
        a for a in kernel.reading.accesses
        if a.space == "global" and a.call is None and is_plain(kernel, a, TRIPLES)
    ]  # fmt: skip
    if not found:
        raise NotLegal("no element has three numbers")
    swaps: dict[Node, Node] = {}
    for access in (a for a in found if a.mode == "load"):
        place = _place(kernel, effects, access, access.node)
        parts = ", ".join(f"{place}.{number}" for number in _NUMBERS)
        swaps[access.node] = text(f"make_{access.element.name}({parts})")
    _check_references(kernel, swaps)
    for access in (a for a in found if a.mode != "load"):
        stored, value = _stored(kernel, access)
        place = _place(kernel, effects, access, value.target)
        name, kind = kernel.fresh(f"{access.array}_value"), access.element.name
        shown = kernel.spelled(value.value, swaps)
        made = [f"{place}.{number} = {name}.{number};" for number in _NUMBERS]
        swaps[stored] = lines("\n".join(["{", f"const {kind} {name} = {shown};", *made, "}"]))
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _place(kernel: Kernel, effects: Effects, access: Access, node: Expr) -> str:
    """The element in words, which may be said three times."""
    calls = (e.function for e in every(node) if isinstance(e, Call))
    if effects.changed(Evaluate(None, access.line, node)) or {*calls} - {*OF_ALL_NUMBERS}:
        raise NotLegal(f"where an element of `{access.array}` is cannot be said again", access.line)
    inner = [a for a in kernel.reading.accesses if a.own in {*every(node)} and a is not access]
    if inner:
        raise NotLegal(f"memory says where an element of `{access.array}` is", access.line)
    return kernel.spelled(node)


def _check_references(kernel: Kernel, loaded: dict[Node, Node]) -> None:
    """Raise NotLegal where a name stands for an element itself."""
    for statement in walk(kernel.function.body):
        for variable in statement.variables if isinstance(statement, Declare) else ():
            value = variable.value
            if variable.type.reference and value is not None and {*every(value)} & {*loaded}:
                raise NotLegal(f"`{variable.name}` is an element itself", statement.line)


def _stored(kernel: Kernel, access: Access) -> tuple[Evaluate, Assign]:
    for statement in walk(kernel.function.body):
        match statement:
            case Evaluate(expression=Assign(op="=") as stored) if stored is access.own:
                return statement, stored
    raise NotLegal(f"`{access.array}` is stored within something else", access.line)
