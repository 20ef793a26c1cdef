"""The launch of a kernel that has no launch directive, from what its reading says.

It is certain or it is an error: every store must stand under guards that bound every axis of the
grid, so that further blocks do nothing, or the blocks along an axis share an array out among them;
and all that is known of a block's size must agree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from optiml_magic.errors import SourceError
from optiml_magic.kernels.blocks import BlockSizes
from optiml_magic.kernels.expressions import builtin
from optiml_magic.kernels.formulas import expression
from optiml_magic.kernels.parallel import AXES, Bound, Names, bound_of
from optiml_magic.kernels.ranges import holds
from optiml_magic.kernels.read import read
from optiml_magic.kernels.reading import Access, Reading
from optiml_magic.kernels.sized import blocks_by_size
from optiml_magic.kernels.symbols import Compare, Condition, Some
from optiml_magic.kernels.tree import Function, expressions
from optiml_magic.kernels.unit import Unit
from optiml_magic.source.directives import LaunchDirective
from optiml_magic.source.expressions import Expression, parse_expression

_UNREAD = frozenset(
    {"the grammar stops here", "nested too deeply", "an undecided conditional",
     "an else without its if"}
)  # fmt: skip
_GROUPS = frozenset(
    {"this_grid", "this_thread_block", "this_cluster", "this_multi_grid", "tiled_partition",
     "coalesced_threads", "cluster_group", "grid_group"}
)  # fmt: skip
_MOST_CANDIDATES = 24


def infer_launch(unit: Unit, function: Function, tuned: Collection[str] = ()) -> LaunchDirective:
    """The launch of a kernel, or a SourceError that says what is missing.

    ``tuned`` are the names of tune directives, which may stand in its expressions.
    """
    return _Inference(unit, function, tuple(tuned)).launch()


class _Inference:
    def __init__(self, unit: Unit, function: Function, tuned: tuple[str, ...]) -> None:
        self.function = function
        self.reading = read(unit, function, tuned=tuned)
        self.symbols = self.reading.symbols
        scalars = tuple(
            p.name for p in function.parameters
            if p.name in self.symbols.table and self.symbols[p.name].kind == "scalar"
        )  # fmt: skip
        self.names = Names(scalars, tuned)
        self.used = _axes(self.reading)
        self.grid_axes = _axes(self.reading, ("blockIdx", "gridDim"))
        self.rank = max(self.used, default=-1) + 1
        self.leading: dict[int, Bound] = {}
        self.sized: dict[int, str] = {}
        self.block = BlockSizes(unit, self.reading, self.names, self.used, self.error)

    def launch(self) -> LaunchDirective:
        self.refuse_unsupported()
        self.block.fix()
        if set(range(self.rank)) != self.used:
            raise self.error("it skips an axis")
        effects = [a for a in self.reading.accesses if a.mode != "load" and a.space == "global"]
        if not effects:
            raise self.error("no store to a parameter was found")
        bounds = {effect: tuple(self.bounds(effect.guard)) for effect in effects}
        for axis in sorted(self.grid_axes):
            blocks = blocks_by_size(axis, self.reading.accesses, self.symbols, self.names)
            if blocks is not None and not any(b.axis == axis for bs in bounds.values() for b in bs):
                self.sized[axis] = blocks
            else:
                self.leading[axis] = self.bound_axis(axis, bounds)
        block = self.block.chosen(self.leading)
        grid = tuple(self.grid_axis(axis, block) for axis in range(self.rank))
        return LaunchDirective(self.spelled, grid, block)

    @property
    def spelled(self) -> str:
        return self.function.name + ("<>" if self.function.template else "")

    def refuse_unsupported(self) -> None:
        reading = self.reading
        if self.dynamic:
            raise self.error("its dynamic shared memory has a size that only the launch gives")
        if any(p.default is None and not p.is_pack for p in self.function.template):
            raise self.error("its template arguments are not known")
        if reading.calls & _GROUPS or any(b.scope == "other" for b in reading.barriers):
            raise self.error("it uses cooperative groups")
        if any(leaf.reason in _UNREAD for leaf in reading.verbatim):
            raise self.error("its code could not be read to the end")
        if not self.grid_axes:
            raise self.error("it does not read blockIdx")
        parameters = [p.name for p in self.function.parameters]
        module = {n for n, a in reading.arrays.items() if a.space == "global"} - set(parameters)
        unclear = [  # what is const is read alone, whoever takes it
            p.name
            for p in self.function.parameters
            if p.name in reading.unclear and not p.type.const
        ]
        for name in [*unclear, *sorted(module & reading.written)]:
            raise self.error(f"what it does with `{name}` could not be followed")

    @property
    def dynamic(self) -> bool:
        return any(array.dynamic for array in self.reading.arrays.values())

    def bounds(self, guard: tuple[Condition, ...]) -> Iterator[Bound]:
        """The bounds that conditions put on blocks, those of the outermost first.

        Those of one way of several are among them: whether each other way implies them is asked.
        """
        for condition in guard:
            for part in condition.conjuncts():
                if isinstance(part, Compare) and part.op != "!=":
                    for form in (part.form, -part.form) if part.op == "==" else (part.form,):
                        found = bound_of(form, self.symbols, self.names)
                        if found is not None and self.written(found) is not None:
                            yield found
                elif isinstance(part, Some):
                    for way in part.parts:
                        yield from self.bounds((way,))

    def written(self, bound: Bound) -> Expression | None:
        return expression(bound.extent, self.symbols, self.names.all)

    def bound_axis(self, axis: int, bounds: dict[Access, tuple[Bound, ...]]) -> Bound:
        """One bound that holds at every store: blocks beyond it then do nothing."""
        candidates = dict.fromkeys(
            bound for found in bounds.values() for bound in found if bound.axis == axis
        )
        for bound in list(candidates)[:_MOST_CANDIDATES]:
            if all(self.implied(bound, effect.guard) for effect in bounds):
                return bound
        for effect, found in bounds.items():
            if not any(bound.axis == axis for bound in found):
                raise self.error(
                    f"the store on line {effect.line} has no bound along {AXES[axis]} in terms "
                    "of the scalar parameters"
                )
        raise self.error(f"its stores are bounded differently along {AXES[axis]}")

    def implied(self, bound: Bound, guard: tuple[Condition, ...]) -> bool:
        parts = [part for condition in guard for part in condition.conjuncts()]
        compares = [part for part in parts if isinstance(part, Compare)]
        if bound in self.bounds(tuple(compares)) or holds(bound.form, guard, self.symbols):
            return True
        return any(
            all(self.implied(bound, (way, *(p for p in parts if p is not part)))
                for way in part.parts)
            for part in parts if isinstance(part, Some)
        )  # fmt: skip

    def grid_axis(self, axis: int, block: tuple[Expression, ...]) -> Expression:
        return parse_expression(self.blocks_along(axis, [str(size) for size in block]))

    def blocks_along(self, axis: int, block: list[str]) -> str:
        if axis not in self.leading:
            return self.sized.get(axis, "1")
        bound = self.leading[axis]
        extent = str(self.written(bound))
        stride = self.block.stride(bound.stride, block)
        return extent if stride == "1" else f"cdiv({extent}, {stride})"

    def error(self, reason: str) -> SourceError:
        """The refusal, with what a directive lacks in capitals: nobody takes those for sizes."""
        rank = max(self.rank, 1)
        ends = [f"_{AXES[axis].upper()}" if rank > 1 else "" for axis in range(rank)]
        block = [f"THREADS{end}" for end in ends]
        grid = [
            self.blocks_along(axis, block)
            if axis in self.leading or axis in self.sized
            else f"BLOCKS{end}"
            for axis, end in enumerate(ends)
        ]
        shared = " shared(BYTES)" if self.dynamic else ""
        names = ", ".join(p.name for p in self.function.template)
        name = self.function.name + (f"<{names}>" if names else "")
        return SourceError(
            f"the launch of `{self.function.name}` cannot be inferred: {reason}",
            fix="write how it runs, with your own sizes for the words in capitals: "
            f"#pragma optiml launch {name} grid({', '.join(grid)}) block({', '.join(block)})"
            f"{shared}",
            line=self.function.line,
        )


def _axes(
    reading: Reading,
    builtins: Collection[str] = ("blockIdx", "threadIdx", "blockDim", "gridDim"),
) -> frozenset[int]:
    """The axes of any of these built-in variables that a kernel reads."""
    named = [name for name, symbol in reading.symbols.table.items() if symbol.kind == "builtin"]
    named += [name for e in expressions(reading.function.body) if (name := builtin(e))]
    for leaf in reading.verbatim:
        named += [name for mention in leaf.mentions if (name := builtin(mention))]
    return frozenset(AXES.index(n[-1]) for n in named if n[:-2] in builtins)
