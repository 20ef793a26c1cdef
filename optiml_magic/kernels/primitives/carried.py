"""P9, carried: what a round stored, ``y[t - 1]``, is a local in the rounds that ask for it.

``y[t] = y[t - 1] + x[t];`` becomes ``float now = last + x[t]; y[t] = now; last = now;``. No round
then waits for memory that the one before has written, and what the loop still asks of the array is
one element a round, which other steps take several of at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Call, Expr
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.accumulating import check_quiet, first_test
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted
from optiml_magic.kernels.primitives.items import element, is_plain
from optiml_magic.kernels.primitives.naming import speller_before
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Axis, Space
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import Blank, Block, Declare, Evaluate, Leave, Loop, Written, walk

_THREAD = "threadIdx.x"
_FAR = 4  # rounds back, at most, of which what they stored is kept: ours


@dataclass(frozen=True, eq=False)
class Carried:
    """An array of which each round of a loop stores one element, by a ``statement`` of its own.

    ``loads`` are of what the rounds before stored, with how many rounds ago that was.
    """

    loop: Loop
    axis: Axis
    store: Access
    statement: Evaluate
    loads: tuple[tuple[Access, int], ...]

    @property
    def array(self) -> str:
        return self.store.array


@primitive
def carried(kernel: Kernel, space: Space = "global") -> Kernel:
    """The kernel with locals for what its loops store and ask for in the rounds behind.

    In shared memory these are loops of a single thread, while all others wait for it.
    """
    found = next(carrying(kernel, space), None)
    if found is None:
        raise NotLegal("no loop asks for what its rounds before stored")
    made = _kept(kernel, found)
    more = carried(made, space)
    return more if isinstance(more, Kernel) else made


def carrying(kernel: Kernel, space: Space = "global") -> Iterator[Carried]:
    """The arrays of which that holds."""
    stores = [a for a in kernel.reading.accesses
              if a.mode == "store" and a.loops and a.space == space
              and (space == "global" or _is_lone(a))]  # fmt: skip
    before = {(a.array, a.loops) for a in kernel.reading.accesses if a.mode == "load" and a.loops}
    candidates = [store for store in stores if (store.array, store.loops) in before]
    if not candidates:
        return
    effects = Effects(kernel)
    effects.straightforward(alone=space == "global")
    for loop, axis in kernel.axes().items():
        for store in candidates:
            if store.loops[-1] == axis.name and is_counted(axis, effects):
                try:
                    yield _carried(kernel, effects, axis, loop, store)
                except NotLegal:
                    continue


def _is_lone(access: Access) -> bool:
    """Whether one thread of a block alone comes to an access."""
    for part in (part for c in access.guard for part in c.conjuncts()):
        if isinstance(part, Compare) and part.op == "==":
            by, rest = part.form.coefficient(_THREAD), part.form.without([_THREAD])
            if by is not None and by.value in (1, -1) and rest.value is not None:
                return True
    return False


def _carried(
    kernel: Kernel, effects: Effects, axis: Axis, loop: Loop, store: Access
) -> Carried:  # fmt: skip
    check_quiet(kernel, effects, loop)
    inside = effects.inside(loop)
    accesses = [a for a in kernel.reading.accesses
                if a.own in inside and effects.same(a.array, store.array)]  # fmt: skip
    if any(a.mode != "load" and a is not store for a in accesses) or store.array in effects.moved:
        raise NotLegal("the array is stored to in another way as well", store.line)
    body = loop.body.body if isinstance(loop.body, Block) else (loop.body,)
    statement = next((s for s in body if store.node in s.expressions), None)
    if not isinstance(statement, Evaluate) or not isinstance(statement.expression, Assign):
        raise NotLegal("its store is not one of the loop's own statements", store.line)
    whole = is_plain(kernel, store) and element(effects, store) is not None
    if not whole or any(isinstance(s, Leave) for s in walk(loop.body)):
        raise NotLegal("not every round stores one number", store.line)
    by, symbols = _step(kernel, axis, store), kernel.reading.symbols
    asked = {e for s in body[: body.index(statement) + 1] for e in effects.inside(s)}
    loads = list[tuple[Access, int]]()
    for access in accesses:
        apart = None if access.index is None or store.index is None else store.index - access.index
        ago = next((n for n in range(1, _FAR + 1) if apart == by * Polynomial.constant(n)), None)
        plain = access.element == store.element and access.array == store.array
        if access.mode != "load" or ago is None or access.loops != store.loops:
            continue
        plain = plain and access.call is None and element(effects, access) is not None
        if not plain or access.node not in asked:
            raise NotLegal("what rounds before stored is not taken as a whole", access.line)
        if any(part not in axis.held for c in access.guard for part in c.conjuncts()):
            raise NotLegal("not every round asks for it", access.line)
        loads.append((access, ago))
    if {ago for _, ago in loads} != set(range(1, max((ago for _, ago in loads), default=1) + 1)):
        raise NotLegal("no round asks for what the one before stored", store.line)
    if not symbols.known(store.index or by):
        raise NotLegal("where it stores is not followed", store.line)
    return Carried(loop, axis, store, statement, tuple(loads))


def _step(kernel: Kernel, axis: Axis, store: Access) -> Polynomial:
    """How far apart the elements of two rounds are, which is not 0."""
    by = store.index.coefficient(axis.name) if store.index is not None else None
    if by is None or store.index is None:
        raise NotLegal("its rounds store to one element", store.line)
    symbols, one = kernel.reading.symbols, Polynomial.constant(1)
    if axis.name in symbols.inside(store.index.without([axis.name])):
        raise NotLegal("where it stores is not followed", store.line)
    apart = bool(by.value) if by.value is not None else False
    if not apart and not Ranges(store.guard, symbols).nonnegative(by - one):
        raise NotLegal("its rounds may store to one element", store.line)
    return by


def _kept(kernel: Kernel, one: Carried) -> Kernel:
    effects, store, axis = Effects(kernel), one.store, one.axis
    far = max(ago for _, ago in one.loads)
    plain = one.array.replace(".", "_")
    now = kernel.fresh(f"{plain}_now")
    last = [now, *(kernel.fresh(f"{plain}_{ago}", now) for ago in range(1, far + 1))]
    assign, kind = one.statement.expression, store.element.name
    assert isinstance(assign, Assign)
    assert store.index is not None
    swaps: dict[Node, Node] = {
        element(effects, access) or access.node: text(last[ago]) for access, ago in one.loads
    }
    value, place = (kernel.spelled(e, swaps)
                    for e in (assign.value, assign.target))  # fmt: skip
    if assign.op != "=":
        value = f"{place} {assign.op[:-1]} ({value})"
    stored = lines(f"const {kind} {now} = {value};\n{place} = {now};")
    moved = "\n".join(f"{last[ago]} = {last[ago - 1]};" for ago in range(far, 0, -1))
    body = one.loop.body.body if isinstance(one.loop.body, Block) else (one.loop.body,)
    inside = [stored if s is one.statement else edited(s, swaps) for s in body]
    whole = Block(None, one.loop.line, (*inside, lines(moved)))
    speller = speller_before(kernel, effects, one.loop)
    by = store.index.coefficient(axis.name)
    assert by is not None
    first = store.index.without([axis.name])
    test = "" if axis.first or axis.trips else first_test(kernel, effects, axis)
    begun, told = list[str](), dict[Node, tuple[Written, ...]]()
    for ago in range(1, far + 1):
        element_ago = first - by * Polynomial.constant(ago)
        stored_there = _stored_before(kernel, effects, one, element_ago)
        if stored_there is not None:
            statement, target, given = stored_there
            known = kernel.fresh(f"{plain}_begun", *last, *begun)
            words = f"const {kind} {known} = {kernel.spelled(given)};"
            told[statement] = (lines(f"{words}\n{kernel.spelled(target)} = {known};"),)
            begun.append(f"{kind} {last[ago]} = {known};")
            continue
        there = f"{one.array}[{speller.form(speller.local(element_ago))}]"
        begun.append(f"{kind} {last[ago]} = {f'{test} ? {there} : 0' if test else there};")
    made = lines("\n".join([*begun, kernel.show(one.loop, {one.loop.body: whole})]))
    return kernel.rewritten(edited(kernel.function.body, {**told, one.loop: (made,)}))


def _stored_before(
    kernel: Kernel, effects: Effects, one: Carried, place: Polynomial
) -> tuple[Evaluate, Expr, Expr] | None:
    """The statement in front of the loop that stores the element there, where it stores, and what.

    Nothing else is done between the two, so nobody has to load it again.
    """
    blocks = (s.body for s in walk(kernel.function.body) if isinstance(s, Block))
    ahead = next((body[: body.index(one.loop)] for body in blocks if one.loop in body), ())
    for statement in reversed(ahead):
        match statement:
            case Evaluate(expression=Assign(op="=", target=target, value=value)):
                own = effects.accesses(statement)
                store = next((a for a in own if a.mode == "store"), None)
                if store is None or effects.changed(statement):
                    return None
                alike = (store.array, store.element) == (one.array, one.store.element)
                if alike and store.index == place and is_plain(kernel, store):
                    return statement, target, value
                if any(effects.same(a.array, one.array) for a in own):
                    return None
            case Declare(variables=variables) if not effects.accesses(statement):
                if any(isinstance(e, Call) for e in effects.inside(statement)):
                    return None
                if any(v.name == one.array for v in variables):
                    return None
            case Blank():
                continue
            case _:
                return None
    return None
