"""What is decided of a kernel for a thread far from the borders, and its loads spelled anew.

Each load is spelled as steps behind one address, so that a compiler sees which are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from optiml_magic.kernels.editing import Node, edited, lines, spread, text
from optiml_magic.kernels.expressions import (
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Literal,
    Name,
    Unary,
    builtin,
    every,
    is_logical,
)
from optiml_magic.kernels.functions import OF_ALL_NUMBERS
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.costs import code_of_calls
from optiml_magic.kernels.primitives.effects import Effects, is_counted, leaves, loops_in
from optiml_magic.kernels.primitives.indices import Element, Undecided
from optiml_magic.kernels.primitives.interior import Interior
from optiml_magic.kernels.primitives.items import element, numbers
from optiml_magic.kernels.primitives.naming import numeral, signed_size, type_of
from optiml_magic.kernels.primitives.padding import Padding
from optiml_magic.kernels.primitives.scopes import Scopes
from optiml_magic.kernels.primitives.windows import Window
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    expressions,
    walk,
)

_UNROLLED = 1536  # accesses of a thread in a row that a compiler is asked for, at most: ours
_UNROLL = "#pragma unroll"


class Decided:
    """What to exchange in a kernel, in ``swaps``, which begin with its ``places``.

    ``most`` items are unrolled at once; tests in ``scopes`` stand around all of them. Of the locals
    that keep a value which costs nothing but arithmetic, ``pure`` ones, some are ``uniform``: the
    same for all items and rounds.
    """

    def __init__(
        self, kernel: Kernel, effects: Effects, interior: Interior, most: int,
        places: Mapping[Node, Node | None], *, padded: bool = False,
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.scopes = Scopes(effects, interior.moving)
        self.padded = Padding(effects, interior, self.scopes) if padded else None
        self.effects = effects
        self.interior = interior
        self.most = most
        self.swaps: dict[Node, Node | tuple[Statement, ...] | None] = {**places}
        self.elements: list[tuple[Element, Access]] = []  # what is loaded
        self.found: dict[Expr, tuple[Element, tuple[Access, ...]]] = {}
        self.windows: dict[Loop | If | None, list[Window]] = {}
        self.bases: dict[tuple[str, Polynomial], tuple[str, str]] = {}
        self.pure: set[Variable] = set()
        self.uniform: set[Variable] = set()
        self.taken: dict[If, bool] = {}
        self._varying = {e for e in places if isinstance(e, Expr)}
        self.chosen: dict[Choice, Expr] = {}
        self._kept: dict[Loop, bool] = {}
        self._counters = {
            axis.variable for axis in kernel.axes().values() if is_counted(axis, effects)
        }
        body = kernel.function.body
        self._sort(body)
        self._decide(body)
        for statement in self.alive(body):
            if isinstance(statement, Leave) and statement.kind == "return":
                reason = "whether an item ends before the others is not known"
                raise NotLegal(reason, statement.line)
        self._fix(body)
        self._respell(body)
        self._tell(body)
        self._kept.clear()  # such a test says that the loops around it are kept
        self.unrolled, self.told = self._unrolled(body)

    # What is known of locals.

    def _sort(self, body: Statement) -> None:
        for statement in walk(body):
            for variable in statement.variables if isinstance(statement, Declare) else ():
                value = variable.value
                lasts = variable in self.effects.lasting and not variable.array
                if value is None or not lasts or not all(map(self._is_pure, every(value))):
                    continue
                self.pure.add(variable)
                if not any(self._differs(e) for e in every(value)):
                    self.uniform.add(variable)

    def _is_pure(self, expr: Expr) -> bool:
        if expr in self._varying or builtin(expr):
            return True
        match expr:
            case Name(variable=Variable() as variable):
                known = variable in self.pure or variable in self._counters
                return known or variable.storage == "parameter"
            case Unary(op=op):
                return op in "+-!~"
            case Call(function=name):
                return name in OF_ALL_NUMBERS
        return isinstance(expr, Literal | Name | Binary | Cast | Choice)

    def _differs(self, expr: Expr) -> bool:
        """Whether an expression may be another for each item, or in each round."""
        if isinstance(expr, Name) and expr.variable is not None:
            own = expr.variable.storage == "parameter" or expr.variable in self.uniform
            return not own
        return expr in self._varying or bool(builtin(expr))

    # What is decided.

    def alive(self, statement: Statement) -> Iterator[Statement]:
        """The statements in one that are not beyond a border."""
        yield statement
        if isinstance(statement, If) and statement in self.taken:
            way = statement.then if self.taken[statement] else statement.other
            if way is not None:
                yield from self.alive(way)
            return
        for inner in statement.statements:
            yield from self.alive(inner)

    def _decide(self, statement: Statement) -> None:
        if isinstance(statement, If):
            condition = self.condition(statement)
            if condition is not None and not self._stays(statement, condition):
                try:
                    prefer, ends = self._prefer(statement), leaves(statement, "return")
                    self.taken[statement] = self.interior.decide(condition, prefer, ends)
                except Undecided:
                    pass
                else:
                    way = statement.then if self.taken[statement] else statement.other
                    if way is not None:
                        self._decide(way)
                    return
        for expr in statement.expressions:
            for part in every(expr):
                if isinstance(part, Choice):
                    self._choose(part)
        for inner in statement.statements:
            self._decide(inner)

    def _stays(self, branch: If, condition: Condition) -> bool:
        """Whether a test of a border is not decided: each thread, or each item, goes by it."""
        pure = all(map(self._is_pure, every(branch.test)))
        return self.padded is not None and pure and self.padded.stays(branch, condition)

    def condition(self, statement: If) -> Condition | None:
        found = [g for g in self.kernel.reading.guards if g.test is statement.test]
        if len(found) != 1 or statement.before is not None:
            return None
        return ~found[0].condition if found[0].exits else found[0].condition

    def _prefer(self, statement: If) -> bool | None:
        """The way where more is loaded, and on which a thread stays."""
        if leaves(statement):
            return False
        loads = [0, 0]
        for at, way in enumerate((statement.then, statement.other)):
            if way is not None:
                loads[at] = sum(a.mode == "load" for a in self.effects.accesses(way))
        return None if loads[0] == loads[1] else loads[0] > loads[1]

    def _tell(self, statement: Statement) -> None:
        """Tests that memory decides for all items, within what these go by alike."""
        around = self.scopes.around
        if isinstance(statement, If) and statement not in around | self.taken.keys():
            if not self.scopes.tells(statement):
                return
            around.add(statement)
        if isinstance(statement, Loop) and not self._is_same(statement):
            return
        alive = statement.statements
        if isinstance(statement, If) and statement in self.taken:
            way = statement.then if self.taken[statement] else statement.other
            alive = (way,) if way is not None else ()
        for inner in alive:
            self._tell(inner)

    def _choose(self, choice: Choice) -> None:
        """``x > 0 ? a[x - 1] : 0`` is ``a[x - 1]``."""
        branching = (Choice, Call)
        for way, expr in ((True, choice.then), (False, choice.other)):
            inside = set(every(expr))
            if any(isinstance(e, branching) or is_logical(e) for e in inside):
                continue
            for access in self.kernel.reading.accesses:
                if access.own not in inside or access.call is not None or not access.guard:
                    continue
                condition = access.guard[-1] if way else ~access.guard[-1]
                try:
                    taken = self.interior.decide(condition, way)
                except Undecided:
                    return
                self.chosen[choice] = choice.then if taken else choice.other
                return

    def _fix(self, body: Statement) -> None:
        """Scalars that have been compared with a number are that number."""
        for expr in expressions(body):
            variable = expr.variable if isinstance(expr, Name) else None
            if variable is not None and variable.storage == "parameter":
                value = self.interior.fixed.get(variable.name)
                if value is not None:
                    self.swaps[expr] = numeral(value, type_of(self.kernel, variable))

    # Loads and stores, spelled anew.

    def _respell(self, body: Statement) -> None:
        alive = {e for s in self.alive(body) for top in s.expressions for e in every(top)}
        by_node: dict[Expr, list[Access]] = {}
        for access in self.kernel.reading.accesses:
            # An update stays a call, whose arguments name their item as others do.
            if access.space == "global" and access.mode != "atomic" and access.own in alive:
                node = element(self.effects, access)
                if node is not None:
                    by_node.setdefault(node, []).append(access)
        for node, accesses in by_node.items():
            if len({a.index for a in accesses}) > 1 or not self._followed(accesses[0]):
                continue
            try:
                found = self.interior.element(accesses[0])
                if not self.interior.moving.gathered(found.base):
                    self.swaps[node] = text(self._spelled(found, accesses[0], node))
            except Undecided:
                continue
            self.found[node] = found, tuple(accesses)
            if any(a.mode == "load" for a in accesses):
                self.elements.append((found, accesses[0]))

    def _followed(self, access: Access) -> bool:
        """Whether an element is one of an array that is called by its own name."""
        given = {p.name for p in self.kernel.function.parameters if p.type.depth == 1}
        counters = [a.variable for a in self.kernel.reading.loops(access)]
        names = [v.name for v in counters if v is not None]
        hidden = {v.name for s in walk(self.kernel.function.body) if isinstance(s, Declare)
                  for v in s.variables}  # fmt: skip
        return (
            access.array in given
            and access.array not in hidden
            and numbers(self.kernel, access) > 0
            and len({*names}) == len(counters)
        )

    def is_wide(self, node: Expr) -> bool:
        """Whether an index is computed in 64 bits."""
        kinds = [self.kernel.reading.types.get(e) for e in every(node)]
        return any(k is not None and k.integral and k.size == 8 for k in kinds)

    def _spelled(self, found: Element, access: Access, node: Expr) -> str:
        wide = self.is_wide(node)
        return f"{self.base(found, access)}[{self.offset(wide, found.steps)}]"

    def offset(self, wide: bool, steps: Mapping[tuple[str, ...], Polynomial]) -> str:
        """So many steps of each stride, in ``wide`` numbers or in those of the sizes."""
        found = []
        for sizes, step in sorted(steps.items(), key=lambda s: -len(s[0])):
            if not step.terms:
                continue
            words = self.interior.speller.form(step)
            if sizes:
                extent = " * ".join(signed_size(self.kernel, name, wide=wide) for name in sizes)
                words = f"({words})" if len(step.terms) > 1 else words
                words = {"1": "", "-1": "-"}.get(words, f"{words} * ") + extent
            found.append(words)
        return " + ".join(found).replace("+ -", "- ") or "0"

    def address(self, base: Polynomial) -> str:
        """An index in numbers that are wide enough for every part of it."""
        speller = self.interior.speller
        speller.wide = True
        try:
            return speller.form(base)
        finally:
            speller.wide = False

    def base(self, found: Element, access: Access) -> str:
        """The name of the address that an element is behind."""
        key = found.array, found.base
        if key not in self.bases:
            others = [name for name, _ in self.bases.values()]
            name = self.kernel.fresh(f"{found.array}_at", *others)
            self.bases[key] = name, self.declared(name, found, access)
        return self.bases[key][0]

    def declared(self, name: str, found: Element, access: Access) -> str:
        """The declaration of the address that an element is behind."""
        const = "const " if found.array not in self.kernel.reading.written else ""
        kind, place = f"{const}{access.element.name}*", self.place(found.array, found.base, access)
        if numbers(self.kernel, access) > 1:
            place = f"reinterpret_cast<{kind}>({place})"
        return f"{kind} {name} = {place};"

    def place(self, array: str, base: Polynomial, access: Access) -> str:
        """An address of its array, in numbers of those that an access takes."""
        whole = base.divided(numbers(self.kernel, access))
        if whole is None:
            raise NotLegal(f"elements of `{array}` are taken in parts", access.line)
        at = self.address(whole)
        return f"&{array}[{at}]" if at != "0" else array

    def _unrolled(self, body: Statement) -> tuple[set[Loop], set[Loop]]:
        """Short loops that do not say how they are to be unrolled, and those that say wholly."""
        inside = [*walk(body)]
        told = {
            after: self.kernel.show(at).strip() for s in inside if isinstance(s, Block)
            for at, after in zip(s.body, s.body[1:], strict=False) if isinstance(at, Blank)
        }  # fmt: skip
        short = {s for s in inside if isinstance(s, Loop) and self._is_short(s)}
        return short - {*told}, {s for s in short if told.get(s) == _UNROLL}

    def prepare(self) -> None:
        """Ways that are decided in the place of their tests; short loops to be unrolled."""
        body = self.kernel.function.body
        for test, inside in self.padded.certain.items() if self.padded is not None else ():
            self.swaps[test] = Binary(None, "||", text(inside), edited(test, self.swaps))
        for choice, chosen in reversed([*self.chosen.items()]):
            self.swaps[choice] = edited(chosen, self.swaps)
        for statement in reversed([*walk(body)]):
            if isinstance(statement, If) and statement in self.taken:
                way = statement.then if self.taken[statement] else statement.other
                new = edited(way, self.swaps) if way is not None else None
                self.swaps[statement] = spread(new)
            elif isinstance(statement, Loop) and statement in self.unrolled:
                self.swaps[statement] = (lines(_UNROLL), edited(statement, self.swaps))

    def _rounds(self, loop: Loop) -> int:
        """The rounds of a loop at most, 0 where that is not known."""
        axis = self.kernel.axes().get(loop)
        return (self.interior.most_rounds(axis.name) or 0) if axis is not None else 0

    def keeps(self, loop: Loop) -> bool:
        """Whether a loop that loads stands around the items: the same for all, not unrolled."""
        if loop not in self._kept:
            loads = any(a.space == "global" for a in self.effects.accesses(loop))
            self._kept[loop] = loads and not self._is_short(loop) and self._is_same(loop)
        return self._kept[loop]

    def _is_short(self, loop: Loop) -> bool:
        if self.interior.moving.gathers(loop) or self.scopes.inside(loop):
            return False
        total = self.most * prod(map(self._rounds, (loop, *loops_in(loop.body))))
        return 0 < total * code_of_calls(self.kernel, self.effects.inside(loop.body)) <= _UNROLLED

    def _is_same(self, loop: Loop) -> bool:
        axis = self.kernel.axes().get(loop)
        if axis is None or not axis.exact or not is_counted(axis, self.effects):
            return False
        if any(isinstance(statement, Leave) for statement in self.alive(loop.body)):
            return False
        if self._bounded_alike(axis):
            return True
        own = axis.variable
        for expr in (loop.test, *(loop.before.expressions if loop.before else ())):
            for part in every(expr) if expr is not None else ():
                mine = isinstance(part, Name) and (part.variable is own or self._outer(part, loop))
                if not mine and (self._differs(part) or not self._is_pure(part)):
                    return False
        return True

    def _bounded_alike(self, axis: Axis) -> bool:
        """Whether memory that nothing writes says for all items alike where a loop ends."""
        forms = [part.form for part in axis.test.conjuncts() if isinstance(part, Compare)]
        forms += [axis.start] if axis.start is not None else []
        inside = {n for form in forms for n in self.kernel.reading.symbols.inside(form)}
        around = {
            a.name for a in self.kernel.axes().values()
            if axis.node in set(loops_in(a.node.body)) and self.keeps(a.node)
        }  # fmt: skip
        return self.interior.moving.alike(inside - {axis.name} - around)

    def _outer(self, name: Name, loop: Loop) -> bool:
        """Whether a name is the counter of a loop around that all items share."""
        around = [a for a in self.kernel.axes().values() if loop in set(loops_in(a.node.body))]
        return any(a.variable is name.variable and self.keeps(a.node) for a in around)
