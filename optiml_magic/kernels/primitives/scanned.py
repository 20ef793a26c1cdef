"""P11, scan: lanes take neighbouring rounds of a loop, and hand on what goes from round to round.

Each lane finds the part that its round combines; shuffles give it what all rounds before its own
have left, in a logarithm of as many steps; then it makes its round. Lanes beyond the last round
have parts that change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from optiml_magic.kernels.editing import Node, Swaps, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Name, Step, every
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.combine import Group
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.heads import Heads
from optiml_magic.kernels.primitives.mixing import HELPERS, Mixing, matrix
from optiml_magic.kernels.primitives.naming import declared_type
from optiml_magic.kernels.primitives.recurrences import Linear
from optiml_magic.kernels.primitives.scan_order import Scan, left_out
from optiml_magic.kernels.primitives.scans import Scans
from optiml_magic.kernels.primitives.systems import System
from optiml_magic.kernels.reading import Axis, Reduction
from optiml_magic.kernels.tree import Block, Declare, Loop, Statement, Variable
from optiml_magic.kernels.tree import expressions as expressions_in

_JOINED = """\
// What an earlier part and one behind it are together.
template <class T> __device__ __forceinline__ T {word}_of(T value, T other) {{
    return {combined};
}}"""
_WARP = """\
// What the lanes before each have combined, behind `whole`, which becomes that of all of them.
template <int LANES, class T> __device__ __forceinline__ T lanes_before_{word}(T& whole, T part) {{
    const int lane = threadIdx.x % LANES;
    for (int apart = 1; apart < LANES; apart *= 2) {{
        const T earlier = __shfl_up_sync(group_mask<LANES>(), part, apart, LANES);
        if (lane >= apart) part = {word}_of(earlier, part);
    }}
    const T mine = {word}_of(whole, part);
    const T before = __shfl_up_sync(group_mask<LANES>(), mine, 1, LANES);
    const T begun = whole;
    whole = __shfl_sync(group_mask<LANES>(), mine, LANES - 1, LANES);
    return lane == 0 ? begun : before;
}}"""
_BLOCK = """\
// What the threads before each have combined, behind `whole`, which becomes that of all of them.
template <int THREADS, class T>
__device__ __forceinline__ T block_before_{word}(T& whole, T part) {{
    __shared__ T parts[THREADS / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int apart = 1; apart < 32; apart *= 2) {{
        const T earlier = __shfl_up_sync(~0u, part, apart);
        if (lane >= apart) part = {word}_of(earlier, part);
    }}
    const T near = __shfl_up_sync(~0u, part, 1);
    __syncthreads();  // the round before has read its parts
    if (lane == 31) parts[warp] = part;
    __syncthreads();
    T warps = parts[lane % (THREADS / 32)];
    for (int apart = 1; apart < THREADS / 32; apart *= 2) {{
        const T earlier = __shfl_up_sync(~0u, warps, apart);
        if (lane >= apart) warps = {word}_of(earlier, warps);
    }}
    warps = {word}_of(whole, warps);
    const T far = __shfl_sync(~0u, warps, warp == 0 ? 0 : warp - 1);
    const T before = warp == 0 ? whole : far;
    whole = __shfl_sync(~0u, warps, THREADS / 32 - 1);
    return lane == 0 ? before : {word}_of(before, near);
}}"""


_WARP_DELAYED = """\
// What the lane before each leaves, or `whole`, which becomes what the last one leaves.
template <int LANES, class T>
__device__ __forceinline__ T lanes_before_delayed(T& whole, T part, bool there) {{
    const unsigned own = group_mask<LANES>();
    const int last = __popc(__ballot_sync(own, there) & own) - 1;
    const T earlier = __shfl_up_sync(own, part, 1, LANES);
    const T before = threadIdx.x % LANES == 0 ? whole : earlier;
    whole = __shfl_sync(own, part, last, LANES);
    return before;
}}"""
_BLOCK_DELAYED = """\
// What the thread before each leaves, or `whole`, which becomes what the last one leaves.
template <int THREADS, class T>
__device__ __forceinline__ T block_before_delayed(T& whole, T part, bool there) {{
    __shared__ T warps[THREADS / 32], last;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int count = __syncthreads_count(there);  // the round before has read them
    if (lane == 31) warps[warp] = part;
    if (threadIdx.x == count - 1) last = part;
    const T earlier = __shfl_up_sync(~0u, part, 1);
    __syncthreads();
    const T before = lane > 0 ? earlier : warp > 0 ? warps[warp - 1] : whole;
    whole = last;
    return before;
}}"""


_LINEAR = """\
// What is left of an earlier value by rounds that scale it and add to it.
template <class T> __device__ __forceinline__ T {word}_of(T value, T scale, T added) {{
    return {combined};
}}"""
_WARP_LINEAR = """\
// What the lanes before each leave of `whole`, which becomes what all of them leave.
template <int LANES, class T>
__device__ __forceinline__ T lanes_before_{word}(T& whole, T scale, T added) {{
    const int lane = threadIdx.x % LANES;
    for (int apart = 1; apart < LANES; apart *= 2) {{
        const T by = __shfl_up_sync(group_mask<LANES>(), scale, apart, LANES);
        const T earlier = __shfl_up_sync(group_mask<LANES>(), added, apart, LANES);
        if (lane >= apart) {{
            added = {word}_of(earlier, scale, added);
            scale *= by;
        }}
    }}
    const T mine = {word}_of(whole, scale, added);
    const T before = __shfl_up_sync(group_mask<LANES>(), mine, 1, LANES);
    const T begun = whole;
    whole = __shfl_sync(group_mask<LANES>(), mine, LANES - 1, LANES);
    return lane == 0 ? begun : before;
}}"""
_BLOCK_LINEAR = """\
// What the threads before each leave of `whole`, which becomes what all of them leave.
template <int THREADS, class T>
__device__ __forceinline__ T block_before_{word}(T& whole, T scale, T added) {{
    __shared__ T scales[THREADS / 32], sums[THREADS / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int apart = 1; apart < 32; apart *= 2) {{
        const T by = __shfl_up_sync(~0u, scale, apart);
        const T earlier = __shfl_up_sync(~0u, added, apart);
        if (lane >= apart) {{
            added = {word}_of(earlier, scale, added);
            scale *= by;
        }}
    }}
    const T by = __shfl_up_sync(~0u, scale, 1), near = __shfl_up_sync(~0u, added, 1);
    __syncthreads();  // the round before has read them
    if (lane == 31) {{
        scales[warp] = scale;
        sums[warp] = added;
    }}
    __syncthreads();
    T before = whole;
    for (int other = 0; other < THREADS / 32; ++other) {{
        if (other == warp) before = whole;
        whole = {word}_of(whole, scales[other], sums[other]);
    }}
    return lane == 0 ? before : {word}_of(before, by, near);
}}"""


def helpers(scans: Scans, group: Group) -> list[str]:
    """The functions that the scans of a loop need."""
    mixed = any(scan.system is not None for scan in scans.found)
    found = [combine.MASK] if group == "warp" or mixed else []
    found += HELPERS[group] if mixed else ()
    for scan in (own for own in scans.found if own.system is None):
        word = _word(scan)
        one, all_of = (_JOINED, _WARP if group == "warp" else _BLOCK)
        if scan.delayed:
            found.append((_WARP_DELAYED if group == "warp" else _BLOCK_DELAYED).format())
            continue
        if scan.factors is not None:
            one, all_of = (_LINEAR, _WARP_LINEAR if group == "warp" else _BLOCK_LINEAR)
        found += [one.format(word=word, combined=_joined(scan)), all_of.format(word=word)]
    return found


def _word(scan: Scan) -> str:
    reduction = scan.reduction
    if scan.delayed:
        return "delayed"
    if scan.factors is not None:
        begun = scan.factors.begun and not scan.factors.scaled
        return "linear" if reduction.type.integral else "begun" if begun else "scaled"
    return combine.word_of(reduction) + ("_last" if _last(reduction) else "")


def _last(reduction: Reduction) -> bool:
    """Whether of equals, which zeros of two signs are, the later one is kept."""
    return reduction.op in "<>" and combine.test(reduction).endswith("=")


def _joined(scan: Scan) -> str:
    reduction = scan.reduction
    if scan.factors is not None and reduction.type.integral:
        return "value * scale + added"
    if scan.factors is not None:
        if _word(scan) == "begun":
            return "scale == 0 ? added : value + added"
        # What is zero stays so, whatever it is multiplied by and however often.
        return "value == 0 && scale == scale ? added : value * scale + added"
    if _last(reduction):
        return f"other {reduction.op}= value ? other : value"
    return combine.joined(reduction, "value", "other")


class Scanning:
    """The text of a loop whose rounds are shared so; ``count`` lanes, each with its ``lane``."""

    def __init__(
        self, kernel: Kernel, heads: Heads, axis: Axis, scans: Scans, taken: Sequence[str]
    ) -> None:
        self.kernel = kernel
        self.effects = Effects(kernel)
        self.heads = heads
        self.axis = axis
        self.loop: Loop = axis.node
        self.scans = scans
        self.taken = [*taken]
        self.again: list[Variable] = []  # what the round itself begins with as its part did

    def _fresh(self, name: str) -> str:
        self.taken.append(self.kernel.fresh(name, *self.taken))
        return self.taken[-1]

    def text(
        self, group: Group, lane: str, count: str, swaps: Mapping[Node, Node],
        told: Mapping[Node, tuple[Statement, ...]],
    ) -> str:  # fmt: skip
        """The loop; ``swaps`` and ``told`` are exchanged in all of its rounds."""
        counter = self.axis.variable
        assert counter is not None
        first, there = self._fresh(f"first_{counter.name}"), self._fresh("there")
        _, start = self.heads.start(self.loop, swaps)
        kind, step = declared_type(self.kernel, counter), self.heads.step(self.axis)
        asked = every(self.loop.test) if self.loop.test is not None else ()
        ahead: dict[Node, Node] = {
            e: text(first) for e in asked if isinstance(e, Name) and e.variable is counter
        }
        test = self.heads.test(self.loop, self.axis, swaps)
        heading = self.heads.test(self.loop, self.axis, {**swaps, **ahead})
        own, stride = (lane, count) if step == "1" else (f"{lane} * {step}", f"{count} * {step}")
        inside = [f"const {kind} {counter.name} = {first} + {own};",
                  f"const bool {there} = {test};"]  # fmt: skip
        hoisted, begun = self._hoisted(swaps)
        inside += hoisted
        if begun:
            inside += [f"if ({there}) {{", *begun, "}"]
        names: dict[Variable, str] = {}
        before_all = list[str]()
        scope = "lanes" if group == "warp" else "block"
        for scan in self.scans.found:
            if scan.variable in names:
                continue
            if scan.system is not None:
                mixed = self._mixing(scan.system)
                parts = dict(zip(scan.system.states, mixed.parts, strict=True))
                inside += self._part(scan, parts, "", there, names, swaps)
                inside += mixed.handed(group, count, there)
                before_all += self._matrix(mixed, start, swaps)
                names |= zip(scan.system.states, mixed.before, strict=True)
                continue
            place, word = scan.variable.name, _word(scan)
            part, mine = self._fresh(f"{place}_part"), self._fresh(f"{place}_before")
            scaling = scan.factors is not None and not scan.delayed
            scale = self._fresh(f"{place}_scale") if scaling else ""
            inside += self._part(scan, {scan.variable: part}, scale, there, names, swaps)
            along = ", ".join(own for own in (place, scale, part, there * scan.delayed) if own)
            handed = f"{scope}_before_{word}<{count}>({along})"
            inside.append(f"{scan.reduction.type.name} {mine} = {handed};")
            names[scan.variable] = mine
        renamed = {**swaps, **told, **self._named(self.scans.rest, names)}
        inside += [f"if ({there}) {{", *self._shown(self.scans.rest, renamed), "}"]
        body = "\n".join(inside)
        loop = f"for ({kind} {first} = {start}; {heading}; {first} += {stride}) {{\n{body}\n}}"
        return "\n".join(["{", *before_all, loop, "}"]) if before_all else loop

    def _mixing(self, found: System) -> Mixing:
        own, fresh = found.states, self._fresh
        parts, before = ([fresh(f"{v.name}_{w}") for v in own] for w in ("part", "before"))
        names = fresh("powers"), (*parts,), (*before,), fresh("states"), fresh("own_states")
        return Mixing(found, *names)

    def _matrix(self, mixed: Mixing, start: str, swaps: Mapping[Node, Node]) -> list[str]:
        """What rounds multiply states by, before the loop; nothing where it has no round."""
        counter = self.axis.variable
        assert counter is not None
        at = self._fresh(f"begun_{counter.name}")
        asked = every(self.loop.test) if self.loop.test is not None else ()
        first: dict[Node, Node] = {
            e: text(at) for e in asked if isinstance(e, Name) and e.variable is counter
        }
        columns = matrix(self.kernel, self.scans, mixed.system, self._fresh, swaps)
        test = self.heads.test(self.loop, self.axis, {**swaps, **first})
        kind = declared_type(self.kernel, counter)
        return [f"const {kind} {at} = {start};", *mixed.powers_of(columns, test)]

    def _part(
        self, scan: Scan, parts: Mapping[Variable, str], scale: str, there: str,
        names: Mapping[Variable, str], swaps: Mapping[Node, Node],
    ) -> list[str]:  # fmt: skip
        """The statements that find a lane's ``parts``, and by what one scales."""
        kind = scan.reduction.type.name
        plain = scale or scan.delayed or scan.system is not None
        nothing = "0" if plain else combine.nothing(scan.reduction)
        found = [f"{kind} {part} = {nothing};" for part in parts.values()]
        found = [*found, f"if ({there}) {{"]
        found[:0] = [f"{kind} {scale} = 1;"] if scale else []
        own = {**parts}
        for variable in scan.needs:
            own[variable] = self._fresh(f"{variable.name}_ahead")
            found.append(f"auto {own[variable]} = {names[variable]};")
        for variable in self.again:
            own[variable] = self._fresh(f"{variable.name}_again")
            found.append(f"auto {own[variable]} = {variable.name};")
        exchanged: dict[Node, Node | tuple[Statement, ...] | None] = {
            **swaps,
            **self._named(self.scans.rest, own),
        }
        for old, new in self.scans.given.items():
            exchanged[old] = edited(new, {**swaps, **self._named((new,), own)})
        for unit, changing in scan.changes.items():
            others = {**swaps, **self._named((*self.scans.rest, *self.scans.given.values()), own)}
            exchanged[unit] = self._scaling(scan, unit, changing, scale, others)
        exchanged |= dict.fromkeys(left_out(scan.kept, self.scans.rest))
        return [*found, *self._shown(self.scans.rest, exchanged), "}"]

    def _scaling(
        self, scan: Scan, unit: Statement, changing: Assign | Step, scale: str,
        swaps: Mapping[Node, Node],
    ) -> tuple[Statement, ...]:  # fmt: skip
        """A change of a recurrence's part, behind what it multiplies by."""
        show = partial(self.heads.written, swaps=swaps)
        linear = Linear(self.kernel, scan.variable, scan.reduction.type, show, unit.line)
        by = linear.changed(changing)
        whole = self.scans.given.get(unit, unit)
        shown = self.kernel.show(whole, swaps)
        ahead = (lines(f"{scale} *= {by};"),) if scale and by != linear.one else ()
        return (*ahead, lines(shown))

    def _named(
        self, statements: Sequence[Statement], names: Mapping[Variable, str]
    ) -> dict[Node, Node]:
        """Locals under other names, wherever the statements have them."""
        return {
            e: text(names[e.variable]) for s in statements for e in expressions_in(s)
            if isinstance(e, Name) and e.variable is not None and e.variable in names
        }  # fmt: skip

    def _hoisted(self, swaps: Mapping[Node, Node]) -> tuple[list[str], list[str]]:
        """Declarations of what is asked for behind, and the statements before any scan."""
        asked = {v for s in self.scans.rest for v in self.effects.mentions(s)}
        twice = {v for scan in self.scans.found for s in scan.kept for v in self.effects.given(s)}
        hoisted, begun = list[str](), list[str]()
        for statement in self.scans.first:
            changed = twice.intersection(
                statement.variables if isinstance(statement, Declare) else ()
            )
            for variable in changed:  # the round would begin with what its part left
                if variable.array or variable.type.reference or variable.value is None:
                    raise NotLegal(f"`{variable.name}` changes as a part is found", variable.line)
                self.again.append(variable)
            if not isinstance(statement, Declare) or not asked & {*statement.variables}:
                begun += self._shown((statement,), swaps)
                continue
            for variable in statement.variables:
                if variable.type.reference or variable.initial or variable.storage != "local":
                    raise NotLegal(f"`{variable.name}` cannot be declared ahead", variable.line)
            if all(v.value is None for v in statement.variables):
                hoisted += self._shown((statement,), swaps)
                continue
            for variable in statement.variables:
                if variable.array:
                    raise NotLegal(f"`{variable.name}` cannot be declared ahead", variable.line)
                hoisted.append(f"{declared_type(self.kernel, variable)} {variable.name};")
                if variable.value is not None:
                    value = self.heads.written(variable.value, swaps)
                    begun.append(f"{variable.name} = {value};")
        return hoisted, begun

    def _shown(self, statements: Sequence[Statement], swaps: Swaps) -> list[str]:
        shown = self.kernel.show(Block(None, 0, tuple(statements)), swaps)
        return [line for line in shown.strip()[1:-1].splitlines() if line.strip()]
