"""P11, broken: lanes share the rounds of a loop that one of them may end, ``if (col < 0) break;``.

Each lane finds whether its own round ends the loop, which no round before it may have a say in. Of
those that do the first does so: the lanes before it make their rounds, it makes its own up to its
way out, all others make none, and they leave together. What rounds behind it load to say whether
they end the loop nobody loaded before, so that the launch has to ask for it; all else is loaded by
rounds that were made anyway. What is given on the way out is handed on by the lane that found it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node
from optiml_magic.kernels.expressions import (
    Binary,
    Expr,
    Lambda,
    Literal,
    Name,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.all_rounds import asked
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.combine import Group
from optiml_magic.kernels.primitives.computing import noticed
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.flow import ends
from optiml_magic.kernels.primitives.halving import flat
from optiml_magic.kernels.primitives.heads import Heads
from optiml_magic.kernels.primitives.naming import declared_type, type_of
from optiml_magic.kernels.primitives.rounds import combined_in, counting
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    If,
    Loop,
    Statement,
    Variable,
    body_of,
    only_leaves,
    walk,
)

_SHUFFLES = """\
// The first lane of a group for which this holds; LANES where it holds for none.
template <int LANES> __device__ __forceinline__ int {scope}_first(bool holds) {{
    const unsigned found = __ballot_sync({mask}<LANES>(), holds);
    return found == 0 ? LANES : {lane};
}}""", """\
// What one lane of a group has, for all of them.
template <int LANES, class T> __device__ __forceinline__ T {scope}_from(int lane, T value) {{
    return __shfl_sync({mask}<LANES>(), value, {place});
}}"""  # fmt: skip
_WARP = tuple(one.format(
    scope="lanes", mask="group_mask", lane="(__ffs(found) - 1) % LANES",
    place="threadIdx.x % 32 / LANES * LANES + lane") for one in _SHUFFLES)  # fmt: skip
_APART = tuple(one.format(
    scope="apart", mask="apart_mask", lane="(__ffs(found) - 1) / (32 / LANES)",
    place="threadIdx.x % (32 / LANES) + lane * (32 / LANES)") for one in _SHUFFLES)  # fmt: skip
_BLOCK = """\
// The first thread of a block, a multiple of 32, for which this holds; THREADS where for none.
template <int THREADS> __device__ __forceinline__ int block_first(bool holds) {
    __shared__ int firsts[THREADS / 32];
    const unsigned found = __ballot_sync(~0u, holds);
    __syncthreads();  // the round before has read its parts
    if (threadIdx.x % 32 == 0) {
        firsts[threadIdx.x / 32] = found == 0 ? THREADS : (int)threadIdx.x + __ffs(found) - 1;
    }
    __syncthreads();
    int first = firsts[0];
    for (int warp = 1; warp < THREADS / 32; ++warp) first = min(first, firsts[warp]);
    return first;
}""", """\
// What one thread of a block has, for all of them.
template <int THREADS, class T> __device__ __forceinline__ T block_from(int thread, T value) {
    __shared__ T given;
    __syncthreads();  // the round before has read it
    if ((int)threadIdx.x == thread) given = value;
    __syncthreads();
    return given;
}"""  # fmt: skip
_BEFORE = "what ends the loop depends on rounds before"
_WORD = 4  # bytes that a shuffle carries
_HELPERS: Mapping[Group, tuple[str, ...]] = {"warp": _WARP, "apart": _APART, "block": _BLOCK}
_COMPARES = ("<", "<=", ">", ">=", "!=")
_SCOPES: Mapping[Group, str] = {"warp": "lanes", "apart": "apart", "block": "block"}


@dataclass(frozen=True)
class Broken:
    """A loop whose rounds do what is ``first`` whatever ends them, ``ask``, and do the ``rest``.

    ``own`` are the locals that a round asks by, ``ways`` the branches among these questions that
    end the loop, and ``given`` what they alone give to whoever comes after. ``sizes`` are what the
    launch has to ask for.
    """

    kernel: Kernel
    axis: Axis
    effects: Effects
    first: tuple[Statement, ...]
    asks: tuple[Statement, ...]
    rest: tuple[Statement, ...]
    own: tuple[Variable, ...]
    ways: tuple[If, ...]
    given: tuple[Variable, ...]
    sizes: tuple[str, ...]

    def made(
        self, group: Group, lane: str, count: str, swaps: Mapping[Node, Node],
        told: Mapping[Node, tuple[Statement, ...]], fresh: Callable[[str], str],
    ) -> tuple[str, str, str]:  # fmt: skip
        """What the loop needs, it, of whose rounds ``count`` lanes make one each, what follows."""
        kernel, axis, loop, scope = self.kernel, self.axis, self.axis.node, _SCOPES[group]
        assert axis.variable is not None
        heads = Heads(kernel, [loop], self.effects)
        name, kind = axis.variable.name, declared_type(kernel, axis.variable)
        base, is_open = fresh(f"{name}_base"), fresh("is_open")
        stops, first = fresh("stops"), fresh("first")
        _, start = heads.start(loop, swaps)
        step = heads.step(axis)
        far = "" if step == "1" else f" * {step}"
        named: dict[Node, Node] = {
            e: Name(None, base)
            for e in self.effects.inside(loop)
            if isinstance(e, Name) and e.variable is axis.variable
        }
        at_base = heads.test(loop, axis, {**swaps, **named})
        plain = isinstance(loop.test, Binary) and loop.test.op in _COMPARES
        ahead = f"{at_base if plain else f'({at_base})'} && {first} == {count}"
        there = heads.test(loop, axis, swaps)
        shown = {**swaps, **told}
        body = [
            f"for ({kind} {base} = {start}; {ahead}; {base} += {count}{far}) {{",
            f"const {kind} {name} = {base} + {lane}{far};",
            f"bool {is_open} = {there}, {stops} = false;",
            *(f"{declared_type(kernel, v)} {v.name};" for v in self.own),
            f"if ({is_open}) {{",
            *self._asked(self.asks, is_open, stops, swaps),
            "}",
            f"{first} = {scope}_first<{count}>({stops});",
        ]
        if self.first:
            there = there if any(map(_skips, self.asks)) else is_open
            body += [f"if ({there} && {lane} <= {first}) {{",
                     *(kernel.show(s, shown) for s in self.first), "}"]  # fmt: skip
        body += self._left(lane, first, shown)
        if self.rest:
            body += [f"if ({is_open} && {lane} < {first}) {{",
                     *(kernel.show(s, shown) for s in self.rest), "}"]  # fmt: skip
        behind = [self._handed(v, f"{scope}_from<{count}>", first) for v in self.given]
        if behind:
            behind = [f"if ({first} < {count}) {{", *behind, "}"]
        return f"int {first} = {count};", "\n".join([*body, "}"]), "\n".join(behind)

    def _asked(
        self, asks: Sequence[Statement], is_open: str, stops: str, swaps: Mapping[Node, Node]
    ) -> list[str]:
        """What says whether a lane's round ends the loop; one that only ends is closed."""
        made = list[str]()
        for at, statement in enumerate(asks):
            match statement:
                case If(test=test) if statement in self.ways or _skips(statement):
                    name, no = (stops, "!") if statement in self.ways else (is_open, "")
                    asked_for = self._shown(test, swaps)
                    made.append(f"{name} = {asked_for if no else f'!({asked_for})'};")
                    inner = self._asked(asks[at + 1 :], is_open, stops, swaps)
                    return [*made, f"if ({no}{name}) {{", *inner, "}"] if inner else made
                case Declare(variables=variables):
                    made += [f"{v.name} = {self._shown(v.value, swaps)};"
                             for v in variables if v.value is not None]  # fmt: skip
                case Blank():
                    pass
                case _:
                    made.append(self.kernel.show(statement, swaps))
        return made

    def _left(
        self, lane: str, first: str, shown: Mapping[Node, Node | tuple[Statement, ...]]
    ) -> list[str]:
        """What the lane does whose round ends the loop, on the way out that it takes."""
        does = [[self.kernel.show(s, shown) for s in flat(way.then)[:-1]] for way in self.ways]
        if not any(does):
            return []
        made = [f"if ({lane} == {first}) {{"]
        for at, (way, inner) in enumerate(zip(self.ways, does, strict=True)):
            test = self._shown(way.test, shown)  # type: ignore[arg-type]
            again = f"if ({test}) " if at + 1 < len(self.ways) else ""
            made += [f"{'else ' * bool(at)}{again}{{", *inner, "}"] if len(does) > 1 else inner
        return [*made, "}"]

    def _handed(self, variable: Variable, call: str, first: str) -> str:
        """A local as the lane that ended the loop has it."""
        kind = type_of(self.kernel, variable)
        name = variable.name
        value = f"(int){name}" if (kind.size or 0) < _WORD else name
        return f"{name} = {call}({first}, {value});"

    def _shown(self, expr: Expr, swaps: Mapping[Node, Node]) -> str:
        return self.kernel.spelled(expr, swaps)


