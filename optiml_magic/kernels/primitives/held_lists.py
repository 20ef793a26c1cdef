"""P25, held lists: a short sorted range that each round searches is held in registers.

Each step of a binary search waits for the element that says where the next one is. Where the range
stays while a loop looks for one number after the other, and is short, it is loaded once, by
vectors, and searched by selections that no address depends on. That its elements are in order is
looked at as they are loaded; other ranges are searched as they were.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Binary, Call, Expr, Index, Literal, Name, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.bisections import Bisection, bisections
from optiml_magic.kernels.tree import Declare, Loop, expressions
from optiml_magic.source.directives import TuneDirective

_LENGTHS = (8, 16, 32)  # of a range that registers hold: ours
_LENGTH = 16  # to begin with: ours
_VECTOR = 16  # bytes

_NAME = "among"
_AMONG = """\
// Whether one of elements that are in order is a number; a power of two of them.
template <int COUNT, class T> __device__ __forceinline__ bool among(const T* list, T wanted) {
    T part[COUNT];
    #pragma unroll
    for (int at = 0; at < COUNT; ++at) part[at] = list[at];
    #pragma unroll
    for (int half = COUNT / 2; half > 0; half /= 2) {
        const bool above = part[half] <= wanted;
        #pragma unroll
        for (int at = 0; at < COUNT / 2; ++at) {
            if (at < half) part[at] = above ? part[half + at] : part[at];
        }
    }
    return part[0] == wanted;
}
"""


def held_of(kernel: Kernel) -> list[Bisection | NotLegal]:
    """The searches whose ranges registers may hold, or why not: one for each loop around.

    None where a range is held already, and the search is for those that are too long.
    """
    if any(isinstance(e, Call) and e.function == _NAME for e in expressions(kernel.function.body)):
        return []
    found, taken = list[Bisection | NotLegal](), set[Loop]()
    for search in bisections(kernel):
        if isinstance(search, Bisection):
            if search.outer in taken:
                continue
            taken.add(search.outer)
        found.append(search)
    return found


@primitive
def held_lists(kernel: Kernel, line: int) -> Kernel:
    """The kernel whose search at this line goes through registers."""
    for search in held_of(kernel):
        if isinstance(search, Bisection) and search.loop.line == line:
            return _held(kernel, search)
    raise NotLegal("no loop searches a range that stays", line)


def _held(kernel: Kernel, search: Bisection) -> Kernel:
    names = list[str]()

    def fresh(name: str) -> str:
        names.append(kernel.fresh(name, *names))
        return names[-1]

    length, array = fresh("LENGTH"), kernel.spelled(search.array)
    array = array if isinstance(search.array, Name) else f"({array})"
    held_list, start, count, held, at, then = (
        fresh(f"{search.name}_{part}") for part in ("list", "start", "count", "held", "at", "next")
    )
    kind, each = search.kind.name, _VECTOR // (search.kind.size or _VECTOR)
    first, last = f"{array}[{start} + {at}]", f"min({then}, {count} - 1)"
    loading = f"""\
        const {search.places} {start} = {kernel.spelled(search.low)};
        const {search.places} {count} = {_behind(kernel, search)} - {start};
        {held} = {start} >= 0 && {count} > 0 && {count} <= {length};
        if ({held}) {{
            #pragma unroll
            for (int {at} = 0; {at} < {length}; {at} += {each}) {{
                if ((size_t)&{first} % {_VECTOR} == 0 && {at} + {each} <= {count}) {{
                    *reinterpret_cast<uint4*>({held_list} + {at}) =
                        *reinterpret_cast<const uint4*>(&{first});
                }} else {{
                    #pragma unroll
                    for ({search.places} {then} = {at}; {then} < {at} + {each}; ++{then})
                        {held_list}[{then}] = {array}[{start} + {last}];
                }}
            }}
            #pragma unroll
            for (int {at} = 1; {at} < {length}; ++{at})
                {held} = {held} && {held_list}[{at} - 1] <= {held_list}[{at}];
        }}
"""
    test = _first_test(kernel, search)
    begun = f"if ({test}) {{\n{loading}}}" if test else f"{{\n{loading}}}"
    done = "\n".join(kernel.show(s).strip() for s in search.then)
    asked = f"if ({_NAME}<{length}>({held_list}, {kernel.spelled(search.key)})) {{\n{done}\n}}"
    swaps: dict[Node, Node | tuple[()] | None] = dict.fromkeys(search.gone)
    swaps[search.loop] = lines(asked)
    whole = f"""\
{{
    alignas({_VECTOR}) {kind} {held_list}[{length}];
    bool {held} = false;
    {begun}
    if ({held}) {{
        {kernel.show(search.outer, swaps).strip()}
    }} else {{
        {kernel.show(search.outer).strip()}
    }}
}}"""
    return kernel.rewritten(
        edited(kernel.function.body, {search.outer: lines(whole)}),
        directives=[TuneDirective(length, _LENGTHS, _LENGTH, None)],
        helpers=[_AMONG],
    )


def _behind(kernel: Kernel, search: Bisection) -> str:
    """The first place behind a range."""
    if not search.closed:
        return f"({kernel.spelled(search.high)})"
    match search.high:
        case Binary(op="-", left=left, right=Literal(value=1)):
            return kernel.spelled(left)
    return f"({kernel.spelled(search.high)}) + 1"


def _first_test(kernel: Kernel, search: Bisection) -> str:
    """What the loop around asks before its first round; empty where the range loads nothing."""
    outer = search.outer
    if not any(isinstance(e, Index) for end in (search.low, search.high) for e in every(end)):
        return ""
    match outer:
        case Loop(kind="for", before=Declare(variables=(variable,)), test=Expr() as test) if (
            variable.value is not None
        ):
            swaps: dict[Node, Node] = {
                e: variable.value
                for e in every(test)
                if isinstance(e, Name) and e.variable is variable
            }
            return kernel.spelled(test, swaps)
    raise NotLegal("it is not known before the loop whether it has a round", outer.line)
