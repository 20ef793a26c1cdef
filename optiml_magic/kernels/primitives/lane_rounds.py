"""P4 and P1, rounds that lanes share: the loops of a scope, its stores, and where lanes wait.

Outside of these loops all lanes do the same with the same values; a reduction ends with a
combination, after which all hold the whole; the first lane stores. Lanes that meet memory which
others have written wait for each other first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Literal, Name, every
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.appended import looking
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.broken import broken
from optiml_magic.kernels.primitives.broken import helpers as ways_out
from optiml_magic.kernels.primitives.combine import Group
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.primitives.heads import Heads
from optiml_magic.kernels.primitives.outward import Outward, outward
from optiml_magic.kernels.primitives.rounds import shareable
from optiml_magic.kernels.primitives.scanned import Scanning, helpers
from optiml_magic.kernels.primitives.scans import scanned
from optiml_magic.kernels.primitives.selections import Selection, selected
from optiml_magic.kernels.reading import Access, Reduction
from optiml_magic.kernels.tree import Block, Evaluate, Loop, Statement, Variable, walk


class LaneRounds:
    """``count`` lanes of a ``group`` share some loops of a ``scope``, each known as ``lane``.

    ``named`` is what functions that combine are told of the group. Loops that look ``far`` are
    looked ahead in where that is legal.
    """

    spaces: Collection[str] = ("global",)  # of arrays in which lanes meet
    leaves = False  # whether loops may be left early

    def __init__(
        self,
        kernel: Kernel,
        loops: Sequence[Loop],
        group: Group,
        effects: Effects,
        scope: Statement,
        *,
        far: bool = False,
    ) -> None:
        self.old = kernel
        self.group = group
        self.effects = effects
        self.scope = scope
        self.loops = list(loops)
        self.axes = kernel.axes()
        self.heads = Heads(kernel, self.loops, effects)
        self.check()
        looked = {loop: looking(kernel, loop, effects) for loop in self.loops if far}
        self.ahead = {loop: one for loop, one in looked.items() if one is not None}
        rest = [loop for loop in self.loops if loop not in self.ahead]
        ended = {loop: broken(kernel, loop, effects, group) for loop in rest if self.leaves}
        self.broken = {loop: one for loop, one in ended.items() if one is not None}
        self.reductions: dict[Loop, tuple[Reduction, ...]] = dict.fromkeys(self.ahead, ())
        self.reductions |= {loop: self.combined(loop) for loop in rest}
        whole = [loop for loop in rest if loop not in self.broken]
        found = {loop: scanned(kernel, loop, effects) for loop in whole}
        self.scans = {loop: scans for loop, scans in found.items() if scans is not None}
        if self.ahead and group != "warp":
            raise NotLegal("only lanes of a warp look ahead")
        if self.scans and group in ("apart", "stacked"):
            raise NotLegal("lanes that lie apart hand nothing on from round to round")
        self.selections = {
            r: selected(kernel, self.axes[loop], loop, r, effects)
            for loop, found in self.reductions.items() for r in found if r.carried
        }  # fmt: skip
        if self.selections and group in ("apart", "stacked"):
            raise NotLegal("what goes along with an extreme is not combined apart")
        self.outward = self._outward()
        self.taken: list[str] = []
        self.told: dict[Statement, Statement] = {}
        self.count = self.named = ""
        self.lane = kernel.fresh("lane")
        self.swaps: dict[Node, Node] = {}
        self.changes: dict[Node, tuple[Statement, ...]] = {}
        self.around: dict[Loop, tuple[list[str], list[str]]] = {}  # what is done before and after

    def check(self) -> None:
        """Raise NotLegal where lanes may not do together what is in the scope."""
        if any(set(loops_in(a.body)) & {b} for a in self.loops for b in self.loops if a is not b):
            raise NotLegal("a loop is inside another that is shared")

    def combined(self, loop: Loop) -> tuple[Reduction, ...]:
        """What the rounds of a loop combine. Raises NotLegal where lanes may not share them."""
        return shareable(self.old, loop, self.effects, scanning=True, broken=self.leaves)

    def share(self) -> None:
        """What becomes of the statements of the scope, into ``changes``."""
        for sum_ in {o for found in self.outward.values() for o in found}:
            self._add_up(sum_)
        self._stores()
        self._loops()
        self._waits()
        inner_first = sorted(self.around.items(), key=lambda one: len(loops_in(one[0])))
        for outer, (before, after) in inner_first:
            whole = edited(outer, {**self.swaps, **self.changes})
            self.changes[outer] = (*map(lines, before), whole, *map(lines, after))

    def fresh(self, name: str) -> str:
        self.taken.append(self.old.fresh(name, *self.taken))
        return self.taken[-1]

    def helpers(self) -> list[str]:
        group, plain = self.group, dict[str, None]()
        found = [r for own in self.reductions.values() for r in own if r not in self.selections
                 and self._local(r) not in self.outward]  # fmt: skip
        found += [o.reduction for sums in self.outward.values() for o in sums]
        if self.selections or self.ahead:
            plain[combine.MASK] = None
        plain |= dict.fromkeys(combine.helpers(found, group, mask=bool(self.waits or self.broken)))
        plain |= dict.fromkeys(ways_out(group, self.broken.values()))
        plain |= {s.helper(group): None for s in self.selections.values()}
        return [*plain | {h: None for s in self.scans.values() for h in helpers(s, group)}]

    def _loops(self) -> None:
        for block in [s for s in walk(self.scope) if isinstance(s, Block)]:
            shared = [s for s in block.body if s in self.reductions]
            for region in self._regions(block, shared):
                self._region(region)
        loose = [loop for loop in self.loops if loop not in self.changes]
        for loop in loose:  # the only statement of a branch or of another loop
            self._region([loop])

    def _regions(self, block: Block, shared: Sequence[Statement]) -> list[list[Statement]]:
        """Loops that combine into the same places, with nothing between that looks at these."""
        found: list[list[Statement]] = []
        for loop in shared:
            names = self._places(loop)
            if any(r in self.selections for r in self.reductions[loop]):  # type: ignore[index]
                names = frozenset()
            if found and names and self._places(found[-1][0]) == names:
                start = block.body.index(found[-1][-1])
                between = block.body[start + 1 : block.body.index(loop)]
                if not any(self.effects.mentions(s) & names for s in between):
                    found[-1].append(loop)
                    continue
            found.append([loop])
        return found

    def _places(self, loop: Statement) -> frozenset[Variable]:
        assert isinstance(loop, Loop)
        names = {reduction.place for reduction in self.reductions[loop]}
        return frozenset(v for v in self.effects.changed(loop.body) if v.name in names)

    def _region(self, region: Sequence[Statement]) -> None:
        before: list[str] = []
        after: list[str] = []
        private: dict[str, str] = {}
        for reduction in self.reductions[region[0]]:  # type: ignore[index]
            name = part = reduction.place
            if self._local(reduction) in self.outward:
                continue
            if reduction in self.selections:
                before.append(self._rounds(region[0], self.selections[reduction], after))
                continue
            if not combine.idempotent(reduction) and not self._zero(reduction, region[0]):
                part = private[name] = self.fresh(f"{name}_part")
                kind = reduction.type.name
                before.append(f"{kind} {part} = {combine.identity(reduction)};")
            whole = combine.combined(reduction, self.group, self.named, part)
            joined = f"{name} {reduction.op}= {whole};" if part != name else f"{name} = {whole};"
            after.append(joined)
        outer = self._outer(region)
        if outer is not None:
            first, last = self.around.setdefault(outer, ([], []))
            first += before
            last += after
            before, after = [], []
        for at, loop in enumerate(region):
            assert isinstance(loop, Loop)
            made = self._shared(loop, private)
            if at == 0:
                made = [*map(lines, before), *made]
            if at == len(region) - 1:
                made += map(lines, after)
            self.changes[loop] = tuple(made)

    def _outward(self) -> dict[Variable, tuple[Outward, ...]]:
        """The sums whose parts lanes keep, to add these up in loops around."""
        sums: dict[Variable, Reduction] = {}
        for loop, found in self.reductions.items():
            for reduction in found:
                local = self._local(reduction)
                if local is not None and self._zero(reduction, loop) and local not in sums:
                    sums[local] = reduction
        return outward(self.old, self.effects, sums, self.loops, self.scope)

    def _local(self, reduction: Reduction) -> Variable | None:
        """The local that the rounds of a shared loop combine into."""
        own = (loop for loop, found in self.reductions.items() if reduction in found)
        return next(
            (v for loop in own for v in self._places(loop) if v.name == reduction.place), None
        )

    def _add_up(self, sum_: Outward) -> None:
        """A part of a sum for each lane, to which it adds, and the whole behind the loop around."""
        name, reduction = sum_.place.name, sum_.reduction
        part = self.fresh(f"{name}_part")
        self.swaps |= {mention: text(part) for mention in sum_.mentions}
        first, last = self.around.setdefault(sum_.around, ([], []))
        first.append(f"{reduction.type.name} {part} = {combine.identity(reduction)};")
        last.append(f"{name} += {combine.combined(reduction, self.group, self.named, part)};")

    def _outer(self, region: Sequence[Statement]) -> Loop | None:
        """The outermost loop around these whose rounds add to the same places, and do no more.

        There the parts are combined once, behind it.
        """
        own = {e for loop in region for e in self.effects.inside(loop)}
        places = {v for loop in region for v in self._places(loop)}
        reductions = [r for loop in region for r in self.reductions[loop]]  # type: ignore[index]
        if not places or any(r in self.selections for r in reductions):
            return None
        for outer in loops_in(self.scope):
            axis = self.axes.get(outer)
            if axis is None or outer in region or not own <= self.effects.inside(outer.body):
                continue
            others = self.effects.inside(outer) - own
            if all(axis.name in r.axes for r in reductions) and not names(others) & places:
                return outer
        return None

    def _zero(self, reduction: Reduction, loop: Statement) -> bool:
        """Whether a sum is zero whenever the loop begins, also within one that adds to it."""
        assert isinstance(loop, Loop)
        start, own = reduction.start, reduction.axes[-1] == self.axes[loop].name
        return own and reduction.op == "+" and isinstance(start, Literal) and start.value == 0

    def _rounds(self, loop: Statement, selection: Selection, after: list[str]) -> str:
        """The declaration of what tells in which round a lane found what it selects."""
        assert isinstance(loop, Loop)
        counter = self.axes[loop].variable
        assert counter is not None
        name = self.fresh(f"{selection.reduction.place}_{counter.name}")
        self.told[selection.branch.body[-1]] = lines(f"{name} = {counter.name};")
        _, start = self.heads.start(loop, self.swaps)
        kind, wide = ("int", start) if counter.type.base == "int" else (
            "long long", f"(long long)({start})")  # fmt: skip
        before = "-1" if start == "0" and selection.later else (
            f"{wide} {'-' if selection.later else '+'} 1")  # fmt: skip
        after.append(selection.combined(self.group, self.count, name))
        return f"{kind} {name} = {before};"

    def _shared(self, loop: Loop, private: dict[str, str]) -> list[Statement]:
        swaps = {**self.swaps, **self._renamed(loop, private)}
        told: dict[Node, tuple[Statement, ...]] = {
            last: (lines(self.old.show(last, swaps)), also) for last, also in self.told.items()
        }
        if loop in self.ahead:
            return [lines(self.ahead[loop].text(self.lane, self.count, swaps, self.fresh))]
        if loop in self.broken:
            one = self.broken[loop]
            parts = one.made(self.group, self.lane, self.count, swaps, told, self.fresh)
            return [lines(part) for part in parts if part]
        if loop in self.scans:
            made = Scanning(self.old, self.heads, self.axes[loop], self.scans[loop], self.taken)
            return [lines(made.text(self.group, self.lane, self.count, swaps, told))]
        return [self.heads.shared(loop, self.lane, self.count, swaps, told)]

    def _renamed(self, loop: Loop, private: dict[str, str]) -> dict[Node, Node]:
        own = {v.name: v for v in self._places(loop)}
        return {
            e: text(private[e.name])
            for e in self.effects.inside(loop)
            if isinstance(e, Name) and e.name in private and e.variable is own.get(e.name)
        }

    def _stores(self) -> None:
        """The first lane stores where all do the same."""
        shared = {s for loop in self.loops for s in walk(loop)}
        self.stores: list[Statement] = []
        for statement in walk(self.scope):
            if statement in shared:
                continue
            own = {e for top in statement.expressions for e in every(top)}
            stores = [a for a in self.old.reading.accesses
                      if a.own in own and a.mode != "load" and a.space in self.spaces]  # fmt: skip
            if not stores:
                continue
            if not isinstance(statement, Evaluate):
                raise NotLegal("it stores where it computes something else", stores[0].line)
            changed = [v for v in self.effects.changed(statement) if v.storage == "local"]
            if any(not v.type.reference or isinstance(v.value, Name) for v in changed):
                raise NotLegal("a store changes a local, too", stores[0].line)
            self.stores.append(statement)
            shown = self.old.show(statement, self.swaps)
            self.changes[statement] = (lines(f"if ({self.lane} == 0) {shown}"),)

    def _waits(self) -> None:
        """Around what touches an array that others write in another place."""
        phases: dict[Statement, list[Access]] = {}
        apart = {e for s in (*self.loops, *self.stores) for e in self.effects.inside(s)}
        for statement in (*self.loops, *self.stores):
            phases[statement] = self.effects.accesses(statement)
        own = self.effects.inside(self.scope)
        outside = [a for a in self.old.reading.accesses
                   if a.own in own and a.own not in apart and a.space in self.spaces]  # fmt: skip
        self.waits = 0
        self.exchanged: set[str] = set()  # arrays that lanes wait for
        wait = lines(combine.waiting(self.group, self.count))
        repeated = {s for loop in loops_in(self.scope) for s in walk(loop.body)}
        in_order = [s for s in walk(self.scope) if s in phases]
        for statement in in_order:
            others = [a for s in in_order if s is not statement for a in phases[s]]
            met = self._meet(phases[statement], outside)
            first = statement is in_order[0] and statement not in repeated
            if met or (not first and self._meet(phases[statement], others)):
                self.changes[statement] = (wait, *self.changes[statement], *[wait] * met)
                self.waits += 1
                self.exchanged |= {a.array for a in phases[statement] if a.array}

    def _meet(self, some: Iterable[Access], others: Sequence[Access]) -> bool:
        return any(
            self.effects.same(a.array, b.array) and not a.mode == b.mode == "load"
            for a in some for b in others
        )  # fmt: skip
