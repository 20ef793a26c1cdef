"""P17, slimmed: blocks whose threads at the rims do nothing consist of the others alone.

A block that brought a tile of its inputs has a thread for each of these, and of 16 by 16 threads
12 by 12 have an output: ``if (threadIdx.x < 12 && threadIdx.y < 12)``. Where nothing is brought any
more these alone are launched, and the test goes; ``blockIdx.x * 12 + threadIdx.x`` is then the
index of a thread in the grid, as in other kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Binary, Cast, Expr, Literal, builtin
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import exchangeable
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.direct import places_in_full
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.foregone import Tests, foregone
from optiml_magic.kernels.primitives.places import bare, reached, tops
from optiml_magic.kernels.primitives.pruned import pruned
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import expressions
from optiml_magic.source.expressions import parse_expression

_WORD = 4  # bytes of a place
SAYING = frozenset({"printf", "assert", "__trap", "__brkpt", "clock", "clock64", "__nanosleep"})


@primitive
def slimmed(kernel: Kernel) -> Kernel:
    """The kernel with blocks of the threads alone that leave something behind."""
    stores = [a for a in kernel.reading.accesses if a.space == "global" and a.mode != "load"]
    found = {
        axis: threads for axis in "xyz" if (threads := _working(kernel, axis, stores)) is not None
    }  # fmt: skip
    if not found:
        raise NotLegal("all threads of a block may have work")
    kernel = where_legal(places_in_full, kernel.settled())
    _checked(kernel)
    swaps = dict[Node, Node]()
    for expr in expressions(kernel.function.body):
        if isinstance(expr, Cast) and _is_int(kernel, expr):
            axis = builtin(expr.operand).removeprefix("threadIdx.")
            if axis in found and found[axis].start:
                begin = _number(found[axis].start, signed=True)
                swaps[expr] = Binary(None, "+", replace(expr, span=None), begin)
            continue
        what, _, axis = builtin(expr).partition(".")
        if axis in found and what == "threadIdx" and found[axis].start:
            swaps[expr] = Binary(
                None, "+", replace(expr, span=None), _number(found[axis].start, signed=False)
            )
        elif axis in found and what == "blockDim":
            swaps[expr] = _number(kernel.block["xyz".index(axis)] or 1, signed=False)
    block = tuple(
        parse_expression(str(len(found[axis]))) if axis in found else size
        for axis, size in zip("xyz", kernel.launch.block, strict=False)
    )
    made = kernel.rewritten(
        edited(kernel.function.body, swaps), launch=replace(kernel.launch, block=block)
    )
    if kernel.facts is not None:
        x, y, z = (
            len(found[axis]) if axis in found else old
            for axis, old in zip("xyz", kernel.facts.block, strict=True)
        )
        made = replace(made, facts=replace(kernel.facts, block=(x, y, z)))
    for step in (foregone, _together, pruned):
        made = where_legal(step, made)
    return made


@primitive
def _together(kernel: Kernel) -> Kernel:
    """With the parts of an index in the grid side by side, where sums had them apart."""
    swaps, tests = dict[Node, Node](), Tests(kernel)
    for top in tops(kernel.function.body):
        _gather(kernel, tests, top, swaps)
    if not swaps:
        raise NotLegal("no sum has an index in the grid in parts")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _gather(kernel: Kernel, tests: Tests, expr: Expr, swaps: dict[Node, Node]) -> None:
    terms = [*_terms(expr)] if isinstance(expr, Binary) and expr.op in "+-" else []
    for part in [term for _, term in terms] or expr.parts:
        _gather(kernel, tests, part, swaps)
    types = [kernel.reading.types.get(term) for _, term in terms]
    if not terms or any(t is None or t.kind != "int" or t.size != _WORD for t in types):
        return
    for axis, width in zip("xyz", kernel.block, strict=True):
        thread = [t for sign, t in terms if sign > 0 and _is(t, f"threadIdx.{axis}")]
        block = [t for sign, t in terms if sign > 0
                 and _start(tests, t, f"blockIdx.{axis}", width) is not None]  # fmt: skip
        if len(thread) != 1 or len(block) != 1:
            continue
        first = _start(tests, block[0], f"blockIdx.{axis}", width) or block[0]
        if first is block[0] and len(terms) == len(thread + block):
            continue
        made: Expr = Binary(None, "+", first, thread[0])
        signed = all(t is not None and t.signed for t in types)
        others = [(sign, t) for sign, t in terms if t not in (block[0], thread[0])]
        numbers = [tests.value(t, {}) for _, t in others]
        known = [n is not None and (n[1] or not signed) for n in numbers]
        kept = [*block, *thread, *(t for (_, t), n in zip(others, known, strict=True) if not n)]
        if not signed and all(kernel.reading.types[t].signed for t in kept):
            continue  # a number alone makes it unsigned
        for (sign, term), number in zip(others, known, strict=True):
            if not number:
                made = Binary(None, "+" if sign > 0 else "-", made, edited(term, swaps))
        whole = sum(sign * n[0] for (sign, _), n in zip(others, numbers, strict=True) if n)
        if whole:
            made = Binary(None, "+" if whole > 0 else "-", made, _number(abs(whole), signed=signed))
        swaps[expr] = made
        return


def _terms(expr: Expr, sign: int = 1) -> Iterator[tuple[int, Expr]]:
    """The terms of a sum, with what they are multiplied by, 1 or -1."""
    if isinstance(expr, Binary) and expr.op in "+-":
        yield from _terms(expr.left, sign)
        yield from _terms(expr.right, sign if expr.op == "+" else -sign)
    else:
        yield sign, expr


def _is(expr: Expr, name: str) -> bool:
    return builtin(bare(expr)) == name


def _start(tests: Tests, expr: Expr, name: str, width: int | None) -> Expr | None:
    """The index of a block's first thread with the width as a number; None for anything else."""
    whole = bare(expr)
    if not isinstance(whole, Binary) or whole.op != "*":
        return None
    for block, by in ((whole.left, whole.right), (whole.right, whole.left)):
        found = tests.value(by, {}) if _is(block, name) else None
        if found is not None and found[0] == width:
            plain = isinstance(by, Literal)
            return expr if plain else edited(expr, {by: _number(found[0], signed=found[1])})
    return None


