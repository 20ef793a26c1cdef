"""Which rounds of a product a tile takes part in, where guards tie rows, columns and rounds.

Of ``if (k <= row) sum += ...`` most tiles have all rounds of a group or none: those need no test.
Where no output of a tile has a sum at all, there are no rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.kernels.expressions import Expr
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.operands import COLUMN, ROW, Contraction
from optiml_magic.kernels.primitives.projected import extreme
from optiml_magic.kernels.primitives.tile_guards import guards, is_bound
from optiml_magic.kernels.primitives.tile_layout import Layout
from optiml_magic.kernels.primitives.tile_triangle import Triangle, triangle
from optiml_magic.kernels.primitives.zeros import FROM_ZERO, adds_nothing
from optiml_magic.kernels.symbols import Always, Compare, Condition
from optiml_magic.kernels.tree import Block, Declare, If, Statement, only_leaves, walk

_PLAIN = frozenset({"scalar", "builtin"})


class TileRounds:
    """``whole`` are the tests under which a group of rounds needs none of its own.

    ``begin`` and ``end`` are the rounds of a tile in words, ``body`` what each does without tests.
    ``around`` are the guards of the loop, over rows and columns, beside the ends of these. Where
    outputs above the diagonal are ``mirrored``, tiles have those on and below it alone.
    """

    def __init__(self, parts: Contraction, layout: Layout, *, mirrored: bool = False) -> None:
        self.parts, self.layout = parts, layout
        self.body, tests = self._parted()
        around = [c for g in parts.axis.guard for c in g.conjuncts() if not is_bound(parts, c)]
        self.around = self._forms(around) or ()
        self.triangle = triangle(parts, layout, around, self.around) if self.around else None
        if mirrored:
            self.around += (Polynomial.symbol(ROW) - Polynomial.symbol(COLUMN),)
            self.triangle = Triangle(ROW, layout)
        self.any = self._spelled(self.around, greatest=True)
        forms = self._forms(tests)
        if forms is None and not self._nothing(tests):
            self.body, forms = (parts.loop.body,), ()
        self.whole = self._spelled(forms, greatest=False)
        self.begin, self.end = self._ends(forms or ())

    def _parted(self) -> tuple[tuple[Statement, ...], list[Condition]]:
        """What a round does where it counts, and when it does."""
        body: tuple[Statement, ...] = (self.parts.loop.body,)
        found, before = list[Condition](), list[Statement]()
        while body:
            match body:
                case (Block(body=inner),):
                    body = inner
                    continue
                case (Declare() as declared, _, *_):
                    before.append(declared)
                    body = body[1:]
                    continue
                case (If(test=test, then=then, other=None, before=None), *rest):
                    leaves = only_leaves(then, "continue")
                    condition = self._condition(test, then if not leaves else rest)
                    if condition is None or (rest and not leaves):
                        break
                    found += () if isinstance(condition, Always) else (condition,)
                    body = tuple(rest) if leaves else (then,)
                    continue
            break
        return ((*before, *body), found) if found else ((self.parts.loop.body,), [])

    def _nothing(self, tests: Sequence[Condition]) -> bool:
        """Whether a round adds nothing where a test does not hold, as what it loads is zero then.

        As with products by a padding of zeros, what it is times may be no finite number.
        """
        parts = self.parts
        lets = {v: v.value for s in walk(parts.loop.body) if isinstance(s, Declare)
                for v in s.variables}  # fmt: skip
        guarded = {o: guards(parts, o) for o in (*parts.operands, *parts.others)}
        for test in (p for t in tests for p in t.conjuncts()):
            if not isinstance(test, Compare):
                return False
            placed = Compare(test.op, parts.placed(test.form), test.roots)
            loads = {a.own for o, found in guarded.items() if placed in found for a in o.accesses}
            if not all(adds_nothing(reduction, loads, lets) for reduction in parts.reductions):
                return False
        return all(r.op in FROM_ZERO for r in parts.reductions)

    def _condition(self, test: Expr, inside: Statement | Sequence[Statement]) -> Condition | None:
        """What holds where a branch is taken, as all accesses in it say.

        A test that is known has no guard: what it leaves out is not read.
        """
        reading, effects = self.parts.kernel.reading, self.parts.effects
        guards = [g.condition for g in reading.guards if g.test is test]
        statements = (inside,) if isinstance(inside, Statement) else inside
        held = [
            {part for c in access.guard for part in c.conjuncts()}
            for statement in statements for access in effects.accesses(statement)
        ]  # fmt: skip
        if held and not guards:
            return Always(True)
        for condition in (c for g in guards for c in (g, ~g)) if len(guards) == 1 else ():
            if held and all({*condition.conjuncts()} <= each for each in held):
                return condition
        return None

    def _forms(self, tests: Sequence[Condition]) -> tuple[Polynomial, ...] | None:
        """The tests as forms of a row, a column and a round; None where one is something else."""
        parts, found = self.parts, list[Polynomial]()
        table = parts.kernel.reading.symbols.table
        for part in (p for test in tests for p in test.conjuncts()):
            if not isinstance(part, Compare) or part.op != ">=":
                return None
            form = parts.placed(part.form)
            indices = {ROW, COLUMN, parts.axis.name}
            if any(table[name].kind not in _PLAIN for name in form.symbols - indices):
                return None
            if any((form.coefficient(n) or form).value is None for n in indices & form.symbols):
                return None
            found.append(form)
        return tuple(found)

    def _tile(self) -> dict[str, tuple[str, str]]:
        return {side: (f"@first{side}", f"@last{side}") for side in (ROW, COLUMN)}

    def _names(self) -> dict[str, str]:
        """What the first and the last of a tile are called."""
        sides = self.layout.sides
        names = {f"@first{side}": sides[side].first for side in (ROW, COLUMN)}
        names |= {
            f"@last{side}": f"({sides[side].first} + {sides[side].whole} - 1)"
            for side in (ROW, COLUMN)
        }
        from_, deep = self.layout.from_, self.layout.deep
        names |= {"@first": from_, "@last": f"({from_} + {deep} - 1)"}
        table = self.parts.kernel.reading.symbols.table
        return names | {n: f"(int){n}" for n, s in table.items() if s.kind in _PLAIN}

    def _spelled(self, forms: tuple[Polynomial, ...] | None, *, greatest: bool) -> list[str]:
        ends = self._tile() | {self.parts.axis.name: ("@first", "@last")}
        speller = self.layout.speller(self._names())
        found = [Compare(">=", extreme(f, ends, greatest), frozenset()) for f in forms or ()]
        return [speller.condition(test) for test in dict.fromkeys(found)]

    def _ends(self, forms: Sequence[Polynomial]) -> tuple[str, str]:
        """The first round of a tile and the end of its rounds; nothing where these are all."""
        axis, deep = self.parts.axis.name, self.layout.deep
        speller = self.layout.speller(self._names())
        begin = end = ""
        for form in forms:
            by = form.coefficient(axis)
            rest = extreme(form.without([axis]), self._tile(), greatest=True)
            if by == Polynomial.constant(-1):
                words = speller.form(rest + Polynomial.constant(1))
                end = f"min({end}, {words})" if end else words
            elif by == Polynomial.constant(1):
                begin = f"max({begin or 0}, {speller.form(-rest)})"
        return begin and f"{begin} / {deep} * {deep}", end
