"""What a kernel does with its sums, once for each output of a thread, and how it stores them.

Outputs that lie together are stored at once where addresses and sizes allow it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, lines, text
from optiml_magic.kernels.expressions import Assign
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.items import WIDEST, Items, is_plain
from optiml_magic.kernels.primitives.operands import COLUMN, ROW, Contraction
from optiml_magic.kernels.primitives.places import placed
from optiml_magic.kernels.primitives.tile_guards import is_bound
from optiml_magic.kernels.primitives.tile_layout import RUN, Layout
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Block, Leave, Statement, walk


@dataclass(frozen=True)
class _Stored:
    """Stores to neighbouring elements by the outputs of a row; ``tests`` as for loads."""

    access: Access
    form: Polynomial
    width: int
    own: str
    whole: str
    tests: tuple[str, ...]


def outputs(parts: Contraction, layout: Layout, sums: Mapping[str, str]) -> Statement:
    """The kernel as it was, once for each output, with its sums in the place of the loop."""
    return _Outputs(parts, layout, sums).made()


class _Outputs:
    def __init__(self, parts: Contraction, layout: Layout, sums: Mapping[str, str]) -> None:
        self.parts = parts
        self.old = parts.kernel
        self.layout = layout
        self.sums = sums
        fresh = self.old.fresh
        self.row, self.column = fresh("out_row"), fresh("out_col")
        self.run, self.element = fresh("run"), fresh("element")
        self.stored = self._all_stored()

    def made(self) -> Statement:
        m, n = self.layout.sides[ROW], self.layout.sides[COLUMN]
        row = f"const int {self.row} = {m.first} + {self.layout.owned(m, m.at)};"
        column = f"const int {self.column} = {n.first} + "
        body = self._body()
        if not self.stored:
            places = f"{row}\n{column}{self.layout.owned(n, n.at)};"
            return lines(self.layout.each("\n".join([places, *self._within(), body])))
        at = self.layout.at
        first = f"{column}{self.layout.owned(n, self.run)};"
        made = [
            *(f"const bool {one.whole} = {' && '.join(one.tests)};" for one in self.stored),
            f"#pragma unroll\nfor (int {m.at} = 0; {m.at} < {m.own}; ++{m.at}) {{",
            (f"#pragma unroll\nfor (int {self.run} = 0; {self.run} < {n.own}; "
            f"{self.run} += {n.run}) {{"),
            *(f"alignas({one.width * (one.access.element.size or 1)}) "
              f"{one.access.element.name} {one.own}[{n.run}];" for one in self.stored),
            f"#pragma unroll\nfor (int {at} = 0; {at} < {n.run}; ++{at}) {{",
            f"const int {n.at} = {self.run} + {at};",
            f"{row}\n{column}{self.layout.owned(n, n.at)};",
            *self._within(), body, "}",
            row, first, *(self._put(one) for one in self.stored), "}", "}",
        ]  # fmt: skip
        return lines("\n".join(made))

    def _within(self) -> list[str]:
        """Where no guard of the kernel's own says where outputs end.

        Beyond a row's end the one index of a thread is that of another row.
        """
        out = self.parts.outputs
        sides = (COLUMN,) if out.flat is not None else out.counted
        at = {ROW: self.row, COLUMN: self.column}
        ends = {s: self.layout.speller({}).factor(self.parts.extent(s)) for s in sides}
        return [f"if ({at[side]} >= {end}) continue;" for side, end in ends.items()]

    def _body(self) -> str:
        parts = self.parts
        swaps: dict[Node, Node] = placed(self.old, self.layout.places(self.row, self.column))
        m, n = self.layout.sides[ROW], self.layout.sides[COLUMN]
        sums = [
            lines(combine.joining(r, r.place, f"{self.sums[r.place]}[{m.at}][{n.at}]"))
            for r in parts.reductions
        ]
        swaps[parts.loop] = Block(None, 0, tuple(sums)) if len(sums) > 1 else sums[0]
        for statement in walk(self.old.function.body):
            if isinstance(statement, Leave) and statement.kind == "return":
                swaps[statement] = replace(statement, kind="continue", span=None)
        for one in self.stored:
            assert isinstance(one.access.node, Assign)
            swaps[one.access.node.target] = text(f"{one.own}[{self.layout.at}]")
        return self.old.show(self.old.function.body, swaps)[1:-1].strip()

    # -- stores

    def _all_stored(self) -> tuple[_Stored, ...]:
        found = []
        for access in self.old.reading.accesses:
            form = self._neighbours(access)
            tests = self._tests(access, form) if form is not None else None
            if form is None or tests is None:
                continue
            fresh, name = self.old.fresh, access.array.replace(".", "_")
            width = min(WIDEST // (access.element.size or WIDEST), RUN)
            names = fresh(f"{name}_items"), fresh(f"{name}_aligned")
            found.append(_Stored(access, form, width, *names, tests))
        return tuple(found)

    def _neighbours(self, access: Access) -> Polynomial | None:
        """Where an output stores, if it is the one store to its array, made by all alike."""
        same = self.parts.effects.same
        others = [
            a for a in self.old.reading.accesses
            if a is not access and a.mode != "load" and same(a.array, access.array)
        ]  # fmt: skip
        node, form = access.node, access.index
        plain = isinstance(node, Assign) and node.op == "=" and access.call is None
        if (
            others or access.mode != "store" or access.space != "global" or form is None
            or not plain or access.loops or not is_plain(self.old, access)
            or not all(is_bound(self.parts, c) for g in access.guard for c in g.conjuncts())
        ):  # fmt: skip
            return None
        form = self.parts.placed(form)
        by = form.coefficient(COLUMN)
        read = {
            self.parts.placed(a.index) if a.index is not None else None
            for a in self.old.reading.accesses
            if a.mode == "load" and same(a.array, access.array)
        }
        return form if by is not None and by.value == 1 and read <= {form} else None

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
        items = Items(one.access.array, one.form, (one.access,))
        at_once = items.stored(one.width, f"{one.own} + {e}", f"&{there} + {e}]")
        return "\n".join([
            f"if ({self.row} < {rows}) {{",
            f"if ({n.run} % {one.width} == 0 && {one.whole}) {{",
            "#pragma unroll",
            (f"for (int {e} = 0; {e} < {n.run}; {e} += {one.width}) "
            f"if ({self.column} + {e} < {columns}) {at_once}"),
            "} else {",
            "#pragma unroll",
            (f"for (int {e} = 0; {e} < {n.run}; ++{e}) "
            f"if ({self.column} + {e} < {columns}) {there} + {e}] = {one.own}[{e}];"),
            "}", "}",
        ])  # fmt: skip
