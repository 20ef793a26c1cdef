"""What a kernel does with its sums, once for each output of a thread, and how it stores them.

Outputs that lie together are stored at once where addresses and sizes allow it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, lines, text
from optiml_magic.kernels.expressions import Assign, Expr, Name, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.items import WIDEST, Items, is_plain
from optiml_magic.kernels.primitives.meetings import never_meet
from optiml_magic.kernels.primitives.operands import COLUMN, ROW, Contraction
from optiml_magic.kernels.primitives.places import placed
from optiml_magic.kernels.primitives.tile_guards import is_bound
from optiml_magic.kernels.primitives.tile_layout import RUN, Layout
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.symbols import Condition
from optiml_magic.kernels.tree import (
    Block,
    Evaluate,
    If,
    Leave,
    Statement,
    expressions,
    walk,
)


@dataclass(frozen=True)
class _Stored:
    """Stores to neighbouring elements by the outputs of a row; ``tests`` as for loads.

    Where not all outputs store, those that do are noted in the bits of ``there``.
    """

    accesses: tuple[Access, ...]
    form: Polynomial
    width: int
    own: str
    whole: str
    there: str
    tests: tuple[str, ...]

    @property
    def access(self) -> Access:
        return self.accesses[0]


def outputs(
    parts: Contraction, layout: Layout, sums: Mapping[str, str], partners: Mapping[str, str]
) -> Statement:
    """The kernel as it was, once for each output, with its sums in the place of the loop.

    Where sums have ``partners``, those are the sums of the output beyond the diagonal, which comes
    with it.
    """
    return _Outputs(parts, layout, sums, partners).made()


class _Outputs:
    def __init__(
        self,
        parts: Contraction,
        layout: Layout,
        sums: Mapping[str, str],
        partners: Mapping[str, str],
    ) -> None:
        self.parts = parts
        self.partners = partners
        self.old = parts.kernel
        self.layout = layout
        self.sums = sums
        fresh = self.old.fresh
        self.row, self.column = fresh("out_row"), fresh("out_col")
        self.run, self.element = fresh("run"), fresh("element")
        self.stored = self._all_stored()
        names = [f"added_{number + 1}" for number, _ in enumerate(parts.added)]
        self.added = [(one, fresh(n)) for n, one in zip(names, parts.added, strict=True)]

    def made(self) -> Statement:
        """What is done with all sums, and what is added once for a warp."""
        if not self.added:
            return self._outputs()
        apart = self.old.fresh("apart")
        first = [lines(one.declared(name)) for one, name in self.added]
        last = [lines(one.finished(name, apart, lambda e: self._shown(e, {})))
                for one, name in self.added]  # fmt: skip
        return Block(None, 0, (*first, self._outputs(), *last))

    def _outputs(self) -> Statement:
        m, n = (self.layout.sides[side] for side in (ROW, COLUMN))
        row = f"const int {self.row} = {m.first} + {self.layout.owned(m, m.at)};"
        column = f"const int {self.column} = {n.first} + "
        places = [row, f"{column}{self.layout.owned(n, n.at)};", *self._within()]
        if self.partners:
            places.append(f"if ({self.row} < {self.column}) continue;")
        rare = self._rare()
        if rare is None:
            return lines(self._written(row, column, places, {}))
        found = self.old.fresh("again")
        whole = self._written(row, column, places, {})
        short = self._written(row, column, places, {rare: rare.then})
        return lines(
            f"bool {found} = false;\n"
            + self.layout.each("\n".join([*places, self._asking(rare, found)]))
            + f"\nif (!{found}) {{\n{short}\n}} else {{\n{whole}\n}}"
        )

    def _asking(self, rare: If, found: str) -> str:
        """What comes before a branch, and whether its second way is gone."""
        swaps: dict[Node, Node | None] = {**self._swaps()}
        test = self.old.spelled(rare.test, swaps)
        swaps[rare] = lines(f"{found} |= !({test});")
        swaps |= dict.fromkeys(_behind(self.old.function.body, rare))
        return self.old.show(self.old.function.body, swaps)[1:-1].strip()

    def _rare(self) -> If | None:
        """A branch after the sums of which one way is short and the other repeats a loop.

        Whether any output of a thread takes the long way is asked first, so that those that do
        not, which are most, go on without a branch each.
        """
        loads = {a.own for a in self.old.reading.accesses if a.mode == "load"}
        stored = {a.node for a in self.old.reading.accesses if a.node not in loads}
        body = self.old.function.body
        for branch in walk(body):
            if not isinstance(branch, If) or branch.other is None or branch.before is not None:
                continue
            if loops_in(branch.then) or not loops_in(branch.other):
                continue
            before = {*walk(body)} - {s for b in (branch, *_behind(body, branch)) for s in walk(b)}
            around = {s for s in before if branch in {*walk(s)}}
            done = {e for s in before - around for e in expressions(s)}
            if self.parts.loop in before and not stored & done:
                return branch
        return None

    def _written(self, row: str, column: str, places: list[str], more: Mapping[Node, Node]) -> str:
        """What is done for all outputs of a thread."""
        m, n = self.layout.sides[ROW], self.layout.sides[COLUMN]
        body, mirrored = self._body(more), self._mirrored(more)
        if not self.stored:
            return self.layout.each("\n".join([*places, body])) + mirrored
        at = self.layout.at
        first = f"{column}{self.layout.owned(n, self.run)};"
        made = [
            *(f"const bool {one.whole} = {' && '.join(one.tests)};" for one in self.stored),
            f"#pragma unroll\nfor (int {m.at} = 0; {m.at} < {m.own}; ++{m.at}) {{",
            (f"#pragma unroll\nfor (int {self.run} = 0; {self.run} < {n.own}; "
            f"{self.run} += {n.run}) {{"),
            *(f"alignas({one.width * (one.access.element.size or 1)}) "
              f"{one.access.element.name} {one.own}[{n.run}];" for one in self.stored),
            *(f"unsigned {one.there} = 0;" for one in self.stored if one.there),
            f"#pragma unroll\nfor (int {at} = 0; {at} < {n.run}; ++{at}) {{",
            f"const int {n.at} = {self.run} + {at};", *places, body, "}",
            row, first, *(self._put(one) for one in self.stored), "}", "}", mirrored,
        ]  # fmt: skip
        return "\n".join(made)

    def _mirrored(self, more: Mapping[Node, Node]) -> str:
        """What is done for the outputs beyond the diagonal, whose sums are the same."""
        if not self.partners:
            return ""
        m, n = self.layout.sides[ROW], self.layout.sides[COLUMN]
        places = [
            f"const int {self.row} = {n.first} + {self.layout.owned(n, n.at)};",
            f"const int {self.column} = {m.first} + {self.layout.owned(m, m.at)};",
            *self._within(), f"if ({self.row} >= {self.column}) continue;",
        ]  # fmt: skip
        swaps = {**self._swaps(self.partners), **more}
        body = self.old.show(self.old.function.body, swaps)[1:-1].strip()
        return "\n" + self.layout.each("\n".join([*places, body]))

    def _within(self) -> list[str]:
        """Where no guard of the kernel's own says where outputs end.

        Beyond a row's end the one index of a thread is that of another row.
        """
        out = self.parts.outputs
        sides = (COLUMN,) if out.flat is not None else out.counted
        at = {ROW: self.row, COLUMN: self.column}
        ends = {s: self.layout.speller({}).factor(self.parts.extent(s)) for s in sides}
        return [f"if ({at[side]} >= {end}) continue;" for side, end in ends.items()]

    def _body(self, more: Mapping[Node, Node]) -> str:
        swaps = {**self._swaps(), **more}
        for one in self.stored:
            item = text(f"{one.own}[{self.layout.at}]")
            swaps |= dict.fromkeys(self._behind(one.accesses), item)
            swaps |= {a.node.target: item for a in one.accesses if isinstance(a.node, Assign)}
        swaps |= self._noted(swaps)
        return self.old.show(self.old.function.body, swaps)[1:-1].strip()

    def _swaps(self, partners: Mapping[str, str] | None = None) -> dict[Node, Node]:
        """The sums in the place of the loop, and an output's indices in that of a thread's.

        If need be the ``partners`` of the sums.
        """
        parts = self.parts
        swaps: dict[Node, Node] = placed(self.old, self.layout.places(self.row, self.column))
        sums = list[Statement]()
        for reduction in parts.reductions:
            own = partners[reduction.place] if partners else reduction.place
            tile = self.layout.sum_of(own, self.sums[own])
            sums.append(lines(combine.joining(reduction, reduction.place, tile)))
        swaps[parts.loop] = Block(None, 0, tuple(sums)) if len(sums) > 1 else sums[0]
        for statement in walk(self.old.function.body):
            if isinstance(statement, Leave) and statement.kind == "return":
                swaps[statement] = replace(statement, kind="continue", span=None)
        for one, name in self.added:
            swaps[one.statement] = lines(one.kept(name, lambda e: self._shown(e, swaps)))
        return swaps

    def _shown(self, e: Expr, swaps: Mapping[Node, Node]) -> str:
        return self.old.spelled(e, swaps)

    # -- stores

    def _noted(self, swaps: Mapping[Node, Node]) -> dict[Node, Node]:
        """Stores that not all outputs make, which say so behind each."""
        there = {a.node: one.there for one in self.stored for a in one.accesses if one.there}
        found: dict[Node, Node] = {}
        for statement in walk(self.old.function.body):
            if isinstance(statement, Evaluate) and statement.expression in there:
                shown = self.old.show(statement, swaps)
                noted = f"{there[statement.expression]} |= 1u << {self.layout.at};"
                found[statement] = Block(None, 0, (lines(shown), lines(noted)))
        return found

    def _all_stored(self) -> tuple[_Stored, ...]:
        groups: dict[tuple[str, Polynomial], list[Access]] = {}
        for access in self.old.reading.accesses:
            form = self._neighbours(access)
            if form is not None:
                groups.setdefault((access.array, form), []).append(access)
        found = []
        for (array, form), accesses in groups.items():
            access, fresh = accesses[0], self.old.fresh
            tests = self._tests(access, form)
            if tests is None or not self._apart(accesses, form):
                continue
            certain = (
                len(accesses) == 1
                and not self.partners
                and all(is_bound(self.parts, c) for g in access.guard for c in g.conjuncts())
            )
            name = array.replace(".", "_")
            width = min(WIDEST // (access.element.size or WIDEST), RUN)
            there = "" if certain else fresh(f"{name}_there")
            names = fresh(f"{name}_items"), fresh(f"{name}_aligned"), there
            found.append(_Stored(tuple(accesses), form, width, *names, tests))
        return tuple(found)

    def _neighbours(self, access: Access) -> Polynomial | None:
        """Where an output stores, if it is to neighbours of what the next one of a row stores."""
        node, form = access.node, access.index
        plain = isinstance(node, Assign) and node.op == "=" and access.call is None
        if (
            access.mode != "store" or access.space != "global" or form is None
            or not plain or access.loops or not is_plain(self.old, access)
        ):  # fmt: skip
            return None
        statements = walk(self.old.function.body)
        if not any(isinstance(s, Evaluate) and s.expression is node for s in statements):
            return None
        form = self.parts.placed(form)
        by = form.coefficient(COLUMN)
        return form if by is not None and by.value == 1 else None

    def _apart(self, own: list[Access], form: Polynomial) -> bool:
        """Whether it shows nowhere that an output stores later, behind all else that it does."""
        same, array = self.parts.effects.same, own[0].array
        others = [a for a in self.old.reading.accesses if a not in own and same(a.array, array)]
        stores = [a for a in others if a.mode != "load"
                  and not all(never_meet(self.old, a, one) for one in own)]  # fmt: skip
        loads = [a for a in others if a.mode == "load"]
        behind = self._behind(own)
        if stores and not self._alike([*own, *stores], behind):
            return False
        forms = [self.parts.placed(a.index) if a.index is not None else None for a in loads]
        if any(found != form for found in forms):
            return False
        order = [*expressions(self.old.function.body)]
        return all(
            a.own in behind or (a.own in order and not any(_earlier(order, one, a) for one in own))
            for a in loads
        )

    def _alike(self, stores: list[Access], behind: list[Expr]) -> bool:
        """Whether stores leave the same value, so that the last may be any of them."""
        values = [a.node.value for a in stores if isinstance(a.node, Assign)]
        names = {v.variable for v in values if isinstance(v, Name)}
        plain = all(isinstance(v, Name) or v in behind for v in values)
        if len(values) != len(stores) or len(names) != 1 or not plain:
            return False
        order = [*walk(self.old.function.body)]
        first = min(
            order.index(s) for s in order
            if isinstance(s, Evaluate) and s.expression in [a.node for a in stores]
        )  # fmt: skip
        changed = {v for s in order[first:] for v in self.parts.effects.changed(s)}
        return None not in names and not names & changed

    def _behind(self, own: Sequence[Access]) -> list[Expr]:
        """The loads of an element that an output has certainly stored before."""
        order = [*expressions(self.old.function.body)]
        return [
            a.own for a in self.old.reading.accesses
            if a.mode == "load" and not a.loops and a.own in order
            and any(
                a.array == one.array and a.index == one.index and a.element == one.element
                and one.node in order and _earlier(order, one, a) and _held(one) <= _held(a)
                for one in own
            )
        ]  # fmt: skip

    def _tests(self, access: Access, form: Polynomial) -> tuple[str, ...] | None:
        width = min(WIDEST // (access.element.size or WIDEST), RUN)
        return self.layout.tests(
            access.array, form, (COLUMN, ROW), self.parts.outputs.columns,
            width, access.element.size or 1,
        )  # fmt: skip

    def _put(self, one: _Stored) -> str:
        n, e = self.layout.sides[COLUMN], self.element
        columns, rows = (
            self.layout.speller({}).factor(f)
            for f in (self.parts.outputs.columns, self.parts.outputs.rows)
        )
        at = {ROW: self.row, COLUMN: self.column}
        there = f"{one.access.array}[{self.layout.index(one.form, at)}"
        items = Items(one.access.array, one.form, one.accesses)
        at_once = items.stored(one.width, f"{one.own} + {e}", f"&{there} + {e}]")
        each = f"#pragma unroll\nfor (int {e} = 0; {e} < {n.run}; "
        single = f"{there} + {e}] = {one.own}[{e}];"
        if one.there:
            whole = f"{one.there} == (1u << {n.run}) - 1"
            ends = "", f"if ({one.there} >> {e} & 1) "
        else:
            whole = ""
            ends = (f"if ({self.column} + {e} < {columns}) ",) * 2
        tests = [f"{n.run} % {one.width} == 0", one.whole, *filter(None, [whole])]
        made = [
            f"if ({' && '.join(tests)}) {{",
            f"{each}{e} += {one.width}) {ends[0]}{at_once}",
            "} else {",
            f"{each}++{e}) {ends[1]}{single}",
            "}",
        ]
        return "\n".join(made if one.there else [f"if ({self.row} < {rows}) {{", *made, "}"])


def _earlier(order: Sequence[Expr], store: Access, load: Access) -> bool:
    """Whether a store may be done before a load, of an item that does both."""
    if order.index(store.node) > order.index(load.own) or load.own in set(every(store.node)):
        return False
    ways = _held(store), _held(load)
    return not any({*(~c).conjuncts()} <= other for one, other in (ways, ways[::-1]) for c in one)


def _held(access: Access) -> frozenset[Condition]:
    """The parts of all that holds where an access is made."""
    return frozenset(part for guard in access.guard for part in guard.conjuncts())


def _behind(body: Statement, last: Statement) -> set[Statement]:
    """The statements that a body comes to after one of its own."""
    found = set[Statement]()
    for block in walk(body):
        if isinstance(block, Block):
            own = next((n for n, s in enumerate(block.body) if last in {*walk(s)}), None)
            found |= {*block.body[own + 1 :]} if own is not None else set()
    return found
