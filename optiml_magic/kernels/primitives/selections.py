"""What a loop assigns along with an extreme that it selects, such as the place where that is.

Of equals a loop keeps the first or the last one. Lanes that share its rounds tell these apart by
the counter of the round in which each found its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.kernels.expressions import Assign, Name
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.combine import Group
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.reading import Axis, Reduction
from optiml_magic.kernels.tree import Block, Evaluate, If, Loop, Statement, Variable, walk

_WARP_SELECTED = """\
// Combines what a group's lanes have selected, each in a round; all of them get the whole.
template <int LANES, class T, class R{classes}>
__device__ __forceinline__ void lanes_{word}(T& value, R& round{parameters}) {{
    for (int apart = LANES / 2; apart > 0; apart /= 2) {{
        const T other = __shfl_xor_sync(group_mask<LANES>(), value, apart, LANES);
        const R its = __shfl_xor_sync(group_mask<LANES>(), round, apart, LANES);
        {shuffled}
        const bool better = other {op} value || (other == value && its {order} round);
        {taken}
    }}
}}"""
_BLOCK_SELECTED = """\
// Combines what a block's threads have selected, each in a round; all of them get the whole.
template <int THREADS, class T, class R{classes}>
__device__ __forceinline__ void block_{word}(T& value, R& round{parameters}) {{
    __shared__ T parts[THREADS / 32];
    __shared__ R rounds[THREADS / 32];
    {arrays}
    lanes_{word}<32>(value, round{arguments});
    __syncthreads();  // the round before has read its parts
    if (threadIdx.x % 32 == 0) {{
        parts[threadIdx.x / 32] = value;
        rounds[threadIdx.x / 32] = round;
        {kept}
    }}
    __syncthreads();
    for (int warp = 0; warp < THREADS / 32; ++warp) {{
        const T other = parts[warp];
        const R its = rounds[warp];
        {loaded}
        const bool better = other {op} value || (other == value && its {order} round);
        {taken}
    }}
}}"""


@dataclass(frozen=True)
class Selection:
    """The extreme of a loop, and the locals that are ``carried``: assigned with it in ``branch``.

    ``later`` says whether of two rounds the one whose counter is greater is the later one, ``last``
    whether of equals the later one is kept.
    """

    reduction: Reduction
    carried: tuple[Variable, ...]
    branch: Block
    later: bool
    last: bool

    @property
    def order(self) -> str:
        """How the counter of a round compares with that of another whose equal it replaces."""
        return ">" if self.later == self.last else "<"

    @property
    def greatest(self) -> bool:
        return combine.test(self.reduction).startswith(">")

    @property
    def word(self) -> str:
        """Of its function: ``greatest_first``."""
        which = "last" if self.order == ">" else "first"
        return f"{'greatest' if self.greatest else 'least'}_{which}"

    def combined(self, group: Group, count: str, counter: str) -> str:
        """The statement that combines it over ``count`` lanes, found in rounds of ``counter``."""
        scope = "lanes" if group == "warp" else "block"
        along = [self.reduction.place, counter, *(v.name for v in self.carried)]
        return f"{scope}_{self.word}<{count}>({', '.join(along)});"

    def helper(self, group: Group) -> str:
        """The functions that combine it, with as many values as go along."""
        warp = self._function(_WARP_SELECTED)
        return warp if group == "warp" else f"{warp}\n\n{self._function(_BLOCK_SELECTED)}"

    def _function(self, shape: str) -> str:
        more = range(len(self.carried))
        lines = "\n        "
        taken = ["value = better ? other : value;", "round = better ? its : round;"]
        taken += [f"with{n} = better ? other{n} : with{n};" for n in more]
        exchanged = "__shfl_xor_sync(group_mask<LANES>(), with{0}, apart, LANES)"
        made = shape.format(
            word=self.word,
            op=">" if self.greatest else "<",
            order=self.order,
            classes="".join(f", class W{n}" for n in more),
            parameters="".join(f", W{n}& with{n}" for n in more),
            arguments="".join(f", with{n}" for n in more),
            shuffled=lines.join(f"const W{n} other{n} = {exchanged.format(n)};" for n in more),
            arrays="\n    ".join(f"__shared__ W{n} withs{n}[THREADS / 32];" for n in more),
            kept=lines.join(f"withs{n}[threadIdx.x / 32] = with{n};" for n in more),
            loaded=lines.join(f"const W{n} other{n} = withs{n}[warp];" for n in more),
            taken=lines.join(taken),
        )
        return "\n".join(line for line in made.splitlines() if line.strip())


def selected(
    kernel: Kernel, axis: Axis, loop: Loop, reduction: Reduction, effects: Effects
) -> Selection:
    """What goes along with an extreme; raises NotLegal where that is not certain."""
    branch = _branch(loop, reduction)
    targets = [s.expression.target for s in branch.body
               if isinstance(s, Evaluate) and isinstance(s.expression, Assign)]  # fmt: skip
    carried = []
    for target in targets:
        if not isinstance(target, Name) or target.variable is None:
            raise NotLegal("more than a local goes along with what it selects", reduction.line)
        if target.name == reduction.place:
            continue
        combine.carries(type_of(kernel, target.variable), reduction.line)
        mentions = [e for e in effects.inside(loop)
                    if isinstance(e, Name) and e.variable is target.variable]  # fmt: skip
        if len(mentions) != 1 or target.variable.type.reference:
            raise NotLegal(f"`{target.name}` is asked for in the loop", reduction.line)
        carried.append(target.variable)
    step = axis.step.value if axis.step is not None else None
    if not step:
        raise NotLegal("whether its counter grows is not known", loop.line)
    return Selection(
        reduction, tuple(carried), branch, step > 0, combine.test(reduction).endswith("=")
    )


def _branch(loop: Loop, reduction: Reduction) -> Block:
    """The one branch that assigns to the place of the extreme."""
    found = [
        inner.then
        for inner in walk(loop.body)
        if isinstance(inner, If) and isinstance(inner.then, Block)
        and any(_assigns(s, reduction.place) for s in inner.then.body)
    ]  # fmt: skip
    if len(found) != 1:
        raise NotLegal("the place of what it selects goes along", reduction.line)
    return found[0]


def _assigns(statement: Statement, place: str) -> bool:
    match statement:
        case Evaluate(expression=Assign(target=Name(name=name))):
            return name == place
    return False
