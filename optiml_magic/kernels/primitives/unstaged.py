"""P26, unstage: what a block brings into shared memory is loaded where it is read.

``tile[ty][tx] = a[...]; __syncthreads(); ... tile[ty][k]`` becomes ``a[...]`` at the place that the
element came from. The index of the store is set equal to that of the read and solved for the thread
that stored (``inverted``); that some thread did is counted element by element (``domains``). The
barriers then order nothing, and the kernel is what a recipe for tiles of its own begins with. Where
a tile is as large as the kernel is told, such as by a radius, it is counted for the measured sizes.
Source of the idea: Fang, Sips, Jaaskelainen and Varbanescu, "Grover: Looking for Performance
Improvement by Disabling Local Memory Usage in OpenCL Kernels", ICPP 2014.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Call, Expr, Index, Member, Name, Unary, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import without_warps
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive, where_legal
from optiml_magic.kernels.primitives.block_counts import rounded_up
from optiml_magic.kernels.primitives.direct import in_full
from optiml_magic.kernels.primitives.effects import Effects, declared_in, names
from optiml_magic.kernels.primitives.fetched import Fetched
from optiml_magic.kernels.primitives.forestalled import leaves_within, may_trap
from optiml_magic.kernels.primitives.grids import form_of, said_alike
from optiml_magic.kernels.primitives.naming import speller_before
from optiml_magic.kernels.primitives.one_load import one_load
from optiml_magic.kernels.primitives.pruned import pruned
from optiml_magic.kernels.primitives.sized import sized, tile_sizes
from optiml_magic.kernels.primitives.sizes import with_grid
from optiml_magic.kernels.primitives.slimmed import SAYING
from optiml_magic.kernels.primitives.type_names import names_between
from optiml_magic.kernels.primitives.untiled import BARRIER, turning, untiled
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    body_of,
    expressions,
    walk,
)
from optiml_magic.source.expressions import Binary, Expression, Number

_LANES = "xyzw"
_ONE = Polynomial.constant(1)


@primitive
def unstaged(kernel: Kernel) -> Kernel:
    """The kernel without its shared memory, all of which it brings from global memory."""
    if all(a.space != "shared" for a in kernel.reading.accesses):
        raise NotLegal("its threads share no memory")
    try:
        return _unstaged(kernel)
    except NotLegal as reason:
        made = sized(kernel, values) if (values := tile_sizes(kernel)) else None
        if not isinstance(made, Kernel):
            raise reason from None
        return _unstaged(made)


def _unstaged(kernel: Kernel) -> Kernel:
    facts = kernel.facts
    buffers = {n: a.buffer for n, a in facts.arrays.items()} if facts is not None else {}
    asked = _Asked(kernel.program.text, str(kernel.launch), tuple(buffers.items()), kernel)
    made = _made(asked)
    if isinstance(made, Refused):
        raise NotLegal(made.reason, made.line)
    return with_grid(replace(made, facts=facts, chip=kernel.chip, behind=kernel.behind))


@dataclass(frozen=True)
class _Asked:
    """A kernel by all that decides on the step: every rule asks for it, and it takes its time."""

    text: str
    launch: str
    buffers: tuple[tuple[str, str], ...]
    kernel: Kernel = field(compare=False)


@lru_cache(maxsize=64)
def _made(asked: _Asked) -> Kernel | Refused:
    try:
        ready = turning(where_legal(in_full, where_legal(one_load, asked.kernel.settled())))
        made = where_legal(pruned, _Unstaging(ready).made())
    except NotLegal as reason:
        return Refused(reason.reason, reason.line)
    except Unspelled as reason:
        return Refused(f"a part of it cannot be written anew: {reason}")
    return untiled(made)


class _Unstaging:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.effects = Effects(kernel)
        self.body = kernel.function.body
        self.reading = kernel.reading
        self._check()
        self.parents = {e: s for s in walk(self.body) for top in s.expressions for e in every(top)}
        self.first, self.guard = self._last_guard()

    # -- what makes it legal

    def _check(self) -> None:
        reading = self.reading
        self.effects.straightforward(alone=False)
        without_warps(self.kernel)
        for name in sorted(reading.calls & SAYING):
            raise NotLegal(f"`{name}` tells which thread came to it")
        for parameter in self.effects.moved:
            raise NotLegal(f"the parameter `{parameter}` changes")
        self.barriers = [
            s for s in walk(self.body)
            if isinstance(s, Evaluate) and isinstance(s.expression, Call)
            and s.expression.function == BARRIER
        ]  # fmt: skip
        if len(self.barriers) != len(reading.barriers) or not self.barriers:
            raise NotLegal("its threads wait for each other in another way")
        waiting = [any(b in set(walk(s)) for b in self.barriers) for s in self.body.body]
        self.behind = len(waiting) - waiting[::-1].index(True)
        late = self.effects.inside(replace(self.body, body=self.body.body[self.behind :]))
        for access in reading.accesses:
            if access.space != "global" or access.array not in reading.written:
                continue
            if access.own not in late:
                raise NotLegal("it writes global memory before its threads wait", access.line)

    def _last_guard(self) -> tuple[If | None, tuple[Condition, ...]]:
        """The branch on which all depends that is written, which may as well come first."""
        after = [*self.body.body[self.behind :]]
        stores = [a.own for a in self.reading.accesses if a.space == "global" and a.mode != "load"]
        for at, statement in enumerate(after):
            if not isinstance(statement, If) or statement.other is not None or statement.before:
                if any(e in self.effects.inside(statement) for e in stores):
                    return None, ()
                continue
            leaves = isinstance(_only(statement.then), Leave)
            rest = [] if leaves else after[at + 1 :]
            inside = self.effects.inside(statement)
            found = [g for g in self.reading.guards if g.test is statement.test]
            own = self.effects.inside(replace(self.body, body=tuple(rest)))
            if leaves or (any(e in inside for e in stores) and not own & set(stores)):
                if len(found) != 1 or self._place(statement) is None:
                    return None, ()
                held = found[0].condition  # of a branch that ends the kernel what holds behind it
                return statement, (held if leaves or not found[0].exits else ~held,)
            if any(e in inside for e in stores):
                return None, ()
        return None, ()

    def _place(self, branch: If) -> int | None:
        """How many statements have to stand before a test; None where it cannot come first."""
        asked = names([branch.test])
        given = {*self.kernel.function.parameters}
        if any(isinstance(e, Call | Index) or (isinstance(e, Unary) and e.op == "*")
               for e in every(branch.test)):  # fmt: skip
            return None
        declared = {
            v: at + 1 for at, s in enumerate(self.body.body) if isinstance(s, Declare)
            for v in s.variables if v in self.effects.lasting
        }  # fmt: skip
        if not asked <= given | declared.keys():
            return None
        place = max((declared[v] for v in asked - given), default=0)
        end = self.body.body.index(branch)
        if names_between(self.kernel, self.body, place, end + 1) or not self._opens(branch.then):
            return None
        if may_trap(branch.test) and any(map(leaves_within, self.body.body[place:end])):
            return None
        before = self.body.body[:place]
        plain = all(isinstance(s, Declare) for s in before)
        shared = {a.own for a in self.reading.accesses if a.space == "shared"}
        quiet = not any(self.effects.inside(s) & shared for s in before)
        return place if plain and quiet else None

    def _opens(self, way: Statement) -> bool:
        """Whether what a way declares may be declared in the body: no other is called so."""
        own = {v for s in body_of(way) if isinstance(s, Declare) for v in s.variables}
        called = {v.name for v in own}
        named = [(e.name, e.variable) for e in expressions(self.body) if isinstance(e, Name)]
        named += [(v.name, v) for v in (*self.kernel.function.parameters, *declared_in(self.body))]
        return all(name not in called or variable in own for name, variable in named)

    def _launched(self) -> list[Condition]:
        """That no block lies beyond the last one of the launch."""
        kernel, found = self.kernel, list[Condition]()
        for axis, size, block, width in zip(
            "xyz", kernel.launch.grid, kernel.launch.block, kernel.block, strict=False
        ):
            tree = size.tree
            name = f"blockIdx.{axis}"
            if width is None or tree is None or name not in self.reading.symbols.table:
                continue
            whole = rounded_up(tree, block.tree, width) if width != 1 else tree
            left, by = (whole, width) if whole is not None else (None, width)
            more = 1
            if left is None and isinstance(tree, Binary) and tree.op == "/":
                number = tree.right.value if isinstance(tree.right, Number) else None
                left, by, more = tree.left, number or 0, number or 0
            form = form_of(left, self.reading.symbols) if left is not None else None
            if left is None or form is None or not by:
                continue
            if not said_alike(kernel, Expression(left, "").names):
                continue
            if not form.symbols <= self.reading.symbols.table.keys():
                continue
            start = Polynomial.symbol(name) * Polynomial.constant(by)
            found.append(Compare(">=", form - start - Polynomial.constant(more), frozenset()))
        return found

    # -- what is made

    def made(self) -> Kernel:
        kernel = self.kernel
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = dict.fromkeys(self.barriers)
        shared = dict.fromkeys(a.array for a in self.reading.accesses if a.space == "shared")
        launched = self._launched()
        for name in shared:
            array = self.reading.arrays[name]
            stores = [a for a in self.reading.of(name) if a.mode != "load"]
            reads = [a for a in self.reading.of(name) if a.mode == "load"]
            around = self._round(stores, reads)
            fills = Fetched(kernel, self.effects, array, around)
            for store in stores:
                statement = self.parents[store.own]
                if not isinstance(statement, Evaluate) or statement.expression is not store.node:
                    raise NotLegal("an element is not only brought", store.line)
                swaps[statement] = None
            for read in reads:
                whole_of_it, fields = self._element(read, fills)
                statement = self.parents[whole_of_it]
                speller = speller_before(kernel, self.effects, statement)
                for axis, width in zip("xyz", kernel.block, strict=True):
                    index = f"(blockIdx.{axis} * {width} + threadIdx.{axis})"
                    speller.names.setdefault(f"@{axis}", index)
                got = fills.got(read, (*read.guard, *self.guard, *launched), speller)
                tests = " && ".join(speller.condition(_local(t, speller)) for t in got.tests)
                words = _field(got.value, fields)
                other = _field(got.other, fields)
                swaps[read.node] = text(f"({tests} ? {words} : {other})" if tests else words)
        self._first(swaps)
        body = edited(self.body, swaps)
        launch = replace(kernel.launch, shared=None)
        return kernel.rewritten(body, launch=launch)

    def _first(self, swaps: dict[Node, Node | tuple[Statement, ...] | None]) -> None:
        """Put the branch on which all depends in front of what it was behind."""
        branch = self.first
        if branch is None:
            return
        place = self._place(branch)
        assert place is not None
        test = self.kernel.spelled(branch.test)
        if isinstance(_only(branch.then), Leave):
            made, swaps[branch] = f"if ({test}) return;", None
        else:
            inside = edited(branch.then, {k: v for k, v in swaps.items() if k is not branch})
            made = f"if (!({test})) return;"
            swaps[branch] = inside.body if isinstance(inside, Block) else (inside,)
        at = self.body.body[place]
        old = swaps.get(at, at)
        rest = old if isinstance(old, tuple) else () if old is None else (edited(at, swaps),)
        swaps[at] = (lines(made), *rest)

    def _element(self, read: Access, fills: Fetched) -> tuple[Expr, tuple[str, ...]]:
        """What stands for the whole element in the text, and which part of it is read."""
        place, fields = read.node, list[str]()
        if read.element != fills.array.element:
            while isinstance(place, Member) and not place.arrow:
                fields.insert(0, place.field)
                place = place.base
        plain = isinstance(place, Index | Name) or (isinstance(place, Unary) and place.op == "*")
        if not plain or place not in self.parents or read.call is not None:
            raise NotLegal("what is read is not an element", read.line)
        return place, tuple(fields)

    def _waits(self, loop: Statement, reads: list[Access]) -> bool:
        """Whether each round of a loop waits before it reads."""
        if not isinstance(loop, Loop) or not isinstance(loop.body, Block):
            return False
        asked, body = {a.own for a in reads}, loop.body.body
        read = {e for s in body for e in self.effects.inside(s)} & asked
        first = next((n for n, s in enumerate(body) if self.effects.inside(s) & asked), 0)
        whole = read == self.effects.inside(loop) & asked
        return whole and any(s in self.barriers for s in body[:first])

    def _round(self, stores: list[Access], reads: list[Access]) -> list[str]:
        """The loops in each round of which all is brought, waited for and then read."""
        touched = {a.own for a in (*stores, *reads)}
        block = self.body
        around = list[str]()
        while True:
            holding = [s for s in block.body if self.effects.inside(s) & touched]
            if len(holding) != 1:
                break
            inner: Statement = holding[0]
            while not isinstance(inner, Block):
                if isinstance(inner, Loop):
                    around += [axis.name for axis in self.reading.innermost(inner)]
                deeper = [s for s in inner.statements if touched & self.effects.inside(s)]
                if len(deeper) != 1 or self.effects.inside(deeper[0]) & touched != touched:
                    raise NotLegal("what is shared is not brought before it is read", inner.line)
                inner = deeper[0]
            block = inner
        brought = [at for at, s in enumerate(block.body)
                   if self.effects.inside(s) & {a.own for a in stores}]  # fmt: skip
        asked = [at for at, s in enumerate(block.body)
                 if self.effects.inside(s) & {a.own for a in reads}]  # fmt: skip
        waits = [at for at, s in enumerate(block.body) if s in self.barriers]
        line = reads[0].line if reads else self.kernel.function.line
        first = [w for w in waits if brought and w > max(brought)]
        behind = all(
            a > max(brought) and (any(w < a for w in first) or self._waits(block.body[a], reads))
            for a in asked if brought
        )  # fmt: skip
        if not brought or not asked or not behind:
            raise NotLegal("what is shared is not brought before it is read", line)
        axes = [self.reading.axis(name) for name in around]
        if any(not axis.exact for axis in axes):
            raise NotLegal("the loop that brings elements is not followed", line)
        return around


def _local(condition: Condition, speller: object) -> Condition:
    if isinstance(condition, Compare):
        form = speller.local(condition.form)  # type: ignore[attr-defined]
        return Compare(condition.op, form, condition.roots)
    return condition


def _field(words: str, fields: tuple[str, ...]) -> str:
    """A member of what words say; of a vector that is made there, what it is made of."""
    made = re.fullmatch(r"make_\w+?\d\(([^()]*)\)", words)
    if made and len(fields) == 1 and fields[0] in _LANES:
        parts = [part.strip() for part in made[1].split(",")]
        return parts[_LANES.index(fields[0])]
    whole = words.isidentifier() or re.fullmatch(r"\w+\[.*\]", words)
    return ".".join([words if whole else f"({words})", *fields]) if fields else words


def _only(statement: Statement) -> Statement:
    while isinstance(statement, Block) and len(statement.body) == 1:
        statement = statement.body[0]
    return statement
