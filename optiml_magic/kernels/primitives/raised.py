"""``lanes`` and ``combine`` undone: a block whose threads work together becomes one thread.

Rules then see one item a thread, whatever tree, warps or single threads a block has put its parts
together by. The threads of a block take each step together (``lockstep``), and what is left of that
for one thread is plain loops (``raising``).
"""

from __future__ import annotations

import re
from dataclasses import replace

from optiml_magic.kernels.editing import Node, Swaps, edited
from optiml_magic.kernels.expressions import Assign, Call, Choice, Name, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.accumulating import in_register
from optiml_magic.kernels.primitives.added_in_rounds import adding, parts_of
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive, where_legal
from optiml_magic.kernels.primitives.carved import carved
from optiml_magic.kernels.primitives.collectives import collectives
from optiml_magic.kernels.primitives.cutting import TOLD, cut
from optiml_magic.kernels.primitives.dealt_in_turn import dealt_in_turn
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.first_rounds import first_rounds
from optiml_magic.kernels.primitives.in_place import in_place
from optiml_magic.kernels.primitives.lines_apart import lines_apart
from optiml_magic.kernels.primitives.members_apart import members_apart
from optiml_magic.kernels.primitives.one_round import one_round
from optiml_magic.kernels.primitives.opened import opened
from optiml_magic.kernels.primitives.places import bare
from optiml_magic.kernels.primitives.planes_apart import planes_apart
from optiml_magic.kernels.primitives.raising import Raising
from optiml_magic.kernels.primitives.roles import key_of
from optiml_magic.kernels.primitives.scalars_held import scalars_held
from optiml_magic.kernels.primitives.shares import Kept, Worded
from optiml_magic.kernels.primitives.striped import striped
from optiml_magic.kernels.primitives.threaded import threaded
from optiml_magic.kernels.primitives.unstrided import unstrided
from optiml_magic.kernels.primitives.warps_apart import warps_apart
from optiml_magic.kernels.primitives.whole_tests import whole_tests
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Statement,
    Variable,
    expressions,
    walk,
)
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.source.expressions import Number, parse_expression

_WIDTH = 256
_MOST_FOUND = 64
_EQUALS = "which of several equal extremes is kept"
_ORDER = "the order of additions"
_NUMBERS = "what an extreme is where an element is NaN"
#: What became of kernels, since every rule asks anew at each node of a search.
_FOUND: dict[tuple[str, ...], Kernel | Refused] = {}


@primitive
def raised(kernel: Kernel, *, rows: bool = False) -> Kernel:
    """A kernel whose blocks work on an item each, as one of an item a thread.

    Where ``rows`` may be left, one that the block's threads compute together in shared memory is
    a local array as long as that, which whoever asks takes away.
    """
    key = (kernel.program.text, str(kernel.launch), str(kernel.facts), kernel.chip, str(rows))
    found = _FOUND.get(key)
    if found is None:
        if len(_FOUND) >= _MOST_FOUND:
            _FOUND.clear()
        found = _FOUND[key] = _raised(kernel, rows=rows)
    if isinstance(found, Refused):
        raise NotLegal(found.reason, found.line)
    return replace(found, behind=kernel.behind)