def helpers(group: Group, loops: Iterable[Broken]) -> tuple[str, ...]:
    """The functions by which lanes find out who ends these loops, and with what."""
    found = (*loops,)
    hands = any(loop.given for loop in found)
    return _HELPERS[group][: 1 + hands] if found else ()


def broken(kernel: Kernel, loop: Loop, effects: Effects, group: Group) -> Broken | None:
    """How lanes share a loop that is left early; None where it is left at its end alone.

    Raises NotLegal where they cannot.
    """
    axis = kernel.axes().get(loop)
    if axis is None or not axis.broken:
        return None
    if group not in _HELPERS:
        raise NotLegal(f"the loop has another way out: {axis.reason}", loop.line)
    counting(kernel, loop, effects, broken=True)
    body = _unfolded(loop)
    ways = tuple(s for s in body if any(True for _ in ends(s, "break")))
    if not ways:
        raise NotLegal("where the loop is left is not followed", loop.line)
    last = body.index(ways[-1])
    anew = {v for v in effects.changed(loop.body) if effects.begun_anew(v, loop)}
    first, asks = _parted(kernel, effects, body[: last + 1], ways, anew)
    own = tuple(v for s in asks if isinstance(s, Declare) for v in s.variables)
    branches = tuple(s for s in ways if isinstance(s, If))
    _check_own(effects, loop, own)
    thens = [s for way in branches for s in flat(way.then)]
    others = [s for s in body if s not in branches]
    _, passed = combined_in(kernel, axis, effects, loop)
    given = tuple(passed)
    elsewhere = {*effects.changed(*others)} if others else set[Variable]()
    asking = [_asking(s) if isinstance(s, If) and (s in ways or _skips(s)) else s for s in asks]
    for variable in given:
        if variable in elsewhere and any(variable in effects.mentions(s) for s in asking):
            raise NotLegal(_BEFORE, loop.line)
        if variable in elsewhere or variable not in effects.changed(*thens):
            raise NotLegal(f"`{variable.name}` goes from round to round", loop.line)
        kind = type_of(kernel, variable)
        if kind.depth or not kind.integral or (kind.size or 0) >= _WORD:
            combine.carries(kind, loop.line)
    _check_asks(kernel, effects, asking, loop, {*own} | anew, {*given})
    sizes = tuple(dict.fromkeys(asked(kernel, effects, axis, asking)))
    return Broken(kernel, axis, effects, first, asks, body[last + 1 :], own, branches, given, sizes)


