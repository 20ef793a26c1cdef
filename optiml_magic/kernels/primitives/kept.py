"""P9, keep: what several loops of a thread touch in the same rounds stays in registers.

The first ``count`` rounds of each loop are unrolled and take their elements from a local array,
which is loaded before the first of them, all at once, so that many loads are under way; the rounds
behind these do as they did. So nothing is asked of how many rounds there are.

An array that is written may stay too where no thread touches other elements of it than its own: it
is then written where the kernel wrote it, but for stores that a later loop makes again.
"""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Call, Name
from optiml_magic.kernels.functions import LANES
from optiml_magic.kernels.primitives.again import Again, Kept, again
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.computed import Computed, computed
from optiml_magic.kernels.primitives.effects import Effects, is_counted
from optiml_magic.kernels.primitives.heads import Heads
from optiml_magic.kernels.primitives.items import element
from optiml_magic.kernels.primitives.places import code, reached
from optiml_magic.kernels.primitives.staged import hints_before
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Block, Declare, Evaluate, Statement, expressions, walk
from optiml_magic.source.directives import TuneDirective
from optiml_magic.source.expressions import Expression, parse_expression

_REGISTERS = 65536  # of a block; CUDA C++ Programming Guide, "Compute Capabilities"
_REGISTER = 4  # bytes
_OTHERS = 40  # registers of a thread beside those that it keeps: ours
_WIDE = 4  # bytes of a counter to which several steps may be added


@primitive
def keep(
    kernel: Kernel, at: Sequence[int], counts: Sequence[int], own: frozenset[str] = frozenset()
) -> Kernel:
    """The loops with these numbers keep what they touch in their first ``counts[0]`` rounds.

    The tuner may choose another of the ``counts``. Without numbers they are the loops that take
    the most at once. Of arrays that are a round's ``own`` see ``again``.
    """
    known = again(kernel, own)
    widest = max(known, key=lambda one: one.widest, default=None)
    found = next((one for one in known if one.numbers == tuple(at)), None) if at else widest
    if found is None:
        raise NotLegal("its loops do not touch the same elements")
    name = kernel.fresh("KEEP")
    fits = fits_registers(kernel, name, found.bytes)
    return _Keeping(kernel, found, TuneDirective(name, tuple(counts), counts[0], fits)).made()


