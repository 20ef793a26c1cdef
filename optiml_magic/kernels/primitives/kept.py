"""P9, keep: what several loops of a thread touch in the same rounds stays in registers.

The first ``count`` rounds of each loop are unrolled and take their elements from a local array,
which is loaded before the first of them, all at once, so that many loads are under way; the rounds
behind these do as they did. So nothing is asked of how many rounds there are.

An array that is written may stay too where no thread touches other elements of it than its own: it
is then written where the kernel wrote it, but for stores that a later loop makes again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Call, Expr, Name, every
from optiml_magic.kernels.functions import LANES
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in
from optiml_magic.kernels.primitives.heads import Heads
from optiml_magic.kernels.primitives.items import element
from optiml_magic.kernels.primitives.places import code, reached
from optiml_magic.kernels.primitives.rounds import moves
from optiml_magic.kernels.primitives.staged import hints_before
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Loop,
    Statement,
    expressions,
    walk,
)
from optiml_magic.source.directives import TuneDirective

_ROUND = Polynomial.symbol("@round")
_WIDE = 4  # bytes of a counter to which several steps may be added


@dataclass(frozen=True)
class Kept:
    """The accesses to one element a round of an array; ``loads`` where it must be loaded first."""

    array: str
    kind: str
    size: int
    accesses: tuple[Access, ...]
    source: Expr | None  # what stands for the element in the first loop that touches it


@dataclass(frozen=True)
class Again:
    """Loops side by side whose rounds are the same, and what they touch more than once."""

    numbers: tuple[int, ...]
    axes: tuple[Axis, ...]
    kept: tuple[Kept, ...]

    @property
    def bytes(self) -> int:
        """What a round keeps."""
        return sum(one.size for one in self.kept)

    @property
    def widest(self) -> int:
        """The bytes of its largest access."""
        return max(one.size for one in self.kept)


def again(kernel: Kernel) -> tuple[Again, ...]:
    """The groups of loops that touch the same elements.

    Raises NotLegal where there are some that nothing may be moved across.
    """
    effects, axes, found = Effects(kernel), kernel.axes(), list[Again]()
    loops = loops_in(kernel.function.body)
    for block in (s for s in walk(kernel.function.body) if isinstance(s, Block)):
        own = [axes[s] for s in block.body if isinstance(s, Loop) and s in axes]
        for same in _alike(own, _extents(kernel)):
            kept = tuple(_kept(kernel, same, effects))
            if kept:
                touched = {a.own for one in kept for a in one.accesses}
                used = [x for x in same if touched & effects.inside(x.node)]
                numbers = tuple(loops.index(x.node) for x in used)
                found.append(Again(numbers, tuple(used), kept))
    if found:
        effects.straightforward(lanes=True, alone=False)
        if "volatile" in code(kernel.unit, kernel.function.span):
            raise NotLegal("its memory may change at any time")
    return tuple(found)


@primitive
def keep(kernel: Kernel, at: Sequence[int], count: int, counts: Sequence[int]) -> Kernel:
    """The loops with these numbers keep what they touch in their first ``count`` rounds."""
    found = next((one for one in again(kernel) if one.numbers == tuple(at)), None)
    if found is None:
        raise NotLegal("the loops do not touch the same elements")
    return _Keeping(kernel, found, TuneDirective(kernel.fresh("KEEP"), tuple(counts), count)).made()


def _alike(axes: Iterable[Axis], held: frozenset[str]) -> Iterator[list[Axis]]:
    """The loops, of those side by side, that make the same rounds.

    Those that begin behind what is ``held`` in local arrays are what a step like this has left.
    """
    groups: list[list[Axis]] = []
    for axis in axes:
        if axis.scaled or axis.step is None or axis.variable is None or not axis.exact:
            continue
        if axis.start is None or axis.start.symbols & held:
            continue
        group = next((g for g in groups if _rounds(g[0]) == _rounds(axis)), None)
        if group is None:
            groups.append([axis])
        else:
            group.append(axis)
    return (group for group in groups if len(group) > 1)


def _extents(kernel: Kernel) -> frozenset[str]:
    """The names of how many elements local arrays have."""
    own = (a for a in kernel.reading.arrays.values() if a.space == "local")
    return frozenset(n for a in own for e in a.extents if e is not None for n in e.symbols)


def _rounds(axis: Axis) -> object:
    """What decides which rounds a loop makes; equal for loops that make the same."""
    test = axis.test  # equal guards also say that no thread leaves between two loops
    form = _by_round(test.form, axis) if isinstance(test, Compare) else None
    if form is None or axis.start is None:
        return axis
    return axis.start, axis.step, axis.stop, form, axis.guard


def _by_round(form: Polynomial, axis: Axis) -> Polynomial | None:
    """A form over the round, whichever loop that is of."""
    by = form.coefficient(axis.name)
    return None if by is None else form.without([axis.name]) + by * _ROUND


def _kept(kernel: Kernel, axes: Sequence[Axis], effects: Effects) -> Iterator[Kept]:
    """The elements that at least two of these loops touch, and may have for themselves."""
    found: dict[tuple[str, str, Polynomial], list[Access]] = {}
    for axis in axes:
        for access in effects.accesses(axis.node.body):
            form = _element(kernel, axis, access, effects)
            if form is not None:
                found.setdefault((access.array, access.element.name, form), []).append(access)
    for (array, kind, _), accesses in found.items():
        touching = [x for x in axes if any(x.name in a.loops for a in accesses)]
        first = [a for a in accesses if touching[0].name in a.loops]
        sure = next((a for a in first if _always(a, touching[0])), None)
        loaded = any(a.mode == "load" for a in accesses)
        if len(touching) < 2 or sure is None or not loaded or array in effects.moved:
            continue
        if not _alone(kernel, axes, accesses, effects):
            continue
        begins = first[0]
        fills = begins.mode == "store" and begins is sure and _plain_store(begins)
        source = None if fills else element(effects, sure)
        if fills or (source is not None and _stands(source, touching[0], effects)):
            yield Kept(array, kind, accesses[0].element.size or 0, tuple(accesses), source)


def _element(kernel: Kernel, axis: Axis, access: Access, effects: Effects) -> Polynomial | None:
    """Where an access is in a round; None where that cannot stay in a register."""
    form, symbols = access.offset, kernel.reading.symbols
    inner = {a.name for a in kernel.reading.axes if a.node in set(loops_in(axis.node.body))}
    kind = access.element
    if form is None or axis.name not in form.symbols or access.mode == "atomic":
        return None
    by = _by_round(form, axis)
    if by is None or kind.depth or not kind.size or kind.kind not in ("int", "float", "vector"):
        return None
    if ({axis.name} | inner) & symbols.inside(form.without([axis.name])):
        return None
    if not symbols.known(form) or element(effects, access) is None:
        return None
    return by


def _always(access: Access, axis: Axis) -> bool:
    known = {*axis.guard, *axis.test.conjuncts(), axis.test}
    return access.loops[-1] == axis.name and all(
        part in known for c in access.guard for part in c.conjuncts()
    )


def _plain_store(access: Access) -> bool:
    return isinstance(access.node, Assign) and access.node.op == "="


def _alone(
    kernel: Kernel, axes: Sequence[Axis], accesses: Sequence[Access], effects: Effects
) -> bool:
    """Whether nobody else changes the elements from the first of the loops to the last.

    Those of an array that is written are a thread's own where nothing else touches it, and all
    stores are made in every round: another thread would store there in the same loop.
    """
    same = [a for a in kernel.reading.accesses if effects.same(a.array, accesses[0].array)]
    if all(a.mode == "load" for a in same):
        return True
    if any(a not in accesses for a in same):
        return False
    by_name = {axis.name: axis for axis in axes}
    for access in accesses:
        axis = by_name[next(name for name in access.loops if name in by_name)]
        stored = isinstance(access.node, Assign) and access.call is None
        if access.mode == "store" and not (
            stored and _always(access, axis) and moves(kernel, axis, access, axis.node)
            and any(isinstance(s, Evaluate) and s.expression is access.node
                    for s in walk(axis.node.body))
        ):  # fmt: skip
            return False
    return True


def _stands(source: Expr, axis: Axis, effects: Effects) -> bool:
    """Whether an expression means the same before a loop, but for its counter.

    Where the loop is not counted yet, its counter may change in it.
    """
    inside = {v for s in walk(axis.node.body) if isinstance(s, Declare) for v in s.variables}
    changed = {*inside, *effects.changed(axis.node.body)}
    changed -= set() if is_counted(axis, effects) else {axis.variable}
    parts = [*every(source)]
    return not any(
        isinstance(e, Assign | Call) or (isinstance(e, Name) and e.variable in changed)
        for e in parts
    )


class _Keeping:
    def __init__(self, kernel: Kernel, found: Again, tune: TuneDirective) -> None:
        self.old = kernel
        self.found = found
        self.tune = tune
        self.effects = Effects(kernel)
        self.loops = [axis.node for axis in found.axes]
        self.heads = Heads(kernel, self.loops, self.effects)
        self.turn = kernel.fresh("turn")
        taken = list[str]()
        for one in found.kept:
            taken.append(kernel.fresh(f"{one.array.replace('.', '_').replace(':', '_')}_kept",
                                      *taken))  # fmt: skip
        self.names = dict(zip(found.kept, taken, strict=True))
        for axis in found.axes:
            self._check(axis)

    def _check(self, axis: Axis) -> None:
        """Raise NotLegal where rounds of a loop cannot stand apart from the others."""
        loop, kernel = axis.node, self.old
        assert axis.variable is not None
        if not is_counted(axis, self.effects):
            raise NotLegal("the loop does not count in its head", loop.line)
        kinds = (kernel.reading.types.get(e) for e in self.effects.inside(loop)
                 if isinstance(e, Name) and e.variable is axis.variable)  # fmt: skip
        if any(kind is not None and kind.integral and (kind.size or 0) < _WIDE for kind in kinds):
            raise NotLegal("its counter may not hold a longer step", loop.line)
        if any(axis.name in barrier.loops for barrier in kernel.reading.barriers):
            raise NotLegal("its threads wait in the loop", loop.line)
        for statement in walk(loop.body):
            if isinstance(statement, Declare) and any(
                v.storage != "local" for v in statement.variables
            ):
                raise NotLegal("it declares more than locals in the loop", statement.line)
        for call in (e for e in expressions(loop.body) if isinstance(e, Call)):
            own = kernel.unit.called(call.function, len(call.arguments))
            deep = [f for o in own for f in (o, *reached(kernel.unit, o))]
            if LANES.fullmatch(call.function) or any(
                "_sync" in code(kernel.unit, f.span) for f in deep
            ):
                raise NotLegal("lanes exchange values in the loop", loop.line)

    def made(self) -> Kernel:
        old, swaps = self.old, dict[Node, Node | tuple[Statement, ...] | None]()
        begun: set[Kept] = set()
        for axis in self.found.axes:
            around = next(s for s in walk(old.function.body)
                          if isinstance(s, Block) and axis.node in s.body)  # fmt: skip
            hints = hints_before(around, axis.node)
            swaps |= dict.fromkeys(hints)
            here = [k for k in self.found.kept
                    if k not in begun and self._touches(axis, k)]  # fmt: skip
            begun |= set(here)
            made = [f"{k.kind} {self.names[k]}[{self.tune.name}];" for k in here]
            loaded = [k for k in here if k.source is not None]
            if loaded:
                fill = "\n".join(
                    f"{self.names[k]}[{self.turn}] = {self._shown(k)};" for k in loaded
                )
                made.append(self._unrolled(axis, f"{{\n{fill}\n}}"))
            made.append(self._unrolled(axis, self._body(axis)))
            shown = "".join(f"{old.show(hint).strip()}\n" for hint in hints)
            made.append(shown + self._rest(axis))
            swaps[axis.node] = (lines("\n".join(made)),)
        return old.rewritten(edited(old.function.body, swaps), directives=[self.tune])

    def _touches(self, axis: Axis, kept: Kept) -> bool:
        return any(axis.name in a.loops for a in kept.accesses)

    def _shown(self, kept: Kept) -> str:
        assert kept.source is not None
        return self.old.show(Evaluate(None, 0, kept.source)).removesuffix(";")

    def _unrolled(self, axis: Axis, body: str) -> str:
        """A body for each of the rounds that are kept, where there is such a round."""
        words, start = self.heads.start(axis.node, {})
        assert axis.variable is not None
        name, turn = axis.variable.name, self.turn
        at = self._after(axis, turn, start)
        test = self.heads.test(axis.node, axis, {})
        const = "" if "const" in words else "const "
        return (
            f"#pragma unroll\nfor (int {turn} = 0; {turn} < {self.tune.name}; ++{turn}) {{\n"
            f"{const}{words}{name} = {at};\nif ({test}) {body}\n}}"
        )

    def _after(self, axis: Axis, rounds: str, start: str) -> str:
        """The value of a counter after so many rounds."""
        update, step = axis.node.update, self.heads.step(axis)
        kind = None
        if isinstance(update, Assign):
            kind = self.old.reading.types.get(update.target)
            words = self.old.show(Evaluate(None, 0, update.value)).removesuffix(";")
            if update.op == "+=" and words.replace(".", "").replace("_", "").isalnum():
                step = words  # such as the width of a block, which may become another one
        wide = f"({kind.name})" if kind is not None and kind.size == 8 else ""
        by = rounds if step == "1" else f"{wide}{rounds} * {step}"
        return by if start == "0" else f"{start} + {by}"

    def _rest(self, axis: Axis) -> str:
        """The rounds that are not kept, as they were."""
        words, start = self.heads.start(axis.node, {})
        assert axis.variable is not None
        assert axis.node.update is not None
        first = self._after(axis, self.tune.name, start)
        test = self.heads.test(axis.node, axis, {})
        update = self.old.show(Evaluate(None, 0, axis.node.update)).removesuffix(";")
        body = self.old.show(axis.node.body)
        return f"for ({words}{axis.variable.name} = {first}; {test}; {update}) {body}"

    def _body(self, axis: Axis) -> str:
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
        inside = self.effects.inside(axis.node.body)
        stores = dict[Node, tuple[Kept, Assign]]()
        for kept, name in self.names.items():
            for access in kept.accesses:
                if access.own not in inside:
                    continue
                here = text(f"{name}[{self.turn}]")
                swaps[element(self.effects, access) or access.node] = here
                if access.mode == "store" and isinstance(access.node, Assign):
                    stores[access.node] = kept, access.node
        told: dict[Node, tuple[Statement, ...]] = {}
        for statement in walk(axis.node.body):
            if isinstance(statement, Evaluate) and statement.expression in stores:
                kept, assign = stores[statement.expression]
                made = [self.old.show(statement, swaps)]
                if not self._made_again(axis, kept):
                    target = self.old.show(Evaluate(None, 0, assign.target)).removesuffix(";")
                    made.append(f"{target} = {self.names[kept]}[{self.turn}];")
                told[statement] = (lines("\n".join(made)),)
        body = axis.node.body
        whole = body if isinstance(body, Block) else Block(None, body.line, (body,))
        return self.old.show(whole, {**swaps, **told})

    def _made_again(self, axis: Axis, kept: Kept) -> bool:
        """Whether a later loop stores to the element as well; no thread leaves before it does."""
        names = [x.name for x in self.found.axes]
        later = names[names.index(axis.name) + 1 :]
        return any(a.mode == "store" and set(later) & {*a.loops} for a in kept.accesses)