def _unfolded(loop: Loop) -> tuple[Statement, ...]:
    """The statements of a round; ``if (c) work(); else break;`` as one that first asks ``!c``."""
    found = list[Statement]()
    for statement in body_of(loop.body):
        match statement:
            case If(test=test, then=then, other=Statement() as other, before=None) if only_leaves(
                other, "break"
            ) and not any(True for _ in ends(then)):
                leaves = Block(None, statement.line, body_of(other))
                found.append(If(None, statement.line, Unary(None, "!", test), leaves))
                found += body_of(then)
            case _:
                found.append(statement)
    return tuple(found)


def _parted(
    kernel: Kernel, effects: Effects, body: Sequence[Statement], ways: Sequence[Statement],
    anew: set[Variable],
) -> tuple[tuple[Statement, ...], tuple[Statement, ...]]:  # fmt: skip
    """What a round does before it asks, and what it asks; ``anew`` it gives a value of its own."""
    first, asks = list[Statement](), list[Statement]()
    own = anew | {v for s in body if isinstance(s, Declare) for v in s.variables}
    stored = {a.own for a in kernel.reading.accesses if a.mode != "load"}
    for statement in body:
        before = [*first, *(s for s in asks if s in ways)]
        if statement in ways:
            _check_way(statement)
        if isinstance(statement, If) and (statement in ways or _skips(statement)):
            if effects.changed(_asking(statement)):
                raise NotLegal("what ends the loop changes something", statement.line)
            asks.append(statement)
            continue
        changed = effects.changed(statement).keys()
        if isinstance(statement, Blank | Declare):
            _check_order(effects, before, changed)
            asks.append(statement)
            continue
        if any(True for _ in ends(statement)):
            raise NotLegal("a round ends in a branch that does more", statement.line)
        if changed and changed <= own and not stored & effects.inside(statement):
            _check_order(effects, before, changed)
            asks.append(statement)
            continue
        if changed & own:
            raise NotLegal("a round changes what it asks by", statement.line)
        if any(isinstance(s, If) and (s in ways or _skips(s)) for s in asks):
            raise NotLegal("a round does something between two ways out", statement.line)
        first.append(statement)
    return tuple(first), tuple(asks)


