"""P4, shapes: the same threads of the same blocks, numbered along two axes or along one.

The hardware numbers the threads of a block with x first: ``block(16, 8)`` and ``block(128)`` have
the same warps, and what a thread is told by one it can compute from the other. A kernel that does
so by hand is given the shape that rules look for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Binary,
    Cast,
    Expr,
    Index,
    Literal,
    Member,
    Name,
    builtin,
)
from optiml_magic.kernels.functions import LANES
from optiml_magic.kernels.groups import ASKING
from optiml_magic.kernels.primitives.axes import GROUPS, every_place_read
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.places import chain, reached, tops
from optiml_magic.kernels.tree import Declare, Variable, expressions, walk
from optiml_magic.kernels.types import UINT, CType, arithmetic, named
from optiml_magic.model.launch import Dim3
from optiml_magic.source.expressions import Number, parse_expression

_WARP = 32
_WORD = 4  # bytes that hold a number of threads
_MOST = 1024  # threads of a block
_KEPT = ("__device__", "__constant__", "__shared__", "__managed__")
_SHIFTS = ("<<", ">>")
_TESTS = ("&&", "||")
_X, _Y = (Member(None, Name(None, "threadIdx"), axis) for axis in "xy")


@dataclass(frozen=True)
class _Own:
    """Locals ``holding`` the number of their thread, and what is ``fixed`` by a name."""

    kernel: Kernel
    holding: frozenset[Variable]
    fixed: Mapping[Variable | str, int]


@primitive
def planar(kernel: Kernel) -> Kernel:
    """A block of one axis whose threads take their number apart, as a block of two axes."""
    count, *others = kernel.block
    if count is None or others != [1, 1] or not isinstance(kernel.launch.block[0].tree, Number):
        raise NotLegal("its block has no fixed extent along one axis")
    _own_places_only(kernel)
    own = _Own(kernel, _holding(kernel), fixed_numbers(kernel))
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
    plain: dict[str, Expr] = {"threadIdx.x": number, "blockDim.x": _literal(count),
                              "threadIdx.y": _literal(0), "blockDim.y": _literal(1)}  # fmt: skip
    swaps, loose = dict[Node, Node](), _loose(kernel)
    for top in tops(kernel.function.body):
        _take_apart(top, own, plain, loose, swaps)
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
        _number(kernel, top, wide, swaps)
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
        if v.value is not None and builtin(_unchanged(kernel, v.value)) == "threadIdx.x"
        and v.storage == "local" and not v.array and not v.type.depth and not v.type.volatile
        and (v.type.base == "auto" or _is_whole(named(v.type.base, kernel.unit.aliases)))
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
        whole = _is_whole(named(v.type.base, kernel.unit.aliases))
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
        case Cast(operand=operand, type=kind) if _is_whole(named(kind, {})):
            return number_of(operand, fixed)
        case Name(name=name, variable=variable):
            return fixed.get(name if variable is None else variable)
        case Binary(op="+" | "-" | "*" as op, left=left, right=right):
            one, other = number_of(left, fixed), number_of(right, fixed)
            if one is None or other is None:
                return None
            found = one * other if op == "*" else one + other if op == "+" else one - other
            return found if 0 <= found <= _MOST else None
        case Binary(op="/", left=left, right=right):
            one, other = number_of(left, fixed), number_of(right, fixed)
            return one // other if one is not None and other and min(one, other) >= 0 else None
    return None


def _parts(expr: Expr, own: _Own) -> Iterator[tuple[Expr, str, int]]:
    """Quotients and rests of a thread's number: each with ``/`` or ``%``, and by what."""
    if isinstance(expr, Binary) and _is_number(expr.left, own):
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


def _is_number(expr: Expr, own: _Own) -> bool:
    plain = _unchanged(own.kernel, expr)
    if isinstance(plain, Name):
        return plain.variable in own.holding
    return builtin(plain) == "threadIdx.x"


def _is_whole(kind: CType) -> bool:
    """Whether a type holds the number of a thread, whatever it is."""
    return kind.integral and kind.lanes == 1 and (kind.size or 0) >= _WORD


def _unchanged(kernel: Kernel, expr: Expr) -> Expr:
    """A number without the conversions around it that leave it the number that it is."""
    while isinstance(expr, Cast) and _is_whole(named(expr.type, kernel.unit.aliases)):
        expr = expr.operand
    return expr


def _take_apart(
    expr: Expr, own: _Own, plain: Mapping[str, Expr], loose: Collection[Expr],
    swaps: dict[Node, Node],
) -> None:  # fmt: skip
    found = next(((op, of) for of, op, _ in _parts(expr, own) if of is expr), None)
    if found is not None:
        part = _X if found[0] == "%" else _Y
        swaps[expr] = part if expr in loose else _as_before(own.kernel, expr, part)
    elif builtin(expr) in plain:
        swaps[expr] = plain[builtin(expr)]
    else:
        for inner in expr.parts:
            _take_apart(inner, own, plain, loose, swaps)