@primitive
def _raised(kernel: Kernel, *, rows: bool) -> Kernel:
    kernel = where_legal(whole_tests, where_legal(in_place, kernel))
    kernel = where_legal(collectives, kernel)
    kernel = where_legal(planes_apart, where_legal(members_apart, kernel))
    kernel = where_legal(lines_apart, kernel)
    kernel = where_legal(carved, where_legal(warps_apart, kernel), rows=rows)
    for step in (striped, first_rounds, *((scalars_held, one_round) if rows else ())):
        kernel = where_legal(step, kernel)
    if not any(a.space == "shared" for a in kernel.reading.accesses) and not any(
        name.startswith(("__shfl", "__reduce")) for name in kernel.reading.calls
    ):
        raise NotLegal("its threads do not work together")
    if not all(isinstance(size.tree, Number) for size in kernel.launch.block):
        raise NotLegal("how many threads its blocks have is not a number")
    Effects(kernel).straightforward(lanes=True, alone=False)
    for name in sorted(kernel.reading.calls):
        if name in TOLD or name.startswith("__threadfence"):
            raise NotLegal(f"`{name}` is not followed")
    kernel = where_legal(in_register, kernel)
    apart = _adds_up(kernel)
    kernel = kernel if apart else where_legal(dealt_in_turn, kernel)
    left = _rows(kernel) if rows else frozenset()
    try:
        body, told = _alone(kernel, left) if apart else _followed(kernel, rows=left)
    except NotLegal:
        if not apart:
            raise
        apart = False  # such as the greatest of what each block has the least of
        kernel = where_legal(dealt_in_turn, kernel)
        body, told = _followed(kernel, rows=left)
    kernel = replace(kernel, arithmetic=tuple(dict.fromkeys((*kernel.arithmetic, *told))))
    found = _tidy(kernel, body)
    if apart:
        made = kernel.rewritten(found, launch=replace(kernel.launch, shared=None))
        return made.rewritten(_tidy(made, _within(made)))
    one = parse_expression("1")
    launch = replace(kernel.launch, block=(one,), shared=None)
    bounds = str(_WIDTH) if kernel.function.launch_bounds else ""
    made = where_legal(opened, kernel.rewritten(found, launch=launch, bounds=bounds))
    late = _begun(made.function.body)
    made = made.rewritten(late) if late is not made.function.body else made
    made = where_legal(unstrided, with_facts(made, kernel.facts, 1))
    if made.block[0] != 1:
        return made
    wide = cut(made, {"x": _WIDTH})
    if isinstance(wide, Kernel):
        return with_facts(wide, made.facts, _WIDTH)
    alone = all(size.tree == Number(1) for size in made.launch.grid)
    return made if alone else where_legal(threaded, made)


def _adds_up(kernel: Kernel) -> bool:
    """Whether blocks add to places that are the same along their threads, whatever else they do."""
    accesses = kernel.reading.accesses
    added = [a for a in accesses if a.space == "global" and a.mode == "atomic"]
    inside = kernel.reading.symbols.inside
    along = {
        f"blockIdx.{axis}" for axis, size in zip("xyz", kernel.block, strict=True) if size != 1
    }
    return bool(added) and all(a.index is not None and not along & inside(a.index) for a in added)


def _within(kernel: Kernel) -> Block:
    """What a thread finds in a loop or in a branch and adds at last, added where it finds it.

    So the rounds can be dealt out anew, and threads without work have nothing to add.
    """
    body = kernel.function.body
    *before, last = body.body or (None,)
    match last:
        case Evaluate(expression=Call(arguments=(_, value)) as call):
            named = [e for e in every(call) if isinstance(e, Name) and e.variable is not None]
        case _:
            return body
    held = [n for n in named if n.variable not in kernel.function.parameters]
    variable = held[0].variable if len(held) == 1 else None
    if variable is None or held[0] not in {*every(value)}:
        return body
    (name,), found = held, list[Statement]()
    declared = next((v for s in before if isinstance(s, Declare) for v in s.variables
                     if v is variable), None)  # fmt: skip
    for statement in walk(body):
        heads = [e for top in statement.expressions for e in every(top)]
        if variable in names(heads):
            found.append(statement)
    match declared, found:
        case Variable(value=Choice(test=test, then=then, other=other)), [_] if (
            key_of(bare(other)) == "0"
        ):
            branch = If(None, 0, test, Block(None, 0, (adding(call, name, then),)))
            return edited(body, {last: branch})
    parts = parts_of(body, variable, last)
    swaps: Swaps = {statement: adding(call, name, part) for statement, part in parts}
    return edited(body, {**swaps, last: None}) if swaps else body