def _check_order(
    effects: Effects, before: Sequence[Statement], changed: Collection[Variable]
) -> None:
    """Raise NotLegal where what is done or asked again behind it would see a later value."""
    for statement in before:
        if effects.mentions(statement) & {*changed}:
            raise NotLegal("a round changes what it asks by", statement.line)


def _check_way(way: Statement) -> None:
    """Raise NotLegal for anything but a branch that ends with the way out."""
    plain = isinstance(way, If) and way.other is None and way.before is None and not way.constant
    then = flat(way.then) if isinstance(way, If) else ()
    if not plain or not then or [*ends(way)] != [then[-1]]:
        raise NotLegal("the loop is left in a branch that does more", way.line)


def _check_own(effects: Effects, loop: Loop, own: Sequence[Variable]) -> None:
    """Raise NotLegal for what may be another name of a local, or is not a single value."""
    named = {v.name for v in own}
    for variable in own:
        made = variable.value is None and variable.initial
        if made or variable.type.reference or variable.array or variable.storage != "local":
            raise NotLegal(f"`{variable.name}` is not a value of its round", variable.line)
        if variable.value is not None and variable.opening != "=":
            raise NotLegal(f"`{variable.name}` is not a value of its round", variable.line)
        if variable in effects.lent:
            raise NotLegal(f"something leads to `{variable.name}`", variable.line)
    for variable in effects.mentions(loop):
        if variable.name in named and variable not in own:
            raise NotLegal(f"`{variable.name}` is the name of several locals", variable.line)


def _check_asks(
    kernel: Kernel, effects: Effects, asks: Sequence[Statement], loop: Loop,
    own: set[Variable], given: set[Variable],
) -> None:  # fmt: skip
    """Raise NotLegal where what ends the loop depends on rounds before, or does more than ask."""
    inner = {v for s in asks for w in walk(s) if isinstance(w, Declare) for v in w.variables}
    passing = {*effects.changed(loop.body)} - own - given - inner
    for statement in asks:
        if effects.mentions(statement) & passing:
            raise NotLegal(_BEFORE, statement.line)
        if {*effects.changed(statement)} - own:
            raise NotLegal("what ends the loop changes something", statement.line)
        for name in noticed(kernel, effects.inside(statement)):
            raise NotLegal(f"`{name}` may have side effects", statement.line)
        for e in effects.inside(statement):
            match e:
                case Lambda() | Unread():
                    raise NotLegal("what ends the loop is not followed", statement.line)
                case Binary(op="/" | "%", right=right):
                    kind = kernel.reading.types.get(right)
                    whole = kind is None or kind.integral
                    if whole and (not _steady(right) or names([right]) & (own | inner)):
                        raise NotLegal("a round behind the end may divide by 0", statement.line)


def _steady(expr: Expr) -> bool:
    """Whether an expression is made of names and numbers alone."""
    return all(isinstance(e, Name | Literal) for e in every(expr))


def _asking(branch: If) -> Statement:
    return Evaluate(None, branch.line, branch.test)


def _skips(statement: Statement) -> bool:
    """Whether a branch does nothing but end the round."""
    return (
        isinstance(statement, If)
        and statement.other is None
        and statement.before is None
        and not statement.constant
        and only_leaves(statement.then, "continue")
    )
