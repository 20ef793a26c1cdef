"""P9, read back: an element that a thread asks for after it has stored it, is the local it stored.

``r[j] = sum; for (i ...) a[i * m + j] -= q[i] * r[j];`` loads ``r[j]`` in every round, since for a
compiler ``a`` may lead there. With ``const float r_here = sum;`` no round asks memory, and threads
that share the rounds need not wait for the one that stores.
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Call, Index, Lambda, every
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.items import element, is_plain
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Block, Evaluate, Statement, walk


@primitive
def read_back(kernel: Kernel) -> Kernel:
    """The kernel with a local for each element that it stores and then asks for."""
    stores = [a for a in kernel.reading.accesses if a.mode == "store" and a.space == "global"]
    loaded = {a.array for a in kernel.reading.accesses if a.mode == "load"}
    if not any(store.array in loaded for store in stores):
        raise NotLegal("it asks for nothing that it stores")
    effects = Effects(kernel)
    effects.straightforward()
    for e in effects.inside(kernel.function.body):
        if isinstance(e, Lambda):
            raise NotLegal("when a lambda asks for an element is not followed")
        if isinstance(e, Call) and bare(e.function).startswith("__threadfence"):
            raise NotLegal("threads tell each other something")
    by_node = {store.node: store for store in stores}
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    taken: list[str] = []
    for block in (s for s in walk(kernel.function.body) if isinstance(s, Block)):
        for at, statement in enumerate(block.body):
            match statement:
                case Evaluate(expression=Assign(op="=", value=value) as whole) if whole in by_node:
                    store = by_node[whole]
                case _:
                    continue
            found = [*_asked(effects, store, block.body[at + 1 :])]
            if not found or any(e in swaps for e in every(value)):
                continue
            taken.append(kernel.fresh(f"{store.array}_here", *taken))
            kept = f"const {store.element.name} {taken[-1]} = {kernel.spelled(value)};"
            put = f"{kernel.spelled(whole.target)} = {taken[-1]};"
            swaps |= dict.fromkeys(found, text(taken[-1]))
            swaps[statement] = (lines(f"{kept}\n{put}"),)
    if not swaps:
        raise NotLegal("it asks for nothing that it has just stored")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _asked(effects: Effects, store: Access, behind: tuple[Statement, ...]) -> Iterator[Index]:
    """The loads of what a statement has stored, up to where the element may be another one."""
    kernel, place = effects.kernel, element(effects, store)
    if store.index is None or not kernel.reading.symbols.known(store.index):
        return
    if not isinstance(place, Index) or not is_plain(kernel, store) or store.call is not None:
        return
    asked = names([place])
    if any(v.type.volatile for v in asked) or any(isinstance(e, Call) for e in every(place)):
        return
    if any(a.mode == "atomic" for a in kernel.reading.of(store.array)):
        return
    for statement in behind:
        touching = [a for a in effects.accesses(statement) if effects.same(a.array, store.array)]
        if asked & effects.given(statement) or any(a.mode != "load" for a in touching):
            return
        for access in touching:
            own = access.array == store.array and access.element == store.element
            here = own and access.index == store.index and access.call is None
            if here and isinstance(access.node, Index):
                yield access.node
