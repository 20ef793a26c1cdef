"""P24, commute: elements that the data choose are updated atomically, so in any order of rounds.

A thread that counts in an array of its own, ``count[i * k + label[j]]++``, loads and stores one
element after the other, which no other lane may do for it. As atomic operations of one kind, of
which nobody asks what they return, the updates of a loop may be made by whom and when one likes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Assign, Expr, Index, Name, Step
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.rounds import moves
from optiml_magic.kernels.tree import Evaluate, Loop, Statement, walk
from optiml_magic.kernels.types import CType, named

_FUNCTIONS = {"+=": "Add", "-=": "Add", "|=": "Or", "&=": "And", "^=": "Xor"}
_WHOLE = {(4, True): "int", (4, False): "unsigned int", (8, False): "unsigned long long"}


@primitive
def commuting(kernel: Kernel, at: Sequence[int]) -> Kernel:
    """The kernel whose loops with these numbers update atomically what rounds may meet in."""
    effects = Effects(kernel)
    effects.straightforward()
    loops = loops_in(kernel.function.body)
    swaps: dict[Node, tuple[Statement, ...]] = {}
    for number in at:
        for statement, words in _updates(kernel, effects, loops[number]):
            swaps[statement] = (lines(words),)
    if not swaps:
        raise NotLegal("its rounds update no element that another may update")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _updates(kernel: Kernel, effects: Effects, loop: Loop) -> Iterator[tuple[Statement, str]]:
    """Each update of a loop, and the operation in its place."""
    axis = kernel.axes().get(loop)
    if axis is None:
        return
    found: dict[str, list[tuple[Evaluate, str, str]]] = {}
    for statement in walk(loop):
        update = _update(statement)
        if update is None or not isinstance(statement, Evaluate):
            continue
        op, target, base, given = update
        own = [a for a in effects.accesses(statement) if a.array == base.name]
        stores = [a for a in own if a.mode == "store" and a.own is statement.expression]
        if len(own) != 2 or len(stores) != 1 or effects.changed(statement):
            continue
        words = _words(kernel, base, op, target, given, stores[0].element)
        if words and not moves(kernel, axis, stores[0], loop):
            found.setdefault(base.name, []).append((statement, _FUNCTIONS[op], words))
    accesses = effects.accesses(loop)
    for array, updates in found.items():
        touched = sum(effects.same(a.array, array) for a in accesses)
        if touched == 2 * len(updates) and len({op for _, op, _ in updates}) == 1:
            yield from ((statement, words) for statement, _, words in updates)


def _update(statement: Statement) -> tuple[str, Index, Name, Expr | None] | None:
    """How an element is changed, which of which array, and by what; None for by one."""
    match statement:
        case Evaluate(expression=Assign(op=op, target=Index(base=Name() as base) as target) as how):
            return (op, target, base, how.value) if op in _FUNCTIONS else None
        case Evaluate(expression=Step(op=op, target=Index(base=Name() as base) as target)):
            return f"{op[0]}=", target, base, None
    return None


def _words(
    kernel: Kernel, base: Name, op: str, target: Expr, given: Expr | None, element: CType
) -> str:
    """The atomic operation; empty where there is none that does the same."""
    variable, types = base.variable, kernel.reading.types
    if variable is None or variable.storage != "parameter" or variable.type.depth != 1:
        return ""
    own = named(variable.type.base, kernel.unit.aliases)
    kind = own.name if own.name in ("float", "double") else ""
    if own.kind == "int" and own.lanes == 1:
        kind = _WHOLE.get((own.size or 0, own.signed), "")
    if not kind or element.name != own.name or (own.floating and op[0] not in "+-"):
        return ""
    value = types.get(given) if given is not None else own
    if value is None or not (value.integral or (own.floating and value.name == own.name)):
        return ""
    shown = "1" if given is None else kernel.spelled(given)
    if given is not None and (op[0] == "-" or value.name != own.name):
        shown = f"({kind})({shown})"
    sign = "-" if op[0] == "-" else ""
    place = kernel.spelled(target)
    return f"atomic{_FUNCTIONS[op]}(&{place}, {sign}{shown});"