def _is_int(kernel: Kernel, expr: Expr) -> bool:
    kind = kernel.reading.types.get(expr)
    return kind is not None and kind.name == "int"


def _checked(kernel: Kernel) -> None:
    """Raise NotLegal where a thread may do something that no store shows."""
    Effects(kernel).straightforward()
    exchangeable(kernel)
    if kernel.launch.shared is not None:
        raise NotLegal("its threads share memory")
    for name in sorted(kernel.reading.calls & SAYING):
        raise NotLegal(f"`{name}` tells which thread came to it")
    for function in reached(kernel.unit, kernel.function):
        if any(builtin(e) for e in expressions(function.body)):
            raise NotLegal(f"`{function.name}` reads where its thread stands", function.line)


def _working(kernel: Kernel, axis: str, stores: list[Access]) -> range | None:
    """The threads of a block along an axis that may store; None where that may be all of them.

    Or where blocks do not stand side by side without the others.
    """
    width = kernel.block["xyz".index(axis)]
    thread, block = f"threadIdx.{axis}", f"blockIdx.{axis}"
    if width is None or "xyz".index(axis) >= len(kernel.launch.block):
        return None
    working = {at for a in stores for at in range(width) if _lets(a, thread, at)}
    if not working:
        return None
    found = range(min(working), max(working) + 1)
    if not 1 < len(found) < width:
        return None
    for access in stores:
        by = access.index.coefficient(thread) if access.index is not None else None
        apart = access.index.coefficient(block) if access.index is not None else None
        if by is None or not by.terms or apart != by * Polynomial.constant(len(found)):
            return None
    return found


def _lets(access: Access, thread: str, at: int) -> bool:
    """Whether what is asked of a thread's place along one axis alone lets it come to an access."""
    for condition in access.guard:
        for part in condition.conjuncts():
            if not isinstance(part, Compare) or part.form.symbols != {thread}:
                continue
            by, rest = part.form.coefficient(thread), part.form.without([thread]).value
            if (
                by is None
                or by.value is None
                or (rest is None and part.form.without([thread]).terms)
            ):
                continue
            number = by.value * at + (rest or 0)
            holds = {">=": number >= 0, "==": number == 0, "!=": number != 0}
            if not holds[part.op]:
                return False
    return True


def _number(number: int, *, signed: bool) -> Literal:
    return Literal(None, str(number) if signed else f"{number}u", number)
