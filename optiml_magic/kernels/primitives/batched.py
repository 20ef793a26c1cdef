"""P7, batched: what several rounds of a loop load is under way before the first of them computes.

A compiler that unrolls a loop asks before each few rounds whether all of them are left, and makes
those that remain in smaller steps: of eight rounds of a lane one, four, two and one, each of which
waits for memory. Here a tuned number of rounds is loaded at once, those of them that there are, and
only then computed with. Source: CUDA C++ Best Practices Guide, "Instruction-Level Parallelism";
little's law.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Call, Expr, Lambda, Name, Step, Unread, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.accumulating import check_quiet
from optiml_magic.kernels.primitives.again import again, always, stands
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.computing import only_computes
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.heads import Heads
from optiml_magic.kernels.primitives.items import WIDEST, element
from optiml_magic.kernels.primitives.kept import check_rounds, fits_registers, fixed_threads
from optiml_magic.kernels.primitives.places import code
from optiml_magic.kernels.primitives.sizes import most_rounds
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.primitives.unrolling import open_loops
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.tree import Block, Declare, Leave, Loop, Statement, Verbatim, walk
from optiml_magic.source.directives import TuneDirective

COUNTS = (1, 2, 4, 8)
_SHORT = 64  # rounds: a longer loop is made of a compiler's whole steps but for its end; ours


@dataclass(frozen=True, eq=False)
class Batch:
    """A loop, and the loads of its rounds, of which each stands for all of the same element."""

    axis: Axis
    loads: tuple[tuple[Access, ...], ...]

    @property
    def loop(self) -> Loop:
        return self.axis.node

    @property
    def bytes(self) -> int:
        """What a round loads."""
        return sum(same[0].element.size or 0 for same in self.loads)


@primitive
def batched(kernel: Kernel, count: int) -> Kernel:
    """The kernel whose short loops load ``count`` rounds at once, a tuned number."""
    found, reason = _found(kernel)
    if not found:
        raise reason or NotLegal("no loop of few rounds loads from memory")
    name = kernel.fresh("ROUNDS")
    fits = fits_registers(kernel, name, max(batch.bytes for batch in found))
    body, taken = kernel.function.body, list[str]()
    swaps = dict[Node, Node | tuple[Statement, ...] | None]()
    for batch in found:
        hints = hints_of(kernel, batch.loop)
        swaps |= dict.fromkeys(hints)
        swaps[batch.loop] = (lines(_Batching(kernel, batch, name, taken).text()),)
    return kernel.rewritten(
        edited(body, swaps), directives=[TuneDirective(name, COUNTS, count, fits)],
        bounds=fixed_threads(kernel),
    )  # fmt: skip


def batches(kernel: Kernel) -> list[Batch]:
    """The ``open_loops`` that are short, and all of whose loads may come before their rounds.

    But for those that others go through the same elements after: what they load is better kept.
    """
    return _found(kernel)[0]


def _found(kernel: Kernel) -> tuple[list[Batch], NotLegal | None]:
    """Also why the first of the others is none."""
    found, reason = list[Batch](), None
    if "volatile" in code(kernel.unit, kernel.function.span):
        return found, NotLegal("its memory may change at any time")
    effects, axes, kept = Effects(kernel), kernel.axes(), set[Loop]()
    with suppress(NotLegal):
        kept = {axis.node for group in again(kernel) for axis in group.axes}
    for loop in open_loops(kernel):
        count = most_rounds(kernel, axes[loop])
        if loop in kept or (count is not None and count > _SHORT):
            continue
        try:
            found.append(_batch(kernel, effects, axes[loop]))
        except NotLegal as why:
            reason = reason or why
    return found, reason


def _batch(kernel: Kernel, effects: Effects, axis: Axis) -> Batch:
    """Raises NotLegal where rounds do more than to load, and to compute with what they load."""
    loop, reading = axis.node, kernel.reading
    _check_head(kernel, effects, axis)
    check_quiet(kernel, effects, loop)
    for statement in walk(loop.body):
        if isinstance(statement, Leave | Verbatim):
            raise NotLegal("its rounds go on in several ways", statement.line)
    inside = effects.inside(loop.body)
    touched = [a for a in reading.accesses if a.own in inside and a.space != "local"]
    loading = {a.node for a in touched}
    for expr in inside:
        acts = isinstance(expr, Call) and expr not in loading and not only_computes(kernel, expr)
        if acts or isinstance(expr, Lambda | Unread):
            raise NotLegal("a function that it calls does more than compute", loop.line)
    groups: dict[object, list[Access]] = {}
    for access in touched:
        if access.mode != "load":
            raise NotLegal("its rounds do more than to load", access.line)
        if access.space != "global":
            continue
        _check_load(effects, axis, access)
        own = axis.name in reading.symbols.inside(_form(access))
        if own or axis.variable in names([access.own]):
            key = access.array, access.element.name, access.offset
            groups.setdefault(key, []).append(access)
    if not groups:
        raise NotLegal("its rounds load nothing of their own", loop.line)
    return Batch(axis, tuple(tuple(same) for same in groups.values()))


def _form(access: Access) -> Polynomial:
    """Where it loads, which has to be followed."""
    if access.offset is None:
        raise NotLegal("where it loads is not followed", access.line)
    return access.offset


def _check_head(kernel: Kernel, effects: Effects, axis: Axis) -> None:
    """Raise NotLegal where a round's counter is not known by its number."""
    loop, before = axis.node, axis.node.before
    heads = isinstance(before, Declare) and before.variables == (axis.variable,)
    upward = isinstance(loop.update, Step | Assign) and loop.update.op in ("++", "+=")
    if not axis.exact or axis.scaled or not heads or not upward or axis.step is None:
        raise NotLegal("the loop does not count up in its head", loop.line)
    check_rounds(kernel, axis, effects)
    if not axis.step.symbols <= {*kernel.program.values, "blockDim.x", "blockDim.y"}:
        raise NotLegal("several of its steps may be more than its counter holds", loop.line)


