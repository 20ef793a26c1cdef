"""P25, both at once: the sine and the cosine of an angle share how many turns are taken from it.

``sinf(x)`` and ``cosf(x)`` find that anew, each with a slow path for what is far from zero, which a
compiler does not see to be one. ``sincosf`` gives the same bits as both, for all that was tried,
but where a compiler knows the angle: then it has found both itself. Products of them, and sums of
these, a compiler may contract otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import (
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Index,
    Literal,
    Member,
    Name,
    Unary,
    builtin,
    every,
    is_logical,
)
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, lent_in, names
from optiml_magic.kernels.primitives.places import functions_of
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Function,
    If,
    Leave,
    Statement,
    Variable,
    walk,
)

#: By what a function asks for: its half of the result, and the function that finds both.
_HALVES = {
    name + end: (member, f"sincos{pi}{end}")
    for pi in ("", "pi") for member, name in (("x", f"sin{pi}"), ("y", f"cos{pi}"))
    for end in ("", "f")
}  # fmt: skip
_OWN = {"sincos": "sine_and_cosine", "sincospi": "sine_and_cosine_of_turns"}


@dataclass(frozen=True, eq=False)
class Pair:
    """Calls in statements of one block that ask for both of one angle, before the ``first``."""

    block: Block
    first: int
    calls: tuple[Call, ...]
    both: str
    kind: str


@primitive
def sines_at_once(kernel: Kernel) -> Kernel:
    """The kernel, and the functions that it calls, where both of an angle are found at once."""
    bodies: dict[Function, Block] = {}
    helpers = dict[str, None]()
    for function in functions_of(kernel):
        found = [*pairs(kernel, function)]
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
        taken: list[str] = []
        for block in {pair.block: None for pair in found}:
            own, begun = (
                list[Statement](),
                {p.first: list[str]() for p in found if p.block is block},
            )
            for pair in (p for p in found if p.block is block):
                angle = pair.calls[0].arguments[0]
                taken.append(name := kernel.fresh("turned", *taken))
                words = kernel.spelled(angle)
                by = _OWN[pair.both.removesuffix("f")]
                begun[pair.first].append(f"const {pair.kind}2 {name} = {by}({words});")
                helpers[_helper(pair)] = None
                for call in pair.calls:
                    half = _HALVES[bare(call.function)][0]
                    swaps[call] = Member(None, Name(None, name), half)
            for at, statement in enumerate(block.body):
                own += [lines(line) for line in begun.get(at, [])]
                own.append(edited(statement, swaps))
            swaps[block] = replace(block, body=tuple(own), span=None)
        if found:
            bodies[function] = edited(function.body, swaps)
    if not bodies:
        raise NotLegal("no angle is asked for its sine and its cosine")
    return kernel.with_bodies(bodies, list(helpers))


def pairs(kernel: Kernel, function: Function) -> Iterator[Pair]:
    """What a function asks for together; inner blocks first."""
    effects = Effects(kernel)
    lent = lent_in(function.body) | {p for p in function.parameters if p.type.reference}
    for block in reversed([s for s in walk(function.body) if isinstance(s, Block)]):
        known: dict[tuple[str, str, str], list[tuple[int, Call]]] = {}
        for at, statement in enumerate(block.body):
            for call in _calls(kernel, statement):
                if _changes_unseen(kernel, call.arguments[0], lent):
                    continue
                words = kernel.spelled(call.arguments[0])
                kind = kernel.reading.types[call].name
                both = _HALVES[bare(call.function)][1].removesuffix("f")
                known.setdefault((words, both, kind), []).append((at, call))
        for (_, both, kind), calls in known.items():
            yield from _together(effects, block, calls, both, kind)


def has_pairs(kernel: Kernel) -> bool:
    """Whether there is such an angle in the kernel, or in what it calls."""
    return any(True for function in functions_of(kernel) for _ in pairs(kernel, function))


def _together(
    effects: Effects, block: Block, calls: Sequence[tuple[int, Call]], both: str, kind: str
) -> Iterator[Pair]:
    """The runs of calls between which the angle stays what it is."""
    run: list[tuple[int, Call]] = []
    for at, call in calls:
        asked = names([call.arguments[0]])
        first = run[0][0] if run else at
        between = block.body[first:at]
        given = {v for s in between for v in effects.given(s)} & asked
        declared = isinstance(block.body[at], Declare) and asked & effects.given(block.body[at])
        moved = effects.changed(block.body[at]).keys() & asked
        loads = any(isinstance(e, Index) for e in every(call.arguments[0]))
        stored = loads and not all(effects.computes(s, ()) for s in between)
        if given or stored or declared or moved:
            yield from _pair(block, run, both, kind)
            run = []
        if not declared and not moved:
            run.append((at, call))
    yield from _pair(block, run, both, kind)


def _pair(block: Block, run: Sequence[tuple[int, Call]], both: str, kind: str) -> Iterator[Pair]:
    calls = tuple(call for _, call in run)
    if len({_HALVES[bare(call.function)][0] for call in calls}) == 2:
        ending = "f" if kind == "float" else ""
        yield Pair(block, run[0][0], calls, f"{both}{ending}", kind)


def _calls(kernel: Kernel, statement: Statement) -> Iterator[Call]:
    """Such calls that a statement makes in any case, of an angle that is computed from names."""
    if isinstance(statement, If):
        todo = [statement.test] if statement.before is None else []
    else:
        plain = isinstance(statement, Declare | Evaluate | Leave)
        todo = [*statement.expressions] if plain else []
    while todo:
        expr = todo.pop(0)
        if isinstance(expr, Call) and _is_one(kernel, expr):
            yield expr
            continue
        if isinstance(expr, Choice) or is_logical(expr):
            todo.insert(0, expr.parts[0])
        else:
            todo[:0] = expr.parts


def _is_one(kernel: Kernel, call: Call) -> bool:
    kind = kernel.reading.types.get(call)
    plain = Name | Literal | Index | Member | Binary | Unary | Cast
    return (
        bare(call.function) in _HALVES and len(call.arguments) == 1
        and not kernel.unit.called(call.function, 1)
        and kind is not None and kind.name in ("float", "double")
        and all(isinstance(e, plain) or builtin(e) for e in every(call.arguments[0]))
        and not any(isinstance(e, Unary) and e.op not in "+-" for e in every(call.arguments[0]))
        and not any(isinstance(e, Member) and e.arrow for e in every(call.arguments[0]))
    )  # fmt: skip


def _changes_unseen(kernel: Kernel, angle: Expr, lent: frozenset[Variable]) -> bool:
    """Whether more than the names of an angle's locals may lead to what it is computed from."""
    reading, same = kernel.reading, Effects(kernel).same
    lost = any(a.mode != "load" and not a.array for a in reading.accesses)
    held = {a.node for a in reading.accesses if a.space == "global" and a.call is None
            and a.array and not any(same(a.array, w) for w in reading.written)
            and not lost}  # fmt: skip
    loads = (e for e in every(angle) if isinstance(e, Index))
    return bool(names([angle]) & lent) or not all(e in held for e in loads)


def _helper(pair: Pair) -> str:
    own = _OWN[pair.both.removesuffix("f")]
    return (
        f"__device__ __forceinline__ {pair.kind}2 {own}({pair.kind} angle) {{\n"
        f"    {pair.kind}2 both;\n    {pair.both}(angle, &both.x, &both.y);\n    return both;\n}}\n"
    )
