"""A loop that ends with the first round that finds something makes all of its rounds.

``for (...) if (x[j] > t) { at = j; break; }`` becomes the least counter of all rounds that find
something, a reduction whose rounds lanes and blocks may share; what the branch does for that round
follows behind the loop. Lanes of a warp wait for the last of them anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.all_rounds import asked
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.effects import Effects, by_ones, loops_in
from optiml_magic.kernels.primitives.ended import ended
from optiml_magic.kernels.primitives.halving import flat
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.primitives.spelled_names import stands
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Blank, Declare, Evaluate, If, Leave, Statement, walk
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import parse_expression

_ONE = Polynomial.constant(1)
#: A number that the counter of no round is, by the size and the sign of its type.
_NONE = {(4, True): "0x7fffffff", (4, False): "0xffffffffu", (8, True): "0x7fffffffffffffffll"}


@dataclass(frozen=True, eq=False)
class _Search:
    """A loop whose rounds do ``asks`` and end it where the ``branch`` behind is taken."""

    axis: Axis
    asks: tuple[Statement, ...]
    branch: If


@primitive
def unbroken(kernel: Kernel) -> Kernel:
    """The kernel with its first such loop as one that finds the least counter."""
    kernel = where_legal(ended, kernel)
    effects = Effects(kernel)
    found = [s for axis in kernel.axes().values() if (s := _search(axis, effects)) is not None]
    if not found:
        raise NotLegal("no loop ends with the first round that finds something")
    effects.straightforward()
    if kernel.reading.verbatim:
        raise NotLegal("a part of the kernel is not read")
    (search, *_) = found
    test = Evaluate(None, search.branch.line, search.branch.test)
    sizes = [*asked(kernel, effects, search.axis, (*search.asks, test))]
    loop, counter = search.axis.node, search.axis.variable
    assert counter is not None
    kind = type_of(kernel, counter)
    none = _NONE.get((kind.size or 0, kind.signed)) if kind.integral else None
    if none is None:
        raise NotLegal(f"`{counter.name}` is not a plain number", loop.line)
    name, words = kernel.fresh("first"), counter.type.base
    own = counter.name if words == "int" else f"({words}){counter.name}"  # whatever stands for it
    least = lines(f"{name} = min({name}, {own});")
    then = flat(search.branch.then)
    done = [kernel.show(s).strip() for s in (*search.asks, *then[:-1])]
    if any(stands(counter.name, line) for line in done):
        done.insert(0, f"const {words} {counter.name} = {name};")
    behind = [f"if ({name} != {none}) {{", *done, "}"]
    hints = hints_of(kernel, loop)
    told = [lines(kernel.show(hint).strip()) for hint in hints]
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = dict.fromkeys(hints)
    swaps[loop] = (
        lines(f"{words} {name} = {none};"), *told, edited(loop, {search.branch.then: least}),
        lines("\n".join(behind)),
    )  # fmt: skip
    directives = [RequireDirective(parse_expression(words)) for words in dict.fromkeys(sizes)]
    return kernel.rewritten(edited(kernel.function.body, swaps), directives=directives)


def _search(axis: Axis, effects: Effects) -> _Search | None:
    """A loop that counts up by one, asks in each round, and does more in its last one alone."""
    loop = axis.node
    leaves = [s for s in walk(loop.body) if isinstance(s, Leave)]
    own = [s for s in flat(loop.body) if not isinstance(s, Blank)]
    if len(leaves) != 1 or not own or loops_in(loop.body) or not by_ones(axis, effects):
        return None
    *asks, last = own
    if axis.step != _ONE or not isinstance(last, If) or last.other is not None or last.before:
        return None
    then = flat(last.then)
    if not then or then[-1] is not leaves[0] or leaves[0].kind != "break":
        return None
    plain = all(
        isinstance(s, Declare)
        and not any(v.type.reference or v.array or v.storage != "local" for v in s.variables)
        for s in asks
    )
    test = Evaluate(None, last.line, last.test)
    if not plain or effects.changed(*asks, test):
        return None
    return _Search(axis, tuple(asks), last)