def room(threads: int) -> int:
    """The bytes that each thread of a block of so many may keep."""
    return (_REGISTERS // threads - _OTHERS) * _REGISTER


def fits_registers(kernel: Kernel, name: str, size: int) -> Expression | None:
    """Where each thread of a block has registers for the tuned number of so many bytes.

    None where the block's extent is not known before the launch.
    """
    if None in kernel.block:
        return None
    extents = [str(size) for size in kernel.launch.block if str(size) != "1"]
    block = " * ".join(f"({words})" if " " in words else words for words in extents) or "1"
    each = -(-size // _REGISTER)
    return parse_expression(f"({name} * {each} + {_OTHERS}) * {block} <= {_REGISTERS}")


def fixed_threads(kernel: Kernel) -> str:
    """The threads of a block where numbers say so: a compiler then keeps to their registers."""
    tuned = {tune.name for tune in kernel.program.tunes}
    extents = [size for size in kernel.launch.block if str(size) != "1"]
    fixed = len(extents) == 1 and extents[0].names <= tuned
    if fixed and not extents[0].names:  # a number of the user's, as are the bounds beside it
        blocks = {str(o.block) for o in kernel.program.launches if o.kernel == kernel.launch.kernel}
        fixed = not kernel.function.launch_bounds and len(blocks) == 1
    head = code(kernel.unit, kernel.function.head or kernel.function.span)
    return str(extents[0]) if fixed and "__maxnreg__" not in head else ""


def check_rounds(kernel: Kernel, axis: Axis, effects: Effects) -> None:
    """Raise NotLegal where several rounds of a loop cannot be written side by side."""
    loop = axis.node
    if not is_counted(axis, effects):
        raise NotLegal("the loop does not count in its head", loop.line)
    kinds = (kernel.reading.types.get(e) for e in effects.inside(loop)
             if isinstance(e, Name) and e.variable is axis.variable)  # fmt: skip
    if any(kind is not None and kind.integral and (kind.size or 0) < _WIDE for kind in kinds):
        raise NotLegal("its counter may not hold a longer step", loop.line)
    if any(axis.name in barrier.loops for barrier in kernel.reading.barriers):
        raise NotLegal("its threads wait in the loop", loop.line)
    for statement in walk(loop.body):
        if isinstance(statement, Declare) and any(
            v.storage != "local" for v in statement.variables
        ):
            raise NotLegal("it declares more than locals in the loop", statement.line)


class _Keeping:
    def __init__(self, kernel: Kernel, found: Again, tune: TuneDirective) -> None:
        self.old = kernel
        self.found = found
        self.tune = tune
        self.effects = Effects(kernel)
        self.loops = [axis.node for axis in found.axes]
        self.heads = Heads(kernel, self.loops, self.effects)
        self.turn = kernel.fresh("turn")
        taken = list[str]()
        for one in found.kept:
            taken.append(kernel.fresh(f"{one.array.replace('.', '_').replace(':', '_')}_kept",
                                      *taken))  # fmt: skip
        self.names = dict(zip(found.kept, taken, strict=True))
        self.computed = dict[Computed, str]()
        for again_ in computed(kernel, found, self.effects):
            own = again_.array.replace(".", "_").replace(":", "_")
            taken.append(kernel.fresh(f"{own}_made", *taken))
            self.computed[again_] = taken[-1]
        for axis in found.axes:
            self._check(axis)

    def _check(self, axis: Axis) -> None:
        """Raise NotLegal where rounds of a loop cannot stand apart from the others."""
        loop, kernel = axis.node, self.old
        check_rounds(kernel, axis, self.effects)
        for call in (e for e in expressions(loop.body) if isinstance(e, Call)):
            own = kernel.unit.called(call.function, len(call.arguments))
            deep = [f for o in own for f in (o, *reached(kernel.unit, o))]
            if LANES.fullmatch(call.function) or any(
                "_sync" in code(kernel.unit, f.span) for f in deep
            ):
                raise NotLegal("lanes exchange values in the loop", loop.line)

    def made(self) -> Kernel:
        old, swaps = self.old, dict[Node, Node | tuple[Statement, ...] | None]()
        begun: set[Kept] = set()
        for axis in self.found.axes:
            around = next(s for s in walk(old.function.body)
                          if isinstance(s, Block) and axis.node in s.body)  # fmt: skip
            hints = hints_before(around, axis.node)
            swaps |= dict.fromkeys(hints)
            here = [k for k in self.found.kept
                    if k not in begun and self._touches(axis, k)]  # fmt: skip
            begun |= set(here)
            made = [f"{k.kind} {self.names[k]}[{self.tune.name}];" for k in here]
            made += [f"{c.kind} {name}[{self.tune.name}];"
                     for c, name in self.computed.items() if c.axis is axis]  # fmt: skip
            loaded = [k for k in here if k.source is not None]
            if loaded:
                fill = "\n".join(
                    f"{self.names[k]}[{self.turn}] = {self._shown(k)};" for k in loaded
                )
                made.append(self._unrolled(axis, f"{{\n{fill}\n}}"))
            made.append(self._unrolled(axis, self._body(axis)))
            shown = "".join(f"{old.show(hint).strip()}\n" for hint in hints)
            made.append(shown + self._rest(axis))
            swaps[axis.node] = (lines("\n".join(made)),)
        return old.rewritten(
            edited(old.function.body, swaps), directives=[self.tune], bounds=fixed_threads(old)
        )

    def _touches(self, axis: Axis, kept: Kept) -> bool:
        return any(axis.name in a.loops for a in kept.accesses)

    def _shown(self, kept: Kept) -> str:
        assert kept.source is not None
        return self.old.spelled(kept.source)

    def _unrolled(self, axis: Axis, body: str) -> str:
        """A body for each of the rounds that are kept, where there is such a round."""
        words, start = self.heads.start(axis.node, {})
        assert axis.variable is not None
        name, turn = axis.variable.name, self.turn
        at = self._after(axis, turn, start)
        test = self.heads.test(axis.node, axis, {})
        const = "" if "const" in words else "const "
        return (
            f"#pragma unroll\nfor (int {turn} = 0; {turn} < {self.tune.name}; ++{turn}) {{\n"
            f"{const}{words}{name} = {at};\nif ({test}) {body}\n}}"
        )

    def _after(self, axis: Axis, rounds: str, start: str) -> str:
        """The value of a counter after so many rounds."""
        update, step = axis.node.update, self.heads.step(axis)
        kind = None
        if isinstance(update, Assign):
            kind = self.old.reading.types.get(update.target)
            words = self.old.spelled(update.value)
            if update.op == "+=" and words.replace(".", "").replace("_", "").isalnum():
                step = words  # such as the width of a block, which may become another one
        wide = f"({kind.name})" if kind is not None and kind.size == 8 else ""
        by = rounds if step == "1" else f"{wide}{rounds} * {step}"
        return by if start == "0" else f"{start} + {by}"

    def _rest(self, axis: Axis) -> str:
        """The rounds that are not kept, as they were."""
        words, start = self.heads.start(axis.node, {})
        assert axis.variable is not None
        assert axis.node.update is not None
        first = self._after(axis, self.tune.name, start)
        test = self.heads.test(axis.node, axis, {})
        update = self.old.spelled(axis.node.update)
        body = self.old.show(axis.node.body)
        return f"for ({words}{axis.variable.name} = {first}; {test}; {update}) {body}"

    def _body(self, axis: Axis) -> str:
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
        inside = self.effects.inside(axis.node.body)
        stores = dict[Node, tuple[Kept, Assign]]()
        for kept, name in self.names.items():
            for access in kept.accesses:
                if access.own not in inside:
                    continue
                here = text(f"{name}[{self.turn}]")
                swaps[element(self.effects, access) or access.node] = here
                if access.mode == "store" and isinstance(access.node, Assign):
                    stores[access.node] = kept, access.node
        told: dict[Node, tuple[Statement, ...]] = {}
        first = dict[Statement, str]()
        for one, name in self.computed.items():
            here = text(f"{name}[{self.turn}]")
            if one.axis is axis:
                value = self.old.show(Evaluate(None, 0, one.node), swaps)
                first[one.statement] = (
                    first.get(one.statement, "") + f"{name}[{self.turn}] = {value}\n"
                )
            swaps |= dict.fromkeys([one.node, *one.later], here)
        for statement, words in first.items():
            told[statement] = (lines(words + self.old.show(statement, swaps)),)
        for statement in walk(axis.node.body):
            if isinstance(statement, Evaluate) and statement.expression in stores:
                kept, assign = stores[statement.expression]
                made = [self.old.show(statement, swaps)]
                if not self._made_again(axis, kept):
                    target = self.old.spelled(assign.target)
                    made.append(f"{target} = {self.names[kept]}[{self.turn}];")
                told[statement] = (lines("\n".join(made)),)
        body = axis.node.body
        whole = body if isinstance(body, Block) else Block(None, body.line, (body,))
        return self.old.show(whole, {**swaps, **told})

    def _made_again(self, axis: Axis, kept: Kept) -> bool:
        """Whether a later loop stores to the element as well; no thread leaves before it does."""
        names = [x.name for x in self.found.axes]
        later = names[names.index(axis.name) + 1 :]
        return any(a.mode == "store" and set(later) & {*a.loops} for a in kept.accesses)