def _as_before(kernel: Kernel, expr: Expr, part: Expr) -> Expr:
    """What stands for an expression, of the type that this has."""
    kind = kernel.reading.types.get(expr)
    if kind is None or not _is_whole(kind):
        raise NotLegal("the type of a part of a thread's number is not known")
    return part if _alike(kind, UINT) else Cast(None, kind.name, part)


def _alike(one: CType, other: CType) -> bool:
    return (one.kind, one.size, one.signed) == (other.kind, other.size, other.signed)


def _loose(kernel: Kernel) -> frozenset[Expr]:
    """The expressions that may be of any type that holds them: others say what becomes of them.

    Of numbers that are small and not negative, as those of threads are.
    """
    types, found = kernel.reading.types, set[Expr]()
    for statement in walk(kernel.function.body):
        if isinstance(statement, Declare):
            kinds = [(v, named(v.type.base, kernel.unit.aliases)) for v in statement.variables]
            found |= {v.value for v, kind in kinds if v.value is not None and _is_number_type(kind)
                      and v.opening == "=" and not v.type.reference and not v.array}  # fmt: skip
    for e in expressions(kernel.function.body):
        match e:
            case Index(index=index):
                found.add(index)
            case Cast(operand=operand) if _is_number_type(named(e.type, kernel.unit.aliases)):
                found.add(operand)
            case Binary(op=op, left=left, right=right) if op in _TESTS:
                found |= {left, right}
            case Binary(op=op, right=right) if op in _SHIFTS:
                found.add(right)
            case Binary(op=op, left=left, right=right) if op != ",":
                for side, beside in ((left, right), (right, left)):
                    own, other = types.get(side), types.get(beside)
                    if own is None or other is None or not _is_number_type(other):
                        continue
                    same = _alike(arithmetic(own, other), arithmetic(UINT, other))
                    if same and not _alike(own, UINT):
                        found.add(side)
                        break  # so that the other stays of its type
    return frozenset(found)


def _is_number_type(kind: CType) -> bool:
    return (kind.integral or kind.floating) and kind.lanes == 1


def _number(kernel: Kernel, expr: Expr, wide: int, swaps: dict[Node, Node]) -> None:
    """Exchange the numbers of a thread; raises NotLegal where one axis alone is asked for."""
    types = kernel.reading.types
    if isinstance(expr, Binary) and expr.op == "+" and _counts(types.get(expr)):
        terms = [*chain(expr, "+")]
        x = next((t for t in terms if builtin(_unchanged(kernel, t)) == "threadIdx.x"), None)
        y = next((t for t in terms if _is_row(kernel, _unchanged(kernel, t), wide)), None)
        kinds = [types.get(t) for t in (x, y) if t is not None]
        if x is not None and y is not None and all(k is not None and _is_whole(k) for k in kinds):
            whole: Expr | None = None
            for term in (t for t in terms if t is not x and t is not y):
                inner: dict[Node, Node] = {}
                _number(kernel, term, wide, inner)
                new = edited(term, inner) if inner else term
                whole = new if whole is None else Binary(None, "+", whole, new)
            kind = arithmetic(types[x], types[y])
            number = _X if _alike(kind, UINT) else Cast(None, kind.name, _X)
            swaps[expr] = number if whole is None else Binary(None, "+", whole, number)
            return
    if isinstance(expr, Binary) and expr.op == "*":
        extents = {builtin(_unchanged(kernel, side)) for side in expr.parts}
        if extents == {"blockDim.x", "blockDim.y"}:
            high = kernel.block[1]
            assert high is not None
            swaps[expr] = _as_before(kernel, expr, _literal(wide * high))
            return
    if builtin(expr) in ("threadIdx.x", "threadIdx.y", "blockDim.x", "blockDim.y"):
        raise NotLegal("its threads do more than to number themselves")
    for part in expr.parts:
        _number(kernel, part, wide, swaps)


def _counts(kind: CType | None) -> bool:
    """Whether a sum of this type is the same in whatever order its terms come."""
    return kind is not None and (kind.integral or kind.depth > 0)


def _is_row(kernel: Kernel, expr: Expr, wide: int) -> bool:
    """Whether this is the number of the first thread of a row of the block."""
    if not isinstance(expr, Binary) or expr.op != "*":
        return False
    for row, by in ((expr.left, expr.right), (expr.right, expr.left)):
        extent = _unchanged(kernel, by)
        same = isinstance(extent, Literal) and extent.value == wide
        if builtin(_unchanged(kernel, row)) == "threadIdx.y" and (
            same or builtin(extent) == "blockDim.x"
        ):
            return True
    return False


def _literal(value: int) -> Literal:
    return Literal(None, f"{value}u", value)
