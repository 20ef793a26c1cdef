"""P4, shapes: the same threads of the same blocks, numbered along two axes or along one.

The hardware numbers the threads of a block with x first: ``block(16, 8)`` and ``block(128)`` have
the same warps, and what a thread is told by one it can compute from the other. A kernel that does
so by hand is given the shape that rules look for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Binary, Cast, Expr, Literal, Member, Name, builtin
from optiml_magic.kernels.functions import LANES
from optiml_magic.kernels.groups import ASKING
from optiml_magic.kernels.primitives.axes import GROUPS, every_place_read
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.places import bare, chain, reached, tops
from optiml_magic.kernels.tree import Variable, expressions
from optiml_magic.kernels.types import named
from optiml_magic.model.launch import Dim3
from optiml_magic.source.expressions import Number, parse_expression

_WARP = 32
_WORD = 4  # bytes that hold a number of threads
_MOST = 1024  # threads of a block
_KEPT = ("__device__", "__constant__", "__shared__", "__managed__")
_LEAST = 127  # the greatest number of the smallest type
_X, _Y = (Member(None, Name(None, "threadIdx"), axis) for axis in "xy")


@dataclass(frozen=True)
class _Own:
    """Locals ``holding`` the number of their thread, and what is ``fixed`` by a name."""

    holding: frozenset[Variable]
    fixed: Mapping[Variable | str, int]


@primitive
def planar(kernel: Kernel) -> Kernel:
    """A block of one axis whose threads take their number apart, as a block of two axes."""
    count, *others = kernel.block
    if count is None or others != [1, 1] or not isinstance(kernel.launch.block[0].tree, Number):
        raise NotLegal("its block has no fixed extent along one axis")
    _own_places_only(kernel)
    own = _Own(_holding(kernel), fixed_numbers(kernel))
    parts = [p for top in tops(kernel.function.body) for p in _parts(top, own)]
    widths = {width for _, _, width in parts}
    if len(widths) != 1 or {op for _, op, _ in parts} != {"/", "%"}:
        raise NotLegal("its threads do not take their number apart in one way")
    (width,) = widths
    if not 1 < width < count or count % width:
        raise NotLegal("its block is not a number of whole rows")
    if width == _WARP and any(LANES.fullmatch(name) for name in kernel.reading.calls):
        raise NotLegal("they are the lanes of a warp, which exchange values")
    number = Binary(None, "+", Binary(None, "*", _Y, _literal(width)), _X)
    swaps: dict[Node, Node] = {}
    for top in tops(kernel.function.body):
        _take_apart(top, own, {"number": number, "count": _literal(count)}, swaps)
    return _reshaped(kernel, swaps, (width, count // width))


@primitive
def linear(kernel: Kernel) -> Kernel:
    """A block of two axes whose threads number themselves, as a block of one axis."""
    wide, high, deep = kernel.block
    if wide is None or high is None or deep != 1 or high == 1:
        raise NotLegal("its block has no fixed extents along two axes")
    if not all(isinstance(size.tree, Number) for size in kernel.launch.block):
        raise NotLegal("its block has no fixed extents along two axes")
    _own_places_only(kernel)
    swaps: dict[Node, Node] = {}
    for top in tops(kernel.function.body):
        _number(top, wide, wide * high, swaps)
    return _reshaped(kernel, swaps, (wide * high,))


def _own_places_only(kernel: Kernel) -> None:
    """Raise NotLegal where something else than the kernel's own text asks for its thread."""
    every_place_read(kernel)
    for leaf in kernel.reading.verbatim:
        raise NotLegal(f"{leaf.reason} is not read", leaf.line)
    for name in sorted(kernel.reading.calls & (GROUPS | ASKING)):
        raise NotLegal(f"`{name}` may ask for its block")
    for function in reached(kernel.unit, kernel.function):
        if any(builtin(e) for e in expressions(function.body)):
            raise NotLegal(f"`{function.name}` reads where its thread stands", function.line)


def _reshaped(kernel: Kernel, swaps: dict[Node, Node], block: tuple[int, ...]) -> Kernel:
    sizes = tuple(parse_expression(str(extent)) for extent in block)
    made = kernel.rewritten(
        edited(kernel.function.body, swaps), launch=replace(kernel.launch, block=sizes), tidy=False
    )
    if kernel.facts is None:
        return made
    dims: Dim3 = (block[0], block[1] if len(block) > 1 else 1, 1)
    return replace(made, facts=replace(kernel.facts, block=dims))


def _holding(kernel: Kernel) -> frozenset[Variable]:
    """The locals that hold the number of their thread all along."""
    return frozenset(
        v for v in Effects(kernel).lasting
        if v.value is not None and builtin(bare(v.value)) == "threadIdx.x" and not v.type.depth
    )  # fmt: skip