def with_facts(made: Kernel, facts: LaunchFacts | None, width: int) -> Kernel:
    """With what is known of its launch, whose blocks were of one thread, or were whole items."""
    if facts is None:
        return made
    grid = (-(-facts.grid[0] // width), *facts.grid[1:])
    return replace(made, facts=replace(facts, grid=grid, block=(width, 1, 1)))


def rows_left(kernel: Kernel, alone: Kernel, made: Kernel) -> bool:
    """Whether ``made`` still has a row that ``alone`` has in the place of what a block shared."""
    rows = _arrays(alone) - _arrays(kernel)
    return bool(rows & _arrays(made))


def _arrays(kernel: Kernel) -> frozenset[str]:
    """The local arrays of a kernel."""
    return frozenset(v.name for s in walk(kernel.function.body) if isinstance(s, Declare)
                     for v in s.variables if v.array and v.storage == "local")  # fmt: skip


def _rows(kernel: Kernel) -> frozenset[Variable]:
    """The shared arrays that are stored to in rounds which the threads of a block share."""
    starts = {a.name: a.start for a in kernel.axes().values() if a.start is not None}
    shared = {n for n, start in starts.items() if start.coefficient("threadIdx.x") is not None
              and start.coefficient("threadIdx.x") != Polynomial()}  # fmt: skip
    stored = {a.array for a in kernel.reading.accesses
              if a.space == "shared" and a.mode == "store" and shared & {*a.loops}}  # fmt: skip
    stored -= {a.array for a in kernel.reading.accesses if a.mode == "atomic"}
    declared = (s.variables[0] for s in walk(kernel.function.body)
                if isinstance(s, Declare) and len(s.variables) == 1)  # fmt: skip
    return frozenset(v for v in declared if v.name in stored and len(v.extents) == 1)


def _alone(kernel: Kernel, rows: frozenset[Variable]) -> tuple[Block, list[str]]:
    """What is left where each thread adds by itself, with its rounds and its ways as they are."""
    try:
        return _followed(kernel, apart=True, rows=rows)
    except NotLegal:
        return _followed(kernel, apart=True, rows=rows, whole=True)


def _followed(
    kernel: Kernel, *, rows: frozenset[Variable], apart: bool = False, whole: bool = False
) -> tuple[Block, list[str]]:
    """What is left for one thread, and what that changes of the arithmetic."""
    kept: set[Variable] = set()
    worded = False
    while True:
        raising = Raising(kernel, kept, apart=apart, worded=worded, rows=rows, whole=whole)
        try:
            body = raising.body()
        except Worded:
            worded = True
            continue
        except Kept as more:
            if more.variable in kept:
                raise NotLegal(f"`{more.variable.name}` is not followed") from None
            kept.add(more.variable)
            continue
        if not (raising.combines or rows):
            raise NotLegal("its threads combine nothing")
        if not raising.stores:
            raise NotLegal("its blocks store nothing that is followed")
        told = {_EQUALS: raising.equals, _ORDER: raising.reordered, _NUMBERS: raising.compared}
        return body, [change for change, made in told.items() if made]


def _tidy(kernel: Kernel, body: Block) -> Block:
    """Without the locals that nothing asks for any more."""
    while True:
        words = re.findall(r"\w+", kernel.show(body))
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
        for statement in walk(body):
            if isinstance(statement, Declare):
                left = tuple(v for v in statement.variables if words.count(v.name) > 1 or _does(v))
                if len(left) < len(statement.variables):
                    swaps[statement] = replace(statement, variables=left, span=None) if left else ()
        if not swaps:
            return body
        body = edited(body, swaps)


def _begun(body: Block) -> Block:
    """Locals declared where they get their first value, if that is among the same statements."""
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    for at, declared in enumerate(body.body):
        if not isinstance(declared, Declare) or len(declared.variables) != 1:
            continue
        (variable,) = declared.variables
        asking = [s for s in body.body[at + 1 :] if any(
            isinstance(e, Name) and e.variable is variable for e in expressions(s))]  # fmt: skip
        match asking[:1]:
            case [Evaluate(expression=Assign(op="=", target=Name(), value=value)) as first] if (
                variable.value is None and not variable.extents and not variable.initial
                and not any(isinstance(e, Name) and e.variable is variable for e in every(value))
            ):  # fmt: skip
                given = replace(variable, value=value, span=None)
                swaps |= {declared: None, first: replace(declared, variables=(given,), span=None)}
    return edited(body, swaps) if swaps else body


def _does(variable: Variable) -> bool:
    return variable.value is not None and any(
        isinstance(e, Assign | Call) for e in every(variable.value)
    )
