"""P12, bytes in pairs: what a thread computes of neighbouring bytes it computes for two at once.

A loop over items of one thread, whose bytes are in local arrays already, takes two items a round:
each value is a word of two halves (``pair_lines``). Words of results are put together behind it.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Binary, Expr, Literal, Name, Step
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.pair_items import Items
from optiml_magic.kernels.primitives.pair_lines import HELPERS, NAMES, PairLines
from optiml_magic.kernels.primitives.pair_values import Element
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Loop,
    Statement,
    Variable,
    walk,
)
from optiml_magic.kernels.types import named
from optiml_magic.source.program import parse_program

_WORD = 4  # bytes, whose results are put together
_ALIGNED = "alignas(16)"  # as wide as any vector of them
_INCLUDE = "#include <cuda_fp16.h>"


@primitive
def in_pairs(kernel: Kernel) -> Kernel:
    """The kernel that computes two neighbouring bytes at once."""
    ours = all(helper.strip() in kernel.program.text for helper in HELPERS)
    if kernel.words & NAMES and not ours:
        raise NotLegal("names of pairs are others' already")
    arrays = _arrays(kernel)
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    reason: NotLegal | None = None
    loaded, touched = set[Variable](), set[Variable]()
    for block in walk(kernel.function.body):
        for place, loop in enumerate(block.body if isinstance(block, Block) else ()):
            counter = _counter(kernel, loop) if isinstance(loop, Loop) else None
            if counter is None or not isinstance(loop, Loop):
                continue
            items = Items(kernel, counter, frozenset(arrays))
            try:
                made = _pair(kernel, loop, items)
            except NotLegal as why:
                reason = reason or why
                continue
            assert isinstance(block, Block)
            before = block.body[place - 1] if place else None
            if isinstance(before, Blank) and "unroll" in kernel.show(before):
                swaps[before] = None
            swaps[loop] = lines(made)
            loaded |= items.loaded
            touched |= items.loaded | {stored.variable for stored in items.stored}
    if not loaded:
        raise reason or NotLegal("no loop over items computes of bytes alone")
    for variable in touched:
        shown = kernel.show(arrays[variable]).strip().removeprefix(_ALIGNED).removesuffix(";")
        empty = " = {}" if variable in loaded else ""  # a word may hold bytes that nobody brings
        swaps[arrays[variable]] = lines(f"{_ALIGNED} {shown}{empty};")
    made_kernel = kernel.rewritten(edited(kernel.function.body, swaps), helpers=HELPERS)
    if "cuda_fp16.h" in kernel.program.text:
        return made_kernel
    program = parse_program(f"{_INCLUDE}\n{made_kernel.program.text}")
    launch = next(d for d in program.launches if str(d) == str(made_kernel.launch))
    return replace(made_kernel, program=program, launch=launch)


def _arrays(kernel: Kernel) -> dict[Variable, Declare]:
    """Local arrays of bytes whose rows are whole words, each with its declaration."""
    found = {}
    for statement in walk(kernel.function.body):
        if not isinstance(statement, Declare) or len(statement.variables) != 1:
            continue
        (variable,) = statement.variables
        kind = named(variable.type.base, kernel.unit.aliases)
        bytes_ = kind.integral and not kind.signed and kind.size == 1 and kind.kind == "int"
        length = variable.extents[-1] if variable.extents else None
        if (
            bytes_ and length is not None and _is_whole(kernel, length)
            and variable.storage == "local"
            and not variable.type.depth and variable.value is None and not variable.initial
        ):  # fmt: skip
            found[variable] = statement
    return found


def _is_whole(kernel: Kernel, length: Expr) -> bool:
    """Whether a number is one of whole words, whatever tuned names are."""
    match length:
        case Literal(value=int() as value):
            return value % _WORD == 0
        case Name(name=name):
            tuned = [t for t in kernel.program.tunes if t.name == name]
            return bool(tuned) and all(v % _WORD == 0 for t in tuned for v in t.values)
        case Binary(op="+", left=left, right=right):
            return _is_whole(kernel, left) and _is_whole(kernel, right)
    return False


def _counter(kernel: Kernel, loop: Loop) -> Variable | None:
    """What counts the items of a loop over whole words of them."""
    match loop:
        case Loop(
            kind="for",
            before=Declare(variables=(Variable(value=Literal(value=0)) as counter,)),
            test=Binary(op="<", left=Name(variable=tested), right=count),
            update=Step(op="++", target=Name(variable=stepped)),
        ) if tested is counter and stepped is counter:
            return counter if _is_whole(kernel, count) else None
    return None


def _pair(kernel: Kernel, loop: Loop, items: Items) -> str:
    items.run(loop.body)
    if not items.stored or not items.loaded:
        raise NotLegal("an item does not make bytes of bytes", loop.line)
    if all(isinstance(value, Element) for value in items.stored.values()):
        raise NotLegal("an item computes nothing", loop.line)
    stored = {place.variable for place in items.stored}
    if items.loaded & stored:
        raise NotLegal("an item loads what another stores", loop.line)
    if any(place.at % _WORD for place in items.stored):
        raise NotLegal("what items store does not fill words", loop.line)
    item = items.counter.name
    assert isinstance(loop.test, Binary)
    count = kernel.spelled(loop.test.right)
    pairs = PairLines(item, kernel.fresh("pair"), items.stored.values())
    held: list[tuple[str, str]] = []
    packed: list[str] = []
    for place, value in items.stored.items():
        name = kernel.fresh(f"{place.variable.name}_pairs", *(n for n, _ in held))
        held.append((name, pairs.stored(value)))
        at = f"[{item} + {place.at}]" if place.at else f"[{item}]"
        packed.append(
            f"*reinterpret_cast<unsigned*>(&{place.variable.name}{place.row}{at}) = "
            f"__byte_perm({name}[{item} / 2], {name}[{item} / 2 + 1], 0x6420);"
        )
    heads = [f"#pragma unroll\nfor (int {item} = 0; {item} < {count}; {item} += {by}) {{"
             for by in (2, _WORD)]  # fmt: skip
    return "\n".join([
        *(f"unsigned {name}[{count} / 2];" for name, _ in held),
        heads[0], *pairs.lines, *(f"{name}[{item} / 2] = {made};" for name, made in held), "}",
        heads[1], *packed, "}",
    ])  # fmt: skip