def fixed_numbers(kernel: Kernel) -> dict[Variable | str, int]:
    """What locals and names of the module are that are numbers all along."""
    effects, found = Effects(kernel), dict[Variable | str, int]()
    own = [v for v in effects.lasting - effects.lent if v.storage == "local"]
    module = [v for d in kernel.unit.declarations if not any(w in d.words for w in _KEPT)
              for v in d.variables]  # fmt: skip
    names = [v.name for d in kernel.unit.declarations for v in d.variables]
    hidden = kernel.program.values.keys() | {p.name for p in kernel.function.template}
    for v in (*own, *module):
        kind = named(v.type.base, kernel.unit.aliases)
        whole = kind.integral and kind.lanes == 1 and (kind.size or 0) >= _WORD
        value = number_of(v.value, {}) if v.value is not None and not v.array else None
        if not whole or v.type.depth or v.type.volatile or value is None:
            continue
        if v in own:
            found[v] = value
        elif v.type.const and names.count(v.name) == 1 and v.name not in hidden:
            found[v.name] = value
    return found


def number_of(expr: Expr, fixed: Mapping[Variable | str, int]) -> int | None:
    """The number that an expression is, where every type on the way holds it."""
    match expr:
        case Literal(value=int(value)):
            return value
        case Cast(operand=operand):
            number = number_of(operand, fixed)
            return number if number is not None and number <= _LEAST else None
        case Name(name=name, variable=variable):
            return fixed.get(name if variable is None else variable)
        case Binary(op="+" | "-" | "*" as op, left=left, right=right):
            one, other = number_of(left, fixed), number_of(right, fixed)
            if one is None or other is None:
                return None
            found = one * other if op == "*" else one + other if op == "+" else one - other
            return found if 0 <= found <= _MOST else None
    return None


def _parts(expr: Expr, own: _Own) -> Iterator[tuple[Expr, str, int]]:
    """Quotients and rests of a thread's number: each with ``/`` or ``%``, and by what."""
    if isinstance(expr, Binary) and _is_number(expr.left, own.holding):
        value = number_of(expr.right, own.fixed)
        if value is not None and 0 < value <= _MOST:
            match expr.op:
                case "/" | "%":
                    yield expr, expr.op, value
                case ">>" if value < 10:
                    yield expr, "/", 1 << value
                case "&" if value & (value + 1) == 0:
                    yield expr, "%", value + 1
    for part in expr.parts:
        yield from _parts(part, own)


def _is_number(expr: Expr, holding: Collection[Variable]) -> bool:
    plain = bare(expr)
    if isinstance(plain, Name):
        return plain.variable in holding
    return builtin(plain) == "threadIdx.x"


def _take_apart(expr: Expr, own: _Own, whole: dict[str, Expr], swaps: dict[Node, Node]) -> None:
    found = next(((op, of) for of, op, _ in _parts(expr, own) if of is expr), None)
    if found is not None:
        swaps[expr] = _X if found[0] == "%" else _Y
    elif builtin(expr) == "threadIdx.x":
        swaps[expr] = whole["number"]
    elif builtin(expr) == "blockDim.x":
        swaps[expr] = whole["count"]
    else:
        for part in expr.parts:
            _take_apart(part, own, whole, swaps)


def _number(expr: Expr, wide: int, count: int, swaps: dict[Node, Node]) -> None:
    """Exchange the numbers of a thread; raises NotLegal where one axis alone is asked for."""
    if isinstance(expr, Binary) and expr.op == "+":
        terms = [*chain(expr, "+")]
        x = next((t for t in terms if builtin(bare(t)) == "threadIdx.x"), None)
        y = next((t for t in terms if _is_row(bare(t), wide)), None)
        if x is not None and y is not None:
            whole: Expr | None = None
            for term in (t for t in terms if t is not x and t is not y):
                inner: dict[Node, Node] = {}
                _number(term, wide, count, inner)
                new = edited(term, inner) if inner else term
                whole = new if whole is None else Binary(None, "+", whole, new)
            swaps[expr] = _X if whole is None else Binary(None, "+", whole, _X)
            return
    if isinstance(expr, Binary) and expr.op == "*":
        extents = {builtin(bare(expr.left)), builtin(bare(expr.right))}
        if extents == {"blockDim.x", "blockDim.y"}:
            swaps[expr] = _literal(count)
            return
    if builtin(expr) in ("threadIdx.x", "threadIdx.y", "blockDim.x", "blockDim.y"):
        raise NotLegal("its threads do more than to number themselves")
    for part in expr.parts:
        _number(part, wide, count, swaps)


def _is_row(expr: Expr, wide: int) -> bool:
    """Whether this is the number of the first thread of a row of the block."""
    if not isinstance(expr, Binary) or expr.op != "*":
        return False
    for row, by in ((expr.left, expr.right), (expr.right, expr.left)):
        extent = bare(by)
        same = isinstance(extent, Literal) and extent.value == wide
        if builtin(bare(row)) == "threadIdx.y" and (same or builtin(extent) == "blockDim.x"):
            return True
    return False


def _literal(value: int) -> Literal:
    return Literal(None, f"{value}u", value)
