"""What a thread does for all of its items at once, away from the borders.

Loops that are the same for all items stand around these, locals that are asked for later become an
element for each item, and what is stored at the end is stored behind all loads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import Assign, Expr, Name, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.decided import Decided
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.naming import declared_type
from optiml_magic.kernels.primitives.spelled_names import stands
from optiml_magic.kernels.primitives.stacked import Stacked, stacked
from optiml_magic.kernels.primitives.vectored import Vectored
from optiml_magic.kernels.primitives.windows import Window
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    If,
    Loop,
    Statement,
    TypeName,
    Variable,
    expressions,
    walk,
)  # fmt: skip

_UNROLL = "#pragma unroll"
_Key = tuple[str, int]


@dataclass(eq=False)
class _List:
    """The parts of a body: runs of statements, loops around parts, and what is stored behind.

    ``helpers`` are locals that any part may compute for itself; ``own`` those declared here.
    """

    helpers: list[tuple[Variable, str]] = field(default_factory=list)
    own: list[Variable] = field(default_factory=list)
    parts: list[_Part] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)


@dataclass(eq=False)
class _Part:
    """Statements for each item, a loop or a test ``around`` others, or loops as ``columns``."""

    tree: Statement
    around: Loop | If | None = None
    inner: _List | None = None
    columns: Stacked | None = None


class Together:
    """Makes the lines of the inside from a kernel and what is decided of it."""

    def __init__(
        self, kernel: Kernel, effects: Effects, decided: Decided, vectored: Vectored | None,
        stacks: Vectored | None,
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.effects = effects
        self.decided = decided
        self.swaps = decided.swaps
        self.several = [along for along in decided.interior.along if along.several]
        self.vectored, self.stacks = vectored, stacks
        self.expanded: dict[_Key, str] = {}
        self.columns: set[str] = set()  # names that they have

    def lines(self) -> list[str]:
        """The statements for all items, behind the addresses that they step from."""
        body = self.kernel.function.body
        whole = self._list(body, None)
        around = {part.around for own in _lists(whole) for part in own.parts}
        if not self.decided.scopes.around <= around:
            raise NotLegal("a test of all items stands in one of each")
        self._expand(whole)
        made = self._written(whole)
        words = "\n".join(made)
        bases = [line for name, line in self.decided.bases.values() if stands(name, words)]
        return [*bases, *made]

    def _list(self, statement: Statement, scope: Loop | If | None) -> _List:
        found = _List(windows=self.decided.windows.get(scope, []))
        run: list[Statement] = []
        for inner in self._flat(statement):
            if isinstance(inner, Loop) and inner not in self.swaps and self.decided.keeps(inner):
                self._close(found, run)
                head = replace(inner, body=Block(None, inner.line, ()), span=None, head=None)
                found.parts.append(
                    _Part(edited(head, self.swaps), inner, self._list(inner.body, inner))
                )
            elif isinstance(inner, If) and inner in self.decided.scopes.around:
                self._close(found, run)
                test = replace(inner, then=Block(None, inner.line, ()), span=None, head=None)
                found.parts.append(
                    _Part(edited(test, self.swaps), inner, self._list(inner.then, inner))
                )
            elif isinstance(inner, Declare):
                self._declared(found, run, inner)
            elif (columns := self._columns(inner)) is not None:
                self._close(found, run)
                tree = edited(Block(None, 0, (inner,)), self.swaps)
                found.parts.append(_Part(tree, columns=columns))
            else:
                run.append(inner)
        stores = self._stores(run)
        late: list[Statement] = []
        del run[len(run) - len(stores) :]
        for assign, access in stores:
            if isinstance(assign.value, Name):
                late.append(Evaluate(None, 0, assign))
                continue
            name = self.kernel.fresh(f"{access.array}_items", *self.expanded.values())
            local = Variable(name, TypeName(access.element.name), "local", 0)
            self.expanded[_key(local)] = name
            found.own.append(local)
            value = Name(None, name, local)
            run.append(Evaluate(None, 0, Assign(None, "=", value, assign.value)))
            late.append(Evaluate(None, 0, Assign(None, "=", assign.target, value)))
        self._close(found, run)
        self._close(found, late)
        return found

    def _columns(self, statement: Statement) -> Stacked | None:
        """Two loops whose columns neighbours share, where they may be taken in any order."""
        windows = self.stacks
        return stacked(self.decided, windows, statement, self._without_idle) if windows else None

    def _flat(self, statement: Statement) -> Iterator[Statement]:
        """The statements of a body, those of ways that are taken among them."""
        if isinstance(statement, Block) and self._has_own(statement):
            yield statement
        elif isinstance(statement, Block):
            for inner in statement.body:
                yield from self._flat(inner)
        elif isinstance(statement, If) and statement in self.decided.taken:
            way = statement.then if self.decided.taken[statement] else statement.other
            if way is not None:
                yield from self._flat(way)
        elif isinstance(statement, Declare) and statement in self.swaps:
            swapped = self.swaps[statement]
            if isinstance(swapped, Declare):
                yield swapped
        else:
            yield statement

    def _has_own(self, block: Block) -> bool:
        """Whether a block within another has locals whose names stand for others as well."""
        if block is self.kernel.function.body:
            return False
        own = {v.name for s in block.body if isinstance(s, Declare) for v in s.variables}
        others = [v.name for s in walk(self.kernel.function.body) if isinstance(s, Declare)
                  for v in s.variables if v.name in own]  # fmt: skip
        if len(others) == len(own):
            return False
        for loop in loops_in(block):
            if self.decided.keeps(loop):
                raise NotLegal("locals of one name stand around loops of all items", block.line)
        return True

    def _declared(self, found: _List, run: list[Statement], statement: Declare) -> None:
        for variable in statement.variables:
            if variable in self.decided.pure:
                found.helpers.append((variable, statement.words))
            else:
                found.own.append(variable)
                run.append(replace(statement, variables=(variable,), span=None))

    def _stores(self, run: Sequence[Statement]) -> list[tuple[Assign, Access]]:
        """What a run stores at its end, where nothing behind asks for it."""
        found: list[tuple[Assign, Access]] = []
        accesses = self.kernel.reading.accesses
        for statement in reversed(run):
            assign = statement.expression if isinstance(statement, Evaluate) else None
            own = [a for a in accesses if assign is not None and a.own is assign]
            if not isinstance(assign, Assign) or assign.op != "=" or len(own) != 1:
                break
            access = own[0]
            if (access.space, access.mode) != ("global", "store"):
                break
            vector = self.vectored is not None and self.vectored.holds(assign.target)
            if assign.target not in self.swaps or vector:
                break
            later = [e for other, _ in found for e in every(other.value)]
            if any(a.own in later and self.effects.same(a.array, access.array) for a in accesses):
                break
            found.insert(0, (assign, access))
        return found

    def _close(self, found: _List, run: list[Statement]) -> None:
        while run and isinstance(run[-1], Blank):  # it is said of the loop behind
            run.pop()
        if run:
            tree = edited(Block(None, 0, tuple(run)), self.swaps)
            found.parts.append(_Part(self._without_idle(tree)))
            run.clear()

    def _without_idle(self, tree: Block) -> Block:
        """A run without the locals that nothing in it asks for any more."""
        pure = {*map(_key, self.decided.pure)}
        while True:
            asked = {_key(e.variable) for e in expressions(tree)
                     if isinstance(e, Name) and e.variable is not None}  # fmt: skip
            idle: dict[Node, Node | tuple[Statement, ...] | None] = {}
            for statement in walk(tree):
                if isinstance(statement, Declare):
                    left = tuple(v for v in statement.variables
                                 if _key(v) in asked or _key(v) not in pure)  # fmt: skip
                    if len(left) < len(statement.variables):
                        alone = replace(statement, variables=left, span=None)
                        idle[statement] = alone if left else ()
            if not idle:
                return tree
            tree = edited(tree, idle)

    # Locals that several parts ask for.

    def _expand(self, whole: _List) -> None:
        asked = [self._asked(part) for own in _lists(whole) for part in own.parts]
        for own in _lists(whole):
            for variable in own.own:
                users = sum(_key(variable) in found for found in asked)
                if _key(variable) not in self.expanded and users > 1:
                    if variable.type.reference or variable.initial or variable.array:
                        reason = f"`{variable.name}` cannot be one for each item"
                        raise NotLegal(reason, variable.line)
                    self.expanded[_key(variable)] = variable.name

    def _asked(self, part: _Part) -> set[_Key]:
        """The locals that a part names, or computes for itself from."""
        found: dict[_Key, Variable] = {}
        todo = [e.variable for e in expressions(part.tree) if isinstance(e, Name)]
        for statement in walk(part.tree):
            todo += statement.variables if isinstance(statement, Declare) else ()
        while todo:
            variable = todo.pop()
            if variable is None or _key(variable) in found:
                continue
            found[_key(variable)] = variable
            if variable in self.decided.pure and variable.value is not None:
                todo += [e.variable for e in every(variable.value) if isinstance(e, Name)]
        return {*found}

    # Text.

    def _written(self, whole: _List, helpers: Sequence[tuple[Variable, str]] = ()) -> list[str]:
        once = [h for h in whole.helpers if h[0] in self.decided.uniform]
        each = [*helpers, *(h for h in whole.helpers if h[0] not in self.decided.uniform)]
        made = [
            f"{declared_type(self.kernel, variable)} "
            f"{self.expanded[_key(variable)]}{self._extents};"
            for variable in whole.own if _key(variable) in self.expanded
        ]  # fmt: skip
        for window in whole.windows:
            made += [*filter(None, [window.begun]), window.declared(), *window.lines("load")]
        around = list[str]()  # helpers that stand here, and not in the loops over items
        for part in whole.parts:
            if part.around is not None and part.inner is not None:
                shown = self.kernel.show(edited(part.tree, self._of_first(part.tree)))
                head = shown.removesuffix("}").rstrip().removesuffix("{")
                asked = [line for line in self._needed(each, [head]) if line not in around]
                around += asked
                if any(stands(name, line) for name in self.expanded.values() for line in asked):
                    raise NotLegal("what a loop asks for each item has", part.around.line)
                if any(stands(a.name, line) for a in self.several for line in [*asked, head]):
                    raise NotLegal("each item may make another number of rounds", part.around.line)
                made += [*asked, f"{head.rstrip()} {{", *self._written(part.inner, each), "}"]
            elif part.columns is not None:
                made += self._stacked(part.columns, each)
            else:
                made += self._for_each(part, each)
        for window in whole.windows:
            made += window.lines("store")
        return [*self._needed(once, made), *made]

    def _of_first(self, tree: Statement) -> dict[Node, Node]:
        """What all items have alike, by what the first of them has."""
        return {
            e: text(f"{self.expanded[_key(e.variable)]}{'[0]' * len(self.several)}")
            for e in expressions(tree)
            if isinstance(e, Name) and e.variable is not None and _key(e.variable) in self.expanded
        }

    def _stacked(
        self, columns: Stacked, helpers: Sequence[tuple[Variable, str]]
    ) -> list[str]:  # fmt: skip
        """Each column once, then those of each item."""
        *others, along = self.several
        turn, places = columns.turn, [*columns.places]
        names = {v: self.kernel.fresh(f"{v.name}_column", *self.columns) for v in places}
        held = {v: self.kernel.fresh(f"{v.name}_columns", *self.columns) for v in places}
        self.columns |= {*names.values(), *held.values()}
        count, row = f"{along.count} + {turn.count - 1}", "".join(f"[{a.item}]" for a in others)
        rows = "".join(f"[{a.count}]" for a in others)
        heads = [_each(a.item, a.count) for a in others]
        types = {v: declared_type(self.kernel, v) for v in places}
        body = [
            *(f"{types[v]} {names[v]} = {columns.places[v][1]};" for v in places),
            _UNROLL, self.kernel.show(columns.begun(names), self.swaps),
            *(f"{held[v]}{row}[{along.item}] = {names[v]};" for v in places),
        ]  # fmt: skip
        at = f"{row}[{along.item} + {turn.name}]"
        joined = [
            columns.joined(v, f"{self.expanded[_key(v)]}{self._place}", f"{held[v]}{at}")
            for v in places
        ]
        return [
            *(f"{types[v]} {held[v]}{rows}[{count}];" for v in places),
            *heads, _each(along.item, count), f"const int {turn.name} = {turn.start};",
            *self._needed(helpers, body), *body, *"}" * (len(heads) + 1),
            *heads, _each(along.item, along.count), _each(turn.name, str(turn.count)),
            *joined, *"}" * (len(heads) + 2),
        ]  # fmt: skip

    @property
    def _extents(self) -> str:
        return "".join(f"[{along.count}]" for along in self.several)

    @property
    def _place(self) -> str:
        return "".join(f"[{along.item}]" for along in self.several)

    def _for_each(self, part: _Part, helpers: Sequence[tuple[Variable, str]]) -> list[str]:
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
        for statement in walk(part.tree):
            first = statement.variables[0] if isinstance(statement, Declare) else None
            if isinstance(statement, Declare) and first and _key(first) in self.expanded:
                (variable,) = statement.variables
                begun = () if variable.value is None else (
                    Evaluate(None, 0, Assign(None, "=", self._one(variable), variable.value)),
                )  # fmt: skip
                swaps[statement] = begun
        for expr in expressions(part.tree):
            if isinstance(expr, Name) and expr.variable and _key(expr.variable) in self.expanded:
                swaps[expr] = self._one(expr.variable)
        for node, new in [*swaps.items()]:
            if isinstance(new, tuple) and new:
                inner = {n: s for n, s in swaps.items() if n is not node}
                swaps[node] = tuple(edited(s, inner) for s in new)
        shown = self.kernel.show(part.tree, swaps).removeprefix("{").removesuffix("}").strip()
        if not shown:
            return []
        body = [shown]
        body = [*self._needed(helpers, body), *body]
        head: list[str] = []
        for along in self.several:
            head += [
                _UNROLL,
                f"for (int {along.item} = 0; {along.item} < {along.count}; ++{along.item}) {{",
            ]
        words = "\n".join(body)
        index = [f"{a.words} {a.name} = {a.first} + {a.item};"
                 for a in self.several if stands(a.name, words)]  # fmt: skip
        return [*head, *index, *body, *"}" * len(self.several)]

    def _one(self, variable: Variable) -> Expr:
        return text(f"{self.expanded[_key(variable)]}{self._place}")

    def _needed(self, helpers: Iterable[tuple[Variable, str]], body: Sequence[str]) -> list[str]:
        """The locals that some lines ask for, computed before them."""
        found: list[str] = []
        words = "\n".join(body)
        for variable, declared in reversed([*helpers]):
            if stands(variable.name, words):
                alone = Declare(None, 0, declared, (replace(variable, span=None),))
                line = self.kernel.show(alone, self.swaps)
                found.insert(0, line)
                words = f"{line}\n{words}"
        return found


def _each(name: str, count: str) -> str:
    return f"{_UNROLL}\nfor (int {name} = 0; {name} < {count}; ++{name}) {{"


def _key(variable: Variable) -> _Key:
    """What a local is known by: an edited one is another object."""
    return variable.name, variable.line


def _lists(whole: _List) -> Iterator[_List]:
    yield whole
    for part in whole.parts:
        if part.inner is not None:
            yield from _lists(part.inner)
