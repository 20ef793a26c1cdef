"""P19, unclamped: a loop from ``max(a, 0)`` to ``min(a + r, n)`` makes ``r`` rounds, some idle.

So does one from ``a`` to ``a + r``, where a thread's own place is in ``a``: the rounds of all
threads have the same numbers then, and neighbours share what they load.

A window that is cut off at the borders has other rounds for each thread. With a test in each round
in the place of the cut ends, as other kernels have it, its rounds are the same for all, and a step
that looks for borders finds tests.
"""

from __future__ import annotations

from itertools import product

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Assign, Expr, Name, builtin, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted
from optiml_magic.kernels.primitives.naming import speller_before
from optiml_magic.kernels.primitives.places import axis_of
from optiml_magic.kernels.primitives.sizes import value
from optiml_magic.kernels.primitives.type_names import names_in
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.symbols import BLOCKS, THREADS, VARYING, Symbols
from optiml_magic.kernels.tree import Loop, Variable, expressions
from optiml_magic.kernels.types import named

_ONE = Polynomial.constant(1)
_LONG = 8  # bytes
_WHOLE = (4, _LONG)
_SHORT = 64  # rounds of a window, beyond which its loop is no stencil's: ours


@primitive
def unclamped(kernel: Kernel, most: int = _SHORT) -> Kernel:
    """The kernel whose loops over windows make the same rounds, ``most``, for all threads."""
    effects = Effects(kernel)
    why, line = "no loop has ends that a border cuts off", 0
    for axis in kernel.axes().values():
        ends = _ends(kernel.reading.symbols, axis)
        rounds = value(kernel, ends[1]) if ends is not None else None
        short = rounds is not None and 0 < rounds <= most
        if ends is not None and short and axis.exact and is_counted(axis, effects):
            try:
                swaps: dict[Node, Node] = {axis.node: lines(_spelled(kernel, effects, axis, *ends))}
            except NotLegal as reason:
                why, line = reason.reason, reason.line
                continue
            made = kernel.rewritten(edited(kernel.function.body, swaps))
            more = unclamped(made, most)
            return more if isinstance(more, Kernel) else made
    raise NotLegal(why, line)


def _ends(
    symbols: Symbols, axis: Axis
) -> tuple[Polynomial, Polynomial, list[Polynomial], list[Polynomial]] | None:
    """Where the window begins, its rounds, and what cuts it off below and above."""
    if axis.start is None or axis.stop is None or axis.step != _ONE or axis.scaled:
        return None
    below, above = _split(symbols, axis.start, "max"), _split(symbols, axis.stop, "min")
    for start, stop in product(below, above):
        count = stop - start
        sizes = all(symbols[n].kind == "scalar" for n in symbols.made_of(count))
        cut = [f for f in below if f is not start], [f for f in above if f is not stop]
        if sizes and symbols.depends(start) & (VARYING | BLOCKS if any(cut) else THREADS):
            return start, count, *cut
    return None


def _split(symbols: Symbols, form: Polynomial, op: str) -> tuple[Polynomial, ...]:
    """What a form is the greatest or the least of: itself alone where it is not one."""
    name = next((n for n in form.symbols if symbols[n].op == op), "")
    rest = form - Polynomial.symbol(name) if name else form
    if not name or rest.value is None:
        return (form,)
    return tuple(argument + rest for argument in symbols[name].arguments)


def _spelled(
    kernel: Kernel, effects: Effects, axis: Axis, start: Polynomial, count: Polynomial,
    below: list[Polynomial], above: list[Polynomial],
) -> str:  # fmt: skip
    loop, variable = axis.node, axis.variable
    assert variable is not None  # of a loop that counts
    kind = named(variable.type.base, kernel.unit.aliases)
    if not kind.signed or kind.kind != "int" or kind.size not in _WHOLE:
        raise NotLegal(f"`{variable.name}` is not a signed number", loop.line)
    if variable in effects.changed(loop.body):
        raise NotLegal(f"`{variable.name}` moves within the round", loop.line)
    if names_in(kernel, loop):
        raise NotLegal("types or macros are declared at the loop", loop.line)
    if variable in effects.lent:
        raise NotLegal(f"`{variable.name}` is reached by another name", loop.line)
    if not _signed(kernel, loop, variable):
        raise NotLegal(
            "an end of the loop is computed from an unsigned or a long number", loop.line
        )
    speller = speller_before(kernel, effects, loop)
    words, name, k = variable.type.base, variable.name, kernel.fresh("k")
    try:
        said = {form: speller.form(speller.local(form)) for form in (start, count, *below, *above)}
    except Unspelled as reason:
        raise NotLegal(f"an end of the loop cannot be written anew: {reason}", loop.line) from None
    tests = [f"{name} >= {said[form]}" for form in below]
    tests += [f"{name} < {said[form]}" for form in above]
    body = kernel.show_inside(loop.body)
    body = f"if ({' && '.join(tests)}) {{\n{body}\n}}" if tests else body
    return (
        f"for ({words} {k} = 0; {k} < {said[count]}; ++{k}) {{\n"
        f"{words} {name} = {said[start]} + {k};\n{body}\n}}"
    )


def _signed(kernel: Kernel, loop: Loop, counter: Variable) -> bool:
    """Whether what a loop's head is computed from is signed, so that it may lie below zero.

    It is of 32 bits as well: so it is computed anew, though a ``counter`` has 64.
    """
    body, types = kernel.function.body, kernel.reading.types
    todo: list[Expr] = [*(loop.before.expressions if loop.before is not None else ())]
    todo += [loop.test] if loop.test is not None else []
    seen: set[Variable] = set()
    while todo:
        for part in every(todo.pop()):
            kind = types.get(part)
            variable = part.variable if isinstance(part, Name) else None
            whole = kind is not None and kind.kind == "int" and variable is not counter
            if whole and kind is not None and (not kind.signed or kind.size == _LONG):
                return False
            if variable is None or variable in seen:
                continue
            seen.add(variable)
            given = [e.value for e in expressions(body) if isinstance(e, Assign)
                     and isinstance(e.target, Name) and e.target.variable is variable]  # fmt: skip
            given += [variable.value] if variable.value is not None else []
            # An index is no greater than a signed number holds.
            todo += [v for v in given if not axis_of(kernel, v) and not builtin(v)]
    return True