def _check_load(effects: Effects, axis: Axis, access: Access) -> None:
    """Raise NotLegal where a load of each round does not stand before all of them as well."""
    kind, source = access.element, element(effects, access)
    plain = not kind.depth and kind.kind in ("int", "float", "vector")
    if not plain or not kind.size or kind.size > WIDEST or access.call is not None:
        raise NotLegal("it loads more than a number or a vector", access.line)
    if source is None or not always(access, axis) or not stands(source, axis, effects):
        raise NotLegal("its rounds load from where others say", access.line)


class _Batching:
    def __init__(self, kernel: Kernel, batch: Batch, rounds: str, taken: list[str]) -> None:
        self.old, self.batch, self.rounds = kernel, batch, rounds
        self.effects = Effects(kernel)
        self.heads = Heads(kernel, [batch.loop], self.effects)
        self.first, self.round = kernel.fresh("first"), kernel.fresh("round")
        self.names = dict[tuple[Access, ...], str]()
        for same in batch.loads:
            array = same[0].array.replace(".", "_").replace(":", "_")
            self.names[same] = kernel.fresh(f"{array}_batch", *taken)
            taken.append(self.names[same])

    def text(self) -> str:
        """The loop over batches, in the words of the kernel."""
        axis, loop, first = self.batch.axis, self.batch.loop, self.first
        assert axis.variable is not None
        words, start = self.heads.start(loop, {})
        step = self._step()
        by = self.rounds if step == "1" else f"{self.rounds} * {step}"
        own = {e for e in self.effects.inside(loop)
               if isinstance(e, Name) and e.variable is axis.variable}  # fmt: skip
        begun = self.heads.test(loop, axis, dict.fromkeys(own, text(first)))
        ahead = self.round if step == "1" else f"{self.round} * {step}"
        const = "" if "const" in words else "const "
        each = (
            f"#pragma unroll\nfor (int {self.round} = 0; {self.round} < {self.rounds}; "
            f"++{self.round}) {{\n"
            f"{const}{words}{axis.variable.name} = {first} + {ahead};\n"
            f"if ({self.heads.test(loop, axis, {})}) "
        )
        swaps, declared, fills = dict[Node, Node](), list[str](), list[str]()
        for level in self._levels():
            loaded, found = list[str](), dict[Node, Node]()
            for same in level:
                name = self.names[same]
                here = f"{name}[{self.round}]"
                declared.append(f"{same[0].element.name} {name}[{self.rounds}];")
                loaded.append(f"{here} = {self.old.spelled(self._place(same[0]), swaps)};")
                found |= {self._place(access): text(here) for access in same}
            swaps |= found
            fills.append(f"{each}{{\n" + "\n".join(loaded) + "\n}\n}")
        body = loop.body if isinstance(loop.body, Block) else Block(None, loop.line, (loop.body,))
        parts = [
            "#pragma unroll 1",
            f"for ({words}{first} = {start}; {begun}; {first} += {by}) {{",
            *declared,
            *fills,
            f"{each}{self.old.show(body, swaps)}\n}}",
            "}",
        ]
        return "\n".join(parts)

    def _place(self, access: Access) -> Expr:
        place = element(self.effects, access)
        assert place is not None
        return place

    def _levels(self) -> list[list[tuple[Access, ...]]]:
        """The loads in the order in which they need each other, such as of ``a[b[k]]``."""
        levels, left = list[list[tuple[Access, ...]]](), [*self.names]
        while left:
            waiting = {self._place(a) for same in left for a in same}
            level = [
                same for same in left
                if not ({*every(self._place(same[0]))} - {self._place(same[0])}) & waiting
            ]  # fmt: skip
            left = [same for same in left if same not in level]
            levels.append(level)
        return levels

    def _step(self) -> str:
        update: Expr | None = self.batch.loop.update
        if isinstance(update, Assign):
            words = self.old.spelled(update.value)
            plain = words.replace(".", "").replace("_", "").replace(" * ", "").isalnum()
            return words if plain else f"({words})"
        return "1"
